#include "traindbg/cli/exit_code.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>

#include "traindbg/options/run_options.h"

namespace traindbg::cli {
namespace {

using model::CheckState;
using model::Severity;

model::Verdict verdict_with(Severity severity) {
    model::Verdict verdict;
    verdict.outcomes.push_back({"a", CheckState::kFired, "", 10});
    model::Finding finding;
    finding.severity = severity;
    verdict.findings.push_back(finding);
    return verdict;
}
model::Verdict verdict_of(CheckState state) {
    model::Verdict verdict;
    verdict.outcomes.push_back({"a", CheckState::kNotChecked, "no ReLU", 0});
    verdict.outcomes.push_back({"b", state, "", 1});
    return verdict;
}

TEST(ExitCode, CheckIsOneFromTheGivenSeverityUp) {
    EXPECT_EQ(exit_code_of_check(verdict_with(Severity::kWarning), Severity::kWarning), 1);
    EXPECT_EQ(exit_code_of_check(verdict_with(Severity::kError), Severity::kWarning), 1);
    EXPECT_EQ(exit_code_of_check(verdict_with(Severity::kInfo), Severity::kWarning), 0);
    EXPECT_EQ(exit_code_of_check(verdict_with(Severity::kError), FailOn()), 0);
}

TEST(ExitCode, AFindingThatIsOverStillCountsAndAPendingOneDoesNot) {
    model::Verdict verdict = verdict_with(Severity::kError);
    verdict.findings[0].state = model::FindingState::kResolved;
    EXPECT_EQ(exit_code_of_check(verdict, Severity::kError), 1);
    verdict.findings[0].state = model::FindingState::kPending;
    verdict.findings[0].times = 0;
    EXPECT_EQ(exit_code_of_check(verdict, Severity::kError), 0);
}

TEST(ExitCode, CheckIsTwoWhenNoRuleHadAnythingToJudge) {
    EXPECT_EQ(exit_code_of_check(verdict_of(CheckState::kNotChecked), Severity::kWarning), 2);
    EXPECT_EQ(exit_code_of_check({}, Severity::kWarning), 2);
    EXPECT_EQ(exit_code_of_check(verdict_of(CheckState::kClean), Severity::kWarning), 0);
}

TEST(ExitCode, RunPassesTheScriptsOwnCodeThrough) {
    for (const int code : {0, 1, 3, 130, 255})
        EXPECT_EQ(exit_code_of_run({code, false}, verdict_with(Severity::kError), FailOn()), code);
    EXPECT_EQ(exit_code_of_run({3, false}, verdict_with(Severity::kError), Severity::kInfo), 3);
    EXPECT_EQ(exit_code_of_run({0, false}, verdict_with(Severity::kError), Severity::kWarning), 1);
    EXPECT_EQ(exit_code_of_run({0, false}, verdict_with(Severity::kInfo), Severity::kWarning), 0);
    EXPECT_EQ(exit_code_of_run({0, false}, verdict_with(Severity::kInfo), Severity::kInfo), 1);
    EXPECT_EQ(exit_code_of_run({143, true}, verdict_with(Severity::kError), FailOn()), 90);
}

TEST(ExitCode, RunIsTwoWhenAFailureWasAskedForAndNothingWasJudged) {
    EXPECT_EQ(exit_code_of_run({0, false}, {}, Severity::kError), 2);
    EXPECT_EQ(exit_code_of_run({0, false}, verdict_of(CheckState::kNotChecked), Severity::kError), 2);
    EXPECT_EQ(exit_code_of_run({0, false}, verdict_of(CheckState::kClean), Severity::kError), 0);
    EXPECT_EQ(exit_code_of_run({0, false}, {}, FailOn()), 0);
    EXPECT_EQ(exit_code_of_run({7, false}, {}, Severity::kError), 7);
}

TEST(ExitCode, WaitStatusesAreReadAsAShellDoes) {
    EXPECT_EQ(exit_code_of_wait_status(W_EXITCODE(7, 0)), 7);
    EXPECT_EQ(exit_code_of_wait_status(W_EXITCODE(0, SIGKILL)), 137);
}

TEST(ExitCode, CommandsThatCannotBeStarted) {
    EXPECT_EQ(exit_code_of_exec_error(ENOENT), 127);
    EXPECT_EQ(exit_code_of_exec_error(EACCES), 126);
    EXPECT_EQ(exit_code_of_exec_error(ENOEXEC), 126);
}

TEST(ExitCode, EveryWordOfFailOnIsUnderstoodAndAWrongOneNamesTheNearest) {
    for (const std::string& word : options::fail_on_words()) EXPECT_TRUE(parse_fail_on(word).is_ok()) << word;
    EXPECT_EQ(*parse_fail_on("never"), FailOn());
    EXPECT_NE(parse_fail_on("warnig").status().message().find("did you mean 'warning'"), std::string::npos);
}

}  // namespace
}  // namespace traindbg::cli
