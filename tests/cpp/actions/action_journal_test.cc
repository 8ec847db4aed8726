// What a journal of before means for who goes on with a run.
#include "traindbg/actions/action_journal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

namespace traindbg::actions {
namespace {

// Counts how often it is taken.
class Counted final : public Action {
  public:
    [[nodiscard]] std::string_view name() const noexcept override { return "counted"; }
    [[nodiscard]] std::string intention(const model::Finding&) const override { return "count"; }
    [[nodiscard]] bool is_done() const noexcept override { return false; }
    [[nodiscard]] base::Status act(const model::Finding&) override {
        ++times;
        return answer;
    }

    int times = 0;
    base::Status answer;
};

class ActionJournalTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "traindbg-journal-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
        finding_.rule = "non_finite";
        finding_.key = "bad\xFFname";
        finding_.worker = 1;
    }
    void TearDown() override { std::filesystem::remove_all(directory_); }

    Outcome perform(ActionJournal& journal, bool again = false) {
        return journal.perform(action_, finding_, again).outcome;
    }
    [[nodiscard]] ActionJournal next(bool dry_run = false) const {
        return ActionJournal(directory_, PastActions::read(directory_), dry_run);
    }
    [[nodiscard]] std::string text() const {
        std::ifstream file(directory_ + "/actions.jsonl");
        return {std::istreambuf_iterator<char>(file), {}};
    }
    void add(const std::string& text) const {
        std::ofstream(directory_ + "/actions.jsonl", std::ios::app) << text;
    }

    std::string directory_;
    Counted action_;
    model::Finding finding_;
};

TEST_F(ActionJournalTest, WhoGoesOnDoesNotDoAgainWhatWasDone) {
    ActionJournal first = next();
    EXPECT_EQ(perform(first), Outcome::kDone);
    ActionJournal second = next();
    EXPECT_EQ(perform(second), Outcome::kAlreadyDone);
    EXPECT_EQ(perform(second), Outcome::kAlreadyDone);
    finding_.worker = 2;
    EXPECT_EQ(perform(second), Outcome::kDone);
    EXPECT_EQ(action_.times, 2);
}

TEST_F(ActionJournalTest, WhatFailedIsTriedAgainByWhoGoesOn) {
    action_.answer = {base::Code::kUnavailable, "not now"};
    ActionJournal first = next();
    EXPECT_EQ(perform(first), Outcome::kFailed);
    action_.answer = base::Status::ok();
    ActionJournal second = next();
    EXPECT_EQ(perform(second), Outcome::kDone);
}

// A correction is made again where its fault goes on; who judges the same steps again asks for the same.
TEST_F(ActionJournalTest, CorrectionsOfBeforeAreNotMadeAgainAndLaterOnesAre) {
    ActionJournal first = next();
    EXPECT_EQ(perform(first, true), Outcome::kDone);
    EXPECT_EQ(perform(first, true), Outcome::kDone);
    ActionJournal second = next();
    EXPECT_EQ(perform(second, true), Outcome::kAlreadyDone);
    EXPECT_EQ(perform(second, true), Outcome::kAlreadyDone);
    EXPECT_EQ(perform(second, true), Outcome::kDone);
    EXPECT_EQ(action_.times, 3);
}

TEST_F(ActionJournalTest, ADryRunWritesDownAndDoesNothing) {
    ActionJournal dry = next(/*dry_run=*/true);
    EXPECT_EQ(perform(dry), Outcome::kDryRun);
    EXPECT_EQ(perform(dry), Outcome::kAlreadyDone);
    EXPECT_EQ(action_.times, 0);
    EXPECT_EQ(nlohmann::json::parse(text())["result"], "dry run");
    ActionJournal another_dry = next(/*dry_run=*/true);
    EXPECT_EQ(perform(another_dry), Outcome::kAlreadyDone);
    ActionJournal real = next();
    EXPECT_EQ(perform(real), Outcome::kDone);
    ActionJournal dry_after_real = next(/*dry_run=*/true);
    EXPECT_EQ(perform(dry_after_real), Outcome::kAlreadyDone);
}

TEST_F(ActionJournalTest, ATornTailIsToldAndDoesNotSpoilTheNextLine) {
    ActionJournal first = next();
    EXPECT_EQ(perform(first), Outcome::kDone);
    add(R"({"wall_nanos": 1, "rule": "over)");
    const PastActions past = PastActions::read(directory_);
    EXPECT_NE(past.trouble().find("1 line cannot be read"), std::string::npos) << past.trouble();
    EXPECT_EQ(past.times("counted", FindingKey::of(finding_), false), 1U);
    ActionJournal second(directory_, past);
    finding_.rule = "overfit";
    EXPECT_EQ(perform(second), Outcome::kDone);
    EXPECT_EQ(PastActions::read(directory_).times("counted", FindingKey::of(finding_), false), 1U);
}

TEST_F(ActionJournalTest, LinesThatAreNoneAreCountedAndTheOthersRead) {
    add("\xFF no JSON\n[]\n17\n{\"rule\": 3}\n");
    add(R"({"rule": "overfit", "key": "", "worker": -1, "action": "a", "intention": "i", "result": []})"
        "\n");
    ActionJournal first = next();
    EXPECT_EQ(perform(first), Outcome::kDone);
    const PastActions past = PastActions::read(directory_);
    EXPECT_NE(past.trouble().find("5 lines cannot be read"), std::string::npos) << past.trouble();
    EXPECT_EQ(past.times("counted", FindingKey::of(finding_), false), 1U);
}

TEST_F(ActionJournalTest, WithoutAJournalNothingWasDoneAndNothingIsWrong) {
    const PastActions past = PastActions::read(directory_);
    EXPECT_EQ(past.trouble(), "");
    EXPECT_EQ(past.times("counted", FindingKey::of(finding_), false), 0U);
}

TEST_F(ActionJournalTest, AJournalThatCannotBeOpenedIsTold) {
    std::filesystem::create_directory(directory_ + "/actions.jsonl");
    EXPECT_NE(PastActions::read(directory_).trouble(), "");
}

}  // namespace
}  // namespace traindbg::actions
