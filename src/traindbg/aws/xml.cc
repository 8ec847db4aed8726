#include "traindbg/aws/xml.h"

#include <cstdint>
#include <vector>

namespace traindbg::aws {
namespace {

using base::Code;
using base::Status;

constexpr std::size_t kMostDepth = 16;

Status malformed(const char* what) {
    return {Code::kDataLoss, std::string("the server's answer is not whole XML: ") + what};
}

bool is_xml_blank(char letter) noexcept {
    return letter == ' ' || letter == '\t' || letter == '\r' || letter == '\n';
}

void append_utf8(std::string& out, std::uint32_t point) {
    const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (point < 0x80) {
        put(point);
    } else if (point < 0x800) {
        put(0xC0 | point >> 6);
        put(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        put(0xE0 | point >> 12);
        put(0x80 | (point >> 6 & 0x3F));
        put(0x80 | (point & 0x3F));
    } else {
        put(0xF0 | point >> 18);
        put(0x80 | (point >> 12 & 0x3F));
        put(0x80 | (point >> 6 & 0x3F));
        put(0x80 | (point & 0x3F));
    }
}

// `name` is what stands between "&" and ";".
bool append_entity(std::string& out, std::string_view name) {
    if (name == "amp") out += '&';
    else if (name == "lt") out += '<';
    else if (name == "gt") out += '>';
    else if (name == "quot") out += '"';
    else if (name == "apos") out += '\'';
    else if (name.size() > 1 && name[0] == '#') {
        const bool is_hex = name[1] == 'x';
        std::uint32_t point = 0;
        const std::string_view digits = name.substr(is_hex ? 2 : 1);
        if (digits.empty() || digits.size() > 7) return false;
        for (const char digit : digits) {
            std::uint32_t value = 99;
            if (digit >= '0' && digit <= '9') value = static_cast<std::uint32_t>(digit - '0');
            else if (is_hex && digit >= 'a' && digit <= 'f')
                value = static_cast<std::uint32_t>(digit - 'a' + 10);
            else if (is_hex && digit >= 'A' && digit <= 'F')
                value = static_cast<std::uint32_t>(digit - 'A' + 10);
            if (value == 99) return false;
            point = point * (is_hex ? 16 : 10) + value;
        }
        if (point == 0 || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) return false;
        append_utf8(out, point);
    } else {
        return false;
    }
    return true;
}

bool append_text(std::string& out, std::string_view text) {
    while (!text.empty()) {
        const std::size_t amp = text.find('&');
        out += text.substr(0, amp);
        if (amp == std::string_view::npos) return true;
        const std::size_t end = text.find(';', amp);
        if (end == std::string_view::npos) return false;
        if (!append_entity(out, text.substr(amp + 1, end - amp - 1))) return false;
        text.remove_prefix(end + 1);
    }
    return true;
}

// Where the tag that begins at `begin` ends: the ">" that is in no quotes.
std::size_t end_of_tag(std::string_view document, std::size_t begin) {
    char quote = 0;
    for (std::size_t i = begin; i < document.size(); ++i) {
        const char letter = document[i];
        if (quote != 0) {
            if (letter == quote) quote = 0;
        } else if (letter == '"' || letter == '\'') {
            quote = letter;
        } else if (letter == '>') {
            return i;
        }
    }
    return std::string_view::npos;
}

}  // namespace

Status scan_xml(std::string_view document, const std::function<void(const XmlEvent&)>& visit) {
    std::string path;
    struct Open {
        std::size_t path_bytes;  // of the path above it
        std::string text;
    };
    std::vector<Open> open;
    std::size_t at = 0;
    bool has_root = false;
    if (document.starts_with("\xEF\xBB\xBF")) at = 3;
    while (at < document.size()) {
        const std::size_t tag = document.find('<', at);
        const std::string_view between = document.substr(at, tag == std::string_view::npos ? tag : tag - at);
        if (!open.empty()) {
            if (!append_text(open.back().text, between)) return malformed("an unknown entity");
        } else {
            for (const char letter : between)
                if (!is_xml_blank(letter)) return malformed("text outside of it");
        }
        if (tag == std::string_view::npos) break;
        if (document.substr(tag).starts_with("<!--")) {
            const std::size_t end = document.find("-->", tag + 4);
            if (end == std::string_view::npos) return malformed("a comment without an end");
            at = end + 3;
            continue;
        }
        const std::size_t close = end_of_tag(document, tag + 1);
        if (close == std::string_view::npos) return malformed("it is cut off inside a tag");
        std::string_view inside = document.substr(tag + 1, close - tag - 1);
        at = close + 1;
        if (inside.starts_with('?')) {
            if (!inside.starts_with("?xml") || has_root) return malformed("an instruction");
            continue;
        }
        if (inside.starts_with('!')) return malformed("a document type or CDATA");
        if (inside.starts_with('/')) {
            inside.remove_prefix(1);
            while (!inside.empty() && is_xml_blank(inside.back())) inside.remove_suffix(1);
            if (open.empty()) return malformed("an end without a beginning");
            const std::size_t above = open.back().path_bytes;
            const std::string_view name = std::string_view(path).substr(above == 0 ? 0 : above + 1);
            if (name != inside) return malformed("an end of another name than the beginning");
            visit({path, false, open.back().text});
            path.resize(above);
            open.pop_back();
            continue;
        }
        const bool is_empty = inside.ends_with('/');
        if (is_empty) inside.remove_suffix(1);
        std::size_t name_bytes = 0;
        while (name_bytes < inside.size() && !is_xml_blank(inside[name_bytes])) ++name_bytes;
        const std::string_view name = inside.substr(0, name_bytes);
        if (name.empty() || name.find_first_of("/<&\"'") != std::string_view::npos)
            return malformed("a tag without a name");
        if (open.empty() && has_root) return malformed("two roots");
        if (open.size() == kMostDepth) return malformed("elements nested too deep");
        has_root = true;
        const std::size_t above = path.size();
        if (above != 0) path += '/';
        path += name;
        visit({path, true, {}});
        if (is_empty) {
            visit({path, false, {}});
            path.resize(above);
        } else {
            open.push_back({above, {}});
        }
    }
    if (!open.empty()) return malformed("it is cut off");
    if (!has_root) return malformed("it is empty");
    return Status::ok();
}

std::string xml_escape(std::string_view text) {
    std::string escaped;
    for (const char letter : text) {
        switch (letter) {
            case '&': escaped += "&amp;"; break;
            case '<': escaped += "&lt;"; break;
            case '>': escaped += "&gt;"; break;
            case '"': escaped += "&quot;"; break;
            default: escaped += letter;
        }
    }
    return escaped;
}

}  // namespace traindbg::aws
