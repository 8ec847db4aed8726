// A loop that computes losses, or gradients too, and never lets the optimizer use them.

#include <algorithm>
#include <optional>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kOptimizerNeverSteps = {
    .name = "optimizer_never_steps",
    .title = "Optimizer never steps",
    .summary =
        "The run is over, and optimizer.step() was never called, perhaps not even backward(); or one of "
        "several optimizers never stepped.",
    .when =
        "An optimizer was made for what is trained, and it never stepped, although gradients came.\n"
        "- No step: when the recording ends, an optimizer was made for the model, none has stepped, and "
        "`backward()` ran `passes` times or more (warning).\n"
        "- No gradients: `backward()` never ran, and `passes` losses or more that gradients lead to were "
        "computed in training mode (a note: perhaps nothing was to be trained). In both cases the first "
        "elements of all parameters stayed as they were. 20 passes or losses at least are told.\n"
        "- One of several: when the recording ends, parameters have gradients at every look over 100 steps "
        "or more (over `passes`, where that is more), which another optimizer made. One optimizer of the "
        "process holds them and never stepped. Their values are as an initialiser drew them, and nothing "
        "has changed them since.\n"
        "- One of several is a warning only where the program's text has no call of that optimizer's step() "
        "anywhere, and gives it to nobody else who might: its own name is all that it is used by. The "
        "module that its parameters make up must be of another class than that of every optimizer that "
        "steps. Otherwise it is a note: it may begin later, or never, on purpose.",
    .why = "The weights stay as they are. Nothing is learned, and nothing fails: the loop looks busy.",
    .fix =
        "Call loss.backward() and then optimizer.step() for each batch. If nothing is to be trained: call "
        "model.eval() and use torch.no_grad().",
    .healthy =
        "A loop that changes weights by hand; evaluations of a loaded model in evaluation mode or without "
        "gradients; a training that was interrupted in its first step; a model without an optimizer, of "
        "which gradients are looked at; steps that a GradScaler leaves out (loss_scale_overflow tells of "
        "those). One of several optimizers that steps seldom, or that begins later; the optimizer of weights "
        "that were loaded or trained before. A random network that is to stay as it was drawn (a note).",
    .cost =
        "Before the first step: eight elements of each parameter at every tenth backward pass. After it, of "
        "64 parameters with gradients that are in no optimizer that has stepped: their first elements at "
        "the looks of parameters_not_in_optimizer, and once a search for their optimizers and modules among "
        "the objects of the process, whose names' files are read then.",
    .original = "",
    .source = "PyTorch documentation, torch.optim: taking an optimization step",
    .severity = model::Severity::kWarning,
    .parameters = {{"passes", "passes", 20, 20, 1e9,
                    "backward passes, losses or steps of others, without a step"}},
};

class OptimizerNeverSteps final : public Rule {
  public:
    explicit OptimizerNeverSteps(const Parameters& parameters) : least_(parameters.at("passes")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (!step.record->scalars.empty()) ++judged_;
        look_at_one_of_several(step);
        const std::optional<LoopFact> passes = loop_fact(step, "passes_without_step");
        const std::optional<LoopFact> losses = loop_fact(step, "losses_without_backward");
        const std::optional<LoopFact>& told = passes ? passes : losses;
        if (!told || told->value < least_) return;
        model::Finding finding;
        finding.key = passes ? "step" : "backward";
        finding.severity = passes ? model::Severity::kWarning : model::Severity::kInfo;
        finding.tensor = told->tensor;
        if (passes) {
            finding.message = base::format(
                "backward() ran {:.0f} times and optimizer.step() was never called: the weights are as they "
                "were.",
                told->value);
            finding.fix =
                "Call optimizer.step() after loss.backward(), and optimizer.zero_grad() once per step.";
            finding.evidence.push_back({"backward passes", told->value, "without a step, told from", least_});
        } else {
            finding.message = base::format(
                "{:.0f} losses were computed in training mode, and neither backward() nor optimizer.step() "
                "was ever called: the weights are as they were.",
                told->value);
            finding.fix =
                "If the model is to be trained, call loss.backward() and optimizer.step() for each batch; if "
                "not, call model.eval() and use torch.no_grad().";
            finding.evidence.push_back({"losses", told->value, "without backward(), told from", least_});
        }
        sink.fire(std::move(finding));
    }
    void on_end(FindingSink& sink) override {
        // It may begin later, or step seldom: only the end tells.
        const double least = std::max(least_, kFewestOfOthers);
        if (idle_parameters_ <= 0 || static_cast<double>(last_look_ - first_look_) < least) return;
        const std::string first_of =
            idle_place_.empty() ? std::string() : base::format(", the first of {},", idle_place_);
        model::Finding finding;
        finding.key = "one of several";
        finding.severity = is_forgotten_ ? model::Severity::kWarning : model::Severity::kInfo;
        finding.tensor = idle_fact_;
        finding.layer = idle_place_;
        finding.message = base::format(
            "{:.0f} parameters{} got gradients from step {} to {}, and the optimizer that holds them never "
            "stepped: they are as they were drawn, while another optimizer trains the rest.",
            idle_parameters_, first_of, first_look_, last_look_);
        finding.fix = base::format(
            "{}all step() of the optimizer that holds {}, too, after loss.backward().",
            is_forgotten_ ? "C" : "Nothing, if it is to step later, or they are to stay as they are; else c",
            idle_place_.empty() ? "these parameters" : "the parameters of " + idle_place_);
        finding.evidence.push_back({"steps of another optimizer",
                                    static_cast<double>(last_look_ - first_look_), "told from", least});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step and no loss in training mode was seen";
    }

  private:
    // An optimizer that begins later, or steps once in so many passes, is not waited for in fewer.
    static constexpr double kFewestOfOthers = 100;

    // An optimizer that holds what gets gradients, beside one that steps.
    void look_at_one_of_several(const model::StepView& step) {
        if (loop_fact(step, "trainings")) idle_parameters_ = 0;
        const std::optional<LoopFact> idle = loop_fact(step, "unstepped_optimizer");
        if (!idle) return;
        if (idle->value > 0) {
            if (idle_parameters_ <= 0) first_look_ = step.step();
            last_look_ = step.step();
            idle_place_ = idle->place;
            idle_fact_ = idle->tensor;
            const std::optional<LoopFact> forgotten = loop_fact(step, "unstepped_optimizer_forgotten");
            is_forgotten_ = forgotten && forgotten->value > 0;
        }
        idle_parameters_ = idle->value;
    }

    // As the last look has it.
    double idle_parameters_ = 0;
    std::string idle_place_, idle_fact_;
    bool is_forgotten_ = false;  // the text never steps it
    model::StepIndex first_look_ = 0, last_look_ = 0;
    double least_;
    std::uint64_t judged_ = 0;
};

std::vector<model::Requirement> optimizer_never_steps_needs(const Parameters&) {
    return {loop_requirement(kOptimizerNeverSteps.name)};
}

}  // namespace

RuleEntry builtin::optimizer_never_steps() {
    return {&kOptimizerNeverSteps, &optimizer_never_steps_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<OptimizerNeverSteps>(p);
            }};
}

}  // namespace traindbg::rules
