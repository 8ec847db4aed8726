// SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104): what requests to object stores are signed with, and
// how cached blocks are named. Check value: "abc" -> ba7816bf...f20015ad.
//
// Thread-safety: one thread per object. Cost: with the processor's SHA instructions, where it has them,
// about 1.5 GB/s, else about 0.2 GB/s; no allocation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "traindbg/base/bytes.h"

namespace traindbg::base {

using Sha256Digest = std::array<std::byte, 32>;

class Sha256 {
  public:
    void update(ByteSpan bytes) noexcept;
    // Ends the message; the object must not be used afterwards.
    [[nodiscard]] Sha256Digest finish() noexcept;

  private:
    std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, 64> pending_{};
    std::uint64_t bytes_ = 0;
};

[[nodiscard]] Sha256Digest sha256(ByteSpan bytes) noexcept;
[[nodiscard]] Sha256Digest hmac_sha256(ByteSpan key, ByteSpan message) noexcept;
// Lower-case hexadecimal.
[[nodiscard]] std::string hex(ByteSpan bytes);

namespace internal {
// The two ways to take whole blocks of 64 bytes; the tests compare them.
void sha256_blocks_plain(std::uint32_t* state, const std::byte* data, std::size_t blocks) noexcept;
// False: this processor cannot.
[[nodiscard]] bool sha256_blocks_fast(std::uint32_t* state, const std::byte* data,
                                      std::size_t blocks) noexcept;
}  // namespace internal

}  // namespace traindbg::base
