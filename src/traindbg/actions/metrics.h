// How a run is doing, as metrics for Prometheus and what reads like it.
//
// Sources: "Exposition formats" of Prometheus (text format 0.0.4) and the OpenMetrics specification 1.0.0.
//
// Thread-safety: plain values and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/finding.h"

namespace traindbg::actions {

// What came of the notifications of one channel.
struct ChannelCounts {
    std::string channel;  // Channel::name()
    std::uint64_t done = 0;
    std::uint64_t failed = 0;
    std::uint64_t dry_run = 0;
    std::uint64_t withheld = 0;  // told with another one
    std::uint64_t retries = 0;   // attempts after a first that failed
    std::uint64_t waiting = 0;
};

struct Metrics {
    std::string run;
    std::string host;
    bool is_running = false;
    std::optional<std::uint64_t> step;  // the last TRAIN step that was judged
    std::uint64_t train_steps = 0;      // of all workers, judged
    std::optional<double> loss;
    std::optional<double> steps_per_second;
    std::uint64_t step_nanos = 0;     // of the recorded steps
    std::uint64_t capture_nanos = 0;  // of these, spent in traindbg
    std::uint64_t steps_dropped = 0;
    std::optional<std::uint64_t> raw_tensors_dropped;  // known at the end
    model::Verdict verdict;
    std::vector<ChannelCounts> channels;
    std::int64_t wall_nanos = 0;  // when this was so
};

enum class MetricsForm : std::uint8_t { kPrometheus, kOpenMetrics };
// What a client's Accept header prefers of the two.
[[nodiscard]] MetricsForm preferred_form(std::string_view accept);
[[nodiscard]] std::string_view content_type(MetricsForm form) noexcept;
[[nodiscard]] std::string metrics_text(const Metrics& metrics, MetricsForm form);

}  // namespace traindbg::actions
