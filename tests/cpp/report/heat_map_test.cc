#include "traindbg/report/heat_map.h"

#include <gtest/gtest.h>

#include <limits>

namespace traindbg::report {
namespace {

TEST(HeatMapTest, FewStepsStayOneColumnEach) {
    HeatMap map(2, 8);
    for (std::uint64_t step = 0; step < 8; ++step)
        map.add(10 * step, step % 2, static_cast<double>(step), false);
    ASSERT_EQ(map.columns().size(), 8U);
    EXPECT_EQ(map.columns()[3].first, 30U);
    EXPECT_EQ(map.columns()[3].last, 30U);
    EXPECT_EQ(map.columns()[3].cells[1].value, 3.0F);
    EXPECT_TRUE(map.columns()[3].cells[0].empty());
}

// For every limit and length: all steps are covered, in order, without a gap or an overlap.
TEST(HeatMapTest, MergedColumnsCoverEveryStepOnce) {
    for (std::size_t most = 2; most < 12; ++most)
        for (std::uint64_t steps = 1; steps < 200; steps += 7) {
            HeatMap map(1, most);
            for (std::uint64_t step = 0; step < steps; ++step) map.add(step, 0, 1, false);
            ASSERT_LE(map.columns().size(), most);
            std::uint64_t next = 0;
            for (const HeatMap::Column& column : map.columns()) {
                EXPECT_EQ(column.first, next);
                next = column.last + 1;
            }
            EXPECT_EQ(next, steps);
        }
}

TEST(HeatMapTest, MergedCellKeepsTheLargestAndTheMark) {
    HeatMap map(1, 4);
    for (std::uint64_t step = 0; step < 1000; ++step) map.add(step, 0, step == 333 ? 99 : 1, step == 700);
    for (const HeatMap::Column& column : map.columns()) {
        EXPECT_EQ(column.cells[0].value, column.first <= 333 && 333 <= column.last ? 99.0F : 1.0F);
        EXPECT_EQ(column.cells[0].not_finite, column.first <= 700 && 700 <= column.last);
    }
}

TEST(HeatMapTest, ValueBeyondFloatIsMarkedAndNotShown) {
    HeatMap map(1, 4);
    map.add(0, 0, 1e300, false);
    map.add(1, 0, std::numeric_limits<double>::quiet_NaN(), true);
    EXPECT_TRUE(map.columns()[0].cells[0].not_finite);
    EXPECT_TRUE(map.columns()[1].cells[0].not_finite);
    EXPECT_FALSE(map.row_is_empty(0));
}

TEST(HeatMapTest, ValueTooSmallForAFloatIsNotZero) {
    HeatMap map(1, 4);
    map.add(0, 0, 1e-300, false);
    map.add(1, 0, 0, false);
    EXPECT_GT(map.columns()[0].cells[0].value, 0.0F);
    EXPECT_EQ(map.columns()[1].cells[0].value, 0.0F);
}

TEST(HeatMapTest, RowOutOfRangeIsIgnored) {
    HeatMap map(1, 4);
    map.add(0, 1, 5, false);
    EXPECT_TRUE(map.columns().empty());
}

TEST(HeatMapTest, KeptRowsKeepTheirOrder) {
    HeatMap map(3, 4);
    for (std::size_t row = 0; row < 3; ++row) map.add(0, row, static_cast<double>(row), false);
    map.keep_rows({2, 0});
    ASSERT_EQ(map.rows(), 2U);
    EXPECT_EQ(map.columns()[0].cells[0].value, 2.0F);
    EXPECT_EQ(map.columns()[0].cells[1].value, 0.0F);
}

}  // namespace
}  // namespace traindbg::report
