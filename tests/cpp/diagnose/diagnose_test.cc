// Causes from findings alone. Whole trainings are judged in tests/scenarios/causes.
#include "traindbg/diagnose/diagnose.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/diagnose/fault_kinds.h"

namespace traindbg::diagnose {
namespace {

model::Finding finding(std::string rule, std::string key, model::Severity severity,
                       std::vector<model::Evidence> evidence = {}) {
    model::Finding made;
    made.rule = std::move(rule);
    made.key = std::move(key);
    made.severity = severity;
    made.layer = "relu1";
    made.fix = "Change it.";
    made.evidence = std::move(evidence);
    return made;
}

const model::WorkerMeta kMeta = [] {
    model::WorkerMeta meta;
    meta.optimizers.push_back({"SGD", {{"lr", 5.0}}});
    return meta;
}();

std::vector<std::string> names(const std::vector<model::Finding>& findings) {
    std::vector<std::string> all;
    for (const model::Cause& cause : likely_causes(findings, {}, kMeta)) all.push_back(cause.name);
    return all;
}

using enum model::Severity;

TEST(LikelyCauses, NothingFoundHasNoCause) {
    EXPECT_TRUE(names({}).empty());
    EXPECT_TRUE(names({finding("dead_relu", "layer_learning", kInfo)}).empty());
}

TEST(LikelyCauses, AResolvedWarningHasNoCauseButAResolvedErrorHas) {
    model::Finding warning = finding("vanishing_gradient", "depth", kWarning);
    warning.state = model::FindingState::kResolved;
    EXPECT_TRUE(names({warning}).empty());
    model::Finding error = finding("loss_not_decreasing", "rising", kError);
    error.state = model::FindingState::kResolved;
    EXPECT_EQ(names({error}), std::vector<std::string>{"learning_rate_too_high"});
}

TEST(LikelyCauses, OfWeightsThatHardlyMoveTheRateIsTheCauseBeforeGradientsThatVanishInTime) {
    const model::Finding time = finding("vanishing_gradient", "time", kWarning);
    EXPECT_EQ(names({time}).front(), "vanishing_gradient");
    model::Finding low = finding("learning_rate_too_low", "low", kWarning);
    low.kind = low.rule;
    EXPECT_EQ(names({time, low}).front(), "learning_rate_too_low");
}

TEST(LikelyCauses, AnEpsilonAboveGradientsThatWereClippedAwayIsNotTheCause) {
    model::Finding clip = finding("gradient_clipped_to_nothing", "clip", kWarning);
    clip.kind = clip.rule;
    model::Finding eps = finding("bad_optimizer_settings", "eps", kWarning);
    eps.kind = eps.rule;
    EXPECT_EQ(names({eps}), std::vector<std::string>{"bad_optimizer_settings"});
    EXPECT_EQ(names({eps, clip}), std::vector<std::string>{"gradient_clipped_to_nothing"});
    model::Finding betas = eps;
    betas.key = "betas";
    EXPECT_EQ(names({betas, clip}).size(), 2U);
}

TEST(LikelyCauses, UnitsThatDiedAreAConsequenceOfTheLearningRate) {
    EXPECT_EQ(
        names({finding("exploding_gradient", "gradients", kError, {{"update / weight", 2.0, "usual", 1e-3}}),
               finding("dead_relu", "layer", kError, {{"inactive units at the first step", 0.1, "", 0}})}),
        std::vector<std::string>{"learning_rate_too_high"});
}

TEST(LikelyCauses, UnitsThatWereDeadBeforeTheFirstUpdateAreACauseOfTheirOwn) {
    EXPECT_EQ(
        names({finding("dead_relu", "layer", kError, {{"inactive units at the first step", 1.0, "", 0}}),
               finding("loss_not_decreasing", "stalled", kWarning)}),
        std::vector<std::string>{"dead_relu"});
}

TEST(LikelyCauses, UnitsThatDiedAreAConsequenceOfTargetsInOrderAndThoseDeadBeforeAreNot) {
    const auto explained = [](double dead_at_first) {
        const std::vector<model::Finding> findings = {
            finding("targets_in_order", "order", kWarning),
            finding("dead_relu", "layer", kError,
                    {{"inactive units at the first step", dead_at_first, "", 0}})};
        for (const model::Cause& cause : likely_causes(findings, {}, kMeta))
            if (cause.name == "unshuffled_data") return cause.rules;
        return std::vector<std::string>();
    };
    EXPECT_EQ(explained(0.1), (std::vector<std::string>{"targets_in_order", "dead_relu"}));
    EXPECT_EQ(explained(1.0), std::vector<std::string>{"targets_in_order"});
}

TEST(LikelyCauses, GradientsNotClearedExplainARisingLossAndAnExplosion) {
    const std::vector<model::Finding> findings = {finding("exploding_gradient", "gradients", kError),
                                                  finding("loss_not_decreasing", "rising", kError),
                                                  finding("gradients_not_cleared", "loop", kError)};
    EXPECT_EQ(names(findings), std::vector<std::string>{"gradients_not_cleared"});
    const auto causes = likely_causes(findings, {}, kMeta);
    EXPECT_EQ(causes[0].rules.size(), 3U);
    EXPECT_NE(causes[0].fix.find("zero_grad"), std::string::npos);
}

TEST(LikelyCauses, TwoFaultsThatDoNotExplainEachOtherAreBothNamed) {
    EXPECT_EQ(
        names({finding("overfit", "evaluation", kWarning), finding("gradients_not_cleared", "loop", kError)}),
        (std::vector<std::string>{"gradients_not_cleared", "overfit"}));
}

TEST(LikelyCauses, TheAdviceNamesTheLearningRate) {
    const auto causes = likely_causes(std::vector{finding("exploding_gradient", "gradients", kError,
                                                          {{"update / weight", 0.5, "usual", 1e-3}})},
                                      {}, kMeta);
    ASSERT_EQ(causes.size(), 1U);
    EXPECT_NE(causes[0].fix.find("from 5 to about 0.5 or less"), std::string::npos) << causes[0].fix;
}

TEST(LikelyCauses, ThatNothingIsClippedIsWhyTheGradientGrowsToTheEnd) {
    model::Finding clip = finding("exploding_gradient", "clip", kWarning);
    clip.fix = "Clip after backward().";
    const model::Finding time = finding("exploding_gradient", "time", kError);
    const auto causes = likely_causes(std::vector{clip, time}, {}, kMeta);
    ASSERT_FALSE(causes.empty());
    EXPECT_EQ(causes.front().name, "exploding_gradient");
    EXPECT_EQ(causes.front().fix, clip.fix);
}

TEST(LikelyCauses, ANonFiniteInputIsToldFromAnOverflow) {
    model::Finding input = finding("non_finite", "train", kError);
    input.tensor = "input/0";
    EXPECT_EQ(names({input}), std::vector<std::string>{"nan_input"});
    model::Finding grown = finding("non_finite", "train", kError, {{"grew before", 1, "", 0}});
    grown.tensor = "gradient/fc.weight";
    EXPECT_EQ(names({grown}), std::vector<std::string>{"learning_rate_too_high"});
    grown.evidence.clear();
    EXPECT_EQ(names({grown}), std::vector<std::string>{"numerical_instability"});
}

model::Finding fault(std::string kind) {
    model::Finding made = finding(kind, "key", kWarning);
    made.kind = std::move(kind);
    return made;
}

TEST(LikelyCauses, AFindingThatNamesItsFaultIsTheCauseOfWhatFollowsFromIt) {
    const std::vector<model::Finding> findings = {finding("loss_not_decreasing", "stalled", kWarning),
                                                  fault("redundant_softmax")};
    const std::vector<model::Cause> causes = likely_causes(findings, {}, kMeta);
    ASSERT_EQ(causes.size(), 1U);
    EXPECT_EQ(causes[0].name, "redundant_softmax");
    EXPECT_EQ(causes[0].rules, (std::vector<std::string>{"loss_not_decreasing", "redundant_softmax"}));
    EXPECT_NE(causes[0].explanation.find("Refuted if"), std::string::npos);
}

TEST(LikelyCauses, RanksThatMayBeMeantToDifferAreALessLikelyCauseThanCopiesThatAreNone) {
    model::Finding ranks = finding("replica_divergence", "copies", kError);
    ranks.kind = ranks.rule;
    EXPECT_GT(likely_causes(std::vector{ranks}, {}, kMeta).at(0).confidence, 0.9);
    ranks.key = "never_averaged";
    ranks.severity = kWarning;
    EXPECT_LT(likely_causes(std::vector{ranks}, {}, kMeta).at(0).confidence, 0.8);
}

TEST(LikelyCauses, AFactComesBeforeAJudgement) {
    EXPECT_EQ(names({fault("learning_rate_too_low"), fault("parameters_not_in_optimizer")}),
              std::vector<std::string>{"parameters_not_in_optimizer"});
    EXPECT_EQ(names({fault("input_not_normalized"), fault("loss_shape_broadcast")}),
              (std::vector<std::string>{"loss_shape_broadcast", "input_not_normalized"}));
}

TEST(LikelyCauses, ALossWithoutTheSoftmaxThatItNeedsFallsWithoutEnd) {
    model::Finding missing = finding("missing_softmax", "loss", kError);
    missing.kind = missing.rule;
    model::Finding flipped = finding("loss_sign_flipped", "runaway", kWarning);
    flipped.kind = flipped.rule;
    EXPECT_EQ(names({missing, flipped}), std::vector<std::string>{"missing_softmax"});
    model::Finding labels = finding("labels_out_of_range", "probabilities", kError);
    labels.kind = labels.rule;
    EXPECT_EQ(names({flipped, labels}), std::vector<std::string>{"labels_out_of_range"});
    flipped.key = "sign";  // a fact of the graph: both are faults
    EXPECT_EQ(names({missing, flipped}), (std::vector<std::string>{"missing_softmax", "loss_sign_flipped"}));
    EXPECT_EQ(names({flipped}), std::vector<std::string>{"loss_sign_flipped"});
}

TEST(LikelyCauses, WrongWeightsOfClassesAreACauseOfTheirOwn) {
    for (const char* key : {"weights", "weights_of_others"}) {
        const std::vector<std::string> found = names({finding("class_imbalance", key, kWarning)});
        EXPECT_EQ(found, std::vector<std::string>{"class_imbalance"}) << key;
    }
}

TEST(LikelyCauses, WhatWasSoBeforeTheFirstUpdateFollowsFromNoLoop) {
    EXPECT_EQ(names({fault("detached_loss"), finding("dead_relu", "layer", kError,
                                                     {{"inactive units at the first step", 1.0, "", 0}})}),
              (std::vector<std::string>{"detached_loss", "dead_relu"}));
}

TEST(LikelyCauses, EveryKindIsKnownOnceAndHasWordsForPeople) {
    std::set<std::string_view> known;
    for (const FaultKind& kind : fault_kinds()) {
        EXPECT_TRUE(known.insert(kind.kind).second) << kind.kind;
        EXPECT_FALSE(kind.title.empty());
        EXPECT_TRUE(kind.refuted.starts_with("Refuted if ")) << kind.kind;
        EXPECT_GT(kind.confidence, 0.5);
        EXPECT_LT(kind.confidence, 1);
    }
}

}  // namespace
}  // namespace traindbg::diagnose
