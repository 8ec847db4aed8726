#include "traindbg/base/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <numeric>
#include <vector>

#include "traindbg/base/format.h"

namespace traindbg::base {
namespace {

// How many letters have to be changed, added, removed, or swapped with their neighbour.
std::size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before_last(b.size() + 1);
    std::vector<std::size_t> last(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(last.begin(), last.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
            const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
        }
        std::swap(before_last, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

// The length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none.
std::size_t utf8_sequence(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() < size) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((byte(i) & 0xC0) != 0x80) return 0;
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
    if (lead == 0xED && byte(1) > 0x9F) return 0;  // surrogates
    if (lead == 0xF0 && byte(1) < 0x90) return 0;  // overlong
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;  // beyond U+10FFFF
    if (lead == 0xC2 && byte(1) < 0xA0) return 0;  // C1 control characters
    // Marks that reorder or hide text around them: U+200E/F, U+202A..E, U+2066..9.
    if (size == 3 && lead == 0xE2 && byte(1) == 0x80 &&
        ((byte(2) >= 0xAA && byte(2) <= 0xAE) || byte(2) == 0x8E || byte(2) == 0x8F))
        return 0;
    if (size == 3 && lead == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9) return 0;
    return size;
}

}  // namespace

std::optional<std::string> nearest_match(std::string_view word, std::span<const std::string> candidates) {
    std::optional<std::string> best;
    std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const std::size_t distance = edit_distance(word, candidate);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    if (!best && word.size() >= 3) {
        for (const std::string& candidate : candidates)
            if (candidate.find(word) != std::string::npos) return candidate;
    }
    return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> candidates) {
    const std::optional<std::string> match = nearest_match(word, candidates);
    return match ? base::format(" (did you mean '{}'?)", *match) : std::string();
}

std::string human_bytes(std::uint64_t bytes) {
    if (bytes < 1000) return base::format("{} B", bytes);
    constexpr std::array<const char*, 5> kUnits = {"kB", "MB", "GB", "TB", "PB"};
    double value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (value /= 1000; value >= 999.95 && unit + 1 < kUnits.size(); ++unit) value /= 1000;
    return base::format("{:.1f} {}", value, kUnits[unit]);
}

namespace {

// A number that is not negative, and the word behind it.
struct Measure {
    double number = 0;
    std::string_view unit;
};

std::optional<Measure> parse_measure(std::string_view text) {
    Measure measure;
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), measure.number, std::chars_format::fixed);
    if (error != std::errc() || !std::isfinite(measure.number) || std::signbit(measure.number))
        return std::nullopt;
    measure.unit = text.substr(static_cast<std::size_t>(end - text.data()));
    while (measure.unit.starts_with(' ')) measure.unit.remove_prefix(1);
    return measure;
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
    const std::optional<Measure> measure = parse_measure(text);
    if (!measure) return std::nullopt;
    std::string_view unit = measure->unit;
    if (unit.ends_with('B') || unit.ends_with('b')) unit.remove_suffix(1);
    const bool is_binary = unit.size() == 2 && unit[1] == 'i';
    if (unit.size() > 1 && !is_binary) return std::nullopt;
    double factor = 1;
    if (!unit.empty()) {
        constexpr std::string_view kPrefixes = "kmgtp";
        const char letter =
            unit[0] >= 'A' && unit[0] <= 'Z' ? static_cast<char>(unit[0] - 'A' + 'a') : unit[0];
        const std::size_t power = kPrefixes.find(letter);
        if (power == std::string_view::npos) return std::nullopt;
        for (std::size_t i = 0; i <= power; ++i) factor *= is_binary ? 1024 : 1000;
    }
    const double bytes = measure->number * factor;
    if (bytes >= 9e18) return std::nullopt;
    return static_cast<std::uint64_t>(bytes);
}

std::optional<std::int64_t> parse_duration(std::string_view text) {
    const std::optional<Measure> measure = parse_measure(text);
    if (!measure) return std::nullopt;
    double seconds = 0;
    if (measure->unit == "s") seconds = 1;
    else if (measure->unit == "min" || measure->unit == "m") seconds = 60;
    else if (measure->unit == "h") seconds = 3600;
    else if (measure->unit == "d") seconds = 86'400;
    else if (measure->unit == "w") seconds = 7 * 86'400;
    else return std::nullopt;
    const double nanos = measure->number * seconds * 1e9;
    if (nanos >= 9e18) return std::nullopt;
    return static_cast<std::int64_t>(nanos);
}

std::string human_duration(std::int64_t nanos) {
    const double seconds = static_cast<double>(nanos) / 1e9;
    const double size = std::abs(seconds);
    if (size < 1e-6) return base::format("{} ns", nanos);
    if (size < 1e-3) return base::format("{:.3g} µs", seconds * 1e6);
    if (size < 1) return base::format("{:.3g} ms", seconds * 1e3);
    if (size < 60) return base::format("{:.1f} s", seconds);
    const auto whole = static_cast<std::int64_t>(size);
    if (whole < 3600) return base::format("{} min {:02} s", whole / 60, whole % 60);
    return base::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

std::string human_number(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return base::format("{:.4g}", value);
}

std::string iso_time(std::int64_t wall_nanos) {
    const auto seconds = static_cast<std::time_t>(wall_nanos / 1'000'000'000);
    std::tm parts{};
    gmtime_r(&seconds, &parts);
    return base::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                        parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::string printable(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto lead = static_cast<unsigned char>(text.front());
        const std::size_t size = utf8_sequence(text);
        if (size == 0 || lead < 0x20 || lead == 0x7F) {
            out += base::format("\\x{:02x}", lead);
            text.remove_prefix(1);
        } else {
            out += text.substr(0, size);
            text.remove_prefix(size);
        }
    }
    return out;
}

}  // namespace traindbg::base
