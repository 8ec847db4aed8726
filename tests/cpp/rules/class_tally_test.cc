#include "traindbg/rules/class_tally.h"

#include <gtest/gtest.h>

#include <cmath>

namespace traindbg::rules {
namespace {

TEST(ClassTallyTest, TheRunKeepsAllLabelsAndTheWindowTheLast) {
    ClassTally tally;
    for (int i = 0; i < 100; ++i)
        tally.add({.labels = {100, 0}, .predictions = {100, 0}, .hits = {100, 0}}, 100);
    for (int i = 0; i < 100; ++i)
        tally.add({.labels = {0, 100}, .predictions = {0, 100}, .hits = {0, 100}}, 100);
    EXPECT_EQ(tally.labels()[0], 10000);
    EXPECT_EQ(tally.total(), 20000);
    EXPECT_LT(tally.recent()[0], 20);
    EXPECT_NEAR(tally.recent()[1], ClassTally::kWindow, 20);
}

TEST(ClassTallyTest, ClassesThatComeLaterAreAdded) {
    ClassTally tally;
    tally.add({.labels = {4}, .predictions = {4}, .hits = {4}}, 4);
    tally.add({.labels = {0, 0, 4}, .predictions = {0, 0, 4}, .hits = {0, 0, 1}}, 4);
    EXPECT_EQ(tally.seen(), 2U);
    EXPECT_EQ(tally.shares_found().size(), 3U);
    EXPECT_EQ(tally.shares_found()[1], 0);
    EXPECT_EQ(tally.shares_found()[2], 0.25);
}

TEST(ClassTallyTest, SmallBatchesDoNotTellHowMixedTheyAre) {
    ClassTally tally;
    tally.add({.labels = {7, 0}, .predictions = {7, 0}, .hits = {7, 0}}, 7);
    EXPECT_EQ(tally.batches(), 0U);
    tally.add({.labels = {4, 4}, .predictions = {4, 4}, .hits = {4, 4}}, 8);
    tally.add({.labels = {8, 0}, .predictions = {8, 0}, .hits = {8, 0}}, 8);
    EXPECT_EQ(tally.batches(), 2U);
    EXPECT_NEAR(tally.entropy_of_batch(), std::log(2) / 2, 1e-12);
}

TEST(ClassTallyTest, AgreementIsNothingWhereChanceGivesAsMuch) {
    ClassTally favourite, sure;
    favourite.add({.labels = {90, 10}, .predictions = {100, 0}, .hits = {90, 0}}, 100);
    sure.add({.labels = {90, 10}, .predictions = {90, 10}, .hits = {90, 10}}, 100);
    EXPECT_NEAR(favourite.agreement(), 0, 1e-12);
    EXPECT_NEAR(sure.agreement(), 1, 1e-12);
}

TEST(ClassTallyTest, TheFirstOfTheMostFrequentClassesCounts) { EXPECT_EQ(most_frequent({1, 5, 5}), 1U); }

}  // namespace
}  // namespace traindbg::rules
