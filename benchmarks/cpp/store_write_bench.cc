// What the store costs the training, and what its threads need beside it.
//
//   store_write_bench DIRECTORY [STEPS]
//
// 1. A step of 1,000 tensors' statistics: the hand-over (p50, p99) in the training's thread, and the CPU time
// of all
//    threads for one step, sealing included.
// 2. Whole tensors, 200 of 40 KB per step: the training's part (copy and statistics in one pass), its rate,
// and
//    p50 and p99 of a step at about half of the disk's own speed, which is measured before in the same
//    directory with 1 MiB at a time past the page cache; what was dropped; the rate at which they can be kept
//    coming.
//
// Wall times of a step are what a training sees; on a machine that does something else as well the p99 says
// more about that. Compare within one run of this program.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "traindbg/base/clock.h"
#include "traindbg/capture/capture_session.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/write/run_writer.h"

namespace {

using traindbg::base::monotonic_nanos;
using namespace std::chrono_literals;

double process_cpu_seconds() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
double thread_cpu_seconds() {
    return static_cast<double>(traindbg::base::clock_nanos(CLOCK_THREAD_CPUTIME_ID)) * 1e-9;
}

double percentile(std::vector<std::int64_t> nanos, double share) {
    if (nanos.empty()) return 0;
    std::sort(nanos.begin(), nanos.end());
    const auto at = static_cast<std::size_t>(share * static_cast<double>(nanos.size() - 1));
    return static_cast<double>(nanos[at]) * 1e-3;
}

std::string fresh(const std::string& directory, const char* name) {
    std::string path = directory + "/" + name;
    std::filesystem::remove_all(path);
    traindbg::storage::posix_file_system().create_directories(path).ignore();
    return path;
}

// The disk's own rate, in bytes per second.
double disk_rate(const std::string& directory) {
    const std::string path = fresh(directory, "disk") + "/file";
    constexpr std::size_t kPiece = std::size_t{8} << 20;
    constexpr int kPieces = 64;
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    const std::unique_ptr<std::byte, Free> memory(static_cast<std::byte*>(std::aligned_alloc(4096, kPiece)));
    std::fill_n(memory.get(), kPiece, std::byte{5});
    auto file = traindbg::storage::posix_file_system().create_bulk(path);
    if (!file.is_ok()) return 0;
    const std::int64_t begin = monotonic_nanos();
    for (int i = 0; i < kPieces; ++i)
        if (!(*file)->append({memory.get(), kPiece}).is_ok()) return 0;
    if (!(*file)->sync().is_ok()) return 0;
    return static_cast<double>(kPiece) * kPieces * 1e9 / static_cast<double>(monotonic_nanos() - begin);
}

traindbg::model::StepRecord statistics_step(std::uint64_t step, std::size_t tensors,
                                            traindbg::model::StepRecord record) {
    record.step = record.sequence = step;
    record.tensors.resize(tensors);
    for (std::size_t i = 0; i < tensors; ++i) {
        traindbg::model::TensorSample& sample = record.tensors[i];
        const double x = 1e-3 * static_cast<double>((step * 31 + i * 17) % 1000);
        sample.tensor = static_cast<traindbg::model::TensorId>(i);
        sample.statistics = {4096, 0, 0, 0, (step + i) % 7, -x, x + 1, x / 3, x / 2, x * 4096, x * 64};
    }
    return record;
}

void bench_statistics(const std::string& directory, std::uint64_t steps) {
    constexpr std::size_t kTensors = 1000;
    traindbg::write::WriterOptions options;
    options.run_directory = fresh(directory, "statistics");
    auto writer =
        std::move(traindbg::write::RunWriter::open(traindbg::storage::posix_file_system(), options)).value();
    for (std::size_t i = 0; i < kTensors; ++i) {
        traindbg::model::TensorInfo info;
        info.id = static_cast<traindbg::model::TensorId>(i);
        info.name = "gradient/layer" + std::to_string(i) + ".weight";
        info.role = traindbg::model::Role::kGradient;
        info.shape = {64, 64};
        writer->add_tensor(info);
    }
    std::vector<std::int64_t> nanos;
    nanos.reserve(steps);
    double made_seconds = 0;
    const double cpu_before = process_cpu_seconds();
    for (std::uint64_t step = 0; step < steps; ++step) {
        const double made_before = thread_cpu_seconds();
        traindbg::model::StepRecord record = statistics_step(step, kTensors, writer->recycled());
        made_seconds += thread_cpu_seconds() - made_before;
        const std::int64_t begin = monotonic_nanos();
        writer->append(std::move(record));
        nanos.push_back(monotonic_nanos() - begin);
        if (step % 10 == 9) std::this_thread::sleep_for(5ms);  // a training computes meanwhile
    }
    static_cast<void>(writer->flush(60s));
    const double written = process_cpu_seconds() - cpu_before - made_seconds;
    writer->close(120s).ignore();
    const double all = process_cpu_seconds() - cpu_before - made_seconds;
    const auto counts = writer->counts();
    std::printf("statistics of %zu tensors, %llu steps: hand-over p50 %.2f us, p99 %.2f us, max %.0f us\n",
                kTensors, static_cast<unsigned long long>(steps), percentile(nanos, 0.5),
                percentile(nanos, 0.99), percentile(nanos, 1));
    std::printf(
        "  CPU of all threads per step: %.1f us written, %.1f us sealed as well (%llu parts); dropped %llu\n",
        written * 1e6 / static_cast<double>(steps), all * 1e6 / static_cast<double>(steps),
        static_cast<unsigned long long>(counts.parts_sealed),
        static_cast<unsigned long long>(counts.steps_dropped));
}

// `pause`: between two steps. Gives bytes per second that reached the disk.
void bench_tensors(const std::string& directory, const char* name, std::uint64_t steps,
                   std::chrono::nanoseconds pause, double disk) {
    constexpr std::size_t kTensors = 200;
    constexpr std::int64_t kElements = 10'000;
    traindbg::capture::SessionOptions options;
    options.run_directory = fresh(directory, name);
    options.config.overflow = pause == pause.zero() ? traindbg::model::OverflowPolicy::kBlockFor
                                                    : traindbg::model::OverflowPolicy::kKeepReductionsOnly;
    options.config.block_for_ms = 60'000;
    options.config.requirements = {{.collection = "gradients",
                                    .what = traindbg::model::What::kStatistics | traindbg::model::What::kRaw,
                                    .schedule = {},
                                    .asked_by = "bench"}};
    auto session = std::move(traindbg::capture::CaptureSession::open(std::move(options))).value();
    std::vector<std::vector<float>> values(kTensors, std::vector<float>(kElements, 1.5F));
    std::vector<traindbg::model::TensorId> ids;
    std::vector<traindbg::tensor::TensorView> views;
    for (std::size_t i = 0; i < kTensors; ++i) {
        traindbg::model::TensorInfo info;
        info.name = "gradient/" + std::to_string(i);
        info.role = traindbg::model::Role::kGradient;
        info.dtype = traindbg::tensor::DType::kFloat32;
        info.shape = {kElements};
        ids.push_back(session->register_tensor(std::move(info)));
        views.push_back({values[i].data(), traindbg::tensor::DType::kFloat32, {&kElements, 1}, {}});
    }
    constexpr double kStepBytes = static_cast<double>(kTensors * kElements * sizeof(float));
    std::vector<std::int64_t> nanos;
    double cpu = 0;
    constexpr std::uint64_t kWarm = 5;  // the arena is made, the first pages of everything are there
    std::int64_t begin_all = 0;
    for (std::uint64_t step = 0; step < steps + kWarm; ++step) {
        if (step == kWarm) begin_all = monotonic_nanos();
        const double cpu_before = thread_cpu_seconds();
        const std::int64_t begin = monotonic_nanos();
        session->observe_batch(traindbg::model::Mode::kTrain, ids, views);
        static_cast<void>(session->end_step());
        if (step >= kWarm) {
            nanos.push_back(monotonic_nanos() - begin);
            cpu += thread_cpu_seconds() - cpu_before;
        }
        if (pause > pause.zero()) std::this_thread::sleep_for(pause);
    }
    session->close(120s);
    const double seconds = static_cast<double>(monotonic_nanos() - begin_all) * 1e-9;
    const double rate = kStepBytes * static_cast<double>(steps) / seconds;
    const auto counts = session->counts().writer;
    std::printf(
        "%s, %llu steps of %.0f MB: training's part %.1f GB/s (CPU), p50 %.2f ms, p99 %.2f ms (%.2f x)\n",
        name, static_cast<unsigned long long>(steps), kStepBytes * 1e-6,
        kStepBytes * static_cast<double>(steps) / cpu * 1e-9, percentile(nanos, 0.5) * 1e-3,
        percentile(nanos, 0.99) * 1e-3, percentile(nanos, 0.99) / percentile(nanos, 0.5));
    std::printf("  %.0f MB/s to the disk (%.0f %% of its own %.0f); dropped: %llu tensors, %llu steps\n",
                rate * 1e-6, rate / disk * 100, disk * 1e-6,
                static_cast<unsigned long long>(counts.raw_tensors_dropped),
                static_cast<unsigned long long>(counts.steps_dropped));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: store_write_bench DIRECTORY [STEPS]\n", stderr);
        return 2;
    }
    const std::string directory = argv[1];
    const std::uint64_t steps = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 5000;
    bench_statistics(directory, steps);
    const double disk = disk_rate(directory);
    if (disk <= 0) {
        std::fprintf(stderr, "%s: cannot be written\n", directory.c_str());
        return 1;
    }
    const std::uint64_t tensor_steps = std::max<std::uint64_t>(steps / 25, 20);
    bench_tensors(directory, "tensors_as_fast_as_they_go", tensor_steps, 0ns, disk);
    const auto pause = std::chrono::nanoseconds(static_cast<std::int64_t>(8e6 / (disk / 2) * 1e9));
    bench_tensors(directory, "tensors_at_half_the_disks_speed", tensor_steps, pause, disk);
    std::filesystem::remove_all(directory + "/disk");
    std::filesystem::remove_all(directory + "/statistics");
    std::filesystem::remove_all(directory + "/tensors_as_fast_as_they_go");
    std::filesystem::remove_all(directory + "/tensors_at_half_the_disks_speed");
    return 0;
}
