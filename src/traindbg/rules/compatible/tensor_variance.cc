// TensorVariance: a tensor whose variance is too large or too small.

#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleTensorVariance = {
    .name = "TensorVariance",
    .title = "Tensor variance",
    .summary = "The variance of a tensor is above or below what was given.",
    .when =
        "At a step, the variance of a tensor is more than `max_threshold` or less than `min_threshold`, of "
        "those that are given. The tensors are those of `collection_names` and those whose names match "
        "`tensor_regex`; with neither, all that were recorded.",
    .why =
        "Activations or gradients of very high or very low variance are the sign of a bad initialisation, or "
        "of neurons that are saturated or dead.",
    .fix = "Look at how the weights are initialised and at how the inputs are scaled.",
    .healthy = "What is usual differs from tensor to tensor: it is for who gives the limits.",
    .cost =
        "Nothing by itself but the losses at every 500th step; collections that `collection_names` names at "
        "every 500th step of training. What else is recorded is judged, too.",
    .original = "TensorVariance",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters =
        [] {
            std::vector<model::ParameterInfo> all = selection_parameters();
            all.push_back({"max_threshold", "variance", {}, 0, 1e300, "variance above which it fires"});
            all.push_back({"min_threshold", "variance", {}, 0, 1e300, "variance below which it fires"});
            return all;
        }(),
    .readings =
        "Without a limit it judges nothing. The variance is the population variance, as NumPy computes it; a "
        "tensor with NaN or infinity has none and is left out.",
};

class TensorVariance final : public CompatibleRule {
  public:
    explicit TensorVariance(const Parameters& parameters)
        : CompatibleRule("none of the tensors that it inspects was recorded"),
          selection_(parameters),
          most_(parameters.number_if_any("max_threshold")),
          least_(parameters.number_if_any("min_threshold")) {
        if (!most_ && !least_) why_not("neither max_threshold nor min_threshold is given");
    }

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (!most_ && !least_) return;
        bool any = false;
        std::vector<Place> met;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::Statistics& s = sample.statistics;
            if (s.count == 0 || s.not_finite() > 0 || std::isnan(s.std)) continue;
            if (!selection_.includes(step, sample.tensor)) continue;
            any = looked(sample.tensor);
            const double variance = s.std * s.std;
            if ((most_ && variance > *most_) || (least_ && variance < *least_))
                met.push_back({sample.tensor, variance});
        }
        if (!any) return;
        if (met.empty()) return pass(sink);
        const double variance = met.front().value;
        const bool is_high = most_ && variance > *most_;
        model::Finding finding = finding_at(step, met);
        finding.message = base::format(
            "The variance of {} is {} at step {}, {} {}; {} tensor{} are outside.", finding.tensor,
            base::human_number(variance), step.step(), is_high ? "more than" : "less than",
            base::human_number(is_high ? *most_ : *least_), met.size(), met.size() == 1 ? "" : "s");
        finding.fix = kCompatibleTensorVariance.fix;
        finding.evidence.push_back({"variance", variance, "limit", is_high ? *most_ : *least_});
        finding.plots = {{finding.tensor, "std"}};
        fire(sink, std::move(finding));
    }

  private:
    Selection selection_;
    std::optional<double> most_, least_;
};

std::vector<model::Requirement> compatible_tensor_variance_needs(const Parameters& parameters) {
    return selection_requirements(parameters, kCompatibleTensorVariance.name, model::What::kStatistics);
}

}  // namespace

RuleEntry tensor_variance() {
    return {&kCompatibleTensorVariance, &compatible_tensor_variance_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<TensorVariance>(p); }};
}

}  // namespace traindbg::rules::compatible
