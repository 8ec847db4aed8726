// The gradients of the step before are still there when the next backward pass begins.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/settings.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kGradientsNotCleared = {
    .name = "gradients_not_cleared",
    .title = "Gradients not cleared",
    .summary =
        "Every step adds its gradients to those of all steps before, because nothing sets them to zero.",
    .when =
        "Gradients of earlier steps are still there when `backward()` is called, so each step adds to "
        "them. No threshold: a training that clears its gradients has none there.\n"
        "- One optimizer (error): at the first `backward()` of each of `steps` training steps in a row, "
        "from the second step of the training on, the smallest trainable parameter already has a gradient "
        "that is not zero, and a pass of the step adds to it.\n"
        "- Several optimizers (error): each is followed from one of its steps to the next. At no backward "
        "pass in between was its gradient gone or zero, and one of them added to it, `steps` times in a "
        "row.\n"
        "- Gradients of another loss (warning): one optimizer's loss goes through the other optimizer's "
        "parameters and leaves gradients there. The other optimizer steps with these and those of a pass "
        "of its own, `steps` times in a row.\n"
        "- The warning needs gradients that pull different ways, at four looks in five. Example: the "
        "critic steps with what the actor's loss left.",
    .why =
        "backward() adds to `.grad`. Without clearing, the optimizer uses the sum over all steps so far: the "
        "effective learning rate grows with every step, old gradients pull in directions that are long "
        "wrong, and the loss oscillates or rises.",
    .fix = "Call `optimizer.zero_grad()` once per optimizer step, before `loss.backward()`.",
    .healthy =
        "Accumulating over several backward passes of one optimizer step: only the first pass of a step is "
        "looked at. zero_grad(set_to_none=False): zeros are no gradient. Gradients that the loop sets, as "
        "those of a server whose clients train copies of its model: no pass adds to them. Several optimizers "
        "that take turns, as in a GAN, where the loss of one leaves gradients in the parameters of the "
        "other, which clears them before its own pass.",
    .cost = "One pass over the smallest parameter's gradient, at the first steps and then at few.",
    .original = "",
    .source =
        "Jiang et al., \"Training with Confidence: Catching Silent Errors in Deep Learning Training with "
        "Automated Proactive Checks\", OSDI 2025 (the fault, not the method)",
    .severity = model::Severity::kError,
    .parameters = {{"steps", "steps", 3, 2, 1000, "steps in a row that must show it"}},
};

constexpr model::Schedule kSchedule = {.every = 50, .dense_until = 10};
constexpr std::string_view kTensor = "loop/gradient_before_backward";
constexpr std::string_view kKept = "loop/gradients_kept/";
constexpr std::string_view kOfAnother = "loop/gradients_of_another/";
constexpr std::string_view kClearedSince = "loop/cleared_between_passes";
constexpr std::string_view kAddedTo = "gradient_added_to";  // not told by recordings of older versions
constexpr std::string_view kAddedToLater = "gradient_added_to_later";

class GradientsNotCleared final : public Rule {
  public:
    explicit GradientsNotCleared(const Parameters& parameters)
        : needed_(static_cast<std::uint64_t>(parameters.at("steps"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        // A step ends with one of the optimizers; the next backward() may be for another one, whose loss
        // goes through the same parameters before it is their turn to be cleared.
        if (step.meta->optimizers.size() > 1) {
            if (in_a_row_ >= needed_) sink.clear(kKey);
            in_a_row_ = 0;
            several_ = true;
            judge_each(step, sink);
            return;
        }
        const model::TensorSample* found = nullptr;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role == model::Role::kLoop && info.name == kTensor) found = &sample;
        }
        // A pass before the one whose gradients the step uses: for an attack on the inputs, say.
        const bool cleared_since =
            std::any_of(step.record->scalars.begin(), step.record->scalars.end(),
                        [&](const auto& s) { return step.info(s.tensor).name == kClearedSince; });
        const bool backward =
            std::any_of(step.record->scalars.begin(), step.record->scalars.end(),
                        [&](const auto& s) { return step.info(s.tensor).role == model::Role::kLoss; });
        // The first step of a training has nothing to clear.
        const bool judged =
            step.step() > 0 &&
            (found != nullptr || (backward && kSchedule.is_due(step.step_of_run(), step.began)));
        if (judged) {
            ++judged_;
            const bool left_over = found != nullptr && !cleared_since && !is_left_alone(step) &&
                                   (found->statistics.l2 > 0 || found->statistics.min != 0 ||
                                    found->statistics.max != 0 || found->statistics.not_finite() > 0);
            if (left_over) {
                if (in_a_row_ == 0) first_ = step.step();
                ++in_a_row_;
                if (in_a_row_ >= needed_) fire(step, *found, sink);
            } else {
                if (in_a_row_ >= needed_) sink.clear(kKey);
                in_a_row_ = 0;
            }
        }
        remember_gradients(step);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (several_)
            return "several optimizers take turns, and none was seen from one of its steps to the next";
        return "fewer than two training steps with a backward() were seen";
    }

  private:
    static constexpr const char* kKey = "loop";
    static constexpr double kMostly = 0.8;

    // No pass of the step changed the gradient that the first one found: they go through copies of the model,
    // and the loop sets the gradient itself.
    static bool is_left_alone(const model::StepView& step) {
        const std::optional<LoopFact> added = loop_fact(step, kAddedTo);
        return added && added->value <= 0 && !loop_fact(step, kAddedToLater);
    }

    // The cosine between what the other loss left and what was added; 1 where it is not told.
    static double agree(const model::StepView& step, std::string_view parameter) {
        for (const LoopFact& fact : loop_facts(step, "gradients_that_agree"))
            if (fact.place == parameter) return fact.value;
        return 1;
    }

    // Of several optimizers: each from one of its steps to the next one.
    void judge_each(const model::StepView& step, FindingSink& sink) {
        if (loop_fact(step, "trainings")) {
            for (const auto& [name, kept] : kept_)
                if (kept.in_a_row >= needed_) sink.clear(name);
            kept_.clear();
        }
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const bool is_foreign = std::string_view(info.name).starts_with(kOfAnother);
            const bool is_kept = std::string_view(info.name).starts_with(kKept);
            if (info.role != model::Role::kLoop || !(is_kept || is_foreign)) continue;
            ++judged_;
            Kept& kept = kept_[info.name];
            if (sample.value == 0) {
                if (kept.in_a_row >= needed_) sink.clear(info.name);
                kept = {};
                continue;
            }
            if (kept.in_a_row++ == 0) kept.first = step.step();
            if (is_foreign && agree(step, info.module) <= 0) ++kept.against;
            if (kept.in_a_row < needed_) continue;
            // Two losses that pull one way may be meant to train these parameters, by one step for both.
            if (is_foreign &&
                static_cast<double>(kept.against) < kMostly * static_cast<double>(kept.in_a_row))
                continue;
            model::Finding finding;
            finding.key = info.name;
            finding.severity = is_foreign ? model::Severity::kWarning : model::Severity::kError;
            finding.first_step = kept.first;
            finding.tensor = info.name;
            finding.layer = info.module;
            finding.message =
                is_foreign ? base::format(
                                 "Each step of the optimizer that holds {} uses gradients of another "
                                 "optimizer's loss, too: that loss goes through these parameters, left its "
                                 "gradients there, and they were still there when backward() was called for "
                                 "this optimizer, {} times in a row since step {}.",
                                 info.module, kept.in_a_row, kept.first)
                           : base::format(
                                 "The optimizer that holds {} never has its gradients cleared: they were "
                                 "still there at every backward pass between its steps, {} times in a row "
                                 "since step {}. Each of its steps uses the sum of all gradients so far, "
                                 "those of other optimizers' losses among them.",
                                 info.module, kept.in_a_row, kept.first);
            finding.fix =
                "Call zero_grad() of this very optimizer, after the other losses' backward() and before its "
                "own: one optimizer's zero_grad() does not clear another's parameters.";
            finding.evidence.push_back({"steps in a row", static_cast<double>(kept.in_a_row), "limit",
                                        static_cast<double>(needed_)});
            finding.plots = {{"loss", "value"}};
            sink.fire(std::move(finding));
        }
    }

    void fire(const model::StepView& step, const model::TensorSample& sample, FindingSink& sink) {
        const model::TensorInfo& info = step.info(sample.tensor);
        model::Finding finding;
        finding.key = kKey;
        finding.severity = model::Severity::kError;
        finding.first_step = first_;
        finding.tensor = info.name;
        finding.layer = info.module;
        const double largest = std::max(std::abs(sample.statistics.min), std::abs(sample.statistics.max));
        finding.message = base::format(
            "backward() found the gradients of earlier steps still there at all of the {} steps looked at "
            "since step {} (largest value {} at step {}): each step adds to them.",
            in_a_row_, first_, base::human_number(largest), step.step());
        const bool same = step.step() == used_step_ + 1 && used_norm_ > 0 &&
                          std::abs(sample.statistics.l2 - used_norm_) <= 1e-5 * used_norm_;
        if (same) finding.message += base::format(" It is the very gradient that step {} used.", used_step_);
        finding.fix =
            step.meta->optimizers.empty()
                ? "Set the gradients to None once per update of the weights, before loss.backward(): "
                  "model.zero_grad() does."
                : "Call optimizer.zero_grad() once per optimizer step, before loss.backward().";
        finding.evidence.push_back({"largest gradient before backward", largest, "expected", 0});
        finding.evidence.push_back(
            {"steps in a row", static_cast<double>(in_a_row_), "limit", static_cast<double>(needed_)});
        finding.plots = {{info.name, "l2"}, {"loss", "value"}};
        sink.fire(std::move(finding));
    }

    // The norm of the watched parameter's gradient as the optimizer used it.
    void remember_gradients(const model::StepView& step) {
        std::string_view watched;
        for (const model::TensorInfo& info : *step.tensors)
            if (info.role == model::Role::kLoop && info.name == kTensor) watched = info.module;
        if (watched.empty()) return;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kGradient || place_of(info.name) != watched) continue;
            used_norm_ = sample.statistics.l2;
            used_step_ = step.step();
        }
    }

    // Of one of several optimizers, by its smallest parameter.
    struct Kept {
        std::uint64_t in_a_row = 0;
        std::uint64_t against = 0;  // of them, where the other loss pulls the other way
        model::StepIndex first = 0;
    };

    std::uint64_t needed_;
    std::map<std::string, Kept, std::less<>> kept_;
    std::uint64_t judged_ = 0, in_a_row_ = 0;
    model::StepIndex first_ = 0, used_step_ = 0;
    double used_norm_ = 0;
    bool several_ = false;
};

std::vector<model::Requirement> gradients_not_cleared_needs(const Parameters&) {
    return {
        {"losses", model::Mode::kTrain, model::What::kStatistics, {.every = 1}, kGradientsNotCleared.name},
        {"loop", model::Mode::kTrain, model::What::kStatistics, kSchedule, kGradientsNotCleared.name}};
}

}  // namespace

RuleEntry builtin::gradients_not_cleared() {
    return {&kGradientsNotCleared, &gradients_not_cleared_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<GradientsNotCleared>(p);
            }};
}

}  // namespace traindbg::rules
