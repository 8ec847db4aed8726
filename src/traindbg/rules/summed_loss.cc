#include "traindbg/rules/summed_loss.h"

#include <cmath>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

constexpr double kUnclipped = 0.1;  // of a gradient, that clipping may leave
constexpr double kFewest = 4;       // values; of fewer the sum is much like the mean

// What such a function returns is recorded by the number of its labels, where it is a sum.
bool is_recorded_as_mean(std::string_view name) {
    return name == "loss/cross_entropy" || name == "loss/nll_loss";
}

}  // namespace

void SummedLoss::observe(const model::StepView& step) {
    const std::optional<LoopFact> told = loop_fact(step, "loss_is_summed");
    if (!told) {
        if (loop_fact(step, "samples_of_loss")) values_ = 0;  // told of the same losses: it is a mean
        return;
    }
    double total = 0, value = 0;
    std::size_t totals = 0, functions = 0;
    std::string_view function;
    for (const model::ScalarSample& sample : step.record->scalars) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (!is_first_loss(info)) continue;
        if (!std::isfinite(sample.value)) return;  // it is what it was before
        if (info.name == "loss") {
            total = sample.value;
            ++totals;
        } else {
            function = info.name;
            value = sample.value;
            ++functions;
        }
    }
    values_ = 0;
    if (totals != 1 || told->value < kFewest) return;
    // Of one that the loop adds up no function's value is there, and it was compared with the sum by what
    // told it.
    const bool is_by_hand = functions == 0;
    if (!is_by_hand && (functions != 1 || !(value > 0))) return;
    // Some labels may not count (ignore_index).
    const bool is_whole = is_by_hand                      ? total > 0
                          : is_recorded_as_mean(function) ? total > 0.5 * told->value * value
                                                          : std::abs(total - value) < 1e-3 * value;
    if (!is_whole) return;
    values_ = told->value;
    follows_ = updates_follow_gradients(*step.meta);
    rate_ = optimizer_setting(*step.meta, "lr");
}

std::optional<double> SummedLoss::terms() const {
    if (values_ > 0) return values_;
    return std::nullopt;
}

std::optional<double> SummedLoss::values() const { return follows_ ? terms() : std::nullopt; }

void SummedLoss::explain(model::Finding& finding) const {
    const std::optional<double> sum = values();
    if (!sum) return;
    finding.message += base::format(
        " The loss is a sum over {0:.0f} values (reduction=\"sum\", or by hand): its gradient is {0:.0f} "
        "times that of their mean, as with a learning rate {0:.0f} times as high.",
        *sum);
    const std::string rate =
        rate_ && *rate_ > 0
            ? base::format("lower the learning rate from {} to about {}", base::human_number(*rate_),
                           base::human_number(round_for_people(*rate_ / *sum)))
            : base::format("lower the learning rate {:.0f}-fold", *sum);
    finding.fix = base::format("Take the mean (reduction=\"mean\"), or {}, which is the same.", rate);
    finding.evidence.push_back({kEvidence, *sum, "of a mean", 1});
}

void SummedLoss::explain_clipping(model::Finding& finding, double share) const {
    const std::optional<double> sum = terms();
    // The gradient of their mean would be clipped to nothing all the same.
    if (!sum || share * *sum < kUnclipped) return;
    finding.message += base::format(
        " The loss is a sum over {0:.0f} values (reduction=\"sum\", or by hand): its gradient is {0:.0f} "
        "times that of their mean, which is what the limit is for.",
        *sum);
    finding.fix = "Take the mean (reduction=\"mean\"). Or: " + finding.fix;
    finding.evidence.push_back({kEvidence, *sum, "of a mean", 1});
}

}  // namespace traindbg::rules
