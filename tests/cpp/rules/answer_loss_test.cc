#include "traindbg/rules/answer_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace traindbg::rules {
namespace {

class AnswerLossTest : public testing::Test {
  protected:
    // One step in which a tensor has this value.
    void tell(const std::string& name, double value, model::Role role) {
        model::TensorTable tensors(1);
        tensors[0].name = name;
        tensors[0].role = role;
        model::StepRecord record;
        record.scalars.push_back({0, value});
        const model::StepView step = {0, &record, &tensors, &meta_};
        loss_.observe(step);
        loss_.add(step);
    }
    [[nodiscard]] model::Finding weighed(double yes, bool now_and_then) const {
        model::Finding finding;
        loss_.weigh(finding, yes, now_and_then);
        return finding;
    }

    model::WorkerMeta meta_;
    AnswerLoss loss_;
};

TEST_F(AnswerLossTest, TheBestConstantAnswerHasTheEntropyAsItsLoss) {
    EXPECT_NEAR(loss_.constant_loss(0.1), -0.1 * std::log(0.1) - 0.9 * std::log(0.9), 1e-12);
    loss_.set_weight(9);
    EXPECT_NEAR(loss_.constant_loss(0.1), 1.8 * std::log(2), 1e-12);
    EXPECT_EQ(loss_.constant_loss(0), 0);
}

TEST_F(AnswerLossTest, ALossWellBelowThatOfFrequencyAloneIsSoundWhereTheAnswerIsGiven) {
    tell("loss/binary_cross_entropy", 0.2, model::Role::kLoss);
    EXPECT_EQ(weighed(0.1, true).severity, model::Severity::kInfo);
    EXPECT_EQ(weighed(0.1, false).severity, model::Severity::kWarning);
    tell("loss/binary_cross_entropy", 0.6, model::Role::kLoss);
    EXPECT_EQ(weighed(0.1, true).severity, model::Severity::kWarning);
    ASSERT_EQ(weighed(0.1, true).evidence.size(), 1U);
    EXPECT_NEAR(weighed(0.1, true).evidence.front().value, 0.4, 1e-12);
}

TEST_F(AnswerLossTest, WithoutALossNothingIsSaidOfIt) {
    EXPECT_EQ(weighed(0.1, true).severity, model::Severity::kWarning);
    EXPECT_TRUE(weighed(0.1, true).evidence.empty());
}

TEST_F(AnswerLossTest, AModelThatIsJudgedByItsOrderIsSoundUnlessAWeightIsTurned) {
    tell("loop/judges_order", 1, model::Role::kLoop);
    EXPECT_EQ(weighed(0.1, false).severity, model::Severity::kInfo);
    EXPECT_EQ(loss_.about_weight(true), "");
    loss_.set_weight(0.1);
    EXPECT_EQ(weighed(0.1, false).severity, model::Severity::kWarning);
    EXPECT_EQ(loss_.about_weight(true), " pos_weight is 0.1, which makes them count less, not more.");
    EXPECT_EQ(loss_.about_weight(false), "");
}

}  // namespace
}  // namespace traindbg::rules
