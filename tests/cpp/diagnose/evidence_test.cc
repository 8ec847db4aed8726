// What is said for a cause and against it, and how far that moves it.
#include "traindbg/diagnose/evidence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "traindbg/diagnose/diagnose.h"
#include "traindbg/diagnose/training_facts.h"

namespace traindbg::diagnose {
namespace {

model::Finding finding(std::string rule, model::StepIndex first_step, std::string key = "key") {
    model::Finding made;
    made.kind = rule;
    made.rule = std::move(rule);
    made.key = std::move(key);
    made.first_step = made.step = made.last_step = first_step;
    made.message = "It is so.";
    return made;
}

model::RuleOutcome clean(std::string rule) { return {std::move(rule), model::CheckState::kClean, "", 10}; }
model::RuleOutcome fired(std::string rule) { return {std::move(rule), model::CheckState::kFired, "", 10}; }

model::WorkerMeta optimizer(std::string type, double rate) {
    model::WorkerMeta meta;
    meta.optimizers.push_back({std::move(type), {{"lr", rate}}});
    return meta;
}

std::vector<model::Cause> causes(const std::vector<model::Finding>& findings,
                                 const std::vector<model::RuleOutcome>& outcomes = {},
                                 const model::WorkerMeta& meta = {}) {
    return likely_causes(findings, outcomes, meta);
}

bool says(const std::vector<model::CauseEvidence>& evidence, std::string_view text) {
    return std::any_of(evidence.begin(), evidence.end(), [&](const model::CauseEvidence& item) {
        return item.text.find(text) != std::string::npos;
    });
}

TEST(CauseEvidence, TheFindingsThatACauseExplainsSpeakForItTheEarliestFirst) {
    const auto found =
        causes({finding("loss_not_decreasing", 40, "stalled"), finding("redundant_softmax", 2)});
    ASSERT_EQ(found.size(), 1U);
    ASSERT_EQ(found[0].evidence_for.size(), 2U);
    EXPECT_EQ(found[0].evidence_for[0],
              (model::CauseEvidence{"It is so.", "redundant_softmax", "key", model::StepIndex{2}}));
    EXPECT_EQ(found[0].evidence_for[1].rule, "loss_not_decreasing");
    EXPECT_EQ(found[0].evidence_for[1].step, model::StepIndex{40});
    EXPECT_TRUE(found[0].evidence_against.empty());
}

TEST(CauseEvidence, RulesThatAreCleanWhereTheCauseIsUsuallySeenSpeakAgainstIt) {
    const std::vector<model::Finding> findings = {finding("input_not_normalized", 0, "inputs")};
    const double before = causes(findings).at(0).confidence;
    const auto silent = causes(findings, {clean("loss_not_decreasing"), clean("exploding_gradient")});
    EXPECT_TRUE(says(silent[0].evidence_against, "loss_not_decreasing, exploding_gradient found nothing"));
    EXPECT_LT(silent[0].confidence, before);
    // One that fires, or could not be judged, says nothing against it.
    EXPECT_TRUE(causes(findings, {clean("exploding_gradient"), fired("loss_not_decreasing")})[0]
                    .evidence_against.empty());
    EXPECT_TRUE(causes(findings, {{"loss_not_decreasing", model::CheckState::kNotChecked, "no loss", 0}})[0]
                    .evidence_against.empty());
}

TEST(CauseEvidence, WhatWasThereBeforeACauseBeganIsNotItsWork) {
    model::Finding input = finding("non_finite", 400, "train");
    input.tensor = "input/0";
    input.severity = model::Severity::kError;
    const model::Finding stalled = finding("loss_not_decreasing", 20, "stalled");
    const auto found = causes({stalled, input});
    ASSERT_GE(found.size(), 2U);
    EXPECT_EQ(found[0].name, "nan_input");
    EXPECT_EQ(found[0].rules, std::vector<std::string>{"non_finite"});
    EXPECT_TRUE(says(found[0].evidence_against,
                     "loss_not_decreasing was there at step 20, before the first sign of this at step 400"));
    EXPECT_LT(found[0].confidence, causes({input}).at(0).confidence);
    EXPECT_NE(std::find(found[1].rules.begin(), found[1].rules.end(), "loss_not_decreasing"),
              found[1].rules.end());
}

TEST(CauseEvidence, WhatBeganAboutTheSameTimeMayFollow) {
    model::Finding input = finding("non_finite", 60, "train");
    input.tensor = "input/0";
    const auto found = causes({finding("loss_not_decreasing", 20, "stalled"), input});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rules.size(), 2U);
}

TEST(CauseEvidence, APropertyOfTheDataMayBeSeenLateAndHaveBeenTheCauseAllTheSame) {
    const auto found =
        causes({finding("loss_not_decreasing", 20, "stalled"), finding("redundant_softmax", 900)});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].rules.size(), 2U);
}

TEST(CauseEvidence, ACauseBehindTheFirstIsToldThatALikelierOneExplainsTheSame) {
    const auto found = causes({finding("loss_not_decreasing", 20, "stalled"), finding("redundant_softmax", 0),
                               finding("wrong_loss", 0)});
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[1].name, "wrong_loss");
    EXPECT_TRUE(says(found[1].evidence_against,
                     "loss_not_decreasing is explained by a likelier cause, too: Softmax applied twice."));
    EXPECT_TRUE(found[0].evidence_against.empty());
}

TEST(CauseEvidence, AFactStaysAFactAndAGuessMovesByAtMostThreeTenthsOfWhatIsMissing) {
    for (const double confidence : {0.97, 0.5}) {
        const model::Finding onset = finding("loss_spike", 900);
        std::vector<model::Finding> earlier;
        for (int i = 0; i < 8; ++i) earlier.push_back(finding("loss_not_decreasing", 3, std::to_string(i)));
        Draft draft;
        draft.cause.name = "loss_spike";
        draft.cause.confidence = confidence;
        draft.onset = &onset;
        for (const model::Finding& each : earlier) draft.explained.push_back(&each);
        weigh_evidence(draft, {}, {});
        EXPECT_EQ(draft.cause.evidence_against.size(), 8U);
        EXPECT_TRUE(draft.explained.empty());
        EXPECT_NEAR(draft.cause.confidence, confidence - 0.3 * (1 - confidence), 1e-12);
    }
}

TEST(CauseEvidence, WhereTheLikeliestIsLessLikelyThanNotTheNextIsNamedToo) {
    model::Finding stalled = finding("loss_not_decreasing", 0, "stalled");
    stalled.evidence.push_back({"loss", 2.3, "of guessing", 2.3});
    const auto found = causes({stalled});
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].name, "label_misalignment");
    EXPECT_EQ(found[1].name, "no_learning_signal");
    EXPECT_FALSE(model::is_sure(found[0]));
}

TEST(CauseEvidence, APendingFindingIsNoSymptom) {
    model::Finding pending = finding("redundant_softmax", 2);
    pending.state = model::FindingState::kPending;
    pending.times = 0;
    EXPECT_TRUE(causes({pending}).empty());
}

TEST(TrainingFacts, TheFarthestOfAllLearningRatesCounts) {
    model::WorkerMeta meta = optimizer("Adam", 1e-3);
    meta.optimizers.push_back({"SGD", {{"lr", 0.1}, {"lr_min", 0.1}, {"lr_max", 5.0}}});
    const auto highest = highest_rate(meta);
    ASSERT_TRUE(highest);
    EXPECT_EQ(highest->value, 5.0);
    EXPECT_TRUE(highest->is_far_above);
    EXPECT_EQ(lowest_rate(meta)->value, 1e-3);
    const auto found = causes({finding("loss_not_decreasing", 3, "rising")}, {}, meta);
    EXPECT_EQ(found.at(0).name, "learning_rate_too_high");
    EXPECT_TRUE(says(found[0].evidence_for, "SGD has a learning rate of 5, far above"));
    EXPECT_NE(found[0].fix.find("from 5 to"), std::string::npos) << found[0].fix;
}

TEST(TrainingFacts, WhatIsUsualDependsOnTheOptimizer) {
    EXPECT_FALSE(highest_rate(optimizer("LBFGS", 1))->is_far_above);
    EXPECT_FALSE(highest_rate(optimizer("Adadelta", 1))->is_far_above);
    EXPECT_TRUE(highest_rate(optimizer("SGD", 1))->is_far_above);
    EXPECT_TRUE(highest_rate(optimizer("AdamW", 0.1))->is_far_above);
    EXPECT_TRUE(lowest_rate(optimizer("SGD", 1e-4))->is_far_below);
    EXPECT_FALSE(lowest_rate(optimizer("AdamW", 1e-4))->is_far_below);
    EXPECT_FALSE(highest_rate({}));
}

TEST(TrainingFacts, HowTheLoaderIsSetSpeaksForUnshuffledDataOrAgainstIt) {
    const std::vector<model::Finding> findings = {finding("class_imbalance", 4, "order")};
    const auto with = [&](const char* shuffles) {
        model::WorkerMeta meta;
        meta.environment = {{"loader_shuffles", shuffles}};
        return causes(findings, {}, meta).at(0);
    };
    EXPECT_TRUE(says(with("false").evidence_for, "shuffle=False"));
    EXPECT_TRUE(says(with("true").evidence_against, "shuffle=True"));
    EXPECT_GT(with("false").confidence, causes(findings).at(0).confidence);
    EXPECT_LT(with("true").confidence, causes(findings).at(0).confidence);
}

TEST(TrainingFacts, KindsOfModulesAreCounted) {
    const auto with = [&](const char* types) {
        model::WorkerMeta meta;
        meta.environment = {{"module_types", types}};
        return causes({finding("vanishing_gradient", 4, "depth")}, {}, meta).at(0);
    };
    EXPECT_TRUE(says(with("Linear=9 Tanh=5 Sigmoid=3").evidence_for, "8 sigmoid or tanh modules"));
    EXPECT_TRUE(says(with("Linear=9 BatchNorm1d=8 Tanh=8").evidence_against, "8 normalising modules"));
    EXPECT_TRUE(says(with("Linear=9 ReLU=8").evidence_for, "It is so."));
    EXPECT_EQ(with("Linear=9 ReLU=8").evidence_for.size(), 1U);
}

}  // namespace
}  // namespace traindbg::diagnose
