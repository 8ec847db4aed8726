// Weights that were kept to go back to them, and are not kept: they are the model's own memory.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/evaluation_loss.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kBestWeightsNotKept = {
    .name = "best_weights_not_kept",
    .title = "Best weights not kept",
    .summary =
        "Weights that were kept to go back to are loaded, or saved, and are what the model holds anyway: "
        "state_dict() was not copied, or what was read was lost. Or the last ones are kept as the best, or "
        "the "
        "worst ones.",
    .when =
        "Weights that were kept with state_dict(), to go back to, are loaded or saved later, but what was "
        "kept is the model's own memory, not a copy. Or the saved model is read and lost, or every "
        "evaluation counts as the best, or the worst.\n"
        "- Loaded (warning): load_state_dict() of a model that is trained is given tensors that are, "
        "parameter by parameter, the model's own memory. state_dict() returned them, or the last state of "
        "the model before them, one or more optimizer steps earlier, and the weights have changed since.\n"
        "- Loaded after other weights (warning): the same, where since then other weights were loaded into "
        "the model, and these are still in it.\n"
        "- Saved or given away (warning): torch.save(), or load_state_dict() of another model, is given "
        "such a state. This is reported at the end of the run, and only where states were kept as an early "
        "stopping keeps its best.\n"
        "- As an early stopping does: the line that took the state had taken several of the model after "
        "the training's first step, then none for at least twice as long as between two of them. Its "
        "states are used after one step only.\n"
        "- Other dicts of the same tensors are recognised, too: dict(state), or {k: v.cpu() ...} on a "
        "CPU.\n"
        "- Steps count only where what PyTorch's optimizers do explains how often the parameters were "
        "written to. With other optimizers, the number of writes must be zero, or a multiple of the number "
        "of steps, which must be four or more.\n"
        "- Read and lost (warning), told at the end: after the last step torch.load() returned a model with "
        "the trained model's parameters and other weights. By the program's text only a parameter of that "
        "function gets it, which was given the trained model, and nothing is done with that name then but to "
        "switch its mode or move it. The trained model's weights stay.\n"
        "- Best value never set (warning), told at the end: by the program's text weights are taken below an "
        "`if` that compares a variable with a best value, which nothing sets in the loop. A function that "
        "sets its own parameter of that name sets nothing for its caller.\n"
        "- Best value, shown by what was kept: weights were taken there three times or more, and at one of "
        "them the variable was worse than at one before. The best value is infinite at first, or is called "
        "best, lowest or the like: a fixed limit is none.\n"
        "- Best value, not judged: weights that are all kept, in a list or each under a name with a part "
        "that "
        "a loop sets, as the epoch's number; a name that a star import may have brought.\n"
        "- Worst weights, told at the end: after the last step load_state_dict() gave all that is "
        "trained the weights that state_dict() was asked for last, some steps earlier. The evaluation of "
        "that "
        "time, or the first one after it, has the highest loss of all. Five evaluations or more came after "
        "it, each with at least a fifth less, and the training has come far.\n"
        "- Worst weights are a warning only where one evaluation or more with a loss came before the weights "
        "were taken, in a loop and below an `if` that compares values, as which one is better. Otherwise, or "
        "where the text cannot be read, it is a note: what was before an adaptation is put back on purpose.\n"
        "- Values are compared only to see whether weights that are loaded are other ones.",
    .why =
        "state_dict() does not copy: its tensors are the parameters, and every step writes to them. What is "
        "loaded as the best weights is what the model has anyway, the last ones, and nothing fails. Early "
        "stopping then returns the overfitted model, a search for the learning rate leaves the weights that "
        "it has spoilt, and an inner loop of meta-learning never goes back to where it began.",
    .fix =
        "Keep copies: copy.deepcopy(model.state_dict()), or {k: v.clone() for k, v in "
        "model.state_dict().items()}; or write them to a file when they are the best. Of a model that is "
        "read from a file, give the trained one the weights: assigning it to a parameter changes nothing for "
        "the caller. Nor does assigning the best value to one: return it, and assign it in the loop.",
    .healthy =
        "A state that was copied, or is loaded and saved before the next step; weights of another model, as "
        "of a teacher, or a target network that is given the weights of the day again and again; a state "
        "that is taken once, or in each epoch, and saved later, to show the weights of the day; a state "
        "whose tensors are written to, which writes to the model, before it is loaded; a model that is not "
        "trained.",
    .cost =
        "Nothing at ordinary steps: calls that take, load and save weights are listened to, and weak "
        "references to four tensors of each state are kept. Where other weights than the model's are loaded "
        "after a step, up to 65,536 values of eight parameters are copied, to compare. Where torch.load() "
        "returns a model in a function that has the trained one, that function's text is read, and that of "
        "lines that take weights.",
    .original = "",
    .source =
        "PyTorch tutorials, Saving and loading models: best_model_state = model.state_dict() is a reference",
    .severity = model::Severity::kWarning,
    .parameters = {},
};

class BestWeightsNotKept final : public Rule {
  public:
    explicit BestWeightsNotKept(const Parameters&) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (loop_fact(step, "trainings") || loop_fact(step, "weights_of_start")) evaluations_.clear();
        const bool is_over = evaluation_.observe(step);
        loss_.observe(step);
        if (is_over && evaluations_.size() < kMostKnown)
            evaluations_.push_back({step.step(), evaluation_.values().back()});  // of as many batches each
        if (step.mode() != model::Mode::kTrain || step.record->scalars.empty()) return;
        ++judged_;
        if (const std::optional<LoopFact> loaded = loop_fact(step, "live_state_loaded")) {
            ++loaded_;
            fire_loaded(*loaded, step.step(), sink);
        }
        if (const std::optional<LoopFact> swapped = loop_fact(step, "live_state_swapped")) {
            ++swapped_;
            fire_swapped(*swapped, step.step(), sink);
        }
        if (const std::optional<LoopFact> lost = loop_fact(step, "read_model_lost"))
            fire_lost(*lost, step.step(), sink);
        const std::optional<LoopFact> unset = loop_fact(step, "best_never_set"),
                                      worse = loop_fact(step, "best_never_set_worse");
        if (unset && worse) fire_unset(*unset, worse->value, sink);
        const std::optional<LoopFact> since = loop_fact(step, "weights_put_back_since"),
                                      later = loop_fact(step, "weights_put_back_later");
        if (since && later && later->value == 0 && loss_.has_learned_much())
            judge_put_back(since->value, loop_fact(step, "weights_put_back_chosen").has_value(), step.step(),
                           sink);
        // A state that was loaded, too, is told of already.
        if (loaded_ + swapped_ > 0) return;
        if (const std::optional<LoopFact> saved = loop_fact(step, "live_state_saved")) {
            fire_saved(*saved, sink);
        } else if (const std::optional<LoopFact> given = loop_fact(step, "live_state_given")) {
            fire_given(*given, sink);
        }
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "nothing was told of a training step";
    }

  private:
    void fire_loaded(const LoopFact& told, model::StepIndex now, FindingSink& sink) const {
        const auto since = static_cast<model::StepIndex>(told.value);
        const std::string taken =
            since < now ? base::format("after step {}", now - since) : std::string("before the first step");
        std::string message = base::format(
            "load_state_dict() after step {} was given what state_dict() returned {} {} earlier, {}{}. Those "
            "tensors are the model's own memory: loading them changes nothing, and the model goes on with "
            "the weights of step {}.",
            now, since, form(told.value, "step", "steps"), taken, in_line(told), now);
        if (loaded_ > 1) message += base::format(" That was so {} times.", loaded_);
        fire("loaded", std::move(message), told, sink);
    }
    // A state whose weights nobody has stepped since: `told.value` may be 0.
    void fire_swapped(const LoopFact& told, model::StepIndex now, FindingSink& sink) const {
        const std::string earlier =
            told.value > 0 ? base::format(" {:.0f} {} earlier", told.value, form(told.value, "step", "steps"))
                           : std::string();
        std::string message = base::format(
            "load_state_dict() after step {} was given what state_dict() had returned{}{} before other "
            "weights were loaded. Those tensors are the model's own memory, which the other weights have "
            "overwritten: loading them changes nothing, and the model stays with the other weights.",
            now, earlier, in_line(told));
        if (swapped_ > 1) message += base::format(" That was so {} times.", swapped_);
        fire("swapped", std::move(message), told, sink);
    }
    static void fire_lost(const LoopFact& told, model::StepIndex now, FindingSink& sink) {
        model::Finding finding;
        finding.key = "lost";
        finding.severity = model::Severity::kWarning;
        finding.message = base::format(
            "After step {} torch.load() read a model with other weights{}, but only the function's own name "
            "for the trained model got it, which ends with the function: the model that was trained goes on "
            "with the weights of step {}.",
            now, in_line(told), now);
        finding.fix =
            "Give the trained model the weights that were read, model.load_state_dict(best.state_dict()), or "
            "return the model that was read and go on with that one.";
        sink.fire(std::move(finding));
    }
    static void fire_unset(const LoopFact& told, double worse, FindingSink& sink) {
        model::Finding finding;
        finding.key = "unset";
        finding.severity = model::Severity::kWarning;
        finding.message = base::format(
            "Weights were kept {:.0f} times because a value was better than the best one{}, {:.0f} of these "
            "times though it was worse than before: nothing in the loop sets the best value, so that the "
            "last weights are kept, not the best ones.",
            told.value, in_line(told), worse);
        finding.fix =
            "Set the best value in the loop whenever weights are kept. A function cannot do so by assigning "
            "its parameter: let it return the value, best = save_if_better(model, loss, best).";
        finding.evidence.push_back({"times that weights were kept for a worse value", worse, "limit", 0});
        sink.fire(std::move(finding));
    }
    static void fire_given(const LoopFact& told, FindingSink& sink) {
        fire("given",
             base::format("load_state_dict() of another model was given what state_dict() returned {:.0f} {} "
                          "earlier{}. Those tensors are the memory of the model that is trained: what the "
                          "other one got are not the weights of that time, but those of when they were "
                          "loaded.",
                          told.value, form(told.value, "step", "steps"), in_line(told)),
             told, sink);
    }
    static void fire_saved(const LoopFact& told, FindingSink& sink) {
        fire("saved",
             base::format("torch.save() was given what state_dict() returned {:.0f} {} earlier{}. Those "
                          "tensors are the model's own memory: what the file holds are not the weights of "
                          "that time, but those that the model had when it was saved.",
                          told.value, form(told.value, "step", "steps"), in_line(told)),
             told, sink);
    }
    static void fire(std::string key, std::string message, const LoopFact& told, FindingSink& sink) {
        model::Finding finding;
        finding.key = std::move(key);
        finding.severity = model::Severity::kWarning;
        finding.message = std::move(message);
        finding.fix =
            "Keep a copy: copy.deepcopy(model.state_dict()) where the weights are taken, or {k: v.clone() "
            "for k, v in model.state_dict().items()}.";
        finding.evidence.push_back({"steps since the weights were taken", told.value, "limit", 0});
        sink.fire(std::move(finding));
    }
    // What the weights were worth tells the evaluation that is nearest to them: losses are lower when better,
    // whatever number the program watched.
    void judge_put_back(double since, bool is_chosen, model::StepIndex now, FindingSink& sink) const {
        const double taken = static_cast<double>(now) - since;
        if (since <= 0 || taken < 0 || evaluations_.size() <= kFewestLater) return;
        const auto distance = [taken](const Evaluated& each) {
            return std::abs(static_cast<double>(each.step) - taken);
        };
        std::size_t near = 0;
        double between = since;  // steps
        for (std::size_t i = 0; i < evaluations_.size(); ++i) {
            if (distance(evaluations_[i]) < distance(evaluations_[near])) near = i;
            if (i > 0)
                between =
                    std::min(between, static_cast<double>(evaluations_[i].step - evaluations_[i - 1].step));
        }
        const Evaluated& own = evaluations_[near];
        if (distance(own) > between || evaluations_.size() - near <= kFewestLater || own.loss <= 0) return;
        double best = own.loss;
        for (std::size_t i = 0; i < evaluations_.size(); ++i) {
            const double loss = evaluations_[i].loss;
            if (loss > (i > near ? kClearlyLess : 1) * own.loss) return;
            best = std::min(best, loss);
        }
        model::Finding finding;
        finding.key = "worst";
        // What was before all evaluations was not chosen by one.
        const bool is_meant_best = is_chosen && static_cast<double>(evaluations_.front().step) <= taken;
        finding.severity = is_meant_best ? model::Severity::kWarning : model::Severity::kInfo;
        finding.first_step = static_cast<model::StepIndex>(taken);
        finding.message = base::format(
            "After step {} the model was given the weights of step {:.0f}{}. They are the worst of all: the "
            "evaluation loss was {} {} step {}, lower at all of the {} evaluations after that, and {} at "
            "best.",
            now, taken, is_meant_best ? " as those to keep" : "", base::human_number(own.loss),
            static_cast<double>(own.step) > taken ? "still, after" : "after", own.step,
            evaluations_.size() - 1 - near, base::human_number(best));
        finding.fix =
            "See which values count as better: mode \"min\" is right for a loss, \"max\" for an accuracy or "
            "a score; the best value begins at infinity for the one, and at minus infinity for the other.";
        if (!is_meant_best) finding.fix = "Nothing, if weights of before were to be put back. " + finding.fix;
        finding.evidence.push_back({"evaluation loss of the weights", own.loss, "at best", best});
        finding.plots = {{evaluation_.function(), "value"}};
        sink.fire(std::move(finding));
    }

    // " (train.py:42)", or nothing.
    [[nodiscard]] static std::string in_line(const LoopFact& told) {
        return told.place.empty() ? std::string() : base::format(" ({})", told.place);
    }

    // An evaluation, and the training's steps by then.
    struct Evaluated {
        model::StepIndex step = 0;
        double loss = 0;
    };
    static constexpr std::size_t kMostKnown = 4096;
    static constexpr std::size_t kFewestLater = 5;  // evaluations after the weights were kept
    static constexpr double kClearlyLess = 0.8;     // of the loss of those weights

    std::uint64_t judged_ = 0, loaded_ = 0, swapped_ = 0;
    TrainingLoss loss_;
    EvaluationLoss evaluation_;
    std::vector<Evaluated> evaluations_;
};

std::vector<model::Requirement> best_weights_not_kept_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kBestWeightsNotKept.name);
    all.push_back(loop_requirement(kBestWeightsNotKept.name));
    all.push_back(evaluation_loss_requirement(kBestWeightsNotKept.name));
    return all;
}

}  // namespace

RuleEntry builtin::best_weights_not_kept() {
    return {
        &kBestWeightsNotKept, &best_weights_not_kept_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<BestWeightsNotKept>(p); }};
}

}  // namespace traindbg::rules
