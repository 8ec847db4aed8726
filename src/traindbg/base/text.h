// Small text helpers that several modules need: nearest-name hints and numbers for people.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace traindbg::base {

// The candidate that a person most likely meant, or nothing when none is close.
[[nodiscard]] std::optional<std::string> nearest_match(std::string_view word,
                                                       std::span<const std::string> candidates);
// " (did you mean 'gradients'?)", or an empty string.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> candidates);

[[nodiscard]] std::string human_bytes(std::uint64_t bytes);    // "3.2 MB"
[[nodiscard]] std::string human_duration(std::int64_t nanos);  // "410 µs", "2.3 s", "1 h 04 min"
[[nodiscard]] std::string human_number(double value);          // "0.0031", "1.2e-09", "nan"
// What a person writes: "10GiB", "512 kB", "1.5TB" (k, M, G, T alone are powers of 1000, with an "i" of
// 1024), "4096"; and "30d", "12h", "90min", "5s", as nanoseconds. Nothing for anything else.
[[nodiscard]] std::optional<std::uint64_t> parse_bytes(std::string_view text);
[[nodiscard]] std::optional<std::int64_t> parse_duration(std::string_view text);
// UTC, "2026-11-20T21:04:05Z".
[[nodiscard]] std::string iso_time(std::int64_t wall_nanos);
// Valid UTF-8 without control characters: what may be printed to a terminal or put into JSON.
// Anything else is shown as \xNN.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace traindbg::base
