#include "traindbg/capture/capture_session.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "storage/temporary_directory.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"
#include "traindbg/reduce/reducer.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::capture {
namespace {

using base::Code;
using model::ActivationKind;
using model::CaptureConfig;
using model::Mode;
using model::Requirement;
using model::Role;
using model::StepRecord;
using model::TensorId;
using model::TensorInfo;
using model::What;
using tensor::DType;
using tensor::TensorView;
using testing::TemporaryDirectory;
using namespace std::chrono_literals;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Requirement need(std::string collection, std::uint64_t every, What what = What::kStatistics,
                 Mode mode = Mode::kTrain) {
    return {.collection = std::move(collection),
            .mode = mode,
            .what = what,
            .schedule = {.every = every},
            .asked_by = "a_rule"};
}

TensorInfo tensor(std::string name, Role role, ActivationKind activation = ActivationKind::kNone) {
    TensorInfo info;
    info.name = std::move(name);
    info.role = role;
    info.activation = activation;
    return info;
}

// Values with the shape to look at them.
struct Values {
    std::vector<float> data;
    std::vector<std::int64_t> shape;

    explicit Values(std::vector<float> values)
        : data(std::move(values)), shape{static_cast<std::int64_t>(data.size())} {}
    Values(std::vector<float> values, std::vector<std::int64_t> extents)
        : data(std::move(values)), shape(std::move(extents)) {}
    [[nodiscard]] TensorView view() const { return {data.data(), DType::kFloat32, shape, {}}; }
};

std::unique_ptr<CaptureSession> open(const std::string& directory, std::vector<Requirement> requirements,
                                     storage::FileSystem& files = storage::posix_file_system()) {
    SessionOptions options;
    options.run_directory = directory;
    options.config.requirements = std::move(requirements);
    auto session = CaptureSession::open(std::move(options), files);
    EXPECT_TRUE(session) << session.status().message();
    return session ? std::move(session).value() : nullptr;
}

struct Recorded {
    std::vector<StepRecord> steps;
    model::TensorTable tensors;
    std::vector<read::RunEvent> events;
    model::WorkerMeta meta;
    bool complete = false;
};

Recorded read_back(const std::string& directory, storage::FileSystem& files = storage::posix_file_system()) {
    auto run = read::Run::open(directory, files);
    EXPECT_TRUE(run) << run.status().message();
    Recorded out;
    if (!run) return out;
    EXPECT_TRUE((*run)->damage().empty());
    EXPECT_TRUE((*run)->for_each_step(
        [&](const model::StepView& view) {
            out.steps.push_back(*view.record);
            return true;
        },
        true));
    out.tensors = (*run)->tensors(0);
    out.events = (*run)->events();
    out.meta = (*run)->worker_meta(0);
    out.complete = (*run)->is_complete();
    return out;
}

TEST(CaptureSession, MakesTheRunWithItsDescriptionAndPlan) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/runs/first";
    auto session = open(path, {need("weights", 10)});
    ASSERT_NE(session, nullptr);
    const storage::RunLayout layout{path};
    storage::FileSystem& files = storage::posix_file_system();
    const auto text = [&](const std::string& name) {
        const auto bytes = storage::read_whole(files, name);
        EXPECT_TRUE(bytes) << bytes.status().message();
        return std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    };
    const auto meta = model::run_meta_from_json(text(layout.run_json()));
    ASSERT_TRUE(meta);
    EXPECT_EQ(meta->run_id, "first");
    EXPECT_EQ(meta->uuid.size(), 36U);
    EXPECT_GT(meta->started_wall_nanos, 0);
    const auto plan = model::capture_config_from_json(text(layout.plan_json()));
    ASSERT_TRUE(plan);
    EXPECT_EQ(*plan, session->plan().config());
    auto control = storage::ControlBlock::open(layout.control());
    ASSERT_TRUE(control);
    EXPECT_EQ((*control)->state(), storage::TrainingState::kAttached);
    EXPECT_EQ((*control)->pid(), getpid());
    session->close(10s);
    EXPECT_EQ((*control)->state(), storage::TrainingState::kEnded);
}

TEST(CaptureSession, LeavesARunThatIsThereAsItIs) {
    const TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    const storage::RunLayout layout{directory.path()};
    const std::string_view meta = R"({"run_id": "given"})";
    ASSERT_TRUE(files.put_atomic(layout.run_json(), base::as_bytes(meta)));
    ASSERT_TRUE(files.put_atomic(layout.plan_json(), base::as_bytes("{}")));
    open(directory.path(), {need("weights", 1)})->close(10s);
    const auto kept = storage::read_whole(files, layout.run_json());
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->size(), meta.size());
    const auto plan = storage::read_whole(files, layout.plan_json());
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->size(), 2U);
}

TEST(CaptureSession, WhatIsDueIsRecordedAndNothingElse) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 2), need("losses", 1)}, files);
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    const TensorId gradient = session->register_tensor(tensor("gradient/a", Role::kGradient));
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    EXPECT_EQ(session->register_tensor(tensor("weight/a", Role::kWeight)), weight);
    const RoleMask both = mask_of(Role::kWeight) | mask_of(Role::kLoss);
    EXPECT_EQ(session->due(Mode::kTrain), both);
    for (int step = 0; step < 4; ++step) {
        const Values values({1, 2, static_cast<float>(step)});
        session->observe(Mode::kTrain, weight, values.view());
        session->observe(Mode::kTrain, gradient, values.view());
        session->observe_scalar(Mode::kTrain, loss, step * 0.5);
        const StepDirective next = session->end_step();
        EXPECT_FALSE(next.stop_requested);
        EXPECT_EQ(next.due, step % 2 == 1 ? both : mask_of(Role::kLoss));
    }
    EXPECT_EQ(session->step(Mode::kTrain), 4U);
    session->close(10s);
    const Recorded run = read_back("/run", files);
    EXPECT_TRUE(run.complete);
    ASSERT_EQ(run.tensors.size(), 3U);
    EXPECT_EQ(run.tensors[gradient].name, "gradient/a");
    ASSERT_EQ(run.steps.size(), 4U);
    for (std::uint64_t step = 0; step < 4; ++step) {
        const StepRecord& record = run.steps[step];
        EXPECT_EQ(record.step, step);
        EXPECT_EQ(record.sequence, step);
        EXPECT_GT(record.wall_nanos, 0);
        EXPECT_EQ(record.step_nanos > 0, step > 0);
        EXPECT_GT(record.capture_nanos, 0U);
        ASSERT_EQ(record.scalars.size(), 1U);
        EXPECT_EQ(record.scalars[0], (model::ScalarSample{loss, static_cast<double>(step) * 0.5}));
        ASSERT_EQ(record.tensors.size(), step % 2 == 0 ? 1U : 0U);
        if (step % 2 == 1) continue;
        EXPECT_EQ(record.tensors[0].tensor, weight);
        const model::Statistics& got = record.tensors[0].statistics;
        const model::Statistics want = *reduce::statistics(Values({1, 2, static_cast<float>(step)}).view());
        EXPECT_EQ(got.count, 3U);
        EXPECT_EQ(got.max, want.max);
        EXPECT_FLOAT_EQ(static_cast<float>(got.mean), static_cast<float>(want.mean));
        EXPECT_FLOAT_EQ(static_cast<float>(got.std), static_cast<float>(want.std));
        EXPECT_FLOAT_EQ(static_cast<float>(got.l2), static_cast<float>(want.l2));
    }
}

TEST(CaptureSession, WithoutRequirementsStepsPassUnrecorded) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {}, files);
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    const Values values({1, 2});
    for (int step = 0; step < 3; ++step) {
        EXPECT_EQ(session->due(Mode::kTrain), 0U);
        session->observe(Mode::kTrain, weight, values.view());
        session->observe_scalar(Mode::kTrain, loss, kNan);
        EXPECT_EQ(session->end_step().due, 0U);
    }
    session->close(10s);
    EXPECT_TRUE(read_back("/run", files).steps.empty());
}

TEST(CaptureSession, LossesAreIgnoredWhereNobodyAsksForAnything) {
    const TemporaryDirectory directory;
    auto idle = open(directory.path() + "/idle", {});
    EXPECT_TRUE(idle->end_step().ignores_losses);
    idle->capture_everything_for(1);
    EXPECT_FALSE(idle->end_step().ignores_losses);
    // Weights would be kept when a loss turns bad.
    EXPECT_FALSE(open(directory.path() + "/asks", {need("weights", 1000)})->end_step().ignores_losses);
    SessionOptions options;
    options.run_directory = directory.path() + "/flight";
    options.config.flight.steps = 4;
    auto flight = CaptureSession::open(std::move(options));
    ASSERT_TRUE(flight);
    EXPECT_FALSE((*flight)->end_step().ignores_losses);
}

TEST(CaptureSession, ManyNumbersAreTakenAsEachAlone) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("losses", 1)}, files);
    const TensorId first = session->register_tensor(tensor("loss/a", Role::kLoss));
    const TensorId second = session->register_tensor(tensor("loss/b", Role::kLoss));
    const std::vector<model::ScalarSample> losses = {{first, 1}, {second, 2}, {first, 3}};
    session->observe_scalars(Mode::kTrain, losses);
    std::ignore = session->end_step();
    session->close(10s);
    const Recorded recorded = read_back("/run", files);
    ASSERT_EQ(recorded.steps.size(), 1U);
    EXPECT_EQ(recorded.steps[0].scalars, (std::vector<model::ScalarSample>{{first, 1}, {second, 2}}));
}

TEST(CaptureSession, ATensorMetTwiceInAStepKeepsItsFirstSample) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("outputs", 1), need("losses", 1)}, files);
    const TensorId output = session->register_tensor(tensor("output/a", Role::kOutput));
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    for (int step = 0; step < 2; ++step) {
        session->observe(Mode::kTrain, output, Values({1}).view());
        session->observe(Mode::kTrain, output, Values({2}).view());
        session->observe_scalar(Mode::kTrain, loss, 3);
        session->observe_scalar(Mode::kTrain, loss, 4);
        std::ignore = session->end_step();
    }
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 2U);
    for (const StepRecord& record : run.steps) {
        ASSERT_EQ(record.tensors.size(), 1U);
        EXPECT_EQ(record.tensors[0].statistics.max, 1);
        ASSERT_EQ(record.scalars.size(), 1U);
        EXPECT_EQ(record.scalars[0].value, 3);
    }
}

TEST(CaptureSession, EvalStepsLieBetweenTrainSteps) {
    storage::MemoryFileSystem files;
    auto session =
        open("/run", {need("losses", 1), need("losses", 1, What::kStatistics, Mode::kEval)}, files);
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    session->observe_scalar(Mode::kTrain, loss, 1);
    session->observe_scalar(Mode::kEval, loss, 2);
    session->end_eval_step();
    session->observe_scalar(Mode::kEval, loss, 3);
    session->end_eval_step();
    std::ignore = session->end_step();
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 3U);
    EXPECT_EQ(run.steps[0].mode, Mode::kEval);
    EXPECT_EQ(run.steps[1].mode, Mode::kEval);
    EXPECT_EQ(run.steps[1].step, 1U);
    EXPECT_EQ(run.steps[1].scalars[0].value, 3);
    EXPECT_EQ(run.steps[2].mode, Mode::kTrain);
    EXPECT_EQ(run.steps[2].step, 0U);
    EXPECT_EQ(run.steps[2].sequence, 2U);
    EXPECT_EQ(run.steps[2].scalars[0].value, 1);
}

TEST(CaptureSession, WhereTheTrainingOfAnotherModelBeginsTheStepsOfBothModesSaySo) {
    storage::MemoryFileSystem files;
    auto session =
        open("/run", {need("losses", 1), need("losses", 1, What::kStatistics, Mode::kEval)}, files);
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    const auto train = [&] {
        session->observe_scalar(Mode::kTrain, loss, 1);
        std::ignore = session->end_step();
    };
    const auto evaluate = [&] {
        session->observe_scalar(Mode::kEval, loss, 2);
        session->end_eval_step();
    };
    train();
    session->begin_training(true);
    session->end_eval_step();  // nothing was seen of it
    evaluate();
    evaluate();
    train();
    session->begin_training(false);  // of the same model: what is seen is no other's
    train();
    session->begin_training(true);
    train();
    session->close(10s);
    const Recorded run = read_back("/run", files);
    std::vector<std::string> told;
    for (const StepRecord& step : run.steps) {
        std::string words = step.mode == Mode::kEval ? "eval" : "train";
        for (const model::ScalarSample& sample : step.scalars)
            if (run.tensors[sample.tensor].name == "loop/new_training")
                words += " " + std::to_string(static_cast<int>(sample.value));
        told.push_back(words);
    }
    EXPECT_EQ(told, (std::vector<std::string>{"train", "eval 2", "eval", "train 2", "train", "train 3"}));
    EXPECT_EQ(run.tensors[1].role, Role::kLoop);
}

TEST(CaptureSession, OfManyTrainingsNotAllBeginningsAreLookedAt) {
    storage::MemoryFileSystem files;
    Requirement first = need("weights", 0);
    first.schedule.dense_until = 1;
    auto session = open("/run", {first}, files);
    std::ignore = session->register_tensor(tensor("weight", Role::kWeight));
    int looked_at = 0;
    for (int training = 0; training < 40; ++training) {
        if (training > 0) session->begin_training(true);
        looked_at += session->due(Mode::kTrain) != 0 ? 1 : 0;
        for (int step = 0; step < 50; ++step) std::ignore = session->end_step();
    }
    // The first ten, and from then on one in 500 steps.
    EXPECT_EQ(looked_at, 10 + (40 - 10) * 50 / 500);
    session->close(10s);
}

TEST(CaptureSession, TheKindOfASampleFollowsTheRole) {
    storage::MemoryFileSystem files;
    auto session =
        open("/run",
             {need("activations", 1, What::kStatistics | What::kUnits), need("classes", 1, What::kClasses),
              need("weights", 1, What::kRaw | What::kHistogram), need("losses", 1)},
             files);
    const TensorId relu =
        session->register_tensor(tensor("activation/r", Role::kActivation, ActivationKind::kRelu));
    const TensorId classes = session->register_tensor(tensor("classes/ce", Role::kClasses));
    const TensorId weight = session->register_tensor(tensor("weight/w", Role::kWeight));
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    const Values activation({1, 0, 0, 2, 0, 0}, {2, 3});
    session->observe(Mode::kTrain, relu, activation.view());
    const Values logits({0.1F, 0.9F, 0.8F, 0.2F}, {2, 2});
    const std::vector<std::int64_t> labels = {1, 1};
    const std::vector<std::int64_t> two = {2};
    session->observe_classes(Mode::kTrain, classes, logits.view(), {labels.data(), DType::kInt64, two, {}});
    const Values weights({1, 2, 3, 4}, {2, 2});
    const std::vector<std::int64_t> transposed = {1, 2};
    session->observe(Mode::kTrain, weight, {weights.data.data(), DType::kFloat32, weights.shape, transposed});
    session->observe(Mode::kTrain, loss, Values({7.5F}, {}).view());
    std::ignore = session->end_step();
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 1U);
    const StepRecord& record = run.steps[0];
    ASSERT_EQ(record.tensors.size(), 1U);
    EXPECT_EQ(record.tensors[0].units, (model::UnitStatistics{.units = 3, .inactive_units = 2}));
    ASSERT_EQ(record.classes.size(), 1U);
    EXPECT_EQ(record.classes[0].counts.labels, (std::vector<std::uint32_t>{0, 2}));
    EXPECT_EQ(record.classes[0].counts.predictions, (std::vector<std::uint32_t>{1, 1}));
    EXPECT_EQ(record.classes[0].counts.hits, (std::vector<std::uint32_t>{0, 1}));
    ASSERT_EQ(record.raw.size(), 1U);
    EXPECT_EQ(record.raw[0].shape, weights.shape);
    std::vector<float> raw(4);
    std::memcpy(raw.data(), record.raw[0].bytes.data(), 16);
    EXPECT_EQ(raw, (std::vector<float>{1, 3, 2, 4}));
    ASSERT_EQ(record.histograms.size(), 1U);
    EXPECT_EQ(record.histograms[0].tensor, weight);
    EXPECT_EQ(record.histograms[0].bins,
              (model::Histogram{{static_cast<std::int16_t>(model::bin_of(1)), 1},
                                {static_cast<std::int16_t>(model::bin_of(2)), 1},
                                {static_cast<std::int16_t>(model::bin_of(3)), 1},
                                {static_cast<std::int16_t>(model::bin_of(4)), 1}}));
    ASSERT_EQ(record.scalars.size(), 1U);
    EXPECT_EQ(record.scalars[0], (model::ScalarSample{loss, 7.5}));
}

TEST(CaptureSession, ChannelsAndDigestsAreTakenOfWhatTheyAreAskedOf) {
    storage::MemoryFileSystem files;
    auto session = open("/run",
                        {need("weights", 1, What::kStatistics | What::kChannels | What::kDigest),
                         need("gradients", 1, What::kRaw | What::kDigest), need("biases", 1, What::kDigest),
                         need("outputs", 1, What::kChannels),
                         need("weight_updates", 1, What::kStatistics | What::kChannels | What::kDigest)},
                        files);
    const TensorId weight = session->register_tensor(tensor("weight/w", Role::kWeight));
    const TensorId gradient = session->register_tensor(tensor("gradient/w", Role::kGradient));
    const TensorId bias = session->register_tensor(tensor("bias/w", Role::kBias));
    const TensorId output = session->register_tensor(tensor("output/m", Role::kOutput));
    const TensorId many = session->register_tensor(tensor("output/n", Role::kOutput));
    const TensorId update = session->register_tensor(tensor("weight_update/w", Role::kWeightUpdate));
    const TensorId ratio = session->register_tensor(tensor("update_ratio/w", Role::kWeightUpdate));
    const Values matrix({1, -2, 0, 4, 0, 0.5F}, {2, 3});
    const Values column({3, -3}, {2});
    const Values wide(std::vector<float>(model::kMostChannels + 1, 1), {1, model::kMostChannels + 1});
    for (const TensorId id : {weight, gradient, output}) session->observe(Mode::kTrain, id, matrix.view());
    session->observe(Mode::kTrain, bias, column.view());
    session->observe(Mode::kTrain, many, wide.view());
    session->observe_update(Mode::kTrain, update, ratio, Values({1, 1, 1, 1, 1, 1}, {2, 3}).view(),
                            matrix.view());
    std::ignore = session->end_step();
    EXPECT_EQ(session->counts().tensors_skipped, 1U) << "more channels than are looked at";
    session->close(60s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 1U);
    const StepRecord& record = run.steps[0];
    ASSERT_EQ(record.channels.size(), 3U);
    const model::ChannelStatistics by_row{{-2, 0}, {1, 4}, {1.0F / 3, 1.0F / 3}};
    const model::ChannelStatistics by_column{{1, -2, 0}, {4, 0, 0.5F}, {0, 0.5F, 0.5F}};
    const model::ChannelStatistics of_update{{-3, -1}, {0, 3}, {1.0F / 3, 0}};
    for (const model::ChannelSample& sample : record.channels)
        EXPECT_EQ(sample.channels, sample.tensor == weight   ? by_row
                                   : sample.tensor == output ? by_column
                                                             : of_update)
            << sample.tensor;
    ASSERT_EQ(record.digests.size(), 4U);
    const Values difference({0, -3, -1, 3, -1, -0.5F}, {2, 3});
    for (const model::DigestSample& sample : record.digests)
        EXPECT_EQ(sample.digest, *reduce::digest(sample.tensor == bias     ? column.view()
                                                 : sample.tensor == update ? difference.view()
                                                                           : matrix.view()))
            << sample.tensor;
    EXPECT_EQ(record.tensors.size(), 2U) << "of the others, statistics were not asked for";
    ASSERT_EQ(record.raw.size(), 1U);
    EXPECT_EQ(record.raw[0].tensor, gradient);
    const auto opened = read::Run::open("/run", files);
    const auto digests = (*opened)->digests(0, "bias/w");
    ASSERT_TRUE(digests.is_ok() && digests->size() == 1);
    EXPECT_EQ((*digests)[0].digest.product, -9);
    const auto products = (*opened)->series(0, "bias/w", "product");
    ASSERT_TRUE(products.is_ok() && products->size() == 1);
    EXPECT_EQ((*products)[0].value, -9);
}

TEST(CaptureSession, ChannelsBeyondTheMostOfAStepAreCountedAndNamed) {
    constexpr std::uint32_t kFit = write::kMostStepChannels / model::kMostChannels;
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("outputs", 1, What::kStatistics | What::kChannels)}, files);
    const Values wide(std::vector<float>(model::kMostChannels, 1), {1, model::kMostChannels});
    const Values number({1}, {});
    std::vector<TensorId> ids;
    for (std::uint32_t i = 0; i < kFit + 2; ++i)
        ids.push_back(session->register_tensor(tensor("output/" + std::to_string(i), Role::kOutput)));
    for (int step = 0; step < 3; ++step) {
        for (std::uint32_t i = 0; i <= kFit; ++i) session->observe(Mode::kTrain, ids[i], wide.view());
        session->observe(Mode::kTrain, ids.back(), number.view());
        std::ignore = session->end_step();
    }
    EXPECT_EQ(session->counts().tensors_skipped, 3U * 2);
    session->close(60s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 3U);
    for (const StepRecord& record : run.steps) {
        EXPECT_EQ(record.channels.size(), kFit);
        EXPECT_EQ(record.tensors.size(), kFit + 2) << "the statistics of all are there";
    }
    ASSERT_EQ(run.events.size(), 2U) << "once each";
    for (std::uint32_t i = 0; i < 2; ++i) {
        EXPECT_EQ(run.events[i].kind, "tensor_skipped");
        EXPECT_NE(run.events[i].json.find("output/" + std::to_string(kFit + i)), std::string::npos);
        EXPECT_NE(run.events[i].json.find("524288"), std::string::npos) << run.events[i].json;
    }
}

TEST(CaptureSession, MetricsAreKeptWithoutBeingAskedFor) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {}, files);
    const TensorId metric = session->register_tensor(tensor("metric/accuracy", Role::kMetric));
    std::ignore = session->end_step();
    session->observe_scalar(Mode::kGlobal, metric, 0.75);
    session->close(10s);  // no end_step: what was logged after the last step is not lost
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 1U);
    EXPECT_EQ(run.steps[0].step, 1U);
    EXPECT_EQ(run.steps[0].scalars[0].value, 0.75);
}

TEST(CaptureSession, WhatIsAlwaysKeptNeedsNobodyToAskForIt) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/run";
    {
        auto session = open(path, {});
        const TensorId saved = session->register_tensor(tensor("custom/x", Role::kOther));
        const TensorId other = session->register_tensor(tensor("custom/y", Role::kOther));
        session->keep_always(saved);
        session->keep_always(kNoTensor);
        const Values values({3, 4});
        session->observe(Mode::kTrain, saved, values.view());
        session->observe(Mode::kTrain, saved, Values({9}).view());
        session->observe(Mode::kTrain, other, values.view());
        session->observe(Mode::kEval, saved, values.view());
        session->end_eval_step();
        static_cast<void>(session->end_step());
        model::Statistics elsewhere;
        elsewhere.count = 7;
        session->observe_statistics(Mode::kTrain, saved, elsewhere);
        static_cast<void>(session->end_step());
    }
    const Recorded recorded = read_back(path);
    ASSERT_EQ(recorded.steps.size(), 3U);
    for (const StepRecord& step : recorded.steps) ASSERT_EQ(step.tensors.size(), 1U);
    EXPECT_EQ(recorded.steps[1].tensors[0].statistics.l2, 5);
    EXPECT_EQ(recorded.steps[2].tensors[0].statistics.count, 7U);
}

TEST(CaptureSession, AnUpdateIsADifferenceAndItsSizeBesideTheTensor) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/run";
    const Values before({3, 4});
    const Values after({3, 3.5});
    const Values zero({0, 0});
    const Values not_a_number({3, static_cast<float>(kNan)});
    {
        auto session = open(path, {need("weight_updates", 2, What::kStatistics),
                                   need("weight_updates", 4, What::kRaw | What::kHistogram)});
        const TensorId update = session->register_tensor(tensor("weight_update/w", Role::kWeightUpdate));
        const TensorId ratio = session->register_tensor(tensor("update_ratio/w", Role::kWeightUpdate));
        for (const auto& [first, second] :
             {std::pair(&before, &after), std::pair(&before, &after), std::pair(&zero, &after),
              std::pair(&before, &after), std::pair(&before, &not_a_number)}) {
            session->observe_update(Mode::kTrain, update, ratio, first->view(), second->view());
            session->observe_update(Mode::kTrain, update, ratio, zero.view(), second->view());
            static_cast<void>(session->end_step());
        }
        static_cast<void>(session->end_step());
        session->observe_update(Mode::kTrain, update, ratio, before.view(), Values({1}).view());
        session->observe_update(Mode::kTrain, kNoTensor, ratio, before.view(), after.view());
        static_cast<void>(session->end_step());
        EXPECT_EQ(session->counts().tensors_skipped, 1U);
    }
    const Recorded recorded = read_back(path);
    ASSERT_EQ(recorded.steps.size(), 3U);  // 0, 2 and 4
    const StepRecord& first = recorded.steps[0];
    ASSERT_EQ(first.tensors.size(), 1U);
    EXPECT_EQ(first.tensors[0].statistics.count, 2U);
    EXPECT_EQ(first.tensors[0].statistics.zero, 1U);
    EXPECT_EQ(first.tensors[0].statistics.min, -0.5);
    ASSERT_EQ(first.scalars.size(), 1U);
    EXPECT_DOUBLE_EQ(first.scalars[0].value, 0.1);
    ASSERT_EQ(first.raw.size(), 1U);
    EXPECT_EQ(first.raw[0].dtype, DType::kFloat32);
    EXPECT_EQ(first.raw[0].shape, before.shape);
    ASSERT_EQ(first.histograms.size(), 1U);
    EXPECT_TRUE(recorded.steps[1].scalars.empty());  // nothing to compare with
    EXPECT_TRUE(recorded.steps[1].raw.empty());
    EXPECT_EQ(recorded.steps[2].tensors[0].statistics.nan, 1U);
    EXPECT_TRUE(recorded.steps[2].scalars.empty());
}

TEST(CaptureSession, ALossThatTurnsBadKeepsItsNeighbourhoodOnce) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("losses", 1)}, files);
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    const TensorId label = session->register_tensor(tensor("label/mse_loss", Role::kLabel));
    constexpr RoleMask kOnlyWhereAsked = mask_of(Role::kPrediction) | mask_of(Role::kLabel) |
                                         mask_of(Role::kAttention) | mask_of(Role::kGradientBefore) |
                                         mask_of(Role::kBlockOutput);
    std::vector<RoleMask> due;
    for (int step = 0; step < 10; ++step) {
        session->observe_scalar(Mode::kTrain, loss, step >= 2 ? kNan : 1);
        session->observe(Mode::kTrain, weight, Values({1, 2}).view());
        session->observe(Mode::kTrain, label, Values({1, 2}).view());
        due.push_back(session->end_step().due);
    }
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 10U);
    for (std::uint64_t step = 0; step < 10; ++step) {
        const bool kept = step >= 2 && step <= 5;  // the bad step and three more
        EXPECT_EQ(run.steps[step].tensors.size(), kept ? 1U : 0U) << step;
        if (step > 0) {
            EXPECT_EQ(due[step - 1],
                      step >= 3 && step <= 5 ? kAllRoles & ~kOnlyWhereAsked : mask_of(Role::kLoss))
                << step;
        }
    }
    EXPECT_TRUE(std::isnan(run.steps[2].scalars[0].value));
}

TEST(CaptureSession, ALossOutsideThePlanThatTurnsBadIsKeptToo) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 1000)}, files);
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    std::ignore = session->end_step();
    session->observe_scalar(Mode::kTrain, loss, 1);
    std::ignore = session->end_step();
    session->observe(Mode::kTrain, loss, Values({std::numeric_limits<float>::infinity()}, {}).view());
    std::ignore = session->end_step();
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 1U);
    EXPECT_EQ(run.steps[0].step, 2U);
    EXPECT_TRUE(std::isinf(run.steps[0].scalars[0].value));
}

TEST(CaptureSession, ABatchTakesEachTensorAndSkipsViewsWithoutData) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("gradients", 1)}, files);
    std::vector<TensorId> ids;
    for (const char* name : {"gradient/a", "gradient/b", "gradient/c"})
        ids.push_back(session->register_tensor(tensor(name, Role::kGradient)));
    const Values values({1, 2, 3});
    const std::vector<TensorView> views = {values.view(), TensorView{}, values.view()};
    session->observe_batch(Mode::kTrain, ids, views);
    std::ignore = session->end_step();
    EXPECT_EQ(session->counts().tensors_skipped, 0U);
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 1U);
    ASSERT_EQ(run.steps[0].tensors.size(), 2U);
    EXPECT_EQ(run.steps[0].tensors[1].tensor, ids[2]);
}

TEST(CaptureSession, StatisticsTakenElsewhereAreKeptAsTheyAre) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 1)}, files);
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    model::Statistics statistics;
    statistics.count = 10;
    statistics.nan = 2;
    statistics.max = 4;
    session->observe_statistics(Mode::kTrain, weight, statistics);
    std::ignore = session->end_step();
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 1U);
    EXPECT_EQ(run.steps[0].tensors[0].statistics, statistics);
}

TEST(CaptureSession, WhatCannotBeReducedIsNamedOnceAndCountedOnceAtAStep) {
    storage::MemoryFileSystem files;
    const What all = What::kStatistics | What::kHistogram | What::kChannels | What::kDigest;
    auto session = open("/run", {need("weights", 1, all), need("weights", 1, all, Mode::kEval)}, files);
    const TensorId weight = session->register_tensor(tensor("weight/complex", Role::kWeight));
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    const Values values({1, 2, 3, 4}, {2});
    const Values number({1, 2}, {});
    for (int step = 0; step < 3; ++step) {
        for (int times = 0; times < 2; ++times) {
            session->observe(Mode::kTrain, weight, {values.data.data(), DType::kComplex64, values.shape, {}});
            session->observe(Mode::kTrain, loss, {number.data.data(), DType::kComplex64, number.shape, {}});
        }
        std::ignore = session->end_step();
    }
    EXPECT_EQ(session->counts().tensors_skipped, 6U);
    session->observe(Mode::kEval, weight, {values.data.data(), DType::kComplex64, values.shape, {}});
    session->end_eval_step();
    EXPECT_EQ(session->counts().tensors_skipped, 7U) << "a step of another mode is another step";
    session->close(10s);
    const Recorded run = read_back("/run", files);
    EXPECT_TRUE(run.steps.empty());
    ASSERT_EQ(run.events.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(run.events[i].kind, "tensor_skipped");
    EXPECT_NE(run.events[0].json.find("weight/complex"), std::string::npos);
}

TEST(CaptureSession, WhatItsCallerCannotReadIsNamedOnceAndOfMoreThanAHundredOnlyHowMany) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 1)}, files);
    std::vector<TensorId> ids;
    for (int i = 0; i < 103; ++i)
        ids.push_back(session->register_tensor(tensor("weight/" + std::to_string(i), Role::kWeight)));
    for (int step = 0; step < 2; ++step) {
        for (const TensorId id : ids) session->cannot_take(Mode::kTrain, id, "it is quantized");
        std::ignore = session->end_step();
    }
    session->cannot_take(Mode::kTrain, kNoTensor, "nobody knows it");
    EXPECT_EQ(session->counts().tensors_skipped, 2U * 103);
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.events.size(), 101U);
    EXPECT_EQ(run.events[0].json, R"({"tensor":"weight/0","reason":"it is quantized"})");
    EXPECT_EQ(run.events[99].kind, "tensor_skipped");
    EXPECT_EQ(run.events[100].kind, "tensors_skipped");
    EXPECT_EQ(run.events[100].json, R"({"more":3})");
}

TEST(CaptureSession, IdsThatNobodyRegisteredDoNothing) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 1)}, files);
    const Values values({1});
    for (const TensorId id : {TensorId{0}, TensorId{77}, kNoTensor}) {
        session->observe(Mode::kTrain, id, values.view());
        session->observe_scalar(Mode::kTrain, id, 1);
        session->observe_statistics(Mode::kEval, id, {});
        session->observe_classes(Mode::kTrain, id, values.view(), values.view());
    }
    std::ignore = session->end_step();
    session->close(10s);
    EXPECT_TRUE(read_back("/run", files).steps.empty());
}

TEST(CaptureSession, ATensorThatCannotBeDescribedDoesNotTakeOthersAlong) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 1)}, files);
    TensorInfo deep = tensor("weight/deep", Role::kWeight);
    deep.shape.assign(65, 1);
    TensorInfo nested = tensor("weight/nested", Role::kWeight);
    nested.module.assign(std::size_t{20} << 20, 'x');
    EXPECT_EQ(session->register_tensor(tensor("", Role::kWeight)), kNoTensor);
    EXPECT_EQ(session->register_tensor(deep), kNoTensor);
    EXPECT_EQ(session->register_tensor(nested), kNoTensor);
    EXPECT_EQ(session->register_tensor(tensor(std::string(4097, 'x'), Role::kWeight)), kNoTensor);
    EXPECT_EQ(session->counts().tensors_skipped, 4U);
    deep.shape.assign(64, 1);
    EXPECT_EQ(session->register_tensor(deep), 0U);
    const TensorId weight = session->register_tensor(tensor("weight/w", Role::kWeight));
    session->observe(Mode::kTrain, weight, Values({1}).view());
    std::ignore = session->end_step();
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 1U);
    ASSERT_EQ(run.tensors.size(), 2U);
    EXPECT_EQ(run.tensors[1].name, "weight/w");
    EXPECT_TRUE(run.complete);
}

TEST(CaptureSession, TheUsersCollectionsAreWrittenWithTheTensor) {
    storage::MemoryFileSystem files;
    SessionOptions options;
    options.run_directory = "/run";
    options.config.collections = {{.name = "first", .include = {"fc1"}, .exclude = {}}};
    auto session = CaptureSession::open(std::move(options), files);
    ASSERT_TRUE(session);
    std::ignore = (*session)->register_tensor(tensor("weight/fc1", Role::kWeight));
    std::ignore = (*session)->register_tensor(tensor("weight/fc2", Role::kWeight));
    (*session)->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.tensors.size(), 2U);
    EXPECT_EQ(run.tensors[0].collections, (std::vector<std::string>{"first"}));
    EXPECT_TRUE(run.tensors[1].collections.empty());
}

TEST(CaptureSession, TheStopRequestReachesTheNextStepBoundary) {
    const TemporaryDirectory directory;
    auto session = open(directory.path(), {});
    auto control = storage::ControlBlock::open(storage::RunLayout{directory.path()}.control());
    ASSERT_TRUE(control);
    EXPECT_FALSE(session->end_step().stop_requested);
    EXPECT_EQ((*control)->step(), 1U);
    (*control)->request_stop();
    EXPECT_TRUE(session->end_step().stop_requested);
    EXPECT_EQ((*control)->step(), 2U);
    EXPECT_EQ((*control)->state(), storage::TrainingState::kStopping);
}

TEST(CaptureSession, ProcessesOfOneTrainingLeaveAtTheSameStep) {
    const TemporaryDirectory directory;
    std::vector<std::unique_ptr<CaptureSession>> ranks;
    for (const model::WorkerId worker : {0U, 1U}) {
        SessionOptions options;
        options.run_directory = directory.path();
        options.worker = worker;
        auto session = CaptureSession::open(std::move(options));
        ASSERT_TRUE(session) << session.status().message();
        model::WorkerMeta meta;
        meta.environment = {{"RANK", std::to_string(worker)}, {"WORLD_SIZE", "2"}};
        (*session)->describe(meta);
        ranks.push_back(std::move(*session));
    }
    auto control = storage::ControlBlock::open(storage::RunLayout{directory.path()}.control());
    ASSERT_TRUE(control);
    // As a collective lets them: none begins the step after next before the other has ended the last.
    EXPECT_FALSE(ranks[0]->end_step().stop_requested);
    (*control)->request_stop();
    EXPECT_FALSE(ranks[1]->end_step().stop_requested) << "rank 0 has passed this boundary";
    EXPECT_NE((*control)->state(), storage::TrainingState::kStopping);
    std::vector<int> left_after(2);
    for (int step = 2; step < 200; ++step)
        for (const std::size_t rank : {1U, 0U})
            if (left_after[rank] == 0 && ranks[rank]->end_step().stop_requested) left_after[rank] = step;
    EXPECT_GT(left_after[0], 1);
    EXPECT_EQ(left_after[0], left_after[1]);
    EXPECT_EQ((*control)->state(), storage::TrainingState::kStopping);
}

TEST(CaptureSession, AProcessThatIsFarBehindTheOthersLeavesAtOnce) {
    const TemporaryDirectory directory;
    auto session = open(directory.path(), {});
    model::WorkerMeta meta;
    meta.environment = {{"WORLD_SIZE", "2"}};
    session->describe(meta);
    auto control = storage::ControlBlock::open(storage::RunLayout{directory.path()}.control());
    ASSERT_TRUE(control);
    (*control)->request_stop();
    (*control)->announce_stop_step(100000);
    EXPECT_TRUE(session->end_step().stop_requested);
}

TEST(CaptureSession, DescribesItsWorker) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {}, files);
    model::WorkerMeta meta;
    meta.framework = "torch 2.13.0";
    session->describe(meta);
    session->event("began", R"({"why": "test"})");
    session->close(10s);
    const Recorded run = read_back("/run", files);
    EXPECT_EQ(run.meta.framework, "torch 2.13.0");
    EXPECT_EQ(run.meta.pid, getpid());
    EXPECT_FALSE(run.meta.host.empty());
    EXPECT_FALSE(run.meta.traindbg.empty());
    ASSERT_EQ(run.events.size(), 1U);
    EXPECT_EQ(run.events[0].kind, "began");
}

TEST(CaptureSession, AfterCloseEveryCallDoesNothing) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 1)}, files);
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    session->close(10s);
    session->close(10s);
    EXPECT_FALSE(session->is_open());
    EXPECT_EQ(session->register_tensor(tensor("weight/b", Role::kWeight)), kNoTensor);
    session->observe(Mode::kTrain, weight, Values({1}).view());
    EXPECT_EQ(session->due(Mode::kTrain), 0U);
    EXPECT_EQ(session->end_step().due, 0U);
    const Recorded run = read_back("/run", files);
    EXPECT_TRUE(run.complete);
    EXPECT_TRUE(run.steps.empty());
    EXPECT_EQ(run.tensors.size(), 1U);
}

TEST(CaptureSession, AfterCloseNoDescriptorIsHeld) {
    const TemporaryDirectory directory;
    const auto open_descriptors = [] { return storage::posix_file_system().list("/proc/self/fd")->size(); };
    const std::size_t before = open_descriptors();
    auto session = open(directory.path() + "/run", {need("weights", 1)});
    std::ignore = session->end_step();
    EXPECT_GT(open_descriptors(), before);
    session->close(10s);
    EXPECT_EQ(open_descriptors(), before) << "though the session itself lives on";
}

TEST(CaptureSession, InTheChildOfAForkEveryCallDoesNothing) {
    const TemporaryDirectory directory;
    auto session = open(directory.path(), {need("weights", 1)});
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    const Values values({1, 2});
    session->observe(Mode::kTrain, weight, values.view());
    std::ignore = session->end_step();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        bool quiet = !session->is_open() && session->due(Mode::kTrain) == 0;
        session->observe(Mode::kTrain, weight, values.view());
        quiet = quiet && session->end_step().due == 0;
        quiet = quiet && session->register_tensor(tensor("weight/b", Role::kWeight)) == kNoTensor;
        std::ignore = session->counts();
        session->close(1s);
        session.reset();  // as a DataLoader worker that ends in an orderly way does
        _exit(quiet ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_TRUE(session->is_open());
    session->observe(Mode::kTrain, weight, values.view());
    std::ignore = session->end_step();
    session->close(10s);
    const Recorded run = read_back(directory.path());
    EXPECT_TRUE(run.complete);
    EXPECT_EQ(run.steps.size(), 2U);
    EXPECT_EQ(run.tensors.size(), 1U);
}

TEST(CaptureSession, TheChildOfAForkMayOpenItsOwn) {
#if defined(TRAINDBG_THREAD_SANITIZER)
    GTEST_SKIP() << "ThreadSanitizer does not let the child of a threaded process start a thread";
#elif defined(TRAINDBG_ADDRESS_SANITIZER)
    GTEST_SKIP() << "a fork does not free the locks of its allocator, and the writer's thread may hold one";
#endif
    const TemporaryDirectory directory;
    auto session = open(directory.path(), {need("weights", 1)});
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        auto own = open(directory.path(), {need("weights", 1)});
        const bool fine = own != nullptr && own->is_open() && own->worker() == 1;
        if (own) own->close(10s);
        _exit(fine ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(CaptureSession, CostsAreCounted) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 1)}, files);
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    session->observe(Mode::kTrain, weight, Values({1}).view());
    session->add_cost(1'000'000'000);
    std::ignore = session->end_step();
    EXPECT_GE(session->counts().capture_nanos, 1'000'000'000U);
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 1U);
    EXPECT_GE(run.steps[0].capture_nanos, 1'000'000'000U);
}

// Steps that a device is still at: their values come while later steps are under way.
TEST(CaptureSession, StepsThatAreHeldBackTakeTheirOwnLateValues) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 1), need("losses", 2)}, files);
    ASSERT_NE(session, nullptr);
    ASSERT_TRUE(session->can_hold_back());
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    std::vector<std::pair<LateSample, LateSample>> late;
    const auto arrive = [&](std::size_t step) {
        model::Statistics statistics;
        statistics.count = 1;
        statistics.max = 10 + static_cast<double>(step);
        session->observe_late(late[step].first, statistics, {});
        session->observe_late(late[step].second, 100 + static_cast<double>(step));
    };
    for (std::size_t step = 0; step < 6; ++step) {
        late.emplace_back(session->begin_late(Mode::kTrain, weight), session->begin_late(Mode::kTrain, loss));
        // It counts as taken.
        EXPECT_EQ(session->wanted(Mode::kTrain, weight), What::kNothing);
        EXPECT_TRUE(session->end_step_held_back(true).is_held_back);
        if (step < 2) continue;
        arrive(step - 2);
        session->release_step(step - 2);
    }
    arrive(4);
    arrive(0);            // of a step that is gone: nothing happens
    session->close(10s);  // hands over the rest: step 5 has nothing
    arrive(5);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 5U);
    for (std::size_t step = 0; step < 5; ++step) {
        SCOPED_TRACE(step);
        EXPECT_EQ(run.steps[step].step, step);
        EXPECT_EQ(run.steps[step].sequence, step);
        ASSERT_EQ(run.steps[step].tensors.size(), 1U);
        EXPECT_EQ(run.steps[step].tensors[0].statistics.max, 10 + static_cast<double>(step));
        ASSERT_EQ(run.steps[step].scalars.size(), step % 2 == 0 ? 1U : 0U);
        for (const model::ScalarSample& scalar : run.steps[step].scalars)
            EXPECT_EQ(scalar.value, 100 + static_cast<double>(step));
    }
}

TEST(CaptureSession, WhatIsNotHeldBackOrOfAnotherModeFollowsWhatIs) {
    storage::MemoryFileSystem files;
    auto session =
        open("/run", {need("weights", 1), need("weights", 1, What::kStatistics, Mode::kEval)}, files);
    ASSERT_NE(session, nullptr);
    const TensorId weight = session->register_tensor(tensor("weight/a", Role::kWeight));
    const Values values({1, 2});
    session->observe(Mode::kTrain, weight, values.view());
    EXPECT_TRUE(session->end_step_held_back(false).is_held_back);
    EXPECT_FALSE(session->end_step_held_back(false).is_held_back);  // nothing was taken
    session->observe(Mode::kEval, weight, values.view());
    session->end_eval_step();
    session->observe(Mode::kTrain, weight, values.view());
    EXPECT_TRUE(session->end_step_held_back(false).is_held_back);
    session->release_step(1);  // of one that is gone: the later one stays
    session->observe(Mode::kTrain, weight, values.view());
    EXPECT_FALSE(session->end_step().is_held_back);
    session->release_step(3);  // there is none
    session->close(10s);
    const Recorded run = read_back("/run", files);
    ASSERT_EQ(run.steps.size(), 4U);
    for (std::size_t i = 0; i < run.steps.size(); ++i) EXPECT_EQ(run.steps[i].sequence, i);
    EXPECT_EQ(run.steps[1].mode, Mode::kEval);
    EXPECT_EQ(run.steps[2].step, 2U);
}

TEST(CaptureSession, ALateLossThatIsNotFiniteIsNoticed) {
    storage::MemoryFileSystem files;
    auto session = open("/run", {need("weights", 100)}, files);
    ASSERT_NE(session, nullptr);
    const TensorId loss = session->register_tensor(tensor("loss", Role::kLoss));
    std::ignore = session->end_step();
    EXPECT_EQ(session->due(Mode::kTrain), 0U);
    const LateSample late = session->begin_late(Mode::kTrain, loss);
    std::ignore = session->end_step_held_back(true);
    session->observe_late(late, kNan);
    session->release_step(1);
    EXPECT_NE(session->due(Mode::kTrain), 0U);  // the neighbourhood is captured
}

TEST(CaptureSession, ADirectoryThatCannotBeMadeIsAnError) {
    EXPECT_EQ(CaptureSession::open({}).status().code(), Code::kInvalidArgument);
    SessionOptions options;
    options.run_directory = "/proc/no/such/place";
    EXPECT_FALSE(CaptureSession::open(std::move(options)));
}

// Whatever call of the file system fails, and all after it: the training goes on, and nothing that
// could be read back is wrong.
TEST(CaptureSession, EveryFailureOfTheFileSystemIsSurvived) {
    const auto train = [](storage::FileSystem& files) {
        SessionOptions options;
        options.run_directory = "/run";
        options.config.requirements = {need("weights", 1), need("weights", 1, What::kRaw)};
        auto session = CaptureSession::open(std::move(options), files);
        if (!session) return false;
        const TensorId weight = (*session)->register_tensor(tensor("weight/a", Role::kWeight));
        for (int step = 0; step < 5; ++step) {
            (*session)->observe(Mode::kTrain, weight, Values({static_cast<float>(step), 1}).view());
            std::ignore = (*session)->end_step();
        }
        EXPECT_EQ((*session)->step(Mode::kTrain), 5U);
        (*session)->close(10s);
        return true;
    };
    std::uint64_t calls = 0;
    {
        storage::MemoryFileSystem memory;
        storage::FaultFileSystem counting(memory, {});
        ASSERT_TRUE(train(counting));
        calls = counting.calls();
    }
    ASSERT_GT(calls, 4U);
    for (std::uint64_t call = 0; call < calls; ++call) {
        storage::MemoryFileSystem memory;
        storage::FaultPlan plan;
        plan.fail_at_call = call;
        storage::FaultFileSystem failing(memory, plan);
        if (!train(failing)) continue;
        const auto run = read::Run::open("/run", memory);
        if (!run) continue;
        EXPECT_TRUE((*run)->for_each_step([](const model::StepView& view) {
            EXPECT_EQ(view.record->tensors.at(0).statistics.max,
                      std::max(1.0, static_cast<double>(view.step())));
            return true;
        }));
    }
}

}  // namespace
}  // namespace traindbg::capture
