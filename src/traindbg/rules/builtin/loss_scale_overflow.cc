// Steps that are left out, one after the other: the scaled loss overflows.

#include <algorithm>
#include <cmath>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kLossScaleOverflow = {
    .name = "loss_scale_overflow",
    .title = "Loss scale overflow",
    .summary =
        "Step after step is left out or spoilt, because scaled gradients are infinite or NaN; or the scale "
        "falls to nothing that way.",
    .when =
        "Step after step is left out or spoilt because scaled gradients are not finite, or the scale of a "
        "GradScaler falls to almost nothing that way.\n"
        "- With a GradScaler (error): it left out `skips` optimizer steps in a row. Or, from 50 attempts "
        "on, it left out more than `share` of the last 50 or more.\n"
        "- Without a GradScaler (error): the loop left out as many, because gradients were not finite and "
        "were thrown away without a step. This counts where something is computed in float16, or where "
        "backward() was called on more than 8 times the loss function's value.\n"
        "- Step made all the same (error): backward() was called on more than 8 times the loss function's "
        "value, the loss was finite, and the float16 gradients were not.\n"
        "- Scale collapsed (warning): the scale is at its lowest, and at most 1/`fall` of its highest. "
        "Steps were left out at four or more moments, the last of them in the last third of the steps. "
        "Reported once the scale is below 1, or at the end of the run.",
    .why =
        "A step that is left out changes no weight. The training runs, and nothing is learned. A scale that "
        "falls and falls ends where it does harm: gradients of float16 below 6e-8 are 0 again, which it is "
        "there to prevent, and below 1 it makes them smaller than they are.",
    .fix =
        "Look for the first value that is not finite with the scaler off; a scale that is halved at each "
        "skipped step gets to any finite gradient in 30 of them. Do not set a fixed or a growing scale "
        "(init_scale, growth_interval, update(new_scale)) by hand; use bfloat16, which needs no scale.",
    .healthy =
        "A few skipped steps at the start, until the scale is found, and one now and then, when it was "
        "doubled: a scale that settles, however low.",
    .cost =
        "One number at steps before which some were left out; gradients at the first 20 steps and then every "
        "10th.",
    .original = "",
    .source = "Micikevicius et al., \"Mixed precision training\", ICLR 2018",
    .severity = model::Severity::kError,
    .parameters = {{"skips", "steps", 20, 5, 1e9, "steps left out running"},
                   {"share", "share", 0.5, 0.05, 1, "of the latest attempts"},
                   {"fall", "times", 1024, 2, 1e12, "fall of the scale from its highest"}},
};

// Steps that are left out running, of which ten are recorded as a step of their own.
constexpr double kBlock = 10;

// The GradScaler's scale over the run, and when steps were left out.
class LossScale {
  public:
    explicit LossScale(double fall) : fall_(fall) {}

    void observe(const model::StepView& step, double skipped) {
        ++steps_;
        if (skipped > 0 && !goes_on_) {
            ++moments_;
            if (moments_ == 1) first_ = step.step();
            last_ = steps_;
        }
        goes_on_ = skipped >= kBlock;
        attempts_ += skipped + (goes_on_ ? 0 : 1);
        left_out_ += skipped;
        for (const LoopFact& fact : loop_facts(step, "loss_scale")) {
            if (!(fact.value > 0)) continue;
            now_ = fact.value;
            lowest_ = highest_ > 0 ? std::min(lowest_, now_) : now_;
            if (now_ <= highest_) continue;
            highest_ = now_;
            highest_step_ = step.step();
            moments_ = 0;  // what counts is the way down from here
        }
    }
    // It is still on its way down. One that is found at the start falls at one moment, and settles.
    [[nodiscard]] bool falls() const {
        return highest_ > 0 && moments_ >= kFewestMoments && now_ <= lowest_ && now_ * fall_ <= highest_ &&
               3 * last_ > 2 * steps_;
    }
    [[nodiscard]] bool has_grown_back() const { return now_ >= 16 * lowest_; }
    [[nodiscard]] double now() const noexcept { return now_; }
    [[nodiscard]] double highest() const noexcept { return highest_; }
    [[nodiscard]] model::StepIndex highest_step() const noexcept { return highest_step_; }
    [[nodiscard]] model::StepIndex first() const noexcept { return first_; }
    [[nodiscard]] double attempts() const noexcept { return attempts_; }
    [[nodiscard]] double left_out() const noexcept { return left_out_; }

  private:
    static constexpr std::uint64_t kFewestMoments = 4;

    double fall_;
    std::uint64_t steps_ = 0, moments_ = 0, last_ = 0;
    bool goes_on_ = false;  // the steps that are left out
    double now_ = 0, highest_ = 0, lowest_ = 0, attempts_ = 0, left_out_ = 0;
    model::StepIndex highest_step_ = 0, first_ = 0;
};

class LossScaleOverflow final : public Rule {
  public:
    explicit LossScaleOverflow(const Parameters& parameters)
        : skips_(parameters.at("skips")), share_(parameters.at("share")), by_scaler_(parameters.at("fall")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        double skipped = 0, left_out = 0;
        bool has_loss = false;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const std::string& name = step.info(sample.tensor).name;
            if (name == kSkipped) skipped = sample.value;
            if (name == kLeftOut) left_out = sample.value;
            has_loss = has_loss || step.info(sample.tensor).role == model::Role::kLoss;
        }
        if (has_loss) ++judged_;
        by_scaler_.observe(step, skipped);
        last_ = step.step();
        note_scale(step);
        for (const model::TensorSample& sample : step.record->tensors)
            is_half_ = is_half_ || step.info(sample.tensor).dtype == tensor::DType::kFloat16;
        if (left_out > 0 && (scale_ > kScaled || is_half_)) {
            skipped = left_out;
            is_by_hand_ = true;
        }
        if (scale_ > kScaled && has_overflown(step)) return fire("static", 1, step, sink);
        // Ten that were left out running are a step of their own.
        const bool stepped = skipped < kBlock;
        if (skipped > 0 && running_ == 0) first_ = step.step();
        running_ += skipped;
        const double longest = running_;
        if (stepped) running_ = 0;
        attempts_ = 0.98 * attempts_ + skipped + (stepped ? 1 : 0);
        left_out_ = 0.98 * left_out_ + skipped;
        all_ += skipped + (stepped ? 1 : 0);
        const bool often = all_ >= 50 && attempts_ > 0 && left_out_ > share_ * attempts_;
        if (longest >= skips_) return fire("running", longest, step, sink);
        if (often && skipped > 0) return fire("often", longest, step, sink);
        if (firing_ != nullptr && !often && stepped) {
            sink.clear(firing_);
            firing_ = nullptr;
        }
        judge_scale(by_scaler_.falls() && by_scaler_.now() < 1, sink);
    }
    void on_end(FindingSink& sink) override { judge_scale(by_scaler_.falls(), sink); }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no training step was seen"; }

  private:
    static constexpr const char* kSkipped = "loop/skipped_steps";
    static constexpr const char* kLeftOut = "loop/steps_left_out";
    static constexpr const char* kScale = "loop/loss_scale";
    static constexpr double kScaled = 8;
    static constexpr const char* kCollapsed = "scale";

    // By what the loss function's value was multiplied, where there is one such value.
    void note_scale(const model::StepView& step) {
        double total = 0, value = 0;
        bool is_one = true;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (!is_first_loss(info) || !std::isfinite(sample.value)) continue;
            if (info.name == "loss") {
                total = sample.value;
            } else {
                if (!function_.empty() && function_ != info.name) is_one = false;
                function_ = info.name;
                value = sample.value;
            }
        }
        if (!is_one) scale_ = -1;
        if (scale_ >= 0 && total > 0 && value > 0) scale_ = total / value;
    }
    // Gradients of float16 that are not finite though the loss is, which `note_scale` has seen.
    [[nodiscard]] static bool has_overflown(const model::StepView& step) {
        bool is_half = false, is_bad = false;
        for (const model::ScalarSample& sample : step.record->scalars)
            if (step.info(sample.tensor).role == model::Role::kLoss && !std::isfinite(sample.value))
                return false;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role == model::Role::kWeight && sample.statistics.not_finite() > 0) return false;
            if (info.role == model::Role::kOutput || info.role == model::Role::kGradient)
                is_half = is_half || info.dtype == tensor::DType::kFloat16;
            if (info.role == model::Role::kGradient) is_bad = is_bad || sample.statistics.not_finite() > 0;
        }
        return is_half && is_bad;
    }

    void fire(const char* key, double longest, const model::StepView& step, FindingSink& sink) {
        if (firing_ == nullptr) firing_ = key;
        model::Finding finding;
        finding.key = firing_;
        finding.severity = model::Severity::kError;
        finding.first_step = first_;
        finding.tensor = is_by_hand_ ? kLeftOut : kSkipped;
        if (std::string_view(firing_) == "static") {
            finding.first_step = step.step();
            finding.tensor = "loss";
            finding.message = base::format(
                "The loss is finite at step {}, and gradients of float16 are not: backward() is called on {} "
                "times the loss.",
                step.step(), human_number(scale_));
        } else if (is_by_hand_) {
            finding.message = base::format(
                "Gradients were not finite in {} backward passes up to step {}, and were thrown away without "
                "a step{}.",
                human_number(longest), step.step(),
                scale_ > kScaled
                    ? base::format(": backward() is called on {} times the loss", human_number(scale_))
                    : std::string());
        } else if (std::string_view(firing_) == "running")
            finding.message = base::format(
                "The GradScaler has left out {} steps running up to step {}: scaled gradients were not "
                "finite.",
                human_number(longest), step.step());
        else
            finding.message = base::format(
                "The GradScaler leaves out {:.0f} % of the steps, up to step {}: scaled gradients are not "
                "finite.",
                100 * left_out_ / attempts_, step.step());
        finding.fix =
            "Look for values that are not finite with the scaler off; leave GradScaler's own init_scale and "
            "growth_interval; or use bfloat16 under torch.autocast, without a scaler.";
        if (is_by_hand_ || std::string_view(firing_) == "static")
            finding.fix = base::format(
                "Use torch.amp.GradScaler, which lowers the scale by itself; or multiply the loss by far "
                "less{}: 256 or 1,024 to begin with.",
                scale_ > kScaled ? base::format(" than {}", human_number(scale_)) : std::string());
        finding.evidence.push_back({"steps left out running", longest, "limit", skips_});
        finding.plots = {{kSkipped, "value"}};
        sink.fire(std::move(finding));
    }

    // The scale that a GradScaler lowers with each step that it leaves out.
    void judge_scale(bool falls, FindingSink& sink) {
        if (is_collapsed_ && by_scaler_.has_grown_back()) {
            sink.clear(kCollapsed);
            is_collapsed_ = false;
        }
        if (!falls || firing_ != nullptr) return;
        is_collapsed_ = true;
        const double share = by_scaler_.left_out() / by_scaler_.attempts();
        model::Finding finding;
        finding.key = kCollapsed;
        finding.severity = model::Severity::kWarning;
        finding.first_step = by_scaler_.first();
        finding.tensor = kScale;
        finding.message = base::format(
            "The GradScaler's scale fell from {} (step {}) to {} by step {}, and does not grow back: {:.0f} "
            "of {:.0f} steps ({:.0f} %) were left out, because scaled gradients were not finite.",
            human_number(by_scaler_.highest()), by_scaler_.highest_step(), human_number(by_scaler_.now()),
            last_, by_scaler_.left_out(), by_scaler_.attempts(), 100 * share);
        finding.fix =
            "Look for the batches whose gradients are not finite with the scaler off (log(0), a division by "
            "0, values beyond 65,504 in float16); leave GradScaler's own growth_interval and backoff_factor; "
            "or use bfloat16 under torch.autocast, without a scaler.";
        finding.evidence.push_back({"loss scale", by_scaler_.now(), "highest", by_scaler_.highest()});
        finding.evidence.push_back({"steps left out", by_scaler_.left_out(), "of", by_scaler_.attempts()});
        finding.plots = {{kScale, "value"}, {kSkipped, "value"}};
        sink.fire(std::move(finding));
    }

    double skips_, share_;
    LossScale by_scaler_;
    bool is_collapsed_ = false;
    model::StepIndex last_ = 0;
    std::uint64_t judged_ = 0;
    double running_ = 0, attempts_ = 0, left_out_ = 0, all_ = 0;
    model::StepIndex first_ = 0;
    const char* firing_ = nullptr;
    bool is_by_hand_ = false;
    bool is_half_ = false;  // something is computed in float16
    double scale_ = 0;      // -1: there are several loss functions
    std::string function_;  // the loss function's
};

std::vector<model::Requirement> loss_scale_overflow_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kLossScaleOverflow.name);
    all.push_back(rate_requirement(kLossScaleOverflow.name));
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 10, .dense_until = 20},
                   kLossScaleOverflow.name});
    return all;
}

}  // namespace

RuleEntry builtin::loss_scale_overflow() {
    return {
        &kLossScaleOverflow, &loss_scale_overflow_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LossScaleOverflow>(p); }};
}

}  // namespace traindbg::rules
