#include "traindbg/rules/class_tally.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

namespace traindbg::rules {

void ClassTally::add(const model::ClassCounts& counts, double in_batch) {
    const std::size_t classes = counts.labels.size();
    if (labels_.size() < classes) {
        labels_.resize(classes);
        recent_.resize(classes);
        predicted_.resize(classes);
        hits_.resize(classes);
    }
    // An exponential window of about kWindow labels.
    const double keep = std::max(0.0, 1 - in_batch / kWindow);
    double entropy = 0;
    for (std::size_t i = 0; i < classes; ++i) {
        const double label = counts.labels[i];
        labels_[i] += label;
        recent_[i] = recent_[i] * keep + label;
        predicted_[i] = predicted_[i] * keep + counts.predictions[i];
        hits_[i] = hits_[i] * keep + counts.hits[i];
        if (label > 0) entropy -= label / in_batch * std::log(label / in_batch);
    }
    total_ += in_batch;
    if (in_batch >= kLabelsOfBatch) {
        ++batches_;
        batch_entropy_ += entropy;
    }
}

std::size_t ClassTally::seen() const {
    return static_cast<std::size_t>(
        std::count_if(labels_.begin(), labels_.end(), [](double n) { return n > 0; }));
}

double ClassTally::entropy() const {
    double sum = 0;
    for (const double n : labels_)
        if (n > 0) sum -= n / total_ * std::log(n / total_);
    return sum;
}

std::vector<double> ClassTally::shares_found() const {
    std::vector<double> shares(recent_.size(), 0);
    for (std::size_t i = 0; i < recent_.size(); ++i)
        if (recent_[i] > 0) shares[i] = hits_[i] / recent_[i];
    return shares;
}

double ClassTally::agreement() const {
    const double all = std::accumulate(recent_.begin(), recent_.end(), 0.0);
    const double predicted = std::accumulate(predicted_.begin(), predicted_.end(), 0.0);
    const double hits = std::accumulate(hits_.begin(), hits_.end(), 0.0);
    double by_chance = 0;
    for (std::size_t i = 0; i < recent_.size(); ++i)
        by_chance += recent_[i] / all * predicted_[i] / predicted;
    return by_chance < 1 ? (hits / all - by_chance) / (1 - by_chance) : 0;
}

std::size_t most_frequent(const std::vector<double>& labels) {
    return static_cast<std::size_t>(
        std::distance(labels.begin(), std::max_element(labels.begin(), labels.end())));
}

}  // namespace traindbg::rules
