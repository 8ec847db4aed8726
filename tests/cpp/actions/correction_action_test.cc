#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "traindbg/actions/action.h"
#include "traindbg/actions/action_journal.h"
#include "traindbg/storage/control_block.h"

namespace traindbg::actions {
namespace {

class CorrectionActionTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string pattern = (std::filesystem::temp_directory_path() / "traindbg-actions-XXXXXX").string();
        ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
        directory_ = pattern;
        auto opened = storage::ControlBlock::open(directory_ + "/control");
        ASSERT_TRUE(opened.is_ok()) << opened.status().message();
        control_ = std::move(opened).value();
        finding_.rule = "exploding_gradient";
        finding_.kind = "exploding_gradient";
        finding_.first_step = 37;
        finding_.step = 40;
    }
    void TearDown() override {
        control_.reset();
        std::filesystem::remove_all(directory_);
    }

    std::string directory_;
    std::unique_ptr<storage::ControlBlock> control_;
    model::Finding finding_;
};

TEST_F(CorrectionActionTest, WordsThatAreNoneMakeNone) {
    EXPECT_EQ(make_action("none", *control_), nullptr);
    EXPECT_EQ(make_action("", *control_), nullptr);
    for (const std::string word : {"stop", "checkpoint-stop", "lower-lr", "roll-back"}) {
        const auto action = make_action(word, *control_);
        ASSERT_NE(action, nullptr) << word;
        EXPECT_EQ(action->name(), word);
    }
}

TEST_F(CorrectionActionTest, EachAsksForWhatItsNameSays) {
    ASSERT_TRUE(make_action("lower-lr", *control_)->act(finding_).is_ok());
    EXPECT_EQ(control_->corrections_asked(), (storage::CorrectionsAsked{.lower_lr = 1}));
    ASSERT_TRUE(make_action("roll-back", *control_)->act(finding_).is_ok());
    EXPECT_EQ(control_->corrections_asked(),
              (storage::CorrectionsAsked{.lower_lr = 1, .roll_back = 1, .bad_since = 37}));
    EXPECT_FALSE(control_->stop_requested());
    ASSERT_TRUE(make_action("checkpoint-stop", *control_)->act(finding_).is_ok());
    EXPECT_EQ(control_->corrections_asked().checkpoint, 1U);
    EXPECT_EQ(control_->corrections_asked().bad_since, 37U);
    EXPECT_TRUE(control_->stop_requested());
}

TEST_F(CorrectionActionTest, StepsOfAnEvaluationAreNotTakenForStepsOfTheTraining) {
    finding_.mode = model::Mode::kEval;
    for (const std::string word : {"roll-back", "checkpoint-stop"}) {
        const auto action = make_action(word, *control_);
        EXPECT_EQ(action->intention(finding_).find("37"), std::string::npos) << action->intention(finding_);
        ASSERT_TRUE(action->act(finding_).is_ok());
        EXPECT_EQ(control_->corrections_asked().bad_since, storage::kStepNotKnown) << word;
        control_->request_roll_back(1);
    }
}

TEST_F(CorrectionActionTest, ACorrectionHelpsAgainstItsFaultsAndDoesNotEndTheTraining) {
    model::Finding other;
    other.rule = other.kind = "class_imbalance";
    model::Finding damage;
    damage.rule = "non_finite";
    damage.kind = "non_finite";
    const auto lower = make_action("lower-lr", *control_);
    const auto back = make_action("roll-back", *control_);
    EXPECT_TRUE(lower->helps_against(finding_));
    EXPECT_FALSE(lower->helps_against(damage)) << "the weights are gone";
    EXPECT_TRUE(back->helps_against(damage));
    EXPECT_FALSE(lower->helps_against(other) || back->helps_against(other));
    EXPECT_TRUE(make_action("stop", *control_)->helps_against(other));
    EXPECT_FALSE(lower->ends_training() || back->ends_training());
    EXPECT_TRUE(make_action("checkpoint-stop", *control_)->ends_training());
}

TEST_F(CorrectionActionTest, TheJournalTakesARepetitionThatIsMeant) {
    const auto action = make_action("lower-lr", *control_);
    ActionJournal journal(directory_);
    EXPECT_EQ(journal.perform(*action, finding_).outcome, Outcome::kDone);
    EXPECT_EQ(journal.perform(*action, finding_).outcome, Outcome::kAlreadyDone);
    EXPECT_EQ(journal.perform(*action, finding_, /*again=*/true).outcome, Outcome::kDone);
    EXPECT_EQ(control_->corrections_asked().lower_lr, 2U);
    std::ifstream file(directory_ + "/actions.jsonl");
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    EXPECT_EQ(lines, 2);
}

TEST_F(CorrectionActionTest, ATrainingThatHasEndedIsNotCorrected) {
    control_->publish_state(storage::TrainingState::kEnded);
    for (const std::string word : {"checkpoint-stop", "lower-lr", "roll-back"})
        EXPECT_EQ(make_action(word, *control_)->act(finding_).code(), base::Code::kUnavailable) << word;
    EXPECT_EQ(control_->corrections_asked().lower_lr, 0U);
}

}  // namespace
}  // namespace traindbg::actions
