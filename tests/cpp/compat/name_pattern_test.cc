#include "traindbg/compat/name_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace traindbg::compat {
namespace {

struct Case {
    const char* pattern;
    std::vector<const char*> hits;
    std::vector<const char*> misses;
};

// What Python's `re.search` says, for the patterns that the original writes into every run.
TEST(NamePatternTest, TheOriginalsOwnPatternsAreKnown) {
    const std::vector<Case> cases = {
        {"^(?!gradient).*weight", {"Net_fc.weight", "weight"}, {"gradient/Net_fc.weight", "Net_fc.bias", ""}},
        {"^(?!gradient).*bias", {"Net_fc.bias"}, {"gradient/Net_fc.bias", "Net_fc.weight"}},
        {"^gradient", {"gradient/x", "gradients/x"}, {"x/gradient"}},
        {"[Ll]oss_(?!input).*output",
         {"CrossEntropyLoss_output_0", "loss_output", "Loss_x_output_1", "Loss_input_loss_output"},
         {"CrossEntropyLoss_input_0", "Loss_input_output", "oss_output", "boss_output", "Loss_"}},
        {".*loss._(?!input).*output",
         {"softmaxcrossentropyloss0_output_0", "lossx_output"},
         {"softmaxcrossentropyloss0_input_0", "loss_output", "loss0_", "loss"}},
        {"^weights/.*/((?!bias).)*$",
         {"weights/dense/kernel:0", "weights/bias/kernel:0"},
         {"weights/dense/bias:0", "weights/kernel:0", "x/weights/dense/kernel"}},
        {"^[a-zA-z]+-.+(?<!(auc|map))$",
         {"train-rmse", "validation-merror", "a_b-x"},
         {"train-auc", "validation-map", "validation_0-rmse", "-rmse", "train-", "train"}},
        {"^[a-zA-z]+-[a-zA-z0-9]+$", {"validation-rmse"}, {"validation_0-rmse", "train-ndcg@5"}},
        {"relu_output|Net_output", {"relu_output_0", "Net_output_0"}, {"relu_input_0"}},
    };
    for (const Case& one : cases) {
        const auto pattern = NamePattern::make(one.pattern);
        ASSERT_TRUE(pattern.is_ok()) << pattern.status().message();
        for (const char* name : one.hits) EXPECT_TRUE(pattern->matches(name)) << one.pattern << " " << name;
        for (const char* name : one.misses)
            EXPECT_FALSE(pattern->matches(name)) << one.pattern << " " << name;
    }
}

TEST(NamePatternTest, OtherLookAroundIsRefusedWithAReason) {
    for (const char* text : {"(?!x)y", "(?<=a)b", "(a)\\1", "(", "["}) {
        const auto pattern = NamePattern::make(text);
        EXPECT_EQ(pattern.status().code(), base::Code::kUnsupported) << text;
        EXPECT_NE(pattern.status().message().find(text), std::string::npos);
    }
}

TEST(NamePatternTest, NoPatternTakesLong) {
    const auto pattern = NamePattern::make("(a+)+$");
    ASSERT_TRUE(pattern.is_ok());
    EXPECT_FALSE(pattern->matches(std::string(100'000, 'a') + "!"));
}

}  // namespace
}  // namespace traindbg::compat
