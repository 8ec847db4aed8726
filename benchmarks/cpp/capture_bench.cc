// What does a step cost the training, with nothing due, and with the statistics of many small tensors?
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "traindbg/capture/capture_session.h"
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

BENCHMARK(idle_step);
BENCHMARK(tensors_that_are_not_due);
BENCHMARK(step_of_200_tensors)->Iterations(5000);

}  // namespace
