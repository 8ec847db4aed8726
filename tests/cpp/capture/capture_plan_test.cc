#include "traindbg/capture/capture_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace traindbg::capture {
namespace {

using base::Code;
using model::CaptureConfig;
using model::Mode;
using model::Requirement;
using model::Role;
using model::Schedule;
using model::TensorInfo;
using model::What;

Requirement need(std::string collection, Schedule schedule, What what = What::kStatistics,
                 Mode mode = Mode::kTrain) {
    return {.collection = std::move(collection),
            .mode = mode,
            .what = what,
            .schedule = schedule,
            .asked_by = "a_rule"};
}

// What a collection of the user's may hold a tensor of, as long as nothing is known.
constexpr RoleMask kGuessed = kAllRoles & ~kAskedFor;

TensorInfo tensor(std::string name, Role role) {
    TensorInfo info;
    info.name = std::move(name);
    info.role = role;
    return info;
}

CapturePlan plan_of(CaptureConfig config) {
    auto plan = CapturePlan::make(std::move(config));
    EXPECT_TRUE(plan) << plan.status().message();
    return std::move(plan).value();
}

TEST(CapturePlan, WithoutRequirementsNothingIsEverDue) {
    CapturePlan plan = plan_of({});
    plan.note_tensor(tensor("weight/a", Role::kWeight));
    for (const model::StepIndex step : {0U, 1U, 1000U}) {
        EXPECT_EQ(plan.due_roles(Mode::kTrain, step), 0U);
        EXPECT_EQ(plan.due(0, Mode::kTrain, step), What::kNothing);
    }
    EXPECT_EQ(plan.next_step_needed(Mode::kTrain, 0), UINT64_MAX);
}

TEST(CapturePlan, RolesAreDueAtTheirSteps) {
    const CapturePlan plan = plan_of(
        {.requirements = {need("gradients", {.every = 10, .dense_until = 3}), need("losses", {.every = 1}),
                          need("losses", {.every = 1}, What::kStatistics, Mode::kEval)},
         .collections = {}});
    const RoleMask loss = mask_of(Role::kLoss);
    const RoleMask both = loss | mask_of(Role::kGradient);
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 0), both);
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 2), both);
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 3), loss);
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 10), both);
    EXPECT_EQ(plan.due_roles(Mode::kEval, 10), loss);
    EXPECT_EQ(plan.due_roles(Mode::kPredict, 10), 0U);
}

TEST(CapturePlan, APlanThatTakesOverKeepsTimesAndWhatIsKnownOfTheForwardPass) {
    Requirement timed = need("weights", {.every = 0});
    timed.every_ms = 1000;
    Requirement users = need("mine", {.every = 1});
    users.asked_by = "user";
    const auto make = [&](std::vector<Requirement> requirements) {
        CapturePlan plan =
            plan_of({.requirements = std::move(requirements),
                     .collections = {{.name = "mine", .include = {"output/a"}, .exclude = {}}}});
        plan.note_tensor(tensor("weight/a", Role::kWeight));
        plan.note_tensor(tensor("output/a", Role::kOutput));
        return plan;
    };
    CapturePlan before = make({timed});
    before.begin_step(Mode::kTrain, 0, 0);
    EXPECT_EQ(before.due_roles(Mode::kTrain, 0), mask_of(Role::kWeight));
    before.note_forward_pass();

    CapturePlan after = make({users, timed});
    after.take_over(before);
    after.begin_step(Mode::kTrain, 1, 500'000'000);
    EXPECT_EQ(after.due(0, Mode::kTrain, 1), What::kNothing);  // half of its time has passed
    EXPECT_EQ(after.eager_roles(Mode::kTrain, 1), mask_of(Role::kOutput));
    after.begin_step(Mode::kTrain, 2, 1'000'000'000);
    EXPECT_EQ(after.due(0, Mode::kTrain, 2), What::kStatistics);

    // A pass that showed inputs only has taught nothing of what modules return.
    CapturePlan inputs = plan_of({.requirements = {need("inputs", {.every = 1})}, .collections = {}});
    inputs.note_tensor(tensor("input/0", Role::kInput));
    inputs.note_forward_pass();
    CapturePlan next = plan_of(
        {.requirements = {users}, .collections = {{.name = "mine", .include = {"output"}, .exclude = {}}}});
    next.note_tensor(tensor("input/0", Role::kInput));
    next.take_over(inputs);
    EXPECT_NE(next.eager_roles(Mode::kTrain, 0) & mask_of(Role::kOutput), 0U);
}

TEST(CapturePlan, SchedulesAreWords) {
    EXPECT_EQ(when_in_words(need("weights", {.every = 1})), "at every step");
    EXPECT_EQ(when_in_words(need("weights", {.every = 2})), "at every 2nd step");
    EXPECT_EQ(when_in_words(need("weights", {.every = 13})), "at every 13th step");
    EXPECT_EQ(when_in_words(need("weights", {.every = 123})), "at every 123rd step");
    EXPECT_EQ(when_in_words(need("weights", {.every = 0})), "never");
}

RoleMask eager_of(model::CompiledModels choice, model::StepIndex step) {
    Requirement users = need("outputs", {.every = 10});
    users.asked_by = "user";
    return plan_of({.requirements = {need("activations", {.every = 1}), need("weights", {.every = 1}), users},
                    .collections = {},
                    .compiled = choice})
        .eager_roles(Mode::kTrain, step);
}

TEST(CapturePlan, CompiledModelsRunUncompiledForWhatTheUserAskedForUnlessToldOtherwise) {
    using model::CompiledModels;
    const RoleMask output = mask_of(Role::kOutput);
    EXPECT_EQ(eager_of(CompiledModels::kAuto, 10), output);
    EXPECT_EQ(eager_of(CompiledModels::kAuto, 11), 0U);
    EXPECT_EQ(eager_of(CompiledModels::kSkip, 10), 0U);
    EXPECT_EQ(eager_of(CompiledModels::kEager, 10), output | mask_of(Role::kActivation));
    EXPECT_EQ(eager_of(CompiledModels::kEager, 11), mask_of(Role::kActivation));
}

TEST(CapturePlan, ACollectionOfTheUsersMakesCompiledModelsRunUncompiledUntilItsRolesAreKnown) {
    Requirement users = need("mine", {.every = 1});
    users.asked_by = "user";
    CapturePlan plan = plan_of(
        {.requirements = {users}, .collections = {{.name = "mine", .include = {"fc1"}, .exclude = {}}}});
    EXPECT_EQ(plan.eager_roles(Mode::kTrain, 0), kForwardRoles & kGuessed)
        << "it may hold tensors of any role";
    plan.note_tensor(tensor("output/fc1", Role::kOutput));
    plan.note_tensor(tensor("input/0", Role::kInput));
    plan.note_forward_pass();
    EXPECT_EQ(plan.eager_roles(Mode::kTrain, 1), mask_of(Role::kOutput));
}

TEST(CapturePlan, TheNextStepNeededIsTheFirstOneDue) {
    const std::vector<Schedule> schedules = {
        {.every = 1},
        {.every = 7},
        {.every = 7, .dense_until = 5},
        {.every = 0, .dense_until = 5},
        {.every = 10, .dense_until = 0, .start = 25},
        {.every = 10, .dense_until = 30, .start = 25, .end = 41},
        {.every = 0},
        {.every = 3, .dense_until = 0, .start = 0, .end = 0},
    };
    for (const Schedule& schedule : schedules) {
        const CapturePlan plan = plan_of({.requirements = {need("weights", schedule)}, .collections = {}});
        CapturePlan of_second = plan_of({.requirements = {need("weights", schedule)}, .collections = {}});
        of_second.begin_training(23, 0);
        for (model::StepIndex from = 0; from < 60; ++from) {
            for (const model::StepIndex began : {0U, 23U}) {
                model::StepIndex want = UINT64_MAX;
                for (model::StepIndex step = from; step < from + 200; ++step) {
                    if (!schedule.is_due(step, began)) continue;
                    want = step;
                    break;
                }
                EXPECT_EQ((began == 0 ? plan : of_second).next_step_needed(Mode::kTrain, from), want)
                    << schedule.every << " from " << from << " began " << began;
            }
        }
    }
}

TEST(CapturePlan, WhereATrainingBeginsIsLookedAtAgainInALaterOne) {
    Requirement of_user = need("weights", {.every = 0, .dense_until = 2});
    of_user.asked_by = "user";
    CapturePlan plan = plan_of(
        {.requirements = {need("gradients", {.every = 10, .dense_until = 3, .end = 40}), of_user,
                          need("losses", {.every = 0, .dense_until = 2}, What::kStatistics, Mode::kEval)},
         .collections = {}});
    plan.begin_training(95, 7);
    const RoleMask gradient = mask_of(Role::kGradient);
    for (const model::StepIndex step : {95U, 96U, 97U, 100U, 130U})
        EXPECT_EQ(plan.due_roles(Mode::kTrain, step), gradient) << step;
    for (const model::StepIndex step : {94U, 98U, 99U, 140U})  // 140: the 45th step of that training
        EXPECT_EQ(plan.due_roles(Mode::kTrain, step), 0U) << step;
    EXPECT_EQ(plan.due_roles(Mode::kEval, 6), 0U);
    EXPECT_EQ(plan.due_roles(Mode::kEval, 8), mask_of(Role::kLoss));
    EXPECT_EQ(plan.due_roles(Mode::kEval, 9), 0U);
    EXPECT_EQ(plan.next_step_needed(Mode::kTrain, 98), 100U);

    CapturePlan other = plan_of(plan.config());
    other.take_over(plan);
    EXPECT_EQ(other.due_roles(Mode::kTrain, 96), gradient);
}

TEST(CapturePlan, NamedStepsAreDueAndNoOthers) {
    Requirement at = need("weights", {.every = 0, .start = 5, .end = 40});
    at.steps = {0, 7, 30, 40};
    const CapturePlan plan = plan_of({.requirements = {at}, .collections = {}});
    std::vector<model::StepIndex> due;
    for (model::StepIndex step = 0; step < 60; ++step)
        if (plan.due_roles(Mode::kTrain, step) != 0) due.push_back(step);
    EXPECT_EQ(due, (std::vector<model::StepIndex>{7, 30}))
        << "those before the start and from the end are not";
    EXPECT_EQ(plan.next_step_needed(Mode::kTrain, 0), 7U);
    EXPECT_EQ(plan.next_step_needed(Mode::kTrain, 8), 30U);
    EXPECT_EQ(plan.next_step_needed(Mode::kTrain, 31), UINT64_MAX);
    EXPECT_NE(when_in_words(plan.config().requirements[0]).find("at steps 0, 7, 30, 40"), std::string::npos);
}

TEST(CapturePlan, ByTimeAStepIsDueWhenEnoughHasPassedSinceTheLastOne) {
    Requirement timed = need("weights", {.every = 0, .start = 2});
    timed.every_ms = 1000;
    timed.mode = Mode::kGlobal;
    CapturePlan plan = plan_of({.requirements = {timed}, .collections = {}});
    plan.note_tensor(tensor("weight/a", Role::kWeight));
    const auto begin = [&](Mode mode, model::StepIndex step, std::int64_t milliseconds) {
        plan.begin_step(mode, step, milliseconds * 1'000'000);
        EXPECT_EQ(plan.due(0, mode, step) != What::kNothing, plan.due_roles(mode, step) != 0);
        return plan.due_roles(mode, step) != 0;
    };
    EXPECT_FALSE(begin(Mode::kTrain, 0, 0)) << "before its start";
    EXPECT_TRUE(begin(Mode::kTrain, 2, 5000));
    EXPECT_FALSE(begin(Mode::kEval, 2, 5500));
    EXPECT_NE(plan.due_roles(Mode::kTrain, 2), 0U) << "another mode's step takes nothing from this one";
    EXPECT_FALSE(begin(Mode::kTrain, 3, 5999));
    EXPECT_TRUE(begin(Mode::kTrain, 4, 6000));
    EXPECT_FALSE(begin(Mode::kTrain, 5, 6001));
    EXPECT_TRUE(begin(Mode::kTrain, 6, 60'000)) << "once, however long it took";
    EXPECT_FALSE(begin(Mode::kTrain, 7, 60'001));
    EXPECT_EQ(plan.next_step_needed(Mode::kTrain, 0), 2U);
}

TEST(CapturePlan, TheNextStepNeededDoesNotWrapAround) {
    const CapturePlan plan = plan_of({.requirements = {need("weights", {.every = 10})}, .collections = {}});
    EXPECT_EQ(plan.next_step_needed(Mode::kTrain, UINT64_MAX - 3), UINT64_MAX);
}

TEST(CapturePlan, ScalarsAloneNeedNoStep) {
    const CapturePlan plan = plan_of(
        {.requirements = {need("losses", {.every = 1}), need("metrics", {.every = 1})}, .collections = {}});
    EXPECT_EQ(plan.next_step_needed(Mode::kTrain, 0), UINT64_MAX);
}

TEST(CapturePlan, WhatIsDueOfATensorIsTheUnionOverItsCollections) {
    CapturePlan plan = plan_of(
        {.requirements = {need("activations", {.every = 2}), need("activations", {.every = 3}, What::kUnits),
                          need("first", {.every = 5}, What::kRaw)},
         .collections = {{.name = "first", .include = {"^activation/fc1"}, .exclude = {"\\.relu$"}}}});
    plan.note_tensor(tensor("activation/fc1", Role::kActivation));
    plan.note_tensor(tensor("activation/fc1.relu", Role::kActivation));
    plan.note_tensor(tensor("weight/fc1", Role::kWeight));
    EXPECT_EQ(plan.due(0, Mode::kTrain, 0), What::kStatistics | What::kUnits | What::kRaw);
    EXPECT_EQ(plan.due(0, Mode::kTrain, 1), What::kNothing);
    EXPECT_EQ(plan.due(0, Mode::kTrain, 4), What::kStatistics);
    EXPECT_EQ(plan.due(0, Mode::kTrain, 15), What::kUnits | What::kRaw);
    EXPECT_EQ(plan.due(1, Mode::kTrain, 5), What::kNothing);
    EXPECT_EQ(plan.due(2, Mode::kTrain, 0), What::kNothing);
    EXPECT_EQ(plan.due(3, Mode::kTrain, 0), What::kNothing) << "an id that nobody noted";
}

TEST(CapturePlan, TensorsMayNameTheirCollectionsThemselves) {
    CapturePlan plan = plan_of({.requirements = {need("mine", {.every = 1})},
                                .collections = {{.name = "mine", .include = {}, .exclude = {}}}});
    TensorInfo info = tensor("weight/a", Role::kWeight);
    plan.note_tensor(info);
    info.collections = {"mine"};
    plan.note_tensor(info);
    EXPECT_EQ(plan.due(0, Mode::kTrain, 0), What::kNothing);
    EXPECT_EQ(plan.due(1, Mode::kTrain, 0), What::kStatistics);
}

TEST(CapturePlan, AUsersCollectionNeedsTheRolesItMayHold) {
    CapturePlan plan = plan_of({.requirements = {need("mine", {.every = 2})},
                                .collections = {{.name = "mine", .include = {"^weight/"}, .exclude = {}}}});
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 0), kGuessed);
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 1), 0U);
    plan.note_tensor(tensor("weight/a", Role::kWeight));
    plan.note_tensor(tensor("gradient/a", Role::kGradient));
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 0), kGuessed & ~mask_of(Role::kGradient));
    plan.note_forward_pass(mask_of(Role::kOutput));
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 0), kGuessed & ~mask_of(Role::kGradient));
    plan.note_forward_pass(kGuessed);
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 0),
              kGuessed & ~mask_of(Role::kGradient) & ~mask_of(Role::kAttention))
        << "it was looked for and there is none";
}

TEST(CapturePlan, GlobalRequirementsHoldInEveryMode) {
    const CapturePlan plan =
        plan_of({.requirements = {need("losses", {.every = 1}, What::kStatistics, Mode::kGlobal)},
                 .collections = {}});
    for (const Mode mode : {Mode::kTrain, Mode::kEval, Mode::kPredict})
        EXPECT_EQ(plan.due_roles(mode, 0), mask_of(Role::kLoss));
}

TEST(CapturePlan, UnknownCollectionsAreRefusedWithTheNearestName) {
    const auto plan =
        CapturePlan::make({.requirements = {need("gradient", {.every = 1})}, .collections = {}});
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.status().code(), Code::kInvalidArgument);
    EXPECT_NE(plan.status().message().find("did you mean 'gradients'"), std::string::npos)
        << plan.status().message();
}

TEST(CapturePlan, BadPatternsAndTakenNamesAreRefused) {
    const auto bad = CapturePlan::make(
        {.requirements = {}, .collections = {{.name = "mine", .include = {"conv(1"}, .exclude = {}}}});
    ASSERT_FALSE(bad);
    EXPECT_NE(bad.status().message().find("'conv(1'"), std::string::npos) << bad.status().message();
    const auto taken = CapturePlan::make(
        {.requirements = {}, .collections = {{.name = "weights", .include = {}, .exclude = {}}}});
    EXPECT_EQ(taken.status().code(), Code::kInvalidArgument);
}

TEST(CapturePlan, PatternsThatBacktrackElsewhereAnswerAtOnce) {
    CapturePlan plan =
        plan_of({.requirements = {need("mine", {.every = 1})},
                 .collections = {{.name = "mine", .include = {"(a*)*(a*)*(a*)*b"}, .exclude = {}}}});
    plan.note_tensor(tensor(std::string(60, 'a'), Role::kWeight));
    EXPECT_EQ(plan.due(0, Mode::kTrain, 0), What::kNothing);
}

TEST(CapturePlan, TellsTheRequirementsOfATensorAndTheirWords) {
    const CapturePlan plan =
        plan_of({.requirements = {need("gradients", {.every = 10, .dense_until = 20, .start = 5}),
                                  need("mine", {.every = 1}, What::kStatistics | What::kRaw, Mode::kEval)},
                 .collections = {{.name = "mine", .include = {"fc1"}, .exclude = {}}}});
    EXPECT_EQ(plan.requirements_for(tensor("gradient/fc1.weight", Role::kGradient)),
              (std::vector<std::size_t>{0, 1}));
    EXPECT_TRUE(plan.requirements_for(tensor("weight/fc2.weight", Role::kWeight)).empty());
    EXPECT_EQ(when_in_words(plan.config().requirements[0]),
              "at every 10th step and at each step below 20, from step 5");
}

Requirement asked(std::string collection, Schedule schedule = {}) {
    Requirement out = need(std::move(collection), schedule);
    out.asked_by = "user";
    return out;
}

CapturePlan plan_of_pattern(const std::string& pattern) {
    return plan_of({.requirements = {asked("mine")}, .collections = {{"mine", {pattern}, {}}}});
}

TEST(CapturePlan, ABlockIsNamedByAPatternThatFindsItAndNotWhatIsInside) {
    for (const char* pattern :
         {"^output/block1$", "output/block[12]$", "^(output|activation)/(.*)(block1)($|@)",
          "output/(block1|block1\\.fc)$", "output/\\w+$", "block\\d(\\.\\d)?$"}) {
        CapturePlan plan = plan_of_pattern(pattern);
        EXPECT_TRUE(plan.note_block("output/block1")) << pattern;
        EXPECT_EQ(plan.collections_of("output/block1", Role::kBlockOutput), std::vector<std::string>{"mine"});
    }
    for (const char* pattern : {"output/.*", ".*", "output/block1", "^output", "output/[\\w.]+$",
                                "output/[^/]+$", "^output/block2$"}) {
        CapturePlan plan = plan_of_pattern(pattern);
        EXPECT_FALSE(plan.note_block("output/block1")) << pattern;
        EXPECT_TRUE(plan.collections_of("output/block1", Role::kBlockOutput).empty()) << pattern;
    }
    EXPECT_FALSE(plan_of_pattern("output/[0-9.]+$").note_block("output/0"));
}

TEST(CapturePlan, ABlockIsNamedWithItsPartsAndAsOthersAreWithItsMicroBatches) {
    const CapturePlan plain = plan_of_pattern("^output/block1$");
    EXPECT_FALSE(plain.collections_of("output/block1:0", Role::kBlockOutput).empty());
    EXPECT_TRUE(plain.collections_of("output/block1@2", Role::kBlockOutput).empty());
    const CapturePlan all = plan_of_pattern("^output/block1($|@)");
    EXPECT_FALSE(all.collections_of("output/block1@2", Role::kBlockOutput).empty());
    EXPECT_FALSE(all.collections_of("output/block1:logits@2", Role::kBlockOutput).empty());
    CapturePlan part = plan_of_pattern("^output/block1:1$");
    EXPECT_TRUE(part.note_block("output/block1"));
    EXPECT_FALSE(part.note_block("output/block"));
    EXPECT_TRUE(part.collections_of("output/block1:0", Role::kBlockOutput).empty());
    EXPECT_FALSE(part.collections_of("output/block1:1", Role::kBlockOutput).empty());
}

TEST(CapturePlan, BlocksAreDueOnlyWhereTheyAreAskedFor) {
    CapturePlan plan = plan_of({.requirements = {asked("outputs"), asked("mine", {.every = 4})},
                                .collections = {{"mine", {"^output/block1$"}, {}}}});
    const RoleMask block = mask_of(Role::kBlockOutput);
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 0) & block, 0U) << "it is not known that there is one";
    EXPECT_FALSE(plan.note_block("output/block2"));
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 0) & block, 0U);
    EXPECT_TRUE(plan.note_block("output/block1"));
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 0) & block, block);
    EXPECT_EQ(plan.due_roles(Mode::kTrain, 1) & block, 0U) << "outputs are due, and these are none of them";
    plan.note_tensor(tensor("output/block1", Role::kBlockOutput));
    EXPECT_EQ(plan.due(0, Mode::kTrain, 1), What::kNothing);
    EXPECT_EQ(plan.due(0, Mode::kTrain, 4), What::kStatistics);
}

TEST(CapturePlan, TheUsersCollectionsAreWaitedForAtTheStepsAtWhichTheyAreDue) {
    CapturePlan plan =
        plan_of({.requirements = {asked("mine", {.every = 2}), asked("found"), need("rules", {})},
                 .collections = {{"mine", {"^output/no"}, {}},
                                 {"found", {"^weight/"}, {}},
                                 {"rules", {"^output/not"}, {}},
                                 {"nobodys", {"^output/never"}, {}}}});
    plan.note_tensor(tensor("weight/a", Role::kWeight));
    for (const model::StepIndex step : {0U, 1U, 2U, 3U}) plan.note_end(Mode::kTrain, step);
    EXPECT_TRUE(plan.take_unmatched(3, false).empty());
    plan.note_end(Mode::kEval, 4);
    EXPECT_TRUE(plan.take_unmatched(3, false).empty());
    plan.note_end(Mode::kTrain, 4);
    const auto told = plan.take_unmatched(3, false);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].name, "mine");
    EXPECT_FALSE(plan.is_waiting());
    CapturePlan next = plan_of(plan.config());
    next.take_over(plan);
    next.note_end(Mode::kTrain, 6);
    for (const auto& each : next.take_unmatched(1, true)) EXPECT_NE(each.name, "mine") << "told before";
}

TEST(CapturePlan, WhatUsersHandOverIsWaitedForUntilTheEnd) {
    CapturePlan plan = plan_of_pattern("^metric/accuracy");
    EXPECT_TRUE(plan.take_unmatched(3, true).empty()) << "it was never due";
    for (const model::StepIndex step : {0U, 1U, 2U, 3U}) plan.note_end(Mode::kTrain, step);
    EXPECT_TRUE(plan.take_unmatched(3, false).empty());
    EXPECT_EQ(plan.take_unmatched(3, true).size(), 1U);
}

}  // namespace
}  // namespace traindbg::capture
