#include "traindbg/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace traindbg::base {
namespace {

constexpr std::size_t kBlockBytes = 64;

// FIPS 180-4, section 4.2.2.
alignas(16) constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* bytes) noexcept {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = (word << 8) | std::to_integer<std::uint32_t>(bytes[i]);
    return word;
}

void take_blocks(std::uint32_t* state, const std::byte* data, std::size_t blocks) noexcept {
    if (!internal::sha256_blocks_fast(state, data, blocks))
        internal::sha256_blocks_plain(state, data, blocks);
}

#if defined(__x86_64__)
// The instructions keep the state as two vectors, (a b e f) and (c d g h), and do two rounds each.
__attribute__((target("sha,sse4.1,ssse3"))) void sha_instructions(std::uint32_t* state, const std::byte* data,
                                                                  std::size_t blocks) noexcept {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    const auto load = [](const void* from) { return _mm_loadu_si128(static_cast<const __m128i*>(from)); };
    const __m128i dcba = load(state);
    const __m128i hgfe = load(state + 4);
    const __m128i cdab = _mm_shuffle_epi32(dcba, 0xB1);
    const __m128i efgh = _mm_shuffle_epi32(hgfe, 0x1B);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xF0);
    for (; blocks != 0; --blocks, data += kBlockBytes) {
        const __m128i abef_before = abef;
        const __m128i cdgh_before = cdgh;
        // NOLINTNEXTLINE(modernize-avoid-c-arrays): std::array drops the vector's alignment
        __m128i w[4] = {};
        for (std::size_t group = 0; group < 16; ++group) {
            __m128i& now = w[group % 4];
            if (group < 4) {
                now = _mm_shuffle_epi8(load(data + 16 * group), swap);
            } else {
                // w[t-16] + s0(w[t-15]) + w[t-7], then s1(w[t-2]).
                const __m128i& one = w[(group + 1) % 4];
                const __m128i& two = w[(group + 2) % 4];
                const __m128i& three = w[(group + 3) % 4];
                const __m128i sum =
                    _mm_add_epi32(_mm_sha256msg1_epu32(now, one), _mm_alignr_epi8(three, two, 4));
                now = _mm_sha256msg2_epu32(sum, three);
            }
            __m128i words = _mm_add_epi32(now, load(kRound.data() + 4 * group));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
            words = _mm_shuffle_epi32(words, 0x0E);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, words);
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    const __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
    const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state), _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}

bool has_instructions() noexcept {
    // CPUID leaf 7, EBX bit 29; GCC 12's __builtin_cpu_supports does not know it.
    unsigned a = 7;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return (b >> 29 & 1U) != 0 && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
}
#endif

}  // namespace

namespace internal {

void sha256_blocks_plain(std::uint32_t* state, const std::byte* data, std::size_t blocks) noexcept {
    std::array<std::uint32_t, 64> w{};
    for (; blocks != 0; --blocks, data += kBlockBytes) {
        for (std::size_t t = 0; t < 16; ++t) w[t] = big_endian(data + 4 * t);
        for (std::size_t t = 16; t < 64; ++t) {
            const std::uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
            const std::uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
            w[t] = w[t - 16] + s0 + w[t - 7] + s1;
        }
        std::array<std::uint32_t, 8> v{};
        std::copy_n(state, 8, v.begin());
        for (std::size_t t = 0; t < 64; ++t) {
            const auto [a, b, c, d, e, f, g, h] = v;
            const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
            const std::uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
            const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
            const std::uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
            v = {t1 + t2, a, b, c, d + t1, e, f, g};
        }
        for (std::size_t i = 0; i < 8; ++i) state[i] += v[i];
    }
}

bool sha256_blocks_fast(std::uint32_t* state, const std::byte* data, std::size_t blocks) noexcept {
#if defined(__x86_64__)
    static const bool can = has_instructions();
    if (can) sha_instructions(state, data, blocks);
    return can;
#else
    static_cast<void>(state);
    static_cast<void>(data);
    static_cast<void>(blocks);
    return false;
#endif
}

}  // namespace internal

void Sha256::update(ByteSpan bytes) noexcept {
    const auto used = static_cast<std::size_t>(bytes_ % kBlockBytes);
    bytes_ += bytes.size();
    if (used != 0) {
        const std::size_t taken = std::min(bytes.size(), kBlockBytes - used);
        if (taken != 0) std::memcpy(pending_.data() + used, bytes.data(), taken);
        bytes = bytes.subspan(taken);
        if (used + taken < kBlockBytes) return;
        take_blocks(state_.data(), pending_.data(), 1);
    }
    const std::size_t blocks = bytes.size() / kBlockBytes;
    if (blocks != 0) take_blocks(state_.data(), bytes.data(), blocks);
    const ByteSpan rest = bytes.subspan(blocks * kBlockBytes);
    if (!rest.empty()) std::memcpy(pending_.data(), rest.data(), rest.size());
}

Sha256Digest Sha256::finish() noexcept {
    const std::uint64_t bits = bytes_ * 8;
    const auto used = static_cast<std::size_t>(bytes_ % kBlockBytes);
    std::array<std::byte, 2 * kBlockBytes> tail{};
    tail[0] = std::byte{0x80};
    const std::size_t zeros = (used < 56 ? 56 : 120) - used;
    for (std::size_t i = 0; i < 8; ++i) tail[zeros + i] = static_cast<std::byte>(bits >> (56 - 8 * i));
    update(ByteSpan(tail).first(zeros + 8));
    Sha256Digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i)
        digest[i] = static_cast<std::byte>(state_[i / 4] >> (24 - 8 * (i % 4)));
    return digest;
}

Sha256Digest sha256(ByteSpan bytes) noexcept {
    Sha256 hash;
    hash.update(bytes);
    return hash.finish();
}

Sha256Digest hmac_sha256(ByteSpan key, ByteSpan message) noexcept {
    std::array<std::byte, kBlockBytes> block{};
    if (key.size() > kBlockBytes) {
        const Sha256Digest short_key = sha256(key);
        std::copy(short_key.begin(), short_key.end(), block.begin());
    } else {
        std::copy(key.begin(), key.end(), block.begin());
    }
    std::array<std::byte, kBlockBytes> inner = block;
    std::array<std::byte, kBlockBytes> outer = block;
    for (std::byte& b : inner) b ^= std::byte{0x36};
    for (std::byte& b : outer) b ^= std::byte{0x5c};
    Sha256 first;
    first.update(inner);
    first.update(message);
    const Sha256Digest middle = first.finish();
    Sha256 second;
    second.update(outer);
    second.update(middle);
    return second.finish();
}

std::string hex(ByteSpan bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (const std::byte b : bytes) {
        text += kDigits[std::to_integer<std::size_t>(b >> 4)];
        text += kDigits[std::to_integer<std::size_t>(b & std::byte{15})];
    }
    return text;
}

}  // namespace traindbg::base
