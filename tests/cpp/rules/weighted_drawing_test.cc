#include "traindbg/rules/weighted_drawing.h"

#include <gtest/gtest.h>

namespace traindbg::rules {
namespace {

TEST(WeightedDrawingTest, ClassesAreAsFrequentAsTheWeightsMakeThem) {
    EXPECT_TRUE(are_drawn_by_weight({0.9, 0.1}, {900, 100}, {12, 988}));
    EXPECT_FALSE(are_drawn_by_weight({0.9, 0.1}, {900, 100}, {500, 500}));
}

TEST(WeightedDrawingTest, AClassThatNoWeightStandsForIsNotDrawnByThem) {
    EXPECT_FALSE(are_drawn_by_weight({0.9, 0.1}, {900, 100}, {983, 12, 5}));
}

}  // namespace
}  // namespace traindbg::rules
