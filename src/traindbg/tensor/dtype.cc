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
    DTypeRow{DType::kFloat8E4M3Fnuz, "float8_e4m3fnuz", 1, true, false},
    DTypeRow{DType::kFloat8E5M2Fnuz, "float8_e5m2fnuz", 1, true, false},
    DTypeRow{DType::kFloat8E8M0, "float8_e8m0fnu", 1, true, false},
};

const DTypeRow& row(DType dtype) noexcept {
    const auto index = static_cast<std::size_t>(dtype);
    return index < kTable.size() ? kTable[index] : kTable[0];
}

// What the largest exponent stands for.
enum class Largest : std::uint8_t {
    kNotFinite,  // infinity and NaN, as IEEE has it
    kOneNaN,     // numbers, but for the largest mantissa, which is NaN
    kNumbers,    // numbers; the pattern of -0 is NaN, and the bias is larger by one
};

// A float with `exponent_bits` and `mantissa_bits`, IEEE-like but for what `largest` says.
float small_float(std::uint32_t bits, int exponent_bits, int mantissa_bits, Largest largest) noexcept {
    const std::uint32_t mantissa_mask = (1U << mantissa_bits) - 1;
    const std::uint32_t exponent_mask = (1U << exponent_bits) - 1;
    const std::uint32_t mantissa = bits & mantissa_mask;
    const std::uint32_t exponent = (bits >> mantissa_bits) & exponent_mask;
    const bool negative = ((bits >> (mantissa_bits + exponent_bits)) & 1) != 0;
    const bool is_nuz = largest == Largest::kNumbers;
    const int bias = (1 << (exponent_bits - 1)) - (is_nuz ? 0 : 1);
    float value = 0;
    if (is_nuz && negative && exponent == 0 && mantissa == 0) {
        value = std::numeric_limits<float>::quiet_NaN();
    } else if (exponent == exponent_mask && !is_nuz &&
               (largest == Largest::kNotFinite || mantissa == mantissa_mask)) {
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

float half_to_float(std::uint16_t bits) noexcept { return small_float(bits, 5, 10, Largest::kNotFinite); }
float float8_e4m3_to_float(std::uint8_t bits) noexcept { return small_float(bits, 4, 3, Largest::kOneNaN); }
float float8_e5m2_to_float(std::uint8_t bits) noexcept {
    return small_float(bits, 5, 2, Largest::kNotFinite);
}
float float8_e4m3fnuz_to_float(std::uint8_t bits) noexcept {
    return small_float(bits, 4, 3, Largest::kNumbers);
}
float float8_e5m2fnuz_to_float(std::uint8_t bits) noexcept {
    return small_float(bits, 5, 2, Largest::kNumbers);
}
float float8_e8m0fnu_to_float(std::uint8_t bits) noexcept {
    return bits == 0xFF ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, bits - 127);
}

float float8_to_float(DType dtype, std::uint8_t bits) noexcept {
    switch (dtype) {
        case DType::kFloat8E4M3: return float8_e4m3_to_float(bits);
        case DType::kFloat8E5M2: return float8_e5m2_to_float(bits);
        case DType::kFloat8E4M3Fnuz: return float8_e4m3fnuz_to_float(bits);
        case DType::kFloat8E5M2Fnuz: return float8_e5m2fnuz_to_float(bits);
        case DType::kFloat8E8M0: return float8_e8m0fnu_to_float(bits);
        default: return std::numeric_limits<float>::quiet_NaN();
    }
}

}  // namespace traindbg::tensor
