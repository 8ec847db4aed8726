#include "traindbg/extend/plugin_rules.h"

#include <gtest/gtest.h>

#include <vector>

namespace traindbg::extend {
namespace {

// tests/cpp/extend/plugins/sample_plugin.cc, built with SAMPLE=number.
std::string sample(int number) {
    return std::string(TRAINDBG_SAMPLE_PLUGINS) + "/libsample_plugin_" + std::to_string(number) + ".so";
}

std::string error_of(const std::string& path) {
    const auto entries = load_plugin(path);
    return entries.is_ok() ? "loaded" : entries.status().message();
}

class Events final : public rules::FindingSink {
  public:
    void fire(model::Finding finding) override { fired.push_back(std::move(finding)); }
    void clear(std::string_view key) override { cleared.emplace_back(key); }
    std::vector<model::Finding> fired;
    std::vector<std::string> cleared;
};

// A loss of 1, 2, 4, ... beside a gradient that nobody asked for.
struct Training {
    model::TensorTable tensors{2};
    model::WorkerMeta meta;
    model::StepRecord record;

    Training() {
        tensors[0].name = "loss/total";
        tensors[0].role = model::Role::kLoss;
        tensors[1].id = 1;
        tensors[1].name = "gradient/fc1.weight";
        tensors[1].role = model::Role::kGradient;
        record.tensors.emplace_back().tensor = 1;
    }
    void show(rules::Rule& rule, Events& events, double loss) {
        record.scalars = {{0, loss}};
        rule.on_step({0, &record, &tensors, &meta}, events);
        ++record.step;
    }
};

TEST(PluginTest, ARuleOfAPluginIsARule) {
    const auto entries = load_plugin(sample(0));
    ASSERT_TRUE(entries.is_ok()) << entries.status().message();
    ASSERT_EQ(entries->size(), 1U);
    const rules::RuleEntry& entry = entries->front();
    EXPECT_EQ(entry.info->name, "sample");
    EXPECT_EQ(entry.info->severity, model::Severity::kError);
    EXPECT_EQ(entry.origin, sample(0));
    const auto parameters = rules::complete_parameters(*entry.info, {{"limit", 3}});
    ASSERT_TRUE(parameters.is_ok());
    const auto needs = entry.needs(*parameters);
    ASSERT_TRUE(needs.is_ok());
    ASSERT_EQ(needs->size(), 1U);
    EXPECT_EQ(needs->front().schedule, (model::Schedule{.every = 3, .dense_until = 10}));
    EXPECT_EQ(needs->front().asked_by, "sample");

    Training training;
    Events events;
    const auto rule = entry.make(*parameters);
    for (const double loss : {1.0, 2.0, 4.0}) training.show(*rule, events, loss);
    EXPECT_EQ(rule->failure(), "");
    EXPECT_EQ(rule->steps_judged(), 3U);
    EXPECT_EQ(events.cleared, (std::vector<std::string>{"loss/total", "loss/total"}));
    ASSERT_EQ(events.fired.size(), 1U);
    EXPECT_EQ(events.fired[0].message, "too large");
    EXPECT_EQ(events.fired[0].first_step, model::kThisStep);
}

TEST(PluginTest, WhatIsWrongWithAFileIsNamed) {
    EXPECT_EQ(error_of("/nowhere/lib.so"), "/nowhere/lib.so: there is no such file");
    const std::string source = std::string(TRAINDBG_SOURCE_DIR) + "/README.md";
    EXPECT_NE(error_of(source).find("README.md: cannot be loaded as a shared library"), std::string::npos);
    EXPECT_NE(error_of(sample(8)).find("exports no traindbg_plugin_describe"), std::string::npos);
    const std::string version = error_of(sample(1));
    EXPECT_NE(version.find("libsample_plugin_1.so: is a plugin for version 99 of the interface"),
              std::string::npos)
        << version;
}

TEST(PluginTest, ABadDescriptionIsNamed) {
    EXPECT_NE(error_of(sample(2)).find("rule 'no name'"), std::string::npos);
    EXPECT_NE(error_of(sample(3)).find("limit: 1e+09 is out of range"), std::string::npos)
        << error_of(sample(3));
    EXPECT_NE(error_of(sample(4)).find("is missing"), std::string::npos);
    EXPECT_NE(error_of(sample(5)).find("kinds 4096"), std::string::npos);
}

TEST(PluginTest, ARuleThatFailsSaysWhy) {
    for (const auto& [number, why] :
         {std::pair(6, "no licence"), {7, "failed at train step 1: lost count"}}) {
        const auto entries = load_plugin(sample(number));
        ASSERT_TRUE(entries.is_ok()) << entries.status().message();
        const auto rule = entries->front().make(rules::defaults_of(*entries->front().info));
        Training training;
        Events events;
        for (const double loss : {1.0, 2.0, 20.0}) training.show(*rule, events, loss);
        EXPECT_EQ(rule->failure(), why);
        EXPECT_TRUE(events.fired.empty());
    }
}

TEST(PluginTest, ARunWithoutWhatItNeedsIsNotChecked) {
    const auto entries = load_plugin(sample(0));
    ASSERT_TRUE(entries.is_ok());
    const auto rule = entries->front().make(rules::defaults_of(*entries->front().info));
    EXPECT_EQ(rule->steps_judged(), 0U);
    EXPECT_EQ(rule->why_not_judged(), "nothing that it needs was recorded");
}

}  // namespace
}  // namespace traindbg::extend
