#include "traindbg/rules/compatible/original_names.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace traindbg::rules::compatible {
namespace {

using model::Role;

struct Named {
    Role role;
    const char* ours;
    const char* original;
    bool is_in_all;
};

// One of each role, and what a name has beside.
const std::array kNamed = {
    Named{Role::kOther, "something", "something", true},
    Named{Role::kWeight, "weight/conv1.weight", "Net_conv1.weight", true},
    Named{Role::kBias, "bias/conv1.bias", "Net_conv1.bias", true},
    Named{Role::kGradient, "gradient/conv1.weight", "gradient/Net_conv1.weight", true},
    Named{Role::kLoss, "loss/cross_entropy", "CrossEntropyLoss_output_0", true},
    Named{Role::kLoss, "loss/binary_cross_entropy_with_logits", "BCEWithLogitsLoss_output_0", true},
    Named{Role::kLoss, "loss/mse_loss@2", "MSELoss_output_0", true},
    Named{Role::kLoss, "loss/dice", "dice_output_0", true},
    Named{Role::kLoss, "loss", "loss", true},
    Named{Role::kInput, "input/0", "Net_input_0", true},
    Named{Role::kOutput, "output/conv1", "conv1_output_0", true},
    Named{Role::kActivation, "activation/relu1", "relu1_output_0", true},
    Named{Role::kMetric, "accuracy", "accuracy", true},
    Named{Role::kClasses, "classes/cross_entropy", "classes/cross_entropy", false},
    Named{Role::kLoop, "loop/loss_is_of_weights_alone", "loop/loss_is_of_weights_alone", false},
    Named{Role::kOptimizerState, "optimizer_state/conv1.weight.exp_avg",
          "optimizer_state/conv1.weight.exp_avg", false},
    Named{Role::kWeightUpdate, "update_ratio/conv1.weight", "update_ratio/conv1.weight", false},
    Named{Role::kPrediction, "prediction/cross_entropy", "predictions", true},
    Named{Role::kLabel, "label/cross_entropy", "labels", true},
    Named{Role::kAttention, "attention/self_attn", "attention/self_attn", true},
    Named{Role::kGradientBefore, "gradient_before/conv1.weight", "gradient_before/conv1.weight", false},
    Named{Role::kBuffer, "buffer/bn.running_mean", "buffer/bn.running_mean", false},
    Named{Role::kBlockOutput, "block_output/block1", "block1_output_0", true},
    Named{Role::kBlockOutput, "block_output/model", "Net_output_0", true},
};

model::TensorInfo info_of(const Named& named) {
    model::TensorInfo info;
    info.name = named.ours;
    info.role = named.role;
    return info;
}

TEST(OriginalNamesOfTensors, EachRoleHasThatOfTheOriginal) {
    std::set<Role> seen;
    for (const Named& named : kNamed) {
        EXPECT_EQ(original_name(info_of(named), "Net"), named.original) << named.ours;
        seen.insert(named.role);
    }
    EXPECT_EQ(seen.size(), model::kRoleCount);
}

TEST(OriginalNamesOfTensors, WhatWeAloneRecordIsNotInAll) {
    for (const Named& named : kNamed) {
        EXPECT_EQ(is_in_collection(info_of(named), "all"), named.is_in_all) << named.ours;
        EXPECT_EQ(is_in_collection(info_of(named), "default"), named.is_in_all) << named.ours;
        EXPECT_TRUE(is_in_collection(info_of(named), model::collection_of(named.role))) << named.ours;
    }
}

TEST(OriginalNamesOfTensors, AClassThatARunNamesIsTheLosss) {
    model::TensorInfo info = info_of({Role::kLoss, "loss/cross_entropy", "", true});
    info.module_type = "FocalLoss";
    EXPECT_EQ(original_name(info, "Net"), "FocalLoss_output_0");
}

}  // namespace
}  // namespace traindbg::rules::compatible
