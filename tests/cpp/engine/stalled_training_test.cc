// StalledTrainingRule and what only a run's times tell: when it began, and how late it is.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "traindbg/engine/engine.h"

namespace traindbg::engine {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBegan = 1000 * kSecond;

class StalledTraining : public ::testing::Test {
  protected:
    void SetUp() override {
        auto made = Engine::make({{"StalledTrainingRule", {{"threshold", 3.0}}}});
        ASSERT_TRUE(made.is_ok()) << made.status().message();
        engine_ = std::move(made).value();
        engine_->set_listener([this](const model::Finding& finding) {
            fired_ += finding.state == model::FindingState::kFiring ? 1 : 0;
        });
    }
    // Seconds after the beginning.
    void step(model::StepIndex step, std::int64_t seconds, model::WorkerId worker = 0,
              std::uint64_t removed_before = 0) {
        model::StepRecord record;
        record.step = step;
        record.sequence = step + removed_before;
        record.wall_nanos = kBegan + seconds * kSecond;
        engine_->on_step({worker, &record, &tensors_, &meta_});
    }
    void time(std::int64_t seconds) { engine_->on_time(kBegan + seconds * kSecond); }
    [[nodiscard]] model::RuleOutcome outcome() const { return engine_->verdict().outcomes.at(0); }
    [[nodiscard]] model::Finding finding() const { return engine_->verdict().findings.at(0); }

    std::unique_ptr<Engine> engine_;
    model::TensorTable tensors_;
    model::WorkerMeta meta_;
    int fired_ = 0;
};

TEST_F(StalledTraining, ARunThatHangsBeforeItsFirstStepIsFoundMeanwhileAndOverWithTheSteps) {
    engine_->on_begin(kBegan);
    time(2);
    EXPECT_EQ(fired_, 0);
    time(4);
    time(5);
    EXPECT_EQ(fired_, 1);
    EXPECT_EQ(finding().message, "Nothing was recorded for 5 s after the run began.");
    EXPECT_EQ(outcome().state, model::CheckState::kFired);
    step(0, 8, /*worker=*/1);
    EXPECT_EQ(finding().state, model::FindingState::kFiring);
    step(1, 9, /*worker=*/1);
    for (const model::Finding& each : engine_->verdict().findings)
        EXPECT_EQ(each.state, model::FindingState::kResolved);
}

TEST_F(StalledTraining, AStoredRunThatHungBeforeItsFirstStepIsFoundByItsTimes) {
    engine_->on_begin(kBegan);
    step(0, 8);
    EXPECT_EQ(fired_, 1);
    EXPECT_EQ(finding().message, "Nothing was recorded for 8 s after the run began.");
}

TEST_F(StalledTraining, WithoutABeginningOneStepJudgesNothing) {
    step(0, 8);
    EXPECT_EQ(outcome().state, model::CheckState::kNotChecked);
    EXPECT_FALSE(outcome().reason.empty());
}

TEST_F(StalledTraining, WithoutAStepAndABeginningNothingIsClean) {
    time(100);
    engine_->on_end();
    EXPECT_EQ(outcome().state, model::CheckState::kNotChecked);
    EXPECT_EQ(outcome().reason, "no step was recorded");
}

TEST_F(StalledTraining, FirstStepsThatWereRemovedTellNothingOfTheBeginning) {
    engine_->on_begin(kBegan);
    step(0, 500, /*worker=*/0, /*removed_before=*/100);
    step(1, 501, /*worker=*/0, /*removed_before=*/100);
    EXPECT_EQ(fired_, 0);
}

// As one training after another does in one script: nothing hangs.
TEST_F(StalledTraining, AWorkerThatEndedIsNoStallWhileAnotherOneRecords) {
    engine_->on_begin(kBegan);
    step(0, 1);
    step(1, 2);
    step(0, 100, /*worker=*/1);
    step(1, 101, /*worker=*/1);
    time(103);
    EXPECT_EQ(fired_, 0);
    time(104);
    EXPECT_EQ(fired_, 1);
    EXPECT_EQ(finding().worker, 1U);
    EXPECT_EQ(finding().last_step, 1U);
}

TEST_F(StalledTraining, OneRankThatRestedIsFoundBetweenItsSteps) {
    engine_->on_begin(kBegan);
    for (std::int64_t i = 0; i < 3; ++i) {
        step(static_cast<model::StepIndex>(i), 1 + i);
        if (i < 2) step(static_cast<model::StepIndex>(i), 1 + i, 1);
    }
    EXPECT_EQ(fired_, 0);
    step(2, 6, 1);
    EXPECT_EQ(fired_, 1);
    EXPECT_EQ(finding().worker, 1U);
    EXPECT_EQ(finding().message, "Nothing was recorded for 4 s after step 1.");
}

}  // namespace
}  // namespace traindbg::engine
