// ExplodingTensor: a tensor that is not finite.

#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleExplodingTensor = {
    .name = "ExplodingTensor",
    .title = "Exploding tensor",
    .summary = "A tensor holds NaN or infinity.",
    .when =
        "At a step, a tensor has an element that is NaN, or, unless `only_nan` is true, one that is "
        "infinite. The tensors are those of `collection_names` and those whose names match `tensor_regex`; "
        "with neither, all that were recorded.",
    .why = "From one value that is not finite every weight is lost within a step.",
    .fix = "Lower the learning rate, clip gradients, look at the inputs and at logarithms and divisions.",
    .healthy =
        "It knows none: the -inf of a mask that softmax takes, gradients that a loss scaler skips. Ours is "
        "`non_finite`, which says where it began.",
    .cost =
        "Nothing by itself but the losses at every 500th step; collections that `collection_names` names at "
        "every 500th step of training. What else is recorded is judged, too.",
    .original = "ExplodingTensor",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters =
        [] {
            std::vector<model::ParameterInfo> all = selection_parameters();
            all.push_back(
                {"only_nan", "", false, 0, 0, "infinities do not count", model::ParameterType::kFlag});
            return all;
        }(),
    .readings =
        "The original attaches no collection; its examples attach the gradients at every 500th step: "
        "`collection_names=gradients` does that here.",
};

class ExplodingTensor final : public CompatibleRule {
  public:
    explicit ExplodingTensor(const Parameters& parameters)
        : CompatibleRule("none of the tensors that it inspects was recorded"),
          selection_(parameters),
          only_nan_(parameters.flag("only_nan")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        const auto look = [&](model::TensorId tensor, std::uint64_t nan, std::uint64_t infinite) {
            any = looked(tensor);
            const std::uint64_t bad = only_nan_ ? nan : nan + infinite;
            if (bad > 0) met.push_back({tensor, static_cast<double>(bad)});
        };
        for (const model::TensorSample& sample : step.record->tensors)
            if (sample.statistics.count > 0 && selection_.includes(step, sample.tensor))
                look(sample.tensor, sample.statistics.nan, sample.statistics.infinite());
        for (const model::ScalarSample& scalar : step.record->scalars)
            if (selection_.includes(step, scalar.tensor))
                look(scalar.tensor, std::isnan(scalar.value) ? 1 : 0, std::isinf(scalar.value) ? 1 : 0);
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message = base::format("{} of {} elements of {} are not finite at step {}; {} tensor{} such.",
                                       met.front().value, count_of(step, met.front().tensor), finding.tensor,
                                       step.step(), met.size(), met.size() == 1 ? " has" : "s have");
        finding.fix = kCompatibleExplodingTensor.fix;
        finding.evidence.push_back({only_nan_ ? "NaN" : "NaN and infinities", met.front().value, "", 0});
        fire(sink, std::move(finding));
    }

  private:
    static std::uint64_t count_of(const model::StepView& step, model::TensorId tensor) {
        for (const model::TensorSample& sample : step.record->tensors)
            if (sample.tensor == tensor) return sample.statistics.count;
        return 1;
    }

    Selection selection_;
    bool only_nan_;
};

std::vector<model::Requirement> compatible_exploding_tensor_needs(const Parameters& parameters) {
    return selection_requirements(parameters, kCompatibleExplodingTensor.name, model::What::kStatistics);
}

}  // namespace

RuleEntry exploding_tensor() {
    return {
        &kCompatibleExplodingTensor, &compatible_exploding_tensor_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<ExplodingTensor>(p); }};
}

}  // namespace traindbg::rules::compatible
