#include "traindbg/capture/row_prints.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "traindbg/capture/number_table.h"

namespace traindbg::capture {
namespace {

using tensor::DType;
using tensor::TensorView;

constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

std::uint64_t factor(std::uint64_t i) {
    return (mixed((i + 1) * 0x9E3779B97F4A7C15) | 1) - (std::uint64_t{1} << 63);
}

template <typename Value>
TensorView rows_of(const std::vector<Value>& values, DType dtype, const std::vector<std::int64_t>& shape) {
    return {values.data(), dtype, shape, {}};
}

std::vector<std::int64_t> changes_of(const TensorView& view) {
    auto prints = RowPrints::take(view);
    EXPECT_TRUE(prints);
    prints->take_changes(view);
    std::vector<std::int64_t> changes;
    for (std::size_t row = 0; row < prints->size(); ++row) changes.push_back(prints->changes(row));
    return changes;
}

TEST(RowPrints, AreSumsOfBitsTimesFactors) {
    const std::vector<std::int64_t> shape{2, 3};
    const auto bytes =
        RowPrints::take(rows_of(std::vector<std::uint8_t>{1, 2, 255, 0, 0, 0}, DType::kInt8, shape));
    ASSERT_TRUE(bytes);
    ASSERT_EQ(bytes->size(), 2U);
    EXPECT_EQ(bytes->half(0, 0), factor(0));
    EXPECT_EQ(bytes->half(0, 1), 2 * factor(1) + 255 * factor(2));
    EXPECT_EQ(bytes->half(1, 0), 0U);
    const std::vector<float> floats{1.5F, -2, 0, 3, 4, 5};
    const auto bits = [](float value) {
        return static_cast<std::uint64_t>(std::int64_t{std::bit_cast<std::int32_t>(value)});
    };
    const auto wide = RowPrints::take(rows_of(floats, DType::kFloat32, shape));
    ASSERT_TRUE(wide);
    EXPECT_EQ(wide->half(0, 0), bits(1.5F) * factor(0));
    EXPECT_EQ(wide->half(0, 1), bits(-2) * factor(1));
    const auto narrow =
        RowPrints::take(rows_of(std::vector<std::int16_t>{-1, 2, 3, 4, 5, 6}, DType::kFloat16, shape));
    ASSERT_TRUE(narrow);
    EXPECT_EQ(narrow->half(0, 0), 0 - factor(0));
}

TEST(RowPrints, AreOfEveryOtherValueToo) {
    const std::vector<std::uint8_t> bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    const std::vector<std::int64_t> wide{2, 5};
    const auto of_five = RowPrints::take(rows_of(bytes, DType::kUInt8, wide));
    ASSERT_TRUE(of_five);
    EXPECT_EQ(of_five->half(0, kEvenHalf), factor(0) + 3 * factor(2) + 5 * factor(4));
    EXPECT_EQ(of_five->half(0, kOddHalf), 2 * factor(1) + 4 * factor(3));
    const std::vector<std::int64_t> shape{3, 3};
    const auto of_three = RowPrints::take(rows_of(bytes, DType::kUInt8, shape));
    ASSERT_TRUE(of_three);
    EXPECT_EQ(of_three->half(1, kEvenHalf), 4 * factor(0) + 6 * factor(2));
    EXPECT_EQ(of_three->half(1, kOddHalf), 5 * factor(1));
}

TEST(RowPrints, AreOf64RowsAnd256ValuesAtMost) {
    std::vector<std::int64_t> values(100 * 1000);
    std::iota(values.begin(), values.end(), 0);
    const std::vector<std::int64_t> shape{100, 10, 100};
    const auto prints = RowPrints::take(rows_of(values, DType::kInt64, shape));
    ASSERT_TRUE(prints);
    EXPECT_EQ(prints->size(), 64U);
    EXPECT_EQ(prints->batch(), 100);
    EXPECT_EQ(prints->values(), 1000);
    std::uint64_t first = 0;
    for (std::uint64_t i = 0; i < 128; ++i) first += (3000 + i * 1000 / 256) * factor(i);
    EXPECT_EQ(prints->half(3, 0), first);
}

TEST(RowPrints, AreTheSameHoweverTheRowsLie) {
    std::vector<std::int32_t> values(4 * 6 * 50);
    std::iota(values.begin(), values.end(), -300);
    const std::vector<std::int64_t> shape{4, 6, 50};
    const TensorView view = rows_of(values, DType::kInt32, shape);
    // Dimensions in reverse order in memory, from the end backwards.
    std::vector<std::int32_t> turned(values.size());
    for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 6; ++j)
            for (std::size_t k = 0; k < 50; ++k)
                turned[turned.size() - 1 - (k * 24 + j * 4 + i)] = values[i * 300 + j * 50 + k];
    const std::vector<std::int64_t> strides{-1, -4, -24};
    const TensorView other{&turned.back(), DType::kInt32, shape, strides};
    auto prints = RowPrints::take(view);
    auto again = RowPrints::take(other);
    ASSERT_TRUE(prints && again);
    EXPECT_TRUE(prints->take_further(view));
    EXPECT_TRUE(again->take_further(other));
    for (std::size_t row = 0; row < 4; ++row) {
        EXPECT_EQ(prints->half(row, 0), again->half(row, 0));
        EXPECT_EQ(prints->half(row, 1), again->half(row, 1));
        EXPECT_EQ(prints->whole(row), again->whole(row));
    }
    EXPECT_EQ(changes_of(other), changes_of(view));
}

TEST(RowPrints, AreNotOfWhatHasNoRows) {
    const std::vector<float> values(64, 1);
    const auto is_none = [&](DType dtype, const std::vector<std::int64_t>& shape) {
        return !RowPrints::take(rows_of(values, dtype, shape));
    };
    EXPECT_FALSE(is_none(DType::kFloat32, {2, 2}));
    EXPECT_TRUE(is_none(DType::kFloat32, {}));
    EXPECT_TRUE(is_none(DType::kFloat32, {30}));
    EXPECT_TRUE(is_none(DType::kFloat32, {30, 1}));
    EXPECT_TRUE(is_none(DType::kFloat32, {1, 30}));
    EXPECT_TRUE(is_none(DType::kFloat32, {0, 30}));
    EXPECT_TRUE(is_none(DType::kFloat32, {30, 0}));
    EXPECT_TRUE(is_none(DType::kComplex64, {4, 4}));
    EXPECT_TRUE(is_none(DType::kUnknown, {4, 4}));
    const std::vector<std::int64_t> shape{4, 4};
    EXPECT_FALSE(RowPrints::take({nullptr, DType::kFloat32, shape, {}}));
}

TEST(RowPrints, ChangesAreOfValuesNotOfBits) {
    const std::vector<std::int64_t> shape{2, 4};
    using Counts = std::vector<std::int64_t>;
    EXPECT_EQ(changes_of(rows_of(std::vector<float>{0, -0.0F, 1, 1, kNotANumber, kNotANumber, 2, 2},
                                 DType::kFloat32, shape)),
              (Counts{1, 2}));
    EXPECT_EQ(changes_of(rows_of(
                  std::vector<std::uint16_t>{0, 0x8000, 0x3C00, 0x3C00, 0x7E00, 0x7E00, 0x7C00, 0x7C00},
                  DType::kFloat16, shape)),
              (Counts{1, 2}));
    EXPECT_EQ(changes_of(rows_of(
                  std::vector<std::uint16_t>{0, 0x8000, 0x7E00, 0x7E00, 0x7FC0, 0x7FC0, 0x7F80, 0x7F80},
                  DType::kBFloat16, shape)),
              (Counts{1, 2}));
    EXPECT_EQ(changes_of(rows_of(std::vector<std::uint8_t>{0, 0x80, 1, 1, 0x7F, 0x7F, 2, 2},
                                 DType::kFloat8E4M3, shape)),
              (Counts{1, 2}));
    EXPECT_EQ(changes_of(rows_of(std::vector<std::uint8_t>{0, 0x80, 1, 1, 7, 7, 7, 8}, DType::kUInt8, shape)),
              (Counts{2, 1}));
    EXPECT_EQ(changes_of(rows_of(std::vector<double>{0, -0.0, 1, 2, 3, 3, 3, 3}, DType::kFloat64, shape)),
              (Counts{2, 0}));
}

TEST(RowPrints, ChangesAreCountedIn1024Values) {
    std::vector<std::int16_t> values(2 * 3000);
    std::iota(values.begin(), values.end(), std::int16_t{0});
    const std::vector<std::int64_t> shape{2, 3000};
    EXPECT_EQ(changes_of(rows_of(values, DType::kInt16, shape)), (std::vector<std::int64_t>{1023, 1023}));
}

TEST(RowPrints, WhatBelongsToARowIsPartOfIt) {
    const std::vector<std::int32_t> values(4 * 5, 3);
    const std::vector<std::int64_t> shape{4, 5};
    auto prints = RowPrints::take(rows_of(values, DType::kInt32, shape));
    ASSERT_TRUE(prints);
    EXPECT_EQ(prints->whole(0), prints->whole(3));
    const std::vector<std::int64_t> four{4};
    const std::vector<std::int64_t> five{5};
    const std::vector<std::int64_t> empty{4, 0};
    const std::vector<std::int64_t> lengths{1, 2, 1, 1, 1};
    EXPECT_FALSE(prints->take_further(rows_of(lengths, DType::kInt64, five)));
    EXPECT_FALSE(prints->take_further(rows_of(lengths, DType::kInt64, empty)));
    EXPECT_FALSE(prints->take_further(rows_of(lengths, DType::kInt64, {})));
    EXPECT_EQ(prints->whole(0), prints->both(0));
    EXPECT_TRUE(prints->take_further(rows_of(lengths, DType::kInt64, four)));
    EXPECT_EQ(prints->whole(0), prints->whole(3));
    EXPECT_NE(prints->whole(0), prints->whole(1));
    EXPECT_NE(prints->whole(0), prints->both(0));
    EXPECT_EQ(prints->both(0), prints->both(1));
    // In which order they come is part of it, too.
    auto other = RowPrints::take(rows_of(values, DType::kInt32, shape));
    const std::vector<std::int64_t> sizes{7, 7, 7, 7};
    EXPECT_TRUE(prints->take_further(rows_of(sizes, DType::kInt64, four)));
    EXPECT_TRUE(other->take_further(rows_of(sizes, DType::kInt64, four)));
    EXPECT_TRUE(other->take_further(rows_of(lengths, DType::kInt64, four)));
    EXPECT_NE(prints->whole(0), other->whole(0));
}

TEST(RowPrints, LabelsAreOfAnyTypeAndShape) {
    const std::vector<float> values(4 * 5, 3);
    const std::vector<std::int64_t> shape{4, 5};
    auto prints = RowPrints::take(rows_of(values, DType::kFloat32, shape));
    ASSERT_TRUE(prints);
    const std::vector<std::int64_t> numbers{3, 1, 1, 0, 9};
    EXPECT_FALSE(prints->take_labels(rows_of(numbers, DType::kInt64, {5})));
    EXPECT_FALSE(prints->take_labels(rows_of(numbers, DType::kUnknown, {4})));
    EXPECT_TRUE(prints->labels().empty());
    const std::vector<RowLabel> expected{{.whole = 3}, {.whole = 1}, {.whole = 1}, {.whole = 0}};
    const auto labels = [&](const TensorView& view) {
        EXPECT_TRUE(prints->take_labels(view));
        return std::vector<RowLabel>(prints->labels().begin(), prints->labels().end());
    };
    const std::vector<std::int64_t> four{4};
    const std::vector<std::int64_t> square{2, 2};
    const std::vector<std::int64_t> turned{1, 2};
    EXPECT_EQ(labels(rows_of(numbers, DType::kInt64, four)), expected);
    EXPECT_EQ(labels(rows_of(std::vector<float>{3, 1, 1, 0}, DType::kFloat32, square)), expected);
    EXPECT_EQ(
        labels(rows_of(std::vector<std::uint16_t>{0x4200, 0x3C00, 0x3C00, 0x8000}, DType::kFloat16, four)),
        expected);
    const std::vector<std::uint8_t> bytes{3, 1, 1, 0};
    EXPECT_EQ(labels({bytes.data(), DType::kUInt8, square, turned}), expected);
    EXPECT_EQ(labels(rows_of(std::vector<std::uint8_t>{1, 0, 2, 0}, DType::kBool, four)),
              (std::vector<RowLabel>{{.whole = 1}, {.whole = 0}, {.whole = 1}, {.whole = 0}}));
}

TEST(RowPrints, NumbersThatAllDifferAreNoLabels) {
    const std::vector<float> values(4 * 5, 3);
    const std::vector<std::int64_t> shape{4, 5};
    const std::vector<std::int64_t> four{4};
    auto prints = RowPrints::take(rows_of(values, DType::kFloat32, shape));
    ASSERT_TRUE(prints);
    EXPECT_TRUE(prints->take_labels(rows_of(std::vector<float>{1, 2, 3, 4}, DType::kFloat32, four)));
    EXPECT_TRUE(prints->labels().empty());
    const std::vector<float> nothing(4, kNotANumber);
    EXPECT_TRUE(prints->take_labels(rows_of(nothing, DType::kFloat32, four)));
    EXPECT_TRUE(prints->labels().empty());
}

TEST(RowPrints, NumbersFromADeviceAreTakenForThoseOfTheTensor) {
    const std::vector<float> values{1, 2, 3, 4, 5, 6};
    const std::vector<std::int64_t> shape{2, 3};
    auto prints = RowPrints::take(rows_of(values, DType::kFloat32, shape));
    ASSERT_TRUE(prints);
    RowPrints later(2, 3);
    EXPECT_EQ(later.size(), 0U);
    std::vector<std::int64_t> halves;
    for (std::size_t row = 0; row < 2; ++row)
        for (const Half half : {kFirstHalf, kSecondHalf, kEvenHalf})
            halves.push_back(static_cast<std::int64_t>(prints->half(row, half)));
    EXPECT_FALSE(later.put_halves(std::span(halves).first(2)));
    EXPECT_TRUE(later.put_halves(halves));
    EXPECT_EQ(later.whole(1), prints->whole(1));
    EXPECT_EQ(later.half(1, kOddHalf), prints->half(1, kOddHalf));
    const std::vector<std::int64_t> counts{2, 1};
    EXPECT_FALSE(later.put_changes(halves));
    EXPECT_TRUE(later.put_changes(counts));
    EXPECT_EQ(later.changes(0), 2);
    EXPECT_FALSE(later.put_further(halves));
    EXPECT_TRUE(later.put_further(counts));
    EXPECT_NE(later.whole(1), prints->whole(1));
}

TEST(RowLabel, KnowsWholeNumbersOfAnySize) {
    EXPECT_EQ(RowLabel::of(3), (RowLabel{.whole = 3}));
    EXPECT_EQ(RowLabel::of(-0.0), RowLabel::of(0));
    EXPECT_TRUE(RowLabel::of(1e20).is_whole());
    EXPECT_NE(RowLabel::of(1e20), RowLabel::of(1e25));
    EXPECT_NE(RowLabel::of(1e20).number(), RowLabel::of(1e25).number());
    EXPECT_FALSE(RowLabel::of(0.5).is_whole());
    EXPECT_FALSE(RowLabel::of(INFINITY).is_whole());
    EXPECT_FALSE(RowLabel::of(NAN).is_whole());
    EXPECT_FALSE(RowLabel::of(NAN) == RowLabel::of(NAN));
    EXPECT_TRUE(RowLabel::of(-1e20).is_negative());
    EXPECT_TRUE(RowLabel::of(-3).is_negative());
    EXPECT_FALSE(RowLabel::of(0).is_negative());
}

}  // namespace
}  // namespace traindbg::capture
