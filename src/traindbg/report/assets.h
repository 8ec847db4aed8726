// The page's parts, embedded at build time from assets/ (see CMakeLists.txt).
#pragma once

#include <string_view>

namespace traindbg::report {

// Text, and its SHA-256 in hexadecimal digits, as the page's security policy names it.
struct Asset {
    std::string_view text;
    std::string_view sha256;
};

[[nodiscard]] const Asset& page_template() noexcept;
[[nodiscard]] const Asset& page_style() noexcept;
[[nodiscard]] const Asset& page_script() noexcept;

}  // namespace traindbg::report
