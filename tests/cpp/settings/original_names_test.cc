#include "traindbg/settings/original_names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "traindbg/base/pattern.h"

namespace traindbg::settings {
namespace {

// Those of our names that the original's pattern means.
std::vector<std::string> found_by(const std::string& pattern) {
    static const std::vector<std::string> kNames = {"weight/conv1.weight",
                                                    "bias/conv1.bias",
                                                    "gradient/conv1.weight",
                                                    "output/conv1",
                                                    "activation/relu",
                                                    "activation/block.relu",
                                                    "activation/relu@2",
                                                    "output/relu.proj",
                                                    "output/model",
                                                    "input/0",
                                                    "loss/cross_entropy",
                                                    "loss/mse_loss",
                                                    "prediction/cross_entropy",
                                                    "label/cross_entropy",
                                                    "loss"};
    std::vector<std::string> out;
    for (const std::string& name : kNames)
        for (const std::string& ours : in_our_names(pattern).patterns) {
            const auto compiled = base::Pattern::make(ours);
            EXPECT_TRUE(compiled.is_ok()) << ours;
            if (!compiled.is_ok() || !compiled->matches(name)) continue;
            out.push_back(name);
            break;
        }
    return out;
}

using Names = std::vector<std::string>;

TEST(OriginalNames, OutputsOfModules) {
    const Names relus = {"activation/relu", "activation/block.relu", "activation/relu@2"};
    for (const char* pattern : {"relu_output", ".*relu_output", "relu_output_0", "relu_output_\\d+$",
                                "relu_output.*", "(relu|gelu)_output"})
        EXPECT_EQ(found_by(pattern), relus) << pattern;
    EXPECT_EQ(found_by("^relu_output"), (Names{"activation/relu", "activation/relu@2"}));
    EXPECT_EQ(found_by("tanh_output|^conv1_output"), Names{"output/conv1"});
    EXPECT_EQ(found_by("conv\\d_output"), Names{"output/conv1"});
}

TEST(OriginalNames, TheOutputOfTheModelHasTheNameOfItsClass) {
    EXPECT_EQ(found_by("Net_output_0"), Names{"output/model"});
    EXPECT_EQ(found_by("^Net_output"), Names{"output/model"});
    EXPECT_EQ(found_by("DiceLoss_output_0"), Names{}) << "it is no model";
    EXPECT_EQ(found_by("Mixed_5b_output_0"), Names{}) << "it is a module's name";
}

TEST(OriginalNames, ParametersBehindTheClassOfTheModel) {
    EXPECT_EQ(found_by("Net_conv1"), (Names{"weight/conv1.weight", "bias/conv1.bias"}));
    EXPECT_EQ(found_by("^Net_conv1.weight"), Names{"weight/conv1.weight"});
    EXPECT_EQ(found_by("^gradient/Net_conv1"), Names{"gradient/conv1.weight"});
    EXPECT_EQ(found_by("gradient/Other_fc"), Names{});
}

TEST(OriginalNames, LossesAndWhatTheyAreGiven) {
    EXPECT_EQ(found_by("CrossEntropyLoss_output_0"), Names{"loss/cross_entropy"});
    EXPECT_EQ(found_by("CrossEntropyLoss_input_0"), Names{"prediction/cross_entropy"});
    EXPECT_EQ(found_by("CrossEntropyLoss_input"), (Names{"prediction/cross_entropy", "label/cross_entropy"}));
    EXPECT_EQ(found_by("Loss_output"), (Names{"loss/cross_entropy", "loss/mse_loss"}));
}

TEST(OriginalNames, WhatIsWrittenForOurNamesMeansNothingMore) {
    for (const char* pattern : {"weight/conv1", "^activation/relu", "bias", "gradient", "attn.*(q|k)", "["}) {
        EXPECT_TRUE(in_our_names(pattern).patterns.empty()) << pattern;
        EXPECT_TRUE(in_our_names(pattern).missing.empty()) << pattern;
    }
}

TEST(OriginalNames, WhatIsNotCapturedIsNamed) {
    EXPECT_NE(in_our_names(".*relu_input").missing.find("inputs of modules inside"), std::string::npos);
    EXPECT_NE(in_our_names("conv1_output|Linear.*_input").missing.find("inputs of modules"),
              std::string::npos);
    EXPECT_NE(in_our_names("lstm_output_1").missing.find("other outputs"), std::string::npos);
    for (const char* pattern : {"_input_0", ".*_input", "CrossEntropyLoss_input_1", "relu_output"})
        EXPECT_TRUE(in_our_names(pattern).missing.empty()) << pattern;
    EXPECT_EQ(found_by(".*_input_0"), (Names{"input/0", "prediction/cross_entropy"}));
}

}  // namespace
}  // namespace traindbg::settings
