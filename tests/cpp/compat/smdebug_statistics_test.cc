#include "traindbg/compat/smdebug_statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace traindbg::compat {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Reductions as_map(const model::Statistics& statistics) {
    Reductions out;
    for (const auto& [name, value] : reductions_of(statistics)) out.emplace(name, value);
    return out;
}

// Of the numbers 1, 2, 3, 4.
const model::Statistics kFour = {4, 0, 0, 0, 0, 1, 4, 2.5, std::sqrt(1.25), 10, std::sqrt(30.0)};

TEST(SmdebugStatisticsTest, AllReductionsGiveAllMoments) {
    const auto back = statistics_of(as_map(kFour), 4, VarianceKind::kPopulation);
    ASSERT_TRUE(back.has_value());
    EXPECT_EQ(back->count, 4U);
    EXPECT_EQ(back->min, 1);
    EXPECT_EQ(back->max, 4);
    EXPECT_EQ(back->mean, 2.5);
    EXPECT_NEAR(back->std, kFour.std, 1e-15);
    EXPECT_EQ(back->l1, 10);
    EXPECT_EQ(back->l2, kFour.l2);
    EXPECT_EQ(back->not_finite(), 0U);
}

TEST(SmdebugStatisticsTest, TheCountIsDerivedFromPairsThatDifferByIt) {
    EXPECT_EQ(statistics_of({{"l1", 10}, {"abs_mean", 2.5}, {"l2", 1}}, 0, VarianceKind::kSample)->count, 4U);
    EXPECT_EQ(statistics_of({{"sum", -10}, {"mean", -2.5}, {"l2", 1}}, 0, VarianceKind::kSample)->count, 4U);
    EXPECT_EQ(statistics_of({{"sum", 0}, {"mean", 0}, {"l2", 1}}, 0, VarianceKind::kSample)->count, 1U);
    EXPECT_EQ(statistics_of({{"sum", 1}, {"mean", kNan}, {"l2", 1}}, 0, VarianceKind::kSample)->count, 1U);
}

TEST(SmdebugStatisticsTest, TheSamplesVarianceIsCorrected) {
    const Reductions torch = {{"std", std::sqrt(5.0 / 3)}, {"mean", 2.5}, {"l2", 1}};
    EXPECT_NEAR(statistics_of(torch, 4, VarianceKind::kSample)->std, kFour.std, 1e-12);
    EXPECT_NEAR(statistics_of(torch, 4, VarianceKind::kPopulation)->std, std::sqrt(5.0 / 3), 1e-12);
    EXPECT_EQ(statistics_of({{"std", kNan}, {"l2", 1}}, 1, VarianceKind::kSample)->std, 0);
}

TEST(SmdebugStatisticsTest, TheNormIsDerivedOrNothingIsSaid) {
    const auto derived = statistics_of({{"std", kFour.std}, {"mean", 2.5}}, 4, VarianceKind::kPopulation);
    ASSERT_TRUE(derived.has_value());
    EXPECT_NEAR(derived->l2, kFour.l2, 1e-12);
    EXPECT_TRUE(std::isnan(derived->min));  // not saved: not 0
    EXPECT_TRUE(std::isnan(derived->l1));
    EXPECT_FALSE(statistics_of({{"min", 1}, {"max", 2}}, 4, VarianceKind::kPopulation).has_value());
    EXPECT_FALSE(statistics_of({{"std", 1}, {"mean", 2}}, 0, VarianceKind::kPopulation).has_value());
}

TEST(SmdebugStatisticsTest, WhatIsNotFiniteIsSeen) {
    const auto nan = statistics_of({{"min", kNan}, {"max", kNan}, {"l2", kNan}}, 4, VarianceKind::kSample);
    EXPECT_EQ(nan->nan, 1U);
    EXPECT_EQ(nan->l2, 0);
    const auto high =
        statistics_of({{"min", 1}, {"max", kInfinity}, {"l2", kInfinity}}, 4, VarianceKind::kSample);
    EXPECT_EQ(high->positive_infinite, 1U);
    EXPECT_EQ(high->nan, 0U);
    const auto low =
        statistics_of({{"min", -kInfinity}, {"max", 1}, {"l2", kInfinity}}, 4, VarianceKind::kSample);
    EXPECT_EQ(low->negative_infinite, 1U);
    // The norm's square did not fit into float32; the elements are finite.
    const auto large =
        statistics_of({{"min", -1e30}, {"max", 1e30}, {"l2", kInfinity}}, 4, VarianceKind::kSample);
    EXPECT_EQ(large->not_finite(), 0U);
    // Of one element the deviation is NaN, which says nothing about it.
    EXPECT_EQ(statistics_of({{"std", kNan}, {"l2", 1}}, 1, VarianceKind::kSample)->not_finite(), 0U);
}

TEST(SmdebugStatisticsTest, ProductsAreNumPys) {
    const model::Digest digest{0, -24};
    model::Statistics s = kFour;
    EXPECT_EQ(product_of(digest, s), -24);
    s.positive_infinite = 1;
    EXPECT_EQ(product_of(digest, s), -kInfinity);
    s.negative_infinite = 3;
    EXPECT_EQ(product_of(digest, s), kInfinity);
    s.zero = 1;
    EXPECT_TRUE(std::isnan(product_of({0, 0}, s))) << "zero times infinity";
    s.positive_infinite = s.negative_infinite = 0;
    EXPECT_EQ(product_of({0, 0}, s), 0);
    s.nan = 1;
    EXPECT_TRUE(std::isnan(product_of(digest, s)));
}

TEST(SmdebugStatisticsTest, ReductionsAreNumPys) {
    Reductions plain = as_map(kFour);
    EXPECT_EQ(plain["sum"], 10);
    EXPECT_EQ(plain["abs_mean"], 2.5);
    EXPECT_EQ(plain["abs_max"], 4);
    EXPECT_NEAR(plain["variance"], 1.25, 1e-15);

    model::Statistics bad = kFour;
    bad.count = 5;
    bad.nan = 1;
    for (const auto& [name, value] : reductions_of(bad)) EXPECT_TRUE(std::isnan(value)) << name;

    model::Statistics high = kFour;
    high.count = 5;
    high.positive_infinite = 1;
    Reductions out = as_map(high);
    EXPECT_EQ(out["min"], 1);
    EXPECT_EQ(out["max"], kInfinity);
    EXPECT_EQ(out["mean"], kInfinity);
    EXPECT_EQ(out["l2"], kInfinity);
    EXPECT_EQ(out["abs_max"], kInfinity);
    EXPECT_TRUE(std::isnan(out["std"]));

    high.negative_infinite = 1;
    high.count = 6;
    out = as_map(high);
    EXPECT_EQ(out["min"], -kInfinity);
    EXPECT_TRUE(std::isnan(out["mean"]));

    model::Statistics all_low;
    all_low.count = all_low.negative_infinite = 3;
    out = as_map(all_low);
    EXPECT_EQ(out["max"], -kInfinity);
    EXPECT_EQ(out["sum"], -kInfinity);
}

}  // namespace
}  // namespace traindbg::compat
