#include "traindbg/extend/scaffold.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/extend/rule_names.h"

namespace traindbg::extend {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::Result;
using base::Status;

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
        text.replace(at, from.size(), to);
    return text;
}

constexpr bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
constexpr char upper(char c) noexcept { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }

// "StaleNorm" of "stale_norm".
std::string class_of(const std::string& name) {
    std::string out;
    bool begins = true;
    for (const char c : name) {
        if (c != '_') out += begins ? upper(c) : c;
        begins = c == '_';
    }
    return out;
}

// "Stale norm" of "stale_norm".
std::string title_of(const std::string& name) {
    std::string out = replaced(name, "_", " ");
    out[0] = upper(out[0]);
    return out;
}

Status write(const std::string& path, const std::string& text) {
    std::error_code error;
    fs::create_directories(fs::path(path).parent_path(), error);
    std::ofstream out(path, std::ios::binary);
    out << text;
    out.close();
    if (out.fail()) return {Code::kUnavailable, base::printable(path) + ": cannot be written"};
    return Status::ok();
}

}  // namespace

Result<std::vector<std::string>> write_new_rule(const std::string& name, RuleKind kind,
                                                const std::string& directory) {
    const bool is_lower_case =
        std::none_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    if (!is_name(name) || !is_lower_case || name.back() == '_')
        return Status(
            Code::kInvalidArgument,
            base::format("'{}' cannot be a rule's name: name it after the fault, in small letters, digits "
                         "and '_', such as stale_batch_norm",
                         base::printable(name)));
    std::error_code error;
    if (fs::exists(directory, error) &&
        (!fs::is_directory(directory, error) || !fs::is_empty(directory, error)))
        return Status(
            Code::kAlreadyExists,
            base::format("{}: is there already and not empty; nothing is overwritten: name another with "
                         "--out DIR",
                         base::printable(directory)));
    const std::string_view folder = kind == RuleKind::kPython ? "python/" : "cpp/";
    const auto filled = [&](std::string_view text) {
        std::string out = replaced(std::string(text), "@NAME@", name);
        out = replaced(std::move(out), "@TITLE@", title_of(name));
        return replaced(std::move(out), "@CLASS@", class_of(name));
    };
    std::vector<std::string> written;
    for (const Template& each : templates()) {
        if (!each.path.starts_with(folder)) continue;
        const std::string path = directory + "/" + filled(each.path.substr(folder.size()));
        TRAINDBG_RETURN_IF_ERROR(write(path, filled(each.text)));
        written.push_back(path);
    }
    return written;
}

}  // namespace traindbg::extend
