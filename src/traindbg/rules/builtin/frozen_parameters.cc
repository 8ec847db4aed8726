// Frozen layers of random weights.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kFrozenParameters = {
    .name = "frozen_parameters",
    .title = "Frozen parameters",
    .summary = "Layers are frozen although their weights are random: nothing was trained or loaded there.",
    .when =
        "At each of `steps` looks in a row, a module that the training step calls with gradients enabled "
        "has parameters none of which requires gradients, and a weight of it still has the very "
        "distribution that an initialiser gives: uniform up to the bound of one of the usual schemes, or "
        "normal of one of their deviations. Its values do not change.",
    .why =
        "Freezing is for weights that know something. Random ones let the other layers learn only what "
        "random features allow.",
    .fix =
        "Load the checkpoint before training (check what load_state_dict reports as missing), or "
        "unfreeze: requires_grad_(True), and make the optimizer after that.",
    .healthy =
        "Weights that were loaded or trained: their distribution is another one. Modules that run under "
        "torch.no_grad(): targets of distillation, momentum encoders. Averages of other weights: they "
        "change. Small tensors, biases and norms, of which that cannot be told.",
    .cost =
        "The distribution of frozen weights once, and the order in which modules are called at no more "
        "than six steps; nothing where no module is frozen.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method); mmpretrain issue 702",
    .severity = model::Severity::kWarning,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"}},
};

class FrozenParameters final : public Rule {
  public:
    explicit FrozenParameters(const Parameters& parameters) : seen_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const std::optional<LoopFact> frozen = loop_fact(step, "frozen_fresh_modules");
        if (!frozen) return;
        const bool shows = frozen->value > 0;
        if (!shows && seen_.is_enough()) sink.clear(kKey);
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        model::Finding finding = loop_finding(kKey, model::Severity::kWarning, seen_, *frozen);
        finding.places = static_cast<std::uint64_t>(frozen->value);
        finding.message = base::format(
            "{:.0f} modules{} are frozen with random weights: none of their parameters requires gradients, "
            "and "
            "their weights are distributed as an initialiser draws them.",
            frozen->value, and_more(*frozen));
        finding.fix = base::format(
            "Load trained weights into {0} before training, or unfreeze it: {0}.requires_grad_(True), before "
            "the "
            "optimizer is made.",
            frozen->place);
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step was seen from its beginning to its end";
    }

  private:
    static constexpr const char* kKey = "frozen";
    InARow seen_;
};

std::vector<model::Requirement> frozen_parameters_needs(const Parameters&) {
    return {loop_requirement(kFrozenParameters.name)};
}

}  // namespace

RuleEntry builtin::frozen_parameters() {
    return {&kFrozenParameters, &frozen_parameters_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<FrozenParameters>(p);
            }};
}

}  // namespace traindbg::rules
