// The version of this build, e.g. "0.1.0".
#pragma once

#include <string_view>

namespace traindbg::base {

[[nodiscard]] std::string_view version() noexcept;

}  // namespace traindbg::base
