#include "traindbg/rules/loss_ratio.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace traindbg::rules {
namespace {

class LossRatioTest : public testing::Test {
  protected:
    LossRatioTest() {
        for (const std::string name : {"loss/mse_loss", "loss/l1_loss"}) {
            model::TensorInfo& info = tensors_.emplace_back();
            info.name = name;
            info.role = model::Role::kLoss;
        }
    }
    void tell(model::Mode mode, model::TensorId loss, double value) {
        model::StepRecord record;
        record.mode = mode;
        record.scalars = {{loss, value}};
        ratio_.observe({0, &record, &tensors_, &meta_});
    }

    model::TensorTable tensors_;
    model::WorkerMeta meta_;
    LossRatio ratio_;
};

TEST_F(LossRatioTest, IsOfTheLastLossesOfAFunctionThatBothHave) {
    tell(model::Mode::kEval, 1, 9);
    EXPECT_FALSE(ratio_.value());
    for (int i = 0; i < 10; ++i) tell(model::Mode::kTrain, 0, 100);
    for (int i = 0; i < 10; ++i) tell(model::Mode::kTrain, 0, 2);
    EXPECT_FALSE(ratio_.value());
    tell(model::Mode::kEval, 0, 3);
    tell(model::Mode::kEval, 0, NAN);
    EXPECT_EQ(ratio_.value(), 1.5);
}

TEST_F(LossRatioTest, WhatIsNotKnownMayBeWorse) {
    EXPECT_TRUE(may_be_worse(ratio_.value()));
    EXPECT_FALSE(is_worse(ratio_.value()));
    EXPECT_FALSE(may_be_worse(1.3));
    EXPECT_TRUE(is_worse(1.31));
}

}  // namespace
}  // namespace traindbg::rules
