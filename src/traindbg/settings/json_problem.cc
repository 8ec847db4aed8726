#include "traindbg/settings/json_problem.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::settings {

std::string json_problem(std::string_view text) {
    constexpr std::size_t kShown = 16;
    std::size_t read = 0;  // up to the character that is wrong, with it
    try {
        [[maybe_unused]] const auto parsed = nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        read = error.byte;
    }
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return "is not JSON: it is empty";
    if (read > text.size()) {
        const auto lines = 1 + std::count(text.begin(), text.end(), '\n') - (text.ends_with('\n') ? 1 : 0);
        return base::format("is not JSON: it ends too early, in line {}", lines);
    }
    const std::string_view before = text.substr(0, read);
    const std::size_t line_begin = text.substr(0, std::max<std::size_t>(read, 1) - 1).rfind('\n') + 1;
    const std::string_view lines = text.substr(0, line_begin);
    const auto line = 1 + std::count(lines.begin(), lines.end(), '\n');
    const std::string_view near = before.substr(std::max(line_begin, read - std::min(read, kShown)));
    return base::format("is not JSON at line {}, column {}, near '{}'", line, read - line_begin,
                        base::printable(near));
}

}  // namespace traindbg::settings
