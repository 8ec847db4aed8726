// A loss that cannot be negative is minimised with a minus sign.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kInfo = {
    .name = "loss_sign_flipped",
    .title = "Loss sign flipped",
    .summary =
        "The optimizer makes the loss larger: backward() is called on minus a loss function that is never "
        "negative.",
    .when =
        "At each of `steps` looks in a row, every `backward()` of the step is called on one known loss "
        "function's value times a negative number and nothing else, or on the mean log-probability of the "
        "labels without a minus sign. Known are the losses of torch.nn.functional that are never "
        "negative. No threshold.",
    .why =
        "The optimizer goes up the hill: the loss it is to lower grows without a bound, and the model "
        "learns to be wrong.",
    .fix =
        "Take the minus sign away: loss_function(output, target).backward(); or put one before a mean of "
        "log-probabilities.",
    .healthy =
        "Adversarial steps that raise a loss beside one that lowers it, terms with a minus sign that are "
        "added to others, policy gradients (log-probabilities times an advantage). Several optimizers, "
        "which may play against each other: they are not judged.",
    .cost =
        "The few nodes of the graph between backward's value and the loss function, at the first 10 steps "
        "and then every 25th.",
    .original = "",
    .source = "Braiek and Khomh, \"TheDeepChecker\", TOSEM 2023 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"}},
};

class LossSignFlipped final : public Rule {
  public:
    explicit LossSignFlipped(const Parameters& parameters) : seen_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        if (step.meta->optimizers.size() > 1) {
            if (seen_.is_enough()) sink.clear(kKey);
            several_ = true;
            return;
        }
        const std::optional<LoopFact> sign = loop_fact(step, "loss_sign");
        if (!sign) return;
        const bool shows = sign->value < 0;
        if (!shows && seen_.is_enough()) sink.clear(kKey);
        seen_.add(step, shows);
        if (!seen_.is_enough()) return;
        model::Finding finding = loop_finding(kKey, model::Severity::kError, seen_, *sign);
        finding.layer.clear();  // it is of the loss
        const bool by_hand = sign->place == "log_softmax";
        finding.message = by_hand ? base::format(
                                        "backward() is called on the mean log-probability of the labels, at "
                                        "all of the {} steps looked "
                                        "at since step {}: lowering it makes the labels less likely.",
                                        seen_.count(), seen_.first())
                                  : base::format(
                                        "backward() is called on {} times a negative number, at all of the "
                                        "{} steps looked at since "
                                        "step {}: the optimizer makes the loss larger.",
                                        sign->place, seen_.count(), seen_.first());
        finding.fix = by_hand
                          ? "Put a minus sign before the mean of the log-probabilities."
                          : base::format("Take away the minus sign: backward() on {} itself.", sign->place);
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        if (several_) return "several optimizers: their losses may work against each other";
        return "no backward() was seen of one loss function's value alone";
    }

  private:
    static constexpr const char* kKey = "sign";
    bool several_ = false;
    InARow seen_;
};

std::vector<model::Requirement> needs(const Parameters&) { return {loop_requirement(kInfo.name)}; }

}  // namespace

RuleEntry builtin::loss_sign_flipped() {
    return {&kInfo, &needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<LossSignFlipped>(p);
            }};
}

}  // namespace traindbg::rules
