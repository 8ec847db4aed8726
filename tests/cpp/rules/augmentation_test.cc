#include "traindbg/rules/augmentation.h"

#include <gtest/gtest.h>

namespace traindbg::rules {
namespace {

constexpr AugmentationLimits kUsualAugmentation;

// Training and evaluation, each with a spread and a share of zeros in its values.
InputValues augmented(double ours, double theirs, double our_zeros = 0, int evaluated = 2) {
    const auto batch = [](double std, double zeros) {
        model::Statistics values;
        values.count = 10000;
        values.std = std;
        values.zero = static_cast<std::uint64_t>(10000 * zeros);
        return values;
    };
    model::TensorInfo info;
    info.shape = {1000, 10};
    InputValues input;
    for (int i = 0; i < 6; ++i) {
        model::Statistics values = batch(ours, our_zeros);
        values.zero += our_zeros > 0 ? static_cast<std::uint64_t>(i % 2) : 0;
        input.add_training(info, values);
    }
    for (int i = 0; i < evaluated; ++i) input.add_evaluation(batch(theirs, 0));
    return input;
}

TEST(AugmentationTest, NoiseThatDrownsTheInputsLeavesTooLittle) {
    EXPECT_TRUE(is_augmented_away(augmented(3, 1), {.share = 0.9, .ratio = 1}, kUsualAugmentation));
    EXPECT_FALSE(is_augmented_away(augmented(1.2, 1), {.share = 0.9, .ratio = 1}, kUsualAugmentation));
}

TEST(AugmentationTest, WhatLearnsIsLeftEnough) {
    EXPECT_FALSE(is_augmented_away(augmented(3, 1), {.share = 0.5, .ratio = 1}, kUsualAugmentation));
    EXPECT_FALSE(is_augmented_away(augmented(3, 1), {.share = 0.9, .ratio = 0.6}, kUsualAugmentation));
}

TEST(AugmentationTest, MasksLeaveTooLittleWhateverTheEvaluationSaysWhereTheyTakeMost) {
    EXPECT_TRUE(is_augmented_away(augmented(1, 1, 0.4), {.share = 0.9, .ratio = 1}, kUsualAugmentation));
    EXPECT_FALSE(is_augmented_away(augmented(1, 1, 0.4), {.share = 0.9, .ratio = 0.6}, kUsualAugmentation));
    EXPECT_TRUE(is_augmented_away(augmented(1, 1, 0.9), {.share = 0.9, .ratio = 0.6}, kUsualAugmentation));
}

TEST(AugmentationTest, OneBatchIsEnoughForWhatIsNoMatterOfAFewValues) {
    EXPECT_FALSE(is_augmented_away(augmented(3, 1, 0, 1), {.share = 0.9}, kUsualAugmentation));
    EXPECT_TRUE(is_augmented_away(augmented(4.5, 1, 0, 1), {.share = 0.9}, kUsualAugmentation));
    EXPECT_TRUE(is_augmented_away(augmented(1, 1, 0.9, 1), {.share = 0.9}, kUsualAugmentation));
}

TEST(AugmentationTest, OfTurnedColoursLessIsLearned) {
    const AugmentedTraining turned = {.share = 0.5, .ratio = 1, .are_colours_turned = true};
    EXPECT_TRUE(is_augmented_away(augmented(1, 1), turned, kUsualAugmentation));
}

}  // namespace
}  // namespace traindbg::rules
