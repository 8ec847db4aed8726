#include "traindbg/cli/plan_edit.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace traindbg::cli {
namespace {

using base::Code;
using model::CaptureConfig;
using model::Mode;
using model::Requirement;
using model::What;

Requirement wish(std::string collection, std::uint64_t every, What what = What::kStatistics,
                 std::string by = "user") {
    return {.collection = std::move(collection),
            .what = what,
            .schedule = {.every = every},
            .asked_by = std::move(by)};
}

CaptureConfig plan_of(std::vector<Requirement> requirements) {
    return {.requirements = std::move(requirements), .collections = {}};
}

std::vector<Requirement> after(const CaptureConfig& plan, const PlanEdit& edit) {
    const auto result = edited(plan, edit);
    EXPECT_TRUE(result.is_ok()) << result.status().message();
    return result.is_ok() ? result->requirements : std::vector<Requirement>();
}

std::string error_of(const CaptureConfig& plan, const PlanEdit& edit) {
    const auto result = edited(plan, edit);
    EXPECT_EQ(result.status().code(), Code::kInvalidArgument);
    return result.status().message();
}

TEST(PlanEdit, AWishTakesThePlaceOfTheEarlierOneOfItsKind) {
    const Requirement rule = wish("gradients", 10, What::kStatistics, "vanishing_gradient");
    const Requirement raw = wish("gradients", 50, What::kRaw);
    const CaptureConfig plan = plan_of({rule, wish("gradients", 20), raw, wish("weights", 3)});
    PlanEdit edit;
    edit.capture.collect = {"gradients"};
    edit.capture.every = 5;
    EXPECT_EQ(after(plan, edit), (std::vector{rule, raw, wish("weights", 3), wish("gradients", 5)}));
    // Whole tensors are of another kind, with the statistics that come along or without.
    edit.capture.collect = {};
    edit.capture.raw = {"gradients"};
    EXPECT_EQ(after(plan, edit), (std::vector{rule, wish("gradients", 20), wish("weights", 3),
                                              wish("gradients", 5, What::kStatistics | What::kRaw)}));
    // Another mode is another wish.
    edit.capture.raw = {};
    edit.capture.collect = {"weights"};
    edit.capture.mode = "eval";
    EXPECT_EQ(after(plan, edit).size(), 5U);
}

TEST(PlanEdit, AScheduleAloneIsThatOfAllWishesAndOfNoRule) {
    const Requirement rule = wish("losses", 1, What::kStatistics, "loss_not_decreasing");
    const CaptureConfig plan = plan_of({rule, wish("gradients", 20), wish("weights", 3)});
    PlanEdit edit;
    edit.capture.every = 7;
    EXPECT_EQ(after(plan, edit), (std::vector{rule, wish("gradients", 7), wish("weights", 7)}));
    edit.capture.every = 0;
    edit.capture.end_step = 500;
    Requirement ended = wish("gradients", 20);
    ended.schedule.end = 500;
    EXPECT_EQ(after(plan, edit)[1], ended);
    edit.capture.at_steps = {"9", "3"};
    EXPECT_EQ(after(plan, edit)[1].steps, (std::vector<model::StepIndex>{3, 9}));
    EXPECT_EQ(after(plan, edit)[1].schedule.every, 0U);
    EXPECT_NE(error_of(plan_of({rule}), edit).find("--collect"), std::string::npos);
    PlanEdit late;
    late.capture.first_step = 600;
    CaptureConfig short_one = plan_of({ended});
    EXPECT_NE(error_of(short_one, late).find("never be due"), std::string::npos);
}

TEST(PlanEdit, DroppingTakesBackWishesAndNeverARulesNeeds) {
    const Requirement rule = wish("gradients", 10, What::kStatistics, "vanishing_gradient");
    CaptureConfig plan =
        plan_of({rule, wish("gradients", 20), wish("gradients", 5, What::kRaw), wish("head", 1)});
    plan.collections = {{.name = "head", .include = {"^fc"}, .exclude = {}},
                        {.name = "spare", .include = {"x"}, .exclude = {}}};
    PlanEdit edit;
    edit.drop = {"gradients"};
    EXPECT_EQ(after(plan, edit), (std::vector{rule, wish("head", 1)}));
    edit.drop = {"head"};
    const auto without = edited(plan, edit);
    ASSERT_TRUE(without.is_ok());
    ASSERT_EQ(without->collections.size(), 1U);  // one that nothing referred to before stays
    EXPECT_EQ(without->collections[0].name, "spare");
    edit = {};
    edit.drop_all = true;
    edit.capture.collect = {"biases"};
    EXPECT_EQ(after(plan, edit), (std::vector{rule, wish("biases", 10)}));

    edit = {};
    edit.drop = {"gradient"};
    EXPECT_NE(error_of(plan, edit).find("did you mean 'gradients'"), std::string::npos);
    edit.drop = {"gradients"};
    EXPECT_NE(error_of(plan_of({rule}), edit).find("vanishing_gradient needs it"), std::string::npos);
}

TEST(PlanEdit, CollectionsThatAreThereCanBeNamedAndMadeAnew) {
    CaptureConfig plan = plan_of({});
    plan.collections = {{.name = "head", .include = {"^fc"}, .exclude = {"bias"}}};
    PlanEdit edit;
    edit.capture.histograms = {"head"};
    EXPECT_EQ(after(plan, edit), (std::vector{wish("head", 10, What::kStatistics | What::kHistogram)}));
    edit.capture.collections = {"head=^conv"};
    const auto anew = edited(plan, edit);
    ASSERT_TRUE(anew.is_ok());
    ASSERT_EQ(anew->collections.size(), 1U);
    EXPECT_EQ(anew->collections[0].include, std::vector<std::string>{"^conv"});
    EXPECT_TRUE(anew->collections[0].exclude.empty());
    EXPECT_EQ(anew->requirements.size(), 1U);
}

TEST(PlanEdit, WhatIsWrongIsNamedAsByRun) {
    PlanEdit edit;
    edit.capture.collect = {"gradient"};
    EXPECT_NE(error_of({}, edit).find("--collect: no collection 'gradient' (did you mean 'gradients'?)"),
              std::string::npos)
        << error_of({}, edit);
    edit.capture.collect = {};
    edit.capture.collections = {"x=("};
    EXPECT_NE(error_of({}, edit).find("--collection"), std::string::npos);
    edit.capture.collections = {"x=(?<=a)b"};  // Python understands it, the training does not
    EXPECT_FALSE(error_of({}, edit).empty());
}

TEST(PlanEdit, ProbesAreAskedForOfATrainingThatRuns) {
    const CaptureConfig plan = plan_of({});
    PlanEdit edit;
    EXPECT_TRUE(edit.is_empty());
    edit.capture.probe = true;
    EXPECT_FALSE(edit.is_empty());
    const auto probed = edited(plan, edit);
    ASSERT_TRUE(probed.is_ok()) << probed.status().message();
    EXPECT_TRUE(probed->probe);
    EXPECT_EQ(differences(plan, *probed), (std::vector<std::string>{"+ probes of the model"}));
    EXPECT_EQ(differences(*probed, plan), (std::vector<std::string>{"- probes of the model"}));
}

TEST(PlanEdit, DifferencesAreSentences) {
    CaptureConfig before = plan_of({wish("gradients", 20)});
    CaptureConfig after = plan_of({wish("head", 5)});
    after.collections = {{.name = "head", .include = {"a", "b"}, .exclude = {"c"}}};
    after.compiled = model::CompiledModels::kEager;
    EXPECT_EQ(differences(before, after),
              (std::vector<std::string>{"- statistics of 'gradients' in train, at every 20th step, for user",
                                        "+ collection 'head': tensors whose names match a or b and not c",
                                        "+ statistics of 'head' in train, at every 5th step, for user",
                                        "- compiled models: auto", "+ compiled models: eager"}));
    EXPECT_TRUE(differences(before, before).empty());
}

}  // namespace
}  // namespace traindbg::cli
