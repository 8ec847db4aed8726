// A schedule that takes the learning rate away long before the training is over.

#include <algorithm>
#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kScheduleCollapsed = {
    .name = "schedule_collapsed",
    .title = "Schedule collapsed",
    .summary =
        "The learning rate fell to almost nothing long before the end, and the loss stands still since.",
    .when =
        "The largest learning rate of the optimizer's groups is less than 1/`fall` of the highest that it "
        "was, for at least `patience` steps, and for longer than it was above (when the run is over: for "
        "more than `share` of its steps). A warning where the loss has not fallen by nine tenths since the "
        "start, or the rate has fallen to less than a millionth of its peak; and the training had not set "
        "off in fewer than 500 steps with a rate, or the loss was still falling while the rate was above a "
        "hundredth of its peak (Mann-Kendall z < -2.5; once nine tenths are learned, only the later half's "
        "trend counts). Else a note (info).",
    .why = "With no learning rate every further step is computed in vain.",
    .fix =
        "Call scheduler.step() once per epoch if its settings count epochs; make T_max, total_steps or "
        "step_size fit the number of calls; or choose a weaker decay.",
    .healthy =
        "Cosine, linear and one-cycle schedules that end near 0 when the training does; warm restarts, which "
        "come back; a schedule that reacts to a loss that stands still (ReduceLROnPlateau); a rate that "
        "falls when the loss has.",
    .cost = "One number where the learning rate changes; the loss.",
    .original = "",
    .source = "PyTorch documentation, torch.optim.lr_scheduler.ExponentialLR: decays every epoch",
    .severity = model::Severity::kWarning,
    .parameters = {{"fall", "times", 1000, 10, 1e12, "fall of the rate from its peak"},
                   {"patience", "steps", 30, 5, 1e9, "steps for which it lasts"},
                   {"share", "share", 0.25, 0.05, 1, "of a run that is over"}},
};

class ScheduleCollapsed final : public Rule {
  public:
    explicit ScheduleCollapsed(const Parameters& parameters)
        : fall_(parameters.at("fall")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))),
          share_(parameters.at("share")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        rates_.observe(step);
        const bool has_loss = loss_.observe(step);
        if (!rates_.is_known() || !(rates_.peak() > 0)) return;
        ++judged_;
        const double now = rates_.now();
        if (now >= rates_.peak() / fall_) {
            ++above_;
            below_ = 0;
            if (has_loss && now >= rates_.peak() / 100) {
                alive_.add(loss_.recent().values().back());
                lively_level_ = loss_.level();
            }
            if (firing_ != nullptr) sink.clear(firing_);
            firing_ = nullptr;
            return;
        }
        if (below_ == 0) since_ = step.step();
        ++below_;
        last_ = step.step();
        if (below_ >= patience_ && below_ > above_) fire(sink);
    }
    void on_end(FindingSink& sink) override {
        const auto steps = static_cast<double>(above_ + below_);
        if (firing_ == nullptr && below_ >= patience_ && static_cast<double>(below_) > share_ * steps)
            fire(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no learning rate was seen"; }

  private:
    static constexpr std::uint64_t kTooFew = 500;

    // Whether it was the rate that ended the progress.
    [[nodiscard]] bool took_progress() const {
        if (loss_.count() == 0 || loss_.is_game() || !loss_.is_known_function()) return false;
        // No schedule is meant to get to so little and to stay there.
        const bool is_nothing = rates_.now() < 1e-6 * rates_.peak();
        if (!is_nothing && loss_.start() > 0 && loss_.level() < 0.1 * loss_.start()) return false;
        const auto means = alive_.means();
        // Too few steps to have got anywhere.
        if (means.size() < 8 || (!loss_.has_learned() && above_ < kTooFew)) return true;
        const bool is_learned = loss_.start() > 0 && loss_.level() < 0.1 * loss_.start();
        return trend_z(means.last(means.size() / 2)) < -2.5 || (!is_learned && trend_z(means) < -2.5);
    }

    void fire(FindingSink& sink) {
        if (firing_ == nullptr) firing_ = took_progress() ? "rate" : "rate_note";
        const bool real = std::string_view(firing_) == "rate";
        model::Finding finding;
        finding.key = firing_;
        finding.severity = real ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = since_;
        finding.tensor = "loop/learning_rate";
        finding.message = base::format(
            "The learning rate fell from {} (step {}) to {}, below 1/{} of that from step {} on: {} steps "
            "with a rate, {} almost without.",
            human_number(rates_.peak()), rates_.peak_step(), human_number(rates_.now()), human_number(fall_),
            since_, above_, below_);
        if (loss_.count() > 0)
            finding.message += base::format(" The loss was {} then and is {} now.",
                                            human_number(lively_level_), human_number(loss_.level()));
        finding.fix =
            "If scheduler.step() is called at every batch and its settings count epochs, call it once per "
            "epoch; else make T_max, total_steps or step_size as long as the training, or the decay weaker.";
        finding.evidence.push_back({"learning rate", rates_.now(), "peak", rates_.peak()});
        finding.evidence.push_back({"steps almost without a rate", static_cast<double>(below_), "with one",
                                    static_cast<double>(above_)});
        if (loss_.count() > 0)
            finding.evidence.push_back({"loss", loss_.level(), "when the rate fell", lively_level_});
        finding.plots = {{"loop/learning_rate", "value"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    double fall_;
    std::uint64_t patience_;
    double share_;
    std::uint64_t judged_ = 0, above_ = 0, below_ = 0;
    model::StepIndex since_ = 0, last_ = 0;
    const char* firing_ = nullptr;
    double lively_level_ = 0;
    Blocks alive_;  // the loss while there was a rate
    LearningRates rates_;
    TrainingLoss loss_;
};

std::vector<model::Requirement> schedule_collapsed_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kScheduleCollapsed.name);
    all.push_back(rate_requirement(kScheduleCollapsed.name));
    return all;
}

}  // namespace

RuleEntry builtin::schedule_collapsed() {
    return {&kScheduleCollapsed, &schedule_collapsed_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<ScheduleCollapsed>(p);
            }};
}

}  // namespace traindbg::rules
