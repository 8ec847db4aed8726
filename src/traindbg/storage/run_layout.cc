#include "traindbg/storage/run_layout.h"

#include <algorithm>

#include "traindbg/base/format.h"

namespace traindbg::storage {
namespace {

// All of `digits` as a number. Fewer digits than `width` or more than nine are refused, as is a
// longer number with a leading zero: each number has exactly one spelling.
std::optional<std::uint32_t> parse_number(std::string_view digits, std::size_t width) {
    if (digits.size() < width || digits.size() > 9) return std::nullopt;
    if (digits.size() > width && digits.front() == '0') return std::nullopt;
    std::uint32_t value = 0;
    for (const char digit : digits) {
        if (digit < '0' || digit > '9') return std::nullopt;
        value = value * 10 + static_cast<std::uint32_t>(digit - '0');
    }
    return value;
}

}  // namespace

std::string RunLayout::plan_change_json(std::uint32_t number) const {
    return base::format("{}/plan-{:06}.json", root, number);
}

std::string RunLayout::worker_directory(std::uint32_t worker) const {
    return base::format("{}/w{:04}", root, worker);
}

std::string RunLayout::lock(std::uint32_t worker) const { return worker_directory(worker) + "/lock"; }

std::string RunLayout::removed_json(std::uint32_t worker) const {
    return worker_directory(worker) + "/removed.json";
}

std::string RunLayout::ring(std::uint32_t worker) const { return worker_directory(worker) + "/ring"; }

std::string RunLayout::log(std::uint32_t worker, std::uint32_t part) const {
    return base::format("{}/w{:04}/{:06}.log", root, worker, part);
}

std::string RunLayout::segment(std::uint32_t worker, std::uint32_t part) const {
    return base::format("{}/w{:04}/{:06}.seg", root, worker, part);
}

std::string RunLayout::blob(std::uint32_t worker, std::uint32_t number) const {
    return base::format("{}/w{:04}/{:06}.blob", root, worker, number);
}

std::optional<std::uint32_t> parse_worker_directory(std::string_view name) {
    if (!name.starts_with('w')) return std::nullopt;
    return parse_number(name.substr(1), 4);
}

std::optional<std::uint32_t> parse_part(std::string_view name, std::string_view suffix) {
    if (!name.ends_with(suffix)) return std::nullopt;
    return parse_number(name.substr(0, name.size() - suffix.size()), 6);
}

bool is_valid_run_id(std::string_view id) {
    if (id.empty() || id.size() > 128 || id.front() == '.') return false;
    return std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
               c == '_' || c == '-';
    });
}

}  // namespace traindbg::storage
