// The judge's end, against processes that are shell scripts: what they say is written out here. The real ones
// are in tests/e2e/test_processes.py.
#include "traindbg/cli/spread_judge.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "traindbg/cli/judge_protocol.h"

namespace traindbg::cli {
namespace {

using namespace std::chrono_literals;

const std::vector<rules::RuleChoice> kRules = {{"dead_relu", {}}, {"non_finite", {}}, {"overfit", {}}};
// By name, of what rule_of says is a process's own.
constexpr const char* kIsSecond = "read task; case $task in *non_finite*) second=1;; esac; ";

std::string quoted(std::string line) {
    line.pop_back();
    return "echo '" + line + "'; ";
}

std::string finding_line(std::uint64_t steps, std::uint64_t rule, FindingSaid::Event event,
                         model::FindingState state = model::FindingState::kFiring) {
    FindingSaid said;
    said.moment = {steps, engine::Phase::kStep, 0, rule};
    said.event = event;
    said.finding.rule = kRules[rule].name;
    said.finding.state = state;
    said.finding.first_step = 1;
    return quoted(to_line(said));
}

std::string clean_line(std::uint64_t rule) {
    return quoted(to_line(OutcomeSaid{rule, {kRules[rule].name, model::CheckState::kClean, "", 5}}));
}

const std::string kDone = quoted(to_line(DoneSaid{{3, {}}}));

struct Judged {
    model::Verdict verdict;
    std::vector<std::string> troubles;
    std::vector<std::string> told;
    base::Status status;
};

// Two processes that run `script`.
Judged judged_by(const std::string& script, std::chrono::nanoseconds patience = 60s, bool is_live = false) {
    Spreading spreading;
    spreading.processes = 2;
    spreading.patience = patience;
    spreading.program = {"/bin/sh", "-c", kIsSecond + script};
    auto judge = SpreadJudge::start("/run", kRules, spreading, is_live);
    EXPECT_TRUE(judge.is_ok()) << judge.status().message();
    Judged out;
    (*judge)->set_listener([&](const model::Finding& finding) {
        out.told.push_back(finding.rule + " " + std::string(model::to_string(finding.state)));
    });
    (*judge)->set_trouble_listener([&](const std::string& what) { out.troubles.push_back(what); });
    if (is_live) (*judge)->finish();
    while (!(*judge)->is_done()) (*judge)->attend(1s);
    out.verdict = (*judge)->verdict();
    out.status = (*judge)->status();
    EXPECT_EQ((*judge)->unseen().damaged_places, out.verdict.findings.empty() ? 0U : 3U);
    return out;
}

TEST(SpreadJudge, FindingsAreToldAsTheyComeAndKeptInOrder) {
    const Judged out =
        judged_by("if [ $second ]; then " + finding_line(1, 1, FindingSaid::Event::kFires) + clean_line(1) +
                  "else " + finding_line(2, 2, FindingSaid::Event::kFires) +
                  finding_line(2, 2, FindingSaid::Event::kNone, model::FindingState::kFiring) +
                  finding_line(2, 2, FindingSaid::Event::kResolved, model::FindingState::kResolved) +
                  clean_line(0) + clean_line(2) + "fi; " + kDone);
    ASSERT_EQ(out.verdict.findings.size(), 2U);
    EXPECT_EQ(out.verdict.findings[0].rule, "non_finite");
    EXPECT_EQ(out.verdict.findings[1].rule, "overfit");
    EXPECT_EQ(out.verdict.findings[1].state, model::FindingState::kResolved);
    EXPECT_EQ(out.told.size(), 3U);
    EXPECT_EQ(std::count(out.told.begin(), out.told.end(), "overfit resolved"), 1);
    EXPECT_TRUE(out.troubles.empty());
    for (const model::RuleOutcome& outcome : out.verdict.outcomes)
        EXPECT_EQ(outcome.state, model::CheckState::kClean) << outcome.rule;
    EXPECT_EQ(out.verdict.outcomes[2].rule, "overfit");
}

// Of the second process, which has `non_finite` alone.
void expect_lost(const Judged& out, const std::string& why) {
    EXPECT_EQ(out.verdict.outcomes[0].state, model::CheckState::kClean);
    EXPECT_EQ(out.verdict.outcomes[1].state, model::CheckState::kNotChecked);
    EXPECT_EQ(out.verdict.outcomes[1].reason, why);
    EXPECT_EQ(out.verdict.outcomes[2].state, model::CheckState::kClean);
    ASSERT_EQ(out.troubles.size(), 1U) << "said once";
    EXPECT_NE(out.troubles[0].find("non_finite"), std::string::npos) << out.troubles[0];
    EXPECT_EQ(out.troubles[0].find("dead_relu"), std::string::npos) << out.troubles[0];
    EXPECT_NE(out.troubles[0].find(why), std::string::npos) << out.troubles[0];
    EXPECT_TRUE(out.status.is_ok());
}

const std::string kFirstIsClean =
    "else " + finding_line(1, 0, FindingSaid::Event::kNone) + clean_line(0) + clean_line(2) + kDone + "fi; ";

TEST(SpreadJudge, AProcessThatIsKilledCostsItsRulesOnly) {
    expect_lost(judged_by("if [ $second ]; then kill -9 $$; " + kFirstIsClean),
                "the process that judged it ended (signal 9)");
}

TEST(SpreadJudge, AProcessThatEndsTooEarlyCostsItsRulesOnly) {
    expect_lost(judged_by("if [ $second ]; then exit 4; " + kFirstIsClean),
                "the process that judged it ended (code 4)");
}

// One that ends before it is told to finish must not end us: this program does not ignore SIGPIPE.
TEST(SpreadJudge, WordsToAProcessThatIsGoneAreLost) {
    const std::string reason = "the process that judged it ended (code 4)";
    Spreading spreading;
    spreading.processes = 2;
    spreading.program = {"/bin/sh", "-c", kIsSecond + ("if [ $second ]; then exit 4; " + kFirstIsClean)};
    auto judge = SpreadJudge::start("/run", kRules, spreading, true);
    ASSERT_TRUE(judge.is_ok()) << judge.status().message();
    // Its end of what it says closes with its end of what it hears.
    pollfd its_end{(*judge)->wake_descriptor(), POLLIN, 0};
    ASSERT_EQ(::poll(&its_end, 1, 60'000), 1);
    std::this_thread::sleep_for(200ms);
    (*judge)->finish();
    while (!(*judge)->is_done()) (*judge)->attend(1s);
    EXPECT_EQ((*judge)->verdict().outcomes[1].reason, reason);
    EXPECT_EQ((*judge)->verdict().outcomes[0].state, model::CheckState::kClean);
}

TEST(SpreadJudge, AProcessThatHangsIsEnded) {
    expect_lost(judged_by("if [ $second ]; then exec sleep 100; " + kFirstIsClean, 300ms),
                "the process that judged it said nothing for 300 ms and was ended");
}

TEST(SpreadJudge, ALiveProcessThatDoesNotFinishIsEnded) {
    expect_lost(judged_by("if [ $second ]; then exec sleep 100; " + kFirstIsClean, 300ms, true),
                "the process that judged it said nothing for 300 ms and was ended");
}

TEST(SpreadJudge, AProcessThatBabblesIsEnded) {
    expect_lost(judged_by("if [ $second ]; then echo Segmentation fault; exec sleep 100; " + kFirstIsClean),
                "the process that judged it said something that cannot be read");
}

TEST(SpreadJudge, ARuleThatIsNotThereIsNoPlace) {
    FindingSaid said;
    said.moment.rule = 3;
    expect_lost(
        judged_by("if [ $second ]; then " + quoted(to_line(said)) + "exec sleep 100; " + kFirstIsClean),
        "the process that judged it said something that cannot be read");
}

TEST(SpreadJudge, WhatOneCannotReadCostsItsRulesAndWhatNoneCanIsAnError) {
    const std::string fails = quoted(to_line(FailureSaid{{base::Code::kDataLoss, "/run/w0000: is damaged"}}));
    expect_lost(judged_by("if [ $second ]; then " + fails + kFirstIsClean), "/run/w0000: is damaged");
    const Judged none = judged_by(fails);
    EXPECT_EQ(none.status.code(), base::Code::kDataLoss);
    EXPECT_EQ(none.status.message(), "/run/w0000: is damaged");
    EXPECT_TRUE(none.troubles.empty());
}

TEST(SpreadJudge, AProgramThatIsNotThereCostsAllRules) {
    Spreading spreading;
    spreading.processes = 2;
    spreading.program = {"/nowhere/traindbg"};
    const auto judge = SpreadJudge::start("/run", kRules, spreading, false);
    ASSERT_TRUE(judge.is_ok());
    std::vector<std::string> troubles;
    (*judge)->set_trouble_listener([&](const std::string& what) { troubles.push_back(what); });
    EXPECT_TRUE((*judge)->is_done());
    EXPECT_EQ(troubles.size(), 2U);
    for (const model::RuleOutcome& outcome : (*judge)->verdict().outcomes)
        EXPECT_NE(outcome.reason.find("could not be started"), std::string::npos) << outcome.reason;
}

TEST(SpreadJudge, NoMoreProcessesThanRules) {
    Spreading spreading;
    spreading.processes = 1000;
    spreading.program = {"/bin/sh", "-c", "exit 1"};
    const auto judge = SpreadJudge::start("/run", kRules, spreading, false);
    ASSERT_TRUE(judge.is_ok());
    std::vector<std::string> troubles;
    (*judge)->set_trouble_listener([&](const std::string& what) { troubles.push_back(what); });
    while (!(*judge)->is_done()) (*judge)->attend(1s);
    EXPECT_EQ(troubles.size(), kRules.size());
}

TEST(JudgeProtocol, ATaskComesBackAsItWas) {
    JudgeTask task;
    task.choices = {{"overfit", {{"patience", 3.0}, {"name", std::string("a b")}, {"flag", true}}},
                    {"non_finite", {}}};
    task.places = {7, 2};
    task.custom.plugins = {"/a b.so"};
    task.custom.python = {"x.py:Rule"};
    task.custom.timeout = 0.25;
    task.custom.memory = "2GiB";
    task.runs = "/runs";
    task.is_live = true;
    const auto back = judge_task_of(to_line(task));
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    ASSERT_EQ(back->choices.size(), 2U);
    EXPECT_EQ(back->choices[0].name, "overfit");
    EXPECT_EQ(back->choices[0].parameters, task.choices[0].parameters);
    EXPECT_EQ(back->places, task.places);
    EXPECT_EQ(back->custom.plugins, task.custom.plugins);
    EXPECT_EQ(back->custom.python, task.custom.python);
    EXPECT_EQ(back->custom.timeout, 0.25);
    EXPECT_EQ(back->custom.memory, "2GiB");
    EXPECT_EQ(back->runs, "/runs");
    EXPECT_TRUE(back->is_live);
}

TEST(JudgeProtocol, AFindingComesBackAsItWas) {
    FindingSaid said;
    said.number = 4;
    said.moment = {9, engine::Phase::kTimeAtEnd, 2, 1};
    said.event = FindingSaid::Event::kResolved;
    said.finding.rule = "overfit";
    said.finding.key = "k";
    said.finding.kind = "kind";
    said.finding.severity = model::Severity::kError;
    said.finding.state = model::FindingState::kResolved;
    said.finding.mode = model::Mode::kEval;
    said.finding.worker = 2;
    said.finding.first_step = 3;
    said.finding.step = 4;
    said.finding.last_step = (std::uint64_t{1} << 53) + 1;
    said.finding.tensor = "gradient/\"a\"";
    said.finding.layer = "a";
    said.finding.places = 6;
    said.finding.message = "two\nlines";
    said.finding.fix = "f";
    said.finding.evidence = {{"norm", 0.1, "limit", -0.0},
                             {"inf", std::numeric_limits<double>::infinity(), "", 0}};
    said.finding.plots = {{"a", "l2"}};
    const auto back = judge_line_of(to_line(said), 2);
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    const auto& read = std::get<FindingSaid>(*back);
    EXPECT_EQ(read.number, said.number);
    EXPECT_EQ(read.moment, said.moment);
    EXPECT_EQ(read.event, said.event);
    EXPECT_EQ(read.finding, said.finding);
}

TEST(JudgeProtocol, WorkersOfWhichLittleIsThereComeBack) {
    DoneSaid done;
    done.unseen.damaged_places = 5;
    done.unseen.workers.missing = {2, 7};
    done.unseen.workers.stopped = {{3, 11, 40, true}, {4, std::nullopt, 40, false}};
    const auto back = judge_line_of(to_line(done), 1);
    ASSERT_TRUE(back.is_ok()) << back.status().message();
    const Unseen& read = std::get<DoneSaid>(*back).unseen;
    EXPECT_EQ(read.damaged_places, 5U);
    EXPECT_EQ(read.workers.missing, done.unseen.workers.missing);
    EXPECT_EQ(read.workers.in_words(), done.unseen.workers.in_words());
    ASSERT_EQ(read.workers.stopped.size(), 2U);
    EXPECT_EQ(read.workers.stopped[0].last_step, 11U);
    EXPECT_TRUE(read.workers.stopped[0].has_closed);
}

TEST(JudgeProtocol, NonsenseIsAnError) {
    for (const char* line :
         {"", "{", "[]", "{}", R"({"say":"sing"})", R"({"say":"finding","number":-1})",
          R"({"say":"outcome","place":1,"outcome":{"rule":"a","state":"clean","steps_judged":1}})",
          R"({"say":"outcome","place":0,"outcome":{"rule":"a","state":"odd","steps_judged":1}})",
          R"({"say":"done"})", R"({"say":"failure","code":0,"message":"a"})", R"({"say":"meta","meta":3})",
          R"({"say":"progress","newest_step":"a"})"})
        EXPECT_FALSE(judge_line_of(line, 1).is_ok()) << line;
    for (const char* line : {"", "{}", R"({"rules":3})"}) EXPECT_FALSE(judge_task_of(line).is_ok()) << line;
}

}  // namespace
}  // namespace traindbg::cli
