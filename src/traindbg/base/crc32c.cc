#include "traindbg/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace traindbg::base {
namespace internal {
namespace {

constexpr std::uint32_t kPolynomial = 0x82F63B78;  // reflected 0x1EDC6F41

constexpr std::array<std::uint32_t, 256> make_table() {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) ? kPolynomial : 0);
        table[byte] = value;
    }
    return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

}  // namespace

std::uint32_t crc32c_table(ByteSpan bytes, std::uint32_t crc) noexcept {
    crc = ~crc;
    for (const std::byte byte : bytes)
        crc = kTable[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF] ^ (crc >> 8);
    return ~crc;
}

#if defined(__x86_64__)
bool crc32c_hardware_available() noexcept { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2"))) std::uint32_t crc32c_hardware(ByteSpan bytes, std::uint32_t crc) noexcept {
    std::uint64_t value = ~crc;
    const std::byte* data = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; left -= 8, data += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, data, 8);
        value = _mm_crc32_u64(value, word);
    }
    auto narrow = static_cast<std::uint32_t>(value);
    for (; left > 0; --left, ++data) narrow = _mm_crc32_u8(narrow, std::to_integer<std::uint8_t>(*data));
    return ~narrow;
}
#elif defined(__aarch64__)
bool crc32c_hardware_available() noexcept { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }

__attribute__((target("+crc"))) std::uint32_t crc32c_hardware(ByteSpan bytes, std::uint32_t crc) noexcept {
    std::uint32_t value = ~crc;
    const std::byte* data = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 8; left -= 8, data += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, data, 8);
        value = __crc32cd(value, word);
    }
    for (; left > 0; --left, ++data) value = __crc32cb(value, std::to_integer<std::uint8_t>(*data));
    return ~value;
}
#else
bool crc32c_hardware_available() noexcept { return false; }
std::uint32_t crc32c_hardware(ByteSpan bytes, std::uint32_t crc) noexcept { return crc32c_table(bytes, crc); }
#endif

}  // namespace internal

std::uint32_t crc32c(ByteSpan bytes, std::uint32_t crc) noexcept {
    static const bool hardware = internal::crc32c_hardware_available();
    return hardware ? internal::crc32c_hardware(bytes, crc) : internal::crc32c_table(bytes, crc);
}

}  // namespace traindbg::base
