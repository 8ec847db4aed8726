// Statistics that a few wild values do not move: what rules compare a training's numbers with.
//
// All take the values they are given as they are: the caller leaves out what is not finite.
// Thread-safety: pure functions; the classes are for one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traindbg/model/step.h"

namespace traindbg::rules {

// 0 for no values.
[[nodiscard]] double median(std::vector<double> values);
// The plain mean; 0 for no values.
[[nodiscard]] double mean_of(std::span<const double> values);
// Standard deviation of the noise around a slowly moving level: from the differences of neighbours
// (median absolute difference, scaled to a normal distribution), so that a trend does not count.
[[nodiscard]] double noise_of(std::span<const double> series);
// Mann-Kendall test of a trend: about standard normal when there is none, below -3 when the series
// falls almost surely, above 3 when it rises. 0 for fewer than 4 values. Cost: n²/2 comparisons.
// Source: Mann, "Nonparametric tests against trend", Econometrica 13 (1945).
[[nodiscard]] double trend_z(std::span<const double> series);

// The last `size` values of a series.
class Recent {
  public:
    explicit Recent(std::size_t size) : size_(size) {}
    void add(double value) {
        if (values_.size() == size_) values_.erase(values_.begin());
        values_.push_back(value);
    }
    void clear() noexcept { values_.clear(); }
    [[nodiscard]] bool full() const noexcept { return values_.size() == size_; }
    [[nodiscard]] std::span<const double> values() const noexcept { return values_; }
    // The newest `count`, or all that there are.
    [[nodiscard]] std::span<const double> last(std::size_t count) const noexcept {
        const std::span<const double> all(values_);
        return all.size() <= count ? all : all.last(count);
    }

  private:
    std::size_t size_;
    std::vector<double> values_;
};

// A series of any length as at most `kMost` means of equally many neighbours each: when it is full,
// neighbours are merged. Memory does not grow with the run.
class Blocks {
  public:
    static constexpr std::size_t kMost = 128;

    void add(double value);
    // Means of the whole blocks, oldest first. An unfinished block is left out.
    [[nodiscard]] std::span<const double> means() const noexcept { return means_; }
    [[nodiscard]] std::uint64_t values_per_block() const noexcept { return per_block_; }

  private:
    std::vector<double> means_;
    std::uint64_t per_block_ = 1;
    double open_sum_ = 0;
    std::uint64_t open_count_ = 0;
};

}  // namespace traindbg::rules
