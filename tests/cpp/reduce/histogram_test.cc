#include "traindbg/model/histogram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string_view>

#include "reduce/strided_tensor.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using model::Histogram;
using test::DType;
using test::real_types;
using test::StridedTensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Histogram reference_histogram(const std::vector<double>& values) {
    std::map<int, std::uint64_t> counts;
    for (const double value : values) ++counts[model::bin_of(value)];
    Histogram out;
    for (const auto& [bin, count] : counts) out.push_back({static_cast<std::int16_t>(bin), count});
    return out;
}

void expect_exact(const StridedTensor& tensor) {
    const Histogram want = reference_histogram(tensor.values());
    for (const std::string_view kernel : available_kernels()) {
        const auto got = histogram_with_kernel(kernel, tensor.view());
        ASSERT_TRUE(got.is_ok()) << got.status().to_string();
        EXPECT_EQ(*got, want) << kernel;
    }
    EXPECT_EQ(*histogram(tensor.view()), want);
}

// Every octave of every type, both signs, and what is no number.
double anything(std::mt19937& random) {
    switch (random() % 12) {
        case 0: return 0.0;
        case 1: return -0.0;
        case 2: return kInfinity;
        case 3: return -kInfinity;
        case 4: return kNan;
        default: {
            const double size = std::ldexp(1 + static_cast<double>(random() % 1024) / 1024,
                                           static_cast<int>(random() % 320) - 160);
            return random() % 2 == 0 ? size : -size;
        }
    }
}

TEST(ReduceHistogram, CountsEveryElementOfEveryType) {
    for (const DType dtype : real_types()) {
        for (const std::int64_t size : {1, 3, 4, 5, 1023, 1024, 1025, 5000}) {
            SCOPED_TRACE(std::string(tensor::to_string(dtype)) + " " + std::to_string(size));
            std::mt19937 random(static_cast<unsigned>(size));
            StridedTensor tensor(dtype, {size});
            expect_exact(tensor.fill([&] { return anything(random); }));
        }
    }
}

TEST(ReduceHistogram, SmallWholeNumbersAreExact) {
    for (const DType dtype : real_types()) {
        SCOPED_TRACE(tensor::to_string(dtype));
        StridedTensor tensor(dtype, {300});
        double next = 0;
        expect_exact(tensor.fill([&] { return static_cast<double>(static_cast<int>(next++) % 100); }));
    }
}

TEST(ReduceHistogram, AnyLayout) {
    std::mt19937 random(3);
    const auto next = [&] { return anything(random); };
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt8}) {
        SCOPED_TRACE(tensor::to_string(dtype));
        expect_exact(StridedTensor(dtype, 60, 0, {6, 10}, {1, 6}).fill(next));        // transposed
        expect_exact(StridedTensor(dtype, 6000, 3, {40, 50}, {101, 2}).fill(next));   // with gaps
        expect_exact(StridedTensor(dtype, 3000, 2999, {3000}, {-1}).fill(next));      // backwards
        expect_exact(StridedTensor(dtype, 10, 0, {7, 10, 3}, {0, 1, 0}).fill(next));  // repeated
        expect_exact(StridedTensor(dtype, 2 * 3 * 4 * 5, 0, {2, 3, 4, 5}, {60, 1, 15, 3}).fill(next));
    }
}

TEST(ReduceHistogram, MemoryNeedNotBeAligned) {
    std::vector<std::byte> memory(4 * 100 + 1);
    for (std::size_t i = 0; i < 100; ++i) test::put(memory.data() + 1 + 4 * i, 0.5F);
    const std::vector<std::int64_t> shape = {100};
    const auto got = histogram({memory.data() + 1, DType::kFloat32, shape, {}});
    ASSERT_TRUE(got.is_ok());
    EXPECT_EQ(*got, (Histogram{{static_cast<std::int16_t>(model::bin_of(0.5)), 100}}));
    for (std::size_t i = 0; i < 100; ++i)
        test::put<std::uint16_t>(memory.data() + 1 + 2 * i, 0x3C00);  // 1.0 in float16
    const auto half = histogram({memory.data() + 1, DType::kFloat16, shape, {}});
    ASSERT_TRUE(half.is_ok());
    EXPECT_EQ(*half, (Histogram{{static_cast<std::int16_t>(model::bin_of(1.0)), 100}}));
}

TEST(ReduceHistogram, NothingAndWhatIsNoNumber) {
    EXPECT_EQ(*histogram(StridedTensor(DType::kFloat32, {0}).view()), Histogram{});
    EXPECT_EQ(*histogram(StridedTensor(DType::kFloat32, {4, 0, 3}).view()), Histogram{});
    const std::vector<std::int64_t> shape = {1};
    const double pair[2] = {};
    EXPECT_EQ(histogram({pair, DType::kComplex128, shape, {}}).status().code(), base::Code::kUnsupported);
    const std::vector<std::int64_t> negative = {-1};
    EXPECT_FALSE(histogram({pair, DType::kFloat64, negative, {}}).is_ok());
}

}  // namespace
}  // namespace traindbg::reduce
