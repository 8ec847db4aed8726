// Lets memory fail at one allocation after the other while a run is recorded.
//
//   allocation_loop DIRECTORY [STRIDE]
//
// In round n the n-th allocation of the process fails, counted over all threads from when the writer is open
// to its end; in every second round the next 20 fail with it. The writer must come to an end without an
// exception, a hang or a crash, count each step as written or dropped, and leave a run in which every step
// that can be read has the values that were recorded. Every STRIDE-th allocation is tried, until a round has
// no n-th. Opening is left out: it reads a JSON document, and the destructors of the library for that
// allocate. Exit code 0: so it was.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <string>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/write/run_writer.h"

namespace {

std::atomic<std::int64_t> allocations_until_failure{-1};  // negative: none fails
std::atomic<std::int64_t> failures_left{0};
std::atomic<bool> has_failed{false};
thread_local bool is_exempt = false;  // what this thread does now is no part of the test

bool fails() noexcept {
    if (is_exempt || allocations_until_failure.load(std::memory_order_relaxed) < 0) return false;
    if (allocations_until_failure.fetch_sub(1, std::memory_order_relaxed) > 0) return false;
    has_failed.store(true);
    allocations_until_failure.store(failures_left.fetch_sub(1) > 0 ? 0 : -1);
    return true;
}

void* allocate(std::size_t size, std::size_t alignment) {
    if (fails()) throw std::bad_alloc();
    void* const memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) { return allocate(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocate(size, static_cast<std::size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

namespace {

using traindbg::model::StepRecord;
using traindbg::testing::sample_step;
using namespace std::chrono_literals;

constexpr std::uint64_t kSteps = 30;
constexpr unsigned kMostSeconds = 60;  // of a round: more is a hang

bool has_tensors(std::uint64_t step) { return step % 5 == 0; }

int failed(std::int64_t round, const std::string& what) {
    std::fprintf(stderr, "allocation %lld: %s\n", static_cast<long long>(round), what.c_str());
    return 1;
}

// Every step that is in the run is one that was recorded. How many there are.
std::uint64_t read_back(const std::string& run, std::string& wrong) {
    auto opened = traindbg::read::Run::open(run, traindbg::storage::posix_file_system());
    if (!opened.is_ok()) {
        wrong = opened.status().message();
        return 0;
    }
    std::uint64_t steps = 0;
    const auto status = (*opened)->for_each_step(
        [&](const traindbg::model::StepView& view) {
            StepRecord expected = sample_step(view.record->step, has_tensors(view.record->step));
            // What there was no memory for is not there: a tensor's description, or a whole tensor.
            const auto is_described = [&](traindbg::model::TensorId id) {
                return id < view.tensors->size() && !(*view.tensors)[id].name.empty();
            };
            const auto leave_described = [&](auto& samples) {
                std::erase_if(samples, [&](const auto& sample) { return !is_described(sample.tensor); });
            };
            leave_described(expected.tensors);
            leave_described(expected.scalars);
            leave_described(expected.classes);
            leave_described(expected.histograms);
            leave_described(expected.channels);
            leave_described(expected.digests);
            leave_described(expected.raw);
            std::erase_if(expected.raw, [&](const traindbg::model::RawTensor& raw) {
                return std::find(view.record->raw.begin(), view.record->raw.end(), raw) ==
                       view.record->raw.end();
            });
            if (!(*view.record == expected))
                wrong = "step " + std::to_string(view.record->step) + " has other values";
            ++steps;
            return wrong.empty();
        },
        true);
    if (!status.is_ok()) wrong = status.message();
    for (const traindbg::read::Damage& damage : (*opened)->damage())
        if (!damage.tail) wrong = damage.file + ": " + damage.what;
    return steps;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fputs("usage: allocation_loop DIRECTORY [STRIDE]\n", stderr);
        return 2;
    }
    const std::string directory = argv[1];
    const std::int64_t stride = argc > 2 ? std::atoll(argv[2]) : 1;
    traindbg::storage::FileSystem& files = traindbg::storage::posix_file_system();
    std::filesystem::remove_all(directory);
    std::uint64_t written = 0;
    std::uint64_t dropped = 0;
    std::int64_t round = 0;
    for (bool was_reached = true; was_reached; round += stride) {
        const std::string run = directory + "/run" + std::to_string(round);
        if (!files.create_directories(run).is_ok() ||
            !files.put_atomic(run + "/RUN.json", traindbg::base::as_bytes(traindbg::testing::kSampleRunJson))
                 .is_ok())
            return failed(round, run + ": cannot be made");
        traindbg::write::WriterOptions options;
        options.run_directory = run;
        options.part_bytes = 4000;
        options.sync_interval = 1ms;
        options.sealer_nice = 0;
        options.overflow = traindbg::write::OverflowPolicy::kBlockFor;
        options.block_for = 10s;
        auto writer = traindbg::write::RunWriter::open(files, options);
        if (!writer.is_ok()) return failed(round, writer.status().message());
        ::alarm(kMostSeconds);
        failures_left.store(round / stride % 2 == 0 ? 0 : 20);
        allocations_until_failure.store(round);
        try {
            // What the training hands over is made with its own memory.
            const auto unarmed = [](const auto& make) {
                is_exempt = true;
                auto made = make();
                is_exempt = false;
                return made;
            };
            for (const auto& info : unarmed([] { return traindbg::testing::sample_tensors(); }))
                (*writer)->add_tensor(info);
            for (std::uint64_t step = 0; step < kSteps; ++step)
                (*writer)->append(unarmed([&] { return sample_step(step, has_tensors(step)); }));
            (*writer)->close(30s).ignore();
        } catch (const std::exception& error) {
            return failed(round, std::string("threw ") + error.what());
        }
        allocations_until_failure.store(-1);
        was_reached = has_failed.exchange(false);
        const traindbg::write::WriterCounts counts = (*writer)->counts();
        writer->reset();
        if (counts.steps_written + counts.steps_dropped != kSteps)
            return failed(round, std::to_string(counts.steps_written) + " steps written and " +
                                     std::to_string(counts.steps_dropped) + " dropped of " +
                                     std::to_string(kSteps));
        std::string wrong;
        const std::uint64_t found = read_back(run, wrong);
        if (!wrong.empty()) return failed(round, wrong);
        if (found != counts.steps_written)
            return failed(round, std::to_string(found) + " steps can be read, " +
                                     std::to_string(counts.steps_written) + " were written");
        written += counts.steps_written;
        dropped += counts.steps_dropped;
        ::alarm(0);
        std::filesystem::remove_all(run);
    }
    std::printf("%lld allocations failed, one a round: %llu steps written, %llu dropped\n",
                static_cast<long long>(round / stride), static_cast<unsigned long long>(written),
                static_cast<unsigned long long>(dropped));
    return 0;
}
