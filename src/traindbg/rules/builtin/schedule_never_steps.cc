// A learning rate schedule that was made and never changes the rate of the training.

#include <optional>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kScheduleNeverSteps = {
    .name = "schedule_never_steps",
    .title = "Schedule never steps",
    .summary =
        "A learning rate schedule was made, and the rate is the same at all steps: scheduler.step() was "
        "never called, or the schedule is that of another optimizer.",
    .when =
        "When the recording ends, after `steps` optimizer steps or more at one learning rate: schedules of "
        "torch.optim.lr_scheduler were made for the optimizer that steps the model, and step() of none of "
        "them was ever called; or that optimizer has no schedule, and there is one that is stepped whose "
        "optimizer has parameters of the model and never steps. A note (info) where a DataLoader was gone "
        "through once: the first epoch may not have come to its end. A training that was interrupted is "
        "judged from its third epoch on.",
    .why =
        "The rate that was planned is not the one that is used: a warm-up never gets to its top, a decay "
        "never begins, and nothing fails.",
    .fix =
        "Call scheduler.step() after optimizer.step(), once per batch or once per epoch, as the schedule's "
        "settings count; make the schedule for the optimizer that steps, after that was made.",
    .healthy =
        "A schedule per epoch in a training of one epoch; one that reacts to a loss (ReduceLROnPlateau) and "
        "never had to; one whose first step is yet far away; parts of SequentialLR and ChainedScheduler; a "
        "rate that the loop sets by itself; another optimizer for a later stage.",
    .cost = "One number at the end; schedules that are made, and each of their steps, are heard.",
    .original = "",
    .source = "PyTorch documentation, torch.optim: how to adjust learning rate",
    .severity = model::Severity::kWarning,
    .parameters = {{"steps", "steps", 100, 1, 1e9, "optimizer steps from which on it is told"}},
};

class ScheduleNeverSteps final : public Rule {
  public:
    explicit ScheduleNeverSteps(const Parameters& parameters) : least_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (loop_fact(step, "trainings")) {
            rate_.reset();
            is_changed_ = false;
            first_ = step.step();
        }
        if (const std::optional<LoopFact> rate = loop_fact(step, "learning_rate")) {
            ++judged_;
            is_changed_ = is_changed_ || (rate_ && *rate_ != rate->value);
            rate_ = rate->value;
        }
        std::optional<LoopFact> told = loop_fact(step, "schedule_not_stepped");
        const bool is_own = told.has_value();
        if (!told) told = loop_fact(step, "schedule_of_another");
        if (!told || !rate_ || is_changed_) return;
        const auto steps = static_cast<double>(step.step() - first_);
        if (steps >= least_) fire(*told, is_own, steps, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no learning rate was seen"; }

  private:
    void fire(const LoopFact& told, bool is_own, double steps, FindingSink& sink) const {
        // What a loader tells; without one, epochs are not known.
        const bool is_first_epoch = told.value == 1;
        model::Finding finding;
        finding.key = is_own ? "step" : "optimizer";
        finding.severity = is_first_epoch ? model::Severity::kInfo : model::Severity::kWarning;
        finding.first_step = first_;
        finding.tensor = "loop/learning_rate";
        const std::string how_long =
            base::format("the learning rate is {} at all {:.0f} steps{}", human_number(*rate_), steps,
                         told.value > 1 ? base::format(" of {:.0f} epochs", told.value) : std::string());
        if (is_own) {
            finding.message = base::format(
                "A schedule ({}) was made for the optimizer, and its step() was never called: {}.",
                told.place, how_long);
            finding.fix =
                "Call scheduler.step() after optimizer.step(): once per batch if the schedule's settings "
                "count batches, once per epoch if they count epochs.";
        } else {
            finding.message = base::format(
                "The schedule ({}) belongs to another optimizer than the one that steps, over the same "
                "parameters, which never steps itself: {}.",
                told.place, how_long);
            finding.fix =
                "Make the schedule for the optimizer whose step() is called, after that optimizer was made "
                "for the last time.";
        }
        finding.evidence.push_back({"steps at one learning rate", steps, "told from", least_});
        finding.plots = {{"loop/learning_rate", "value"}};
        sink.fire(std::move(finding));
    }

    double least_;
    std::uint64_t judged_ = 0;
    std::optional<double> rate_;
    bool is_changed_ = false;
    model::StepIndex first_ = 0;  // of the training under way
};

std::vector<model::Requirement> schedule_never_steps_needs(const Parameters&) {
    return {loop_requirement(kScheduleNeverSteps.name), rate_requirement(kScheduleNeverSteps.name)};
}

}  // namespace

RuleEntry builtin::schedule_never_steps() {
    return {
        &kScheduleNeverSteps, &schedule_never_steps_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<ScheduleNeverSteps>(p); }};
}

}  // namespace traindbg::rules
