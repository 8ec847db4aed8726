#include "traindbg/rules/own_statistics.h"

#include <array>
#include <string_view>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_ratio.h"

namespace traindbg::rules {

bool OwnStatistics::observe(const model::StepView& step) {
    const auto columns = loop_fact(step, "own_columns"), of = loop_fact(step, "own_columns_of"),
               values = loop_fact(step, "own_columns_values");
    if (columns && of && values && columns->value > columns_.standardised)
        columns_ = {columns->value, of->value, values->value, step.step()};
    constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kRows = {
        {{"rows_evaluated", "rows_evaluated_trained"}, {"rows_unscored", "rows_unscored_trained"}}};
    for (const auto& [rows, those_trained] : kRows) {
        const auto all = loop_fact(step, rows), trained = loop_fact(step, those_trained);
        if (!all || !trained || !(all->value > 0)) continue;
        // Of two sets that are evaluated in turn it is not known which one is standardised.
        is_training_evaluated_ = is_training_evaluated_ || trained->value > kMostKnown * all->value;
    }
    return columns.has_value();
}

bool OwnStatistics::judge(const std::optional<double>& ratio, FindingSink& sink) {
    if (columns_.standardised < kFewest) return false;
    if (is_training_evaluated_) {
        firing_.clear(kKey, sink);
        return true;
    }
    model::Finding finding;
    finding.key = kKey;
    finding.severity = is_worse(ratio) ? model::Severity::kWarning : model::Severity::kInfo;
    finding.first_step = columns_.step;
    finding.tensor = "input/0";
    finding.message = base::format(
        "What is evaluated was standardised by itself: of its {:.0f} columns, each with {:.0f} values, "
        "{:.0f} have a mean of 0 and a standard deviation of 1 to the last digits, which no part of the data "
        "has that the scaler was not fitted to.",
        columns_.of, columns_.values, columns_.standardised);
    if (ratio)
        finding.message +=
            base::format(" The evaluation's loss is {:.3g} times that of the training.", *ratio);
    finding.fix =
        "Fit mean and standard deviation to the training part alone and apply them to every other one: "
        "scaler.transform(x_val), not fit_transform.";
    finding.evidence.push_back({"standardised columns", columns_.standardised, "columns", columns_.of});
    if (ratio)
        finding.evidence.push_back({"evaluation loss, as a multiple", *ratio, "limit", LossRatio::kWorse});
    firing_.fire(std::move(finding), sink);
    return true;
}

}  // namespace traindbg::rules
