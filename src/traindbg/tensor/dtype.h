// Element types that a tensor can have, and conversion of the narrow floats.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace traindbg::tensor {

// The numbers are written into run files: never change one, only add.
enum class DType : std::uint8_t {
    kUnknown = 0,
    kFloat64 = 1,
    kFloat32 = 2,
    kFloat16 = 3,
    kBFloat16 = 4,
    kFloat8E4M3 = 5,
    kFloat8E5M2 = 6,
    kInt64 = 7,
    kInt32 = 8,
    kInt16 = 9,
    kInt8 = 10,
    kUInt64 = 11,
    kUInt32 = 12,
    kUInt16 = 13,
    kUInt8 = 14,
    kBool = 15,
    kComplex64 = 16,
    kComplex128 = 17,
    kFloat8E4M3Fnuz = 18,
    kFloat8E5M2Fnuz = 19,
    kFloat8E8M0 = 20,
};
inline constexpr DType kLastDType = DType::kFloat8E8M0;

[[nodiscard]] std::size_t byte_size(DType dtype) noexcept;       // of one element; 0 for kUnknown
[[nodiscard]] std::string_view to_string(DType dtype) noexcept;  // NumPy's names: "float32", "bfloat16"
[[nodiscard]] std::optional<DType> parse_dtype(std::string_view name) noexcept;
[[nodiscard]] bool is_floating(DType dtype) noexcept;  // real floats of any width
[[nodiscard]] bool is_integer(DType dtype) noexcept;   // signed, unsigned and bool

// Exact: every narrow float is a float32.
[[nodiscard]] float half_to_float(std::uint16_t bits) noexcept;
[[nodiscard]] inline float bfloat16_to_float(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}
[[nodiscard]] float float8_e4m3_to_float(std::uint8_t bits) noexcept;  // the "fn" kind: no infinities
[[nodiscard]] float float8_e5m2_to_float(std::uint8_t bits) noexcept;
// The "fnuz" kinds: no infinities, no negative zero, which is their only NaN, and a bias larger by one.
[[nodiscard]] float float8_e4m3fnuz_to_float(std::uint8_t bits) noexcept;
[[nodiscard]] float float8_e5m2fnuz_to_float(std::uint8_t bits) noexcept;
[[nodiscard]] float float8_e8m0fnu_to_float(std::uint8_t bits) noexcept;  // a power of two, or NaN

// By the type; NaN where it is no float of 8 bits.
[[nodiscard]] float float8_to_float(DType dtype, std::uint8_t bits) noexcept;

}  // namespace traindbg::tensor
