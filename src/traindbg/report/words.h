// Sentences and numbers that the page and the terminal share, so that both say the same.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"

namespace traindbg::report {

// The worst that a verdict says. In this order.
enum class Tone : std::uint8_t { kUnknown, kClean, kNote, kWarning, kError };

struct Headline {
    Tone tone = Tone::kUnknown;
    std::string title;   // "2 findings: 1 error, 1 warning"
    std::string detail;  // "9 rules were clean, 1 could not be checked."
};

[[nodiscard]] Headline headline(const model::Verdict& verdict);

// "ended normally (exit code 0)", "was stopped by a rule (exit code 90)", "was killed by SIGKILL (exit code
// 137)".
[[nodiscard]] std::string end_in_words(const std::optional<model::RunEnd>& end);
// "very likely", "likely", "plausible", "possible".
[[nodiscard]] std::string_view confidence_in_words(double confidence);
// In front of the cause of that place: "likely cause", "not sure, perhaps", "or".
[[nodiscard]] std::string_view lead_of_cause(std::span<const model::Cause> causes, std::size_t index);
// "train.py:24, where the optimizer is made"; with the function it stands in, where that is known.
[[nodiscard]] std::string source_in_words(const model::SourceLine& source);
// "exploding_gradient, step 12: Gradients grow ..."; of a fact about the training, its text alone.
[[nodiscard]] std::string evidence_in_words(const model::CauseEvidence& evidence);
// "vanishing_gradient" -> "Vanishing gradient".
[[nodiscard]] std::string title_of_rule(std::string_view rule);
// "step 12", "steps 12 to 90", in EVAL "evaluation 3".
[[nodiscard]] std::string steps_in_words(const model::Finding& finding);
// "1 finding", "2 findings".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view singular, std::string_view plural);
// 12345678 -> "12,345,678".
[[nodiscard]] std::string grouped(std::uint64_t number);
// Four digits; whole numbers in full: "0.0031", "1.2e-09", "30,720", "nan".
[[nodiscard]] std::string number_in_words(double value);
// "usual 0.5" for evidence that has a reference, else empty.
[[nodiscard]] std::string reference_in_words(const model::Evidence& evidence);
// The lines of a text that a rule or a cause wrote.
[[nodiscard]] std::vector<std::string_view> lines_of(std::string_view text);

}  // namespace traindbg::report
