// How soon somebody who follows a run has what the training has committed.
//
//   store_tail_bench [--steps N] [--interval MILLISECONDS] [--tensors N] [--follower tail|wait] [--directory
//   D]
//
// Two processes on one machine: this one writes steps with a RunWriter, at a fixed pace; a child made by
// `fork` follows the run, as `traindbg watch` does (`tail`: RunTail::next) or as a program of one's own may
// (`wait`: Run::wait, then Run::step). Both write the time of CLOCK_MONOTONIC, which they share, into a page
// of shared memory:
//
//   handed over   when RunWriter::append is called
//   append begun  when the append(2) of the log that holds the step's frame is about to be called
//   committed     when it has returned
//   visible       when the child has the step's values, decoded
//
// Printed is committed -> visible. It may be below 0: the follower is woken within append(2), and the
// writer's thread, which is nice 5, may only return from it when the follower is done; so append begun ->
// visible, which is never less than the truth, stands beside it. The third line is handed over -> visible,
// which has the writer's linger of up to 10 ms in it. p50, p99 and the largest of all steps but the first
// ten. On a machine that does other things at the same time the scheduler is in these figures; the CPU time
// that the follower needs for each step is not.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/run_writer.h"

namespace traindbg {
namespace {

using base::monotonic_nanos;
using namespace std::chrono_literals;

constexpr std::uint64_t kWarm = 10;  // steps that do not count: the run is being opened

void check(const base::Status& status) {
    if (status.is_ok()) return;
    std::fprintf(stderr, "store_tail_bench: %s\n", status.message().c_str());
    std::exit(1);
}

// Of one step; each field is written by one process and read after the other has ended.
struct Times {
    std::int64_t handed_over = 0;
    std::int64_t append_begun = 0;
    std::int64_t committed = 0;
    std::int64_t visible = 0;
};

// Notes when the frame of each step was committed.
class TimedLog final : public storage::AppendFile {
  public:
    TimedLog(std::unique_ptr<storage::AppendFile> file, std::span<Times> times)
        : file_(std::move(file)), times_(times) {}

    base::Status append(base::ByteSpan bytes) override {
        const std::int64_t begin = monotonic_nanos();
        const base::Status status = file_->append(bytes);
        const std::int64_t end = monotonic_nanos();
        while (bytes.size() >= format::kFrameHeaderBytes) {
            std::uint32_t payload_bytes = 0;
            std::uint16_t type = 0;
            std::memcpy(&payload_bytes, bytes.data() + 4, sizeof(payload_bytes));
            std::memcpy(&type, bytes.data() + 16, sizeof(type));
            if (static_cast<format::FrameType>(type) == format::FrameType::kStep) {
                const auto prefix =
                    format::decode_step_prefix(bytes.subspan(format::kFrameHeaderBytes, payload_bytes));
                if (prefix && prefix->sequence < times_.size()) {
                    times_[prefix->sequence].append_begun = begin;
                    times_[prefix->sequence].committed = end;
                }
            }
            bytes = bytes.subspan(std::min(bytes.size(), format::frame_bytes(payload_bytes)));
        }
        return status;
    }
    base::Status sync() override { return file_->sync(); }
    [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
    base::Status reserve(std::uint64_t bytes) override { return file_->reserve(bytes); }

  private:
    std::unique_ptr<storage::AppendFile> file_;
    std::span<Times> times_;
};

// The real one, whose logs note their appends.
class TimedFileSystem final : public storage::FileSystem {
  public:
    explicit TimedFileSystem(std::span<Times> times) : times_(times) {}

    base::Result<std::unique_ptr<storage::AppendFile>> create(const std::string& path) override {
        TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::AppendFile> file, files_.create(path));
        if (!path.ends_with(".log")) return file;
        return std::unique_ptr<storage::AppendFile>(std::make_unique<TimedLog>(std::move(file), times_));
    }
    base::Result<std::unique_ptr<storage::AppendFile>> create_bulk(const std::string& path) override {
        return files_.create_bulk(path);
    }
    base::Result<std::unique_ptr<storage::ReadFile>> open(const std::string& path) override {
        return files_.open(path);
    }
    base::Status put_atomic(const std::string& path, base::ByteSpan bytes) override {
        return files_.put_atomic(path, bytes);
    }
    base::Status create_directories(const std::string& path) override {
        return files_.create_directories(path);
    }
    base::Status create_directory(const std::string& path) override { return files_.create_directory(path); }
    base::Result<std::vector<storage::DirectoryEntry>> list(const std::string& path) override {
        return files_.list(path);
    }
    base::Status remove(const std::string& path) override { return files_.remove(path); }
    bool exists(const std::string& path) override { return files_.exists(path); }
    base::Result<std::unique_ptr<storage::FileLock>> try_lock(const std::string& path,
                                                              storage::LockFile file) override {
        return files_.try_lock(path, file);
    }
    base::Result<std::uint64_t> free_bytes(const std::string& path) override {
        return files_.free_bytes(path);
    }

  private:
    storage::FileSystem& files_ = storage::posix_file_system();
    std::span<Times> times_;
};

struct Options {
    std::uint64_t steps = 1500;
    double interval_millis = 20;
    std::uint32_t tensors = 100;
    std::string follower = "tail";
    std::string directory;
};

// ---- the follower

// Gives up when nothing comes for this long.
constexpr auto kPatience = 30s;

void follow_tail(const std::string& run, std::span<Times> times) {
    auto tail = read::RunTail::open(run);
    check(tail.status());
    for (std::uint64_t seen = 0; seen < times.size(); ++seen) {
        const auto view = (*tail)->next(kPatience);
        check(view.status());
        if (!view->has_value()) std::exit(1);
        times[(*view)->record->sequence].visible = monotonic_nanos();
    }
}

void follow_wait(const std::string& path, std::span<Times> times) {
    auto run = read::Run::open(path);
    check(run.status());
    for (std::uint64_t seen = 0; seen < times.size();) {
        auto record = (*run)->step(0, model::Mode::kTrain, seen);
        check(record.status());
        if (record->has_value()) {
            times[seen++].visible = monotonic_nanos();
            continue;
        }
        const auto is_new = (*run)->wait(kPatience);
        check(is_new.status());
        if (!*is_new) std::exit(1);
    }
}

// ---- the training

void fill(model::StepRecord& record, std::uint64_t step, std::uint32_t tensors) {
    record.step = record.sequence = step;
    record.tensors.resize(tensors);
    for (std::uint32_t id = 0; id < tensors; ++id) {
        const double x = 1e-3 * static_cast<double>((step * 31 + id * 17) % 1000);
        record.tensors[id].tensor = id;
        record.tensors[id].statistics = {4096,  0,     0,     0,        (step + id) % 7, -x,
                                         x + 1, x / 3, x / 2, x * 4096, x * 64};
    }
}

void train(const std::string& run, const Options& options, std::span<Times> times) {
    TimedFileSystem files(times);
    write::WriterOptions writer_options;
    writer_options.run_directory = run;
    auto writer = write::RunWriter::open(files, writer_options);
    check(writer.status());
    for (std::uint32_t id = 0; id < options.tensors; ++id) {
        model::TensorInfo info;
        info.id = id;
        info.name = base::format("gradient/layers.{}.weight", id);
        info.role = model::Role::kGradient;
        info.shape = {64, 64};
        (*writer)->add_tensor(info);
    }
    const auto interval = std::chrono::nanoseconds(static_cast<std::int64_t>(options.interval_millis * 1e6));
    auto next = std::chrono::steady_clock::now();
    for (std::uint64_t step = 0; step < options.steps; ++step) {
        model::StepRecord record = (*writer)->recycled();
        fill(record, step, options.tensors);
        times[step].handed_over = monotonic_nanos();
        (*writer)->append(std::move(record));
        next += interval;
        std::this_thread::sleep_until(next);
    }
    check((*writer)->close(60s));
    if ((*writer)->counts().steps_dropped != 0) std::fprintf(stderr, "steps were dropped\n");
}

// ---- what came out

void print(const char* what, std::vector<std::int64_t> nanos) {
    std::sort(nanos.begin(), nanos.end());
    const auto at = [&](double share) {
        return static_cast<double>(
                   nanos[static_cast<std::size_t>(share * static_cast<double>(nanos.size() - 1))]) *
               1e-6;
    };
    std::printf("  %-24s p50 %7.3f ms, p99 %7.3f ms, max %7.3f ms, min %7.3f ms (%zu steps)\n", what, at(0.5),
                at(0.99), at(1), at(0), nanos.size());
}

double cpu_seconds(const rusage& usage) {
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

int measure(const Options& options) {
    const storage::RunLayout layout{options.directory + "/run"};
    check(storage::posix_file_system().create_directories(layout.root));
    check(storage::posix_file_system().put_atomic(layout.run_json(), base::as_bytes("{}")));
    const std::size_t bytes = options.steps * sizeof(Times);
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    const std::span<Times> times(static_cast<Times*>(memory), options.steps);
    const pid_t child = ::fork();
    if (child < 0) return 1;
    if (child == 0) {
        if (options.follower == "tail") follow_tail(layout.root, times);
        else follow_wait(layout.root, times);
        std::_Exit(0);
    }
    std::this_thread::sleep_for(200ms);
    train(layout.root, options, times);
    int status = 0;
    rusage usage{};
    ::wait4(child, &status, 0, &usage);
    if (status != 0) {
        std::fprintf(stderr, "store_tail_bench: the follower has failed\n");
        return 1;
    }
    std::vector<std::int64_t> from_commit;
    std::vector<std::int64_t> from_append;
    std::vector<std::int64_t> from_hand_over;
    for (const Times& time : times.subspan(std::min<std::size_t>(kWarm, times.size()))) {
        from_commit.push_back(time.visible - time.committed);
        from_append.push_back(time.visible - time.append_begun);
        from_hand_over.push_back(time.visible - time.handed_over);
    }
    if (from_commit.empty()) return 1;
    std::printf("%llu steps of %u tensors, one every %g ms, follower: %s\n",
                static_cast<unsigned long long>(options.steps), options.tensors, options.interval_millis,
                options.follower.c_str());
    print("committed -> visible", std::move(from_commit));
    print("append begun -> visible", std::move(from_append));
    print("handed over -> visible", std::move(from_hand_over));
    std::printf("  follower: %.0f us CPU per step\n",
                cpu_seconds(usage) * 1e6 / static_cast<double>(options.steps));
    std::fflush(stdout);
    return 0;
}

int usage(FILE* out, int code) {
    std::fputs(
        "usage: store_tail_bench [--steps N] [--interval MILLISECONDS] [--tensors N] [--follower tail|wait]\n"
        "                        [--directory D]\n\n"
        "How soon a process that follows a run has what the training committed. Without options: 100 and "
        "1,000\n"
        "tensors every 20 ms and 10 tensors every millisecond, with both followers, some three minutes.\n"
        "The run is made in D (default: a temporary directory) and removed.\n",
        out);
    return code;
}

}  // namespace
}  // namespace traindbg

int main(int argc, char** argv) {
    traindbg::Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--help") return traindbg::usage(stdout, 0);
        if (i + 1 == argc) return traindbg::usage(stderr, 2);
        const char* const value = argv[++i];
        if (argument == "--steps") options.steps = std::strtoull(value, nullptr, 10);
        else if (argument == "--interval") options.interval_millis = std::strtod(value, nullptr);
        else if (argument == "--tensors") options.tensors = static_cast<std::uint32_t>(std::atoi(value));
        else if (argument == "--follower") options.follower = value;
        else if (argument == "--directory") options.directory = value;
        else return traindbg::usage(stderr, 2);
    }
    if ((options.follower != "tail" && options.follower != "wait") || options.steps == 0)
        return traindbg::usage(stderr, 2);
    const std::string base =
        options.directory.empty() ? std::filesystem::temp_directory_path().string() : options.directory;
    std::vector<traindbg::Options> all;
    if (argc == 1) {
        for (const char* const follower : {"tail", "wait"}) {
            all.push_back({1500, 20, 100, follower, {}});
            all.push_back({1500, 20, 1000, follower, {}});
            all.push_back({20000, 1, 10, follower, {}});
        }
    } else {
        all.push_back(options);
    }
    for (traindbg::Options& each : all) {
        std::string pattern = base + "/traindbg-tail-XXXXXX";
        if (::mkdtemp(pattern.data()) == nullptr) {
            std::perror(pattern.c_str());
            return 1;
        }
        each.directory = pattern;
        const int code = traindbg::measure(each);
        std::filesystem::remove_all(pattern);
        if (code != 0) return code;
    }
    return 0;
}
