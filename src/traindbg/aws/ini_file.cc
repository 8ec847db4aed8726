#include "traindbg/aws/ini_file.h"

#include "traindbg/base/format.h"

namespace traindbg::aws {
namespace {

using base::Code;
using base::Result;
using base::Status;

constexpr std::size_t kMostBytes = std::size_t{1} << 20;

bool is_blank(char letter) noexcept { return letter == ' ' || letter == '\t' || letter == '\r'; }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& letter : out)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return out;
}

}  // namespace

Result<IniFile> parse_ini(std::string_view text, const std::string& name) {
    const auto wrong = [&name](std::size_t line, const char* what) {
        return Status(Code::kInvalidArgument, base::format("{}: line {} {}", name, line, what));
    };
    if (text.size() > kMostBytes) return Status(Code::kInvalidArgument, name + ": is larger than 1 MiB");
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
    IniFile file;
    IniSection* section = nullptr;
    std::string parent;  // the key that indented lines belong to; empty: none
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (line.find('\0') != std::string_view::npos) return wrong(number, "holds a NUL");
        const std::string_view content = trimmed(line);
        if (content.empty() || content.front() == '#' || content.front() == ';') continue;
        const bool is_indented = is_blank(line.front());
        if (!is_indented && content.front() == '[') {
            const std::size_t close = content.find(']');
            if (close == std::string_view::npos) return wrong(number, "is a section without a ']'");
            std::string_view title = trimmed(content.substr(1, close - 1));
            std::string key;  // blanks between two words are one
            for (const char letter : title)
                if (!is_blank(letter)) key += letter;
                else if (!key.empty() && key.back() != ' ') key += ' ';
            section = &file[key];
            parent.clear();
            continue;
        }
        if (section == nullptr) return wrong(number, "stands before the first [section]");
        const std::size_t equals = content.find('=');
        if (equals == std::string_view::npos) {
            if (is_indented) continue;  // a value that goes on: none of those that count do
            return wrong(number, "has no '='");
        }
        const std::string key = lower(trimmed(content.substr(0, equals)));
        const std::string_view value = trimmed(content.substr(equals + 1));
        if (key.empty()) return wrong(number, "has no key");
        if (is_indented && !parent.empty()) {
            (*section)[parent + "." + key] = value;
            continue;
        }
        (*section)[key] = value;
        parent = value.empty() ? key : std::string();
    }
    return file;
}

std::string value_of(const IniSection& section, const std::string& key) {
    const auto it = section.find(key);
    return it == section.end() ? std::string() : it->second;
}

}  // namespace traindbg::aws
