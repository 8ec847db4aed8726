// How many of the places of a file the tests that damage each of them take.

#pragma once

#include <cstddef>

namespace traindbg::testing {

// Every bit and every byte, except where a sanitizer makes each reading fifty times as slow: there one in so
// many, a number without a common divisor with a byte's bits, so that all of them have their turn.
#if defined(TRAINDBG_THREAD_SANITIZER) || defined(TRAINDBG_ADDRESS_SANITIZER)
inline constexpr std::size_t kEveryNthBit = 31;
inline constexpr std::size_t kEveryNthByte = 11;
#else
inline constexpr std::size_t kEveryNthBit = 1;
inline constexpr std::size_t kEveryNthByte = 1;
#endif

}  // namespace traindbg::testing
