#include "traindbg/tensor/dtype.h"

#include <array>
#include <cmath>
#include <limits>

namespace traindbg::tensor {
namespace {

struct DTypeRow {
    DType dtype;
    std::string_view name;
    std::size_t bytes;
    bool floating;
    bool integer;
};

constexpr std::array kTable = {
    DTypeRow{DType::kUnknown, "unknown", 0, false, false},
    DTypeRow{DType::kFloat64, "float64", 8, true, false},
    DTypeRow{DType::kFloat32, "float32", 4, true, false},
    DTypeRow{DType::kFloat16, "float16", 2, true, false},
    DTypeRow{DType::kBFloat16, "bfloat16", 2, true, false},
    DTypeRow{DType::kFloat8E4M3, "float8_e4m3fn", 1, true, false},
    DTypeRow{DType::kFloat8E5M2, "float8_e5m2", 1, true, false},
    DTypeRow{DType::kInt64, "int64", 8, false, true},
    DTypeRow{DType::kInt32, "int32", 4, false, true},
    DTypeRow{DType::kInt16, "int16", 2, false, true},
    DTypeRow{DType::kInt8, "int8", 1, false, true},
    DTypeRow{DType::kUInt64, "uint64", 8, false, true},
    DTypeRow{DType::kUInt32, "uint32", 4, false, true},
    DTypeRow{DType::kUInt16, "uint16", 2, false, true},
    DTypeRow{DType::kUInt8, "uint8", 1, false, true},
    DTypeRow{DType::kBool, "bool", 1, false, true},
    DTypeRow{DType::kComplex64, "complex64", 8, false, false},
    DTypeRow{DType::kComplex128, "complex128", 16, false, false},
};

const DTypeRow& row(DType dtype) noexcept {
    const auto index = static_cast<std::size_t>(dtype);
    return index < kTable.size() ? kTable[index] : kTable[0];
}

// A float with `exponent_bits` and `mantissa_bits`, IEEE-like: subnormals, and (unless `finite_only`)
// infinities and NaN at the largest exponent.
float small_float(std::uint32_t bits, int exponent_bits, int mantissa_bits, bool finite_only) noexcept {
    const std::uint32_t mantissa_mask = (1U << mantissa_bits) - 1;
    const std::uint32_t exponent_mask = (1U << exponent_bits) - 1;
    const std::uint32_t mantissa = bits & mantissa_mask;
    const std::uint32_t exponent = (bits >> mantissa_bits) & exponent_mask;
    const bool negative = ((bits >> (mantissa_bits + exponent_bits)) & 1) != 0;
    const int bias = (1 << (exponent_bits - 1)) - 1;
    float value = 0;
    if (exponent == exponent_mask && (!finite_only || mantissa == mantissa_mask)) {
        value =
            mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
    } else if (exponent == 0) {
        value = std::ldexp(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
    } else {
        value = std::ldexp(static_cast<float>(mantissa | (mantissa_mask + 1)),
                           static_cast<int>(exponent) - bias - mantissa_bits);
    }
    return negative ? -value : value;
}

}  // namespace

std::size_t byte_size(DType dtype) noexcept { return row(dtype).bytes; }
std::string_view to_string(DType dtype) noexcept { return row(dtype).name; }
bool is_floating(DType dtype) noexcept { return row(dtype).floating; }
bool is_integer(DType dtype) noexcept { return row(dtype).integer; }

std::optional<DType> parse_dtype(std::string_view name) noexcept {
    for (const DTypeRow& candidate : kTable)
        if (candidate.name == name && candidate.dtype != DType::kUnknown) return candidate.dtype;
    return std::nullopt;
}

float half_to_float(std::uint16_t bits) noexcept { return small_float(bits, 5, 10, false); }
float float8_e4m3_to_float(std::uint8_t bits) noexcept { return small_float(bits, 4, 3, true); }
float float8_e5m2_to_float(std::uint8_t bits) noexcept { return small_float(bits, 5, 2, false); }

}  // namespace traindbg::tensor
