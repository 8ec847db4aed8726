// WeightUpdateRatio: weights that move too much or too little.

#include <cmath>
#include <deque>
#include <map>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleWeightUpdateRatio = {
    .name = "WeightUpdateRatio",
    .title = "Weight update ratio",
    .summary = "Updates are too large or too small beside the weights.",
    .when =
        "At a step with whole weights, the norm of a weight less what it was, divided by what its norm was "
        "plus `epsilon`, is more than `large_threshold` or less than `small_threshold`. What it was: at the "
        "step recorded before, or with `num_steps` at the first that is at most so many steps back.",
    .why =
        "Updates as large as the weights destroy what was learnt; updates that are far too small learn "
        "nothing.",
    .fix =
        "Change the learning rate: lower it for large ratios, raise it for small ones; look for frozen "
        "layers.",
    .healthy = "It knows none: frozen layers fire, and weights that begin at zero.",
    .cost = "Whole weights at every 500th step of training.",
    .original = "WeightUpdateRatio",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"num_steps",
                    "steps",
                    {},
                    1,
                    1e9,
                    "most steps between the two weights; none: from one recorded step to the next",
                    model::ParameterType::kWhole},
                   {"large_threshold", "ratio", 10, 0, 1e300, "ratio above which it fires"},
                   {"small_threshold", "ratio", 1e-8, 0, 1e300, "ratio below which it fires"},
                   {"epsilon", "norm", 1e-9, 0, 1e300, "added to the norm, against divisions by zero"}},
    .readings =
        "The original does not say which norm: taken is the Euclidean one of the whole tensor. Weights are "
        "the collection of that name: no biases. A weight with NaN or infinity has no ratio. With "
        "`num_steps`, step s is compared with \"a step >= s - num_steps\"; of several that is the first, so "
        "that weights saved every `num_steps` steps are compared with those just so many steps back. Weights "
        "that are saved more seldom are not judged.",
};

class WeightUpdateRatio final : public CompatibleRule {
  public:
    explicit WeightUpdateRatio(const Parameters& parameters)
        : CompatibleRule(parameters.has("num_steps")
                             ? "whole weights were not recorded at two steps at most `num_steps` apart"
                             : "whole weights were not recorded at two steps"),
          steps_(static_cast<std::uint64_t>(parameters.number_if_any("num_steps").value_or(0))),
          large_(parameters.at("large_threshold")),
          small_(parameters.at("small_threshold")),
          epsilon_(parameters.at("epsilon")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kEval) return;
        bool any = false;
        std::vector<Place> met;
        for (const model::RawTensor& raw : step.record->raw) {
            if (step.info(raw.tensor).role != model::Role::kWeight) continue;
            auto values = values_of(raw);
            if (!values) continue;
            auto& history = before_[raw.tensor];
            while (steps_ > 0 && !history.empty() && history.front().step + steps_ < step.step())
                history.pop_front();
            if (!history.empty() && history.front().step < step.step() &&
                history.front().values.size() == values->size()) {
                const double ratio = ratio_of(history.front().values, *values);
                if (std::isfinite(ratio)) {
                    any = looked(raw.tensor);
                    if (ratio > large_ || ratio < small_) met.push_back({raw.tensor, ratio});
                }
            }
            if (steps_ == 0) history.clear();
            history.push_back({step.step(), std::move(*values)});
        }
        if (!any) return;
        if (met.empty()) return pass(sink);
        const double ratio = met.front().value;
        const double limit = ratio > large_ ? large_ : small_;
        model::Finding finding = finding_at(step, met);
        finding.message = base::format(
            "{} changed by {} of itself up to step {}, {} than {}; {} weight{} like this.", finding.tensor,
            base::human_number(ratio), step.step(), ratio > large_ ? "more" : "less",
            base::human_number(limit), met.size(), met.size() == 1 ? " is" : "s are");
        finding.fix = kCompatibleWeightUpdateRatio.fix;
        finding.evidence.push_back({"update / weight", ratio, "limit", limit});
        fire(sink, std::move(finding));
    }

  private:
    struct Weights {
        model::StepIndex step = 0;
        std::vector<double> values;
    };

    [[nodiscard]] double ratio_of(const std::vector<double>& before, const std::vector<double>& now) const {
        double update = 0, norm = 0;
        for (std::size_t i = 0; i < now.size(); ++i) {
            update += (now[i] - before[i]) * (now[i] - before[i]);
            norm += before[i] * before[i];
        }
        return std::sqrt(update) / (std::sqrt(norm) + epsilon_);
    }

    std::uint64_t steps_;
    double large_, small_, epsilon_;
    // What later steps may be compared with: one step's weights, or those of the last num_steps steps.
    std::map<model::TensorId, std::deque<Weights>> before_;
};

std::vector<model::Requirement> compatible_weight_update_ratio_needs(const Parameters& parameters) {
    const auto steps =
        static_cast<std::uint64_t>(parameters.number_if_any("num_steps").value_or(kSaveInterval));
    return {{"weights",
             model::Mode::kTrain,
             model::What::kStatistics | model::What::kRaw,
             {.every = steps},
             kCompatibleWeightUpdateRatio.name}};
}

}  // namespace

RuleEntry weight_update_ratio() {
    return {
        &kCompatibleWeightUpdateRatio, &compatible_weight_update_ratio_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<WeightUpdateRatio>(p); },
        true};
}

}  // namespace traindbg::rules::compatible
