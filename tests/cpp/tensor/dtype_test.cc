#include "traindbg/tensor/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace traindbg::tensor {
namespace {

TEST(DType, NamesAreNumPysAndComeBack) {
    EXPECT_EQ(to_string(DType::kFloat32), "float32");
    for (unsigned i = 1; i <= 17; ++i) {
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

}  // namespace
}  // namespace traindbg::tensor
