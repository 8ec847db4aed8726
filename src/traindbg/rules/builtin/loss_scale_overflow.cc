// Steps that a GradScaler leaves out, one after the other: the scaled loss overflows.

#include <algorithm>
#include <cmath>
#include <string>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kInfo = {
    .name = "loss_scale_overflow",
    .title = "Loss scale overflow",
    .summary = "The GradScaler leaves out step after step, because scaled gradients are infinite or NaN.",
    .when =
        "A GradScaler left out `skips` steps of the optimizer running; or, from 50 attempts on, more than "
        "`share` of the last 50 or more.",
    .why = "A step that is left out changes no weight. The training runs, and nothing is learned.",
    .fix =
        "Look for the first value that is not finite with the scaler off; a scale that is halved at each "
        "skipped step gets to any finite gradient in 30 of them. Do not set a fixed or a growing scale "
        "(init_scale, growth_interval, update(new_scale)) by hand; use bfloat16, which needs no scale.",
    .healthy =
        "A few skipped steps at the start, until the scale is found, and one now and then, when it was "
        "doubled.",
    .cost = "One number at steps before which some were left out.",
    .original = "",
    .source = "Micikevicius et al., \"Mixed precision training\", ICLR 2018",
    .severity = model::Severity::kError,
    .parameters = {{"skips", "steps", 20, 5, 1e9, "steps left out running"},
                   {"share", "share", 0.5, 0.05, 1, "of the latest attempts"}},
};

class LossScaleOverflow final : public Rule {
  public:
    explicit LossScaleOverflow(const Parameters& parameters)
        : skips_(parameters.at("skips")), share_(parameters.at("share")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        double skipped = 0;
        bool has_loss = false;
        for (const model::ScalarSample& sample : step.record->scalars) {
            const std::string& name = step.info(sample.tensor).name;
            if (name == kSkipped) skipped = sample.value;
            has_loss = has_loss || step.info(sample.tensor).role == model::Role::kLoss;
        }
        if (has_loss) ++judged_;
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
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no training step was seen"; }

  private:
    static constexpr const char* kSkipped = "loop/skipped_steps";
    static constexpr double kBlock = 10;

    void fire(const char* key, double longest, const model::StepView& step, FindingSink& sink) {
        if (firing_ == nullptr) firing_ = key;
        model::Finding finding;
        finding.key = firing_;
        finding.severity = model::Severity::kError;
        finding.first_step = first_;
        finding.tensor = kSkipped;
        if (std::string_view(firing_) == "running")
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
        finding.evidence.push_back({"steps left out running", longest, "limit", skips_});
        finding.plots = {{kSkipped, "value"}};
        sink.fire(std::move(finding));
    }

    double skips_, share_;
    std::uint64_t judged_ = 0;
    double running_ = 0, attempts_ = 0, left_out_ = 0, all_ = 0;
    model::StepIndex first_ = 0;
    const char* firing_ = nullptr;
};

std::vector<model::Requirement> needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kInfo.name);
    all.push_back(rate_requirement(kInfo.name));
    return all;
}

}  // namespace

RuleEntry builtin::loss_scale_overflow() {
    return {&kInfo, &needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<LossScaleOverflow>(p);
            }};
}

}  // namespace traindbg::rules
