// What a custom rule and its parameters may be called: what can stand in NAME.PARAMETER=VALUE and in a file's
// name.
#pragma once

#include <algorithm>
#include <string_view>

namespace traindbg::extend {

inline constexpr std::size_t kLongestName = 100;

// A letter, then letters, digits and '_'.
[[nodiscard]] constexpr bool is_name(std::string_view name) noexcept {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    const auto is_part = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; };
    return !name.empty() && name.size() <= kLongestName && is_letter(name.front()) &&
           std::all_of(name.begin(), name.end(), is_part);
}

}  // namespace traindbg::extend
