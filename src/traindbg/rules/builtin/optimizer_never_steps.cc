// A loop that computes losses, or gradients too, and never lets the optimizer use them.

#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kOptimizerNeverSteps = {
    .name = "optimizer_never_steps",
    .title = "Optimizer never steps",
    .summary = "The run is over, and optimizer.step() was never called, perhaps not even backward().",
    .when =
        "When the recording ends: an optimizer was made for the model, none has stepped, and `backward()` "
        "ran `passes` times or more (warning); or it never ran, and so many losses that gradients lead to "
        "were computed in training mode (a note: perhaps nothing was to be trained). In both cases the first "
        "elements of all parameters stayed as they were. 20 passes or losses at least are told.",
    .why = "The weights stay as they are. Nothing is learned, and nothing fails: the loop looks busy.",
    .fix =
        "Call loss.backward() and then optimizer.step() for each batch. If nothing is to be trained: call "
        "model.eval() and use torch.no_grad().",
    .healthy =
        "A loop that changes weights by hand; evaluations of a loaded model in evaluation mode or without "
        "gradients; a training that was interrupted in its first step; a model without an optimizer, of "
        "which gradients are looked at; steps that a GradScaler leaves out (loss_scale_overflow tells of "
        "those).",
    .cost = "Before the first step: eight elements of each parameter at every tenth backward pass.",
    .original = "",
    .source = "PyTorch documentation, torch.optim: taking an optimization step",
    .severity = model::Severity::kWarning,
    .parameters = {{"passes", "passes", 20, 20, 1e9, "backward passes, or losses, without a step"}},
};

class OptimizerNeverSteps final : public Rule {
  public:
    explicit OptimizerNeverSteps(const Parameters& parameters) : least_(parameters.at("passes")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (!step.record->scalars.empty()) ++judged_;
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
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step and no loss in training mode was seen";
    }

  private:
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
