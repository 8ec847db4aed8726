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

TEST(RuleOptions, AHoldIsOfAllRulesAndOneOfARuleCountsMore) {
    RuleOptions options;
    options.only = {"overfit", "dead_relu"};
    options.hold = "20";
    options.settings = {"dead_relu.hold=30s"};
    const auto choices = options.choices({{"overfit", {{"hold", "5"}}}, {"dead_relu", {}}});
    ASSERT_TRUE(choices.is_ok()) << choices.status().message();
    EXPECT_EQ((*choices)[0].parameters, (rules::Parameters{{"hold", "20"}})) << "not that of the run before";
    EXPECT_EQ((*choices)[1].parameters, (rules::Parameters{{"hold", "30s"}}));
}

TEST(RuleOptions, AHoldThatIsNoneIsRefused) {
    RuleOptions options;
    options.hold = "soon";
    EXPECT_NE(options.choices().status().message().find("--hold: 'soon' is neither a number of steps, as 20"),
              std::string::npos);
    options.hold.clear();
    options.settings = {"overfit.hold=20x"};
    EXPECT_NE(options.choices().status().message().find("overfit.hold: '20x' is neither"), std::string::npos);
    options.settings = {"overfit.hodl=20"};
    EXPECT_NE(options.choices().status().message().find("did you mean 'hold'?"), std::string::npos);
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

TEST(RuleOptions, InstancesOfARuleAreSetAndLeftOutByTheirNames) {
    RuleOptions options;
    options.rules_json = testing::TempDir() + "instances.json";
    std::ofstream(options.rules_json) << R"([
        {"RuleConfigurationName": "w", "RuleParameters": {"rule_to_invoke": "UnchangedTensor",
                                                          "collection_names": "weights"}},
        {"RuleConfigurationName": "g.1", "RuleParameters": {"rule_to_invoke": "UnchangedTensor",
                                                            "collection_names": "gradients"}}])";
    const std::vector<std::string> both = {"UnchangedTensor:w", "UnchangedTensor:g.1"};
    ASSERT_EQ(names_of(options), both);
    options.settings = {"UnchangedTensor:g.1.num_steps=5", "UnchangedTensor.rtol=0.5"};
    const auto choices = options.choices();
    ASSERT_TRUE(choices.is_ok()) << choices.status().message();
    EXPECT_EQ(names_of(options), both);
    const rules::Parameters weights = (choices->end() - 2)->parameters;
    const rules::Parameters gradients = choices->back().parameters;
    EXPECT_EQ(weights, (rules::Parameters{{"collection_names", "weights"}, {"rtol", 0.5}}));
    EXPECT_EQ(gradients,
              (rules::Parameters{{"collection_names", "gradients"}, {"num_steps", 5}, {"rtol", 0.5}}));
    // A run that was judged by them has them again.
    RuleOptions later;
    later.only = {"UnchangedTensor"};
    EXPECT_EQ(later.choices(*choices)->size(), 2U);
    options.settings.clear();
    options.without = {"UnchangedTensor:w"};
    EXPECT_EQ(names_of(options), std::vector<std::string>{"UnchangedTensor:g.1"});
    options.without = {"UnchangedTensor"};
    EXPECT_TRUE(names_of(options).empty());
}

TEST(RuleOptions, CollectionsBesideARuleConfigurationAreCaptured) {
    RuleOptions options;
    options.only = {"LossNotDecreasing"};
    options.rules_json = testing::TempDir() + "attached.json";
    const auto write = [&](std::string_view collections) {
        std::ofstream(options.rules_json) << R"([{"DebugRuleConfiguration": {"RuleConfigurationName": "l",
                    "RuleParameters": {"rule_to_invoke": "LossNotDecreasing"}},
                   "CollectionConfigurations": )"
                                          << collections << "}]";
    };
    write(R"([{"CollectionName": "losses", "CollectionParameters": {"train.save_interval": "7"}},
              {"CollectionName": "heads", "CollectionParameters": {"include_regex": "head", "save_steps": "3"}}])");
    CaptureOptions capture;
    const auto attached = options.collections();
    ASSERT_TRUE(attached.is_ok()) << attached.status().message();
    capture.of_rules = *attached;
    const auto config = capture.config(*options.choices());
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    const auto has = [&](std::string_view collection, std::uint64_t every) {
        return std::any_of(config->requirements.begin(), config->requirements.end(), [&](const auto& each) {
            return each.collection == collection && each.schedule.every == every &&
                   each.asked_by == "LossNotDecreasing";
        });
    };
    EXPECT_TRUE(has("losses", 500));
    EXPECT_TRUE(has("losses", 7));
    EXPECT_TRUE(has("heads", 500));
    ASSERT_EQ(config->collections.size(), 1U);
    EXPECT_EQ(config->collections[0].name, "heads");

    options.without = {"LossNotDecreasing"};
    EXPECT_TRUE(options.collections()->empty());
    options.without.clear();
    // One that is not known is not dropped without a word.
    write(R"([{"CollectionName": "mine"}])");
    const auto refused = options.collections();
    ASSERT_FALSE(refused.is_ok());
    EXPECT_NE(refused.status().message().find("collection mine: is none of ours"), std::string::npos)
        << refused.status().message();
    EXPECT_NE(refused.status().message().find(options.rules_json), std::string::npos);
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
    options.probe = true;
    const auto config = options.config({});
    ASSERT_TRUE(config.is_ok()) << config.status().message();
    EXPECT_EQ(config->compiled, model::CompiledModels::kEager);
    EXPECT_EQ(config->micro_batches, model::MicroBatches::kAll);
    EXPECT_TRUE(config->probe);
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

TEST(CaptureOptions, OnlyTheDefaultRulesHaveAStandingLimit) {
    CaptureOptions options;
    const auto budget = [&](const std::vector<rules::RuleChoice>& choices) {
        return options.config(choices)->budget;
    };
    EXPECT_EQ(budget(rules::default_rules()), std::nullopt);
    EXPECT_EQ(budget({{"dead_relu", {}}}), std::nullopt) << "some of them";
    std::vector<rules::RuleChoice> set = rules::default_rules();
    const auto dead = std::find_if(
        set.begin(), set.end(), [](const rules::RuleChoice& choice) { return choice.name == "dead_relu"; });
    ASSERT_NE(dead, set.end());
    dead->parameters["window"] = 7;
    EXPECT_EQ(budget(set), 0) << "a parameter was set";
    EXPECT_EQ(budget({{"AllZero", {}}}), 0) << "one that is off by default";
    options.budget = "3%";
    EXPECT_EQ(budget(set), 0.03);
    options.budget = "0";
    EXPECT_EQ(budget(rules::default_rules()), 0);
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

std::string problem_of_schedule(const CaptureOptions& options) {
    const auto checked = options.check_schedule();
    return checked.is_ok() ? *checked : checked.status().message();
}

TEST(CaptureOptions, StepsOfWhichNoneIsDueAreRefusedWithTheirValues) {
    CaptureOptions options;
    options.collect = {"gradients"};
    EXPECT_EQ(problem_of_schedule(options), "");
    options.first_step = 10;
    options.end_step = 20;
    EXPECT_EQ(problem_of_schedule(options), "") << "step 10 is one of every 10";
    options.every = 100;
    EXPECT_EQ(
        problem_of_schedule(options),
        "--first-step 10, --end-step 20, --every 100: no step is due: from step 10 on and before step 20 "
        "there is no multiple of 100; change one of them");
    options.at_steps = {"3", "20"};
    EXPECT_NE(problem_of_schedule(options).find("--at-steps 3,20: no step is due"), std::string::npos);
    options.at_steps = {"19"};
    EXPECT_EQ(problem_of_schedule(options), "");
    options.at_steps.clear();
    options.every_seconds = 5;
    EXPECT_EQ(problem_of_schedule(options), "") << "by time any may be";
    options.every_seconds = 0;
    options.first_step = 0;
    EXPECT_EQ(problem_of_schedule(options), "") << "the first step is due";
    options.first_step = 1;
    options.end_step = 10;
    options.every = 0;
    EXPECT_NE(problem_of_schedule(options).find("--every 10 (by default)"), std::string::npos);
}

TEST(CaptureOptions, StepsOfNothingAreRefusedOnTheCommandLineAndToldElsewhere) {
    OptionSet set("run");
    CaptureOptions options;
    options.declare(set);
    options.hook_config = "which has steps of its own.json";
    EXPECT_EQ(problem_of_schedule(options), "");
    ASSERT_TRUE(set.apply({{"every", {"5"}, "traindbg.toml:3"}}).is_ok());
    const auto told = options.check_schedule();
    ASSERT_TRUE(told.is_ok()) << told.status().message();
    EXPECT_TRUE(told->starts_with("traindbg.toml:3: every: counts nothing")) << *told;
    options.end_step = 100;  // on the command line
    const auto refused = options.check_schedule();
    ASSERT_FALSE(refused.is_ok());
    EXPECT_NE(refused.status().message().find("--end-step: counts nothing"), std::string::npos)
        << refused.status().message();
    EXPECT_NE(refused.status().message().find("--collect weights,gradients"), std::string::npos);
    options.histograms = {"weights"};
    EXPECT_EQ(problem_of_schedule(options), "");
}

}  // namespace
}  // namespace traindbg::options
