#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "report/sample_run.h"
#include "traindbg/report/report.h"
#include "traindbg/report/words.h"

namespace traindbg::report {
namespace {

std::size_t widest_line(std::string_view text) {
    std::size_t widest = 0;
    for (const std::string_view line : lines_of(text)) {
        const auto width = std::count_if(
            line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
        widest = std::max(widest, static_cast<std::size_t>(width));
    }
    return widest;
}

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

model::Finding finding_with(std::string message) {
    model::Finding finding;
    finding.rule = "dead_relu";
    finding.first_step = 3;
    finding.step = finding.last_step = 3;
    finding.message = std::move(message);
    return finding;
}

TEST(TerminalTest, FindingSaysRuleStepPlaceNumbersAndFix) {
    const model::Verdict verdict = testing::make_sample_run().verdict;
    const std::string text = terminal_finding(verdict.findings[0], false);
    for (const char* part : {"warning  vanishing_gradient, steps 80 to 199 in conv1, 2 tensors",
                             "2.96e-05   limit 0.001", "fix: Use ReLU", "self.norm1 = nn.BatchNorm2d(16)"})
        EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

TEST(TerminalTest, NoLineIsWiderThanAHundredColumns) {
    std::string words;
    for (int i = 0; i < 100; ++i) words += "größer ";
    for (const std::string& message :
         {words, std::string(1000, 'x'), "short " + std::string(300, 'y') + " end"}) {
        model::Finding finding = finding_with(message);
        finding.fix = message;
        EXPECT_LE(widest_line(terminal_finding(finding, false)), 100U);
        model::Verdict verdict;
        verdict.findings = {finding};
        verdict.causes = {{"cause", "Title", 0.5, message, message, {"dead_relu"}}};
        verdict.outcomes = {{"overfit", model::CheckState::kNotChecked, message, 0}};
        EXPECT_LE(widest_line(terminal_verdict(verdict, false)), 100U);
    }
}

TEST(TerminalTest, ProseIsBrokenForANarrowTerminal) {
    std::string words;
    for (int i = 0; i < 100; ++i) words += "größer ";
    model::Finding finding = finding_with(words);
    finding.fix = words;
    EXPECT_LE(widest_line(terminal_finding(finding, false, 60)), 60U);
    model::Verdict verdict;
    verdict.findings = {finding};
    verdict.causes = {{"cause", "Title", 0.5, words, words, {"dead_relu"}}};
    EXPECT_LE(widest_line(terminal_verdict(verdict, false, 60)), 60U);
    EXPECT_LE(widest_line(terminal_verdict(verdict, false, 0)), 40U) << "too narrow to be of use";
}

TEST(TerminalTest, APendingFindingIsOneLineAndNoFinding) {
    model::Verdict verdict;
    verdict.findings = {finding_with("It may be so.")};
    verdict.findings[0].state = model::FindingState::kPending;
    verdict.findings[0].times = 0;
    verdict.outcomes = {{"dead_relu", model::CheckState::kClean, "", 9}};
    const std::string text = terminal_verdict(verdict, false);
    EXPECT_TRUE(has(text, "Clean: no rule found a fault")) << text;
    EXPECT_TRUE(has(text, "1 finding is pending: it has not lasted for as long as --hold asks.")) << text;
    EXPECT_TRUE(has(text, "\npending  dead_relu, step 3")) << text;
    EXPECT_FALSE(has(text, "It may be so.")) << text;
    EXPECT_TRUE(has(terminal_explained(verdict, {}, false), "It may be so."));
}

TEST(TerminalTest, WhatSpeaksForACauseAndAgainstItIsExplained) {
    model::Verdict verdict;
    verdict.findings = {finding_with("All units are zero.")};
    verdict.causes = {{"a", "First", 0.4, "Because.", "Do.", {"dead_relu"}},
                      {"b", "Second", 0.3, "", "", {}}};
    verdict.causes[0].evidence_for = {{"All units are zero.", "dead_relu", "", model::StepIndex{3}},
                                      {"SGD has a rate of 5.", "", "", std::nullopt}};
    verdict.causes[0].evidence_against = {
        {"overfit was there at step 1.", "overfit", "", model::StepIndex{1}}};
    const std::string text = terminal_explained(verdict, {}, false);
    EXPECT_TRUE(has(text, "not sure, perhaps: First (possible, 40 %)\n")) << text;
    EXPECT_TRUE(has(text, "or: Second")) << text;
    EXPECT_TRUE(has(text,
                    "  for:     dead_relu, step 3: All units are zero.\n"
                    "           SGD has a rate of 5.\n"
                    "  against: overfit was there at step 1.\n"))
        << text;
    EXPECT_FALSE(has(terminal_verdict(verdict, false), "against: ")) << "only where it is asked for";
}

TEST(TerminalTest, ALayerWithANumberForANameIsCalledALayer) {
    model::Finding finding = finding_with("message");
    finding.layer = "6";
    finding.places = 5;
    EXPECT_TRUE(has(terminal_finding(finding, false), "step 3 in layer 6, 5 tensors\n"));
    finding.layer = "encoder.6";
    EXPECT_TRUE(has(terminal_finding(finding, false), "step 3 in encoder.6, 5 tensors\n"));
}

TEST(TerminalTest, WrappingLosesNoCharacter) {
    std::string message;
    for (int i = 0; i < 60; ++i) message += std::to_string(i * 7919) + " ";
    std::string text = terminal_finding(finding_with(message), false);
    text.erase(0, text.find('\n'));
    std::erase_if(text, [](char c) { return c == ' ' || c == '\n'; });
    std::erase(message, ' ');
    EXPECT_EQ(text, message);
}

TEST(TerminalTest, APerCentStaysWithItsNumber) {
    for (int letters = 1; letters < 90; ++letters) {
        std::string message(static_cast<std::size_t>(letters), 'x');
        for (int i = 0; i < 20; ++i) message += " 56 %";
        EXPECT_FALSE(has(terminal_finding(finding_with(message), false), "\n         %")) << letters;
    }
}

TEST(TerminalTest, ControlCharactersOfTheTrainingAreShownNotSent) {
    model::Finding finding = finding_with("a\x1b[31mred\x07");
    finding.rule = "r\x1b";
    finding.layer = "l\x1b]0;title\x07";
    finding.fix = "f\x1b";
    finding.evidence = {{"n\x1b", 1, "usual\x1b", 2}};
    finding.sources = {{"module/m\x1b", "f\x1b.py", 1, ""}};
    model::Verdict verdict;
    verdict.findings = {finding};
    verdict.causes = {{"c", "t\x1b", 0.5, "e\x1b", "f\x1b", {}}};
    verdict.outcomes = {{"o\x1b", model::CheckState::kNotChecked, "r\x1b", 0}};
    const std::string text = terminal_finding(finding, false) + terminal_verdict(verdict, false);
    for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << text;
    EXPECT_TRUE(has(text, "a\\x1b[31mred\\x07"));
}

TEST(TerminalTest, ColourOnlyWhereAskedFor) {
    const model::Verdict verdict = testing::make_sample_run().verdict;
    EXPECT_FALSE(has(terminal_verdict(verdict, false), "\x1b"));
    EXPECT_TRUE(has(terminal_verdict(verdict, true), "\x1b[1;31m"));
    EXPECT_TRUE(has(terminal_finding(verdict.findings[0], true), "\x1b[1;33mwarning\x1b[0m"));
}

TEST(TerminalTest, VerdictNamesCauseAndWhatWasNotChecked) {
    const std::string text = terminal_verdict(testing::make_sample_run().verdict, false);
    for (const char* part :
         {"2 findings: 1 error and 1 warning", "likely cause: Learning rate too high (likely, 86 %)",
          "  code: train.py:24, where the optimizer is made\n",
          "not checked\n  overfit  fewer than 30 evaluations"})
        EXPECT_TRUE(has(text, part)) << part << "\n" << text;
}

TEST(TerminalTest, NothingFoundIsNotTheSameAsNothingChecked) {
    model::Verdict verdict;
    verdict.outcomes = {{"a", model::CheckState::kClean, "", 5},
                        {"b", model::CheckState::kNotChecked, "no ReLU", 0}};
    EXPECT_TRUE(terminal_verdict(verdict, false)
                    .starts_with("Clean: no rule found a fault\n1 rule found nothing; 1 could"));
    verdict.outcomes.erase(verdict.outcomes.begin());
    EXPECT_TRUE(
        terminal_verdict(verdict, false).starts_with("Could not judge this training\nNone of 1 rule"));
    verdict.outcomes.clear();
    EXPECT_TRUE(terminal_verdict(verdict, false)
                    .starts_with("Could not judge this training\nNo rule was evaluated."));
}

TEST(WordsTest, TheWordForAConfidenceFitsThePercentageBesideIt) {
    EXPECT_EQ(confidence_in_words(0.896), "very likely") << "90 %";
    EXPECT_EQ(confidence_in_words(0.894), "likely") << "89 %";
    EXPECT_EQ(confidence_in_words(0.446), "plausible") << "45 %";
    EXPECT_EQ(confidence_in_words(0.44), "possible");
}

TEST(WordsTest, LinesOfATraining) {
    EXPECT_EQ(source_in_words({"optimizer", "train.py", 24, "main"}),
              "train.py:24, where the optimizer is made");
    EXPECT_EQ(source_in_words({"loss/cross_entropy", "a.py", 3, ""}),
              "a.py:3, where cross_entropy is computed");
    EXPECT_EQ(source_in_words({"module/encoder.fc1", "a.py", 3, ""}), "a.py:3, where encoder.fc1 is made");
    EXPECT_EQ(source_in_words({"something new", "a.py", 3, ""}), "a.py:3");
}

TEST(WordsTest, NumbersForPeople) {
    EXPECT_EQ(number_in_words(30720), "30,720");
    EXPECT_EQ(number_in_words(-1234567), "-1,234,567");
    EXPECT_EQ(number_in_words(9999), "9999");
    EXPECT_EQ(number_in_words(0.00012346), "0.0001235");
    EXPECT_EQ(number_in_words(1e30), "1e+30");
    EXPECT_EQ(number_in_words(std::numeric_limits<double>::quiet_NaN()), "nan");
    EXPECT_EQ(grouped(0), "0");
    EXPECT_EQ(grouped(1000), "1,000");
    EXPECT_EQ(grouped(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(WordsTest, EndsOfATraining) {
    model::RunEnd end;
    EXPECT_EQ(end_in_words(std::nullopt).substr(0, 19), "has no recorded end");
    EXPECT_EQ(end_in_words(end), "ended; its exit code is not known");
    end.exit_code = 0;
    EXPECT_EQ(end_in_words(end), "ended normally (exit code 0)");
    end.exit_code = 1;
    EXPECT_EQ(end_in_words(end), "failed (exit code 1)");
    end.exit_code = 137;
    EXPECT_EQ(end_in_words(end), "was killed by SIGKILL (exit code 137)");
    end.exit_code = 90;
    end.stopped_by_rule = true;
    EXPECT_EQ(end_in_words(end), "was stopped by a rule (exit code 90)");
}

}  // namespace
}  // namespace traindbg::report
