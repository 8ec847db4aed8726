// Gradients of several micro-batches are added up, not averaged.

#include "traindbg/base/format.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kAccumulationNotAveraged = {
    .name = "accumulation_not_averaged",
    .title = "Accumulation not averaged",
    .summary =
        "Several backward passes make one optimizer step, and their losses are not divided by their number: "
        "the gradient is that many times too large.",
    .when =
        "At each of `steps` looks in a row, at least two `backward()` calls make a step, as many at each, "
        "and none of them on a loss that was divided by that number.\n"
        "- Undivided: each was called on the very value that the same loss function returned, which takes "
        "the mean over its batch. Or on a sum that it returned, divided by the number of its own labels, "
        "which is such a mean, too.\n"
        "- Also needed: other labels each time, and no retain_graph. And one line of the program computes "
        "all of these losses: several lines compute several terms.\n"
        "- Info for optimizers to which the size of the gradient makes no difference (Adam and its kin).",
    .why =
        "Accumulation stands for a larger batch, whose loss is a mean. A sum of k means is a gradient k "
        "times as large: the same as a learning rate k times as high, and gradient clipping cuts k times as "
        "much.",
    .fix =
        "loss = loss / accumulation_steps before loss.backward(); or lower the learning rate by that factor.",
    .healthy =
        "Losses that are divided, by a number of steps or of tokens, also by Lightning, Accelerate or "
        "Trainer. Losses with reduction='sum'. Several different losses of one batch, or several losses of "
        "the same labels. The losses of two sources of data, each with a backward() of its own. Several "
        "optimizers, as in a GAN, where the losses of real and generated samples "
        "are added.",
    .cost = "Which value backward() is called on, at the first 10 steps and then every 25th.",
    .original = "",
    .source = "transformers issue 34191",
    .severity = model::Severity::kWarning,
    .parameters = {{"steps", "steps", 3, 2, 1000, "looks in a row that must show it"}},
};

class AccumulationNotAveraged final : public Rule {
  public:
    explicit AccumulationNotAveraged(const Parameters& parameters) : seen_(parameters.at("steps")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        game_.observe(step);
        if (game_.is_on()) {
            if (!key_.empty()) sink.clear(key_);
            key_.clear();
            return;
        }
        const std::optional<LoopFact> passes = loop_fact(step, "backward_passes");
        if (!passes || passes->value < 1) return;
        const std::optional<LoopFact> undivided = loop_fact(step, "undivided_passes");
        const bool is_whole = undivided && undivided->value >= 2 && undivided->value == passes->value;
        const bool shows = is_whole && (seen_.count() == 0 || undivided->value == number_);
        if (!shows && !key_.empty()) {
            sink.clear(key_);
            key_.clear();
        }
        seen_.add(step, shows);
        if (shows) number_ = undivided->value;
        if (!seen_.is_enough()) return;
        const bool matters = !is_scale_free(*step.meta);
        key_ = matters ? "sum" : "sum, scale-free optimizer";
        model::Finding finding = loop_finding(
            key_, matters ? model::Severity::kWarning : model::Severity::kInfo, seen_, *undivided);
        finding.message = base::format(
            "{0:.0f} backward passes make one optimizer step, each of a mean over its own batch, and none is "
            "divided by {0:.0f}: the gradient is {0:.0f} times that of one batch of their size{1}.",
            number_,
            matters ? base::format(", as with a learning rate {:.0f} times as high", number_)
                    : std::string("; this optimizer divides that out, gradient clipping does not"));
        finding.fix = base::format(
            "loss = loss / {:.0f} before loss.backward(). If the sum is meant, nothing.", number_);
        finding.evidence.push_back({"backward passes per step", number_, "divided by", 1});
        sink.fire(std::move(finding));
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return seen_.judged(); }
    [[nodiscard]] std::string why_not_judged() const override {
        if (game_.is_on()) return "several optimizers take turns: they may add losses on purpose";
        return "no step with a backward() was seen from its beginning to its end";
    }

  private:
    // Steps that do not grow with the gradient.
    static bool is_scale_free(const model::WorkerMeta& meta) {
        if (meta.optimizers.empty()) return false;
        const std::string& type = meta.optimizers.front().type;
        for (const std::string_view word :
             {"Adam", "Adafactor", "Adagrad", "RMSprop", "Rprop", "Lion", "LAMB", "Lamb"})
            if (type.find(word) != std::string::npos) return true;
        return false;
    }

    double number_ = 0;  // of passes
    Game game_;
    std::string key_;  // that fires
    InARow seen_;
};

std::vector<model::Requirement> accumulation_not_averaged_needs(const Parameters&) {
    return {loop_requirement(kAccumulationNotAveraged.name)};
}

}  // namespace

RuleEntry builtin::accumulation_not_averaged() {
    return {&kAccumulationNotAveraged, &accumulation_not_averaged_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<AccumulationNotAveraged>(p);
            }};
}

}  // namespace traindbg::rules
