// CRC-32C (Castagnoli), the checksum of every frame. Check value: "123456789" -> 0xE3069283.
//
// Uses the CPU's instruction where there is one and a table elsewhere; both give the same result.
#pragma once

#include <cstdint>

#include "traindbg/base/bytes.h"

namespace traindbg::base {

// Continues from `crc`, the result for the bytes before (0 at the start).
[[nodiscard]] std::uint32_t crc32c(ByteSpan bytes, std::uint32_t crc = 0) noexcept;

namespace internal {
// The two implementations, visible so that a test can compare them.
[[nodiscard]] std::uint32_t crc32c_table(ByteSpan bytes, std::uint32_t crc) noexcept;
[[nodiscard]] bool crc32c_hardware_available() noexcept;
[[nodiscard]] std::uint32_t crc32c_hardware(ByteSpan bytes, std::uint32_t crc) noexcept;
}  // namespace internal

}  // namespace traindbg::base
