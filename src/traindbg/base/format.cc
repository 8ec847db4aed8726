// All of fmt is compiled into this file, so that a wheel needs no library of it.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include "traindbg/base/format.h"

namespace traindbg::base {

std::string format_with(fmt::string_view pattern, fmt::format_args arguments) {
    return fmt::vformat(pattern, arguments);
}

}  // namespace traindbg::base
