// The two clocks. Durations and order use the monotonic one; wall time is data for people only.
#pragma once

#include <cstdint>
#include <ctime>

namespace traindbg::base {

[[nodiscard]] inline std::int64_t clock_nanos(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}
// Nanoseconds since an arbitrary start; never goes back. About 25 ns a call.
[[nodiscard]] inline std::int64_t monotonic_nanos() noexcept { return clock_nanos(CLOCK_MONOTONIC); }
// Nanoseconds since 1970-01-01 UTC; may jump.
[[nodiscard]] inline std::int64_t wall_nanos() noexcept { return clock_nanos(CLOCK_REALTIME); }

}  // namespace traindbg::base
