#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "reduce/strided_tensor.h"
#include "traindbg/model/channel_statistics.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using model::ChannelStatistics;
using model::Role;
using test::DType;
using test::real_types;
using test::StridedTensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

float narrow(double value) {
    const double clamped = std::fmin(std::fmax(value, -FLT_MAX), FLT_MAX);
    const auto narrowed = static_cast<float>(clamped);
    if (narrowed != 0 || value == 0) return narrowed;
    return value > 0 ? FLT_TRUE_MIN : -FLT_TRUE_MIN;
}

// Element by element, in doubles.
ChannelStatistics reference_of(const StridedTensor& tensor, std::size_t dimension) {
    const std::vector<std::int64_t>& shape = tensor.shape();
    const std::size_t channels = shape.empty() ? 1 : static_cast<std::size_t>(shape[dimension]);
    std::vector<double> least(channels, kInfinity);
    std::vector<double> most(channels, -kInfinity);
    std::vector<double> zeros(channels);
    std::vector<double> elements(channels);
    const std::vector<double> values = tensor.values();
    std::int64_t inner = 1;
    for (std::size_t i = dimension + 1; i < shape.size(); ++i) inner *= shape[i];
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t channel = shape.empty() ? 0 : i / static_cast<std::size_t>(inner) % channels;
        ++elements[channel];
        if (values[i] == 0) ++zeros[channel];
        if (!std::isfinite(values[i])) continue;
        least[channel] = std::min(least[channel], values[i]);
        most[channel] = std::max(most[channel], values[i]);
    }
    ChannelStatistics out;
    for (std::size_t c = 0; c < channels; ++c) {
        const bool has_any = least[c] <= most[c];
        out.min.push_back(has_any ? narrow(least[c]) : 0);
        out.max.push_back(has_any ? narrow(most[c]) : 0);
        out.zero.push_back(elements[c] == 0 ? 0 : static_cast<float>(zeros[c] / elements[c]));
    }
    return out;
}

void expect_exact(const StridedTensor& tensor) {
    for (std::size_t dimension = 0; dimension < tensor.shape().size(); ++dimension) {
        SCOPED_TRACE("dimension " + std::to_string(dimension));
        const ChannelStatistics expected = reference_of(tensor, dimension);
        for (const std::string_view kernel : available_kernels()) {
            const auto got = channel_statistics_with_kernel(kernel, tensor.view(), dimension);
            ASSERT_TRUE(got.is_ok()) << got.status().to_string();
            EXPECT_EQ(*got, expected) << kernel;
        }
    }
}

// Zeros, what is not finite, and numbers of any size, one sign more often than the other.
double anything(std::mt19937& random) {
    switch (random() % 8) {
        case 0: return 0.0;
        case 1: return random() % 4 == 0 ? kNan : -0.0;
        case 2: return random() % 4 == 0 ? kInfinity : -kInfinity;
        default: {
            const double size = std::ldexp(1 + static_cast<double>(random() % 1024) / 1024,
                                           static_cast<int>(random() % 60) - 30);
            return random() % 3 == 0 ? size : -size;
        }
    }
}

TEST(ReduceChannels, EveryTypeAndEveryDimension) {
    for (const DType dtype : real_types()) {
        SCOPED_TRACE(tensor::to_string(dtype));
        std::mt19937 random(1);
        const auto next = [&] { return anything(random); };
        expect_exact(StridedTensor(dtype, {700}).fill(next));
        expect_exact(StridedTensor(dtype, {33, 17}).fill(next));
        expect_exact(StridedTensor(dtype, {3, 1030}).fill(next));
        expect_exact(StridedTensor(dtype, {4, 5, 6}).fill(next));
        expect_exact(StridedTensor(dtype, {5, 16, 7, 3}).fill(next));
        expect_exact(StridedTensor(dtype, {1, 1, 1}).fill(next));
    }
}

TEST(ReduceChannels, EveryLayout) {
    std::mt19937 random(2);
    const auto next = [&] { return anything(random); };
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt8}) {
        SCOPED_TRACE(tensor::to_string(dtype));
        expect_exact(StridedTensor(dtype, 60, 0, {6, 10}, {1, 6}).fill(next));         // transposed
        expect_exact(StridedTensor(dtype, 6000, 3, {40, 50}, {101, 2}).fill(next));    // with gaps
        expect_exact(StridedTensor(dtype, 640, 639, {20, 32}, {-32, -1}).fill(next));  // backwards
        expect_exact(StridedTensor(dtype, 20, 0, {7, 20, 3}, {0, 1, 0}).fill(next));   // repeated
        expect_exact(StridedTensor(dtype, 20, 0, {20, 30}, {1, 0}).fill(next));        // repeated channels
        expect_exact(StridedTensor(dtype, 1920, 0, {2, 16, 12, 5}, {960, 1, 80, 16}).fill(next));  // last
        expect_exact(StridedTensor(dtype, 30, 0, {2, 3, 5}, {1, 2, 6}).fill(next));
    }
}

TEST(ReduceChannels, MemoryNeedNotBeAligned) {
    std::vector<std::byte> memory(4 * 100 + 1);
    for (std::size_t i = 0; i < 100; ++i)
        test::put(memory.data() + 1 + 4 * i, static_cast<float>(i % 10) - 4.0F);
    const std::vector<std::int64_t> shape = {10, 10};
    const auto got = channel_statistics({memory.data() + 1, DType::kFloat32, shape, {}}, 1);
    ASSERT_TRUE(got.is_ok());
    EXPECT_EQ(got->min, (std::vector<float>{-4, -3, -2, -1, 0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(got->max, got->min);
    EXPECT_EQ(got->zero, (std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
}

TEST(ReduceChannels, WhatNoFloatHoldsStaysFiniteAndIsNotZero) {
    StridedTensor tensor(DType::kFloat64, {2, 2});
    tensor.set(0, 1e300);
    tensor.set(1, 1e-300);
    tensor.set(2, -1e300);
    tensor.set(3, -1e-300);
    const auto got = channel_statistics(tensor.view(), 1);
    ASSERT_TRUE(got.is_ok());
    EXPECT_EQ(got->min, (std::vector<float>{-FLT_MAX, -FLT_TRUE_MIN}));
    EXPECT_EQ(got->max, (std::vector<float>{FLT_MAX, FLT_TRUE_MIN}));
}

TEST(ReduceChannels, NothingAndWhatCannotBe) {
    const auto empty = channel_statistics(StridedTensor(DType::kFloat32, {0, 3}).view(), 1);
    ASSERT_TRUE(empty.is_ok());
    EXPECT_EQ(*empty, (ChannelStatistics{{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}));
    EXPECT_EQ(*channel_statistics(StridedTensor(DType::kFloat32, {0}).view(), 0), ChannelStatistics{});
    StridedTensor scalar(DType::kFloat32, {});
    scalar.set(0, -2);
    EXPECT_EQ(*channel_statistics(scalar.view(), 0), (ChannelStatistics{{-2}, {-2}, {0}}));
    EXPECT_EQ(channel_statistics(scalar.view(), 7)->channels(), 1U) << "there is no dimension to choose";
    EXPECT_EQ(channel_statistics(StridedTensor(DType::kFloat32, {3}).view(), 1).status().code(),
              base::Code::kInvalidArgument);
    EXPECT_EQ(channel_statistics(StridedTensor(DType::kComplex64, {3}).view(), 0).status().code(),
              base::Code::kUnsupported);
    const StridedTensor many(DType::kInt8, {std::int64_t{model::kMostChannels} + 1});
    EXPECT_EQ(channel_statistics(many.view(), 0).status().code(), base::Code::kUnsupported);
    EXPECT_TRUE(channel_statistics(StridedTensor(DType::kInt8, {model::kMostChannels}).view(), 0).is_ok());
    EXPECT_EQ(channel_statistics_with_kernel("abacus", scalar.view(), 0).status().code(),
              base::Code::kNotFound);
}

TEST(ReduceChannels, WhichDimensionCountsThem) {
    EXPECT_EQ(model::channel_dimension(Role::kActivation, 1), 0U);
    EXPECT_EQ(model::channel_dimension(Role::kActivation, 2), 1U);
    EXPECT_EQ(model::channel_dimension(Role::kActivation, 3), 2U);
    EXPECT_EQ(model::channel_dimension(Role::kOutput, 4), 1U);
    EXPECT_EQ(model::channel_dimension(Role::kWeight, 4), 0U);
    EXPECT_EQ(model::channel_dimension(Role::kGradient, 2), 0U);
    EXPECT_EQ(model::channel_dimension(Role::kWeightUpdate, 3), 0U);
    EXPECT_EQ(model::channel_dimension(Role::kBuffer, 3), 0U);
}

}  // namespace
}  // namespace traindbg::reduce
