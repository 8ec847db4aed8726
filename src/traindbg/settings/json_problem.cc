#include "traindbg/settings/json_problem.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::settings {

namespace {

using nlohmann::json;

// What the parser calls: takes in nothing but where it gave up, and over what.
struct Fault {
    std::size_t read = 0;    // up to the character that is wrong, with it
    bool is_number = false;  // that no double can hold

    static bool null() { return true; }
    static bool boolean(bool /*value*/) { return true; }
    static bool number_integer(json::number_integer_t /*value*/) { return true; }
    static bool number_unsigned(json::number_unsigned_t /*value*/) { return true; }
    static bool number_float(json::number_float_t /*value*/, const std::string& /*text*/) { return true; }
    static bool string(const std::string& /*value*/) { return true; }
    static bool binary(const json::binary_t& /*value*/) { return true; }
    static bool key(const std::string& /*name*/) { return true; }
    static bool start_object(std::size_t /*size*/) { return true; }
    static bool end_object() { return true; }
    static bool start_array(std::size_t /*size*/) { return true; }
    static bool end_array() { return true; }
    bool parse_error(std::size_t at, const std::string& /*token*/, const json::exception& why) {
        read = at;
        is_number = dynamic_cast<const json::out_of_range*>(&why) != nullptr;
        return false;
    }
};

}  // namespace

std::string json_problem(std::string_view text) {
    constexpr std::size_t kShown = 16;
    Fault fault;
    json::sax_parse(text.begin(), text.end(), &fault);
    // Of a number that the text ends with, one more is read.
    const std::size_t read = fault.is_number ? std::min(fault.read, text.size()) : fault.read;
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
    const std::string_view what = fault.is_number ? "has a number that is too large" : "is not JSON";
    return base::format("{} at line {}, column {}, near '{}'", what, line, read - line_begin,
                        base::printable(near));
}

}  // namespace traindbg::settings
