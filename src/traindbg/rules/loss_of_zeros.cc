#include "traindbg/rules/loss_of_zeros.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"

namespace traindbg::rules {

void LossOfZeros::observe(const model::StepView& step) {
    if (step.step() == 0) observe_first(step);
    for (const model::TensorSample& sample : step.record->tensors) {
        const std::string_view name = step.info(sample.tensor).name;
        if (!name.starts_with("label/")) continue;
        const auto found = functions_.find(name.substr(6));
        const model::Statistics& labels = sample.statistics;
        if (found == functions_.end() || labels.finite() == 0) continue;
        const double size = labels.l2 / std::sqrt(static_cast<double>(labels.finite()));
        double of_zeros = size;
        if (found->first == "mse_loss") of_zeros = size * size;
        else if (found->first == "huber_loss") of_zeros = std::max(size, size * size / 2);
        else if (!is_regression(found->first)) of_zeros = std::log(2.0);
        found->second.of_zeros = std::max(found->second.of_zeros, of_zeros);
    }
}

void LossOfZeros::observe_first(const model::StepView& step) {
    if (const std::optional<LoopFact> terms = loop_fact(step, "loss_is_summed"))
        is_summed_ = terms->value > 0;
    std::optional<double> root;
    for (const model::ScalarSample& sample : step.record->scalars) {
        const std::string_view name = step.info(sample.tensor).name;
        const std::string_view function = function_of_loss(name);
        if (name == "loss") root = sample.value;
        else if (is_regression(function) || function.starts_with("binary_cross_entropy"))
            functions_[std::string(function)].loss = sample.value;
    }
    // Of one that calls no function, what it compares is recorded under the name of the one that would.
    const std::optional<LoopFact> written = loop_fact(step, "loss_is_written_out");
    if (!root || !written || written->value <= 0) return;
    for (const model::TensorSample& sample : step.record->tensors) {
        const std::string_view name = step.info(sample.tensor).name;
        if (name.starts_with("label/") && is_regression(name.substr(6)))
            functions_.try_emplace(std::string(name.substr(6)), Function{.loss = *root});
    }
}

std::optional<double> LossOfZeros::of(const TrainingLoss& loss) const {
    if (const std::optional<double> entropy = loss.label_entropy(); entropy && *entropy > 0.1) {
        // The sum of these is recorded per label.
        if (loss.tensor() == "loss/cross_entropy" || loss.tensor() == "loss/nll_loss") return entropy;
        // A sum over the batch is measured in other units.
        const double per_label = loss.first() / std::max(loss.labels_per_batch(), 1.0);
        if (loss.labels_per_batch() > 4 && std::abs(per_label - *entropy) < 0.5 * *entropy)
            return std::nullopt;
        return entropy;
    }
    // What backward() is called on may be just that.
    for (const auto& [name, function] : functions_)
        if (!is_summed_ && function.of_zeros > 0 &&
            std::abs(loss.first() - function.loss) <= 1e-6 * function.loss)
            return function.of_zeros;
    return std::nullopt;
}

}  // namespace traindbg::rules
