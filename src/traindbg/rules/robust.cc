#include "traindbg/rules/robust.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace traindbg::rules {

double median(std::vector<double> values) {
    if (values.empty()) return 0;
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    const double upper = *middle;
    if (values.size() % 2 == 1) return upper;
    const double lower = *std::max_element(values.begin(), middle);
    return lower + (upper - lower) / 2;
}

double mean_of(std::span<const double> values) {
    if (values.empty()) return 0;
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double noise_of(std::span<const double> series) {
    if (series.size() < 3) return 0;
    std::vector<double> steps;
    steps.reserve(series.size() - 1);
    for (std::size_t i = 1; i < series.size(); ++i) steps.push_back(std::abs(series[i] - series[i - 1]));
    // A difference of two values is sqrt(2) as noisy as one; 1.4826 turns a median absolute
    // deviation into a standard deviation.
    return 1.4826 * median(std::move(steps)) / std::sqrt(2.0);
}

double trend_z(std::span<const double> series) {
    const std::size_t n = series.size();
    if (n < 4) return 0;
    double balance = 0;
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = i + 1; j < n; ++j)
            balance += series[j] > series[i] ? 1.0 : series[j] < series[i] ? -1.0 : 0.0;
    const auto size = static_cast<double>(n);
    const double spread = std::sqrt(size * (size - 1) * (2 * size + 5) / 18);
    if (balance > 0) return (balance - 1) / spread;
    if (balance < 0) return (balance + 1) / spread;
    return 0;
}

void Blocks::add(double value) {
    open_sum_ += value;
    if (++open_count_ < per_block_) return;
    if (means_.size() == kMost) {
        for (std::size_t i = 0; i < kMost / 2; ++i) means_[i] = means_[2 * i] / 2 + means_[2 * i + 1] / 2;
        means_.resize(kMost / 2);
        per_block_ *= 2;
        // The value that did not fit begins the first block of the new size.
        return;
    }
    means_.push_back(open_sum_ / static_cast<double>(open_count_));
    open_sum_ = 0;
    open_count_ = 0;
}

}  // namespace traindbg::rules
