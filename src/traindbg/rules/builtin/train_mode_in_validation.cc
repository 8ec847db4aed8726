// The model is in training mode when it is evaluated.

#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kTrainModeInValidation = {
    .name = "train_mode_in_validation",
    .title = "Training mode in validation",
    .summary =
        "The model is evaluated in training mode: dropout is on, and batch norm uses, and learns from, the "
        "validation batches.",
    .when =
        "The model, a copy of it or one of its modules is evaluated while its dropout or batch norm acts "
        "as in training. Severity: warning.\n"
        "- With a loss: between two training steps, a loss function is called without gradients while "
        "`training` of the whole model is True and it holds dropout or batch norm in training mode.\n"
        "- This must last for `batches` batches or more, or for one batch of a size that no batch of the "
        "training had.\n"
        "- Without a loss: such a model is given rows that the training never had, before one step of ten "
        "at most, while the training's own rows come again.\n"
        "- Reported at the second such evaluation in a row, at a single one of five times `batches` "
        "batches, or at the end of the run, such as a test after the last step.\n"
        "- Rows given three times or more in one evaluation are draws of dropout, which are meant. At the "
        "end, a model that was asked in training mode every few steps, or that is given other batches in "
        "evaluation mode, is not reported.\n"
        "- Copy of the model, such as an average of its weights: the same where the copy is evaluated "
        "instead. It is of the model's class, its parameters have the same names and shapes, and they were "
        "never given gradients.\n"
        "- Network in several modules: in two evaluations, ten steps or more apart, one module is called "
        "without gradients in training mode. Another module, which goes from mode to mode, is in "
        "evaluation mode.\n"
        "- Dropout that ignores the mode: in two evaluations, or in the only one, all modules are in "
        "evaluation mode, but code of the model drops values by a function that does not know the mode.\n"
        "- Such functions are F.dropout without `training`, or attention with a dropout_p above 0.",
    .why =
        "The numbers that decide about checkpoints and early stopping are wrong: too high and noisy with "
        "dropout, dependent on the batch with batch norm, whose running statistics take in validation data.",
    .fix =
        "model.eval() before the evaluation and model.train() after it; F.dropout(x, p, "
        "training=self.training), or nn.Dropout.",
    .healthy =
        "The loss of a training batch, computed once more for the log. A generator or a teacher that runs "
        "without gradients: no loss is computed of it. Several optimizers. Dropout that alone is switched on "
        "to sample a model in evaluation mode, and F.dropout with `training=True`, which is meant; a model "
        "that is given the same input several times in an evaluation, and a part that is called several "
        "times for one call of the others. Recomputing batch norm's statistics: no loss.",
    .cost =
        "A look at the modules' flags at the first 50 evaluated batches and then every 10th. The functions "
        "that the first two batches of the first four evaluations call are listened to. Copies of the model "
        "are looked for after 25 steps, and up to three times where evaluations do not call the model; where "
        "one is in training mode, it is heard which modules are called while gradients are off.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method); transformers issue 33844",
    .severity = model::Severity::kWarning,
    .parameters = {{"batches", "batches", 2, 1, 1000, "batches in a row that make an evaluation"}},
};

class TrainModeInValidation final : public Rule {
  public:
    explicit TrainModeInValidation(const Parameters& parameters)
        : batches_(static_cast<std::uint64_t>(parameters.at("batches"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() == model::Mode::kTrain) {
            game_.observe(step);
            if (loop_fact(step, "trainings")) {
                unscored_ = unscored_copy_ = 0;
                has_proper_unscored_ = false;
                last_unscored_ = step.step();
            }
            if (!loop_fact(step, "after_last_step")) {
                train_step_ = step.step();
                is_proper_now_ = false;
            }
            has_loss_ = !own_.proper && (own_.length >= batches_ || own_.other);
            if (own_.length > 0) end_evaluation(own_, sink);
            if (copy_.length > 0) end_evaluation(copy_, sink);
            on_unscored(step, sink);
            on_unsaid(step, sink);
            return;
        }
        if (step.mode() != model::Mode::kEval) return;
        if (const auto copied = loop_fact(step, "copy_modules_in_train"))
            on_scored(step, *copied, copy_, sink);
        else if (const auto modules = loop_fact(step, "modules_in_train"))
            on_scored(step, *modules, own_, sink);
    }
    void on_end(FindingSink& sink) override {
        for (const Scored* const last : {&own_, &copy_})
            // A single batch of another size may be the last one of an epoch, where every batch is evaluated.
            if (last->length > 0 && !last->proper &&
                (last->length >= batches_ || (last->other && !last->alike)))
                fire(*last, sink);
        if (unsaid_ == 1 && heard_ == 1 && !is_sampled_) fire_unsaid(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no evaluation of a model with dropout or batch norm was seen, without gradients";
    }

  private:
    // Evaluations of which a loss was computed.
    struct Scored {
        std::uint64_t length = 0;  // batches of the evaluation under way
        bool other = false;        // one was of another size than those of the training
        bool proper = false;       // one was in evaluation mode
        bool alike = false;        // an evaluation was no evaluation, or a proper one
        std::uint64_t shown = 0;   // evaluations that show it, in a row
    };

    // A batch, of a model in which so many modules act as in training.
    void on_scored(const model::StepView& step, const LoopFact& modules, Scored& scored, FindingSink& sink) {
        ++judged_;
        if (modules.value <= 0) {
            scored.proper = is_proper_now_ = true;
            return;
        }
        ++scored.length;
        if (const auto other = loop_fact(step, "evaluated_other_samples"); other && other->value > 0)
            scored.other = true;
        modules_ = modules.value;
        place_ = modules.place;
        tensor_ = modules.tensor;
        if (scored.length >= 5 * batches_) fire(scored, sink);
    }
    // Batches of other data than the training's, of which no loss was computed, but an accuracy perhaps. That
    // they are other data tells them from statistics of batch norm that are computed anew, and that they come
    // now and then, from labels that a model makes for its own training.
    void on_unscored(const model::StepView& step, FindingSink& sink) {
        const auto number = [&](std::string_view fact) {
            const std::optional<LoopFact> found = loop_fact(step, fact);
            return found ? found->value : 0;
        };
        if (number("rows_unscored_batches") > 0) {
            unscored_ = 0;
            has_proper_unscored_ = true;
        }
        const double rows = number("rows_in_train_mode");
        const std::optional<LoopFact> copied = loop_fact(step, "copy_modules_called_in_train");
        const std::optional<LoopFact> modules = copied ? copied : loop_fact(step, "modules_called_in_train");
        if (modules) {
            modules_ = modules->value;
            place_ = modules->place;
            tensor_ = modules->tensor;
        }
        // Older recordings tell of every such evaluation that there are modules, but which ones at some steps
        // only.
        if (modules_ > 0 && number("others_in_eval") > 0) {
            ++judged_;
            const model::StepIndex before = std::exchange(last_forgotten_, step.step());
            // Labels that a model makes for its own training, or the plays that it learns from, are no
            // evaluation.
            // Later ones are looked at now and then only.
            if (forgotten_ > 0 && step.step() - before < kSeldom) ++frequent_;
            if (frequent_ >= kFewFrequent) {
                sink.clear(kForgotten);
            } else if (!has_loss_ && ++forgotten_ >= 2 && frequent_ == 0) {
                fire_forgotten(sink);
            }
            return;
        }
        if (rows <= 0 || !modules) return;
        ++judged_;
        const model::StepIndex since = step.step() - std::exchange(last_unscored_, step.step());
        const double all = number("rows_of_training"), known = number("rows_looked_at");
        const double remembered = all > known ? known / all : 1;
        // Of rows that are another each time it cannot be told whose they are.
        const bool come_again = known > 1.2 * number("rows_known");
        const bool is_other_data =
            come_again && number("rows_in_train_mode_trained") == 0 && rows * remembered >= 8;
        const bool is_seldom = static_cast<double>(since) >= 10 * number("rows_in_train_mode_steps");
        // The same rows several times are draws of dropout, which are meant; twice, for an accuracy and a
        // confusion matrix, they are not.
        const bool is_sampled = number("rows_in_train_mode_again") >= kDraws;
        is_last_ = loop_fact(step, "after_last_step").has_value();
        was_frequent_ = was_frequent_ || (!is_seldom && !is_last_);
        int& shown = copied ? unscored_copy_ : unscored_;
        shown = is_other_data && !is_sampled && (is_seldom || (is_last_ && !was_frequent_)) ? shown + 1 : 0;
        if (is_last_) {
            // Beside batches in evaluation mode, others may be for the statistics of batch norm.
            if (shown < 1 || is_proper_now_ || number("rows_unscored_batches") > 0) return;
        } else if (shown < 2 || (has_proper_unscored_ && !copied)) {
            return;
        }
        fire(copied ? copy_ : own_, sink, static_cast<std::uint64_t>(number("rows_in_train_mode_batches")));
    }
    // After an evaluation in which a function dropped values, as it was not told of the mode.
    void on_unsaid(const model::StepView& step, FindingSink& sink) {
        if (loop_fact(step, "evaluation_is_sampled")) {  // it was meant, all along
            is_sampled_ = true;
            sink.clear(kUnsaid);
        }
        if (is_sampled_) return;
        if (const auto heard = loop_fact(step, "evaluations_heard"))
            heard_ = static_cast<std::uint64_t>(heard->value);
        const std::vector<LoopFact> told = loop_facts(step, "dropout_in_evaluation");
        if (told.empty()) return;
        ++judged_;
        place_ = told.front().place;
        tensor_ = told.front().tensor;
        line_ = told.front().value;
        places_ = told.size();
        if (++unsaid_ >= 2) fire_unsaid(sink);
    }
    void fire_unsaid(FindingSink& sink) const {
        model::Finding finding;
        finding.key = kUnsaid;
        finding.severity = model::Severity::kWarning;
        finding.layer = place_;
        finding.tensor = tensor_;
        finding.places = places_;
        finding.message = base::format(
            "{} drops values in evaluations, too (line {:.0f} of its code; seen {}): the model is in "
            "evaluation mode, but the function is not told so. What is evaluated is worse than it need be "
            "and another each time.",
            place_.empty() ? "The model" : place_, line_,
            unsaid_ == 1 ? std::string("once") : base::format("{} times", unsaid_));
        finding.fix =
            "Tell it: F.dropout(x, p, training=self.training), or dropout_p=p if self.training else 0.0 for "
            "attention. Or use nn.Dropout, which model.eval() reaches.";
        finding.evidence.push_back({"evaluations with dropout", static_cast<double>(unsaid_), "expected", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }
    // One is over: the training goes on.
    void end_evaluation(Scored& scored, FindingSink& sink) {
        const bool shows = !scored.proper && (scored.length >= batches_ || scored.other);
        scored.shown = shows ? scored.shown + 1 : 0;
        if (scored.shown >= 2) fire(scored, sink);
        scored.alike = scored.alike || !shows;
        scored.length = 0;
        scored.other = scored.proper = false;
    }
    // Part of a network in several modules.
    void fire_forgotten(FindingSink& sink) const {
        if (game_.is_on()) return;
        model::Finding finding;
        finding.key = kForgotten;
        finding.severity = model::Severity::kWarning;
        finding.layer = place_;
        finding.tensor = tensor_;
        finding.places = static_cast<std::uint64_t>(modules_);
        finding.message = base::format(
            "{} evaluations, the last before step {}, set other modules to evaluation mode and call this one "
            "in training mode: {:.0f} of its modules (the first is {}) act as in training. What is evaluated "
            "is worse than it need be and another each time, and batch norm learns from the validation data.",
            forgotten_, train_step_, modules_, place_);
        finding.fix =
            "Call eval() on every module of the network, and train() on each after it; or put them into one "
            "nn.ModuleDict.";
        finding.evidence.push_back({"modules in training mode", modules_, "expected", 0});
        finding.plots = {{"loss", "value"}};
        sink.fire(std::move(finding));
    }
    // `unscored`: batches of an evaluation without a loss.
    void fire(const Scored& scored, FindingSink& sink, std::uint64_t unscored = 0) {
        if (game_.is_on() || (scored.proper && !is_last_)) return;
        const bool is_copy = &scored == &copy_;
        model::Finding finding;
        finding.key = is_copy ? "copy" : "mode";
        finding.severity = model::Severity::kWarning;
        finding.layer = place_;
        finding.tensor = tensor_;
        finding.places = static_cast<std::uint64_t>(modules_);
        finding.message = base::format(
            "{} in training mode when it is evaluated, without gradients, {} training step {}: {} {} as "
            "in training. What such evaluations tell is too noisy or too bad, and batch norm learns from the "
            "validation data.",
            is_copy ? "A copy of the model (an average of its weights, say) is" : "The model is",
            is_last_ ? "after the last" : "around", train_step_, counted({modules_, place_, {}}, "module"),
            form(modules_, "acts", "act"));
        finding.fix = is_copy
                          ? "Call eval() on the copy, too, when it is made: model.eval() does not reach it."
                          : "Call model.eval() before the evaluation, and model.train() after it.";
        finding.evidence.push_back({"modules in training mode", modules_, "expected", 0});
        if (unscored > 0)
            finding.evidence.push_back(
                {"batches without a loss, of other rows", static_cast<double>(unscored), "", 0});
        else
            finding.evidence.push_back({"batches in a row", static_cast<double>(scored.length), "limit",
                                        static_cast<double>(batches_)});
        sink.fire(std::move(finding));
    }

    static constexpr const char* kUnsaid = "unsaid";
    static constexpr const char* kForgotten = "forgotten";
    static constexpr model::StepIndex kSeldom = 10;  // steps between two evaluations, at least
    static constexpr int kFewFrequent = 2;
    static constexpr double kDraws = 1.5;  // times that rows come again in an evaluation, at least
    std::uint64_t batches_;
    std::uint64_t judged_ = 0;
    Scored own_, copy_;  // of the model, and of copies that nobody watches
    model::StepIndex last_forgotten_ = 0;
    int frequent_ = 0;
    bool has_loss_ = false;                 // the evaluation before this step
    int forgotten_ = 0;                     // without a loss, which others were set to
    std::uint64_t unsaid_ = 0;              // evaluations in which a function dropped values
    std::uint64_t heard_ = 0;               // those that were listened to
    bool is_sampled_ = false;               // the same input several times: it is meant
    std::uint64_t places_ = 0;              // that did so
    double line_ = 0;                       // of the first one's code
    int unscored_ = 0, unscored_copy_ = 0;  // evaluations without a loss that show it, in a row
    model::StepIndex last_unscored_ = 0;
    bool has_proper_unscored_ = false;
    bool is_proper_now_ = false;  // an evaluation since the last step of the training, with a loss
    bool was_frequent_ = false;   // it is asked without gradients as part of the training
    bool is_last_ = false;        // the training is over
    Game game_;
    model::StepIndex train_step_ = 0;
    double modules_ = 0;
    std::string place_, tensor_;
};

std::vector<model::Requirement> train_mode_in_validation_needs(const Parameters&) {
    std::vector<model::Requirement> all = row_requirements(kTrainModeInValidation.name);
    all.push_back(
        {"losses", model::Mode::kTrain, model::What::kStatistics, {.every = 1}, kTrainModeInValidation.name});
    all.push_back(
        {"losses", model::Mode::kEval, model::What::kStatistics, {.every = 1}, kTrainModeInValidation.name});
    all.push_back(loop_requirement(kTrainModeInValidation.name));
    all.push_back(loop_requirement(kTrainModeInValidation.name, model::Mode::kEval));
    return all;
}

}  // namespace

RuleEntry builtin::train_mode_in_validation() {
    return {&kTrainModeInValidation, &train_mode_in_validation_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<TrainModeInValidation>(p);
            }};
}

}  // namespace traindbg::rules
