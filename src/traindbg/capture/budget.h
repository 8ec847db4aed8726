// Keeps what capture costs within a share of the training's time.
//
// An account: time that the training's steps take without capture earns `share` of itself, capture is paid
// from it. A step that is due is left out while the account is overdrawn, so that of an interval as many
// steps are taken as can be paid for. The account holds what one second earns, and begins with that: rules
// look at every step where trainings begin, and from the tenth second on a run has cost at most a tenth more
// than its share. So of any part of a run, of length T, capture costs at most `share` of T and of one second,
// and the one step that overdrew the account.
//
// What capture costs is told in two ways, and what is more in all is paid:
//   - by what was measured inside of capture (`cost_nanos`);
//   - by what is felt: how much longer steps take that were looked at than those around them that were not.
//     A framework that is listened to is slower, and no clock of ours runs then.
// One step's time tells nothing, since the training may have read a file in it. So it is compared with the
// median of the last steps that were not looked at, and paid is the median of the last differences of steps
// of its kind. A step that is no whole one (after an evaluation), and the first few, are compared with
// nothing. Where every step is looked at, one of many is left out to have something to compare with.
//
// The standing limit is a budget with an account that holds three seconds more at the beginning, once. It is
// for trainings that nobody set a budget for: of a short one, and where a training begins, everything is
// looked at; a long one of a small network, whose steps take less than what rules look at in them, is not
// slowed by more than anybody would notice. It goes by what was measured alone: what is felt of a hundred
// steps of a second each is more than that by chance.
//
// Threads: one at a time. Cost: some hundred nanoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "traindbg/capture/recent_median.h"

namespace traindbg::capture {

// A step that is over, as a budget sees it.
struct StepCost {
    std::uint64_t nanos = 0;       // since the end of the step before; 0: not known
    std::uint64_t cost_nanos = 0;  // of these, inside of capture
    // What was looked at: a number that steps have in common which cost alike. 0: nothing that costs.
    std::uint32_t looked_at = 0;
    bool is_whole = true;  // a training step and nothing else
};

inline constexpr double kStandingShare = 0.02;
inline constexpr double kStandingFreeNanos = 3e9;

class Budget {
  public:
    // `share`: from 0, no limit, to below 1.
    explicit Budget(double share) noexcept;
    // Of a share, or the standing limit.
    [[nodiscard]] static Budget of(const std::optional<double>& share) noexcept;

    [[nodiscard]] bool is_limited() const noexcept { return share_ > 0; }
    void account(const StepCost& step) noexcept;
    // At least so much may be taken from now on.
    void grant(double nanos) noexcept;
    // Whether the next step is to do without what can be left out.
    [[nodiscard]] bool is_overdrawn() const noexcept { return balance() < 0; }
    // Whether the next training step is to do so only to be compared with.
    [[nodiscard]] bool wants_comparison() const noexcept;
    [[nodiscard]] double share() const noexcept { return share_; }
    // What capture took so far of the time that steps take without; 0 before there was any.
    [[nodiscard]] double spent() const noexcept;

  private:
    static constexpr std::size_t kRecent = 15;
    static constexpr std::size_t kFew = 3;  // numbers from which on a median says something
    static constexpr std::size_t kMostKinds = 8;

    struct Account {
        double balance = 0;  // nanoseconds
        double cost = 0;     // of all steps
    };
    // Steps at which the same was looked at.
    struct Kind {
        std::uint32_t looked_at = 0;
        RecentMedian<kFew> alone;          // times of the last ones before there was anything to compare with
        RecentMedian<kRecent> difference;  // from what is typical
        std::uint64_t unpaid = 0;          // steps before the difference was known
    };

    [[nodiscard]] double balance() const noexcept {
        return is_standing_ ? measured_.balance : std::min(measured_.balance, felt_.balance);
    }
    [[nodiscard]] Kind& kind_of(std::uint32_t looked_at) noexcept;
    void learn_typical(double nanos) noexcept;
    void compare(Kind& kind, double nanos) noexcept;
    // What a step of this kind costs beside what was measured, those before it that were not paid included.
    [[nodiscard]] double unmeasured(Kind& kind, double nanos, bool is_comparable) noexcept;
    // Nanoseconds of a step that earn: of one that was looked at no more than without.
    [[nodiscard]] double most_earned(bool is_looked_at) const noexcept;
    void pay(Account& account, double earned, double cost) const noexcept;

    double share_;
    bool is_standing_ = false;
    Account measured_;
    Account felt_;
    double own_ = 0;                 // nanoseconds of the training that earned
    RecentMedian<kRecent> typical_;  // of steps at which nothing was looked at
    std::array<Kind, kMostKinds> kinds_{};
    std::uint64_t whole_steps_ = 0;
    std::uint64_t looked_at_since_ = 0;   // whole steps since the last one at which nothing was looked at
    std::uint64_t left_out_in_vain_ = 0;  // steps that were to be compared with, and could not be
};

}  // namespace traindbg::capture
