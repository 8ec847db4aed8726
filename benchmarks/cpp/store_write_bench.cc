// What the store costs the training, and what its threads need beside it.
//
//   store_write_bench [--statistics | --tensors] [DIRECTORY] [STEPS]
//
// 1. A step of 1,000 tensors' statistics: the hand-over (p50, p99) in the training's thread, and the CPU time
//    of each thread for one step: the training's, the writer's, the sealer's.
// 2. Whole tensors, 200 of 40 KB per step: the training's part (copy and statistics in one pass) beside
//    memcpy of the same bytes into memory of the arena's size, in turns; p50 and p99 of a step at half of the
//    disk's own speed; what was dropped; the rate at which they can be kept coming. The disk's own speed is
//    measured before and after in the same directory, 8 MiB at a time past the page cache.
// 3. What the first step with whole tensors waits for, of 3 KB and of 200 MB, and the memory that is resident
//    after it: each in ten sessions, one after the other.
// 4. Steps of 500 MB of whole tensors, with an arena of 1 GiB: the first four steps of each of three
// sessions,
//    in which all of the arena is used for the first time.
//
// Wall times of a step are what a training sees; on a machine that does something else as well the p99 says
// more about that. Compare within one run of this program.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <system_error>
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

// CPU seconds of this process's threads by their names.
std::map<std::string, double> cpu_seconds_by_thread() {
    std::map<std::string, double> seconds;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        double nanos = 0;
        std::getline(std::ifstream(task.path() / "comm"), name);
        std::ifstream(task.path() / "schedstat") >> nanos;
        seconds[name] += nanos * 1e-9;
    }
    return seconds;
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
    double appended_seconds = 0;
    for (std::uint64_t step = 0; step < steps; ++step) {
        traindbg::model::StepRecord record = statistics_step(step, kTensors, writer->recycled());
        const double cpu = thread_cpu_seconds();
        const std::int64_t begin = monotonic_nanos();
        writer->append(std::move(record));
        nanos.push_back(monotonic_nanos() - begin);
        appended_seconds += thread_cpu_seconds() - cpu;
        if (step % 10 == 9) std::this_thread::sleep_for(5ms);  // a training computes meanwhile
    }
    static_cast<void>(writer->flush(60s));
    std::map<std::string, double> by_thread = cpu_seconds_by_thread();
    const auto counts = writer->counts();
    const std::uint64_t sealed = counts.parts_sealed;
    writer->close(120s).ignore();
    const auto each = static_cast<double>(steps) * 1e-6;
    std::printf("statistics of %zu tensors, %llu steps: hand-over p50 %.2f us, p99 %.2f us, max %.0f us\n",
                kTensors, static_cast<unsigned long long>(steps), percentile(nanos, 0.5),
                percentile(nanos, 0.99), percentile(nanos, 1));
    std::printf("  CPU per step: training's thread %.1f us, writer's %.1f us; %.1f MB, %llu steps dropped\n",
                appended_seconds / each, by_thread["traindbg-writer"] / each,
                static_cast<double>(counts.bytes_written) * 1e-6,
                static_cast<unsigned long long>(counts.steps_dropped));
    const double share =
        static_cast<double>(sealed * options.part_bytes) / static_cast<double>(counts.bytes_written);
    std::printf("  sealer's thread %.1f us for a step that is sealed (%llu parts so far)\n",
                sealed == 0 ? 0 : by_thread["traindbg-sealer"] / each / share,
                static_cast<unsigned long long>(sealed));
}

// `period`: from the begin of one step to that of the next; zero: as fast as they go.
void bench_tensors(const std::string& directory, const char* name, std::uint64_t steps,
                   std::chrono::nanoseconds period, double disk) {
    constexpr std::size_t kTensors = 200;
    constexpr std::int64_t kElements = 10'000;
    constexpr std::size_t kTensorBytes = kElements * sizeof(float);
    const bool is_paced = period > period.zero();
    traindbg::capture::SessionOptions options;
    options.run_directory = fresh(directory, name);
    options.config.overflow = is_paced ? traindbg::model::OverflowPolicy::kKeepReductionsOnly
                                       : traindbg::model::OverflowPolicy::kBlockFor;
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
    // What a plain copy of a step costs, to memory that is as large as the arena and there already.
    std::vector<std::byte> ring(std::size_t{256} << 20, std::byte{1});
    std::size_t ring_at = 0;
    const auto copy_plainly = [&] {
        const double begin = thread_cpu_seconds();
        for (const std::vector<float>& value : values) {
            if (ring_at + kTensorBytes > ring.size()) ring_at = 0;
            std::memcpy(ring.data() + ring_at, value.data(), kTensorBytes);
            ring_at += kTensorBytes;
        }
        return thread_cpu_seconds() - begin;
    };
    constexpr double kStepBytes = static_cast<double>(kTensors * kTensorBytes);
    std::vector<std::int64_t> nanos;
    double cpu = 0;
    double plain = 0;
    constexpr std::uint64_t kWarm = 40;  // the arena was gone through once: there is memory for all of it
    std::int64_t begin_all = 0;
    for (std::uint64_t step = 0; step < steps + kWarm; ++step) {
        if (step == kWarm) begin_all = monotonic_nanos();
        // Before and after in turns: who comes second finds the values in the cache.
        if (is_paced && step >= kWarm && step % 2 == 0) plain += copy_plainly();
        const double cpu_before = thread_cpu_seconds();
        const std::int64_t begin = monotonic_nanos();
        session->observe_batch(traindbg::model::Mode::kTrain, ids, views);
        static_cast<void>(session->end_step());
        if (step >= kWarm) {
            nanos.push_back(monotonic_nanos() - begin);
            cpu += thread_cpu_seconds() - cpu_before;
            if (is_paced && step % 2 != 0) plain += copy_plainly();
        }
        const auto due = std::chrono::nanoseconds(begin) + period;
        if (is_paced) std::this_thread::sleep_for(due - std::chrono::nanoseconds(monotonic_nanos()));
    }
    session->close(120s);
    const double seconds = static_cast<double>(monotonic_nanos() - begin_all) * 1e-9;
    const double all_bytes = kStepBytes * static_cast<double>(steps);
    const auto counts = session->counts().writer;
    std::printf("%s, %llu steps of %.0f MB: p50 %.2f ms, p99 %.2f ms (%.2f x), max %.2f ms\n", name,
                static_cast<unsigned long long>(steps), kStepBytes * 1e-6, percentile(nanos, 0.5) * 1e-3,
                percentile(nanos, 0.99) * 1e-3, percentile(nanos, 0.99) / percentile(nanos, 0.5),
                percentile(nanos, 1) * 1e-3);
    std::printf("  training's part: %.1f GB/s of CPU time", all_bytes / cpu * 1e-9);
    if (is_paced) std::printf(", memcpy in turns with it %.1f GB/s", all_bytes / plain * 1e-9);
    std::printf("\n  %.0f MB/s to the disk (%.0f %% of its own %.0f); dropped: %llu tensors, %llu steps\n",
                all_bytes / seconds * 1e-6, all_bytes / seconds / disk * 100, disk * 1e-6,
                static_cast<unsigned long long>(counts.raw_tensors_dropped),
                static_cast<unsigned long long>(counts.steps_dropped));
}

// A session that takes `tensors` whole ones of `elements` floats at each step; the values are shared.
struct WholeSteps {
    WholeSteps(const std::string& directory, std::size_t tensors, std::int64_t size, std::uint64_t arena)
        : elements(size), values(static_cast<std::size_t>(size) * std::min<std::size_t>(tensors, 10), 1.5F) {
        traindbg::capture::SessionOptions options;
        options.run_directory = fresh(directory, "whole_steps");
        options.config.overflow = traindbg::model::OverflowPolicy::kBlockFor;
        options.config.block_for_ms = 60'000;
        options.config.arena_bytes = arena;
        options.config.requirements = {{.collection = "gradients",
                                        .what = traindbg::model::What::kRaw,
                                        .schedule = {},
                                        .asked_by = "bench"}};
        session = std::move(traindbg::capture::CaptureSession::open(std::move(options))).value();
        for (std::size_t i = 0; i < tensors; ++i) {
            traindbg::model::TensorInfo info;
            info.name = "gradient/" + std::to_string(i);
            info.role = traindbg::model::Role::kGradient;
            info.dtype = traindbg::tensor::DType::kFloat32;
            info.shape = {elements};
            ids.push_back(session->register_tensor(std::move(info)));
            const float* const begin = values.data() + i % 10 * static_cast<std::size_t>(elements);
            views.push_back({begin, traindbg::tensor::DType::kFloat32, {&elements, 1}, {}});
        }
    }
    // Milliseconds that the training waits.
    double step() {
        const std::int64_t begin = monotonic_nanos();
        session->observe_batch(traindbg::model::Mode::kTrain, ids, views);
        static_cast<void>(session->end_step());
        return static_cast<double>(monotonic_nanos() - begin) * 1e-6;
    }

    std::int64_t elements;
    std::vector<float> values;
    std::vector<traindbg::model::TensorId> ids;
    std::vector<traindbg::tensor::TensorView> views;
    std::unique_ptr<traindbg::capture::CaptureSession> session;
};

// MiB of anonymous memory that are resident.
double resident_mib() {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;)
        if (double kib = 0; word == "RssAnon:" && status >> kib) return kib / 1024;
    return 0;
}

void print_spread(const char* name, std::vector<double> numbers, const char* unit) {
    std::sort(numbers.begin(), numbers.end());
    std::printf("  %s: min %.2f, median %.2f, max %.2f %s\n", name, numbers.front(),
                numbers[numbers.size() / 2], numbers.back(), unit);
}

void bench_first_step(const std::string& directory, const char* name, std::size_t tensors,
                      std::int64_t elements) {
    std::vector<double> first, second, memory;
    for (int i = 0; i < 10; ++i) {
        WholeSteps steps(directory, tensors, elements, 0);
        const double before = resident_mib();
        first.push_back(steps.step());
        memory.push_back(resident_mib() - before);
        static_cast<void>(steps.session->flush(60s));
        second.push_back(steps.step());
        steps.session->close(120s);
    }
    std::printf("first step with whole tensors, %s\n", name);
    print_spread("it takes", std::move(first), "ms");
    print_spread("the second one takes", std::move(second), "ms");
    print_spread("more memory is resident", std::move(memory), "MiB");
}

void bench_large_steps(const std::string& directory) {
    std::vector<double> millis;
    double all = 0;
    for (int i = 0; i < 3; ++i) {
        WholeSteps steps(directory, 50, 2'500'000, std::uint64_t{1} << 30);
        const std::int64_t begin = monotonic_nanos();
        for (int step = 0; step < 4; ++step) millis.push_back(steps.step());
        steps.session->close(120s);
        all += static_cast<double>(monotonic_nanos() - begin) * 1e-6;
    }
    std::printf("steps of 500 MB of whole tensors, an arena of 1 GiB\n");
    print_spread("a step takes", std::move(millis), "ms");
    std::printf("  four steps and the end take %.0f ms\n", all / 3);
}

bool bench_tensors(const std::string& directory, std::uint64_t steps) {
    const double disk = disk_rate(directory);
    if (disk <= 0) {
        std::fprintf(stderr, "%s: cannot be written\n", directory.c_str());
        return false;
    }
    bench_tensors(directory, "tensors_as_fast_as_they_go", steps, 0ns, disk);
    std::printf("  the disk alone: %.0f MB/s before, %.0f MB/s after\n", disk * 1e-6,
                disk_rate(directory) * 1e-6);
    const auto period = std::chrono::nanoseconds(static_cast<std::int64_t>(8e6 / (disk / 2) * 1e9));
    bench_tensors(directory, "tensors_at_half_the_disks_speed", steps, period, disk);
    bench_first_step(directory, "3 KB", 1, 768);
    bench_first_step(directory, "200 MB", 20, 2'500'000);
    bench_large_steps(directory);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    bool statistics = true;
    bool tensors = true;
    std::vector<std::string> words;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        if (word == "--statistics") tensors = false;
        else if (word == "--tensors") statistics = false;
        else if (word.starts_with("-") || words.size() == 2) {
            std::fputs("usage: store_write_bench [--statistics | --tensors] [DIRECTORY] [STEPS]\n", stderr);
            return word == "--help" ? 0 : 2;
        } else words.push_back(word);
    }
    const std::filesystem::path parent =
        words.empty() ? std::filesystem::current_path() : std::filesystem::path(words[0]);
    const std::string directory = (parent / "store_write_bench.tmp").string();
    const std::uint64_t steps = words.size() > 1 ? std::strtoull(words[1].c_str(), nullptr, 10) : 5000;
    if (statistics) bench_statistics(directory, steps);
    const bool is_done = !tensors || bench_tensors(directory, std::max<std::uint64_t>(steps / 10, 20));
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
    return is_done ? 0 : 1;
}
