// FeatureImportanceOverweight: a few features that decide alone.

#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleFeatureImportanceOverweight = {
    .name = "FeatureImportanceOverweight",
    .title = "Feature importance overweight",
    .summary = "A few features carry most of the importance.",
    .when =
        "At a step, the sum of the `nfeatures` largest importances, of those that match `tensor_regex` "
        "divided by their sum, is more than `threshold`.",
    .why =
        "A model that rests on one feature is often one to which the target has leaked, and fails where that "
        "feature is missing.",
    .fix = "Look at what the feature is; leave it out or shift it in time if it knows the target.",
    .healthy = "Data in which a few features do say all.",
    .cost = "What an XGBoost run of the original recorded.",
    .original = "FeatureImportanceOverweight",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"threshold", "share", 0.8, 0, 1, "sum above which it fires"},
                   {"nfeatures", "features", 3, 1, 1e6, "how many are summed", model::ParameterType::kWhole},
                   {"tensor_regex", "", ".*feature_importance/weight", 0, 0, "names of the importances",
                    model::ParameterType::kPatterns}},
    .readings =
        "Importances are divided by their sum, which changes nothing for those that the original records.",
};

class FeatureImportanceOverweight final : public CompatibleRule {
  public:
    explicit FeatureImportanceOverweight(const Parameters& parameters)
        : CompatibleRule("no feature importance was recorded"),
          selection_({}, parameters.texts("tensor_regex")),
          threshold_(parameters.at("threshold")),
          features_(static_cast<std::size_t>(parameters.at("nfeatures"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        std::vector<Place> all;
        double sum = 0;
        for (const Number& number : numbers_of(step)) {
            if (!selection_.includes(step, number.tensor)) continue;
            all.push_back({number.tensor, number.value});
            sum += number.value;
        }
        if (all.empty() || !(sum > 0)) return;
        std::stable_sort(all.begin(), all.end(),
                         [](const Place& a, const Place& b) { return a.value > b.value; });
        all.resize(std::min(all.size(), features_));
        double share = 0;
        for (const Place& place : all) share += place.value / sum;
        if (!(share > threshold_)) return pass(sink);
        model::Finding finding = finding_at(step, all);
        finding.message =
            base::format("{} features have {:.1f} % of all importance at step {}; {} alone has {:.1f} %.",
                         all.size(), 100 * share, step.step(), finding.tensor, 100 * all.front().value / sum);
        finding.fix = kCompatibleFeatureImportanceOverweight.fix;
        finding.evidence.push_back({"share of importance", share, "limit", threshold_});
        fire(sink, std::move(finding));
    }

  private:
    Selection selection_;
    double threshold_;
    std::size_t features_;
};

std::vector<model::Requirement> compatible_feature_importance_overweight_needs(const Parameters&) {
    return {};
}

}  // namespace

RuleEntry feature_importance_overweight() {
    return {&kCompatibleFeatureImportanceOverweight, &compatible_feature_importance_overweight_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<FeatureImportanceOverweight>(p);
            }};
}

}  // namespace traindbg::rules::compatible
