#include "traindbg/settings/rules_json.h"

#include <gtest/gtest.h>

#include "traindbg/settings/hook_json.h"

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
    EXPECT_EQ((*read)[0].instance, "DeadRelu");
    EXPECT_EQ((*read)[0].parameters, (Parameters{{"other_trials", "base"}, {"threshold_layer", "60"}}));
    EXPECT_EQ((*read)[1].rule, "AllZero");
    EXPECT_EQ((*read)[1].parameters,
              (Parameters{
                  {"collection_names", "weights,biases"}, {"tensor_regex", "none"}, {"threshold", "99.5"}}));
    EXPECT_EQ((*read)[1].hook, "");
    EXPECT_TRUE(parse_rules_json("[]", "rules.json")->empty());
}

TEST(RulesJson, TheOtherRunsThatTheServiceNamesAreOtherTrials) {
    const auto read = parse_rules_json(R"([{"RuleParameters": {
        "rule_to_invoke": "SimilarAcrossRuns", "other_trial_1": "second", "other_trial_0": "first"}}])",
                                       "rules.json");
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    EXPECT_EQ(read->front().parameters, (Parameters{{"other_trials", "first,second"}}));
}

TEST(RulesJson, WhatJudgesNothingHereIsSetAside) {
    const auto read = parse_rules_json(R"([
        {"RuleParameters": {"rule_to_invoke": "CreateXgboostReport"}},
        {"RuleParameters": {"rule_to_invoke": "LowGPUUtilization", "threshold_p95": "70"}},
        {"RuleParameters": {"rule_to_invoke": "LossNotDecreasing"}}])",
                                       "rules.json");
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    ASSERT_EQ(read->size(), 3U);
    EXPECT_NE((*read)[0].set_aside.find("traindbg report"), std::string::npos);
    EXPECT_NE((*read)[1].set_aside, "");
    EXPECT_EQ((*read)[2].set_aside, "");
}

TEST(RulesJson, SeveralConfigurationsOfARuleAreInstancesOfIt) {
    const auto read = parse_rules_json(R"([
        {"RuleConfigurationName": "w", "RuleParameters": {"rule_to_invoke": "UnchangedTensor"}},
        {"RuleConfigurationName": "alone", "RuleParameters": {"rule_to_invoke": "AllZero"}},
        {"RuleConfigurationName": "a \u001b[1m", "RuleParameters": {"rule_to_invoke": "UnchangedTensor"}},
        {"RuleParameters": {"rule_to_invoke": "UnchangedTensor"}}])",
                                       "rules.json");
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    EXPECT_EQ((*read)[0].instance, "UnchangedTensor:w");
    EXPECT_EQ((*read)[1].instance, "AllZero");
    EXPECT_EQ((*read)[2].instance.find('\x1b'), std::string::npos);
    EXPECT_EQ((*read)[3].instance, "UnchangedTensor");
}

TEST(RulesJson, CollectionsBesideAConfigurationAreAHookConfiguration) {
    const auto read = parse_rules_json(R"([
        {"DebugRuleConfiguration": {"RuleParameters": {"rule_to_invoke": "LossNotDecreasing"}},
         "CollectionConfigurations": [{"CollectionName": "losses",
                                       "CollectionParameters": {"save_interval": "7"}}]}])",
                                       "rules.json");
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    const auto hook = parse_hook_json(read->front().hook, "rules.json");
    ASSERT_TRUE(hook.is_ok()) << hook.status().message();
    ASSERT_EQ(hook->captures.size(), 1U);
    EXPECT_EQ(hook->captures[0].collection, "losses");
    EXPECT_EQ(hook->captures[0].schedule.every, 7U);
}

TEST(RulesJson, WhatIsWrongIsNamed) {
    const auto problem = [](const char* text) {
        const auto read = parse_rules_json(text, "rules.json");
        return read.is_ok() ? "" : read.status().message();
    };
    EXPECT_EQ(problem("{"), "rules.json: is not JSON: it ends too early, in line 1");
    EXPECT_EQ(problem("{}"), "rules.json: has no DebugRuleConfigurations, and is no list of them");
    EXPECT_EQ(problem(R"({"DebugRuleConfigurations": {}})"),
              "rules.json: DebugRuleConfigurations: expected a list");
    EXPECT_EQ(problem("[3]"), "rules.json: configuration 1: expected an object");
    EXPECT_EQ(problem(R"([{"RuleConfigurationName": "a", "RuleParameters": {"threshold": "1"}}])"),
              "rules.json: configuration 1 (a): RuleParameters has no rule_to_invoke");
    EXPECT_EQ(problem(R"([{}])"), "rules.json: configuration 1: RuleParameters has no rule_to_invoke");
    EXPECT_EQ(problem(R"([{"RuleParameters": {"rule_to_invoke": "A", "threshold": {}}}])"),
              "rules.json: configuration 1: threshold: expected a text");
    EXPECT_EQ(problem(R"([{"RuleConfigurationName": "w", "RuleParameters": {"rule_to_invoke": "A"}},
                          {"RuleConfigurationName": "w", "RuleParameters": {"rule_to_invoke": "A"}}])"),
              "rules.json: A is configured twice as w; give each a RuleConfigurationName of its own");
    EXPECT_EQ(
        problem(R"([{"RuleParameters": {"rule_to_invoke": "A"}},
                          {"RuleParameters": {"rule_to_invoke": "A"}}])"),
        "rules.json: A is configured twice without a name; give each a RuleConfigurationName of its own");
    EXPECT_NE(problem(R"([{"RuleParameters": {"rule_to_invoke": "A", "source_s3_uri": "s3://x"}}])"), "");
}

}  // namespace
}  // namespace traindbg::settings
