#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "reduce/strided_tensor.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using test::DType;
using test::StridedTensor;

using Rows = std::vector<std::vector<double>>;

// In two passes, in doubles, value by value.
RowSpread spread_in_two_passes(const Rows& rows) {
    const auto n = static_cast<double>(rows.size());
    const std::size_t columns = rows[0].size();
    const auto all = n * static_cast<double>(columns);
    std::vector<double> means(columns);
    std::vector<double> unit_means(columns);
    std::vector<double> lengths;
    double squares = 0;
    for (const auto& row : rows) {
        double own = 0;
        for (const double x : row) own += x * x;
        squares += own;
        lengths.push_back(std::max(std::sqrt(own), 1e-30));
        for (std::size_t c = 0; c < columns; ++c) {
            means[c] += row[c] / n;
            unit_means[c] += row[c] / lengths.back() / n;
        }
    }
    double deviations = 0;
    double turns = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t c = 0; c < columns; ++c) {
            deviations += std::pow(rows[i][c] - means[c], 2);
            turns += std::pow(rows[i][c] / lengths[i] - unit_means[c], 2);
        }
    double trace = 0;
    double products = 0;
    for (std::size_t i = 0; i < rows.size(); ++i)
        for (std::size_t j = 0; j < rows.size(); ++j) {
            double product = 0;
            for (std::size_t c = 0; c < std::min<std::size_t>(columns, 512); ++c)
                product += (rows[i][c] - means[c]) * (rows[j][c] - means[c]);
            products += product * product;
            if (i == j) trace += product;
        }
    return {.deviation = std::sqrt(deviations / all),
            .size = std::sqrt(squares / all),
            .directions = trace == 0 ? 0 : trace * trace / products,
            .turn = std::sqrt(turns / n)};
}

// What is looked at of a batch of [samples, a] or [samples, a, b, c], cut to `extents`.
Rows rows_of(const StridedTensor& batch, const std::vector<std::int64_t>& extents) {
    Rows rows;
    std::vector<std::int64_t> index(extents.size(), 0);
    for (; index[0] < extents[0]; ++index[0]) {
        std::vector<double> row;
        for (bool is_left = true; is_left;) {
            row.push_back(static_cast<double>(static_cast<float>(batch.at(index))));
            std::size_t i = index.size() - 1;
            for (; i > 0; --i) {
                if (++index[i] < extents[i]) break;
                index[i] = 0;
            }
            is_left = i > 0;
        }
        rows.push_back(row);
    }
    return rows;
}

void expect_near(const RowSpread& got, const RowSpread& expected) {
    EXPECT_NEAR(got.deviation, expected.deviation, 1e-6 * expected.deviation);
    EXPECT_NEAR(got.size, expected.size, 1e-6 * expected.size);
    EXPECT_NEAR(got.directions, expected.directions, 1e-5 * expected.directions);
    EXPECT_NEAR(got.turn, expected.turn, 1e-6);
}

void expect_spread(const StridedTensor& batch, const std::vector<std::int64_t>& extents) {
    const RowSpread expected = spread_in_two_passes(rows_of(batch, extents));
    for (const std::string_view kernel : available_kernels()) {
        SCOPED_TRACE(kernel);
        const auto got = row_spread_with_kernel(kernel, batch.view());
        ASSERT_TRUE(got.is_ok()) << got.status().to_string();
        expect_near(*got, expected);
    }
    EXPECT_DOUBLE_EQ(row_deviation(batch.view())->deviation, row_spread(batch.view())->deviation);
    EXPECT_DOUBLE_EQ(row_deviation(batch.view())->size, row_spread(batch.view())->size);
    EXPECT_NEAR(*row_directions(batch.view()), expected.directions, 1e-5 * expected.directions);
}

auto normal(double mean = 0, double deviation = 1) {
    return [numbers = std::mt19937_64(7), distribution = std::normal_distribution<double>(
                                              mean, deviation)]() mutable { return distribution(numbers); };
}

StridedTensor batch_of(std::vector<std::int64_t> shape, double mean = 0, double deviation = 1) {
    StridedTensor batch(DType::kFloat32, std::move(shape));
    batch.fill(normal(mean, deviation));
    return batch;
}

TEST(RowSpread, AgreesWithTwoPassesForAnyNumberOfRowsAndColumns) {
    for (const std::int64_t rows : {8, 9, 11, 31, 32, 63, 64})
        for (const std::int64_t columns : {2, 3, 7, 16, 17, 33, 100, 511, 512})
            expect_spread(batch_of({rows, columns}), {rows, columns});
}

TEST(RowSpread, DirectionsAreOfTheFirst512ValuesAndTheRestOf4096) {
    for (const std::int64_t columns : {513, 600, 4095, 4096})
        expect_spread(batch_of({12, columns}), {12, columns});
    expect_spread(batch_of({12, 5000}), {12, 4096});
}

TEST(RowSpread, LooksAt64Rows) { expect_spread(batch_of({100, 20}), {64, 20}); }

TEST(RowSpread, InnerDimensionsAreCutFromTheOutermostOn) {
    expect_spread(batch_of({9, 3, 20, 10}), {9, 3, 20, 10});
    expect_spread(batch_of({9, 30, 20, 10}), {9, 20, 20, 10});
    expect_spread(batch_of({9, 2, 70, 71}), {9, 1, 57, 71});
    expect_spread(batch_of({9, 2, 1, 5000}), {9, 1, 1, 4096});
}

TEST(RowSpread, ReadsAnyLayout) {
    const auto strided = [](std::size_t elements, std::vector<std::int64_t> shape,
                            std::vector<std::int64_t> strides, std::int64_t offset = 0) {
        StridedTensor batch(DType::kFloat32, elements, offset, shape, std::move(strides));
        batch.fill(normal());
        expect_spread(batch, shape);
    };
    strided(16 * 30, {16, 30}, {1, 16});                            // transposed
    strided(16 * 40, {16, 30}, {40, 1}, 5);                         // with gaps between rows
    strided(16 * 60, {16, 30}, {60, 2});                            // and between values
    strided(16 * 6 * 5 * 4, {16, 6, 5, 4}, {120, 1, 24, 6});        // channels last
    strided(16 * 30, {16, 30}, {-30, 1}, 15 * 30);                  // backwards
    strided(9 * 3000, {9, 3, 1000}, {3000, 1, 3});                  // more than is gathered at a time
    strided(16 * 30, {16, 2, 30}, {30, 0, 1});                      // repeated
    StridedTensor equal(DType::kFloat32, 30, 0, {16, 30}, {0, 1});  // all rows are one
    equal.fill(normal());
    EXPECT_EQ(row_spread(equal.view())->directions, 0);
    EXPECT_EQ(row_spread(equal.view())->deviation, 0);
}

TEST(RowSpread, ReadsAnyFloat) {
    for (const DType dtype : {DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kFloat8E5M2})
        for (const std::int64_t columns : {30, 1300}) {
            SCOPED_TRACE(tensor::to_string(dtype));
            StridedTensor batch(dtype, {16, columns});
            // Bits of float8 that are all finite.
            if (dtype == DType::kFloat8E5M2)
                batch.fill([next = normal(60, 8)]() mutable { return std::clamp(next(), 1.0, 120.0); });
            else batch.fill(normal());
            expect_spread(batch, {16, columns});
        }
}

TEST(RowSpread, RowsThatAreNearlyEqualAreToldApart) {
    expect_spread(batch_of({12, 50}, 1000, 1e-3), {12, 50});
    StridedTensor equal(DType::kFloat32, {12, 50});
    equal.fill([] { return 0.3; });
    const RowSpread spread = *row_spread(equal.view());
    EXPECT_EQ(spread.deviation, 0);
    EXPECT_EQ(spread.directions, 0);
    EXPECT_NEAR(spread.turn, 0, 1e-7);
    EXPECT_FLOAT_EQ(static_cast<float>(spread.size), 0.3F);
}

TEST(RowSpread, HugeAndTinyValuesKeepTheirDirections) {
    for (const double scale : {1e-25, 1e-18, 1e-9, 1e9, 1e18, 1e30, 1e36}) {
        SCOPED_TRACE(scale);
        expect_spread(batch_of({16, 40}, 0, scale), {16, 40});
    }
}

TEST(RowSpread, DirectionsAreAsManyAsRowsSpreadIn) {
    StridedTensor even(DType::kFloat32, {64, 8});
    even.fill([] { return 0.0; });
    for (std::size_t i = 0; i < 64; ++i) even.set(i * 8 + i % 8, 1);
    EXPECT_NEAR(*row_directions(even.view()), 7, 1e-5);
    StridedTensor copies(DType::kFloat32, {64, 40});
    auto next = normal();
    for (std::size_t i = 0; i < 64; ++i) {
        const double value = next();
        for (std::size_t c = 0; c < 40; ++c) copies.set(i * 40 + c, value + 3);
    }
    EXPECT_NEAR(*row_directions(copies.view()), 1, 1e-5);
}

TEST(RowSpread, RowsOfZerosHaveNoDirectionOfTheirOwn) {
    StridedTensor batch = batch_of({16, 30});
    for (std::size_t c = 0; c < 30; ++c) batch.set(5 * 30 + c, 0);
    expect_spread(batch, {16, 30});
    batch.fill([] { return 0.0; });
    for (const double told : {row_spread(batch.view())->deviation, row_spread(batch.view())->size,
                              row_spread(batch.view())->directions, row_spread(batch.view())->turn})
        EXPECT_EQ(told, 0);
}

TEST(RowSpread, WhatIsNotFiniteIsNotHidden) {
    for (const double odd :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
        for (const std::size_t at : {0U, 29U, 479U}) {
            StridedTensor batch = batch_of({16, 30});
            batch.set(at, odd);
            for (const std::string_view kernel : available_kernels()) {
                const auto got = row_spread_with_kernel(kernel, batch.view());
                EXPECT_TRUE(std::isnan(got->deviation)) << kernel;
                EXPECT_FALSE(std::isfinite(got->size)) << kernel;
                EXPECT_TRUE(std::isnan(got->directions)) << kernel;
                EXPECT_TRUE(std::isnan(got->turn)) << kernel;
            }
        }
}

TEST(RowSpread, WhatIsNoBatchIsAnError) {
    EXPECT_EQ(row_spread(batch_of({7, 30}).view()).status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(row_spread(batch_of({16, 1}).view()).status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(row_spread(batch_of({16}).view()).status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(row_spread(batch_of({}).view()).status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(row_spread(batch_of({0, 30}).view()).status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(row_spread(batch_of({16, 0}).view()).status().code(), base::Code::kInvalidArgument);
    EXPECT_EQ(row_spread(StridedTensor(DType::kInt64, {16, 30}).view()).status().code(),
              base::Code::kUnsupported);
    EXPECT_EQ(row_spread_with_kernel("abacus", batch_of({16, 30}).view()).status().code(),
              base::Code::kNotFound);
}

}  // namespace
}  // namespace traindbg::reduce
