#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "reduce/strided_tensor.h"
#include "traindbg/model/digest.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using model::Digest;
using model::Statistics;
using test::DType;
using test::real_types;
using test::StridedTensor;

constexpr double kDigestNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kDigestInfinity = std::numeric_limits<double>::infinity();

std::vector<std::byte> row_major(const StridedTensor& tensor) {
    const tensor::TensorView view = tensor.view();
    std::vector<std::byte> bytes(static_cast<std::size_t>(view.element_count()) *
                                 tensor::byte_size(view.dtype));
    EXPECT_TRUE(copy_row_major(view, bytes).is_ok());
    return bytes;
}

// What docs/format/native.md says, in one call.
std::uint64_t reference_fingerprint(const StridedTensor& tensor) {
    std::vector<std::byte> bytes = row_major(tensor);
    for (const std::int64_t extent : tensor.shape()) {
        const auto* const begin = reinterpret_cast<const std::byte*>(&extent);
        bytes.insert(bytes.end(), begin, begin + sizeof(extent));
    }
    bytes.push_back(static_cast<std::byte>(tensor.view().dtype));
    bytes.push_back(static_cast<std::byte>(tensor.shape().size()));
    return XXH3_64bits(bytes.data(), bytes.size());
}

// Mantissa and exponent apart, in extended precision.
double reference_product(const std::vector<double>& values) {
    long double mantissa = 1;
    long exponent = 0;
    for (const double value : values) {
        if (!std::isfinite(value)) continue;
        if (value == 0) return 0;
        int power = 0;
        mantissa = std::frexp(mantissa * static_cast<long double>(value), &power);
        exponent += power;
    }
    exponent = std::clamp(exponent, -20'000L, 20'000L);
    return static_cast<double>(std::ldexp(mantissa, static_cast<int>(exponent)));
}

void expect_right(const StridedTensor& tensor) {
    const std::vector<double> values = tensor.values();
    const double product = reference_product(values);
    Digest first;
    for (const std::string_view kernel : available_kernels()) {
        SCOPED_TRACE(kernel);
        const auto got = digest_with_kernel(kernel, tensor.view());
        ASSERT_TRUE(got.is_ok()) << got.status().to_string();
        EXPECT_EQ(got->fingerprint, reference_fingerprint(tensor));
        if (std::isnormal(product)) {
            const double bound = static_cast<double>(values.size() + 1) * 0x1p-53;
            EXPECT_LE(std::fabs(got->product / product - 1), bound) << got->product << " " << product;
        } else if (std::isfinite(product)) {  // rounded once more, to a multiple of the smallest double
            EXPECT_NEAR(got->product, product, 2 * std::numeric_limits<double>::denorm_min());
            EXPECT_EQ(std::signbit(got->product), std::signbit(product));
        } else {
            EXPECT_EQ(got->product, product);
        }
        if (kernel == available_kernels().front()) first = *got;
        EXPECT_EQ(*got, first) << "to the last bit";
    }
}

TEST(ReduceDigest, EveryTypeAndSize) {
    for (const DType dtype : real_types()) {
        for (const std::int64_t size : {1, 2, 3, 15, 16, 17, 31, 33, 1023, 1024, 1025, 2063, 40'001}) {
            SCOPED_TRACE(std::string(tensor::to_string(dtype)) + " " + std::to_string(size));
            std::mt19937 random(static_cast<unsigned>(size));
            StridedTensor tensor(dtype, {size});
            // Around 1, so that products are of every size and sign.
            expect_right(tensor.fill([&] {
                const double whole = dtype == DType::kBool ? 1 : 1 + static_cast<double>(random() % 3);
                if (!tensor::is_floating(dtype)) return whole;
                const double value = std::exp(std::normal_distribution<double>(0, 0.5)(random));
                return random() % 2 == 0 ? value : -value;
            }));
            tensor.set(static_cast<std::size_t>(size / 2), 0);
            expect_right(tensor);
        }
    }
}

TEST(ReduceDigest, NothingOnTheWayLeavesTheRange) {
    // Half of it would be infinite, the other half 0.
    StridedTensor tensor(DType::kFloat64, {4000});
    for (std::size_t i = 0; i < 2000; ++i) tensor.set(i, 1e200);
    for (std::size_t i = 2000; i < 4000; ++i) tensor.set(i, -1e-200);
    const auto got = digest(tensor.view());
    ASSERT_TRUE(got.is_ok());
    EXPECT_NEAR(got->product, 1, 1e-9);
    tensor.set(0, -1e200);
    EXPECT_NEAR(digest(tensor.view())->product, -1, 1e-9);
    expect_right(tensor);
}

TEST(ReduceDigest, WhatDoesNotFitIsInfiniteOrZeroWithItsSign) {
    StridedTensor tensor(DType::kFloat32, {100});
    tensor.fill([] { return 1e30; });
    EXPECT_EQ(digest(tensor.view())->product, kDigestInfinity);
    tensor.set(50, -1e30);
    EXPECT_EQ(digest(tensor.view())->product, -kDigestInfinity);
    tensor.fill([] { return 1e-30; });
    tensor.set(99, -1e-30);
    const double least = digest(tensor.view())->product;
    EXPECT_EQ(least, 0);
    EXPECT_TRUE(std::signbit(least));
    StridedTensor subnormal(DType::kFloat64, {2});
    subnormal.set(0, 1e-160);
    subnormal.set(1, -1e-160);
    EXPECT_NEAR(digest(subnormal.view())->product, -1e-320, 5e-324);
}

TEST(ReduceDigest, SubnormalZeroAndWhatIsNotFinite) {
    std::mt19937 random(3);
    for (const std::int64_t size : {5, 100, 3000}) {
        for (const double odd : {5e-324, 1e-310, 0.0, -0.0, kDigestNan, kDigestInfinity, -kDigestInfinity}) {
            for (const std::size_t place :
                 {std::size_t{0}, std::size_t{4}, static_cast<std::size_t>(size - 1)}) {
                StridedTensor tensor(DType::kFloat64, {size});
                tensor.fill([&] { return 0.5 + static_cast<double>(random() % 1000) / 1000; });
                tensor.set(place, odd);
                expect_right(tensor);
            }
        }
    }
    EXPECT_EQ(digest(StridedTensor(DType::kFloat32, {7}).fill([] { return kDigestNan; }).view())->product, 1);
}

TEST(ReduceDigest, EqualTensorsHaveOneDigestHoweverTheyLie) {
    std::mt19937 random(4);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kInt8}) {
        SCOPED_TRACE(tensor::to_string(dtype));
        const auto next = [&] { return 0.5 + static_cast<double>(random() % 1000) / 500; };
        for (const StridedTensor& strided :
             {StridedTensor(dtype, 60, 0, {6, 10}, {1, 6}).fill(next),
              StridedTensor(dtype, 6000, 3, {40, 50}, {101, 2}).fill(next),
              StridedTensor(dtype, 4000, 3999, {4000}, {-1}).fill(next),
              StridedTensor(dtype, 10, 0, {7, 10, 3}, {0, 1, 0}).fill(next),
              StridedTensor(dtype, 5 * 3001, 0, {5, 3000}, {3001, 1}).fill(next),
              StridedTensor(dtype, 2 * 3 * 4 * 5, 0, {2, 3, 4, 5}, {60, 1, 15, 3}).fill(next)}) {
            expect_right(strided);
            const std::vector<std::byte> bytes = row_major(strided);
            const auto plain = digest({bytes.data(), dtype, strided.shape(), {}});
            ASSERT_TRUE(plain.is_ok());
            EXPECT_EQ(*plain, *digest(strided.view()));
        }
    }
}

// Where the parts that sums are made of begin depends on the address and on the processor's vectors, hence
// the last bits of moments.
void expect_alike(const Statistics& got, const Statistics& want) {
    EXPECT_EQ(got.count, want.count);
    EXPECT_EQ(got.not_finite(), want.not_finite());
    EXPECT_EQ(got.zero, want.zero);
    EXPECT_EQ(got.min, want.min);
    EXPECT_EQ(got.max, want.max);
    EXPECT_NEAR(got.mean, want.mean, 1e-6 * std::abs(want.mean));
    EXPECT_NEAR(got.std, want.std, 1e-6 * want.std);
    EXPECT_NEAR(got.l1, want.l1, 1e-6 * want.l1);
    EXPECT_NEAR(got.l2, want.l2, 1e-6 * want.l2);
}

TEST(ReduceDigest, MemoryNeedNotBeAligned) {
    std::mt19937 random(6);
    for (const DType dtype : real_types()) {
        for (const std::int64_t size : {1, 37, 3000}) {
            SCOPED_TRACE(std::string(tensor::to_string(dtype)) + " " + std::to_string(size));
            StridedTensor tensor(dtype, {size});
            tensor.fill([&] { return 1 + static_cast<double>(random() % 3); });
            const auto expected = digest(tensor.view());
            ASSERT_TRUE(expected.is_ok());
            const std::vector<std::byte> bytes = row_major(tensor);
            for (std::size_t offset = 1; offset < 8; ++offset) {
                std::vector<std::byte> memory(offset);
                memory.insert(memory.end(), bytes.begin(), bytes.end());
                const tensor::TensorView view{memory.data() + offset, dtype, tensor.shape(), {}};
                for (const std::string_view kernel : available_kernels())
                    EXPECT_EQ(*digest_with_kernel(kernel, view), *expected) << kernel << " " << offset;
                Digest beside;
                expect_alike(*statistics_and_digest(view, beside), *statistics(tensor.view()));
                EXPECT_EQ(beside, *expected);
                std::vector<std::byte> copy(bytes.size() + offset);
                ASSERT_TRUE(copy_with_statistics(view, std::span(copy).subspan(offset), &beside).is_ok());
                EXPECT_EQ(beside, *expected);
            }
        }
    }
}

// Fingerprints of other runs, made with other versions of the library, are compared with ours. These were
// made by another program: docs/format/native.md's bytes, written by Python's struct.pack and read by
// `xxhsum -H3` of Debian's xxhash 0.8.1.
TEST(ReduceDigest, FingerprintsAreTheSameInEveryBuild) {
    const auto fingerprint = [](std::vector<std::int64_t> shape) {
        StridedTensor tensor(DType::kFloat32, std::move(shape));
        double next = -3.5;
        tensor.fill([&] { return next += 0.5; });
        return digest(tensor.view())->fingerprint;
    };
    EXPECT_EQ(fingerprint({}), 0xe3274d6241884e5eU);
    EXPECT_EQ(fingerprint({3, 4}), 0xe36a4eb7c06e787aU);
    EXPECT_EQ(fingerprint({10, 10}), 0x85c8ac0923e13c14U);
    EXPECT_EQ(fingerprint({7, 11, 13}), 0x6de3292c1c76f873U);
}

TEST(ReduceDigest, ShapeTypeAndEveryBitTellTensorsApart) {
    std::set<std::uint64_t> seen;
    const std::vector<std::byte> zeros(48);
    const auto add = [&](DType dtype, std::vector<std::int64_t> shape) {
        const auto got = digest({zeros.data(), dtype, shape, {}});
        ASSERT_TRUE(got.is_ok());
        EXPECT_TRUE(seen.insert(got->fingerprint).second) << tensor::to_string(dtype);
    };
    add(DType::kFloat32, {12});
    add(DType::kFloat32, {3, 4});
    add(DType::kFloat32, {4, 3});
    add(DType::kFloat32, {12, 1});
    add(DType::kInt32, {12});
    add(DType::kFloat64, {6});
    add(DType::kInt8, {48});
    add(DType::kFloat32, {});
    add(DType::kFloat32, {0});
    add(DType::kFloat32, {0, 4});
    for (std::size_t bit = 0; bit < 48 * 8; ++bit) {
        std::vector<std::byte> bytes = zeros;
        bytes[bit / 8] |= std::byte{1} << (bit % 8);
        const std::vector<std::int64_t> shape = {12};
        EXPECT_TRUE(seen.insert(digest({bytes.data(), DType::kFloat32, shape, {}})->fingerprint).second);
    }
}

TEST(ReduceDigest, InOnePassWithTheStatisticsItIsTheSame) {
    std::mt19937 random(5);
    for (const DType dtype : real_types()) {
        for (const std::int64_t size : {1, 100, 4096, 20'000}) {
            SCOPED_TRACE(std::string(tensor::to_string(dtype)) + " " + std::to_string(size));
            StridedTensor tensor(dtype, {size});
            tensor.fill([&] { return 1 + static_cast<double>(random() % 100) / 50; });
            Digest beside;
            const auto got = statistics_and_digest(tensor.view(), beside);
            ASSERT_TRUE(got.is_ok()) << got.status().to_string();
            EXPECT_EQ(*got, *statistics(tensor.view()));
            EXPECT_EQ(beside, *digest(tensor.view()));
            std::vector<std::byte> copy(row_major(tensor).size());
            Digest with_copy;
            const auto copied = copy_with_statistics(tensor.view(), copy, &with_copy);
            ASSERT_TRUE(copied.is_ok());
            EXPECT_EQ(*copied, *got);
            EXPECT_EQ(with_copy, beside);
            EXPECT_EQ(copy, row_major(tensor));
        }
    }
    StridedTensor strided(DType::kFloat32, 6000, 3, {40, 50}, {101, 2});
    strided.fill([] { return 1.5; });
    Digest beside;
    EXPECT_EQ(*statistics_and_digest(strided.view(), beside), *statistics(strided.view()));
    EXPECT_EQ(beside, *digest(strided.view()));
}

TEST(ReduceDigest, NothingAndWhatIsNoNumber) {
    const auto empty = digest(StridedTensor(DType::kFloat32, {4, 0, 3}).view());
    ASSERT_TRUE(empty.is_ok());
    EXPECT_EQ(empty->product, 1);
    Digest beside;
    ASSERT_TRUE(statistics_and_digest(StridedTensor(DType::kFloat32, {4, 0, 3}).view(), beside).is_ok());
    EXPECT_EQ(beside, *empty);
    const StridedTensor complex(DType::kComplex128, {2});
    EXPECT_EQ(digest(complex.view()).status().code(), base::Code::kUnsupported);
    EXPECT_EQ(statistics_and_digest(complex.view(), beside).status().code(), base::Code::kUnsupported);
    EXPECT_EQ(digest_with_kernel("abacus", complex.view()).status().code(), base::Code::kNotFound);
}

}  // namespace
}  // namespace traindbg::reduce
