#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traindbg/actions/action.h"
#include "traindbg/actions/action_journal.h"
#include "traindbg/storage/control_block.h"

namespace traindbg::actions {
namespace {

// Does nothing, as often as it is asked.
class CountingAction final : public Action {
  public:
    [[nodiscard]] std::string_view name() const noexcept override { return "count"; }
    [[nodiscard]] std::string intention(const model::Finding&) const override { return "count"; }
    [[nodiscard]] bool is_done() const noexcept override { return false; }
    [[nodiscard]] base::Status act(const model::Finding&) override {
        ++times;
        return base::Status::ok();
    }

    int times = 0;
};

class StopActionTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "traindbg-actions-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
        auto opened = storage::ControlBlock::open(directory_ + "/control");
        ASSERT_TRUE(opened.is_ok()) << opened.status().message();
        control_ = std::move(opened).value();
        finding_.rule = "exploding_tensor";
        finding_.key = "gradients";
        finding_.worker = 2;
        finding_.step = 40;
    }
    void TearDown() override {
        control_.reset();
        std::filesystem::remove_all(directory_);
    }

    [[nodiscard]] std::vector<nlohmann::json> journal_lines() const {
        std::ifstream file(directory_ + "/actions.jsonl");
        std::vector<nlohmann::json> lines;
        for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
        return lines;
    }

    std::string directory_;
    std::unique_ptr<storage::ControlBlock> control_;
    model::Finding finding_;
};

TEST_F(StopActionTest, AnotherMappingOfTheControlPageSeesTheRequest) {
    const auto action = make_stop_action(*control_);
    EXPECT_FALSE(control_->stop_requested());
    EXPECT_TRUE(action->act(finding_).is_ok());
    auto training = storage::ControlBlock::open(directory_ + "/control");
    ASSERT_TRUE(training.is_ok());
    EXPECT_TRUE((*training)->stop_requested());
}

TEST_F(StopActionTest, TheIntentionNamesTheRuleAndDoesNothing) {
    const auto action = make_stop_action(*control_);
    EXPECT_NE(action->intention(finding_).find("exploding_tensor"), std::string::npos);
    EXPECT_FALSE(control_->stop_requested());
}

TEST_F(StopActionTest, AnEndedTrainingIsNotAskedToStop) {
    control_->publish_state(storage::TrainingState::kEnded);
    const auto action = make_stop_action(*control_);
    EXPECT_EQ(action->act(finding_).code(), base::Code::kUnavailable);
    EXPECT_FALSE(control_->stop_requested());
}

TEST_F(StopActionTest, OneFindingIsActedOnAndWrittenDownOnce) {
    CountingAction action;
    ActionJournal journal(directory_);
    EXPECT_EQ(journal.perform(action, finding_).outcome, Outcome::kDone);
    EXPECT_EQ(journal.perform(action, finding_).outcome, Outcome::kAlreadyDone);
    finding_.worker = 3;
    EXPECT_EQ(journal.perform(action, finding_).outcome, Outcome::kDone);
    EXPECT_EQ(action.times, 2);

    const auto lines = journal_lines();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_EQ(lines[0]["rule"], "exploding_tensor");
    EXPECT_EQ(lines[0]["key"], "gradients");
    EXPECT_EQ(lines[0]["worker"], 2);
    EXPECT_EQ(lines[0]["step"], 40);
    EXPECT_EQ(lines[0]["action"], "count");
    EXPECT_EQ(lines[0]["result"], "done");
    EXPECT_GT(lines[0]["wall_nanos"].get<std::int64_t>(), 0);
    EXPECT_EQ(lines[1]["worker"], 3);
}

// Findings that come while the training leaves its loop, and after it has, ask for nothing more.
TEST_F(StopActionTest, ATrainingIsAskedToStopOnceForAllFindings) {
    const auto action = make_stop_action(*control_);
    ActionJournal journal(directory_);
    EXPECT_EQ(journal.perform(*action, finding_).outcome, Outcome::kDone);
    control_->publish_state(storage::TrainingState::kStopping);
    finding_.rule = "dead_relu";
    EXPECT_EQ(journal.perform(*action, finding_).outcome, Outcome::kAlreadyDone);
    control_->publish_state(storage::TrainingState::kEnded);
    finding_.rule = "vanishing_gradient";
    EXPECT_EQ(journal.perform(*action, finding_).outcome, Outcome::kAlreadyDone);
    const auto lines = journal_lines();
    ASSERT_EQ(lines.size(), 1U);
    EXPECT_EQ(lines[0]["action"], "stop");
    EXPECT_EQ(lines[0]["rule"], "exploding_tensor");
}

TEST_F(StopActionTest, AFailedActionIsWrittenDownAndMayBeTriedAgain) {
    control_->publish_state(storage::TrainingState::kEnded);
    const auto action = make_stop_action(*control_);
    ActionJournal journal(directory_);
    EXPECT_EQ(journal.perform(*action, finding_).outcome, Outcome::kFailed);
    control_->publish_state(storage::TrainingState::kAttached);
    EXPECT_EQ(journal.perform(*action, finding_).outcome, Outcome::kDone);
    const auto lines = journal_lines();
    ASSERT_EQ(lines.size(), 2U);
    EXPECT_NE(lines[0]["result"].get<std::string>().find("already ended"), std::string::npos);
}

TEST_F(StopActionTest, ATensorNameThatIsNotUtf8IsWrittenEscaped) {
    finding_.key = "bad\xFFname";
    const auto action = make_stop_action(*control_);
    ActionJournal journal(directory_);
    EXPECT_TRUE(journal.perform(*action, finding_).journal.is_ok());
    EXPECT_EQ(journal_lines().at(0)["key"], "bad\\xffname");
}

TEST_F(StopActionTest, AJournalThatCannotBeWrittenDoesNotKeepTheActionFromHappening) {
    const auto action = make_stop_action(*control_);
    ActionJournal journal(directory_ + "/not-there");
    const Performed performed = journal.perform(*action, finding_);
    EXPECT_EQ(performed.outcome, Outcome::kDone);
    EXPECT_FALSE(performed.journal.is_ok());
    EXPECT_TRUE(control_->stop_requested());
}

}  // namespace
}  // namespace traindbg::actions
