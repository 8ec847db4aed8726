// Findings and verdicts as lines for a terminal: at most 100 columns, aligned, without control
// characters of the training's.

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/rule_instance.h"
#include "traindbg/report/report.h"
#include "traindbg/report/words.h"

namespace traindbg::report {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kLeastColumns = 40;
constexpr std::size_t kIndent = 9;  // below the message: as wide as "warning  "

enum class Ink { kPlain, kBold, kDim, kRed, kYellow, kGreen, kBlue };

std::string_view escape_of(Ink ink) {
    switch (ink) {
        case Ink::kBold: return "\x1b[1m";
        case Ink::kDim: return "\x1b[2m";
        case Ink::kRed: return "\x1b[1;31m";
        case Ink::kYellow: return "\x1b[1;33m";
        case Ink::kGreen: return "\x1b[1;32m";
        case Ink::kBlue: return "\x1b[1;34m";
        case Ink::kPlain: break;
    }
    return "";
}

Ink ink_of(model::Severity severity) {
    if (severity == model::Severity::kError) return Ink::kRed;
    return severity == model::Severity::kWarning ? Ink::kYellow : Ink::kBlue;
}

// Characters, not bytes: continuation bytes of UTF-8 take no column.
std::size_t width_of(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(
        text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

// The bytes of the first `columns` characters.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
    std::size_t i = 0;
    for (; i < text.size(); ++i)
        if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && columns-- == 0) break;
    return i;
}

class Lines {
  public:
    Lines(bool colour, std::size_t columns)
        : colour_(colour), columns_(std::clamp(columns, kLeastColumns, kColumns)) {}

    Lines& put(std::string_view text, Ink ink = Ink::kPlain) {
        const bool inked = colour_ && ink != Ink::kPlain;
        if (inked) out_ += escape_of(ink);
        out_ += text;
        if (inked) out_ += "\x1b[0m";
        return *this;
    }
    Lines& pad(std::string_view text, std::size_t width, Ink ink = Ink::kPlain) {
        put(text, ink);
        const std::size_t used = width_of(text);
        out_.append(used < width ? width - used : 0, ' ');
        return *this;
    }
    Lines& end() {
        while (!out_.empty() && out_.back() == ' ') out_.pop_back();
        out_ += '\n';
        return *this;
    }
    // A text of the training's or of a rule's: made printable, broken at spaces; the first line begins
    // behind `lead`, the others under it. Lines that begin with a space are code and keep their spaces.
    void wrapped(std::string_view lead, std::string_view text, std::size_t indent, Ink ink = Ink::kPlain) {
        std::string before = std::string(indent, ' ') + std::string(lead);
        const std::size_t column = width_of(before);
        for (const std::string_view raw : lines_of(text)) {
            const std::string clean = base::printable(raw);
            std::string_view rest = clean;
            do {
                const std::size_t room = columns_ - std::min(column, columns_ / 2);
                std::size_t cut = rest.size();
                if (width_of(rest) > room) {
                    cut = bytes_of(rest, room);
                    std::size_t space = rest.rfind(' ', cut);
                    // A per cent stays with its number.
                    if (space != std::string_view::npos && space > 0 && rest.substr(space + 1, 1) == "%")
                        space = rest.rfind(' ', space - 1);
                    if (space != std::string_view::npos && space > cut / 3) cut = space;
                }
                put(before).put(rest.substr(0, cut), ink).end();
                before.assign(column, ' ');
                rest.remove_prefix(cut);
                while (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
            } while (!rest.empty());
        }
    }
    [[nodiscard]] std::string take() { return std::move(out_); }

  private:
    bool colour_;
    std::size_t columns_;
    std::string out_;
};

// Where a finding is, as short as it can be said.
std::string place_of(const model::Finding& finding) {
    std::string place = base::printable(!finding.layer.empty() ? finding.layer : finding.tensor);
    // Layers of a Sequential have numbers for names.
    if (!place.empty() && place.find_first_not_of("0123456789.") == std::string::npos)
        place.insert(0, "layer ");
    if (finding.places > 1) place += base::format("{}{} tensors", place.empty() ? "" : ", ", finding.places);
    if (finding.worker != 0) place += base::format("{}worker {}", place.empty() ? "" : ", ", finding.worker);
    return place;
}

void print_heading(Lines& lines, const model::Finding& finding) {
    const bool is_pending = finding.state == model::FindingState::kPending;
    if (is_pending && finding.times == 0) lines.pad(to_string(finding.state), kIndent, Ink::kDim);
    else lines.pad(to_string(finding.severity), kIndent, ink_of(finding.severity));
    lines.put(base::printable(finding.rule), Ink::kBold).put(", ").put(steps_in_words(finding));
    const std::string place = place_of(finding);
    if (!place.empty()) lines.put(" in ").put(place);
    if (finding.times > 1) lines.put(base::format(", {} times", finding.times));
    if (finding.state == model::FindingState::kResolved) lines.put(" (over)", Ink::kDim);
    if (is_pending && finding.times > 0) lines.put(" (pending again)", Ink::kDim);
    lines.end();
}

Ink ink_of(Tone tone) {
    switch (tone) {
        case Tone::kError: return Ink::kRed;
        case Tone::kWarning: return Ink::kYellow;
        case Tone::kNote: return Ink::kBlue;
        case Tone::kClean: return Ink::kGreen;
        case Tone::kUnknown: break;
    }
    return Ink::kBold;
}

// Each on a line of its own that begins with file and line, so that terminals make links of them.
void print_sources(Lines& lines, const std::vector<model::SourceLine>& sources, std::size_t indent) {
    std::string_view lead = "code: ";
    for (const model::SourceLine& source : sources) {
        lines.wrapped(lead, source_in_words(source), indent);
        lead = "      ";
    }
}

void print_finding(Lines& lines, const model::Finding& finding) {
    print_heading(lines, finding);
    lines.wrapped("", finding.message, kIndent);
    std::size_t name_width = 0;
    std::size_t value_width = 0;
    for (const model::Evidence& item : finding.evidence) {
        name_width = std::max(name_width, width_of(base::printable(item.name)));
        value_width = std::max(value_width, width_of(number_in_words(item.value)));
    }
    name_width = std::min(name_width, kColumns / 2);
    for (const model::Evidence& item : finding.evidence) {
        const std::string value = number_in_words(item.value);
        lines.put(std::string(kIndent, ' ')).pad(base::printable(item.name), name_width + 2, Ink::kDim);
        lines.put(std::string(value_width - std::min(value_width, width_of(value)), ' ')).put(value);
        const std::string reference = reference_in_words(item);
        if (!reference.empty()) lines.put("   ").put(reference, Ink::kDim);
        lines.end();
    }
    if (!finding.fix.empty()) lines.wrapped("fix: ", finding.fix, kIndent);
    print_sources(lines, finding.sources, kIndent);
}

void print_cause_evidence(Lines& lines, const model::Cause& cause) {
    for (const auto& [lead, evidence] :
         {std::pair("for:     ", &cause.evidence_for), std::pair("against: ", &cause.evidence_against)}) {
        std::string_view before = lead;
        for (const model::CauseEvidence& item : *evidence) {
            lines.wrapped(before, evidence_in_words(item), 2);
            before = "         ";
        }
    }
}

// The headline and the likely causes; `explained`: with what speaks for and against each.
void print_summary(Lines& lines, const model::Verdict& verdict, bool explained) {
    const Headline summary = headline(verdict);
    lines.put(summary.title, ink_of(summary.tone)).end();
    if (!summary.detail.empty()) lines.wrapped("", summary.detail, 0);

    for (std::size_t i = 0; i < verdict.causes.size(); ++i) {
        const model::Cause& cause = verdict.causes[i];
        lines.end();
        lines.put(lead_of_cause(verdict.causes, i)).put(": ").put(base::printable(cause.title), Ink::kBold);
        lines
            .put(base::format(" ({}, {:.0f} %)", confidence_in_words(cause.confidence),
                              100 * cause.confidence))
            .end();
        lines.wrapped("", cause.explanation, 2);
        if (!cause.fix.empty()) lines.wrapped("fix: ", cause.fix, 2);
        print_sources(lines, cause.sources, 2);
        if (explained) print_cause_evidence(lines, cause);
    }
}

// So many are told with their reasons; of more, the names, unless `all`.
constexpr std::size_t kMostReasons = 3;

void print_unchecked(Lines& lines, const model::Verdict& verdict, bool all) {
    std::vector<const model::RuleOutcome*> unchecked;
    std::size_t widest = 0;
    for (const model::RuleOutcome& outcome : verdict.outcomes) {
        if (outcome.state != model::CheckState::kNotChecked) continue;
        unchecked.push_back(&outcome);
        widest = std::max(widest, width_of(base::printable(outcome.rule)));
    }
    if (unchecked.empty()) return;
    lines.end().put("not checked", Ink::kDim);
    if (!all && unchecked.size() > kMostReasons) {
        lines.put(" for want of what they judge; traindbg check RUN --explain says why", Ink::kDim).end();
        std::string names;
        for (const model::RuleOutcome* outcome : unchecked)
            names += (names.empty() ? "" : ", ") + base::printable(outcome->rule);
        lines.wrapped("", names, 2);
        return;
    }
    lines.end();
    for (const model::RuleOutcome* outcome : unchecked) {
        std::string lead = base::printable(outcome->rule);
        lead.append(std::min(widest, kColumns / 2) + 2 - std::min(widest, width_of(lead)), ' ');
        lines.wrapped(lead, outcome->reason.empty() ? "no data" : outcome->reason, 2);
    }
}

}  // namespace

std::string terminal_finding(const model::Finding& finding, bool colour, std::size_t columns) {
    Lines lines(colour, columns);
    print_finding(lines, finding);
    return lines.take();
}

std::string terminal_verdict(const model::Verdict& verdict, bool colour, std::size_t columns) {
    Lines lines(colour, columns);
    print_summary(lines, verdict, false);
    if (!verdict.findings.empty()) lines.end();
    for (const model::Finding& finding : verdict.findings) {
        print_heading(lines, finding);
        if (finding.times > 0) lines.wrapped("", finding.message, kIndent);
    }
    print_unchecked(lines, verdict, false);
    return lines.take();
}

std::string terminal_explained(const model::Verdict& verdict, std::span<const model::RuleInfo* const> rules,
                               bool colour, std::size_t columns) {
    Lines lines(colour, columns);
    print_summary(lines, verdict, true);
    for (const model::Finding& finding : verdict.findings) {
        lines.end();
        print_finding(lines, finding);
        const auto info = std::find_if(rules.begin(), rules.end(), [&](const model::RuleInfo* known) {
            return known->name == model::rule_of(finding.rule);
        });
        if (info == rules.end()) continue;
        lines.wrapped("why it matters: ", (*info)->why, kIndent);
        if (!(*info)->healthy.empty()) lines.wrapped("no fault, though alike: ", (*info)->healthy, kIndent);
    }
    print_unchecked(lines, verdict, true);
    return lines.take();
}

}  // namespace traindbg::report
