// backward() runs, and reaches none of the parameters that are to be trained.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kDetachedLoss = {
    .name = "detached_loss",
    .title = "Detached loss",
    .summary =
        "loss.backward() runs without an error, but gives no gradient to any parameter of the optimizer.",
    .when =
        "At each of `steps` looks in a row, at least one `backward()` ran since the optimizer's last step, "
        "and none of the optimizer's trainable parameters got a gradient. Or at two looks at the graph of "
        "the loss in a row, which leads to parameters, but by sums, sizes, powers and products with numbers "
        "alone, as a penalty of the weights does, and to nothing that the model returned, though that has a "
        "gradient. No threshold.",
    .why =
        "What the loss was computed from does not lead back to the model: the graph was cut. The optimizer "
        "has nothing to use, and the loss stays where it is but for the noise of the batches.",
    .fix =
        "Compute the loss from what the model returned, as it is: without .detach(), .data, .item(), "
        ".numpy(), torch.tensor(...), argmax or torch.no_grad() on the way. A loss that needs "
        "requires_grad_() to make backward() work is cut off.",
    .healthy =
        "A backward() for something else (an attack's input, another optimizer's loss) beside one that "
        "reaches the parameters. Gradients set by hand or by torch.autograd.grad count. An optimizer whose "
        "parameters are all frozen. A penalty that has a backward() of its own.",
    .cost =
        "Ids and versions of the parameters' gradients before and after backward, at the first 10 steps and "
        "then every 25th; no element is read unless a gradient was changed after backward. A look at the "
        "graph of the loss at three of the first steps.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"}},
};

class DetachedLoss final : public Rule {
  public:
    explicit DetachedLoss(const Parameters& parameters) : seen_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        judge_penalty(step, sink);
        const std::optional<LoopFact> passes = loop_fact(step, "backward_passes");
        const std::optional<LoopFact> held = loop_fact(step, "parameters_held");
        const std::optional<LoopFact> reached = loop_fact(step, "parameters_reached");
        if (!passes || !held || !reached || passes->value <= 0 || held->value <= 0) return;
        // It leads to a copy of the model: another rule tells of that.
        if (loop_fact(step, "trainings")) is_of_copy_ = false;
        if (const auto copies = loop_fact(step, "loss_is_of_a_copy")) is_of_copy_ = copies->value > 0;
        const bool shows = reached->value <= 0 && !is_of_copy_;
        if (!shows && seen_.is_enough()) sink.clear(kKey);
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        model::Finding finding = loop_finding(kKey, model::Severity::kError, seen_, *reached);
        finding.message = base::format(
            "backward() ran, but none of the optimizer's {:.0f} parameters got a gradient, at all of the {} "
            "steps looked at since step {}: the loss is cut off from the model.",
            held->value, seen_.count(), seen_.first());
        finding.fix =
            "Compute the loss from the model's output itself: no .detach(), .data, .item(), .numpy(), "
            "torch.tensor(...) or argmax in between, and no torch.no_grad() around the forward pass.";
        finding.evidence.push_back({"parameters reached", 0, "held", held->value});
        const std::optional<LoopFact> elsewhere = loop_fact(step, "parameters_reached_elsewhere");
        if (elsewhere && elsewhere->value > 0) say_part(*elsewhere, held->value, finding);
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no step with a backward() was seen from its beginning to its end";
    }

  private:
    // The loss that is to be lowered is a number; what has a gradient is a penalty of the weights.
    void judge_penalty(const model::StepView& step, FindingSink& sink) {
        const std::optional<LoopFact> penalized = loop_fact(step, "loss_is_of_weights_alone");
        if (!penalized) return;
        const bool shows = penalized->value > 0;
        if (!shows && of_weights_.is_enough()) sink.clear(kPenalty);
        of_weights_.add(step, shows);
        if (!of_weights_.is_enough()) return;
        model::Finding finding = loop_finding(kPenalty, model::Severity::kError, of_weights_, *penalized);
        finding.message = base::format(
            "The loss is made of a penalty of {:.0f} parameters and a number: nothing of what the model "
            "returned is in its graph. The penalty is all that is minimised.",
            penalized->value);
        finding.fix =
            "Compute the other part of the loss from the model's output itself, in torch: no .detach(), "
            ".numpy(), .item(), torch.tensor(...) or torch.from_numpy(...) on the way, and no "
            "torch.no_grad() around it.";
        finding.evidence.push_back({"parameters in a penalty alone", penalized->value, "expected", 0});
        sink.fire(std::move(finding));
    }

    // The loss trains another optimizer's part of the model: only this part is cut off.
    void say_part(const LoopFact& elsewhere, double held, model::Finding& finding) const {
        finding.kind = "detached_graph";
        finding.tensor = elsewhere.tensor;
        finding.layer = elsewhere.place;
        finding.message = base::format(
            "backward() reached {:.0f} parameters of the model, and none of the {:.0f} of the optimizer that "
            "holds {}, at all of the {} steps looked at since step {}: the loss does not lead back to that "
            "part.",
            elsewhere.value, held, elsewhere.place, seen_.count(), seen_.first());
        finding.fix = base::format(
            "Remove what cuts the graph between {} and what follows it: .detach(), .data, .numpy(), "
            "torch.tensor(...), or torch.no_grad() around it.",
            elsewhere.place);
        finding.evidence.push_back({"parameters reached elsewhere", elsewhere.value, "", 0});
    }

    static constexpr const char* kKey = "loop";
    static constexpr const char* kPenalty = "penalty";
    InARow seen_, of_weights_{2};
    bool is_of_copy_ = false;
};

std::vector<model::Requirement> detached_loss_needs(const Parameters&) {
    return {loop_requirement(kDetachedLoss.name)};
}

}  // namespace

RuleEntry builtin::detached_loss() {
    return {&kDetachedLoss, &detached_loss_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<DetachedLoss>(p); }};
}

}  // namespace traindbg::rules
