// Why a text is not JSON, in words for whoever wrote it.
#pragma once

#include <string>
#include <string_view>

namespace traindbg::settings {

// Of a text that cannot be parsed as JSON: "is not JSON at line 3, column 5, near '"100",}'"; of one with a
// number beyond a double's range, that it is too large, and where. Parses it again.
[[nodiscard]] std::string json_problem(std::string_view text);

}  // namespace traindbg::settings
