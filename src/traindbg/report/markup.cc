#include "traindbg/report/markup.h"

#include <vector>

#include "traindbg/base/text.h"
#include "traindbg/report/words.h"

namespace traindbg::report {
namespace {

bool is_path_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// "optimizer = SGD(...)", "clip_grad_norm_(...)", or whatever is indented.
bool is_code(std::string_view line) {
    if (line.starts_with("  ")) return true;
    std::size_t end = 0;
    while (end < line.size() && is_path_character(line[end])) ++end;
    if (end == 0 || end == line.size()) return false;
    const std::string_view rest = line.substr(end);
    if (rest.starts_with(" = ") || rest.starts_with("=")) return true;
    return rest.front() == '(' && (rest.back() == ')' || rest.back() == ',' || rest.back() == ':');
}

}  // namespace

Markup& Markup::text(std::string_view text) {
    for (const char c : base::printable(text)) {
        switch (c) {
            case '&': out_ += "&amp;"; break;
            case '<': out_ += "&lt;"; break;
            case '>': out_ += "&gt;"; break;
            case '"': out_ += "&quot;"; break;
            case '\'': out_ += "&#39;"; break;
            default: out_ += c;
        }
    }
    return *this;
}

Markup& Markup::element(std::string_view name, std::string_view content, std::string_view classes) {
    raw("<").raw(name);
    if (!classes.empty()) raw(" class=\"").raw(classes).raw("\"");
    return raw(">").text(content).raw("</").raw(name).raw(">");
}

Markup& Markup::rich(std::string_view content) {
    while (!content.empty()) {
        const std::size_t open = content.find('`');
        const std::size_t close = open == std::string_view::npos ? open : content.find('`', open + 1);
        if (close == std::string_view::npos) return text(content);
        text(content.substr(0, open)).element("code", content.substr(open + 1, close - open - 1));
        content.remove_prefix(close + 1);
    }
    return *this;
}

Markup& Markup::paragraphs(std::string_view content, std::string_view classes) {
    bool in_code = false;
    for (const std::string_view line : lines_of(content)) {
        const bool code = is_code(line);
        if (in_code && !code) raw("</code></pre>");
        if (code) {
            raw(in_code ? "\n" : "<pre><code>").text(line.starts_with("  ") ? line.substr(2) : line);
        } else if (!line.empty()) {
            raw("<p");
            if (!classes.empty()) raw(" class=\"").raw(classes).raw("\"");
            raw(">").rich(line).raw("</p>");
        }
        in_code = code;
    }
    if (in_code) raw("</code></pre>");
    return *this;
}

Markup& Markup::name(std::string_view content) {
    return raw("<span class=\"name\" title=\"").text(content).raw("\">").text(content).raw("</span>");
}

}  // namespace traindbg::report
