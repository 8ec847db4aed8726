#include "traindbg/capture/budget.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace traindbg::capture {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

// Steps of 10 ms of the training's own and, where they are not left out, 5 ms of capture; what capture took.
struct Outcome {
    double own = 0;
    double cost = 0;
    int taken = 0;
};
Outcome train(Budget& budget, int steps) {
    Outcome out;
    for (int i = 0; i < steps; ++i) {
        const std::uint64_t cost = budget.is_overdrawn() ? 0 : 5 * kMillisecond;
        budget.account(10 * kMillisecond + cost, cost);
        out.own += 10;
        out.cost += static_cast<double>(cost) / kMillisecond;
        out.taken += cost != 0;
    }
    return out;
}

TEST(Budget, WithoutAShareNothingIsLimited) { EXPECT_FALSE(Budget(0).is_limited()); }

TEST(Budget, KeepsTheCostWithinItsShareFromTheBeginning) {
    for (const double share : {0.001, 0.02, 0.3}) {
        Budget budget(share);
        EXPECT_TRUE(budget.is_limited());
        Outcome all;
        for (int i = 0; i < 100; ++i) {
            const Outcome some = train(budget, 100);
            all.own += some.own;
            all.cost += some.cost;
            EXPECT_LE(all.cost, share * (all.own + 10'000) + 5) << share << " after " << all.own << " ms";
        }
        EXPECT_GE(all.cost, share * all.own - 5) << "all that was earned is used";
        EXPECT_NEAR(budget.spent(), all.cost / all.own, 1e-9);
    }
}

TEST(Budget, BeginsWithWhatTenSecondsEarn) {
    Budget budget(0.02);
    EXPECT_GE(train(budget, 45).taken, 40) << "200 ms, 5 ms each, and what was earned meanwhile";
    EXPECT_TRUE(budget.is_overdrawn());
}

TEST(Budget, SavesNoMoreThanTenSecondsEarn) {
    Budget budget(0.02);
    budget.account(3'600'000 * kMillisecond, 0);  // an hour in which nothing was due
    const Outcome after = train(budget, 1000);
    EXPECT_LE(after.cost, 0.02 * (after.own + 10'000) + 5);
}

TEST(Budget, WhatCostsLessThanItsShareIsNeverLeftOut) {
    Budget budget(0.6);
    EXPECT_EQ(train(budget, 10'000).taken, 10'000);
}

TEST(Budget, AStepWhoseTimeIsNotKnownEarnsNothing) {
    Budget budget(0.5);
    budget.account(0, 6'000 * kMillisecond);
    EXPECT_TRUE(budget.is_overdrawn());
    EXPECT_EQ(budget.spent(), 0);
}

}  // namespace
}  // namespace traindbg::capture
