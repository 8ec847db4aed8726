// The optimizer steps, but there is no gradient for it to use.

#include <map>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kStepWithoutGradient = {
    .name = "step_without_gradient",
    .title = "Step without gradient",
    .summary =
        "optimizer.step() is called when there are no gradients: none were computed since they were cleared.",
    .when =
        "The optimizer steps although its parameters have no gradients, or only zeros, because no "
        "`backward()` ran or because the gradients were cleared before the step. No threshold.\n"
        "- Error: at each of `steps` looks in a row, when the optimizer is about to step, none of its "
        "parameters has a gradient, or all gradients are zero.\n"
        "- This counts in two cases: no `backward()` ran since the optimizer's last step, or one did and "
        "its gradients were cleared before the step.\n"
        "- Several PyTorch optimizers (error): at each of `steps` looks in a row, one optimizer's "
        "gradients were there when the first optimizer stepped after a backward pass, and are gone or all "
        "zero when it steps itself.\n"
        "- Several PyTorch optimizers, early (info): a note until that has lasted for 50 steps.",
    .why =
        "The optimizer leaves parameters without a gradient alone, and with zeros it only decays and coasts. "
        "Nothing is learned, and nothing fails: the loop looks busy.",
    .fix =
        "Keep the order zero_grad(), forward, loss.backward(), optimizer.step(). If there is no backward(), "
        "add it; if zero_grad() stands between backward() and step(), move it before backward() or after "
        "step().",
    .healthy =
        "Gradients that are zero as backward() computed them: a satisfied margin loss, dead units (dead_relu "
        "tells of those). Gradient accumulation: the passes since the last step count. Steps that a "
        "GradScaler leaves out are no steps. Gradients set by hand, or by torch.autograd.grad, are "
        "gradients. Optimizers that are not PyTorch's own may do without: they are judged only where a "
        "backward() ran.",
    .cost =
        "Ids and versions of the parameters' gradients before and after backward, at the first 10 steps and "
        "then every 25th; no element is read unless a gradient was changed after backward.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"}},
};

class StepWithoutGradient final : public Rule {
  public:
    explicit StepWithoutGradient(const Parameters& parameters)
        : looks_(parameters.at("steps")), seen_(looks_) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        for (const LoopFact& cleared : loop_facts(step, "gradients_cleared"))
            look_at_another(step, cleared, sink);
        if (!others_.empty()) judge_others(step, sink);
        const std::optional<LoopFact> there = loop_fact(step, "gradients_at_step");
        const std::optional<LoopFact> reached = loop_fact(step, "parameters_reached");
        const std::optional<LoopFact> passes = loop_fact(step, "backward_passes");
        if (!there || !reached || !passes) return;
        // A pass that reached nothing is another fault: detached_loss.
        const bool shows = there->value <= 0 && (passes->value <= 0 || reached->value > 0);
        if (!shows && seen_.is_enough()) {
            sink.clear(kKey);
            sink.clear(kLateKey);
        }
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        const bool cleared = passes->value > 0;
        // They were there for long: what takes them away now may be another thing.
        const bool is_late = cleared && seen_.judged() >= seen_.count() + kLooksBefore;
        model::Finding finding =
            loop_finding(is_late ? kLateKey : kKey, model::Severity::kError, seen_, *there);
        finding.message =
            is_late
                ? base::format(
                      "The gradients of all {:.0f} parameters that backward() reached are 0 at all of the {} "
                      "steps looked at since step {}, and were not before: cleared before the step, or "
                      "multiplied by 0, as clip_grad_norm_ does where their norm is infinite.",
                      reached->value, seen_.count(), seen_.first())
            : cleared
                ? base::format(
                      "The optimizer steps without gradients at all of the {} steps looked at since step {}: "
                      "backward() gave {:.0f} parameters a gradient, and it was cleared before the step.",
                      seen_.count(), seen_.first(), reached->value)
                : base::format(
                      "The optimizer steps without gradients at all of the {} steps looked at since step {}: "
                      "no backward() ran since its last step.",
                      seen_.count(), seen_.first());
        finding.fix =
            is_late   ? "Look at the gradients before clipping: torch.isfinite(norm) of the norm that "
                        "clip_grad_norm_ returns. Where they have grown without end, that is the cause."
            : cleared ? "Move optimizer.zero_grad() before loss.backward(), or after optimizer.step()."
                      : "Call loss.backward() between optimizer.zero_grad() and optimizer.step().";
        finding.evidence.push_back({"backward passes per step", passes->value, "expected", 1});
        finding.evidence.push_back({"parameters that backward reached", reached->value, "", 0});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no training step was seen from its beginning to its end";
    }

  private:
    static constexpr const char* kKey = "loop";
    static constexpr const char* kLateKey = "late";
    static constexpr std::uint64_t kLooksBefore = 5;
    static constexpr model::StepIndex kWarmUp = 50;

    struct Other {
        explicit Other(double looks) : seen(looks) {}
        InARow seen;
        bool is_lasting = false;  // that is said
    };
    // One of several optimizers, which is told apart by a parameter of its own.
    void look_at_another(const model::StepView& step, const LoopFact& cleared, FindingSink& sink) {
        Other& other = others_.try_emplace(std::string(cleared.place), looks_).first->second;
        const bool shows = cleared.value > 0;
        if (!shows && other.seen.is_enough()) sink.clear(cleared.place);
        other.seen.add(step, shows);
        other.is_lasting = other.is_lasting && shows;
        // That of the one that drives says it.
        if (other.seen.is_enough() && seen_.count() == 0) fire_another(step, cleared, other, sink);
    }
    // Steps after which no other optimizer ends may be looked at early only: what was so then is so.
    void judge_others(const model::StepView& step, FindingSink& sink) {
        for (auto& [place, other] : others_) {
            if (other.is_lasting || !other.seen.is_enough() || seen_.count() > 0) continue;
            if (step.step() < other.seen.first() + kWarmUp) continue;
            other.is_lasting = true;
            const std::string tensor = base::format("loop/gradients_cleared/{}", place);
            fire_another(step, {1, place, tensor}, other, sink);
        }
    }
    void fire_another(const model::StepView& step, const LoopFact& cleared, const Other& other,
                      FindingSink& sink) const {
        const InARow& seen = other.seen;
        // A part that is to wait for the first steps is kept back so, too.
        const bool lasts = step.step() >= seen.first() + kWarmUp;
        model::Finding finding = loop_finding(
            cleared.place, lasts ? model::Severity::kError : model::Severity::kInfo, seen, cleared);
        finding.message = base::format(
            "The optimizer of {} steps without gradients at all of the {} steps looked at since step {}: "
            "backward() gave its parameters a gradient, and it was cleared before the step, as by a "
            "zero_grad() between the steps of two optimizers.",
            cleared.place, seen.count(), seen.first());
        finding.fix = "Let all optimizers step first, then clear the gradients of all.";
        sink.fire(std::move(finding));
    }

    double looks_;
    InARow seen_;
    std::map<std::string, Other> others_;
};

std::vector<model::Requirement> step_without_gradient_needs(const Parameters&) {
    return {loop_requirement(kStepWithoutGradient.name)};
}

}  // namespace

RuleEntry builtin::step_without_gradient() {
    return {&kStepWithoutGradient, &step_without_gradient_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<StepWithoutGradient>(p);
            }};
}

}  // namespace traindbg::rules
