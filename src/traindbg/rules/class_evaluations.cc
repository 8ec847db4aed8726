#include "traindbg/rules/class_evaluations.h"

#include <algorithm>
#include <utility>

namespace traindbg::rules {

void ClassEvaluations::observe(const model::StepView& step, std::string_view tensor, model::StepIndex last) {
    // What it did not know then it may know by now.
    if (last > 2 * since_ + kFewestToForget) {
        recent_ = {};
        since_ = last;
    }
    if (const model::StepIndex done = last + 1; done != latest_.after) {
        before_ = std::exchange(latest_, {});
        latest_.after = done;
    }
    for (const model::ClassSample& sample : step.record->classes) {
        if (step.info(sample.tensor).name != tensor) continue;
        latest_.add(sample.counts);
        double in_batch = 0;
        for (const std::uint32_t label : sample.counts.labels) in_batch += label;
        recent_.add(sample.counts, in_batch);
    }
}

void ClassEvaluations::Evaluation::add(const model::ClassCounts& counts) {
    labels.resize(std::max(labels.size(), counts.labels.size()));
    hits.resize(labels.size());
    for (std::size_t i = 0; i < counts.labels.size(); ++i) {
        labels[i] += counts.labels[i];
        hits[i] += counts.hits[i];
    }
}

std::optional<double> ClassEvaluations::Evaluation::share(std::size_t number) const {
    if (number >= labels.size() || labels[number] == 0) return std::nullopt;
    return hits[number] / labels[number];
}

}  // namespace traindbg::rules
