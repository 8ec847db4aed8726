// What does a step cost the training, with nothing due, and with the statistics of many small tensors? And
// what do fingerprints of its rows?
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "traindbg/capture/capture_session.h"
#include "traindbg/capture/row_memory.h"
#include "traindbg/storage/memory_file_system.h"

namespace {

using traindbg::capture::CaptureSession;
using traindbg::model::Mode;
using traindbg::model::Role;
using traindbg::tensor::DType;
using traindbg::tensor::TensorView;

constexpr std::size_t kTensors = 200;
constexpr std::int64_t kElements = 128;

class Training {
  public:
    explicit Training(std::uint64_t every) : values_(kElements, 1.5F) {
        traindbg::capture::SessionOptions options;
        options.run_directory = "/run";
        options.config.requirements = {
            {.collection = "gradients", .schedule = {.every = every, .start = 1}, .asked_by = "bench"}};
        session = std::move(CaptureSession::open(std::move(options), files_)).value();
        for (std::size_t i = 0; i < kTensors; ++i) {
            traindbg::model::TensorInfo info;
            info.name = "gradient/" + std::to_string(i);
            info.role = Role::kGradient;
            ids.push_back(session->register_tensor(std::move(info)));
            views.push_back({values_.data(), DType::kFloat32, {&kElements, 1}, {}});
        }
        std::ignore = session->end_step();
    }

    std::vector<traindbg::model::TensorId> ids;
    std::vector<TensorView> views;

  private:
    traindbg::storage::MemoryFileSystem files_;
    std::vector<float> values_;

  public:
    std::unique_ptr<CaptureSession> session;  // ends before the files do
};

void idle_step(benchmark::State& state) {
    Training training(0);
    for (auto _ : state) benchmark::DoNotOptimize(training.session->end_step());
}

void tensors_that_are_not_due(benchmark::State& state) {
    Training training(0);
    for (auto _ : state) training.session->observe_batch(Mode::kTrain, training.ids, training.views);
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kTensors));
}

// A whole step, without the writer's work, which is another thread's.
void step_of_200_tensors(benchmark::State& state) {
    Training training(1);
    for (auto _ : state) {
        training.session->observe_batch(Mode::kTrain, training.ids, training.views);
        benchmark::DoNotOptimize(training.session->end_step());
    }
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kTensors));
}

// Of a batch of rows that lie one after the other: a table's, and images, of which few values are looked at.
void fingerprints_of_rows(benchmark::State& state) {
    const std::array<std::int64_t, 2> shape{state.range(0), state.range(1)};
    std::vector<float> values(static_cast<std::size_t>(shape[0] * shape[1]));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
    const TensorView batch{values.data(), DType::kFloat32, shape, {}};
    for (auto _ : state) {
        auto prints = traindbg::capture::RowPrints::take(batch);
        prints->take_changes(batch);
        benchmark::DoNotOptimize(prints);
    }
    state.SetItemsProcessed(state.iterations() * shape[0]);
}

// Rows of a training that come again in each epoch.
void rows_that_are_known(benchmark::State& state) {
    const std::array<std::int64_t, 2> shape{64, 16};
    std::vector<traindbg::capture::RowPrints> batches;
    std::vector<float> values(static_cast<std::size_t>(shape[0] * shape[1]));
    const std::vector<std::int64_t> labels(64, 1);
    for (int batch = 0; batch < 200; ++batch) {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = static_cast<float>(i) + static_cast<float>(batch) / 200;
        batches.push_back(*traindbg::capture::RowPrints::take({values.data(), DType::kFloat32, shape, {}}));
        std::ignore = batches.back().take_labels({labels.data(), DType::kInt64, {shape.data(), 1}, {}});
    }
    traindbg::capture::RowMemory memory;
    std::size_t next = 0;
    for (auto _ : state) memory.learn(batches[next++ % batches.size()]);
    state.SetItemsProcessed(state.iterations() * shape[0]);
}

BENCHMARK(fingerprints_of_rows)->Args({32, 64})->Args({64, 150'528});
BENCHMARK(rows_that_are_known);
BENCHMARK(idle_step);
BENCHMARK(tensors_that_are_not_due);
BENCHMARK(step_of_200_tensors)->Iterations(5000);

}  // namespace
