// Overtraining: a loss that has not improved for long.

#include <algorithm>
#include <array>
#include <map>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleOvertraining = {
    .name = "Overtraining",
    .title = "Overtraining",
    .summary = "The model is trained beyond what it can learn.",
    .when =
        "The loss has not become less than its best by `delta` or more for more than `patience_train` steps "
        "of training at which it was recorded, or for more than `patience_validation` such steps of "
        "evaluation.",
    .why = "Steps that do not improve the model cost time and lead to overfitting.",
    .fix = "Stop at the best evaluation; lower the learning rate where the loss is still high.",
    .healthy = "It knows none: noise from batch to batch and plateaus fire. Ours is `overfit`.",
    .cost = "The losses at every 500th step of each mode.",
    .original = "Overtraining",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"patience_train", "steps", 5, 1, 1e9,
                    "steps without a new best of training that are allowed", model::ParameterType::kWhole},
                   {"patience_validation", "steps", 10, 1, 1e9,
                    "steps without a new best of evaluation that are allowed", model::ParameterType::kWhole},
                   {"delta", "loss", 0.01, 0, 1e300, "by how much a new best must be less"}},
    .readings =
        "Several losses are judged each on its own. What is called `val_...`, `validation-...`, `eval_...` "
        "or "
        "`test_...` and the like is of validation in whatever mode it stands (XGBoost, Keras). Of "
        "XGBoost's metrics those are losses that are errors (rmse, logloss, error and the like), and not "
        "those "
        "that are to grow (auc, map, ndcg).",
};

struct Best {
    double value = 0;
    model::StepIndex step = 0;
    std::uint64_t since = 0;  // steps without a new one
};

class Overtraining final : public CompatibleRule {
  public:
    explicit Overtraining(const Parameters& parameters)
        : CompatibleRule("no loss was recorded"),
          patience_{static_cast<std::uint64_t>(parameters.at("patience_train")),
                    static_cast<std::uint64_t>(parameters.at("patience_validation"))},
          delta_(parameters.at("delta")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        for (const Number& loss : numbers_of(step)) {
            const model::TensorInfo& info = step.info(loss.tensor);
            if (!is_loss(info)) continue;
            const bool is_eval = is_of_validation(step, info);
            any = true;
            const auto [place, is_first] = bests_.try_emplace({loss.tensor, is_eval});
            Best& best = place->second;
            if (is_first || loss.value <= best.value - delta_) best = {loss.value, step.step(), 0};
            else ++best.since;
        }
        if (!any) return;
        const auto worst = std::find_if(bests_.begin(), bests_.end(), [&](const auto& entry) {
            return entry.second.since > patience_[entry.first.second ? 1 : 0];
        });
        if (worst == bests_.end()) return pass(sink);
        const bool is_eval = worst->first.second;
        const Best& best = worst->second;
        model::Finding finding = finding_at(step, {{worst->first.first, best.value}});
        finding.message = base::format(
            "The {} loss has had no new best for {} recorded steps: {} at step {} was not improved by {}.",
            is_eval ? "validation" : "training", best.since, base::human_number(best.value), best.step,
            base::human_number(delta_));
        finding.fix = kCompatibleOvertraining.fix;
        finding.evidence.push_back({"steps without a new best", static_cast<double>(best.since), "limit",
                                    static_cast<double>(patience_[is_eval ? 1 : 0])});
        finding.plots = {{finding.tensor, "value"}};
        fire(sink, std::move(finding));
    }

  private:
    std::array<std::uint64_t, 2> patience_;  // of training, of evaluation
    double delta_;
    std::map<std::pair<model::TensorId, bool>, Best> bests_;
};

std::vector<model::Requirement> compatible_overtraining_needs(const Parameters&) {
    return {{"losses",
             model::Mode::kGlobal,
             model::What::kStatistics,
             {.every = kSaveInterval},
             kCompatibleOvertraining.name}};
}

}  // namespace

RuleEntry overtraining() {
    return {&kCompatibleOvertraining, &compatible_overtraining_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<Overtraining>(p); }};
}

}  // namespace traindbg::rules::compatible
