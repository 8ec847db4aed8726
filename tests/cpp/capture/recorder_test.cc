#include "traindbg/recorder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "storage/temporary_directory.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg {
namespace {

using testing::TemporaryDirectory;

std::vector<double> series(const std::string& directory, const std::string& tensor,
                           std::string_view statistic) {
    auto run = read::Run::open(directory);
    EXPECT_TRUE(run) << run.status().message();
    std::vector<double> out;
    if (!run) return out;
    const auto points = (*run)->series(0, tensor, statistic);
    EXPECT_TRUE(points) << points.status().message();
    if (points)
        for (const read::SeriesPoint& point : *points) out.push_back(point.value);
    return out;
}

TEST(Recorder, ATrainingComesBack) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/run";
    Recorder recorder = Recorder::open(path, {.every = 2, .dense_until = 0});
    ASSERT_TRUE(recorder.is_open()) << recorder.error();
    EXPECT_EQ(recorder.run_directory(), path);
    const std::vector<std::int64_t> shape = {2, 2};
    for (int step = 0; step < 4; ++step) {
        EXPECT_EQ(recorder.needs(Role::kWeight), step % 2 == 0);
        const std::vector<float> weights(4, static_cast<float>(step));
        const std::vector<double> gradients(4, step * 0.5);
        recorder.scalar("loss", 10 - step);
        recorder.scalar("accuracy", step * 0.25);
        recorder.tensor("fc1.weight", Role::kWeight, weights, shape);
        recorder.tensor("fc1.weight", Role::kGradient, gradients);
        recorder.activation("fc1", Activation::kRelu, weights, shape);
        const NextStep next = recorder.end_step();
        EXPECT_EQ(next.anything_due, step % 2 == 1);
        EXPECT_FALSE(next.stop_requested);
    }
    recorder.scalar("loss", 5, Mode::kEval);
    recorder.end_eval_step();
    EXPECT_EQ(recorder.step(), 4U);
    EXPECT_EQ(recorder.lost(), 0U);
    recorder.close();
    EXPECT_FALSE(recorder.is_open());
    EXPECT_EQ(series(path, "loss", "value"), (std::vector<double>{10, 9, 8, 7, 5}));
    EXPECT_EQ(series(path, "metric/accuracy", "value"), (std::vector<double>{0, 0.25, 0.5, 0.75}));
    EXPECT_EQ(series(path, "weight/fc1.weight", "mean"), (std::vector<double>{0, 2}));
    EXPECT_EQ(series(path, "gradient/fc1.weight", "max"), (std::vector<double>{0, 1}));
    EXPECT_EQ(series(path, "activation/fc1", "inactive_units"), (std::vector<double>{2, 0}));
}

TEST(Recorder, AShapeThatDoesNotFitIsCountedAndNotRead) {
    const TemporaryDirectory directory;
    Recorder recorder = Recorder::open(directory.path());
    const std::vector<float> values(4);
    for (const std::vector<std::int64_t>& shape :
         {std::vector<std::int64_t>{5}, {2, 3}, {-2, -2}, {std::int64_t{1} << 62, 8}, {0}})
        recorder.tensor("w", Role::kWeight, values, shape);
    recorder.end_step();
    EXPECT_EQ(recorder.lost(), 5U);
    recorder.close();
    EXPECT_EQ(recorder.step(), 1U);
}

TEST(Recorder, ManyDimensionsCostThatTensorAlone) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/run";
    Recorder recorder = Recorder::open(path);
    const std::vector<float> values = {2};
    recorder.tensor("deep", Role::kWeight, values, std::vector<std::int64_t>(65, 1));
    recorder.tensor("fc1.weight", Role::kWeight, values);
    recorder.end_step();
    EXPECT_EQ(recorder.lost(), 1U);
    recorder.close();
    EXPECT_EQ(series(path, "weight/fc1.weight", "mean"), std::vector<double>{2});
}

TEST(Recorder, CloseForEverWritesAll) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/run";
    Recorder recorder = Recorder::open(path);
    for (int step = 0; step < 1000; ++step) {
        recorder.scalar("loss", 1e308 - step);
        recorder.end_step();
    }
    recorder.close(std::chrono::milliseconds::max());
    const std::vector<double> losses = series(path, "loss", "value");
    ASSERT_EQ(losses.size(), 1000U);
    EXPECT_EQ(losses.front(), 1e308);
    auto run = read::Run::open(path);
    ASSERT_TRUE(run.is_ok());
    EXPECT_TRUE((*run)->is_complete());
}

TEST(Recorder, OneThatCouldNotBeOpenedTakesAllCalls) {
    Recorder recorder = Recorder::open("/proc/no/such/place");
    EXPECT_FALSE(recorder.is_open());
    EXPECT_FALSE(recorder.error().empty());
    const std::vector<float> values(4);
    recorder.tensor("w", Role::kWeight, values);
    recorder.scalar("loss", 1);
    EXPECT_FALSE(recorder.end_step().anything_due);
    recorder.end_eval_step();
    recorder.close();
    Recorder nothing;
    nothing.scalar("loss", 1);
    EXPECT_FALSE(nothing.is_open());
    EXPECT_TRUE(nothing.error().empty());
    EXPECT_FALSE(Recorder::open("").is_open());
}

TEST(Recorder, UnderASupervisorItsDirectoryAndPlanHold) {
    const TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    const storage::RunLayout layout{directory.path()};
    ASSERT_TRUE(files.put_atomic(
        layout.plan_json(),
        base::as_bytes(R"({"requirements": [{"collection": "weights", "schedule": {"every": 3}}]})")));
    ASSERT_EQ(::setenv("TRAINDBG_RUN_DIR", directory.path().c_str(), 1), 0);
    Recorder recorder = Recorder::open("somewhere-else");
    ::unsetenv("TRAINDBG_RUN_DIR");
    EXPECT_EQ(recorder.run_directory(), directory.path());
    EXPECT_TRUE(recorder.needs(Role::kWeight));
    EXPECT_FALSE(recorder.needs(Role::kGradient));
    auto control = storage::ControlBlock::open(layout.control());
    ASSERT_TRUE(control);
    (*control)->request_stop();
    const NextStep next = recorder.end_step();
    EXPECT_TRUE(next.stop_requested);
    EXPECT_FALSE(next.anything_due);
}

TEST(Recorder, BuffersAreTakenWhereSomebodyAsksForThem) {
    const TemporaryDirectory directory;
    EXPECT_FALSE(Recorder::open(directory.path() + "/other").needs(Role::kBuffer));
    ASSERT_TRUE(storage::posix_file_system().put_atomic(
        storage::RunLayout{directory.path()}.plan_json(),
        base::as_bytes(R"({"requirements": [{"collection": "buffers"}]})")));
    Recorder recorder = Recorder::open(directory.path());
    EXPECT_TRUE(recorder.needs(Role::kBuffer));
    const std::vector<float> mean = {1, 3};
    recorder.tensor("bn.running_mean", Role::kBuffer, mean);
    static_cast<void>(recorder.end_step());
    recorder.close();
    EXPECT_EQ(series(directory.path(), "buffer/bn.running_mean", "mean"), std::vector<double>{2});
}

TEST(Recorder, APlanThatIsDamagedIsReplacedByTheDefaults) {
    const TemporaryDirectory directory;
    ASSERT_TRUE(storage::posix_file_system().put_atomic(storage::RunLayout{directory.path()}.plan_json(),
                                                        base::as_bytes("{")));
    const Recorder recorder = Recorder::open(directory.path());
    EXPECT_TRUE(recorder.is_open());
    EXPECT_TRUE(recorder.needs(Role::kGradient));
}

}  // namespace
}  // namespace traindbg
