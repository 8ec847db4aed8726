#include "traindbg/engine/merged_verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "traindbg/engine/engine.h"
#include "traindbg/engine/scenario.h"
#include "traindbg/model/json.h"

namespace traindbg::engine {
namespace {

model::Finding named(std::string rule) {
    model::Finding finding;
    finding.rule = std::move(rule);
    return finding;
}

std::string order_of(const MergedVerdict& merged) {
    std::string order;
    for (const model::Finding& finding : merged.verdict().findings) order += finding.rule + " ";
    return order;
}

TEST(MergedVerdict, FindingsComeInTheOrderInWhichOneEngineFires) {
    MergedVerdict merged({"a", "b", "c", "d"});
    // Each differs from the one before in what counts more than all that speaks for the other order.
    merged.put(1, 5, {2, Phase::kStep, 0, 0}, named("step2"));
    merged.put(0, 4, {1, Phase::kTimeAtEnd, 0, 0}, named("time_at_end"));
    merged.put(0, 3, {1, Phase::kEnd, 0, 0}, named("end"));
    merged.put(0, 2, {1, Phase::kTime, 0, 0}, named("time"));
    merged.put(0, 1, {1, Phase::kStep, 1, 0}, named("worker1"));
    merged.put(1, 1, {1, Phase::kStep, 0, 3}, named("rule3"));
    merged.put(0, 0, {1, Phase::kStep, 0, 2}, named("rule2"));
    EXPECT_EQ(order_of(merged), "rule2 rule3 worker1 time end time_at_end step2 ");
}

TEST(MergedVerdict, OneRulesFindingsOfOneStepKeepTheirOrder) {
    MergedVerdict merged({"a"});
    for (std::size_t number : {2U, 0U, 1U})
        merged.put(0, number, {1, Phase::kStep, 0, 0}, named(std::to_string(number)));
    EXPECT_EQ(order_of(merged), "0 1 2 ");
}

TEST(MergedVerdict, WhatIsSaidLaterOfAFindingCounts) {
    MergedVerdict merged({"a"});
    merged.put(0, 0, {1, Phase::kStep, 0, 0}, named("before"));
    merged.put(0, 0, {1, Phase::kStep, 0, 0}, named("after"));
    EXPECT_EQ(order_of(merged), "after ");
}

TEST(MergedVerdict, ARuleThatWasGivenUpIsNotCheckedWhateverComesLater) {
    MergedVerdict merged({"a", "b"});
    merged.put(1, {"b", model::CheckState::kFired, "", 7});
    merged.put(0, 0, {1, Phase::kStep, 0, 1}, named("b"));
    merged.give_up(1, "its process ended");
    merged.give_up(1, "once more");
    merged.put(1, {"b", model::CheckState::kClean, "", 8});
    const model::Verdict verdict = merged.verdict();
    EXPECT_EQ(verdict.outcomes[0],
              (model::RuleOutcome{"a", model::CheckState::kNotChecked, "no step was recorded", 0}));
    EXPECT_EQ(verdict.outcomes[1],
              (model::RuleOutcome{"b", model::CheckState::kNotChecked, "its process ended", 0}));
    EXPECT_EQ(verdict.findings.size(), 1U) << "what it found stays";
}

// Scenarios of all rules: the verdict does not depend on how the rules are dealt out.
class DealtOutTest : public testing::TestWithParam<std::size_t> {};

#if defined(TRAINDBG_ADDRESS_SANITIZER) || defined(TRAINDBG_THREAD_SANITIZER)
constexpr std::size_t kEach = 12;  // of them: all take minutes
#else
constexpr std::size_t kEach = 3;
#endif

std::vector<scenario::Scenario> all_scenarios() {
    std::vector<scenario::Scenario> all;
    std::size_t number = 0;
    const std::filesystem::path root = std::filesystem::path(TRAINDBG_SOURCE_DIR) / "tests/scenarios";
    std::set<std::filesystem::path> paths;  // in an order that is the same everywhere
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
        if (entry.path().extension() == ".txt") paths.insert(entry.path());
    for (const std::filesystem::path& path : paths) {
        if (number++ % kEach != 0) continue;
        std::ifstream in(path);
        std::stringstream text;
        text << in.rdbuf();
        auto scenario = scenario::parse(text.str());
        EXPECT_TRUE(scenario.is_ok()) << path;
        all.push_back(std::move(scenario).value());
    }
    return all;
}

TEST_P(DealtOutTest, ManyEnginesGiveTheVerdictOfOne) {
    constexpr std::int64_t kLater = std::int64_t{4} << 60;
    std::size_t several = 0, in_order = 0;
    for (scenario::Scenario& scenario : all_scenarios()) {
        // All rules at once, so that there is something to put in order.
        std::vector<rules::RuleChoice> choices = scenario.rules;
        for (const rules::RuleChoice& choice : rules::default_rules())
            if (std::none_of(choices.begin(), choices.end(),
                             [&](const rules::RuleChoice& other) { return other.name == choice.name; }))
                choices.push_back(choice);
        // Some wait: what is pending, and what is dropped, is the same, too.
        for (std::size_t i = 0; i < choices.size(); i += 3) choices[i].parameters["hold"] = 5 * (i % 4);
        std::vector<std::string> names;
        for (const rules::RuleChoice& choice : choices) names.push_back(choice.name);
        const auto judged = [&](const std::vector<rules::RuleChoice>& some) {
            auto engine = Engine::make(some);
            EXPECT_TRUE(engine.is_ok());
            scenario::ScenarioSource source(scenario);
            EXPECT_TRUE(judge(source, **engine).is_ok());
            (*engine)->on_time(kLater);
            return std::move(engine).value();
        };
        const auto one = judged(choices);
        MergedVerdict merged(names);
        const std::size_t parts = GetParam();
        for (std::size_t part = parts; part-- > 0;) {  // the last to be ready first
            std::vector<rules::RuleChoice> some;
            std::vector<std::uint64_t> places;
            for (std::size_t rule = part; rule < choices.size(); rule += parts) {
                some.push_back(choices[rule]);
                places.push_back(rule);
            }
            const auto engine = judged(some);
            for (std::size_t i = engine->findings().size(); i-- > 0;) {
                Moment moment = engine->traces()[i].moment;
                moment.rule = places[moment.rule];
                merged.put(part, i, moment, engine->findings()[i]);
            }
            for (std::size_t i = 0; i < places.size(); ++i) merged.put(places[i], engine->outcomes()[i]);
            merged.set_meta(engine->meta());
        }
        EXPECT_EQ(model::to_json(merged.verdict()).dump(1), model::to_json(one->verdict()).dump(1))
            << scenario.title;
        several += one->findings().size() > 1 ? 1 : 0;
        in_order += one->findings().size();
    }
    EXPECT_GT(several, 10U) << "else there was nothing to put in order";
    EXPECT_GT(in_order, 30U);
}

#if defined(TRAINDBG_ADDRESS_SANITIZER) || defined(TRAINDBG_THREAD_SANITIZER)
INSTANTIATE_TEST_SUITE_P(Parts, DealtOutTest, testing::Values(3));
#else
INSTANTIATE_TEST_SUITE_P(Parts, DealtOutTest, testing::Values(1, 2, 3, 8, 200));
#endif

}  // namespace
}  // namespace traindbg::engine
