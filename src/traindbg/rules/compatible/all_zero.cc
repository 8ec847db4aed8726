// AllZero: a tensor whose elements are zero.

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleAllZero = {
    .name = "AllZero",
    .title = "All zero",
    .summary = "A tensor has no more than a few elements that are not zero.",
    .when =
        "At a step, `threshold` % or more of the elements of a tensor are 0. The tensors are those of "
        "`collection_names` and those whose names match `tensor_regex`; with neither, all that were "
        "recorded.",
    .why =
        "Weights that are all zero learn alike or not at all; gradients or activations that are zero say "
        "that nothing reaches that place.",
    .fix =
        "Initialise the weights at random; look for units that are dead, for a loss that is detached, for "
        "inputs that are zero.",
    .healthy =
        "It knows none: biases at the start, layers that are frozen, branches that start at zero and sparse "
        "activations fire. Ours tell these apart: `dead_relu`, `gradients_not_cleared`.",
    .cost =
        "Nothing by itself but the losses at every 500th step; collections that `collection_names` names at "
        "every 500th step of training. What else is recorded is judged, too.",
    .original = "AllZero",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters =
        [] {
            std::vector<model::ParameterInfo> all = selection_parameters();
            all.push_back({"threshold", "%", 100, 0, 100, "share of zeros from which it fires"});
            return all;
        }(),
    .readings =
        "A tensor without elements is left out. NaN and infinities are not zero. A number (a loss) is a "
        "tensor of one element.",
};

class AllZero final : public CompatibleRule {
  public:
    explicit AllZero(const Parameters& parameters)
        : CompatibleRule("none of the tensors that it inspects was recorded"),
          selection_(parameters),
          threshold_(parameters.at("threshold")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        const auto look = [&](model::TensorId tensor, double percent) {
            any = looked(tensor);
            if (percent >= threshold_) met.push_back({tensor, percent});
        };
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::Statistics& s = sample.statistics;
            if (s.count > 0 && selection_.includes(step, sample.tensor))
                look(sample.tensor, 100 * static_cast<double>(s.zero) / static_cast<double>(s.count));
        }
        for (const model::ScalarSample& scalar : step.record->scalars)
            if (selection_.includes(step, scalar.tensor)) look(scalar.tensor, scalar.value == 0 ? 100 : 0);
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message = base::format("{:.4g} % of {} is zero at step {}, and so in {} tensor{} in all.",
                                       met.front().value, finding.tensor, step.step(), met.size(),
                                       met.size() == 1 ? "" : "s");
        finding.fix = kCompatibleAllZero.fix;
        finding.evidence.push_back({"zeros (%)", met.front().value, "limit", threshold_});
        fire(sink, std::move(finding));
    }

  private:
    Selection selection_;
    double threshold_;
};

std::vector<model::Requirement> compatible_all_zero_needs(const Parameters& parameters) {
    return selection_requirements(parameters, kCompatibleAllZero.name, model::What::kStatistics);
}

}  // namespace

RuleEntry all_zero() {
    return {&kCompatibleAllZero, &compatible_all_zero_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<AllZero>(p); }};
}

}  // namespace traindbg::rules::compatible
