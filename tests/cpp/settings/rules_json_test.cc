#include "traindbg/settings/rules_json.h"

#include <gtest/gtest.h>

namespace traindbg::settings {
namespace {

using Parameters = std::vector<std::pair<std::string, std::string>>;

TEST(RulesJson, AConfigurationIsARuleWithTexts) {
    const auto read = parse_rules_json(R"({"DebugRuleConfigurations": [
        {"RuleConfigurationName": "mine", "RuleEvaluatorImage": "somewhere",
         "RuleParameters": {"rule_to_invoke": "DeadRelu", "threshold_layer": "60", "base_trial": "s3://x",
                            "other_trial_0": "s3://y", "other_trials": "base", "action_json": ""}},
        {"DebugRuleConfiguration": {"RuleParameters": {"rule_to_invoke": "AllZero",
                                                       "collection_names": ["weights", "biases"],
                                                       "threshold": 99.5, "tensor_regex": null}},
         "CollectionConfigurations": []}]})",
                                       "rules.json");
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    ASSERT_EQ(read->size(), 2U);
    EXPECT_EQ((*read)[0].name, "mine");
    EXPECT_EQ((*read)[0].rule, "DeadRelu");
    EXPECT_EQ((*read)[0].parameters, (Parameters{{"other_trials", "base"}, {"threshold_layer", "60"}}));
    EXPECT_EQ((*read)[1].rule, "AllZero");
    EXPECT_EQ((*read)[1].parameters,
              (Parameters{
                  {"collection_names", "weights,biases"}, {"tensor_regex", "none"}, {"threshold", "99.5"}}));
    EXPECT_TRUE(parse_rules_json("[]", "rules.json")->empty());
}

TEST(RulesJson, WhatIsWrongIsNamed) {
    const auto problem = [](const char* text) {
        const auto read = parse_rules_json(text, "rules.json");
        return read.is_ok() ? "" : read.status().message();
    };
    EXPECT_EQ(problem("{"), "rules.json: is not JSON");
    EXPECT_EQ(problem("{}"), "rules.json: has no DebugRuleConfigurations, and is no list of them");
    EXPECT_EQ(problem(R"({"DebugRuleConfigurations": {}})"),
              "rules.json: DebugRuleConfigurations: expected a list");
    EXPECT_EQ(problem("[3]"), "rules.json: configuration 1: expected an object");
    EXPECT_EQ(problem(R"([{"RuleConfigurationName": "a", "RuleParameters": {"threshold": "1"}}])"),
              "rules.json: configuration 1 (a): RuleParameters has no rule_to_invoke");
    EXPECT_EQ(problem(R"([{}])"), "rules.json: configuration 1: RuleParameters has no rule_to_invoke");
    EXPECT_EQ(problem(R"([{"RuleParameters": {"rule_to_invoke": "A", "threshold": {}}}])"),
              "rules.json: configuration 1: threshold: expected a text");
    EXPECT_NE(problem(R"([{"RuleParameters": {"rule_to_invoke": "A", "source_s3_uri": "s3://x"}}])"), "");
}

}  // namespace
}  // namespace traindbg::settings
