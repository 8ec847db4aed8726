// VanishingGradient: gradients that are very small on average.

#include <algorithm>
#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleVanishingGradient = {
    .name = "VanishingGradient",
    .title = "Vanishing gradient",
    .summary = "Gradients become very small.",
    .when = "At a step, the mean of the absolute values of a gradient is less than `threshold`.",
    .why = "Parameters whose gradients are tiny do not move: the training stands still.",
    .fix =
        "Replace sigmoid or tanh by ReLU with He initialisation, add normalisation or residual connections, "
        "look for layers that are frozen.",
    .healthy =
        "It knows none: a training that has converged, frozen layers, embeddings and branches that start at "
        "zero fire. Ours is `vanishing_gradient`, which compares layers with each other.",
    .cost = "One pass over all gradients at every 500th step.",
    .original = "VanishingGradient",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"threshold", "mean of |gradient|", 1e-7, 0, 1e300, "mean below which it fires"}},
    .readings = "A gradient with a NaN or an infinity has no mean below anything and does not fire.",
};

class VanishingGradient final : public CompatibleRule {
  public:
    explicit VanishingGradient(const Parameters& parameters)
        : CompatibleRule("no gradient was recorded"), threshold_(parameters.at("threshold")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::Statistics& s = sample.statistics;
            if (step.info(sample.tensor).role != model::Role::kGradient || s.count == 0 || std::isnan(s.l1))
                continue;
            any = looked(sample.tensor);
            const double mean = s.l1 / static_cast<double>(s.count);
            if (s.not_finite() == 0 && mean < threshold_) met.push_back({sample.tensor, mean});
        }
        if (!any) return;
        if (met.empty()) return pass(sink);
        std::stable_sort(met.begin(), met.end(),
                         [](const Place& a, const Place& b) { return a.value < b.value; });
        model::Finding finding = finding_at(step, met);
        finding.message =
            base::format("The mean of |{}| is {} at step {}; {} gradient{} below {}.", finding.tensor,
                         base::human_number(met.front().value), step.step(), met.size(),
                         met.size() == 1 ? " is" : "s are", base::human_number(threshold_));
        finding.fix = kCompatibleVanishingGradient.fix;
        finding.evidence.push_back({"mean of |gradient|", met.front().value, "limit", threshold_});
        finding.plots = {{finding.tensor, "l1"}};
        fire(sink, std::move(finding));
    }

  private:
    double threshold_;
};

std::vector<model::Requirement> compatible_vanishing_gradient_needs(const Parameters&) {
    return {{"gradients",
             model::Mode::kTrain,
             model::What::kStatistics,
             {.every = kSaveInterval},
             kCompatibleVanishingGradient.name}};
}

}  // namespace

RuleEntry vanishing_gradient() {
    return {
        &kCompatibleVanishingGradient, &compatible_vanishing_gradient_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<VanishingGradient>(p); }};
}

}  // namespace traindbg::rules::compatible
