// The verdict as JUnit XML: what continuous integration shows as tests.

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/report/markup.h"
#include "traindbg/report/report.h"
#include "traindbg/report/words.h"

namespace traindbg::report {
namespace {

// Text in XML: `Markup` leaves two characters that XML 1.0 forbids.
std::string xml_of(std::string_view text) {
    std::string out;
    for (const std::string_view line : lines_of(text)) {
        Markup markup;
        markup.text(line);
        if (!out.empty()) out += '\n';
        out += markup.str();
    }
    for (const std::string_view forbidden :
         {std::string_view("\xEF\xBF\xBE"), std::string_view("\xEF\xBF\xBF")})
        for (std::size_t at = out.find(forbidden); at != std::string::npos; at = out.find(forbidden, at))
            out.replace(at, forbidden.size(), "\xEF\xBF\xBD");
    return out;
}

std::string in_words(const model::Finding& finding) {
    const bool is_pending = finding.times == 0;
    std::string text =
        base::format("{} ({}), {}", finding.rule,
                     is_pending ? model::to_string(finding.state) : model::to_string(finding.severity),
                     steps_in_words(finding));
    if (!finding.layer.empty()) text += " in " + finding.layer;
    text += "\n" + finding.message;
    for (const model::Evidence& item : finding.evidence) {
        const std::string reference = reference_in_words(item);
        text += base::format("\n  {}: {}{}", item.name, number_in_words(item.value),
                             reference.empty() ? "" : " (" + reference + ")");
    }
    if (!finding.fix.empty()) text += "\nfix: " + finding.fix;
    for (const model::SourceLine& source : finding.sources) text += "\ncode: " + source_in_words(source);
    return text;
}

struct Case {
    std::string xml;
    bool failed = false;
    bool skipped = false;
};

Case case_of(const model::RuleOutcome& outcome, const model::Verdict& verdict,
             std::optional<model::Severity> fail_on) {
    Case made;
    std::string message;
    std::string failures;
    std::string notes;
    model::Severity worst = model::Severity::kInfo;
    for (const model::Finding& finding : verdict.findings) {
        if (finding.rule != outcome.rule) continue;
        if (!fail_on || finding.severity < *fail_on || finding.times == 0) {
            notes += in_words(finding) + "\n";
            continue;
        }
        made.failed = true;
        worst = std::max(worst, finding.severity);
        if (message.empty()) message = finding.message;
        failures += in_words(finding) + "\n";
    }
    made.skipped = outcome.state == model::CheckState::kNotChecked && !made.failed && notes.empty();
    made.xml = base::format("    <testcase classname=\"traindbg\" name=\"{}\">\n", xml_of(outcome.rule));
    if (made.failed)
        made.xml += base::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                                 model::to_string(worst), xml_of(message), xml_of(failures));
    if (made.skipped)
        made.xml += base::format("      <skipped message=\"{}\"/>\n",
                                 xml_of(outcome.reason.empty() ? "no data" : outcome.reason));
    if (!notes.empty()) made.xml += base::format("      <system-out>{}</system-out>\n", xml_of(notes));
    made.xml += "    </testcase>\n";
    return made;
}

}  // namespace

std::string junit_xml(const model::RunMeta& run, const model::Verdict& verdict,
                      std::optional<model::Severity> fail_on) {
    std::string cases;
    std::size_t failed = 0;
    std::size_t skipped = 0;
    for (const model::RuleOutcome& outcome : verdict.outcomes) {
        const Case made = case_of(outcome, verdict, fail_on);
        failed += made.failed ? 1 : 0;
        skipped += made.skipped ? 1 : 0;
        cases += made.xml;
    }
    std::string causes;
    for (std::size_t i = 0; i < verdict.causes.size(); ++i) {
        const model::Cause& cause = verdict.causes[i];
        causes += base::format("{}: {} ({:.0f} %)\n{}\nfix: {}\n", lead_of_cause(verdict.causes, i),
                               cause.title, 100 * cause.confidence, cause.explanation, cause.fix);
        for (const model::SourceLine& source : cause.sources)
            causes += "code: " + source_in_words(source) + "\n";
        for (const model::CauseEvidence& item : cause.evidence_for)
            causes += "for: " + evidence_in_words(item) + "\n";
        for (const model::CauseEvidence& item : cause.evidence_against)
            causes += "against: " + evidence_in_words(item) + "\n";
    }
    const std::string counts = base::format("tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
                                            verdict.outcomes.size(), failed, skipped);
    std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    xml += base::format("<testsuites name=\"traindbg\" {}>\n", counts);
    xml += base::format("  <testsuite name=\"{}\" {}>\n{}", xml_of(run.run_id), counts, cases);
    if (!causes.empty()) xml += base::format("    <system-out>{}</system-out>\n", xml_of(causes));
    xml += "  </testsuite>\n</testsuites>\n";
    return xml;
}

}  // namespace traindbg::report
