#include "traindbg/model/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

namespace traindbg::model {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// In two passes and long double, by the definitions.
Statistics of(std::span<const double> values) {
    Statistics s;
    long double sum = 0;
    long double magnitudes = 0;
    long double squares = 0;
    for (const double value : values) {
        ++s.count;
        if (std::isnan(value)) ++s.nan;
        else if (value == kInf) ++s.positive_infinite;
        else if (value == -kInf) ++s.negative_infinite;
        else {
            if (value == 0) ++s.zero;
            s.min = s.finite() == 1 ? value : std::min(s.min, value);
            s.max = s.finite() == 1 ? value : std::max(s.max, value);
            sum += value;
            magnitudes += std::fabs(value);
            squares += static_cast<long double>(value) * value;
        }
    }
    if (s.finite() == 0) return s;
    const auto n = static_cast<long double>(s.finite());
    const long double mean = sum / n;
    long double deviations = 0;
    for (const double value : values)
        if (std::isfinite(value)) deviations += (value - mean) * (value - mean);
    s.mean = static_cast<double>(mean);
    s.std = static_cast<double>(std::sqrt(deviations / n));
    s.l1 = static_cast<double>(magnitudes);
    s.l2 = static_cast<double>(std::sqrt(squares));
    return s;
}

// As a run keeps them.
Statistics narrowed(Statistics s) {
    for (double* moment : {&s.min, &s.max, &s.mean, &s.std, &s.l1, &s.l2})
        *moment = static_cast<float>(*moment);
    return s;
}

void expect_same_counts(const Statistics& merged, const Statistics& whole) {
    EXPECT_EQ(merged.count, whole.count);
    EXPECT_EQ(merged.nan, whole.nan);
    EXPECT_EQ(merged.positive_infinite, whole.positive_infinite);
    EXPECT_EQ(merged.negative_infinite, whole.negative_infinite);
    EXPECT_EQ(merged.zero, whole.zero);
}

TEST(StatisticsTest, PartsOfAnArrayMergeToThoseOfTheWhole) {
    std::mt19937_64 random(7);
    const auto below = [&](std::size_t end) {
        return std::uniform_int_distribution<std::size_t>(0, end - 1)(random);
    };
    for (int round = 0; round < 500; ++round) {
        // From means that are large beside the deviation to none, as of weights and of counters.
        const double centre = std::array{0.0, 1.0, -1e3, 1e6}[below(4)];
        std::normal_distribution<double> normal(centre, std::array{1e-3, 1.0, 50.0}[below(3)]);
        std::vector<double> values(below(200));
        for (double& value : values) {
            value = static_cast<float>(normal(random));
            if (below(20) == 0) value = std::array{0.0, std::nan(""), kInf, -kInf}[below(4)];
        }
        const Statistics whole = of(values);
        Statistics exact;
        Statistics stored;
        double largest = 0;
        const std::size_t parts = 1 + below(7);
        std::size_t begin = 0;
        for (std::size_t part = 0; part < parts; ++part) {  // uneven, and now and then empty
            const std::size_t size =
                part + 1 == parts ? values.size() - begin : below(values.size() - begin + 1);
            const Statistics its = of(std::span(values).subspan(begin, size));
            begin += size;
            merge(exact, its);
            merge(stored, narrowed(its));
            largest = std::max(largest, std::fabs(its.mean) + its.std);
        }
        expect_same_counts(exact, whole);
        EXPECT_EQ(exact.min, whole.min);
        EXPECT_EQ(exact.max, whole.max);
        EXPECT_NEAR(exact.mean, whole.mean, 1e-14 * largest);
        EXPECT_NEAR(exact.std, whole.std, 1e-14 * largest);
        EXPECT_NEAR(exact.l1, whole.l1, 1e-14 * whole.l1);
        EXPECT_NEAR(exact.l2, whole.l2, 1e-14 * whole.l2);

        expect_same_counts(stored, whole);
        EXPECT_EQ(stored.min, whole.min) << "the values are float32 themselves";
        EXPECT_EQ(stored.max, whole.max);
        EXPECT_NEAR(stored.mean, whole.mean, std::ldexp(largest, -22));
        EXPECT_NEAR(stored.std, whole.std, std::ldexp(largest, -22));
        EXPECT_NEAR(stored.l1, whole.l1, std::ldexp(whole.l1, -23));
        EXPECT_NEAR(stored.l2, whole.l2, std::ldexp(whole.l2, -23));
    }
}

TEST(StatisticsTest, LargeMomentsMergeWithoutOverflow) {
    const std::vector<double> values = {1e200, -1e200};
    Statistics merged = of(std::span(values).first(1));
    merged.l2 = 1e200;  // its square is beyond a double
    Statistics other = of(std::span(values).last(1));
    other.l2 = 1e200;
    merge(merged, other);
    EXPECT_DOUBLE_EQ(merged.l2, std::sqrt(2.0) * 1e200);
    EXPECT_DOUBLE_EQ(merged.std, 1e200);
    EXPECT_EQ(merged.mean, 0);
}

TEST(StatisticsTest, APartWithoutFiniteElementsCountsAndMovesNothing) {
    Statistics merged = of(std::vector<double>{3.0, 5.0});
    const Statistics before = merged;
    merge(merged, of(std::vector<double>{std::nan(""), kInf}));
    EXPECT_EQ(merged.count, 4U);
    EXPECT_EQ(merged.not_finite(), 2U);
    EXPECT_EQ(merged.min, before.min);
    EXPECT_EQ(merged.mean, before.mean);
    EXPECT_EQ(merged.std, before.std);

    Statistics empty;
    merge(empty, before);
    EXPECT_EQ(empty, before);
}

}  // namespace
}  // namespace traindbg::model
