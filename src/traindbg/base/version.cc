#include "traindbg/base/version.h"

namespace traindbg::base {

std::string_view version() noexcept { return TRAINDBG_VERSION; }

}  // namespace traindbg::base
