#include "traindbg/rules/weighted_drawing.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/class_facts.h"
#include "traindbg/rules/class_tally.h"
#include "traindbg/rules/weight_laws.h"

namespace traindbg::rules {

void WeightedDrawing::observe(const model::StepView& step) {
    read_numbered(step, "drawn_weight", weights_);
    read_numbered(step, "drawn_weight_rows", rows_);
}

void WeightedDrawing::judge(const std::vector<double>& labels, std::string_view tensor, FindingSink& sink) {
    if (weights_.size() < 2 || weights_.size() != rows_.size()) return;
    if (std::accumulate(labels.begin(), labels.end(), 0.0) < kFewestDrawn) return;
    if (are_weights_turned(weights_, rows_, {.logarithm = kNear, .errors = kErrors}) &&
        are_drawn_by_weight(weights_, rows_, labels))
        say(tensor, sink);
    else firing_.clear(kDrawing, sink);
}

void WeightedDrawing::say(std::string_view tensor, FindingSink& sink) {
    const std::size_t most = most_frequent(rows_);
    const auto least =
        static_cast<std::size_t>(std::distance(rows_.begin(), std::min_element(rows_.begin(), rows_.end())));
    double all = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) all += weights_[i] * rows_[i];
    const double rows = std::accumulate(rows_.begin(), rows_.end(), 0.0);
    model::Finding finding;
    finding.key = kDrawing;
    finding.tensor = tensor;
    finding.plots = {{"loss", "value"}};
    finding.severity = model::Severity::kWarning;
    finding.first_step = 0;
    finding.message = base::format(
        "The sampler draws frequent classes more often still: rows of the most frequent one, {:.1f} % of the "
        "data, have a weight of {}, those of the rarest, {:.2g} %, one of {}. They are {:.1f} and {:.2g} % "
        "of what is drawn.",
        100 * rows_[most] / rows, base::human_number(weights_[most]), 100 * rows_[least] / rows,
        base::human_number(weights_[least]), 100 * weights_[most] * rows_[most] / all,
        100 * weights_[least] * rows_[least] / all);
    finding.fix =
        "WeightedRandomSampler takes a weight for each row, which is to make up for the counts: "
        "(1 / counts)[labels], not the counts or shares themselves.";
    finding.evidence = {{"weight of the most frequent class / of the rarest one",
                         weights_[most] / weights_[least], "limit", 1.5},
                        {"rows of the one / of the other", rows_[most] / rows_[least], "", 0}};
    firing_.fire(std::move(finding), sink);
}

bool are_drawn_by_weight(const std::vector<double>& weights, const std::vector<double>& rows,
                         std::vector<double> labels) {
    constexpr double kErrorsOfDrawn = 4;  // standard errors of what is drawn of a class
    const double drawn = std::accumulate(labels.begin(), labels.end(), 0.0);
    std::vector<double> expected;
    for (std::size_t i = 0; i < rows.size(); ++i) expected.push_back(weights[i] * rows[i]);
    const double all = std::accumulate(expected.begin(), expected.end(), 0.0);
    std::sort(expected.rbegin(), expected.rend());
    std::sort(labels.rbegin(), labels.rend());
    const std::size_t classes = std::max(labels.size(), expected.size());
    labels.resize(classes, 0);
    expected.resize(classes, 0);
    for (std::size_t i = 0; i < classes; ++i) {
        const double share = expected[i] / all;
        const double error = std::sqrt(drawn * share * (1 - share));
        if (std::abs(labels[i] - drawn * share) > kErrorsOfDrawn * std::max(error, share > 0 ? 1.0 : 0.0))
            return false;
    }
    return true;
}

}  // namespace traindbg::rules
