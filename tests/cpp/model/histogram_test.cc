#include "traindbg/model/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace traindbg::model {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Histogram histogram_of(const std::vector<double>& values) {
    Histogram out;
    for (const double value : values) merge(out, {{static_cast<std::int16_t>(bin_of(value)), 1}});
    return out;
}

TEST(Histogram, EdgesLeaveNoGapAndNoOverlap) {
    for (int bin = kUnderflowBin; bin < kOverflowBin; ++bin) {
        EXPECT_EQ(edges(bin).upper, edges(bin + 1).lower) << bin;
        EXPECT_LT(edges(bin).lower, edges(bin).upper) << bin;
        EXPECT_EQ(edges(-bin).lower, -edges(bin).upper) << bin;
        EXPECT_EQ(edges(-bin).upper, -edges(bin).lower) << bin;
    }
    EXPECT_EQ(edges(kFirstBin).lower, std::ldexp(1.0, -40));
    EXPECT_EQ(edges(kOverflowBin).lower, std::ldexp(1.0, 24));
    EXPECT_EQ(edges(kOverflowBin).upper, std::numeric_limits<double>::max());
}

TEST(Histogram, AValueIsInTheBinWhoseEdgesHoldIt) {
    for (int bin = kFirstBin; bin <= kOverflowBin; ++bin) {
        const double lower = edges(bin).lower;
        EXPECT_EQ(bin_of(lower), bin);
        EXPECT_EQ(bin_of(std::nextafter(lower, 0.0)), bin - 1);
        EXPECT_EQ(bin_of(std::nextafter(edges(bin).upper, 0.0)), bin);
        EXPECT_EQ(bin_of(-lower), -bin);
    }
    EXPECT_EQ(bin_of(0.0), kZeroBin);
    EXPECT_EQ(bin_of(-0.0), kZeroBin);
    EXPECT_EQ(bin_of(std::numeric_limits<double>::denorm_min()), kUnderflowBin);
    EXPECT_EQ(bin_of(-std::numeric_limits<double>::denorm_min()), -kUnderflowBin);
    EXPECT_EQ(bin_of(kInfinity), kInfiniteBin);
    EXPECT_EQ(bin_of(-kInfinity), kLeastBin);
    EXPECT_EQ(bin_of(kNan), kNanBin);
    EXPECT_EQ(bin_of(1.0), kFirstBin + 160);
    EXPECT_EQ(bin_of(1.25), kFirstBin + 161);
}

TEST(Histogram, MergedHistogramsAreThatOfAllValues) {
    std::mt19937 random(1);
    std::normal_distribution<double> normal(0, 1e-3);
    std::vector<double> first(300);
    std::vector<double> second(500);
    for (double& value : first) value = normal(random);
    for (double& value : second) value = std::exp(normal(random) * 2000);
    Histogram merged = histogram_of(first);
    merge(merged, histogram_of(second));
    std::vector<double> all = first;
    all.insert(all.end(), second.begin(), second.end());
    EXPECT_EQ(merged, histogram_of(all));
    EXPECT_EQ(element_count(merged), 800U);
    merge(merged, {});
    EXPECT_EQ(element_count(merged), 800U);
}

TEST(Histogram, QuantilesAreWithinThreePerCent) {
    std::mt19937 random(2);
    std::normal_distribution<double> normal(0, 1);
    std::vector<double> values(200'000);
    Histogram histogram;
    std::vector<std::uint64_t> counts(kMostBins);
    for (double& value : values) {
        value = normal(random);
        ++counts[static_cast<std::size_t>(bin_of(value) - kLeastBin)];
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
        if (counts[i] != 0)
            histogram.push_back({static_cast<std::int16_t>(static_cast<int>(i) + kLeastBin), counts[i]});
    std::sort(values.begin(), values.end());
    for (int percent = 1; percent < 100; ++percent) {
        const double q = percent / 100.0;
        const double want = values[static_cast<std::size_t>(q * static_cast<double>(values.size()))];
        EXPECT_NEAR(quantile(histogram, q).value(), want, 0.03 * std::abs(want) + 0.002) << percent;
    }
}

TEST(Histogram, QuantilesOfWhatHasNoWidth) {
    EXPECT_EQ(quantile({}, 0.5), std::nullopt);
    EXPECT_EQ(quantile(histogram_of({kNan, kNan}), 0.5), std::nullopt);
    EXPECT_EQ(quantile(histogram_of({0, 0, 0}), 0.5), 0.0);
    EXPECT_EQ(quantile(histogram_of({kNan, kInfinity}), 0.5), kInfinity);
    EXPECT_EQ(quantile(histogram_of({-kInfinity, 1}), 0.0), -kInfinity);
    EXPECT_EQ(quantile(histogram_of({1e30}), 1.0), std::ldexp(1.0, 24));
    EXPECT_EQ(quantile(histogram_of({-1e30}), 0.0), -std::ldexp(1.0, 24));
    EXPECT_EQ(quantile(histogram_of({1, 1, 1}), kNan), std::nullopt);
    EXPECT_EQ(quantile(histogram_of({1}), 7.0), 1.25);  // beyond the ends are the ends
}

TEST(Histogram, SpreadGivesEachBinItsShare) {
    Histogram histogram;
    spread(histogram, 1.0, 2.0, 400);
    ASSERT_EQ(histogram.size(), 4U);
    for (const HistogramBin& entry : histogram) EXPECT_EQ(entry.count, 100U);
    histogram.clear();
    spread(histogram, -1.0, 1.0, 1'000'001);
    EXPECT_EQ(element_count(histogram), 1'000'001U);
    EXPECT_NEAR(quantile(histogram, 0.25).value(), -0.5, 0.01);
    EXPECT_NEAR(quantile(histogram, 0.75).value(), 0.5, 0.01);
}

TEST(Histogram, SpreadLosesNothingWhateverTheBucket) {
    constexpr double kMost = std::numeric_limits<double>::max();
    constexpr double kSmallest = std::numeric_limits<double>::denorm_min();  // half of it is 0
    for (const auto& [lower, upper] : std::vector<std::pair<double, double>>{{-kMost, kMost},
                                                                             {-kMost, -1.0},
                                                                             {0, 0},
                                                                             {3, 3},
                                                                             {5, 1},
                                                                             {-kInfinity, -2},
                                                                             {2, kInfinity},
                                                                             {kNan, 1},
                                                                             {kNan, kNan},
                                                                             {0, 1e-300},
                                                                             {0, kSmallest},
                                                                             {-1e-12, 1e-12}}) {
        for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{7}, (std::uint64_t{1} << 63) + 1}) {
            Histogram histogram;
            spread(histogram, lower, upper, count);
            EXPECT_EQ(element_count(histogram), count) << lower << " " << upper;
        }
    }
    Histogram none;
    spread(none, 0, 1, 0);
    EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace traindbg::model
