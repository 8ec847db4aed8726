#include "traindbg/options/rule_options.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "traindbg/rules/rule.h"

namespace traindbg::options {
namespace {

std::string first_rule() { return rules::builtin_rules().front().info->name; }
// A rule with a parameter, and that parameter.
std::pair<std::string, model::ParameterInfo> some_parameter() {
    for (const rules::RuleEntry& entry : rules::builtin_rules())
        if (!entry.info->parameters.empty()) return {entry.info->name, entry.info->parameters.front()};
    return {};
}

TEST(RuleOptions, ByDefaultEveryRuleIsChosen) {
    const auto choices = RuleOptions().choices();
    ASSERT_TRUE(choices.is_ok());
    EXPECT_EQ(choices->size(), rules::builtin_rules().size());
}

TEST(RuleOptions, OnlyThoseNamedAndWithoutThoseExcluded) {
    RuleOptions options;
    options.only = {first_rule(), first_rule()};
    ASSERT_EQ(options.choices()->size(), 1U);
    options.only.clear();
    options.without = {first_rule()};
    EXPECT_EQ(options.choices()->size(), rules::builtin_rules().size() - 1);
}

TEST(RuleOptions, AnUnknownRuleIsAnErrorThatNamesTheOptionAndTheNearest) {
    std::string wrong = first_rule();
    std::swap(wrong[0], wrong[1]);
    for (const int which : {0, 1, 2}) {
        RuleOptions options;
        if (which == 0) options.only = {wrong};
        if (which == 1) options.without = {wrong};
        if (which == 2) options.settings = {wrong + ".x=1"};
        const auto choices = options.choices();
        ASSERT_FALSE(choices.is_ok());
        EXPECT_NE(choices.status().message().find("--"), std::string::npos);
        EXPECT_NE(choices.status().message().find(first_rule()), std::string::npos)
            << choices.status().message();
    }
}

TEST(RuleOptions, ASettingReachesTheRuleAndABadOneIsRefused) {
    const auto [rule, parameter] = some_parameter();
    ASSERT_FALSE(rule.empty());
    RuleOptions options;
    options.settings = {rule + "." + parameter.name + "=" + std::to_string(parameter.max)};
    const auto choices = options.choices();
    ASSERT_TRUE(choices.is_ok()) << choices.status().message();
    const auto chosen =
        std::find_if(choices->begin(), choices->end(),
                     [&, name = rule](const rules::RuleChoice& choice) { return choice.name == name; });
    ASSERT_NE(chosen, choices->end());
    EXPECT_NEAR(chosen->parameters.at(parameter.name), parameter.max, 1e-5);

    for (const std::string& bad : {rule + ".x", rule + "=1", rule + "." + parameter.name + "=",
                                   rule + "." + parameter.name + "=1x", rule + "." + parameter.name + "=nan",
                                   rule + "." + parameter.name + "x=" + std::to_string(parameter.max),
                                   rule + "." + parameter.name + "=1e300"}) {
        options.settings = {bad};
        EXPECT_FALSE(options.choices().is_ok()) << bad;
    }
}

TEST(RuleOptions, ASettingOfARuleThatIsNotEnabledIsRefused) {
    const auto [rule, parameter] = some_parameter();
    RuleOptions options;
    options.without = {rule};
    options.settings = {rule + "." + parameter.name + "=" + std::to_string(parameter.max)};
    const auto choices = options.choices();
    ASSERT_FALSE(choices.is_ok());
    EXPECT_NE(choices.status().message().find("not enabled"), std::string::npos);
}

std::vector<std::string> names_of(const RuleOptions& options) {
    const auto choices = options.choices();
    EXPECT_TRUE(choices.is_ok()) << choices.status().message();
    std::vector<std::string> names;
    for (const rules::RuleChoice& choice : *choices)
        if (!rules::is_on_by_default(choice.name)) names.push_back(choice.name);
    return names;
}

TEST(RuleOptions, ARuleThatIsOffByDefaultIsChosenBySettingIt) {
    RuleOptions options;
    EXPECT_EQ(names_of(options), std::vector<std::string>());
    options.settings = {"VanishingGradient.threshold=1e-6", "AllZero",
                        "ExplodingTensor.collection_names=weights,biases"};
    EXPECT_EQ(names_of(options),
              (std::vector<std::string>{"VanishingGradient", "AllZero", "ExplodingTensor"}));
    const auto choices = options.choices();
    EXPECT_EQ(choices->size(), rules::default_rules().size() + 3);
    EXPECT_EQ(choices->back().parameters, (rules::Parameters{{"collection_names", "weights,biases"}}));
    options.only = {first_rule()};
    EXPECT_NE(options.choices().status().message().find("not enabled"), std::string::npos);
    options.settings = {"AllZero"};
    EXPECT_EQ(options.choices()->size(), 2U);
    options.without = {"AllZero"};
    EXPECT_FALSE(options.choices().is_ok());
}

TEST(RuleOptions, ASettingsFileChoosesThemToo) {
    RuleOptions options;
    options.file.rule_settings = {"VanishingGradient.threshold=1e-6", "AllZero", first_rule()};
    EXPECT_EQ(names_of(options), (std::vector<std::string>{"VanishingGradient", "AllZero"}));
    options.without = {"AllZero"};
    EXPECT_EQ(names_of(options), (std::vector<std::string>{"VanishingGradient"}));
    options.only = {first_rule()};
    EXPECT_EQ(options.choices()->size(), 1U);
}

TEST(RuleOptions, RuleConfigurationsOfTheOriginalAreTaken) {
    const std::string path = testing::TempDir() + "rules.json";
    const auto write = [&](std::string_view text) { std::ofstream(path) << text; };
    RuleOptions options;
    options.rules_json = path;
    write(
        R"([{"RuleConfigurationName": "dead", "RuleParameters": {"rule_to_invoke": "DeadRelu", "threshold_layer": "60"}},
              {"RuleConfigurationName": "loss", "RuleParameters": {"rule_to_invoke": "LossNotDecreasing",
               "use_losses_collection": "False", "mode": "TRAIN", "tensor_regex": ".*loss"}}])");
    ASSERT_EQ(names_of(options), (std::vector<std::string>{"DeadRelu", "LossNotDecreasing"}));
    EXPECT_EQ(
        options.choices()->back().parameters,
        (rules::Parameters{{"mode", "TRAIN"}, {"tensor_regex", ".*loss"}, {"use_losses_collection", false}}));
    options.without = {"DeadRelu"};
    EXPECT_EQ(names_of(options), (std::vector<std::string>{"LossNotDecreasing"}));
    for (const char* bad :
         {"[{}]", R"([{"RuleParameters": {"rule_to_invoke": "DeadRely"}}])",
          R"([{"RuleParameters": {"rule_to_invoke": "DeadRelu", "threshold_layer": "many"}}])",
          R"([{"RuleParameters": {"rule_to_invoke": "AllZero"}},
                                {"RuleParameters": {"rule_to_invoke": "AllZero"}}])"}) {
        write(bad);
        const auto choices = options.choices();
        ASSERT_FALSE(choices.is_ok()) << bad;
        EXPECT_NE(choices.status().message().find("rule configuration " + path), std::string::npos)
            << choices.status().message();
    }
    options.rules_json += ".gone";
    EXPECT_EQ(options.choices().status().code(), base::Code::kNotFound);
}

TEST(CaptureOptions, WhatTheUserWantsIsAddedToWhatTheRulesNeed) {
    CaptureOptions options;
    options.collect = {"weights"};
    options.raw = {"losses"};
    options.histograms = {"gradients"};
    options.collections = {"heads=attention.*weight", "heads=query"};
    options.every = 7;
    options.compiled = "eager";
    options.micro_batches = "all";
    const auto config = options.config({});
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    EXPECT_EQ(config->compiled, model::CompiledModels::kEager);
    EXPECT_EQ(config->micro_batches, model::MicroBatches::kAll);
    ASSERT_EQ(config->collections.size(), 1U);
    EXPECT_EQ(config->collections[0].include, (std::vector<std::string>{"attention.*weight", "query"}));
    ASSERT_EQ(config->requirements.size(), 4U);
    EXPECT_EQ(config->requirements[3].collection, "gradients");
    EXPECT_TRUE(model::has(config->requirements[3].what, model::What::kHistogram));
    EXPECT_EQ(config->requirements[0].collection, "weights");
    EXPECT_EQ(config->requirements[1].collection, "heads");
    EXPECT_EQ(config->requirements[2].collection, "losses");
    EXPECT_TRUE(model::has(config->requirements[2].what, model::What::kRaw));
    for (const model::Requirement& requirement : config->requirements) {
        EXPECT_EQ(requirement.schedule.every, 7U);
        EXPECT_EQ(requirement.asked_by, "user");
    }
}

TEST(CaptureOptions, UnknownCollectionsAndBadPatternsAreRefused) {
    CaptureOptions options;
    options.collect = {"gradient"};
    EXPECT_NE(options.config({}).status().message().find("did you mean 'gradients'"), std::string::npos);
    options.collect.clear();
    for (const char* bad : {"heads", "heads=", "=x", "a b=x", "weights=x", "heads=("}) {
        options.collections = {bad};
        EXPECT_FALSE(options.config({}).is_ok()) << bad;
    }
}

}  // namespace
}  // namespace traindbg::options
