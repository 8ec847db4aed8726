#include "traindbg/capture/budget.h"

#include <algorithm>

namespace traindbg::capture {
namespace {

constexpr double kEarningNanos = 10e9;

}  // namespace

Budget::Budget(double share) noexcept : share_(share), balance_(share * kEarningNanos) {}

void Budget::account(std::uint64_t step_nanos, std::uint64_t cost_nanos) noexcept {
    const auto cost = static_cast<double>(cost_nanos);
    // The first step's time is not known.
    const double own = std::max(static_cast<double>(step_nanos) - cost, 0.0);
    own_ += own;
    cost_ += cost;
    balance_ = std::min(balance_ + own * share_, share_ * kEarningNanos) - cost;
}

}  // namespace traindbg::capture
