// Keeps what capture costs within a share of the training's time.
//
// An account: time that the training spends on its own earns `share` of itself, capture is paid from it. A
// step that is due is left out while the account is overdrawn, so that of an interval as many steps are
// taken as can be paid for. The account holds what ten seconds earn, and begins with that: trainings go
// wrong most at their beginning, where rules look at every step. So over a run of length T capture costs at
// most `share` of T and of ten seconds, and the one step that overdrew the account.
//
// Threads: one at a time. Cost: some nanoseconds.
#pragma once

#include <cstdint>

namespace traindbg::capture {

class Budget {
  public:
    // `share`: from 0, no limit, to below 1.
    explicit Budget(double share) noexcept;

    [[nodiscard]] bool is_limited() const noexcept { return share_ > 0; }
    // A step is over that took `step_nanos`, `cost_nanos` of them for capture.
    void account(std::uint64_t step_nanos, std::uint64_t cost_nanos) noexcept;
    // Whether the next step is to do without what can be left out.
    [[nodiscard]] bool is_overdrawn() const noexcept { return balance_ < 0; }
    [[nodiscard]] double share() const noexcept { return share_; }
    // What capture took so far of the time that the training spent on its own; 0 before there was any.
    [[nodiscard]] double spent() const noexcept { return own_ > 0 ? cost_ / own_ : 0; }

  private:
    double share_;
    double balance_;  // nanoseconds
    double own_ = 0;  // of the training
    double cost_ = 0;
};

}  // namespace traindbg::capture
