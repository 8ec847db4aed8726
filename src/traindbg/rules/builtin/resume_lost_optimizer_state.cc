// A training that goes on from a checkpoint with an optimizer that begins anew.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kResumeLostOptimizerState = {
    .name = "resume_lost_optimizer_state",
    .title = "Optimizer state lost on resuming",
    .summary = "A training goes on with weights that were loaded, and its optimizer begins anew.",
    .when =
        "An optimizer starts without its state on weights that were loaded, or is made anew again and "
        "again, while the training itself goes on.\n"
        "- State lost (warning): before its first step the optimizer has no state, and was given none by "
        "load_state_dict(). It is of a kind that keeps one (not SGD without momentum). All of its "
        "parameters were given weights by load_state_dict().\n"
        "- There was a state (also needed): one of just such an optimizer was read by torch.load() or "
        "taken by state_dict() in this process, or an optimizer like it trained here before.\n"
        "- Just such an optimizer: as many parameters, the same settings, and the same learning rate "
        "before any schedule. The rate may also go on where a schedule that is written out had left it.\n"
        "- The loss goes on (also needed): where a training was seen before in this process, the loss must "
        "go on where it had been, at most a quarter of the way back to its start. That training must be "
        "the only one before, unless the one just before was such a resumption.\n"
        "- Exception: what the loss does is not asked where an optimizer made just like it, for the same "
        "parameters, was given a state and then made no step.\n"
        "- When: judged after `patience` steps.\n"
        "- Made anew (warning): without any loading, an optimizer of the same kind and settings takes the "
        "place of another for the same parameters, twice or more. Each time the loss goes on where it was, "
        "so the weights did not begin anew. Before the second one began, nothing but the steps of the "
        "first wrote to the weights.",
    .why =
        "Momentum and the averages of Adam are gone. The first steps of Adam are full ones whatever the "
        "gradient's size, and a schedule that begins again brings back a rate that is long over: the loss "
        "jumps, and the resumed training is not the one that was stopped.",
    .fix =
        "Save and load all three: model.load_state_dict(), optimizer.load_state_dict() and "
        "scheduler.load_state_dict(), after the optimizer was made and before its first step.",
    .healthy =
        "Fine-tuning: another learning rate, a new head, a checkpoint of the model alone. Folds and rounds "
        "that begin again from the same weights: their loss is back at its start. Weights that are written "
        "between two optimizers, as by a meta-update or an average over clients. Plain SGD, which keeps "
        "nothing.",
    .cost =
        "Nothing at ordinary steps: calls that load and save are listened to. Once an optimizer was made "
        "anew: up to 64 elements of four parameters at each step until the next one is, at most 5000 steps.",
    .original = "",
    .source = "PyTorch tutorials, Saving and loading a general checkpoint: the state of the optimizer",
    .severity = model::Severity::kWarning,
    .parameters = {{"patience", "steps", 20, 1, 1e9, "steps after the resumption before it judges"}},
};

class ResumeLostOptimizerState final : public Rule {
  public:
    explicit ResumeLostOptimizerState(const Parameters& parameters)
        : patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const std::optional<LoopFact> lost = loop_fact(step, "optimizer_state_lost");
        if (const std::optional<LoopFact> trainings = loop_fact(step, "trainings")) {
            trainings_ = trainings->value;
            if (!lost) lost_ = 0;  // yet another training
            const std::optional<LoopFact> anew = loop_fact(step, "optimizer_made_anew");
            // What was loaded is a resumption.
            if (anew && !(lost && lost->value > 0)) {
                begin_again(step, anew->value);
            } else {
                if (again_ > 0) sink.clear(kAgain);
                again_ = went_on_ = 0;
            }
        }
        if (lost) begin(step, lost->value, sink);
        if (loss_.observe(step)) {
            ++judged_;
            if (lost_ > 0) top_ = std::max(top_, loss_.recent().values().back());
        }
        if (again_ > 0) judge_again(step, sink);
        if (lost_ > 0 && ++since_ >= patience_) judge(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no training step was seen"; }

  private:
    static constexpr const char* kKey = "state";
    static constexpr const char* kAgain = "made_anew";
    static constexpr int kAfter = 5;  // losses
    // Of `optimizer_state_lost`: another optimizer for the same parameters had the state, and never stepped.
    static constexpr double kGivenToAnother = 3;

    void begin(const model::StepView& step, double lost, FindingSink& sink) {
        lost_ = lost;
        since_ = 0;
        top_ = 0;
        first_step_ = step.step();
        is_over_ = false;
        before_.reset();
        if (loss_.count() > 0) before_ = loss_;
        if (lost < 2) clear(sink);
    }

    // Another optimizer for the same parameters, made just as the one before: an optimizer per epoch.
    void begin_again(const model::StepView& step, double times) {
        // `loss_` begins anew with this step.
        if (again_ == 0) {
            again_since_ = step.step();
            start_ = loss_.count() > 0 ? loss_.start() : 0;
        }
        again_ = times;
        before_again_ = loss_.count() > 0 ? loss_.level() : 0;
        noise_ = loss_.count() > 0 ? loss_.noise() : 0;
        after_ = 0;
        after_sum_ = 0;
    }
    // The loss has to go on where it had been: else somebody set the weights back, too.
    void judge_again(const model::StepView& step, FindingSink& sink) {
        if (after_ >= kAfter || loss_.count() == 0) return;
        after_sum_ += loss_.recent().values().back();
        if (++after_ < kAfter) return;
        const double learned = start_ - before_again_;
        const bool goes_on = learned > 0.1 * std::abs(start_) &&
                             after_sum_ / kAfter < before_again_ + 0.5 * learned + 3 * noise_;
        went_on_ = goes_on ? went_on_ + 1 : 0;
        if (went_on_ < 2) return;
        const std::string type =
            step.meta->optimizers.empty() ? std::string("optimizer") : step.meta->optimizers.front().type;
        model::Finding finding;
        finding.key = kAgain;
        finding.first_step = again_since_;
        finding.message = base::format(
            "The {} is made anew again and again, {:.0f} times since step {}, for the same parameters and "
            "with the same settings, while the weights stay: each time its momentum and averages are lost.",
            type, again_, again_since_);
        finding.fix = "Make the optimizer once, before the loop over epochs.";
        finding.evidence.push_back({"times made anew", again_, "limit", 2});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    // The same task: the loss is about where it was, and not at its start again.
    [[nodiscard]] bool goes_on() const {
        if (lost_ >= kGivenToAnother) return true;
        if (!before_) return lost_ >= 2;
        // Once more: not back at the start of them all.
        if (is_firing_) return first_start_ <= 0 || loss_.count() == 0 || loss_.first() < 0.9 * first_start_;
        if (trainings_ > 2 || before_->count() < 20 || loss_.count() == 0) return false;
        const double learned = before_->start() - before_->level();
        if (learned < 0.1 * before_->start()) return false;
        return loss_.first() <= before_->level() + 0.25 * learned + 3 * before_->noise();
    }

    void judge(const model::StepView& step, FindingSink& sink) {
        if (is_over_) return;
        if (!goes_on()) {
            is_over_ = true;
            clear(sink);
            return;
        }
        const std::string type =
            step.meta->optimizers.empty() ? std::string("The optimizer") : step.meta->optimizers.front().type;
        model::Finding finding;
        finding.key = kKey;
        finding.first_step = first_step_;
        finding.message = base::format(
            "{} begins anew at step {} on weights that were loaded: load_state_dict() was not called on it, "
            "though {}.",
            type, first_step_,
            lost_ >= kGivenToAnother ? "it was called on another one, made just like it for the same "
                                       "parameters, which has made no step since"
            : lost_ >= 2             ? "a state of just such an optimizer was saved or read before"
                                     : "one with the same settings trained these weights");
        if (before_) {
            finding.message += base::format(" The loss was {} before; the first {} losses after it reach {}.",
                                            human_number(before_->level()), since_, human_number(top_));
            finding.evidence.push_back({"highest loss after resuming", top_, "before", before_->level()});
        }
        finding.fix =
            lost_ >= kGivenToAnother
                ? "Make the optimizer once, and call its load_state_dict() after that."
                : "Call optimizer.load_state_dict(checkpoint[\"optimizer\"]) after the model's, before the "
                  "first step; save and load the schedule's state in the same way.";
        finding.evidence.push_back({"state of the optimizer at its first step", 0, "expected", 1});
        if (!loss_.tensor().empty()) finding.plots = {{loss_.tensor(), "value"}};
        finding.plots.emplace_back("loop/learning_rate", "value");
        sink.fire(std::move(finding));
        if (!is_firing_ && before_) first_start_ = before_->start();
        is_firing_ = is_over_ = true;
    }
    void clear(FindingSink& sink) {
        if (is_firing_) sink.clear(kKey);
        is_firing_ = false;
    }

    std::uint64_t patience_;
    std::uint64_t judged_ = 0, since_ = 0;
    double lost_ = 0, trainings_ = 1, top_ = 0;
    double first_start_ = 0;  // the loss with which the training began of which a state was lost first
    model::StepIndex first_step_ = 0;
    bool is_over_ = false, is_firing_ = false;
    double again_ = 0;  // times that the optimizer was made anew
    int went_on_ = 0, after_ = 0;
    double start_ = 0, before_again_ = 0, noise_ = 0, after_sum_ = 0;  // the loss
    model::StepIndex again_since_ = 0;
    TrainingLoss loss_;
    std::optional<TrainingLoss> before_;
};

std::vector<model::Requirement> resume_lost_optimizer_state_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kResumeLostOptimizerState.name);
    all.push_back(loop_requirement(kResumeLostOptimizerState.name));
    return all;
}

}  // namespace

RuleEntry builtin::resume_lost_optimizer_state() {
    // A training may be resumed by another model object.
    return {.info = &kResumeLostOptimizerState,
            .needs = &resume_lost_optimizer_state_needs,
            .make = [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<ResumeLostOptimizerState>(p);
            },
            .outlives_trainings = true};
}

}  // namespace traindbg::rules
