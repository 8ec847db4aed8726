#include "traindbg/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace traindbg::tensor {
namespace {

TEST(DType, NamesAreNumPysAndComeBack) {
    EXPECT_EQ(to_string(DType::kFloat32), "float32");
    for (unsigned i = 1; i <= static_cast<unsigned>(kLastDType); ++i) {
        const auto dtype = static_cast<DType>(i);
        EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
        EXPECT_GT(byte_size(dtype), 0U);
        EXPECT_FALSE(is_floating(dtype) && is_integer(dtype));
    }
    EXPECT_EQ(parse_dtype("unknown"), std::nullopt);
    EXPECT_EQ(parse_dtype("float33"), std::nullopt);
    EXPECT_EQ(byte_size(static_cast<DType>(200)), 0U) << "from a newer file";
    EXPECT_EQ(byte_size(DType::kComplex128), 16U);
    EXPECT_TRUE(is_integer(DType::kBool));
    EXPECT_FALSE(is_floating(DType::kComplex64));
}

TEST(DType, HalvesAreTheNumbersOfTheStandard) {
    EXPECT_EQ(half_to_float(0x0000), 0.0F);
    EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
    EXPECT_EQ(half_to_float(0x3C00), 1.0F);
    EXPECT_EQ(half_to_float(0xC000), -2.0F);
    EXPECT_EQ(half_to_float(0x7BFF), 65504.0F);
    EXPECT_EQ(half_to_float(0x0400), 0x1p-14F);
    EXPECT_EQ(half_to_float(0x0001), 0x1p-24F);
    EXPECT_EQ(half_to_float(0x3555), 0x1.554p-2F);
    EXPECT_TRUE(std::isinf(half_to_float(0x7C00)));
    EXPECT_LT(half_to_float(0xFC00), 0.0F);
    EXPECT_TRUE(std::isnan(half_to_float(0x7C01)));
}

TEST(DType, HalvesGrowWithTheirBits) {
    for (std::uint16_t bits = 0; bits < 0x7C00; ++bits)
        ASSERT_LT(half_to_float(bits), half_to_float(static_cast<std::uint16_t>(bits + 1))) << bits;
}

TEST(DType, BrainFloatsAreTheUpperHalfOfFloats) {
    EXPECT_EQ(bfloat16_to_float(0x3F80), 1.0F);
    EXPECT_EQ(bfloat16_to_float(0xC0A0), -5.0F);
    EXPECT_TRUE(std::isinf(bfloat16_to_float(0x7F80)));
    EXPECT_TRUE(std::isnan(bfloat16_to_float(0x7FC0)));
}

// The tables of "FP8 Formats for Deep Learning" (2022).
TEST(DType, EightBitFloatsAreTheNumbersOfTheirPaper) {
    EXPECT_EQ(float8_e4m3_to_float(0x7E), 448.0F);
    EXPECT_TRUE(std::isnan(float8_e4m3_to_float(0x7F)));
    EXPECT_TRUE(std::isnan(float8_e4m3_to_float(0xFF)));
    EXPECT_EQ(float8_e4m3_to_float(0x08), 0x1p-6F);
    EXPECT_EQ(float8_e4m3_to_float(0x01), 0x1p-9F);
    EXPECT_EQ(float8_e4m3_to_float(0xB8), -1.0F);
    EXPECT_EQ(float8_e5m2_to_float(0x7B), 57344.0F);
    EXPECT_TRUE(std::isinf(float8_e5m2_to_float(0x7C)));
    EXPECT_TRUE(std::isnan(float8_e5m2_to_float(0x7D)));
    EXPECT_EQ(float8_e5m2_to_float(0x04), 0x1p-14F);
    EXPECT_EQ(float8_e5m2_to_float(0x01), 0x1p-16F);
}

TEST(DType, EightBitFloatsWithoutNegativeZeroHaveNoInfinities) {
    EXPECT_EQ(float8_e4m3fnuz_to_float(0x7F), 240.0F);
    EXPECT_EQ(float8_e4m3fnuz_to_float(0xFF), -240.0F);
    EXPECT_EQ(float8_e4m3fnuz_to_float(0x08), 0x1p-7F);
    EXPECT_EQ(float8_e4m3fnuz_to_float(0x01), 0x1p-10F);
    EXPECT_EQ(float8_e5m2fnuz_to_float(0x7F), 57344.0F);
    EXPECT_EQ(float8_e5m2fnuz_to_float(0x04), 0x1p-15F);
    EXPECT_EQ(float8_e5m2fnuz_to_float(0x01), 0x1p-17F);
    for (const auto decode : {&float8_e4m3fnuz_to_float, &float8_e5m2fnuz_to_float}) {
        EXPECT_EQ(decode(0x00), 0.0F);
        EXPECT_TRUE(std::isnan(decode(0x80)));
        for (unsigned bits = 0; bits < 256; ++bits)
            EXPECT_EQ(std::isfinite(decode(static_cast<std::uint8_t>(bits))), bits != 0x80) << bits;
    }
}

TEST(DType, ExponentsAloneArePowersOfTwo) {
    EXPECT_EQ(float8_e8m0fnu_to_float(0x00), 0x1p-127F);
    EXPECT_EQ(float8_e8m0fnu_to_float(0x7F), 1.0F);
    EXPECT_EQ(float8_e8m0fnu_to_float(0xFE), 0x1p127F);
    EXPECT_TRUE(std::isnan(float8_e8m0fnu_to_float(0xFF)));
}

TEST(DType, EightBitFloatsAreFoundByTheirType) {
    unsigned count = 0;
    for (unsigned i = 0; i <= static_cast<unsigned>(kLastDType); ++i) {
        const auto dtype = static_cast<DType>(i);
        const bool is_one = is_floating(dtype) && byte_size(dtype) == 1;
        EXPECT_EQ(std::isnan(float8_to_float(dtype, 0x01)), !is_one) << i;
        count += is_one ? 1 : 0;
    }
    EXPECT_EQ(count, 5U);
    EXPECT_EQ(float8_to_float(DType::kFloat8E5M2, 0x7B), 57344.0F);
    EXPECT_EQ(float8_to_float(DType::kFloat8E5M2Fnuz, 0x7B), 28672.0F);
}

}  // namespace
}  // namespace traindbg::tensor
