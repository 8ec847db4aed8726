// Files that an option names. Errors begin with the option as it was given.
#pragma once

#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::options {

[[nodiscard]] base::Result<std::string> read_configuration(std::string_view option, const std::string& path);

}  // namespace traindbg::options
