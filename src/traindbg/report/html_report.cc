// Assembles the page: collects, renders the sections, and fills the template.

#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/report/assets.h"
#include "traindbg/report/chart_json.h"
#include "traindbg/report/markup.h"
#include "traindbg/report/page_sections.h"
#include "traindbg/report/report.h"
#include "traindbg/report/report_data.h"
#include "traindbg/report/words.h"

namespace traindbg::report {
namespace {

unsigned hex_digit(char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); }

// A security policy wants hashes in base 64.
std::string base64_of_hex(std::string_view hex) {
    constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    unsigned bits = 0;
    unsigned count = 0;
    for (const char c : hex) {
        bits = (bits << 4) | hex_digit(c);
        count += 4;
        if (count < 6) continue;
        count -= 6;
        out += kDigits[(bits >> count) & 63];
    }
    if (count != 0) out += kDigits[(bits << (6 - count)) & 63];
    while (out.size() % 4 != 0) out += '=';
    return out;
}

// Nothing may be loaded, sent, framed or made of text; only our own style and script may run.
std::string policy() {
    return base::format(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; base-uri 'none'; form-action "
        "'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'",
        base64_of_hex(page_style().sha256), base64_of_hex(page_script().sha256));
}

// Fills {{name}} in one pass over the template, so that what is put in is not looked at again.
std::string fill(std::string_view page, const std::function<std::string(std::string_view)>& value_of) {
    std::string out;
    while (true) {
        const std::size_t open = page.find("{{");
        out += page.substr(0, open);
        if (open == std::string_view::npos) return out;
        const std::size_t close = page.find("}}", open);
        out += value_of(page.substr(open + 2, close - open - 2));
        page.remove_prefix(close + 2);
    }
}

std::string title_of(const ReportData& data) {
    Markup title;
    title.text(headline(data.verdict).title).raw(" – ").text(data.meta.run_id).raw(" – traindbg");
    return title.str();
}

}  // namespace

base::Result<std::string> html_report(read::Run& run, const model::Verdict& verdict,
                                      const HtmlOptions& options) {
    TRAINDBG_ASSIGN_OR_RETURN(const ReportData data, collect(run, verdict, options.most_points));
    using Section = std::string (*)(const ReportData&);
    constexpr std::array<std::pair<std::string_view, Section>, 13> kParts = {{
        {"title", &title_of},
        {"banner", &banner_section},
        {"contents", &contents_section},
        {"causes", &causes_section},
        {"findings", &findings_section},
        {"curves", &curves_section},
        {"classes", &classes_section},
        {"heat", &heat_section},
        {"layers", &layers_section},
        {"rules", &rules_section},
        {"run", &run_section},
        {"footer", &footer_section},
        {"data", &chart_json},
    }};
    return fill(page_template().text, [&data, &kParts](std::string_view name) -> std::string {
        if (name == "policy") return policy();
        if (name == "version") return std::string(base::version());
        if (name == "style") return std::string(page_style().text);
        if (name == "script") return std::string(page_script().text);
        for (const auto& [part, section] : kParts)
            if (part == name) return section(data);
        return {};
    });
}

}  // namespace traindbg::report
