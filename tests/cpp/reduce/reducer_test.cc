#include "traindbg/reduce/reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>

#include "reduce/strided_tensor.h"
#include "traindbg/reduce/kernels.h"

namespace traindbg::reduce {
namespace {

using base::Code;
using model::Statistics;
using tensor::TensorView;
using test::DType;
using test::expect_close;
using test::StridedTensor;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Data {
    const char* name;
    std::function<double(std::mt19937&)> next;
};

double normal(std::mt19937& random, double mean, double deviation) {
    return std::normal_distribution<double>(mean, deviation)(random);
}

// Distributions that an accumulator in float lanes could get wrong.
std::vector<Data> distributions() {
    return {
        {"centred", [](auto& r) { return normal(r, 0, 1); }},
        {"far from zero", [](auto& r) { return normal(r, 1000, 1); }},
        {"vanishing", [](auto& r) { return normal(r, 0, 1e-22); }},
        {"denormal", [](auto& r) { return normal(r, 0, 1e-40); }},
        {"exploding", [](auto& r) { return normal(r, 0, 1e37); }},
        {"constant", [](auto&) { return 0.1; }},
        {"all zero", [](auto&) { return 0.0; }},
        {"after a ReLU", [](auto& r) { return std::max(0.0, normal(r, 0, 1)); }},
        {"heavy tails", [](auto& r) { return std::pow(normal(r, 0, 1), 9); }},
        {"rare outliers", [](auto& r) { return r() % 500 == 0 ? 1e6 : normal(r, 3, 1e-3); }},
        {"few NaN", [](auto& r) { return r() % 300 == 0 ? kNan : normal(r, 5, 2); }},
        {"few infinite", [](auto& r) { return r() % 300 == 0 ? -kInfinity : normal(r, 5, 2); }},
        {"everything",
         [](auto& r) {
             switch (r() % 6) {
                 case 0: return kNan;
                 case 1: return kInfinity;
                 case 2: return -kInfinity;
                 case 3: return 0.0;
                 default: return normal(r, -7, 3);
             }
         }},
        {"all NaN", [](auto&) { return kNan; }},
        {"all infinite", [](auto&) { return kInfinity; }},
    };
}

class Kernel : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, Kernel, testing::ValuesIn([] {
                             std::vector<std::string> names;
                             for (const std::string_view name : available_kernels()) names.emplace_back(name);
                             return names;
                         }()),
                         [](const auto& kernel) { return kernel.param; });

TEST_P(Kernel, AgreesWithTheReferenceForEverySizeAroundItsBlocks) {
    std::mt19937 random(1);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
        for (const std::int64_t size :
             {1,   2,    3,    4,    5,    7,    8,    9,    15,   16,   17,   31,   32,
              33,  63,   64,   65,   100,  127,  128,  129,  255,  256,  257,  511,  512,
              513, 1023, 1024, 1025, 2047, 2048, 2049, 2111, 4095, 4096, 4097, 6143, 10001}) {
            StridedTensor data(dtype, {size});
            data.fill([&] { return normal(random, 0.5, 2); });
            const auto got = statistics_with_kernel(GetParam(), data.view());
            ASSERT_TRUE(got) << got.status().message();
            expect_close(*got, test::reference(data.values()),
                         std::string(tensor::to_string(dtype)) + " of " + std::to_string(size));
        }
    }
}

TEST_P(Kernel, AgreesWithTheReferenceForEveryDistribution) {
    std::mt19937 random(2);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
        for (const Data& kind : distributions()) {
            for (const std::int64_t size : {1, 3, 50, 777, 5000, 40'000}) {
                StridedTensor data(dtype, {size});
                data.fill([&] { return kind.next(random); });
                const auto got = statistics_with_kernel(GetParam(), data.view());
                ASSERT_TRUE(got) << got.status().message();
                expect_close(
                    *got, test::reference(data.values()),
                    std::string(tensor::to_string(dtype)) + ", " + kind.name + ", " + std::to_string(size));
            }
        }
    }
}

TEST_P(Kernel, OneOddElementAnywhereIsFoundAndHidesNothing) {
    std::mt19937 random(3);
    constexpr std::size_t kSize = 4200;  // some blocks and a tail, for every kernel
    StridedTensor data(DType::kFloat32, {kSize});
    data.fill([&] { return normal(random, 0, 1); });
    for (std::size_t place = 0; place < kSize; place += 41) {
        for (const double odd : {kNan, kInfinity, -kInfinity, 3e38, 0.0}) {
            StridedTensor copy = data;
            copy.set(place, odd);
            const auto got = statistics_with_kernel(GetParam(), copy.view());
            ASSERT_TRUE(got);
            expect_close(*got, test::reference(copy.values()), "at " + std::to_string(place));
        }
    }
}

TEST_P(Kernel, AnOutlierInFrontDoesNotSpoilTheDeviation) {
    std::mt19937 random(4);
    for (const double outlier : {-1e6, 1100.0, 1e12, 1e30}) {
        StridedTensor data(DType::kFloat32, {100'000});
        data.fill([&] { return normal(random, 1000, 1); });
        data.set(0, outlier);
        const auto got = statistics_with_kernel(GetParam(), data.view());
        ASSERT_TRUE(got);
        expect_close(*got, test::reference(data.values()), std::to_string(outlier));
    }
}

TEST_P(Kernel, ADriftFromBlockToBlockDoesNotSpoilTheDeviation) {
    std::mt19937 random(5);
    StridedTensor data(DType::kFloat32, {60'000});
    double level = 0;
    data.fill([&] { return normal(random, level += 0.1, 1e-3); });
    const auto got = statistics_with_kernel(GetParam(), data.view());
    ASSERT_TRUE(got);
    expect_close(*got, test::reference(data.values()), "drift");
}

TEST_P(Kernel, DoublesBeyondTheRangeOfTheirSquaresKeepTheirMoments) {
    std::mt19937 random(6);
    for (const double scale : {1e-320, 1e-300, 1e-160, 1e160, 1e300}) {
        StridedTensor data(DType::kFloat64, {3000});
        data.fill([&] { return normal(random, 2, 1) * scale; });
        data.set(17, 0);
        const auto got = statistics_with_kernel(GetParam(), data.view());
        ASSERT_TRUE(got);
        expect_close(*got, test::reference(data.values()), std::to_string(std::log10(scale)));
    }
}

TEST_P(Kernel, ElementsAtOddAddressesAreRead) {
    std::vector<std::byte> memory(4 * 1001 + 1);
    for (std::size_t i = 0; i < 1001; ++i) test::put(memory.data() + 1 + 4 * i, static_cast<float>(i));
    const std::int64_t size = 1001;
    const TensorView view{memory.data() + 1, DType::kFloat32, {&size, 1}, {}};
    const auto got = statistics_with_kernel(GetParam(), view);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->max, 1000);
    EXPECT_DOUBLE_EQ(got->mean, 500);
}

TEST(Reducer, KernelsEndWithThePlainOneAndUnknownNamesAreRefused) {
    const auto names = available_kernels();
    ASSERT_FALSE(names.empty());
    EXPECT_NE(std::find(names.begin(), names.end(), kernel_name()), names.end());
#if defined(__x86_64__)
    EXPECT_EQ(names.back(), "scalar");
#endif
    const std::int64_t size = 1;
    const float value = 1;
    const TensorView view{&value, DType::kFloat32, {&size, 1}, {}};
    EXPECT_EQ(statistics_with_kernel("mmx", view).status().code(), Code::kNotFound);
    EXPECT_EQ(histogram_with_kernel("mmx", view).status().code(), Code::kNotFound);
}

#if defined(__x86_64__)  // elsewhere there is one
TEST(KernelChoiceDeathTest, TheEnvironmentNamesTheKernel) {
    // A process chooses once: each of these is a new one.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const char* const set = std::getenv("TRAINDBG_KERNEL");
    const std::string before = set == nullptr ? "" : set;
    std::vector<std::string> names;
    for (const std::string_view name : available_kernels()) names.emplace_back(name);
    const std::string best = names.front();
    names.emplace_back("mmx");
    for (const std::string& name : names) {
        ::setenv("TRAINDBG_KERNEL", name.c_str(), 1);
        const auto tell = [] {
            std::fprintf(stderr, "chosen: %s;", std::string(kernel_name()).c_str());
            std::_Exit(0);
        };
        EXPECT_EXIT(tell(), testing::ExitedWithCode(0), "chosen: " + (name == "mmx" ? best : name) + ";");
    }
    if (set == nullptr) ::unsetenv("TRAINDBG_KERNEL");
    else ::setenv("TRAINDBG_KERNEL", before.c_str(), 1);
}
#endif

TEST_P(Kernel, EveryElementTypeAgreesWithTheReference) {
    std::mt19937 random(7);
    for (const DType dtype : test::real_types()) {
        for (const std::int64_t size : {1, 3, 16, 100, 2047, 3000, 40'000}) {
            // For fp8 whole numbers are bits: all values, NaN and infinities among them.
            StridedTensor bits(dtype, {size});
            bits.fill([&] { return static_cast<double>(random() % 256); });
            // Those that cancel out, of which integers are as large as their type holds.
            StridedTensor cancelling(dtype, {size});
            cancelling.fill([&] { return normal(random, 0, 1e18); });
            for (const StridedTensor& data : {bits, cancelling}) {
                const auto got = statistics_with_kernel(GetParam(), data.view());
                ASSERT_TRUE(got) << got.status().message();
                expect_close(*got, test::reference(data.values()),
                             std::string(tensor::to_string(dtype)) + " of " + std::to_string(size));
            }
        }
    }
}

TEST_P(Kernel, IntegersAreExactUpToTheirMantissaAndTheNearestDoubleBeyond) {
    const std::int64_t size = 3;
    const std::int64_t exact[] = {-9007199254740991, 5, 9007199254740991};
    const auto got = statistics_with_kernel(GetParam(), {exact, DType::kInt64, {&size, 1}, {}});
    ASSERT_TRUE(got);
    EXPECT_EQ(got->min, -9007199254740991.0);
    EXPECT_EQ(got->max, 9007199254740991.0);
    const std::uint64_t beyond[] = {0, 5, UINT64_MAX};
    const auto rounded = statistics_with_kernel(GetParam(), {beyond, DType::kUInt64, {&size, 1}, {}});
    ASSERT_TRUE(rounded);
    EXPECT_EQ(rounded->zero, 1U);
    EXPECT_EQ(rounded->max, 18446744073709551616.0);
}

TEST_P(Kernel, DoublesKeepTheirExtremesToTheLastBit) {
    StridedTensor data(DType::kFloat64, {3});
    data.set(0, -1 - 1e-15);
    data.set(2, 1 + 1e-15);
    const auto got = statistics_with_kernel(GetParam(), data.view());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->min, -1 - 1e-15);
    EXPECT_EQ(got->max, 1 + 1e-15);
}

TEST_P(Kernel, AStreamIsACopyOfAnyLength) {
    const auto kernel = find_kernel(GetParam());
    ASSERT_TRUE(kernel);
    std::vector<std::byte> from(5001);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7);
    alignas(kStreamAlignment) std::array<std::byte, 5120> to;
    for (const std::size_t bytes : {0U, 1U, 63U, 64U, 255U, 256U, 1024U, 4097U, 5000U}) {
        to.fill(std::byte{0});
        (*kernel)->stream(from.data() + 1, bytes, to.data());
        EXPECT_TRUE(std::equal(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(bytes), from.begin() + 1))
            << bytes;
        EXPECT_EQ(to[bytes], std::byte{0}) << bytes;
    }
}

TEST(Reducer, NoElementsGiveZeros) {
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{0}, {3, 0, 5}}) {
        const StridedTensor data(DType::kFloat32, shape);
        const auto got = statistics(data.view());
        ASSERT_TRUE(got);
        EXPECT_EQ(*got, Statistics{});
        EXPECT_TRUE(statistics({nullptr, DType::kFloat32, shape, {}}));
    }
}

TEST(Reducer, AScalarTensorHasOneElement) {
    StridedTensor data(DType::kFloat32, std::vector<std::int64_t>{});
    data.set(0, -2.5);
    const auto got = statistics(data.view());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->count, 1U);
    EXPECT_EQ(got->mean, -2.5);
    EXPECT_EQ(got->l1, 2.5);
    EXPECT_EQ(got->std, 0);
}

TEST(Reducer, WhatIsNoTensorOfRealNumbersIsRefused) {
    const std::vector<std::int64_t> shape = {2, 2};
    const std::vector<std::int64_t> negative = {2, -2};
    const std::vector<std::int64_t> huge = {std::int64_t{1} << 40, std::int64_t{1} << 40};
    const std::vector<std::int64_t> short_strides = {1};
    const std::vector<std::int64_t> zeros = {0, 0};
    const std::vector<double> data(16);
    EXPECT_EQ(statistics({data.data(), DType::kComplex64, shape, {}}).status().code(), Code::kUnsupported);
    EXPECT_EQ(statistics({data.data(), DType::kUnknown, shape, {}}).status().code(), Code::kUnsupported);
    EXPECT_EQ(statistics({nullptr, DType::kFloat32, shape, {}}).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(statistics({data.data(), DType::kFloat32, negative, {}}).status().code(),
              Code::kInvalidArgument);
    EXPECT_EQ(statistics({data.data(), DType::kFloat32, shape, short_strides}).status().code(),
              Code::kInvalidArgument);
    EXPECT_EQ(statistics({data.data(), DType::kFloat32, huge, zeros}).status().code(),
              Code::kInvalidArgument);
    std::vector<std::int64_t> many(65, 1);
    many[0] = 2;
    const std::vector<std::int64_t> apart(65, 3);
    EXPECT_EQ(statistics({data.data(), DType::kFloat32, many, apart}).status().code(), Code::kUnsupported);
}

struct Layout {
    const char* name;
    std::size_t elements;
    std::int64_t offset;
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
};

std::vector<Layout> layouts() {
    return {
        {"transposed", 6000, 0, {60, 100}, {1, 60}},
        {"channels last", 2 * 8 * 5 * 7, 0, {2, 8, 5, 7}, {280, 1, 56, 8}},
        {"channels first", 2 * 8 * 5 * 7, 0, {2, 8, 5, 7}, {280, 35, 7, 1}},
        {"turned around", 5000, 4999, {5000}, {-1}},
        {"every third", 3000, 1, {999}, {3}},
        {"some columns", 10'000, 20, {100, 37}, {100, 1}},
        {"long rows with gaps", 12'000, 0, {4, 2500}, {3000, 1}},
        {"expanded", 100, 0, {50, 100}, {0, 1}},
        {"expanded inside", 100, 0, {100, 50}, {1, 0}},
        {"one value, a billion times", 1, 0, {1000, 1000, 1000}, {0, 0, 0}},
        {"overlapping windows", 100, 0, {90, 11}, {1, 1}},
        {"turned and transposed", 600, 599, {20, 30}, {-1, -20}},
        {"ones in between", 24, 0, {1, 4, 1, 6}, {77, 6, -3, 1}},
    };
}

TEST(Strides, EveryLayoutGivesTheStatisticsOfItsElements) {
    std::mt19937 random(8);
    for (const Layout& layout : layouts()) {
        for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt8}) {
            StridedTensor data(dtype, layout.elements, layout.offset, layout.shape, layout.strides);
            data.fill([&] { return normal(random, 20, 9); });
            const auto got = statistics(data.view());
            ASSERT_TRUE(got) << got.status().message();
            if (std::string_view(layout.name).starts_with("one value")) {
                EXPECT_EQ(got->count, 1'000'000'000U);
                EXPECT_EQ(got->min, got->max);
                EXPECT_EQ(got->std, 0);
                EXPECT_NEAR(got->l1, std::abs(got->min) * 1e9, 1);
                continue;
            }
            expect_close(*got, test::reference(data.values()), layout.name);
        }
    }
}

TEST(Strides, RandomLayoutsGiveTheStatisticsOfTheirElements) {
    std::mt19937 random(9);
    for (int round = 0; round < 400; ++round) {
        const std::size_t rank = 1 + random() % 5;
        std::vector<std::int64_t> shape(rank);
        std::vector<std::int64_t> strides(rank);
        std::int64_t first = 0;
        std::int64_t last = 0;
        for (std::size_t i = 0; i < rank; ++i) {
            shape[i] = static_cast<std::int64_t>(1 + random() % 9);
            strides[i] = static_cast<std::int64_t>(random() % 40) - 12;
            const std::int64_t reach = (shape[i] - 1) * strides[i];
            (reach < 0 ? first : last) += reach;
        }
        StridedTensor data(DType::kFloat32, static_cast<std::size_t>(last - first + 1), -first, shape,
                           strides);
        data.fill([&] { return random() % 50 == 0 ? kNan : normal(random, 0, 3); });
        const std::vector<double> values = data.values();
        const auto got = statistics(data.view());
        ASSERT_TRUE(got);
        expect_close(*got, test::reference(values), "round " + std::to_string(round));

        std::vector<float> copy(values.size());
        ASSERT_TRUE(copy_row_major(data.view(), std::as_writable_bytes(std::span(copy))));
        for (std::size_t i = 0; i < values.size(); ++i)
            ASSERT_TRUE(static_cast<double>(copy[i]) == values[i] ||
                        (std::isnan(copy[i]) && std::isnan(values[i])))
                << round << " at " << i;
    }
}

// The second array is near the first one, as weights are after a step; some elements stay the same.
StridedTensor near(const StridedTensor& before, std::mt19937& random) {
    StridedTensor after = before;
    std::size_t at = 0;
    for (const double value : before.values()) {
        if (random() % 4 != 0) after.set(at, value * (1 + normal(random, 0, 0.01)));
        ++at;
    }
    return after;
}

std::vector<double> difference_of(const StridedTensor& before, const StridedTensor& after) {
    std::vector<double> out = after.values();
    const std::vector<double> first = before.values();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= first[i];
    return out;
}

// What the header promises of a difference.
void expect_difference(const base::Result<DifferenceStatistics>& result, const StridedTensor& before,
                       const StridedTensor& after, const std::string& what) {
    SCOPED_TRACE(what);
    ASSERT_TRUE(result) << result.status().message();
    const Statistics& got = result->difference;
    const Statistics want = test::reference(difference_of(before, after));
    constexpr double kOneRounding = 0x1p-23;
    EXPECT_EQ(got.count, want.count);
    EXPECT_EQ(got.nan, want.nan);
    EXPECT_EQ(got.positive_infinite, want.positive_infinite);
    EXPECT_EQ(got.negative_infinite, want.negative_infinite);
    EXPECT_EQ(got.zero, want.zero);
    EXPECT_NEAR(got.min, want.min, kOneRounding * std::abs(want.min));
    EXPECT_NEAR(got.max, want.max, kOneRounding * std::abs(want.max));
    const double mean_size = want.finite() == 0 ? 0 : want.l1 / static_cast<double>(want.finite());
    EXPECT_NEAR(got.mean, want.mean, 1e-6 * mean_size);
    EXPECT_NEAR(got.l1, want.l1, 1e-6 * want.l1);
    EXPECT_NEAR(got.l2, want.l2, 1e-5 * want.l2);
    EXPECT_NEAR(got.std, want.std, 1e-5 * want.std + kOneRounding * mean_size);
    const double before_l2 = test::reference(before.values()).l2;
    EXPECT_NEAR(result->before_l2, before_l2, 1e-5 * before_l2);
}

TEST_P(Kernel, DifferencesAgreeWithTheReferenceForEverySizeAroundTheBlocks) {
    std::mt19937 random(21);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
        for (const std::int64_t size :
             {1,   2,   3,   4,   7,   8,   9,    15,   16,   17,   31,   33,   63,   64,   65,   127,
              129, 255, 256, 257, 511, 513, 1023, 1025, 2047, 2048, 2049, 2111, 4095, 4097, 6143, 10001}) {
            StridedTensor before(dtype, {size});
            before.fill([&] { return normal(random, 0.5, 2); });
            const StridedTensor after = near(before, random);
            expect_difference(difference_statistics_with_kernel(GetParam(), before.view(), after.view()),
                              before, after,
                              std::string(tensor::to_string(dtype)) + " of " + std::to_string(size));
        }
    }
}

TEST_P(Kernel, DifferencesAgreeWithTheReferenceForEveryDistribution) {
    std::mt19937 random(22);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
        for (const Data& kind : distributions()) {
            for (const std::int64_t size : {1, 50, 777, 5000}) {
                StridedTensor before(dtype, {size});
                before.fill([&] { return kind.next(random); });
                StridedTensor unrelated(dtype, {size});
                unrelated.fill([&] { return kind.next(random); });
                for (const StridedTensor& after : {before, near(before, random), unrelated})
                    expect_difference(
                        difference_statistics_with_kernel(GetParam(), before.view(), after.view()), before,
                        after,
                        std::string(tensor::to_string(dtype)) + ", " + kind.name + ", " +
                            std::to_string(size));
            }
        }
    }
}

TEST_P(Kernel, DifferencesBeyondTheRangeOfTheirSquaresKeepTheirMoments) {
    std::mt19937 random(23);
    for (const double scale : {1e-320, 1e-300, 1e-160, 1e-24, 1e160, 1e300}) {
        for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
            if (dtype == DType::kFloat32 && scale != 1e-24) continue;
            StridedTensor before(dtype, {3000});
            before.fill([&] { return normal(random, 2, 1) * scale; });
            before.set(17, 0);
            StridedTensor after(dtype, {3000});
            after.fill([&] { return normal(random, 2, 1) * scale; });
            expect_difference(difference_statistics_with_kernel(GetParam(), before.view(), after.view()),
                              before, after, std::to_string(std::log10(scale)));
        }
    }
}

TEST_P(Kernel, ADifferenceThatNoFloatHoldsIsTakenInDoubles) {
    StridedTensor before(DType::kFloat32, {3});
    StridedTensor after(DType::kFloat32, {3});
    before.fill([] { return -3e38; });
    after.fill([] { return 3e38; });
    const auto got = difference_statistics_with_kernel(GetParam(), before.view(), after.view());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->difference.not_finite(), 0U);
    EXPECT_NEAR(got->difference.max, 6e38, 1e32);
    EXPECT_NEAR(got->before_l2, 3e38 * std::sqrt(3.0), 1e33);
}

TEST(Difference, EveryRealElementTypeIsRead) {
    std::mt19937 random(24);
    for (const DType dtype :
         {DType::kFloat8E4M3, DType::kFloat8E5M2, DType::kFloat8E4M3Fnuz, DType::kFloat8E5M2Fnuz,
          DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt64, DType::kUInt32,
          DType::kUInt16, DType::kUInt8, DType::kBool}) {
        for (const std::int64_t size : {1, 100, 3000}) {
            StridedTensor before(dtype, {size});
            StridedTensor after(dtype, {size});
            before.fill([&] { return static_cast<double>(random() % 256); });
            after.fill([&] { return static_cast<double>(random() % 256); });
            expect_difference(difference_statistics(before.view(), after.view()), before, after,
                              std::string(tensor::to_string(dtype)));
        }
    }
}

TEST(Difference, EveryLayoutGivesTheStatisticsOfItsElements) {
    std::mt19937 random(25);
    for (const Layout& layout : layouts()) {
        if (std::string_view(layout.name).starts_with("one value")) continue;
        for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt8}) {
            StridedTensor after(dtype, layout.elements, layout.offset, layout.shape, layout.strides);
            after.fill([&] { return normal(random, 20, 9); });
            StridedTensor alike(dtype, layout.elements, layout.offset, layout.shape, layout.strides);
            alike.fill([&] { return normal(random, 20, 9); });
            StridedTensor in_a_row(dtype, layout.shape);
            in_a_row.fill([&] { return normal(random, 20, 9); });
            for (const StridedTensor& before : {alike, in_a_row}) {
                expect_difference(difference_statistics(before.view(), after.view()), before, after,
                                  layout.name);
                expect_difference(difference_statistics(after.view(), before.view()), after, before,
                                  layout.name);
            }
        }
    }
}

TEST(Difference, OneElementAndNoneAreTaken) {
    StridedTensor before(DType::kFloat32, std::vector<std::int64_t>{});
    StridedTensor after(DType::kFloat32, std::vector<std::int64_t>{});
    before.set(0, 2);
    after.set(0, 1.5);
    const auto got = difference_statistics(before.view(), after.view());
    ASSERT_TRUE(got);
    EXPECT_EQ(got->difference.mean, -0.5);
    EXPECT_EQ(got->before_l2, 2);
    const StridedTensor none(DType::kFloat32, {3, 0});
    const auto of_none = difference_statistics(none.view(), none.view());
    ASSERT_TRUE(of_none);
    EXPECT_EQ(of_none->difference, Statistics{});
}

TEST(Difference, TheDifferencesThemselvesComeInRowMajorOrder) {
    std::mt19937 random(26);
    for (const Layout& layout : layouts()) {
        if (std::string_view(layout.name).starts_with("one value")) continue;
        for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt64}) {
            StridedTensor after(dtype, layout.elements, layout.offset, layout.shape, layout.strides);
            after.fill([&] { return normal(random, 20, 9); });
            StridedTensor before(dtype, layout.shape);
            before.fill([&] { return normal(random, 20, 9); });
            const std::vector<double> want = difference_of(before, after);
            const bool is_float = difference_type(dtype) == DType::kFloat32;
            EXPECT_EQ(is_float, dtype == DType::kFloat32 || dtype == DType::kBFloat16);
            std::vector<float> floats(want.size());
            std::vector<double> doubles(want.size());
            const auto room = is_float ? std::as_writable_bytes(std::span(floats))
                                       : std::as_writable_bytes(std::span(doubles));
            ASSERT_TRUE(subtract(before.view(), after.view(), room));
            for (std::size_t i = 0; i < want.size(); ++i)
                ASSERT_EQ(is_float ? static_cast<double>(floats[i]) : doubles[i],
                          is_float ? static_cast<double>(static_cast<float>(want[i])) : want[i])
                    << layout.name << " at " << i;
            EXPECT_EQ(subtract(before.view(), after.view(), room.first(room.size() - 1)).code(),
                      Code::kInvalidArgument);
        }
    }
}

TEST(Difference, WhatDoesNotBelongTogetherIsRefused) {
    const StridedTensor floats(DType::kFloat32, {2, 3});
    const auto code = [&](const StridedTensor& other) {
        return difference_statistics(floats.view(), other.view()).status().code();
    };
    EXPECT_EQ(code(StridedTensor(DType::kFloat32, {3, 2})), Code::kInvalidArgument);
    EXPECT_EQ(code(StridedTensor(DType::kFloat32, {6})), Code::kInvalidArgument);
    EXPECT_EQ(code(StridedTensor(DType::kFloat64, {2, 3})), Code::kInvalidArgument);
    const std::vector<std::int64_t> shape = {2};
    const std::vector<double> data(4);
    const TensorView complex{data.data(), DType::kComplex64, shape, {}};
    EXPECT_EQ(difference_statistics(complex, complex).status().code(), Code::kUnsupported);
    EXPECT_EQ(difference_statistics_with_kernel("mmx", floats.view(), floats.view()).status().code(),
              Code::kNotFound);
}

TEST(Copy, EveryElementSizeIsCopiedInRowMajorOrder) {
    for (const DType dtype : {DType::kUInt8, DType::kUInt16, DType::kInt32, DType::kFloat64}) {
        StridedTensor data(dtype, 200, 0, {10, 20}, {1, 10});
        double next = 0;
        data.fill([&] { return next++; });
        std::vector<std::byte> copy(200 * tensor::byte_size(dtype));
        ASSERT_TRUE(copy_row_major(data.view(), copy));
        const std::vector<double> want = data.values();
        for (std::size_t i = 0; i < want.size(); ++i)
            EXPECT_EQ(test::decode(dtype, copy.data() + i * tensor::byte_size(dtype)), want[i]);
    }
}

// What `copy_with_statistics` gives is what the two functions give, bit for bit.
void expect_as_one_by_one(const tensor::TensorView& view, std::size_t misplaced = 0) {
    const auto bytes = static_cast<std::size_t>(view.element_count()) * tensor::byte_size(view.dtype);
    std::vector<std::byte> apart(bytes);
    ASSERT_TRUE(copy_row_major(view, apart));
    struct Free {
        void operator()(void* memory) const { std::free(memory); }
    };
    const std::unique_ptr<void, Free> memory(std::aligned_alloc(64, (bytes + 64 + 127) / 64 * 64));
    const std::span<std::byte> room(static_cast<std::byte*>(memory.get()) + misplaced, bytes);
    const auto got = copy_with_statistics(view, room);
    const auto want = statistics(view);
    ASSERT_TRUE(got) << got.status().to_string();
    EXPECT_TRUE(*got == *want);
    EXPECT_TRUE(std::equal(apart.begin(), apart.end(), room.begin()));
}

TEST(Copy, WithStatisticsGivesTheSameAsOneAfterTheOther) {
    for (const DType dtype :
         {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat8E4M3,
          DType::kFloat8E5M2, DType::kFloat8E4M3Fnuz, DType::kFloat8E5M2Fnuz, DType::kFloat8E8M0,
          DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt64, DType::kUInt32,
          DType::kUInt16, DType::kUInt8, DType::kBool}) {
        for (const std::int64_t n : {1, 15, 1023, 1024, 4097, 8192, 40'000, 100'001}) {
            StridedTensor data(dtype, {n});
            std::uint64_t next = 1;
            data.fill([&] { return static_cast<double>((next = next * 48271 % 2147483647) % 100) / 4; });
            expect_as_one_by_one(data.view());
            expect_as_one_by_one(data.view(), 8);
        }
    }
}

TEST(Copy, WithStatisticsTakesAnyStridesAndAnyNumbers) {
    StridedTensor turned(DType::kFloat32, 200 * 300, 0, {200, 300}, {1, 200});
    double next = 0;
    turned.fill([&] { return next++; });
    expect_as_one_by_one(turned.view());
    StridedTensor huge(DType::kFloat64, {5000});
    huge.fill([&] { return 1e300; });
    expect_as_one_by_one(huge.view());
    StridedTensor bad(DType::kFloat32, {50'000});
    bad.fill([&] { return 1.0; });
    bad.set(0, kNan);
    bad.set(30'000, std::numeric_limits<double>::infinity());
    const auto got = [&] {
        std::vector<std::byte> room(200'000);
        return copy_with_statistics(bad.view(), room);
    }();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->nan, 1U);
    EXPECT_EQ(got->positive_infinite, 1U);
}

TEST(Copy, WithStatisticsCopiesWhatHasNone) {
    const std::vector<double> numbers = {1, 2, 3, 4};
    const std::vector<std::int64_t> shape = {2};
    std::vector<double> copy(4);
    EXPECT_EQ(copy_with_statistics({numbers.data(), DType::kComplex128, shape, {}},
                                   std::as_writable_bytes(std::span(copy)))
                  .status()
                  .code(),
              Code::kUnsupported);
    EXPECT_EQ(copy, numbers);
    EXPECT_EQ(copy_with_statistics({numbers.data(), DType::kFloat64, shape, {}},
                                   std::as_writable_bytes(std::span(copy)))
                  .status()
                  .code(),
              Code::kInvalidArgument)
        << "room of another size";
}

TEST(Copy, ComplexNumbersAreCopiedWhole) {
    const std::vector<double> numbers = {1, 2, 3, 4};  // two of complex128
    const std::vector<std::int64_t> shape = {2};
    const std::vector<std::int64_t> backwards = {-1};
    std::vector<double> copy(4);
    ASSERT_TRUE(copy_row_major({numbers.data() + 2, DType::kComplex128, shape, backwards},
                               std::as_writable_bytes(std::span(copy))));
    EXPECT_EQ(copy, (std::vector<double>{3, 4, 1, 2}));
}

TEST(Copy, RoomOfAnotherSizeIsRefused) {
    const StridedTensor data(DType::kFloat32, {3});
    std::vector<std::byte> copy(11);
    EXPECT_EQ(copy_row_major(data.view(), copy).code(), Code::kInvalidArgument);
    copy.resize(13);
    EXPECT_EQ(copy_row_major(data.view(), copy).code(), Code::kInvalidArgument);
    copy.resize(12);
    EXPECT_TRUE(copy_row_major(data.view(), copy));
}

TEST(ScalarValue, TakesTheOneElementOfAnyRealType) {
    for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16, DType::kBFloat16,
                              DType::kInt64, DType::kInt32, DType::kInt16, DType::kUInt64, DType::kUInt8}) {
        StridedTensor data(dtype, {1, 1});
        data.set(0, 3);
        const auto got = scalar_value(data.view());
        ASSERT_TRUE(got) << tensor::to_string(dtype);
        EXPECT_EQ(*got, 3);
    }
    StridedTensor nan(DType::kFloat32, std::vector<std::int64_t>{});
    nan.set(0, kNan);
    EXPECT_TRUE(std::isnan(*scalar_value(nan.view())));
    EXPECT_EQ(scalar_value(StridedTensor(DType::kFloat32, {2}).view()).status().code(),
              Code::kInvalidArgument);
    EXPECT_EQ(scalar_value(StridedTensor(DType::kFloat32, {0}).view()).status().code(),
              Code::kInvalidArgument);
    EXPECT_EQ(scalar_value(StridedTensor(DType::kComplex64, {1}).view()).status().code(), Code::kUnsupported);
}

// ---- units ----

using model::ActivationKind;
using model::UnitStatistics;

UnitStatistics unit_reference(const StridedTensor& data, ActivationKind kind) {
    const std::vector<std::int64_t>& shape = data.shape();
    const std::size_t rank = shape.size();
    const std::size_t axis = rank == 3 ? 2 : rank == 1 ? 0 : 1;
    std::vector<bool> active(rank == 0 ? 1 : static_cast<std::size_t>(shape[axis]));
    const auto low = kind == ActivationKind::kTanh ? -0.97F : 0.03F;
    UnitStatistics out;
    std::size_t i = 0;
    std::int64_t inner = 1;
    for (std::size_t k = axis + 1; k < rank; ++k) inner *= shape[k];
    for (const double value : data.values()) {
        const auto unit =
            rank == 0 ? 0
                      : (static_cast<std::int64_t>(i++) / inner) % static_cast<std::int64_t>(active.size());
        if (value > 0) active[static_cast<std::size_t>(unit)] = true;
        if (kind == ActivationKind::kTanh || kind == ActivationKind::kSigmoid) {
            if (static_cast<float>(value) < low) ++out.low;
            if (static_cast<float>(value) > 0.97F) ++out.high;
        }
    }
    out.units = static_cast<std::uint32_t>(active.size());
    if (kind == ActivationKind::kRelu)
        out.inactive_units = static_cast<std::uint32_t>(std::count(active.begin(), active.end(), false));
    return out;
}

TEST_P(Kernel, UnitsOfEveryLayoutAreCountedAsTheReferenceDoes) {
    const std::vector<Layout> shapes = {
        {"scalar", 1, 0, {}, {}},
        {"one row of units", 100, 0, {100}, {1}},
        {"batch of units", 6400, 0, {64, 100}, {100, 1}},
        {"few units", 300, 0, {100, 3}, {3, 1}},
        {"more units than a part", 3 * 1300, 0, {3, 1300}, {1300, 1}},
        {"transposed", 6400, 0, {64, 100}, {1, 64}},
        {"images", 4 * 20 * 6 * 7, 0, {4, 20, 6, 7}, {840, 42, 7, 1}},
        {"images, channels last", 4 * 20 * 6 * 7, 0, {4, 20, 6, 7}, {840, 1, 140, 20}},
        {"large images", 2 * 3 * 40 * 50, 0, {2, 3, 40, 50}, {6000, 2000, 50, 1}},
        {"tokens", 4 * 9 * 33, 0, {4, 9, 33}, {297, 33, 1}},
        {"volumes", 2 * 9 * 4 * 3 * 5, 0, {2, 9, 4, 3, 5}, {540, 60, 15, 5, 1}},
        {"turned around", 6400, 6399, {64, 100}, {-100, -1}},
        {"expanded batch", 50, 0, {7, 50}, {0, 1}},
        {"expanded units", 50, 0, {50, 7}, {1, 0}},
    };
    std::mt19937 random(10);
    for (const Layout& layout : shapes) {
        for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
            for (const ActivationKind kind : {ActivationKind::kRelu, ActivationKind::kTanh,
                                              ActivationKind::kSigmoid, ActivationKind::kSmooth}) {
                StridedTensor data(dtype, layout.elements, layout.offset, layout.shape, layout.strides);
                // Few elements are positive, so that some units are not.
                data.fill([&] {
                    if (kind == ActivationKind::kRelu) return random() % 60 == 0 ? 1e-6 : 0.0;
                    return random() % 50 == 0 ? kNan : std::tanh(normal(random, 0, 3));
                });
                const auto got = unit_statistics_with_kernel(GetParam(), data.view(), kind);
                ASSERT_TRUE(got) << got.status().message();
                EXPECT_EQ(*got, unit_reference(data, kind))
                    << layout.name << ", " << tensor::to_string(dtype) << ", " << model::to_string(kind);
            }
        }
    }
}

TEST(Units, ATinyDoubleIsStillPositive) {
    StridedTensor data(DType::kFloat64, {4, 2});
    data.set(5, 1e-300);
    const auto got = unit_statistics(data.view(), ActivationKind::kRelu);
    ASSERT_TRUE(got);
    EXPECT_EQ(got->inactive_units, 1U);
}

TEST(Units, OnlyFloatsHaveThemAndAnEmptyBatchHasNone) {
    EXPECT_EQ(
        unit_statistics(StridedTensor(DType::kInt32, {2, 2}).view(), ActivationKind::kRelu).status().code(),
        Code::kUnsupported);
    const auto empty = unit_statistics(StridedTensor(DType::kFloat32, {0, 4}).view(), ActivationKind::kRelu);
    ASSERT_TRUE(empty);
    EXPECT_EQ(*empty, UnitStatistics{});
}

// ---- classes ----

TEST_P(Kernel, ClassesCountLabelsPredictionsAndHits) {
    std::mt19937 random(11);
    for (const std::int64_t classes : {2, 3, 10, 17, 511, 512, 513, 1500}) {
        for (const DType dtype : test::real_types()) {
            constexpr std::int64_t kSamples = 40;
            StridedTensor logits(dtype, {kSamples, classes});
            // Whole numbers give ties: the first of them counts.
            logits.fill([&] { return static_cast<double>(random() % 100); });
            StridedTensor labels(DType::kInt64, {kSamples});
            labels.fill([&] { return static_cast<double>(random() % static_cast<unsigned>(classes)); });
            model::ClassCounts want;
            want.labels.resize(static_cast<std::size_t>(classes));
            want.predictions = want.hits = want.labels;
            for (std::int64_t i = 0; i < kSamples; ++i) {
                std::int64_t best = 0;
                for (std::int64_t c = 1; c < classes; ++c)
                    if (logits.at({i, c}) > logits.at({i, best})) best = c;
                const auto label = static_cast<std::size_t>(labels.at({i}));
                ++want.labels[label];
                ++want.predictions[static_cast<std::size_t>(best)];
                if (static_cast<std::size_t>(best) == label) ++want.hits[label];
            }
            const auto got = class_counts_with_kernel(GetParam(), logits.view(), labels.view());
            ASSERT_TRUE(got) << got.status().message();
            EXPECT_EQ(*got, want) << classes << " of " << tensor::to_string(dtype);
        }
    }
}

TEST(Classes, StridedLogitsAndEveryIntegerTypeOfLabels) {
    for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kInt16, DType::kInt8, DType::kUInt64,
                              DType::kUInt32, DType::kUInt16, DType::kUInt8}) {
        StridedTensor logits(DType::kFloat32, 6, 0, {2, 3}, {1, 2});
        logits.set(0 * 1 + 2 * 2, 5);  // [0, 2]
        logits.set(1 * 1 + 1 * 2, 5);  // [1, 1]
        StridedTensor labels(dtype, 3, 2, {2}, {-2});
        labels.set(2, 2);
        labels.set(0, 0);
        const auto got = class_counts(logits.view(), labels.view());
        ASSERT_TRUE(got) << got.status().message();
        EXPECT_EQ(*got, (model::ClassCounts{{1, 0, 1}, {0, 1, 1}, {0, 0, 1}})) << tensor::to_string(dtype);
    }
}

TEST(Classes, LabelsOutsideAreSkipped) {
    StridedTensor logits(DType::kFloat32, {3, 2});
    StridedTensor labels(DType::kInt64, {3});
    labels.set(0, -100);
    labels.set(1, 2);
    labels.set(2, 1);
    const auto got = class_counts(logits.view(), labels.view());
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, (model::ClassCounts{{0, 1}, {1, 0}, {0, 0}}));
    StridedTensor large(DType::kUInt64, {1});
    std::vector<std::int64_t> one = {1};
    const std::uint64_t most = UINT64_MAX;
    const auto skipped =
        class_counts(StridedTensor(DType::kFloat32, {1, 2}).view(), {&most, DType::kUInt64, one, {}});
    ASSERT_TRUE(skipped);
    EXPECT_EQ(skipped->labels, (std::vector<std::uint32_t>{0, 0}));
}

TEST_P(Kernel, NanIsNeverTheLargestLogit) {
    StridedTensor logits(DType::kFloat32, {3, 3});
    logits.fill([] { return kNan; });
    logits.set(1, -kInfinity);  // [0, 1]: the only number of its row
    logits.set(5, 7);           // [1, 2]
    StridedTensor labels(DType::kInt64, {3});
    labels.fill([] { return 1.0; });
    const auto got = class_counts_with_kernel(GetParam(), logits.view(), labels.view());
    ASSERT_TRUE(got);
    EXPECT_EQ(*got, (model::ClassCounts{{0, 3, 0}, {0, 1, 1}, {0, 1, 0}}));
}

TEST(Classes, OneSampleNeedsNoBatchDimension) {
    StridedTensor logits(DType::kFloat32, {3});
    logits.set(2, 1);
    StridedTensor scalar(DType::kInt64, std::vector<std::int64_t>{});
    scalar.set(0, 2);
    for (const StridedTensor& labels : {scalar, [&] {
                                            StridedTensor one(DType::kInt64, {1});
                                            one.set(0, 2);
                                            return one;
                                        }()}) {
        const auto got = class_counts(logits.view(), labels.view());
        ASSERT_TRUE(got) << got.status().message();
        EXPECT_EQ(got->hits, (std::vector<std::uint32_t>{0, 0, 1}));
    }
}

TEST(Classes, WhatDoesNotFitIsRefused) {
    const auto code = [](const StridedTensor& logits, const StridedTensor& labels) {
        return class_counts(logits.view(), labels.view()).status().code();
    };
    const StridedTensor logits(DType::kFloat32, {2, 3});
    const StridedTensor labels(DType::kInt64, {2});
    EXPECT_EQ(code(logits, labels), Code::kOk);
    EXPECT_EQ(code(logits, StridedTensor(DType::kInt64, {3})), Code::kInvalidArgument);
    EXPECT_EQ(code(logits, StridedTensor(DType::kInt64, {2, 1})), Code::kInvalidArgument);
    EXPECT_EQ(code(logits, StridedTensor(DType::kFloat32, {2})), Code::kInvalidArgument);
    EXPECT_EQ(code(logits, StridedTensor(DType::kInt64, std::vector<std::int64_t>{})),
              Code::kInvalidArgument);
    EXPECT_EQ(code(StridedTensor(DType::kFloat32, {2, 3, 4}), labels), Code::kInvalidArgument);
    EXPECT_EQ(code(StridedTensor(DType::kComplex64, {2, 3}), labels), Code::kUnsupported);
    EXPECT_EQ(code(StridedTensor(DType::kUInt8, {2, kMostClasses + 1}), labels), Code::kUnsupported);
    EXPECT_EQ(code(StridedTensor(DType::kFloat32, {2, 0}), labels), Code::kOk);
}

}  // namespace
}  // namespace traindbg::reduce
