#include "traindbg/report/words.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::report {
namespace {

constexpr int kSignalBase = 128;  // a shell adds it to the number of the signal

std::string signal_name(int number) {
    constexpr std::array<std::pair<int, const char*>, 10> kNames = {{
        {SIGHUP, "SIGHUP"},
        {SIGINT, "SIGINT"},
        {SIGQUIT, "SIGQUIT"},
        {SIGILL, "SIGILL"},
        {SIGABRT, "SIGABRT"},
        {SIGBUS, "SIGBUS"},
        {SIGFPE, "SIGFPE"},
        {SIGKILL, "SIGKILL"},
        {SIGSEGV, "SIGSEGV"},
        {SIGTERM, "SIGTERM"},
    }};
    for (const auto& [value, name] : kNames)
        if (value == number) return name;
    return base::format("signal {}", number);
}

std::string joined(const std::vector<std::string>& items) {
    std::string out;
    for (std::size_t i = 0; i < items.size(); ++i) {
        if (i != 0) out += i + 1 == items.size() ? " and " : ", ";
        out += items[i];
    }
    return out;
}

}  // namespace

Headline headline(const model::Verdict& verdict) {
    std::uint64_t errors = 0;
    std::uint64_t warnings = 0;
    std::uint64_t notes = 0;
    std::uint64_t pending = 0;
    for (const model::Finding& finding : verdict.findings) {
        if (finding.times == 0) ++pending;
        else if (finding.severity == model::Severity::kError) ++errors;
        else if (finding.severity == model::Severity::kWarning) ++warnings;
        else ++notes;
    }
    std::uint64_t clean = 0;
    std::uint64_t fired = 0;
    std::uint64_t unchecked = 0;
    for (const model::RuleOutcome& outcome : verdict.outcomes) {
        if (outcome.state == model::CheckState::kClean) ++clean;
        else if (outcome.state == model::CheckState::kFired) ++fired;
        else ++unchecked;
    }
    Headline out;
    if (const std::uint64_t found = errors + warnings + notes; found != 0) {
        out.tone = errors != 0 ? Tone::kError : warnings != 0 ? Tone::kWarning : Tone::kNote;
        std::vector<std::string> parts;
        if (errors != 0) parts.push_back(counted(errors, "error", "errors"));
        if (warnings != 0) parts.push_back(counted(warnings, "warning", "warnings"));
        if (notes != 0) parts.push_back(counted(notes, "note", "notes"));
        out.title = base::format("{}: {}", counted(found, "finding", "findings"), joined(parts));
        if (clean + unchecked != 0)
            out.detail = unchecked == 0
                             ? base::format("{} clean.", counted(clean, "other rule is", "other rules are"))
                             : base::format("{} clean, {} could not be checked.",
                                            counted(clean, "other rule is", "other rules are"), unchecked);
    } else if (clean != 0) {
        out.tone = Tone::kClean;
        out.title = "Clean: no rule found a fault";
        out.detail = unchecked == 0 ? base::format("All {} found nothing.", counted(clean, "rule", "rules"))
                                    : base::format("{} found nothing; {} could not be checked.",
                                                   counted(clean, "rule", "rules"), unchecked);
    } else {
        out.tone = Tone::kUnknown;
        out.title = "Could not judge this training";
        out.detail = verdict.outcomes.empty() ? std::string("No rule was evaluated.")
                                              : base::format("None of {} had the data that it needs.",
                                                             counted(unchecked + fired, "rule", "rules"));
    }
    if (pending != 0)
        out.detail += base::format(
            "{}{} pending: {} not lasted for as long as --hold asks.", out.detail.empty() ? "" : " ",
            counted(pending, "finding is", "findings are"), pending == 1 ? "it has" : "they have");
    return out;
}

std::string end_in_words(const std::optional<model::RunEnd>& end) {
    if (!end) return "has no recorded end: it is still running, or its supervisor was cut off";
    if (end->stopped_by_rule) return base::format("was stopped by a rule (exit code {})", end->exit_code);
    if (end->exit_code == 0) return "ended normally (exit code 0)";
    if (end->exit_code < 0) return "ended; its exit code is not known";
    if (end->exit_code > kSignalBase && end->exit_code <= kSignalBase + 64)
        return base::format("was killed by {} (exit code {})", signal_name(end->exit_code - kSignalBase),
                            end->exit_code);
    return base::format("failed (exit code {})", end->exit_code);
}

std::string_view confidence_in_words(double confidence) {
    // By the percentage that is shown beside the word: 89.6 % reads as 90 %, which is very likely.
    const double percent = std::round(confidence * 100);
    if (percent >= 90) return "very likely";
    if (percent >= 70) return "likely";
    if (percent >= 45) return "plausible";
    return "possible";
}

std::string_view lead_of_cause(std::span<const model::Cause> causes, std::size_t index) {
    if (index != 0) return "or";
    return model::is_sure(causes[index]) ? "likely cause" : "not sure, perhaps";
}

std::string source_in_words(const model::SourceLine& source) {
    std::string out = base::format("{}:{}", source.file, source.line);
    const std::string_view what = source.what;
    const std::size_t slash = what.find('/');
    const std::string_view of = slash == std::string_view::npos ? std::string_view() : what.substr(slash + 1);
    const auto happens = [&](std::string_view text) { out += base::format(", where {}", text); };
    if (what == "optimizer") happens("the optimizer is made");
    else if (what == "step") happens("the optimizer steps");
    else if (what == "backward") happens("backward is called");
    else if (what == "model") out += ", the model's class";
    else if (what == "loader") happens("the training's loader is made");
    else if (what == "loop") happens("the training goes through its data");
    else if (what == "rounds") out += ", the loop that was left";
    else if (what == "evaluation_loader") happens("the evaluation's loader is made");
    else if (what == "evaluation_loop") happens("the evaluation goes through its data");
    else if (what == "clip") happens("gradients are clipped");
    else if (what == "schedule") happens("the schedule is made");
    else if (what == "schedule_step") happens("the schedule steps");
    else if (what == "eval") happens("eval() is called");
    else if (what == "weights_taken") happens("the weights are taken");
    else if (what == "number_read") happens("the number is read");
    else if (what.starts_with("loss/")) happens(base::format("{} is computed", of));
    else if (what.starts_with("evaluation/")) happens(base::format("{} is computed in evaluation", of));
    else if (what.starts_with("module/")) happens(base::format("{} is made", of));
    return out;
}

std::string evidence_in_words(const model::CauseEvidence& evidence) {
    if (!evidence.step) return evidence.text;
    // What a rule says of itself needs its name in front; what is said about it has it in the text.
    if (evidence.text.starts_with(evidence.rule + " ")) return evidence.text;
    return base::format("{}, step {}: {}", evidence.rule, *evidence.step, evidence.text);
}

std::string title_of_rule(std::string_view rule) {
    std::string out(rule);
    std::replace(out.begin(), out.end(), '_', ' ');
    if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') out[0] = static_cast<char>(out[0] - 'a' + 'A');
    return out;
}

std::string steps_in_words(const model::Finding& finding) {
    const model::StepIndex first = finding.first_step == model::kThisStep ? finding.step : finding.first_step;
    const char* one = finding.mode == model::Mode::kEval ? "evaluation" : "step";
    if (finding.last_step <= first) return base::format("{} {}", one, first);
    return base::format("{}s {} to {}", one, first, finding.last_step);
}

std::string counted(std::uint64_t count, std::string_view singular, std::string_view plural) {
    return base::format("{} {}", count, count == 1 ? singular : plural);
}

std::string grouped(std::uint64_t number) {
    std::string digits = base::format("{}", number);
    for (std::size_t i = digits.size(); i > 3;) digits.insert(i -= 3, 1, ',');
    return digits;
}

std::string number_in_words(double value) {
    constexpr double kMostInFull = 1e7;
    const double size = std::abs(value);
    if (size >= kMostInFull || size < 1e4 || !std::isfinite(value)) return base::human_number(value);
    return (value < 0 ? "-" : "") + grouped(static_cast<std::uint64_t>(std::llround(size)));
}

std::string reference_in_words(const model::Evidence& evidence) {
    if (evidence.relation.empty()) return {};
    return base::format("{} {}", base::printable(evidence.relation), number_in_words(evidence.reference));
}

std::vector<std::string_view> lines_of(std::string_view text) {
    std::vector<std::string_view> lines;
    while (true) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        lines.push_back(line);
        if (end == std::string_view::npos) break;
        text.remove_prefix(end + 1);
    }
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
}

}  // namespace traindbg::report
