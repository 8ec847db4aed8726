// From pending to firing to resolved: how long a fault must last, and what is told of it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "traindbg/engine/engine.h"

namespace traindbg::engine {
namespace {

// Does at each step what stands there: 'f' fires, 'c' clears, 'x' throws, anything else says nothing.
class Scripted final : public rules::Rule {
  public:
    explicit Scripted(std::string script) : script_(std::move(script)) {}
    void on_step(const model::StepView& step, rules::FindingSink& sink) override {
        ++judged_;
        const char letter = step.step() < script_.size() ? script_[step.step()] : '.';
        if (letter == 'x') throw std::runtime_error("as it was told");
        if (letter == 'c') sink.clear("key");
        if (letter == 'f') fire(sink);
    }
    void on_end(rules::FindingSink& sink) override {
        if (script_.ends_with('E')) fire(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return {}; }

  private:
    static void fire(rules::FindingSink& sink) {
        model::Finding finding;
        finding.key = "key";
        sink.fire(std::move(finding));
    }
    std::string script_;
    std::uint64_t judged_ = 0;
};

const std::vector<rules::RuleEntry>& scripted_rules() {
    static const model::RuleInfo info = [] {
        model::RuleInfo made;
        made.name = "scripted";
        made.parameters = {{"script", "", "", 0, 0, "", model::ParameterType::kText}};
        return made;
    }();
    static const std::vector<rules::RuleEntry> entries = {
        {&info, [](const rules::Parameters&) { return std::vector<model::Requirement>(); },
         [](const rules::Parameters& parameters) {
             return std::make_unique<Scripted>(parameters.text("script"));
         }}};
    return entries;
}

struct Told {
    std::string states;  // what the listener heard: "pending@3 firing@5 resolved@7"
    model::Verdict verdict;
};

// Shows one step for each letter, a second apart.
Told judged(const std::string& script, const std::string& hold) {
    auto made = Engine::make({{"scripted", {{"script", script}, {"hold", hold}}}}, scripted_rules());
    EXPECT_TRUE(made.is_ok()) << made.status().message();
    Engine& engine = **made;
    Told told;
    model::StepRecord record;
    engine.set_listener([&](const model::Finding& finding) {
        told.states += (told.states.empty() ? "" : " ") + std::string(model::to_string(finding.state)) + "@" +
                       std::to_string(record.step);
    });
    const model::TensorTable tensors;
    const model::WorkerMeta meta;
    for (record.step = 0; record.step < script.size(); ++record.step) {
        record.wall_nanos = static_cast<std::int64_t>(record.step) * 1'000'000'000;
        engine.on_step({0, &record, &tensors, &meta});
    }
    engine.on_end();
    told.verdict = engine.verdict();
    return told;
}

using enum model::FindingState;

TEST(Hold, WithoutOneAFindingFiresAtOnce) {
    const Told told = judged(".ff", "0");
    EXPECT_EQ(told.states, "firing@1");
    EXPECT_EQ(told.verdict.findings.at(0).times, 1U);
}

TEST(Hold, AFaultThatLastsIsPendingAndThenFires) {
    const Told told = judged(".ffffff", "3");
    EXPECT_EQ(told.states, "pending@1 firing@4");
    const model::Finding& finding = told.verdict.findings.at(0);
    EXPECT_EQ(finding.first_step, 1U);
    EXPECT_EQ(finding.step, 4U);
    EXPECT_EQ(finding.last_step, 6U);
    EXPECT_EQ(finding.times, 1U);
    EXPECT_EQ(told.verdict.outcomes.at(0).state, model::CheckState::kFired);
}

TEST(Hold, ARuleThatFiresOnceAndIsSilentWhileTheFaultStaysIsHeardAfterTheHold) {
    EXPECT_EQ(judged(".f.....", "3").states, "pending@1 firing@4");
}

TEST(Hold, WhatHasNotLastedByTheEndIsPending) {
    const Told told = judged(".ff", "3");
    EXPECT_EQ(told.states, "pending@1");
    EXPECT_EQ(told.verdict.findings.at(0).state, kPending);
    EXPECT_EQ(told.verdict.findings.at(0).times, 0U);
    EXPECT_EQ(told.verdict.outcomes.at(0).state, model::CheckState::kClean);
}

TEST(Hold, WhatIsOverBeforeItFiredIsNotInTheVerdict) {
    const Told told = judged(".ffc....", "3");
    EXPECT_EQ(told.states, "pending@1 resolved@3");
    EXPECT_TRUE(told.verdict.findings.empty());
    EXPECT_EQ(told.verdict.outcomes.at(0).state, model::CheckState::kClean);
}

TEST(Hold, OneThatWasDroppedBeginsAnew) {
    const Told told = judged(".fc..fff", "2");
    EXPECT_EQ(told.states, "pending@1 resolved@2 pending@5 firing@7");
    EXPECT_EQ(told.verdict.findings.at(0).first_step, 5U);
}

TEST(Hold, AFaultThatComesBackIsToldAgainAndCounted) {
    const Told told = judged("f.c.f.c.f", "0");
    EXPECT_EQ(told.states, "firing@0 resolved@2 firing@4 resolved@6 firing@8");
    ASSERT_EQ(told.verdict.findings.size(), 1U);
    EXPECT_EQ(told.verdict.findings[0].times, 3U);
    EXPECT_EQ(told.verdict.findings[0].first_step, 0U);
    EXPECT_EQ(told.verdict.findings[0].state, kFiring);
}

TEST(Hold, AFaultThatComesBackForAShortTimeIsPendingAndOverAgain) {
    EXPECT_EQ(judged("fff.c.f..c", "2").states,
              "pending@0 firing@2 resolved@4 pending@6 firing@8 resolved@9");
    const Told shorter = judged("fff.c.fc.", "2");
    EXPECT_EQ(shorter.states, "pending@0 firing@2 resolved@4 pending@6 resolved@7");
    EXPECT_EQ(shorter.verdict.findings.at(0).state, kResolved);
    EXPECT_EQ(shorter.verdict.findings.at(0).times, 1U);
}

TEST(Hold, ATimeCountsByTheTimesAtWhichStepsWereRecorded) {
    EXPECT_EQ(judged(".f......", "4s").states, "pending@1 firing@5");
    EXPECT_EQ(judged(".f......", "1min").states, "pending@1");
}

TEST(Hold, WhatARuleSaysOfTheWholeRunDoesNotWait) {
    const Told told = judged("....E", "20");
    EXPECT_EQ(told.states, "firing@5");
}

TEST(Hold, OfARuleThatFailedNothingFiresAnyMore) {
    const Told told = judged(".fx.....", "3");
    EXPECT_EQ(told.states, "pending@1");
    EXPECT_EQ(told.verdict.findings.at(0).state, kPending);
}

TEST(Hold, StepsOfAnotherWorkerOrModeDoNotCount) {
    auto made = Engine::make({{"scripted", {{"script", "f"}, {"hold", 2}}}}, scripted_rules());
    ASSERT_TRUE(made.is_ok()) << made.status().message();
    const model::TensorTable tensors;
    const model::WorkerMeta meta;
    model::StepRecord record;
    const auto see = [&](model::WorkerId worker, model::Mode mode, model::StepIndex step) {
        record.mode = mode;
        record.step = step;
        (*made)->on_step({worker, &record, &tensors, &meta});
        for (const model::Finding& finding : (*made)->verdict().findings)
            if (finding.worker == 0) return finding.state;
        return kResolved;
    };
    EXPECT_EQ(see(0, model::Mode::kTrain, 0), kPending);
    EXPECT_EQ(see(1, model::Mode::kTrain, 7), kPending);
    EXPECT_EQ(see(0, model::Mode::kEval, 7), kPending);
    EXPECT_EQ(see(0, model::Mode::kTrain, 2), kFiring);
}

TEST(Hold, WhatIsNoneIsRefusedAndTheNearestParameterIsNamed) {
    const auto wrong = [](const rules::Parameters& given) {
        return Engine::make({{"scripted", given}}, scripted_rules()).status().message();
    };
    EXPECT_NE(wrong({{"hold", "soon"}}).find("scripted.hold: 'soon' is neither a number of steps"),
              std::string::npos);
    EXPECT_NE(wrong({{"hold", -1}}).find("'-1' is neither"), std::string::npos);
    EXPECT_NE(wrong({{"hodl", "3"}}).find("did you mean 'hold'?"), std::string::npos);
}

}  // namespace
}  // namespace traindbg::engine
