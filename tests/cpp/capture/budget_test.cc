#include "traindbg/capture/budget.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <optional>

namespace traindbg::capture {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;

// What a training is like: how long its steps take without capture, what capture takes of a step that is
// looked at as far as it measures itself, and beside that. Milliseconds.
struct SteppedTraining {
    double own = 10;
    double measured = 5;
    double beside = 0;
    // Of this step something else: a file that was read in it, say.
    std::function<double(int step)> also = [](int) { return 0.0; };
    std::uint32_t looked_at = 1;
    int every = 1;

    int step = 0;
    double time = 0;  // without capture
    double cost = 0;  // all that capture took
    int taken = 0;

    void run(Budget& budget, int steps) {
        for (const int end = step + steps; step < end; ++step) {
            const bool is_taken = step % every == 0 && !budget.is_overdrawn() && !budget.wants_comparison();
            const double inside = is_taken ? measured : 0;
            const double outside = own + also(step) + (is_taken ? beside : 0);
            budget.account({.nanos = nanos(inside + outside),
                            .cost_nanos = nanos(inside),
                            .looked_at = is_taken ? looked_at : 0});
            time += own + also(step);
            cost += is_taken ? measured + beside : 0;
            taken += is_taken ? 1 : 0;
        }
    }

  private:
    static std::uint64_t nanos(double milliseconds) {
        return static_cast<std::uint64_t>(milliseconds * static_cast<double>(kMillisecond));
    }
};

TEST(Budget, WithoutAShareNothingIsLimited) {
    Budget budget(0);
    EXPECT_FALSE(budget.is_limited());
    SteppedTraining().run(budget, 1000);
    EXPECT_FALSE(budget.wants_comparison());
}

TEST(Budget, KeepsTheCostWithinItsShareFromTheBeginning) {
    for (const double share : {0.001, 0.02, 0.3}) {
        for (const double beside : {0.0, 0.5, 8.0}) {
            Budget budget(share);
            EXPECT_TRUE(budget.is_limited());
            SteppedTraining training{.beside = beside};
            const double one = training.measured + beside;
            for (int i = 0; i < 100; ++i) {
                training.run(budget, 100);
                // The first ones are taken before it is known what they cost.
                EXPECT_LE(training.cost, share * (training.time + 1'000) + one + 5 * beside)
                    << share << " and " << beside << " after " << training.time << " ms";
            }
            EXPECT_GE(training.cost, share * training.time - one) << "all that was earned is used";
            EXPECT_NEAR(budget.spent(), training.cost / training.time, 0.02 * budget.spent());
        }
    }
}

TEST(Budget, TheStandingLimitIsFreeForThreeSecondsOfCaptureAndHoldsFromThenOn) {
    Budget budget = Budget::of(std::nullopt);
    SteppedTraining training;
    training.run(budget, 600);
    EXPECT_EQ(training.taken, 600) << "three seconds, and nothing is left out to be compared with";
    for (int i = 0; i < 100; ++i) {
        training.run(budget, 1'000);
        EXPECT_LE(training.cost, 3'000 + 0.02 * (training.time + 1'000) + 5);
    }
    EXPECT_GE(training.cost, 3'000 + 0.02 * training.time - 100) << "all that was earned is used";
    // What was free is free once.
    SteppedTraining quiet{.every = 1'000'000};
    quiet.step = 1;
    quiet.run(budget, 100'000);
    SteppedTraining again;
    again.run(budget, 1'000);
    EXPECT_LE(again.cost, 0.02 * (again.time + 1'000) + 5);
}

TEST(Budget, TheStandingLimitGoesByWhatWasMeasuredAlone) {
    Budget budget = Budget::of(std::nullopt);
    SteppedTraining slow{.own = 500, .measured = 5, .beside = 400, .every = 4};
    slow.run(budget, 10'000);
    EXPECT_EQ(slow.taken, 2'500) << "what others do on the machine is not capture's";
    EXPECT_NEAR(budget.spent(), 5.0 / 500 / 4, 0.001);
}

TEST(Budget, WhatIsGrantedMayBeTakenHoweverMuchWentBefore) {
    Budget budget = Budget::of(std::nullopt);
    SteppedTraining training;
    training.run(budget, 5'000);
    ASSERT_TRUE(budget.is_overdrawn());
    budget.grant(250 * double{kMillisecond});
    SteppedTraining next;
    next.run(budget, 50);
    EXPECT_EQ(next.taken, 50);
    next.run(budget, 1'000);
    EXPECT_LT(next.taken, 50 + 1'000 / 5);
    // Who has more keeps it.
    Budget fresh = Budget::of(std::nullopt);
    fresh.grant(1);
    SteppedTraining first;
    first.run(fresh, 500);
    EXPECT_EQ(first.taken, 500);
}

TEST(Budget, BeginsWithWhatOneSecondEarns) {
    Budget budget(0.02);
    SteppedTraining training;
    training.run(budget, 10);
    EXPECT_EQ(training.taken, 5) << "20 ms, 5 ms each, and the one that overdraws the account";
    EXPECT_TRUE(budget.is_overdrawn());
}

TEST(Budget, SavesNoMoreThanOneSecondEarns) {
    Budget budget(0.02);
    SteppedTraining quiet{.every = 1'000'000};
    quiet.step = 1;
    quiet.run(budget, 10'000);  // in which nothing was due
    SteppedTraining training;
    training.run(budget, 1000);
    EXPECT_LE(training.cost, 0.02 * (training.time + 1'000) + 5);
}

TEST(Budget, WhatCostsLessThanItsShareIsLeftOutOnlyToBeComparedWith) {
    Budget budget(0.7);
    SteppedTraining training{.beside = 1};
    training.run(budget, 10'000);
    EXPECT_GE(training.taken, 10'000 * 64 / 65 - 3);
    EXPECT_LE(training.taken, 10'000 * 64 / 65 + 3);
    EXPECT_FALSE(budget.is_overdrawn());
    EXPECT_NEAR(budget.spent(), training.cost / training.time, 0.01);
}

TEST(Budget, WhereOtherStepsAreNotDueNothingIsLeftOutToBeComparedWith) {
    Budget budget(0.7);
    SteppedTraining training{.beside = 1, .every = 10};
    training.run(budget, 10'000);
    EXPECT_EQ(training.taken, 1'000);
}

TEST(Budget, APauseIsNeitherPaidForNorEarnsAnything) {
    SteppedTraining even{.every = 10};
    Budget budget(0.02);
    even.run(budget, 1'000);
    // Five seconds of something else in each step that is due, and in each fiftieth of the others. Only what
    // is there before it is known what is typical may be earned: a second's worth, which pays four steps.
    for (const int place : {0, 1}) {
        SteppedTraining waits{
            .also = [&](int step) { return step % (place == 0 ? 10 : 50) == place ? 5'000.0 : 0.0; },
            .every = 10};
        Budget other(0.02);
        waits.run(other, 1'000);
        EXPECT_GE(waits.taken, even.taken) << place;
        EXPECT_LE(waits.taken, even.taken + 8) << place;
    }
}

TEST(Budget, SlowFirstStepsAreNotPaidFor) {
    for (const double measured : {0.5, 5.0, 20.0}) {
        SteppedTraining even{.measured = measured};
        Budget budget(0.02);
        even.run(budget, 2'000);
        for (const double longer : {25.0, 2'000.0}) {
            SteppedTraining slow{.measured = measured,
                                 .also = [&](int step) { return step < 2 ? longer : 0.0; }};
            Budget other(0.02);
            slow.run(other, 2'000);
            EXPECT_GE(slow.taken, even.taken) << measured << " and " << longer;
        }
    }
}

TEST(Budget, StepsThatWereSlowByChanceWhileTheyWereLookedAtAreNotPaidForAgainAndAgain) {
    SteppedTraining training{.measured = 0.5, .also = [](int step) { return step < 18 ? 25.0 : 0.0; }};
    Budget budget(0.02);
    training.run(budget, 18);
    EXPECT_EQ(training.taken, 18) << "0.5 ms each, while there was nothing to compare them with";
    training.run(budget, 5'000);
    EXPECT_GE(training.taken, 18 + 1'400) << "of 2'000 that the time pays";
}

TEST(Budget, AfterAPhaseOfOtherStepsItGoesByThose) {
    Budget budget(0.1);
    SteppedTraining training{.measured = 1, .beside = 1, .every = 5};
    training.run(budget, 500);
    EXPECT_EQ(training.taken, 100) << "4 % of the time";
    training.own = 40;  // longer sequences, say
    training.run(budget, 500);
    training.own = 10;
    training.run(budget, 500);
    EXPECT_EQ(training.taken, 300);
    EXPECT_NEAR(budget.spent(), training.cost / training.time, 0.1 * budget.spent());
}

TEST(Budget, AStepThatIsNoWholeOneIsComparedWithNothing) {
    Budget budget(0.02);
    for (int i = 0; i < 100; ++i) {
        budget.account({.nanos = 10 * kMillisecond});
        // An evaluation was in between.
        budget.account({.nanos = 30 * kMillisecond, .cost_nanos = 1, .looked_at = 1, .is_whole = false});
    }
    EXPECT_FALSE(budget.is_overdrawn());
}

TEST(Budget, WhereNoStepIsAWholeOneAnyMoreStepsAreNotLeftOutForEver) {
    Budget budget(0.5);
    int taken = 0;
    const auto step = [&](bool is_whole) {
        const bool is_taken = !budget.is_overdrawn() && !budget.wants_comparison();
        budget.account({.nanos = 10 * kMillisecond,
                        .cost_nanos = is_taken ? kMillisecond : 0,
                        .looked_at = is_taken ? 1U : 0U,
                        .is_whole = is_whole});
        taken += is_taken ? 1 : 0;
    };
    for (int i = 0; i < 1000 && !budget.wants_comparison(); ++i) step(true);
    ASSERT_TRUE(budget.wants_comparison());
    taken = 0;
    for (int i = 0; i < 300; ++i) step(false);  // an evaluation follows each
    EXPECT_GE(taken, 290);
}

TEST(Budget, StepsThatCostDifferentlyArePaidForAsTheirKind) {
    Budget budget(0.5);
    double cost = 0, time = 0;
    for (int i = 0; i < 3'000; ++i) {
        const std::uint32_t kind = i % 3 == 0 ? 0 : i % 30 == 1 ? 2 : 1;
        const double beside = kind == 2 ? 9 : kind == 1 ? 0.1 : 0;
        budget.account(
            {.nanos = static_cast<std::uint64_t>((10 + beside) * kMillisecond), .looked_at = kind});
        cost += beside;
        time += 10;
    }
    EXPECT_NEAR(budget.spent(), cost / time, 0.05 * cost / time);
}

TEST(Budget, AStepWhoseTimeIsNotKnownEarnsNothing) {
    Budget budget(0.5);
    budget.account({.cost_nanos = 6'000 * kMillisecond, .looked_at = 1});
    EXPECT_TRUE(budget.is_overdrawn());
    EXPECT_EQ(budget.spent(), 0);
}

TEST(Budget, WhereCaptureWaitsForWhatTheStepWouldWaitForWhatWasMeasuredIsPaid) {
    Budget budget(0.02);
    SteppedTraining training{.own = 10, .measured = 5, .beside = -5};  // an accelerator's queue
    training.run(budget, 1'000);
    EXPECT_LE(5.0 * training.taken, 0.02 * (training.time + 1'000) + 5);
}

}  // namespace
}  // namespace traindbg::capture
