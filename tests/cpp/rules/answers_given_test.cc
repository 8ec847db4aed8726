#include "traindbg/rules/answers_given.h"

#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <string_view>

namespace traindbg::rules {
namespace {

constexpr double kEightfold = 8;
constexpr AnswerBatch kRareNeverGiven = {
    .function = "binary_cross_entropy", .labels = 100, .yes = 0.05, .says_yes = false, .says_no = true};
constexpr AnswerBatch kRareGiven = {
    .function = "binary_cross_entropy", .labels = 100, .yes = 0.05, .says_yes = true, .says_no = true};

TEST(AnswersGivenTest, AnAnswerThatIsNeverGivenIsTold) {
    AnswersGiven given;
    for (model::StepIndex step = 0; step < 60; ++step) given.add(kRareNeverGiven, step);
    EXPECT_TRUE(given.is_yes_rare());
    EXPECT_TRUE(given.is_never_given(kEightfold));
    EXPECT_FALSE(given.is_never_given(30));
    EXPECT_EQ(given.missed_since(), 40U);
    EXPECT_NEAR(given.missed(), 100, 1e-9);
}

TEST(AnswersGivenTest, NothingIsExpectedOfTheFirstSteps) {
    AnswersGiven given;
    for (model::StepIndex step = 0; step < 40; ++step) given.add(kRareNeverGiven, step);
    EXPECT_EQ(given.missed(), 0);
    EXPECT_FALSE(given.is_never_given(kEightfold));
}

TEST(AnswersGivenTest, AnAnswerThatWasGivenNowAndThenIsMissedLonger) {
    AnswersGiven given;
    for (model::StepIndex step = 0; step < 150; ++step)
        given.add(step % 2 == 0 ? kRareGiven : kRareNeverGiven, step);
    const double most = given.most_missed();
    EXPECT_EQ(most, 5 * (1 + 25));
    given.add(kRareGiven, 150);
    EXPECT_EQ(given.missed(), 0);
    EXPECT_EQ(given.given_in_a_row(), 1U);
    for (model::StepIndex step = 151; step < 161; ++step) given.add(kRareNeverGiven, step);
    EXPECT_FALSE(given.is_never_given(kEightfold));
    EXPECT_EQ(given.missed_since(), 151U);
}

TEST(AnswersGivenTest, NoCanBeTheRareAnswer) {
    AnswersGiven given;
    AnswerBatch batch = kRareNeverGiven;
    batch.yes = 0.95;
    batch.says_yes = true;
    batch.says_no = false;
    for (model::StepIndex step = 0; step < 60; ++step) given.add(batch, step);
    EXPECT_FALSE(given.is_yes_rare());
    EXPECT_TRUE(given.is_never_given(kEightfold));
}

class AnswerBatchTest : public testing::Test {
  protected:
    AnswerBatchTest() {
        prediction_.shape = {64, 1};
        labelled_.count = 64;
        labelled_.mean = 0.25;
        labelled_.std = std::sqrt(0.25 * 0.75);
        labelled_.max = 1;
        predicted_.min = -2;
        predicted_.max = 0.4;
    }
    [[nodiscard]] std::optional<AnswerBatch> batch(std::string_view function) const {
        LossCall call;
        call.function = function;
        call.prediction = &prediction_;
        call.predicted = &predicted_;
        call.labelled = &labelled_;
        return answer_batch(call);
    }

    model::TensorInfo prediction_;
    model::Statistics predicted_, labelled_;
};

TEST_F(AnswerBatchTest, TheBorderIsThatOfTheFunction) {
    const auto logits = batch("binary_cross_entropy_with_logits"), chances = batch("binary_cross_entropy");
    ASSERT_TRUE(logits && chances);
    EXPECT_TRUE(logits->says_yes);
    EXPECT_FALSE(chances->says_yes);
    EXPECT_TRUE(chances->says_no);
    EXPECT_EQ(logits->labels, 64);
    EXPECT_EQ(logits->yes, 0.25);
}

TEST_F(AnswerBatchTest, OtherLossesSoftLabelsAndMapsAreNotMeant) {
    EXPECT_FALSE(batch("mse_loss"));
    prediction_.shape = {64, 1, 8, 8};
    EXPECT_FALSE(batch("binary_cross_entropy"));
    prediction_.shape = {64};
    EXPECT_TRUE(batch("binary_cross_entropy"));
    labelled_.std = 0.1;
    EXPECT_FALSE(batch("binary_cross_entropy"));
}

}  // namespace
}  // namespace traindbg::rules
