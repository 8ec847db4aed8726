#include "traindbg/rules/exchanged_inputs.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/input_values.h"
#include "traindbg/rules/loss_ratio.h"

namespace traindbg::rules {

void ExchangedInputs::observe(const model::StepView& step) {
    std::vector<const model::TensorSample*> given;
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (!is_compared_input(info, sample.statistics) || info.shape.size() < 2) continue;
        if (info.name.find(kFurtherBatch) == std::string::npos && given.size() < kMostInputs)
            given.push_back(&sample);
    }
    for (std::size_t i = 0; i < given.size(); ++i)
        for (std::size_t j = i + 1; j < given.size(); ++j) {
            const model::TensorInfo& info = step.info(given[i]->tensor);
            const model::Statistics &one = given[i]->statistics, &other = given[j]->statistics;
            if (info.shape != step.info(given[j]->tensor).shape || one.count != other.count) continue;
            const auto values = static_cast<double>(values_in_row(info));
            const double rows = static_cast<double>(one.count) / std::max(values, 1.0);
            Pair& pair = pairs_[{given[i]->tensor, given[j]->tensor}];
            if (step.mode() == model::Mode::kEval) {
                pair.evaluated_mean += rows * (one.mean - other.mean);
                pair.evaluated_std += rows * (one.std - other.std);
                pair.evaluated_rows += rows;
                ++pair.evaluated_batches;
            } else {
                pair.means.add(one.mean - other.mean);
                pair.stds.add(one.std - other.std);
                pair.rows.add(rows);
            }
        }
}

Apart ExchangedInputs::Pair::apart() const {
    Apart apart;
    const auto batches = static_cast<double>(means.values().size());
    const auto add = [&](const Recent& ours, double theirs) {
        const double level = mean_of(ours.values());
        // Of so many rows as were evaluated, and of the mean of all batches.
        const double share = mean_of(rows.values()) / evaluated_rows + 1 / batches;
        const double error = deviation_of(ours.values()) * std::sqrt(share);
        if (!(error > 0)) return;
        apart.as_they_are += std::pow((theirs - level) / error, 2);
        apart.exchanged += std::pow((theirs + level) / error, 2);
    };
    add(means, evaluated_mean / evaluated_rows);
    add(stds, evaluated_std / evaluated_rows);
    return apart;
}

std::uint64_t ExchangedInputs::judge(const model::StepView& step, const InputNames& names,
                                     const KnownRows& rows, const std::optional<double>& ratio,
                                     FindingSink& sink) {
    std::uint64_t judged = 0;
    for (const auto& [ids, pair] : pairs_) {
        if (pair.means.values().size() < kFewestBatches || pair.evaluated_rows < kFewestRows) continue;
        if (pair.evaluated_batches < 2 && !rows.are_evaluated_again()) continue;
        ++judged;
        const std::string &first = step.info(ids.first).name, &second = step.info(ids.second).name;
        const std::string key = base::format("exchanged {} {}", first, second);
        const Apart apart = pair.apart();
        if (!are_exchanged(apart) || !names.is_one_input(first) || !names.is_one_input(second)) {
            firing_.clear(key, sink);
            continue;
        }
        model::Finding finding;
        finding.key = key;
        finding.mode = model::Mode::kEval;
        finding.severity = may_be_worse(ratio) ? model::Severity::kWarning : model::Severity::kInfo;
        finding.tensor = first;
        finding.message = base::format(
            "{} and {} are exchanged in evaluation: the mean of the first less that of the second is {} in "
            "training and {} in evaluation, and of their standard deviations it is {} and {}. With the two "
            "the other way round, all that was compared is alike.",
            first, second, base::human_number(mean_of(pair.means.values())),
            base::human_number(pair.evaluated_mean / pair.evaluated_rows),
            base::human_number(mean_of(pair.stds.values())),
            base::human_number(pair.evaluated_std / pair.evaluated_rows));
        if (ratio)
            finding.message +=
                base::format(" The evaluation's loss is {:.3g} times that of the training.", *ratio);
        finding.fix =
            "Call the model in one way in training and evaluation: by the names of its arguments, as in "
            "model(before=batch[\"before\"], after=batch[\"after\"]), not by the order of a dictionary.";
        finding.evidence = {{"squared distance, in standard errors", apart.as_they_are,
                             "with inputs exchanged", apart.exchanged}};
        finding.plots = {{first, "mean"}, {second, "mean"}};
        firing_.fire(std::move(finding), sink);
    }
    return judged;
}

}  // namespace traindbg::rules
