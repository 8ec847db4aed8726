#include "traindbg/rules/robust.h"

#include <gtest/gtest.h>

#include <cmath>

#include "traindbg/rules/settings.h"

namespace traindbg::rules {
namespace {

TEST(Median, OfNothingOneTwoAndThree) {
    EXPECT_EQ(median({}), 0);
    EXPECT_EQ(median({3}), 3);
    EXPECT_EQ(median({3, 1}), 2);
    EXPECT_EQ(median({9, 1, 3}), 3);
    EXPECT_EQ(median({1, 2, 3, 1e300}), 2.5);
}

TEST(TrendZ, IsTheMannKendallStatistic) {
    const std::vector<double> rising = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    // S = 45, variance = 10 * 9 * 25 / 18 = 125.
    EXPECT_DOUBLE_EQ(trend_z(rising), 44 / std::sqrt(125.0));
    const std::vector<double> falling(rising.rbegin(), rising.rend());
    EXPECT_DOUBLE_EQ(trend_z(falling), -44 / std::sqrt(125.0));
    EXPECT_EQ(trend_z(std::vector<double>(20, 1.0)), 0);
    EXPECT_EQ(trend_z(std::vector<double>{1, 2, 3}), 0);
}

TEST(NoiseOf, IsBlindToATrend) {
    std::vector<double> line, noisy;
    for (int i = 0; i < 100; ++i) {
        line.push_back(i);
        noisy.push_back(i % 2 == 0 ? 1 : -1);
    }
    EXPECT_NEAR(noise_of(noisy), 1.4826 * 2 / std::sqrt(2.0), 1e-12);
    EXPECT_LT(noise_of(line), 1.1);  // a slope of 1 a step, not the 100 that it covers
    EXPECT_EQ(noise_of(std::vector<double>{1, 2}), 0);
}

TEST(Blocks, KeepTheMeanOfEverythingInBoundedSpace) {
    Blocks blocks;
    const int n = 1 << 14;
    double sum = 0;
    for (int i = 0; i < n; ++i) {
        blocks.add(i);
        sum += i;
    }
    ASSERT_LE(blocks.means().size(), Blocks::kMost);
    EXPECT_EQ(blocks.means().size() * blocks.values_per_block(), static_cast<std::uint64_t>(n));
    double mean = 0;
    for (const double value : blocks.means()) mean += value / static_cast<double>(blocks.means().size());
    EXPECT_NEAR(mean, sum / n, 1e-6);
    EXPECT_TRUE(std::is_sorted(blocks.means().begin(), blocks.means().end()));
}

TEST(Blocks, AreTheValuesThemselvesWhileTheyFit) {
    Blocks blocks;
    for (std::size_t i = 0; i < Blocks::kMost; ++i) blocks.add(static_cast<double>(i));
    EXPECT_EQ(blocks.means().size(), Blocks::kMost);
    EXPECT_EQ(blocks.values_per_block(), 1U);
    blocks.add(0);
    EXPECT_EQ(blocks.values_per_block(), 2U);
    EXPECT_EQ(blocks.means().size(), Blocks::kMost / 2);
    blocks.add(4);
    EXPECT_EQ(blocks.means().back(), 2);
}

TEST(Recent, DropsTheOldest) {
    Recent recent(3);
    for (const double value : {1, 2, 3, 4}) recent.add(value);
    EXPECT_TRUE(recent.full());
    EXPECT_EQ(recent.values().front(), 2);
    EXPECT_EQ(recent.last(2).front(), 3);
    EXPECT_EQ(recent.last(9).size(), 3U);
}

TEST(Advice, NamesTheLearningRateAndARoundNumber) {
    model::WorkerMeta meta;
    EXPECT_EQ(lower_learning_rate(meta, 0.1), "lower the learning rate 10-fold or more");
    meta.optimizers.push_back({"SGD", {{"momentum", 0.9}, {"lr", 5}}});
    EXPECT_EQ(lower_learning_rate(meta, 0.1), "lower the learning rate from 5 to about 0.5 or less");
    EXPECT_EQ(optimizer_setting(meta, "nesterov"), std::nullopt);
    EXPECT_TRUE(updates_follow_gradients(meta));
    EXPECT_DOUBLE_EQ(round_for_people(0.0037), 0.005);
    EXPECT_DOUBLE_EQ(round_for_people(0.1), 0.1);
    EXPECT_DOUBLE_EQ(round_for_people(8), 10);
    EXPECT_EQ(place_of("gradient/fc1.weight"), "fc1.weight");
    EXPECT_EQ(place_of("loss"), "loss");
}

}  // namespace
}  // namespace traindbg::rules
