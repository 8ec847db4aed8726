// Formatting with the syntax of fmt, checked at compile time: format("{} of {}", done, all).
//
// The headers of fmt would put all of its machinery into each file that formats, which is half of
// the time to compile such a file. Here one file has it, and the others see declarations only.
// Numbers, strings and what else fmt's core knows can be arguments; ranges go through `join`.
#pragma once

#if __has_include(<fmt/base.h>)
#include <fmt/base.h>
#else
#include <fmt/core.h>
#endif

#include <string>
#include <string_view>

namespace traindbg::base {

// Needs no template; what `format` ends in.
[[nodiscard]] std::string format_with(fmt::string_view pattern, fmt::format_args arguments);

template <typename... Arguments>
[[nodiscard]] std::string format(fmt::format_string<Arguments...> pattern, Arguments&&... arguments) {
    return format_with(pattern, fmt::make_format_args(arguments...));
}

// The elements as `format` shows them, with `separator` between them.
template <typename Range>
[[nodiscard]] std::string join(const Range& range, std::string_view separator) {
    std::string out;
    bool is_first = true;
    for (const auto& element : range) {
        if (!is_first) out += separator;
        is_first = false;
        out += format("{}", element);
    }
    return out;
}

}  // namespace traindbg::base
