// The median of the last few numbers: what is typical, whatever one of them was.
//
// Plain value, no allocation. Cost: about a hundred nanoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace traindbg::capture {

template <std::size_t kSize>
class RecentMedian {
  public:
    void add(double number) noexcept {
        numbers_[next_] = number;
        next_ = (next_ + 1) % kSize;
        count_ = std::min(count_ + 1, kSize);
    }
    // How many numbers it is the median of.
    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    // Of an even count the upper one of the two in the middle; 0 of none.
    [[nodiscard]] double median() const noexcept {
        if (count_ == 0) return 0;
        std::array<double, kSize> sorted = numbers_;
        const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(count_ / 2);
        std::nth_element(sorted.begin(), middle, sorted.begin() + static_cast<std::ptrdiff_t>(count_));
        return *middle;
    }
    // Calls `visit` with each number.
    template <typename Visit>
    void for_each(const Visit& visit) const noexcept {
        for (std::size_t i = 0; i < count_; ++i) visit(numbers_[i]);
    }

  private:
    std::array<double, kSize> numbers_{};
    std::size_t next_ = 0;
    std::size_t count_ = 0;
};

}  // namespace traindbg::capture
