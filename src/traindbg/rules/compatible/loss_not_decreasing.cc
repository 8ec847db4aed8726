// LossNotDecreasing: a loss that does not fall from one look to the next.

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleLossNotDecreasing = {
    .name = "LossNotDecreasing",
    .title = "Loss not decreasing",
    .summary = "The loss does not fall at an adequate rate.",
    .when =
        "At a step that comes `num_steps` or more after the last look, the loss is compared with that of the "
        "latest step with a loss that is at least `num_steps` back. It fires if the loss fell by less than "
        "`diff_percent` % of that, or did not change; where it rose, if it rose by more than "
        "`increase_threshold_percent` %. `mode` says of which steps: those of EVAL, of TRAIN, or all, "
        "counted together (GLOBAL). The losses are the collection of that name if `use_losses_collection` is "
        "true, and those "
        "of `collection_names` and `tensor_regex`.",
    .why = "A loss that does not fall is a training that does not learn, or that has learnt what it can.",
    .fix =
        "Lower the learning rate, or raise one that is very small; look at the labels, at the initialisation "
        "and at whether gradients reach the first layers.",
    .healthy =
        "It knows none: noise from batch to batch, plateaus and a training that has converged fire. Ours is "
        "`loss_not_decreasing`.",
    .cost = "The losses at every 500th step of each mode.",
    .original = "LossNotDecreasing",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters =
        [] {
            std::vector<model::ParameterInfo> all = selection_parameters();
            all.push_back({"use_losses_collection", "", true, 0, 0, "whether the losses are looked at",
                           model::ParameterType::kFlag});
            all.push_back(
                {"num_steps", "steps", 10, 1, 1e9, "steps between two looks", model::ParameterType::kWhole});
            all.push_back({"diff_percent", "%", 0.1, 0, 100, "least fall"});
            all.push_back({"increase_threshold_percent", "%", 5, 0, 100, "largest rise that is allowed"});
            all.push_back({"mode",
                           "",
                           {},
                           0,
                           0,
                           "which steps are looked at; none: the first that has losses",
                           model::ParameterType::kChoice,
                           {"EVAL", "TRAIN", "GLOBAL"}});
            return all;
        }(),
    .readings =
        "Documented twice: GLOBAL is the default of `mode`, and the first of EVAL, TRAIN and GLOBAL that has "
        "data is. Taken is the second, which is what is said of a mode that is not given: evaluation once it "
        "was seen, training before. Documented is also that a rise is allowed up to "
        "`increase_threshold_percent`, which means nothing if any loss that did not fall enough fires: so a "
        "rise is judged by that limit alone. With a loss at every third step and `num_steps` 10, step 21 is "
        "compared with step 9, and the next look is at step 33, as documented. GLOBAL counts steps over all "
        "modes. Steps at which nothing was recorded are counted where a later one of their mode was: a run "
        "in "
        "which evaluation is recorded more seldom than training counts its last evaluations late.",
};

// The losses of one tensor at the steps that a later look may need.
struct Series {
    std::deque<std::pair<std::uint64_t, double>> values;
    std::uint64_t last_look = 0;
};

class LossNotDecreasing final : public CompatibleRule {
  public:
    explicit LossNotDecreasing(const Parameters& parameters)
        : CompatibleRule("no loss was recorded at two steps so far apart"),
          selection_(collections(parameters), parameters.texts("tensor_regex"),
                     [](const model::TensorInfo&) { return false; }),
          steps_(static_cast<std::uint64_t>(parameters.at("num_steps"))),
          least_fall_(parameters.at("diff_percent")),
          most_rise_(parameters.at("increase_threshold_percent")),
          mode_(parameters.has("mode") ? parameters.text("mode") : "") {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        taken_[static_cast<std::size_t>(step.mode())] = step.step() + 1;
        const bool is_eval = step.mode() == model::Mode::kEval;
        if (mode_ == "EVAL" && !is_eval) return;
        if (mode_ == "TRAIN" && step.mode() != model::Mode::kTrain) return;
        std::vector<Place> met;
        std::string message;
        model::Evidence evidence;
        bool any = false;
        for (const Number& loss : numbers_of(step)) {
            if (!selection_.includes(step, loss.tensor)) continue;
            if (mode_.empty() && is_eval && !evaluates_) {
                evaluates_ = true;  // from now on evaluation is what counts
                series_.clear();
            }
            if (mode_.empty() && evaluates_ && !is_eval) continue;
            const std::uint64_t now = mode_ == "GLOBAL" ? global_step(step) : step.step();
            Series& series = series_[loss.tensor];
            if (series.values.empty()) series.last_look = now;
            series.values.emplace_back(now, loss.value);
            if (now < series.last_look + steps_) continue;
            series.last_look = now;
            while (series.values.size() > 1 && series.values[1].first + steps_ <= now)
                series.values.pop_front();
            const double before = series.values.front().second;
            any = looked(loss.tensor);
            const double fall = before == 0 ? (loss.value < 0   ? 100
                                               : loss.value > 0 ? -HUGE_VAL
                                                                : 0)
                                            : 100 * (before - loss.value) / std::abs(before);
            const bool fires = fall < 0 ? -fall > most_rise_ : fall < least_fall_;
            if (!fires) continue;
            met.push_back({loss.tensor, loss.value});
            if (met.size() > 1) continue;
            message = base::format(
                "{} is {} at {}step {} and was {} at step {}: {}.", step.info(loss.tensor).name,
                base::human_number(loss.value), mode_ == "GLOBAL" ? "global " : "", now,
                base::human_number(before), series.values.front().first,
                fall < 0 ? base::format("it rose by {:.3g} %, more than {:.3g} %", -fall, most_rise_)
                         : base::format("it fell by {:.3g} %, less than {:.3g} %", fall, least_fall_));
            evidence = {"loss", loss.value, "before", before};
        }
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message = std::move(message);
        finding.fix = kCompatibleLossNotDecreasing.fix;
        finding.evidence.push_back(std::move(evidence));
        finding.plots = {{finding.tensor, "value"}};
        fire(sink, std::move(finding));
    }

  private:
    // How many steps of all modes came before this one, as far as is known: those up to the last recorded one
    // of each mode. In a run of the original, `sequence` is that number itself; in one of ours it counts the
    // recorded steps, which are no more. Both are never too large.
    [[nodiscard]] std::uint64_t global_step(const model::StepView& step) const {
        const std::uint64_t all = std::accumulate(taken_.begin(), taken_.end(), std::uint64_t{0});
        return std::max(step.record->sequence, all - 1);
    }

    static std::vector<std::string> collections(const Parameters& parameters) {
        std::vector<std::string> names = parameters.texts("collection_names");
        if (parameters.flag("use_losses_collection")) names.emplace_back("losses");
        return names;
    }

    Selection selection_;
    std::uint64_t steps_;
    double least_fall_, most_rise_;
    std::string mode_;
    bool evaluates_ = false;
    std::array<std::uint64_t, model::kModeCount> taken_{};  // steps of each mode
    std::map<model::TensorId, Series> series_;
};

std::vector<model::Requirement> compatible_loss_not_decreasing_needs(const Parameters& parameters) {
    return selection_requirements(parameters, kCompatibleLossNotDecreasing.name, model::What::kStatistics);
}

}  // namespace

RuleEntry loss_not_decreasing() {
    return {
        &kCompatibleLossNotDecreasing, &compatible_loss_not_decreasing_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LossNotDecreasing>(p); }};
}

}  // namespace traindbg::rules::compatible
