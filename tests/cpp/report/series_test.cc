#include "traindbg/report/series.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace traindbg::report {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<Point> line(std::size_t size) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < size; ++i) points.push_back({i, static_cast<double>(i % 7)});
    return points;
}

bool holds(const std::vector<std::size_t>& kept, std::size_t index) {
    return std::find(kept.begin(), kept.end(), index) != kept.end();
}

TEST(ThinTest, ShortSeriesIsLeftAlone) {
    EXPECT_EQ(thin(line(100), 100).size(), 100U);
    EXPECT_TRUE(thin({}, 100).empty());
}

TEST(ThinTest, LimitHoldsForEverySize) {
    for (const std::size_t most : {4U, 5U, 10U, 33U, 1000U})
        for (const std::size_t size : {most + 1, 2 * most, 10 * most + 3}) {
            const std::vector<std::size_t> kept = thin(line(size), most);
            EXPECT_LE(kept.size(), most) << size;
            EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end()));
            EXPECT_EQ(std::adjacent_find(kept.begin(), kept.end()), kept.end());
        }
}

TEST(ThinTest, SpikeDipFirstAndLastRemain) {
    std::vector<Point> points = line(10'000);
    points[4321].y = 1e9;
    points[7777].y = -1e9;
    const std::vector<std::size_t> kept = thin(points, 100);
    for (const std::size_t index : {std::size_t{0}, std::size_t{4321}, std::size_t{7777}, std::size_t{9999}})
        EXPECT_TRUE(holds(kept, index)) << index;
}

TEST(ThinTest, OneNanRemainsBesideTheLargestOfItsBucket) {
    std::vector<Point> points = line(10'000);
    points[5000].y = kNaN;
    points[5001].y = 1e9;
    const std::vector<std::size_t> kept = thin(points, 50);
    EXPECT_TRUE(holds(kept, 5000));
    EXPECT_TRUE(holds(kept, 5001));
    EXPECT_LE(kept.size(), 50U);
}

TEST(RunningMedianTest, SpikeDoesNotBendIt) {
    std::vector<Point> points = line(0);
    for (std::size_t i = 0; i < 50; ++i) points.push_back({i, 1.0});
    points[25].y = 1e30;
    for (std::size_t i = 0; i < points.size(); ++i) EXPECT_EQ(running_median(points, i, 5), 1.0) << i;
}

TEST(RunningMedianTest, WindowStaysCentredAtTheBeginning) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < 50; ++i) points.push_back({i, static_cast<double>(i)});
    for (const std::size_t i : {std::size_t{0}, std::size_t{1}, std::size_t{25}, std::size_t{44}})
        EXPECT_EQ(running_median(points, i, 10), static_cast<double>(i));
    EXPECT_GE(running_median(points, 49, 10), 46);  // the last ones lag, by a quarter of the reach
}

TEST(RunningMedianTest, TheLastPointDoesNotEndIt) {
    std::vector<Point> points;
    for (std::size_t i = 0; i < 50; ++i) points.push_back({i, 1.0});
    points.back().y = 0;
    EXPECT_EQ(running_median(points, 49, 10), 1.0);
}

TEST(RunningMedianTest, NotFiniteValueHasNone) {
    std::vector<Point> points = line(20);
    points[10].y = kNaN;
    EXPECT_TRUE(std::isnan(running_median(points, 10, 3)));
    EXPECT_TRUE(std::isfinite(running_median(points, 11, 3)));
}

TEST(MeanByStepTest, PointsOfOneStepBecomeTheirMean) {
    const std::vector<Point> means = mean_by_step({{3, 1}, {3, 2}, {3, 6}, {9, 5}});
    EXPECT_EQ(means, (std::vector<Point>{{3, 3}, {9, 5}}));
}

TEST(MeanByStepTest, NotFiniteWinsWhereverItStands) {
    for (const auto& points :
         {std::vector<Point>{{3, kNaN}, {3, 2}}, std::vector<Point>{{3, 2}, {3, kNaN}}}) {
        const std::vector<Point> means = mean_by_step(points);
        ASSERT_EQ(means.size(), 1U);
        EXPECT_TRUE(std::isnan(means[0].y));
    }
}

TEST(FinishTest, RemembersHowManyWereRecorded) {
    Series series;
    series.points = line(5000);
    finish(series, 200);
    EXPECT_EQ(series.recorded, 5000U);
    EXPECT_LE(series.points.size(), 200U);
    EXPECT_EQ(series.smooth.size(), series.points.size());
}

TEST(FinishTest, FewPointsAreNotSmoothed) {
    Series series;
    series.points = line(19);
    finish(series, 200);
    EXPECT_TRUE(series.smooth.empty());
}

}  // namespace
}  // namespace traindbg::report
