#include "traindbg/rules/weight_laws.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace traindbg::rules {
namespace {

constexpr Nearness kNearTheLaw = {.logarithm = 0.1, .errors = 1.5};

std::vector<double> powers_of(const std::vector<double>& counts, double power) {
    std::vector<double> weights;
    for (const double count : counts) weights.push_back(100 * std::pow(count, power));
    return weights;
}

TEST(WeightLawsTest, CountsAndTheirRootsAreTurned) {
    const std::vector<double> counts = {5000, 1200, 300, 90};
    EXPECT_TRUE(are_weights_turned(counts, counts, kNearTheLaw));
    EXPECT_TRUE(are_weights_turned(powers_of(counts, 0.5), counts, kNearTheLaw));
    EXPECT_FALSE(are_weights_turned(powers_of(counts, 0.2), counts, kNearTheLaw));
    EXPECT_FALSE(are_weights_turned(powers_of(counts, 2), counts, kNearTheLaw));
}

TEST(WeightLawsTest, OneDividedByTheCountsIsNotTurned) {
    const std::vector<double> counts = {5000, 1200, 300, 90};
    EXPECT_FALSE(are_weights_turned(powers_of(counts, -1), counts, kNearTheLaw));
    EXPECT_FALSE(are_weights_turned({1, 1, 1, 1}, counts, kNearTheLaw));
}

TEST(WeightLawsTest, OneWeightThatFollowsNoLawIsEnough) {
    EXPECT_FALSE(are_weights_turned({5000, 1200, 1200, 90}, {5000, 1200, 300, 90}, kNearTheLaw));
}

TEST(WeightLawsTest, TwoWeightsMustBeTheCountsThemselves) {
    EXPECT_TRUE(are_weights_turned({900, 100}, {9000, 1000}, kNearTheLaw));
    EXPECT_FALSE(are_weights_turned({3, 1}, {9000, 1000}, kNearTheLaw));
}

TEST(WeightLawsTest, ThreeClassesNeedThreeWeights) {
    EXPECT_FALSE(are_weights_turned({4, 1, 1}, {4000, 1000, 1000}, kNearTheLaw));
}

TEST(WeightLawsTest, ClassesWithoutLabelsAreLeftOut) {
    EXPECT_TRUE(are_weights_turned({50, 0, 12, 3}, {5000, 0, 1200, 300}, kNearTheLaw));
}

TEST(WeightLawsTest, CountsThatAreHardlyApartTellNothing) {
    EXPECT_FALSE(are_weights_turned({250, 150, 100}, {2500, 1500, 1000}, kNearTheLaw));
}

TEST(WeightLawsTest, WeightsThatFitSortedAndNotInTheirOrderAreOfOthers) {
    const std::vector<double> counts = {4000, 2000, 800, 200};
    const std::vector<double> weights = powers_of({200, 2000, 800, 4000}, -1);
    EXPECT_TRUE(are_weights_of_others(weights, counts));
    EXPECT_FALSE(are_weights_of_others(powers_of(counts, -1), counts));
}

TEST(WeightLawsTest, RootsOfOthersNeedFiveClasses) {
    const std::vector<double> four = {9000, 3000, 800, 100}, five = {9000, 3000, 800, 300, 50};
    EXPECT_FALSE(are_weights_of_others(powers_of({100, 3000, 800, 9000}, -0.5), four));
    EXPECT_TRUE(are_weights_of_others(powers_of({50, 3000, 800, 300, 9000}, -0.5), five));
}

TEST(WeightLawsTest, WeightsOfOthersNeedLabelsOfEachClass) {
    EXPECT_FALSE(are_weights_of_others(powers_of({10, 2000, 800, 4000}, -1), {4000, 2000, 800, 10}));
}

TEST(WeightLawsTest, SmallWholeNumbersTimesAFactorAreCosts) {
    EXPECT_TRUE(are_weights_costs({1, 5, 2, 20}));
    EXPECT_TRUE(are_weights_costs({0.3, 0.2, 0.5}));
    EXPECT_FALSE(are_weights_costs({1, 21}));
    EXPECT_FALSE(are_weights_costs({1, 1.37, 2.91}));
    EXPECT_FALSE(are_weights_costs({0, 1}));
}

TEST(WeightLawsTest, WhatIsOffIsMeasuredFromTheMiddle) {
    const std::vector<double> off = off_from_law({1, 0.5, 8}, {100, 200, 100}, 1);
    ASSERT_EQ(off.size(), 3U);
    EXPECT_NEAR(off[0], 0, 1e-12);
    EXPECT_NEAR(off[1], 0, 1e-12);
    EXPECT_NEAR(off[2], std::log(8), 1e-12);
}

}  // namespace
}  // namespace traindbg::rules
