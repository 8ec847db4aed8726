#include "traindbg/capture/near_names.h"

#include <algorithm>
#include <optional>

#include "traindbg/base/text.h"

namespace traindbg::capture {
namespace {

constexpr std::size_t kMostNear = 3;
constexpr std::size_t kMostNames = 20'000;  // that are compared: each takes some microseconds
constexpr auto kNowhere = std::string_view::npos;

// Where the group or class that begins at `at` ends: behind its last sign.
std::size_t end_of(std::string_view pattern, std::size_t at) {
    std::size_t depth = 0;
    const bool is_class = pattern[at] == '[';
    for (; at < pattern.size(); ++at) {
        if (pattern[at] == '\\') ++at;
        else if (is_class && pattern[at] == ']') return at + 1;
        else if (!is_class && pattern[at] == '(') ++depth;
        else if (!is_class && pattern[at] == ')' && --depth == 0) return at + 1;
    }
    return pattern.size();
}

bool is_class_letter(char c) { return std::string_view("dDsSwWbB").find(c) != kNowhere; }

}  // namespace

std::string plain_part(std::string_view pattern) {
    std::string out;
    for (std::size_t at = 0; at < pattern.size();) {
        const char c = pattern[at];
        if (c == '|') return out;  // the first of several
        if (c == '(' || c == '[') {
            const std::size_t end = end_of(pattern, at);
            const std::string_view inside = pattern.substr(at + 1, end - at > 2 ? end - at - 2 : 0);
            if (c == '(' && inside.find('|') == kNowhere && !inside.starts_with('?'))
                out += plain_part(inside);
            at = end;
        } else if (c == '{') {
            const std::size_t end = pattern.find('}', at);
            at = end == kNowhere ? pattern.size() : end + 1;
        } else if (c == '\\' && at + 1 < pattern.size()) {
            if (!is_class_letter(pattern[at + 1])) out += pattern[at + 1];
            at += 2;
        } else {
            if (std::string_view("^$.*+?)]}\\").find(c) == kNowhere) out += c;
            ++at;
        }
    }
    return out;
}

std::vector<std::string> names_near(const std::vector<std::string>& patterns,
                                    std::span<const std::string> names) {
    names = names.first(std::min(names.size(), kMostNames));
    std::vector<std::string> paths;  // what comes behind the role
    for (const std::string& name : names) paths.push_back(name.substr(name.find('/') + 1));
    std::vector<std::string> out;
    for (const std::string& pattern : patterns) {
        if (out.size() >= kMostNear) break;
        std::string word = plain_part(pattern);
        word.erase(0, word.find_first_not_of('/'));
        if (word.empty()) continue;
        const bool has_role = word.find('/') != kNowhere;
        const std::optional<std::string> near =
            base::nearest_match(word, has_role ? names : std::span<const std::string>(paths));
        if (!near) continue;
        const auto found =
            has_role ? std::find(names.begin(), names.end(), *near)
                     : names.begin() + (std::find(paths.begin(), paths.end(), *near) - paths.begin());
        if (std::find(out.begin(), out.end(), *found) == out.end()) out.push_back(*found);
    }
    return out;
}

}  // namespace traindbg::capture
