#include "traindbg/rules/loss_ratio.h"

#include <cmath>

#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {

void LossRatio::observe(const model::StepView& step) {
    auto& losses = step.mode() == model::Mode::kEval ? evaluation_ : training_;
    for (const model::ScalarSample& sample : step.record->scalars)
        if (is_first_loss(step.info(sample.tensor)) && std::isfinite(sample.value))
            losses.try_emplace(sample.tensor, 20).first->second.add(sample.value);
}

std::optional<double> LossRatio::value() const {
    for (const auto& [id, values] : evaluation_) {
        const auto training = training_.find(id);
        if (training == training_.end()) continue;
        const auto ours = training->second.last(10);
        const auto theirs = values.last(10);
        const double level = median({ours.begin(), ours.end()});
        if (level > 0) return median({theirs.begin(), theirs.end()}) / level;
    }
    return std::nullopt;
}

}  // namespace traindbg::rules
