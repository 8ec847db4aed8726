#include "traindbg/capture/budget.h"

#include <algorithm>
#include <limits>

namespace traindbg::capture {
namespace {

constexpr double kEarningNanos = 1e9;
// The first steps of a training allocate, compile and choose algorithms.
constexpr std::uint64_t kFirstSteps = 2;
// Steps that are looked at one after the other until one of them is left out, to be compared with.
constexpr std::uint64_t kUntilFirstComparison = 16;
constexpr std::uint64_t kUntilNextComparison = 64;
// A step that took longer than so many typical ones was waiting for something: an evaluation, a checkpoint.
constexpr double kMostTypical = 4;

}  // namespace

Budget::Budget(double share) noexcept
    : share_(share), measured_{share * kEarningNanos}, felt_{share * kEarningNanos} {}

Budget Budget::of(const std::optional<double>& share) noexcept {
    Budget out(share.value_or(kStandingShare));
    out.is_standing_ = !share;
    if (out.is_standing_) out.grant(out.measured_.balance + kStandingFreeNanos);
    return out;
}

void Budget::grant(double nanos) noexcept {
    for (Account* account : {&measured_, &felt_}) account->balance = std::max(account->balance, nanos);
}

bool Budget::wants_comparison() const noexcept {
    if (!is_limited() || is_standing_) return false;
    if (typical_.count() < kFew) return whole_steps_ >= kFirstSteps + kUntilFirstComparison;
    return looked_at_since_ >= kUntilNextComparison;
}

double Budget::spent() const noexcept {
    if (!(own_ > 0)) return 0;
    return (is_standing_ ? measured_.cost : std::max(measured_.cost, felt_.cost)) / own_;
}

Budget::Kind& Budget::kind_of(std::uint32_t looked_at) noexcept {
    for (Kind& kind : kinds_) {
        if (kind.looked_at == 0) kind.looked_at = looked_at;
        if (kind.looked_at == looked_at) return kind;
    }
    return kinds_.back();  // more kinds than trainings have
}

void Budget::learn_typical(double nanos) noexcept {
    looked_at_since_ = left_out_in_vain_ = 0;
    typical_.add(nanos);
    if (typical_.count() != kFew) return;
    for (Kind& kind : kinds_) {
        kind.alone.for_each([&](double alone) { compare(kind, alone); });
        kind.alone = {};
    }
}

void Budget::compare(Kind& kind, double nanos) noexcept {
    const double typical = typical_.median();
    if (nanos <= kMostTypical * typical) kind.difference.add(nanos - typical);
}

double Budget::unmeasured(Kind& kind, double nanos, bool is_comparable) noexcept {
    if (is_comparable && typical_.count() >= kFew) compare(kind, nanos);
    else if (is_comparable) kind.alone.add(nanos);
    ++kind.unpaid;
    if (kind.difference.count() < kFew) return 0;
    // Steps that were slow by chance, all of them, would else be paid for until the training is over.
    const double each = std::min(kind.difference.median(), typical_.median());
    const double all = each * static_cast<double>(kind.unpaid);
    kind.unpaid = 0;
    return all;
}

double Budget::most_earned(bool is_looked_at) const noexcept {
    if (typical_.count() < kFew) return std::numeric_limits<double>::infinity();
    return (is_looked_at ? 1 : kMostTypical) * typical_.median();
}

void Budget::pay(Account& account, double earned, double cost) const noexcept {
    account.cost += cost;
    const double most = std::max(account.balance, share_ * kEarningNanos);
    account.balance = std::min(account.balance + earned * share_, most) - cost;
}

void Budget::account(const StepCost& step) noexcept {
    const auto cost = static_cast<double>(step.cost_nanos);
    // The first step's time is not known.
    const double nanos = std::max(static_cast<double>(step.nanos) - cost, 0.0);
    if (step.is_whole && step.nanos != 0) ++whole_steps_;
    const bool is_comparable = step.is_whole && step.nanos != 0 && whole_steps_ > kFirstSteps;
    double more = 0;
    if (step.looked_at != 0) {
        if (is_comparable) ++looked_at_since_;
        more = unmeasured(kind_of(step.looked_at), nanos, is_comparable);
    } else if (is_comparable) {
        learn_typical(nanos);
    } else if (wants_comparison() && ++left_out_in_vain_ >= kFew) {
        // An evaluation follows every step now, say: steps are not left out for ever to no use.
        left_out_in_vain_ = looked_at_since_ = 0;
        whole_steps_ = std::min(whole_steps_, kFirstSteps);
    }
    const double earned = std::min(nanos, most_earned(step.looked_at != 0));
    own_ += earned;
    pay(measured_, earned, cost);
    pay(felt_, earned, cost + more);
}

}  // namespace traindbg::capture
