#include "traindbg/rules/input_differences.h"

#include <gtest/gtest.h>

#include <cmath>

namespace traindbg::rules {
namespace {

constexpr InputLimits kUsualLimits;

// 8 columns of 1024 rows.
class InputDifferencesTest : public testing::Test {
  protected:
    InputDifferencesTest() {
        info_.role = model::Role::kInput;
        info_.dtype = tensor::DType::kFloat32;
        info_.shape = {1024, 8};
    }
    [[nodiscard]] static model::Statistics batch(double mean, double std) {
        model::Statistics values;
        values.count = 8192;
        values.mean = mean;
        values.std = std;
        values.min = mean - 2 * std;
        values.max = mean + 2 * std;
        return values;
    }
    void train(double mean, double std, int batches = 6) {
        // Batches differ by a hundredth of their spread.
        for (int i = 0; i < batches; ++i) input_.add_training(info_, batch(mean + 0.01 * (i % 2), std));
    }
    void evaluate(double mean, double std, int batches = 2) {
        for (int i = 0; i < batches; ++i) input_.add_evaluation(batch(mean, std));
    }
    [[nodiscard]] bool differ() const { return do_inputs_differ(input_, kUsualLimits, rows_); }
    [[nodiscard]] bool has_drifted(bool has_before = false) const {
        return rules::has_drifted(input_, kUsualLimits, has_before);
    }
    // Hooks tell of an evaluation without a loss.
    void know_rows(double evaluated, double again) {
        model::TensorTable tensors(2);
        tensors[0].name = "loop/rows_unscored_of";
        tensors[1].name = "loop/rows_unscored_again";
        for (model::TensorInfo& info : tensors) info.role = model::Role::kLoop;
        model::StepRecord record;
        record.scalars = {{0, evaluated}, {1, again}};
        const model::WorkerMeta meta;
        rows_.observe({0, &record, &tensors, &meta});
    }

    model::TensorInfo info_;
    InputValues input_;
    KnownRows rows_;
};

TEST_F(InputDifferencesTest, AnotherLevelOrSpreadDiffers) {
    train(0, 1);
    evaluate(2, 1);
    EXPECT_TRUE(differ());
}

TEST_F(InputDifferencesTest, AnotherSpreadDiffers) {
    train(0, 1);
    evaluate(0, 3);
    EXPECT_TRUE(differ());
}

TEST_F(InputDifferencesTest, ALittleIsNoDifference) {
    train(0, 1);
    evaluate(0.5, 1.5);
    EXPECT_FALSE(differ());
}

TEST_F(InputDifferencesTest, WhatBatchesDifferByAmongThemselvesIsNoDifference) {
    for (int i = 0; i < 6; ++i) input_.add_training(info_, batch(i % 2 == 0 ? -1 : 1, 1));
    evaluate(2, 1);
    EXPECT_FALSE(differ());
}

TEST_F(InputDifferencesTest, MoreZerosAndOtherwiseTheSameIsPadding) {
    const auto padded = [](double share) {  // of values that are 4 and 6
        model::Statistics values = batch(5 * (1 - share), 0);
        values.std = std::sqrt(26 * (1 - share) - values.mean * values.mean);
        values.zero = static_cast<std::uint64_t>(share * 8192);
        return values;
    };
    for (int i = 0; i < 6; ++i) input_.add_training(info_, padded(0.125));
    for (int i = 0; i < 2; ++i) input_.add_evaluation(padded(0.75));
    EXPECT_TRUE(is_padding(input_));
    EXPECT_FALSE(differ());
    input_.evaluation.all.zero = 0;
    EXPECT_FALSE(is_padding(input_));
}

TEST_F(InputDifferencesTest, OneBatchIsAValidationWhereTheSameRowsCameAgain) {
    train(0, 1);
    evaluate(2, 1, 1);
    EXPECT_FALSE(differ());
    know_rows(1024, 1);
    EXPECT_FALSE(differ());
    know_rows(1024, 2);
    EXPECT_TRUE(differ());
    know_rows(4096, 2);  // it is a quarter of them
    EXPECT_FALSE(differ());
}

TEST_F(InputDifferencesTest, OneNarrowerBatchIsNoValidation) {
    train(0, 1);
    evaluate(0, 0.2, 1);
    know_rows(1024, 2);
    EXPECT_FALSE(differ());
}

TEST_F(InputDifferencesTest, ATimeThatGoesOnIsWhereTheTrainingEnds) {
    info_.shape = {1024};
    model::Statistics ours = batch(5, std::sqrt(100.0 / 12)), theirs = batch(11, 0.5);
    ours.min = 0;
    ours.max = 10;
    theirs.min = 10.1;
    for (int i = 0; i < 6; ++i) input_.add_training(info_, ours);
    input_.add_evaluation(theirs);
    EXPECT_TRUE(goes_on(input_));
    input_.evaluation.all.min = 14;
    EXPECT_FALSE(goes_on(input_));
}

TEST_F(InputDifferencesTest, TheTrainingDriftsFromWhatTheFirstEvaluationHad) {
    train(0, 1, 5);
    evaluate(0, 1, 1);
    for (int i = 0; i < 40; ++i) input_.add_training(info_, batch(-3 - 0.01 * i, 1));
    EXPECT_TRUE(has_drifted());
}

TEST_F(InputDifferencesTest, WhatBeganAsOtherInputsDidNotDrift) {
    train(0, 1, 5);
    evaluate(1, 1, 1);
    for (int i = 0; i < 40; ++i) input_.add_training(info_, batch(-3 - 0.01 * i, 1));
    EXPECT_FALSE(has_drifted());
}

TEST_F(InputDifferencesTest, OneBatchThatComesTwiceTellsNothingNew) {
    train(0, 1, 5);
    evaluate(0, 1, 1);
    for (int i = 0; i < 10; ++i) input_.add_training(info_, batch(-3, 1));
    EXPECT_FALSE(has_drifted(false));
    EXPECT_TRUE(has_drifted(true));
}

}  // namespace
}  // namespace traindbg::rules
