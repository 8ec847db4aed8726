#include "traindbg/capture/flight_recorder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "storage/temporary_directory.h"
#include "traindbg/capture/capture_session.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::capture {
namespace {

using model::Mode;
using model::Role;
using model::StepIndex;
using model::StepRecord;
using model::TensorId;
using model::What;
using tensor::DType;
using tensor::TensorView;
using testing::TemporaryDirectory;
using namespace std::chrono_literals;

constexpr float kFloatNan = std::numeric_limits<float>::quiet_NaN();
constexpr StepIndex kRing = 8;

model::CaptureConfig config(model::FlightRecorder flight = {
                                .steps = kRing, .collect = {"gradients"}, .raw = {}}) {
    model::CaptureConfig out;
    out.requirements = {{.collection = "losses", .schedule = {}, .asked_by = "a_rule"},
                        {.collection = "weights", .schedule = {.every = 50}, .asked_by = "a_rule"}};
    out.block_for_ms = 60'000;  // a writer on a busy machine is waited for
    out.flight = std::move(flight);
    return out;
}

std::unique_ptr<CaptureSession> open(const std::string& directory, model::CaptureConfig plan = config(),
                                     storage::FileSystem& files = storage::posix_file_system()) {
    SessionOptions options;
    options.run_directory = directory;
    options.config = std::move(plan);
    auto session = CaptureSession::open(std::move(options), files);
    EXPECT_TRUE(session) << session.status().message();
    return session ? std::move(session).value() : nullptr;
}

// A training of one weight, whose gradient at step n is n.
class Training {
  public:
    explicit Training(CaptureSession& session) : session_(session) {
        const auto add = [&](std::string name, Role role) {
            model::TensorInfo info;
            info.name = std::move(name);
            info.role = role;
            return session.register_tensor(info);
        };
        loss_ = add("loss", Role::kLoss);
        weight_ = add("weight/w", Role::kWeight);
        gradient_ = add("gradient/w", Role::kGradient);
    }
    void steps(StepIndex count, float loss = 1, float weight = 0.5F) {
        for (StepIndex i = 0; i < count; ++i) {
            session_.observe_scalar(Mode::kTrain, loss_, loss);
            observe(weight_, weight);
            observe_gradient();
            static_cast<void>(session_.end_step());
        }
    }

    void observe_gradient() { observe(gradient_, static_cast<float>(session_.step(Mode::kTrain))); }

  private:
    void observe(TensorId id, float value) {
        const std::vector<float> data(3, value);
        const std::vector<std::int64_t> shape = {3};
        session_.observe(Mode::kTrain, id, TensorView{data.data(), DType::kFloat32, shape, {}});
    }

    CaptureSession& session_;
    TensorId loss_ = 0, weight_ = 0, gradient_ = 0;
};

struct Flight {
    std::set<StepIndex> steps;  // with the gradient
    std::set<StepIndex> raw;
    std::vector<read::RunEvent> events;

    [[nodiscard]] bool has(StepIndex first, StepIndex end) const {
        for (StepIndex step = first; step < end; ++step)
            if (!steps.contains(step)) return false;
        return true;
    }
};

Flight read_flight(const std::string& run) {
    Flight out;
    auto flight = read::Run::open(storage::RunLayout{run}.flight(), storage::posix_file_system());
    EXPECT_TRUE(flight) << flight.status().message();
    if (!flight) return out;
    EXPECT_TRUE((*flight)->for_each_step(
        [&](const model::StepView& view) {
            for (const model::TensorSample& sample : view.record->tensors) {
                if ((*view.tensors)[sample.tensor].name != "gradient/w") continue;
                EXPECT_EQ(sample.statistics.max, static_cast<float>(view.record->step));
                out.steps.insert(view.record->step);
            }
            if (!view.record->raw.empty()) out.raw.insert(view.record->step);
            return true;
        },
        true));
    for (const read::Damage& damage : (*flight)->damage())
        EXPECT_TRUE(damage.tail) << damage.file << ": " << damage.what;
    out.events = (*flight)->events();
    return out;
}

std::vector<std::string> reasons(const std::vector<read::RunEvent>& events) {
    std::vector<std::string> out;
    for (const read::RunEvent& event : events)
        if (event.kind == "flight_recorder")
            out.push_back(nlohmann::json::parse(event.json).value("reason", ""));
    return out;
}

std::vector<std::string> reasons_in(const std::string& run) {
    auto opened = read::Run::open(run, storage::posix_file_system());
    EXPECT_TRUE(opened) << opened.status().message();
    return opened ? reasons((*opened)->events()) : std::vector<std::string>{};
}

TEST(FlightRecorder, ATrainingThatEndsWellLeavesNothing) {
    const TemporaryDirectory directory;
    auto session = open(directory.path());
    EXPECT_TRUE(storage::posix_file_system().exists(directory.path() + "/flight/w0000"));
    Training(*session).steps(100);
    session->close(60s);
    EXPECT_FALSE(storage::posix_file_system().exists(directory.path() + "/flight"));
    auto run = read::Run::open(directory.path(), storage::posix_file_system());
    EXPECT_EQ((*run)->steps(Mode::kTrain).size(), 100U) << "the run itself is as it would be";
    EXPECT_EQ((*run)->series(0, "gradient/w", "max")->size(), 0U);
}

TEST(FlightRecorder, ALossThatIsNotFiniteKeepsTheStepsBeforeAndSomeAfter) {
    const TemporaryDirectory directory;
    auto session = open(directory.path());
    Training training(*session);
    training.steps(200);
    training.steps(1, kFloatNan);
    training.steps(2000);
    session->close(60s);
    const Flight flight = read_flight(directory.path());
    EXPECT_TRUE(flight.has(201 - kRing, 204)) << "those before it, itself, and three after it";
    EXPECT_EQ(reasons(flight.events), std::vector<std::string>{"a loss is not finite"});
    EXPECT_EQ(reasons_in(directory.path()), reasons(flight.events));
}

TEST(FlightRecorder, AWeightThatIsNotFiniteDoesOnce) {
    const TemporaryDirectory directory;
    model::CaptureConfig plan = config({.steps = kRing, .collect = {"gradients", "weights"}, .raw = {}});
    auto session = open(directory.path(), plan);
    Training training(*session);
    training.steps(20);
    training.steps(40, 1, kFloatNan);
    session->close(60s);
    EXPECT_TRUE(read_flight(directory.path()).has(20 - kRing, 24));
    EXPECT_EQ(reasons_in(directory.path()), std::vector<std::string>{"a weight is not finite"});
}

TEST(FlightRecorder, TheSupervisorMayAskForIt) {
    const TemporaryDirectory directory;
    auto session = open(directory.path());
    auto control = storage::ControlBlock::open(storage::RunLayout{directory.path()}.control());
    ASSERT_TRUE(control);
    Training training(*session);
    training.steps(30);
    (*control)->request_flight_copy();
    training.steps(20);
    (*control)->request_flight_copy();
    training.steps(1);
    session->close(60s);
    const Flight flight = read_flight(directory.path());
    EXPECT_TRUE(flight.has(31 - kRing, 34));
    EXPECT_TRUE(flight.has(51 - kRing, 51)) << "what was asked for last is kept though no step came after it";
    EXPECT_EQ(reasons_in(directory.path()),
              (std::vector<std::string>{"a rule found something", "a rule found something"}));
}

TEST(FlightRecorder, HasWholeTensorsWhereAskedFor) {
    const TemporaryDirectory directory;
    auto session = open(directory.path(), config({.steps = kRing, .collect = {}, .raw = {"gradients"}}));
    Training training(*session);
    training.steps(100);
    session->keep_flight("an exception");
    session->close(60s);
    const Flight flight = read_flight(directory.path());
    EXPECT_TRUE(flight.has(100 - kRing, 100));
    EXPECT_EQ(flight.raw, flight.steps);
}

TEST(FlightRecorder, WithoutRoomForWholeTensorsItHasTheSteps) {
    const TemporaryDirectory directory;
    model::CaptureConfig plan = config({.steps = kRing, .collect = {}, .raw = {"gradients"}});
    plan.arena_bytes = 1;  // no tensor finds room in it
    auto session = open(directory.path(), plan);
    Training training(*session);
    for (int step = 0; step < 50; ++step) {
        training.steps(1);
        std::this_thread::sleep_for(1ms);  // most are written before the next one comes
    }
    session->keep_flight("an exception");
    session->close(60s);
    EXPECT_TRUE(read_flight(directory.path()).has(50 - kRing, 50));
}

TEST(FlightRecorder, HasTheStepThatDidNotEnd) {
    const TemporaryDirectory directory;
    model::CaptureConfig plan = config();
    plan.requirements.clear();  // the run itself records nothing of it
    auto session = open(directory.path(), plan);
    Training training(*session);
    training.steps(20);
    training.observe_gradient();
    session->keep_flight("an exception");
    session->close(60s);
    EXPECT_TRUE(read_flight(directory.path()).has(21 - kRing, 21));
}

TEST(FlightRecorder, IsKeptForWhatIsFoundAfterTheLastStep) {
    const TemporaryDirectory directory;
    auto session = open(directory.path());
    auto control = storage::ControlBlock::open(storage::RunLayout{directory.path()}.control());
    ASSERT_TRUE(control);
    Training(*session).steps(20);
    (*control)->request_flight_copy();
    session->close(60s);
    EXPECT_TRUE(read_flight(directory.path()).has(20 - kRing, 20));
}

TEST(FlightRecorder, WithoutCollectionsItHasTheUsualOnes) {
    const TemporaryDirectory directory;
    auto session = open(directory.path(), config({.steps = 4, .collect = {}, .raw = {}}));
    const RoleMask due = session->due(Mode::kTrain);
    for (const Role role : {Role::kWeight, Role::kBias, Role::kGradient, Role::kInput, Role::kOutput,
                            Role::kActivation, Role::kLoss})
        EXPECT_NE(due & mask_of(role), 0U) << to_string(role);
    EXPECT_EQ(due & mask_of(Role::kOptimizerState), 0U);
    EXPECT_EQ(session->due(Mode::kEval) & mask_of(Role::kGradient), 0U);
}

// What a crash leaves behind, of a process that ends in any way but by closing its session.
void expect_after(const std::function<void()>& end) {
    const TemporaryDirectory directory;
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        auto session = open(directory.path());
        Training training(*session);
        training.steps(500);
        // What is queued when a process dies is lost: all but the last moments are asked for here.
        const auto deadline = std::chrono::steady_clock::now() + 200s;
        while (session->counts().writer.steps_written < 500 && std::chrono::steady_clock::now() < deadline)
            usleep(1000);
        usleep(200'000);
        end();
        _exit(1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    const Flight flight = read_flight(directory.path());
    EXPECT_TRUE(flight.has(500 - kRing, 500));
}

TEST(FlightRecorder, OutlivesTheProcessHoweverItEnds) {
    expect_after([] { kill(getpid(), SIGKILL); });
    expect_after([] {
        signal(SIGSEGV, SIG_DFL);  // a sanitizer's handler would take its time
        raise(SIGSEGV);
    });
    expect_after([] { _exit(0); });
}

TEST(FlightRecorder, WhereItCannotBeWrittenTheRunIsRecordedAllTheSame) {
    const TemporaryDirectory directory;
    std::filesystem::create_directories(directory.path());
    std::ofstream(directory.path() + "/flight") << "somebody's file";
    auto session = open(directory.path());
    ASSERT_NE(session, nullptr);
    Training(*session).steps(10, kFloatNan);
    session->close(60s);
    auto run = read::Run::open(directory.path(), storage::posix_file_system());
    EXPECT_EQ((*run)->steps(Mode::kTrain).size(), 10U);
    EXPECT_TRUE(reasons((*run)->events()).empty());
}

TEST(FlightRecorder, DoesNotFillTheDiskWhereSomethingGoesWrongAllTheTime) {
    const TemporaryDirectory directory;
    auto session = open(directory.path());
    Training training(*session);
    for (int i = 0; i < 100; ++i) {
        training.steps(1, kFloatNan);
        training.steps(10);
    }
    session->close(60s);
    EXPECT_EQ(reasons_in(directory.path()).size(), 16U);
}

TEST(SessionBudget, LeavesOutWhatItCannotPayForButNumbersAndNamedSteps) {
    const TemporaryDirectory directory;
    model::CaptureConfig plan;
    plan.budget = 0.01;
    plan.requirements = {
        {.collection = "losses", .schedule = {}, .asked_by = "a_rule"},
        {.collection = "gradients", .schedule = {.every = 10}, .asked_by = "a_rule"},
        {.collection = "weights", .schedule = {.every = 0}, .asked_by = "user", .steps = {77}}};
    auto session = open(directory.path(), plan);
    Training training(*session);
    training.steps(25);
    session->add_cost(std::uint64_t{3'600'000'000'000});  // no test takes the days that this costs
    training.steps(100);
    session->close(60s);
    auto run = read::Run::open(directory.path(), storage::posix_file_system());
    const auto steps = [&](const std::string& name, const char* statistic) {
        std::vector<StepIndex> out;
        const auto series = (*run)->series(0, name, statistic);
        EXPECT_TRUE(series) << series.status().message();
        if (series)
            for (const read::SeriesPoint& point : *series) out.push_back(point.step);
        return out;
    };
    EXPECT_EQ(steps("loss", "value").size(), 125U);
    EXPECT_EQ(steps("gradient/w", "max"), (std::vector<StepIndex>{0, 10, 20}));
    EXPECT_EQ(steps("weight/w", "max"), std::vector<StepIndex>{77});
    std::vector<std::string> kinds;
    nlohmann::json last;
    for (const read::RunEvent& event : (*run)->events()) {
        kinds.push_back(event.kind);
        last = nlohmann::json::parse(event.json);
    }
    EXPECT_EQ(kinds, (std::vector<std::string>{"budget_thins", "budget"}));
    EXPECT_EQ(last["steps_due"], 14) << last << ": each tenth of 125, and step 77";
    EXPECT_EQ(last["steps_left_out"], 10) << last << ": named steps are due and not left out";
    EXPECT_GT(last["spent"], 0.01);
}

TEST(SessionBudget, WhereEveryStepIsDueAFewAreLeftOutToBeComparedWith) {
    const TemporaryDirectory directory;
    model::CaptureConfig plan;
    plan.budget = 0.99;  // a second of it is there to begin with: more than this test takes
    plan.requirements = {{.collection = "gradients", .schedule = {}, .asked_by = "user"}};
    auto session = open(directory.path(), plan);
    Training(*session).steps(100);
    session->close(60s);
    auto run = read::Run::open(directory.path(), storage::posix_file_system());
    const auto series = (*run)->series(0, "gradient/w", "max");
    ASSERT_TRUE(series) << series.status().message();
    std::set<StepIndex> left_out;
    for (StepIndex step = 0; step < 100; ++step) left_out.insert(step);
    for (const read::SeriesPoint& point : *series) left_out.erase(point.step);
    EXPECT_EQ(left_out, (std::set<StepIndex>{19, 20, 21, 86})) << "step 0 is of unknown length";
    std::vector<std::string> kinds;
    for (const read::RunEvent& event : (*run)->events()) kinds.push_back(event.kind);
    EXPECT_EQ(kinds, std::vector<std::string>{"budget"}) << "it was not overdrawn";
}

TEST(SessionBudget, LossesOfTheUsersOwnCollectionAreNotLeftOut) {
    model::CaptureConfig plan;
    plan.collections = {{.name = "mine", .include = {"."}, .exclude = {}}};
    plan.requirements = {{.collection = "mine", .schedule = {}, .asked_by = "user"}};
    auto made = CapturePlan::make(plan);
    ASSERT_TRUE(made);
    made->note_tensor("loss", Role::kLoss);
    made->note_tensor("weight/w", Role::kWeight);
    made->thin(Mode::kTrain, true);
    EXPECT_EQ(made->due(0, Mode::kTrain, 5), What::kStatistics);
    EXPECT_EQ(made->due(1, Mode::kTrain, 5), What::kNothing);
}

TEST(SessionBudget, WhatIsDueByTimeIsTakenWhenItCanBePaidFor) {
    model::CaptureConfig plan;
    plan.requirements = {
        {.collection = "gradients", .schedule = {.every = 0}, .asked_by = "user", .every_ms = 1000}};
    auto made = CapturePlan::make(plan);
    ASSERT_TRUE(made);
    constexpr std::int64_t kSecond = 1'000'000'000;
    const RoleMask gradient = mask_of(Role::kGradient);
    made->begin_step(Mode::kTrain, 0, 0);
    EXPECT_EQ(made->due_roles(Mode::kTrain, 0), gradient);
    made->thin(Mode::kTrain, true);
    made->begin_step(Mode::kTrain, 1, 2 * kSecond);
    EXPECT_EQ(made->due_roles(Mode::kTrain, 1), 0U);
    made->thin(Mode::kTrain, false);
    made->begin_step(Mode::kTrain, 2, 2 * kSecond + 1);
    EXPECT_EQ(made->due_roles(Mode::kTrain, 2), gradient);
    made->begin_step(Mode::kTrain, 3, 2 * kSecond + 2);
    EXPECT_EQ(made->due_roles(Mode::kTrain, 3), 0U);
}

}  // namespace
}  // namespace traindbg::capture
