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
#define TRAINDBG_CRC_TARGET __attribute__((target("sse4.2")))
bool crc32c_hardware_available() noexcept { return __builtin_cpu_supports("sse4.2"); }
namespace {
TRAINDBG_CRC_TARGET inline std::uint32_t add_word(std::uint32_t crc, std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(_mm_crc32_u64(crc, word));
}
TRAINDBG_CRC_TARGET inline std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) noexcept {
    return _mm_crc32_u8(crc, byte);
}
}  // namespace
#elif defined(__aarch64__)
#define TRAINDBG_CRC_TARGET __attribute__((target("+crc")))
bool crc32c_hardware_available() noexcept { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
namespace {
TRAINDBG_CRC_TARGET inline std::uint32_t add_word(std::uint32_t crc, std::uint64_t word) noexcept {
    return __crc32cd(crc, word);
}
TRAINDBG_CRC_TARGET inline std::uint32_t add_byte(std::uint32_t crc, std::uint8_t byte) noexcept {
    return __crc32cb(crc, byte);
}
}  // namespace
#endif

#if defined(TRAINDBG_CRC_TARGET)
namespace {

// The instruction gives its result three cycles later, but one can begin in each: three stretches of this
// many bytes are summed side by side and then joined.
constexpr std::size_t kStretch = 1024;

// What kStretch bytes of zeros make of a checksum's state, by the four bytes of that state.
constexpr std::array<std::array<std::uint32_t, 256>, 4> make_shift() {
    std::array<std::uint32_t, 32> of_bit{};
    for (std::size_t bit = 0; bit < of_bit.size(); ++bit) {
        std::uint32_t value = 1U << bit;
        for (std::size_t i = 0; i < kStretch; ++i) value = kTable[value & 0xFF] ^ (value >> 8);
        of_bit[bit] = value;
    }
    std::array<std::array<std::uint32_t, 256>, 4> shift{};
    for (std::size_t place = 0; place < 4; ++place)
        for (std::size_t byte = 0; byte < 256; ++byte)
            for (std::size_t bit = 0; bit < 8; ++bit)
                if ((byte >> bit & 1) != 0) shift[place][byte] ^= of_bit[place * 8 + bit];
    return shift;
}
constexpr auto kShift = make_shift();

std::uint32_t shifted(std::uint32_t crc) noexcept {
    return kShift[0][crc & 0xFF] ^ kShift[1][crc >> 8 & 0xFF] ^ kShift[2][crc >> 16 & 0xFF] ^
           kShift[3][crc >> 24];
}

std::uint64_t word_at(const std::byte* data) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof(word));
    return word;
}

}  // namespace

TRAINDBG_CRC_TARGET std::uint32_t crc32c_hardware(ByteSpan bytes, std::uint32_t crc) noexcept {
    crc = ~crc;
    const std::byte* data = bytes.data();
    std::size_t left = bytes.size();
    for (; left >= 3 * kStretch; left -= 3 * kStretch, data += 3 * kStretch) {
        std::uint32_t second = 0;
        std::uint32_t third = 0;
        for (std::size_t i = 0; i < kStretch; i += 8) {
            crc = add_word(crc, word_at(data + i));
            second = add_word(second, word_at(data + kStretch + i));
            third = add_word(third, word_at(data + 2 * kStretch + i));
        }
        crc = shifted(shifted(crc) ^ second) ^ third;
    }
    for (; left >= 8; left -= 8, data += 8) crc = add_word(crc, word_at(data));
    for (; left > 0; --left, ++data) crc = add_byte(crc, std::to_integer<std::uint8_t>(*data));
    return ~crc;
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
