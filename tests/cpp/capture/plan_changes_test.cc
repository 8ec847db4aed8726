#include "traindbg/capture/plan_changes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "storage/temporary_directory.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/capture/capture_session.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/plan_files.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::capture {
namespace {

using base::Code;
using model::CaptureConfig;
using model::Mode;
using model::Requirement;
using model::Role;
using model::StepIndex;
using model::TensorId;
using model::TensorInfo;
using model::What;
using testing::TemporaryDirectory;
using namespace std::chrono_literals;

Requirement need(std::string collection, std::uint64_t every, Mode mode = Mode::kTrain) {
    return {.collection = std::move(collection),
            .mode = mode,
            .what = What::kStatistics,
            .schedule = {.every = every},
            .asked_by = "user"};
}

// A training that looks at a weight, a gradient and a loss in every step.
class PlanChangesTest : public ::testing::Test {
  protected:
    void begin(CaptureConfig config) {
        SessionOptions options;
        options.run_directory = directory_.path();
        options.config = std::move(config);
        auto opened = CaptureSession::open(std::move(options));
        ASSERT_TRUE(opened) << opened.status().message();
        session_ = std::move(opened).value();
    }

    TensorId add(std::string name, Role role, std::vector<std::string> collections = {}) {
        TensorInfo info;
        info.name = std::move(name);
        info.role = role;
        info.collections = std::move(collections);
        return session_->register_tensor(std::move(info));
    }

    StepDirective train_step() {
        const float values[] = {1, 2};
        const std::int64_t shape[] = {2};
        for (const TensorId id : tensors_)
            session_->observe(Mode::kTrain, id, {values, tensor::DType::kFloat32, shape, {}});
        return session_->end_step();
    }

    // As `traindbg set` does it.
    void put(std::uint32_t number, const CaptureConfig& config) {
        put_text(number, model::to_checked_text(model::to_json(config)));
    }
    void put_text(std::uint32_t number, const std::string& text) {
        ASSERT_TRUE(files_.put_atomic(layout_.plan_change_json(number), base::as_bytes(text)).is_ok());
        auto control = storage::ControlBlock::open(layout_.control());
        ASSERT_TRUE(control);
        (*control)->announce_plan();
    }

    // Trains until the plan has changed; gives the first step by the new one.
    StepIndex train_until_changed() {
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        while (std::chrono::steady_clock::now() < deadline)
            if (train_step().plan_changed) return session_->step(Mode::kTrain);
        ADD_FAILURE() << "the plan has not changed";
        return 0;
    }

    // The events of a kind, once the session is closed.
    std::vector<model::Json> events(const std::string& kind) {
        std::vector<model::Json> found;
        auto run = read::Run::open(directory_.path());
        EXPECT_TRUE(run) << run.status().message();
        if (!run) return found;
        for (const read::RunEvent& event : (*run)->events())
            if (event.kind == kind) found.push_back(model::Json::parse(event.json));
        return found;
    }

    // The steps at which something of a tensor was recorded.
    std::set<StepIndex> steps_of(TensorId id, Mode mode = Mode::kTrain) {
        std::set<StepIndex> steps;
        auto run = read::Run::open(directory_.path());
        EXPECT_TRUE(run) << run.status().message();
        if (!run) return steps;
        const auto visited = (*run)->for_each_step([&](const model::StepView& view) {
            for (const model::TensorSample& sample : view.record->tensors)
                if (sample.tensor == id && view.mode() == mode) steps.insert(view.step());
            return true;
        });
        EXPECT_TRUE(visited.is_ok());
        return steps;
    }

    TemporaryDirectory directory_;
    const storage::RunLayout layout_{directory_.path()};
    storage::FileSystem& files_ = storage::posix_file_system();
    std::unique_ptr<CaptureSession> session_;
    std::vector<TensorId> tensors_;
};

TEST_F(PlanChangesTest, AChangeHoldsFromAStepOnAndNotBefore) {
    begin({.requirements = {need("weights", 1)}, .collections = {}});
    const TensorId weight = add("weight/a", Role::kWeight);
    const TensorId gradient = add("gradient/a", Role::kGradient);
    tensors_ = {weight, gradient};
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(train_step().plan_changed);
    put(1, {.requirements = {need("gradients", 2)}, .collections = {}});
    const StepIndex first = train_until_changed();
    EXPECT_EQ(session_->plan().config().requirements, std::vector{need("gradients", 2)});
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(train_step().plan_changed);
    session_->close(60s);

    std::set<StepIndex> before;
    for (StepIndex step = 0; step < first; ++step) before.insert(step);
    EXPECT_EQ(steps_of(weight), before);
    std::set<StepIndex> after;
    for (StepIndex step = first; step < first + 10; ++step)
        if (step % 2 == 0) after.insert(step);
    EXPECT_EQ(steps_of(gradient), after);
    const auto changed = events("plan_changed");
    ASSERT_EQ(changed.size(), 1U);
    EXPECT_EQ(changed[0].at("number"), 1U);
    EXPECT_EQ(changed[0].at("step"), first);
}

TEST_F(PlanChangesTest, TensorsThatAreKnownBelongToTheNewPlansCollections) {
    begin({});
    tensors_ = {add("weight/fc.weight", Role::kWeight), add("weight/conv.weight", Role::kWeight),
                add("weight/b", Role::kWeight, {"given"})};
    train_step();
    put(1, {.requirements = {need("head", 1), need("given", 1)},
            .collections = {{.name = "head", .include = {"fc"}, .exclude = {}},
                            {.name = "given", .include = {"^nothing$"}, .exclude = {}}}});
    const StepIndex first = train_until_changed();
    tensors_.push_back(add("weight/fc2.weight", Role::kWeight));
    train_step();
    session_->close(60s);
    const std::set<StepIndex> once = {first};
    EXPECT_EQ(steps_of(tensors_[0]), once);
    EXPECT_TRUE(steps_of(tensors_[1]).empty());
    EXPECT_EQ(steps_of(tensors_[2]), once);
    EXPECT_EQ(steps_of(tensors_[3]), once);
}

TEST_F(PlanChangesTest, WhatIsAskedForHoldsAtOnceAndStandsInTheRun) {
    begin({.requirements = {need("weights", 1)}, .collections = {}});
    tensors_ = {add("weight/a", Role::kWeight), add("gradient/a", Role::kGradient)};
    train_step();
    const CaptureConfig more = {.requirements = {need("weights", 1), need("gradients", 1)},
                                .collections = {}};
    ASSERT_TRUE(session_->ask_for(more).is_ok());
    EXPECT_NE(session_->due(Mode::kTrain) & mask_of(Role::kGradient), 0U);
    train_step();
    ASSERT_TRUE(session_->ask_for(more).is_ok()) << "it is captured already";
    train_step();
    session_->close(60s);
    EXPECT_EQ(steps_of(tensors_[0]), (std::set<StepIndex>{0, 1, 2}));
    EXPECT_EQ(steps_of(tensors_[1]), (std::set<StepIndex>{1, 2}));
    EXPECT_EQ(events("plan_changed").size(), 1U);
    const auto in_force = read_plan_in_force(files_, layout_);
    ASSERT_TRUE(in_force);
    EXPECT_EQ(in_force->number, 1U);
    EXPECT_EQ(in_force->config.requirements, more.requirements);
}

TEST_F(PlanChangesTest, AnOlderChangeThatIsFoundLateDoesNotWin) {
    begin({});
    tensors_ = {add("weight/a", Role::kWeight), add("gradient/a", Role::kGradient)};
    put(1, {.requirements = {need("weights", 1)}, .collections = {}});
    train_step();                        // a thread begins to look
    std::this_thread::sleep_for(500ms);  // and most likely has found the change
    ASSERT_TRUE(session_->ask_for({.requirements = {need("gradients", 1)}, .collections = {}}).is_ok());
    const StepIndex asked = session_->step(Mode::kTrain);
    for (int i = 0; i < 20; ++i) train_step();
    session_->close(60s);
    for (const TensorId id : tensors_) EXPECT_EQ(steps_of(id).size(), 20U) << id;
    EXPECT_EQ(*steps_of(tensors_[1]).begin(), asked);
}

TEST_F(PlanChangesTest, WhatCannotBeAskedForIsNamedAndNothingChanges) {
    begin({.requirements = {need("weights", 1)}, .collections = {}});
    tensors_ = {add("weight/a", Role::kWeight)};
    const base::Status status =
        session_->ask_for({.requirements = {need("mine", 1)},
                           .collections = {{.name = "mine", .include = {"("}, .exclude = {}}}});
    EXPECT_EQ(status.code(), base::Code::kInvalidArgument);
    EXPECT_NE(status.message().find("mine"), std::string::npos);
    train_step();
    session_->close(60s);
    EXPECT_EQ(steps_of(tensors_[0]).size(), 1U);
}

TEST_F(PlanChangesTest, EvaluationsFollowItToo) {
    begin({});
    const TensorId output = add("output/fc", Role::kOutput);
    train_step();
    EXPECT_EQ(session_->due(Mode::kEval), 0U);
    put(1, {.requirements = {need("outputs", 1, Mode::kEval)}, .collections = {}});
    train_until_changed();
    EXPECT_EQ(session_->due(Mode::kEval), mask_of(Role::kOutput));
    const float value = 1;
    const std::int64_t shape[] = {1};
    session_->observe(Mode::kEval, output, {&value, tensor::DType::kFloat32, shape, {}});
    session_->end_eval_step();
    session_->close(60s);
    EXPECT_EQ(steps_of(output, Mode::kEval), std::set<StepIndex>{0});
}

TEST_F(PlanChangesTest, AChangeThatIsNoneIsRefusedOnceAndTheNextOneFollowed) {
    begin({.requirements = {need("weights", 1)}, .collections = {}});
    tensors_ = {add("weight/a", Role::kWeight)};
    train_step();
    std::string damaged = model::to_checked_text(model::to_json(CaptureConfig{}));
    damaged[damaged.find("part_bytes")] = 'q';
    std::uint32_t number = 0;
    std::size_t refused = 0;
    for (const std::string& text :
         {damaged, std::string("{"), std::string(R"({"requirements": [{"collection": "wieghts"}]})"),
          std::string(R"({"collections": [{"name": "x", "include": ["("]}]})")}) {
        put_text(++number, text);
        // Counted in the run once the thread has looked at it; until then nothing tells.
        ++refused;
        const auto deadline = std::chrono::steady_clock::now() + 60s;
        std::size_t seen = 0;
        while (seen < refused && std::chrono::steady_clock::now() < deadline) {
            EXPECT_FALSE(train_step().plan_changed);
            seen = events("plan_refused").size();
        }
        ASSERT_EQ(seen, refused) << text;
    }
    EXPECT_EQ(session_->plan().config().requirements, std::vector{need("weights", 1)});
    put(++number, {.requirements = {need("gradients", 1)}, .collections = {}});
    train_until_changed();
    session_->close(60s);
    const auto events_of_refusal = events("plan_refused");
    ASSERT_EQ(events_of_refusal.size(), refused);
    EXPECT_NE(events_of_refusal[0].at("reason").get<std::string>().find("checksum"), std::string::npos);
    EXPECT_NE(events_of_refusal[2].at("reason").get<std::string>().find("weights"), std::string::npos);
    for (std::size_t i = 0; i < refused; ++i) EXPECT_EQ(events_of_refusal[i].at("number"), i + 1);
}

TEST_F(PlanChangesTest, AForkMeanwhileIsHarmless) {
#if defined(TRAINDBG_ADDRESS_SANITIZER)
    GTEST_SKIP() << "a fork does not free the locks of its allocator, and the thread may hold one";
#endif
    begin({.requirements = {need("weights", 1)}, .collections = {}});
    tensors_ = {add("weight/a", Role::kWeight)};
    for (std::uint32_t number = 1; number <= 5; ++number) {
        put(number, {.requirements = {need("weights", number)}, .collections = {}});
        train_step();  // the thread has begun
        const pid_t child = fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            const bool quiet = !train_step().plan_changed && !session_->is_open();
            session_.reset();
            _exit(quiet ? 0 : 1);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        train_until_changed();
    }
    session_->close(60s);
    EXPECT_EQ(events("plan_changed").size(), 5U);
}

TEST_F(PlanChangesTest, ASessionEndsWhileAChangeIsOnItsWay) {
    begin({.requirements = {need("weights", 1)}, .collections = {}});
    for (int i = 0; i < 1000; ++i) add("weight/" + std::to_string(i), Role::kWeight);
    put(1, {.requirements = {need("x", 1)},
            .collections = {{.name = "x", .include = {"(a|b|c)*d", "[0-9]+$"}, .exclude = {}}}});
    train_step();
    session_->close(60s);
    EXPECT_FALSE(session_->is_open());
}

TEST_F(PlanChangesTest, WhoComesLaterFollowsTheNewestPlan) {
    begin({.requirements = {need("weights", 1)}, .collections = {}});
    put(1, {.requirements = {need("gradients", 1)}, .collections = {}});
    session_->close(60s);
    begin({.requirements = {need("gradients", 1)}, .collections = {}});  // read the newest itself
    EXPECT_FALSE(train_step().plan_changed);
    put(2, {.requirements = {need("losses", 1)}, .collections = {}});
    train_until_changed();
    session_->close(60s);
    // Read the plan before the last change: takes it on.
    begin({.requirements = {need("gradients", 1)}, .collections = {}});
    train_until_changed();
    const auto& requirements = session_->plan().config().requirements;
    EXPECT_NE(std::find(requirements.begin(), requirements.end(), need("losses", 1)), requirements.end());
    session_->close(60s);
}

TEST_F(PlanChangesTest, WhatAScriptAsksForBeyondTheRunsPlanStandsInTheRun) {
    const auto in_force = [&] { return read_plan_in_force(files_, layout_); };
    EXPECT_EQ(in_force().status().code(), Code::kNotFound);
    CaptureConfig plan{.requirements = {need("weights", 1)}, .collections = {}};
    begin(plan);
    session_->close(60s);
    EXPECT_EQ(in_force()->number, 0U);
    plan.collections = {{.name = "mine", .include = {"a"}, .exclude = {}}};
    plan.requirements.push_back(need("mine", 7));
    for (int rank = 0; rank < 2; ++rank) {
        begin(plan);
        session_->close(60s);
        EXPECT_EQ(in_force()->number, 1U);
        EXPECT_EQ(in_force()->config, plan);
    }
    // A rank that asks for less takes nothing away.
    begin({});
    session_->close(60s);
    EXPECT_EQ(in_force()->number, 1U);
}

TEST(PlanFiles, NumbersHaveOneSpelling) {
    EXPECT_EQ(storage::parse_plan_change("plan-000012.json"), 12U);
    EXPECT_EQ(storage::parse_plan_change("plan-1000000.json"), 1000000U);
    for (const char* name : {"plan.json", "plan-1.json", "plan-000000.json", "plan-00000x.json",
                             "plan-000001.json.tmp", "xplan-000001.json"})
        EXPECT_FALSE(storage::parse_plan_change(name)) << name;
}

TEST(TensorNames, GiveWhatWasAdded) {
    TensorNames names;
    const std::vector<std::string> mine = {"mine", "yours"};
    names.add("a", Role::kWeight, {});
    names.add("", Role::kLoss, mine);
    names.add("bcd", Role::kGradient, {});
    ASSERT_EQ(names.size(), 3U);
    EXPECT_EQ(names.name(0), "a");
    EXPECT_EQ(names.name(1), "");
    EXPECT_EQ(names.name(2), "bcd");
    EXPECT_EQ(names.role(2), Role::kGradient);
    EXPECT_TRUE(names.collections(0).empty());
    EXPECT_EQ(names.collections(1).size(), 2U);
    EXPECT_TRUE(names.collections(2).empty());
}

TEST_F(PlanChangesTest, WhatWasTakenOutStaysOutThoughAnotherSessionAsksForItAgain) {
    CaptureConfig config;
    config.requirements = {need("losses", 1), need("gradients", 10)};
    begin(config);
    CaptureConfig without = config;
    without.requirements.pop_back();
    put(1, without);
    config.requirements.push_back(need("weights", 5));
    const auto published = publish_wishes(files_, layout_, config);
    ASSERT_TRUE(published) << published.status().message();
    EXPECT_EQ(published->number, 2U);
    EXPECT_EQ(published->config.requirements, (std::vector{need("losses", 1), need("weights", 5)}));
}

// What the default rules need, and nothing else.
CaptureConfig needs_of_rules() {
    CaptureConfig config;
    config.requirements = {need("gradients", 1), need("losses", 1), need("inputs", 1, Mode::kEval)};
    for (Requirement& each : config.requirements) each.asked_by = "a_rule";
    return config;
}

TEST_F(PlanChangesTest, WithoutABudgetWhatRulesNeedInTrainingIsLimitedAndThatIsTold) {
    begin(needs_of_rules());
    const TensorId gradient = add("gradient/w", Role::kGradient), loss = add("loss/l", Role::kLoss),
                   input = add("input/0", Role::kInput);
    tensors_ = {gradient, loss};
    static_cast<void>(train_step());
    session_->add_cost(std::uint64_t{2'900'000'000});  // as much is free
    for (int i = 0; i < 2; ++i) static_cast<void>(train_step());
    session_->add_cost(std::uint64_t{3'600'000'000'000});
    for (int i = 0; i < 5; ++i) static_cast<void>(train_step());
    const float values[] = {1, 2};
    const std::int64_t shape[] = {2};
    session_->observe(Mode::kEval, input, {values, tensor::DType::kFloat32, shape, {}});
    session_->end_eval_step();
    session_->begin_training(true);  // of another model
    for (int i = 0; i < 2; ++i) static_cast<void>(train_step());
    session_->close(60s);
    EXPECT_EQ(steps_of(gradient), (std::set<StepIndex>{0, 1, 2, 3, 8, 9}));
    EXPECT_EQ(steps_of(loss).size(), 10U);
    EXPECT_EQ(steps_of(input, Mode::kEval).size(), 1U) << "evaluations are few";
    const std::vector<model::Json> told = events("budget");
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0]["is_standing"], true);
    EXPECT_EQ(told[0]["budget"], 0.02);
    EXPECT_EQ(told[0]["steps_left_out"], 4);
}

TEST_F(PlanChangesTest, WhoAsksForMoreThanRulesNeedHasNoLimitUnlessHeSetsOne) {
    CaptureConfig config = needs_of_rules();
    EXPECT_EQ(limit_of(config), std::nullopt);
    config.requirements.push_back(need("weights", 1));
    EXPECT_EQ(limit_of(config), 0);
    config.budget = 0.1;
    EXPECT_EQ(limit_of(config), 0.1);
    config = needs_of_rules();
    config.flight.steps = 5;
    EXPECT_EQ(limit_of(config), 0);
    config = needs_of_rules();
    config.requirements.push_back(need("weights", 1));
    begin(config);
    tensors_ = {add("gradient/w", Role::kGradient)};
    session_->add_cost(std::uint64_t{3'600'000'000'000});
    for (int i = 0; i < 5; ++i) static_cast<void>(train_step());
    session_->close(60s);
    EXPECT_EQ(steps_of(tensors_[0]).size(), 5U) << "what it takes is not taken from the rules";
}

TEST_F(PlanChangesTest, ATrainingWithinTheStandingLimitIsToldNothingOfIt) {
    CaptureConfig config;
    config.requirements = {need("gradients", 1)};
    config.requirements[0].asked_by = "a_rule";
    begin(config);
    tensors_ = {add("gradient/w", Role::kGradient)};
    for (int i = 0; i < 5; ++i) static_cast<void>(train_step());
    session_->close(60s);
    EXPECT_TRUE(events("budget").empty());
}

TEST_F(PlanChangesTest, WithABudgetOfNoneNothingIsLimited) {
    CaptureConfig config;
    config.requirements = {need("gradients", 1)};
    config.requirements[0].asked_by = "a_rule";
    config.budget = 0;
    begin(config);
    tensors_ = {add("gradient/w", Role::kGradient)};
    session_->add_cost(std::uint64_t{3'600'000'000'000});
    for (int i = 0; i < 5; ++i) static_cast<void>(train_step());
    session_->close(60s);
    EXPECT_EQ(steps_of(tensors_[0]).size(), 5U);
}

TEST_F(PlanChangesTest, ABudgetThatIsLiftedLeavesNothingOutAnyMore) {
    CaptureConfig config;
    config.requirements = {need("gradients", 1)};
    config.budget = 0.01;
    begin(config);
    const TensorId gradient = add("gradient/w", Role::kGradient);
    tensors_ = {gradient};
    static_cast<void>(train_step());
    session_->add_cost(std::uint64_t{3'600'000'000'000});  // no test takes the days that this costs
    for (int i = 0; i < 5; ++i) static_cast<void>(train_step());
    config.budget = 0;
    put(1, config);
    const StepIndex first = train_until_changed();
    for (int i = 0; i < 3; ++i) static_cast<void>(train_step());
    session_->close(60s);
    EXPECT_EQ(steps_of(gradient), (std::set<StepIndex>{0, 1, first, first + 1, first + 2}));
    const std::vector<model::Json> told = events("budget");
    ASSERT_EQ(told.size(), 1U) << "of what was until then";
    EXPECT_EQ(told[0]["budget"], 0.01);
}

}  // namespace
}  // namespace traindbg::capture
