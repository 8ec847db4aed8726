#include "traindbg/rules/answer_loss.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "traindbg/base/format.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {

void AnswerLoss::observe(const model::StepView& step) {
    if (const auto order = loop_fact(step, "judges_order")) judges_order_ = order->value > 0;
}

void AnswerLoss::add(const model::StepView& step) {
    for (const model::ScalarSample& sample : step.record->scalars)
        if (step.info(sample.tensor).name.starts_with("loss/binary_cross_entropy") &&
            std::isfinite(sample.value))
            losses_.add(sample.value);
}

std::string AnswerLoss::about_weight(bool is_yes_rare) const {
    if (!is_weight_turned(is_yes_rare)) return {};
    return base::format(" pos_weight is {:.2g}, which makes them count less, not more.", weight_);
}

double AnswerLoss::constant_loss(double yes) const {
    const double said = yes * weight_ / (yes * weight_ + 1 - yes);
    const double weighed = yes * weight_;
    return (weighed > 0 ? -weighed * std::log(said) : 0) - (1 - yes) * std::log(1 - said);
}

void AnswerLoss::weigh(model::Finding& finding, double yes, bool now_and_then) const {
    // The mean of losses, as most batches have no rare sample, and a low one.
    const auto& losses = losses_.values();
    const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) /
                        static_cast<double>(std::max<std::size_t>(losses.size(), 1));
    const double constant = constant_loss(yes);
    const bool tells = now_and_then && !losses.empty() && mean < kTelling * constant;
    const bool is_sound = (tells || judges_order_) && !is_weight_turned(yes < 0.5);
    finding.severity = is_sound ? model::Severity::kInfo : model::Severity::kWarning;
    if (!losses.empty()) finding.evidence.push_back({"loss", mean, "of the best constant answer", constant});
}

}  // namespace traindbg::rules
