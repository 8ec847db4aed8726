#include "traindbg/options/watch_settings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "traindbg/options/option_set.h"
#include "traindbg/options/run_options.h"

namespace traindbg::options {
namespace {

using base::Code;
using Words = std::vector<std::string>;

SettingsFile file_of(const std::string& text) {
    return {.path = "x.toml", .settings = settings::parse(text, "x.toml", settings::Form::kTraindbg).value()};
}

WatchSettings meaning_of(const std::string& text, const WatchArguments& arguments = {}) {
    auto settings = settings_for_watch(file_of(text), arguments);
    EXPECT_TRUE(settings.is_ok()) << settings.status().message();
    return settings.is_ok() ? std::move(settings).value() : WatchSettings();
}

// Collections that the user asked for, in order, and their intervals.
std::vector<std::pair<std::string, std::uint64_t>> wishes(const WatchSettings& settings) {
    std::vector<std::pair<std::string, std::uint64_t>> out;
    for (const model::Requirement& each : settings.plan.requirements)
        if (each.asked_by == "user") out.emplace_back(each.collection, each.schedule.every);
    return out;
}

constexpr const char* kFile = R"(
collect = ["weights", "heads"]
raw = "losses"
every = 20
budget = "2%"
keep-last = 100
rules = ["overfit", "dead_relu"]
no-rule = "dead_relu"
[rule.overfit]
patience = 3
[collection]
heads = "^weight"
)";

TEST(WatchSettings, AFileMeansWhatItMeansForTheProgram) {
    OptionSet set("run");
    RunOptions program;
    program.declare(set);
    ASSERT_TRUE(apply_file(file_of(kFile), set).is_ok());
    const auto choices = program.rules.choices();
    ASSERT_TRUE(choices.is_ok());
    auto plan = program.capture.config(*choices);
    ASSERT_TRUE(plan.is_ok());
    ASSERT_TRUE(program.store.apply(*plan).is_ok());

    const WatchSettings watch = meaning_of(kFile);
    EXPECT_EQ(watch.plan, *plan);
    ASSERT_TRUE(watch.rules);
    ASSERT_EQ(watch.rules->size(), 1U);
    EXPECT_EQ(watch.rules->front().name, "overfit");
    EXPECT_EQ(watch.rules->front().parameters, (rules::Parameters{{"patience", 3}}));
    EXPECT_EQ(watch.every, 20U);
    EXPECT_TRUE(watch.names_something);
    EXPECT_TRUE(watch.left_out.empty());
    EXPECT_TRUE(watch.supervisor.empty());
}

TEST(WatchSettings, SnapshotsAreTakenForWhatGoesBackToThemUnlessTheUserSaysHowOften) {
    const auto every = [](const std::string& text) {
        return meaning_of(text).plan.corrections.snapshot_every;
    };
    EXPECT_EQ(every(""), 0U);
    EXPECT_EQ(every("on-finding = 'stop'"), 0U);
    EXPECT_EQ(every("on-finding = 'roll-back'"), 100U);
    EXPECT_EQ(every("on-finding = 'checkpoint-stop'"), 100U);
    EXPECT_EQ(every("on-finding = 'checkpoint-stop'\nsnapshot-every = 0"), 0U);
    EXPECT_EQ(every("on-finding = 'checkpoint-stop'\nsnapshot-every = 7"), 7U);
    EXPECT_EQ(every("snapshot-every = 7"), 7U);
}

TEST(WatchSettings, ArgumentsCountBeforeTheFile) {
    const WatchSettings watch = meaning_of(kFile, {.options = {"collect"}, .every = 3});
    EXPECT_EQ(wishes(watch), (decltype(wishes(watch)){{"heads", 3}, {"losses", 3}}));
    EXPECT_EQ(watch.every, 3U);
}

TEST(WatchSettings, TheCallersCollectionTakesThePlaceOfTheFiles) {
    const WatchSettings watch = meaning_of("[collection]\nheads = 'x'\ntails = 'y'\n",
                                           {.options = {}, .collections = {{"heads", {"bias$"}, {}}}});
    ASSERT_EQ(watch.plan.collections.size(), 2U);
    EXPECT_EQ(watch.plan.collections[0], (model::CollectionSpec{"heads", {"bias$"}, {}}));
    EXPECT_EQ(wishes(watch), (decltype(wishes(watch)){{"tails", 10}}))
        << "its own is the caller's to ask for";
}

TEST(WatchSettings, ParametersOfTheFileHoldForTheCallersRulesWhereItSaysNothingElse) {
    const std::string text = "no-rule = 'overfit'\n[rule.overfit]\npatience = 3\ngive_back = 0.5\n";
    const std::vector<rules::RuleChoice> given = {{"overfit", {{"patience", 9}}}};
    const WatchSettings own = meaning_of(text, {.rules = given});
    ASSERT_TRUE(own.rules && own.rules->size() == 1);
    EXPECT_EQ(own.rules->front().parameters, (rules::Parameters{{"patience", 9}, {"give_back", 0.5}}));
    EXPECT_TRUE(meaning_of(text, {.rules = std::vector<rules::RuleChoice>()}).rules->empty());
    EXPECT_EQ(meaning_of(text).rules->size(), rules::default_rules().size() - 1);
    EXPECT_FALSE(meaning_of("every = 3\n").rules) << "the default ones";
}

TEST(WatchSettings, WhatIsForTheProgramIsLeftOutAndWhatIsForTheSupervisorHandedOn) {
    const WatchSettings watch = meaning_of(
        "upload = 's3://b/x'\nfail-on = 'error'\nstop-grace = 3\non-finding = 'stop'\nact-at = "
        "'error'\ndry-run = true\n"
        "rule-python = ['a.py']\n");
    Words left_out = watch.left_out;
    std::sort(left_out.begin(), left_out.end());
    EXPECT_EQ(left_out, (Words{"fail-on", "rule-python", "stop-grace", "upload"}));
    EXPECT_EQ(watch.supervisor, (Words{"--on-finding", "stop", "--act-at", "error", "--dry-run"}));
    EXPECT_FALSE(watch.names_something);
    EXPECT_EQ(watch.every, 0U);
}

TEST(WatchSettings, EveryOptionOfARunIsKnown) {
    const Words names = run_option_names();
    EXPECT_NE(std::find(names.begin(), names.end(), "on-finding"), names.end());
    for (const std::string& name : names) {
        settings::Settings settings;
        settings.options.push_back({name, {}, "x.toml:1"});
        const auto refused = settings_for_watch({.path = "x.toml", .settings = settings}, {});
        ASSERT_FALSE(refused.is_ok());
        EXPECT_EQ(refused.status().message(), "x.toml:1: " + name + ": expected a value");
    }
}

TEST(WatchSettings, AMistakeNamesTheFileTheLineAndTheKey) {
    const std::vector<std::pair<std::string, std::string>> cases = {
        {"\ncolect = 'weights'\n", "x.toml:2: unknown key 'colect' (did you mean 'collect'?)"},
        {"every = 0\n", "x.toml:1: every: 0 is less than 1"},
        {"\nquota = 'much'\n", "x.toml:2: quota: 'much' is no size"},
        {"arena = '0'\n", "x.toml:1: arena: '0' is no size"},
        {"block-for = '2 h'\n", "x.toml:1: block-for: '2 h' is no time"},
        {"thin = 3\n", "x.toml:1: thin: says what stays of steps older than --keep-last"},
        {"budget = '200%'\n", "x.toml:1: budget: '200%' is no share"},
        {"collect = 'weigths'\n", "x.toml:1: collect: no collection 'weigths' (did you mean 'weights'?)"},
        {"at-steps = 'x'\ncollect = 'weights'\n", "x.toml:1: at-steps: 'x' is not the number of a step"},
        {"first-step = 9\nend-step = 9\n", "x.toml:2: end-step: 9 is not after --first-step 9"},
        {"flight-raw = 'weights'\n", "x.toml:1: flight-raw: needs --flight-recorder"},
        {"flight-recorder = 3\nflight-raw = 'x'\n", "x.toml:2: flight-raw: no collection 'x'"},
        {"rules = 'overfitt'\n", "x.toml:1: rules: "},
        {"fail-on = 'warn'\n", "x.toml:1: fail-on: 'warn' is not one of"},
        {"[rule.overfit]\npatienc = 3\n", "x.toml: rule: "},
        {"[collection]\nweights = 'x'\n", "x.toml: collection: weights is a built-in collection"},
        {"[collection]\nmine = '('\n", "x.toml: collection mine: '('"},
        {"[[capture]]\ncollection = 'x'\n", "x.toml: capture: no collection 'x'"},
        {"hook-config = 'gone.json'\n", "x.toml:1: hook-config: gone.json: there is no such file"},
    };
    for (const auto& [text, message] : cases) {
        const auto settings = settings_for_watch(file_of(text), {});
        ASSERT_FALSE(settings.is_ok()) << text;
        EXPECT_TRUE(settings.status().message().starts_with(message)) << settings.status().message();
        EXPECT_EQ(settings.status().code(),
                  text.starts_with("hook-config") ? Code::kNotFound : Code::kInvalidArgument);
    }
}

TEST(WatchSettings, AMistakeInAHookConfigurationNamesThatAndNoSettingsFile) {
    const std::string path = testing::TempDir() + "watch_settings_test_hook.json";
    const auto message_for = [&](const std::string& hook) {
        std::ofstream(path) << hook;
        return settings_for_watch(file_of("hook-config = '" + path + "'\n"), {}).status().message();
    };
    EXPECT_EQ(message_for("["), "hook configuration " + path + ": is not JSON: it ends too early, in line 1");
    const std::string refused = message_for(
        R"({"CollectionConfigurations": [{"CollectionName": "mine", "CollectionParameters": {"include_regex": "("}}]})");
    EXPECT_TRUE(refused.starts_with("hook configuration " + path + ": collection mine: '('")) << refused;
    std::remove(path.c_str());
}

}  // namespace
}  // namespace traindbg::options
