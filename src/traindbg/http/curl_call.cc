#include "traindbg/http/curl_call.h"

#include <algorithm>
#include <cstdint>

#include "traindbg/base/clock.h"

namespace traindbg::http::internal {
namespace {

// Called from C: nothing may be thrown through it.
int look_at_clock(void* context, long long, long long, long long, long long) noexcept {
    auto& deadline = *static_cast<CurlDeadline*>(context);
    deadline.is_over = deadline.patience.is_over();
    return deadline.is_over ? 1 : 0;
}

}  // namespace

void keep_deadline(const Curl& curl, CurlHandle* handle, CurlDeadline& deadline,
                   std::chrono::milliseconds connect_timeout, std::chrono::milliseconds stall_timeout) {
    const auto set = [&](CurlOption option, auto value) {
        static_cast<void>(curl.easy_setopt(handle, option, value));
    };
    set(kCurlNoSignal, 1L);
    set(kCurlXferInfoFunction, &look_at_clock);
    set(kCurlXferInfoData, static_cast<void*>(&deadline));
    set(kCurlNoProgress, 0L);
    set(kCurlConnectTimeoutMs, static_cast<long>(connect_timeout.count()));
    set(kCurlLowSpeedLimit, 1L);
    set(kCurlLowSpeedTime, std::max(1L, static_cast<long>(stall_timeout.count() / 1000)));
    constexpr std::int64_t kLongestCallNanos = 3'600'000'000'000;
    const std::int64_t left = deadline.patience.deadline_nanos == INT64_MAX
                                  ? kLongestCallNanos
                                  : deadline.patience.deadline_nanos - base::monotonic_nanos();
    set(kCurlTimeoutMs, std::max(1L, static_cast<long>(std::min(left, kLongestCallNanos) / 1'000'000)));
}

}  // namespace traindbg::http::internal
