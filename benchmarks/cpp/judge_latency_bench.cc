// How soon a finding is told: from the commit of a step to the line on the supervisor's standard error.
//
//   judge_latency_bench --program TRAINDBG --rule liblatency_rule.so [--steps N] [--interval MILLISECONDS]
//                       [--tensors N] [--processes N]
//
// Three processes and more, as in use: this one starts `traindbg run`, with all default rules and one more
// that finds something new at every second step (latency_rule.cc; 1,600 steps: 800 findings), and reads what
// it says. The training is this program again: a RunWriter that writes steps of so many tensors'
// statistics at a fixed pace. Both write the time of CLOCK_MONOTONIC, which they share, into a file that both
// have mapped:
//
//   handed over   when RunWriter::append is called, at the end of the training's step
//   committed     when the append(2) of the log that holds the step's frame has returned
//   told          when this process has read the line that names the step
//
// Printed: p50, p99, largest and least of committed -> told and handed over -> told. The first has the
// supervisor's batching in it (looks are 20 ms apart at least, so that a fast training does not wake it
// thousands of times a second); the second also the writer's linger of up to 10 ms.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

#include "healthy_training.h"
#include "traindbg/base/clock.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/write/run_writer.h"

namespace traindbg {
namespace {

using base::monotonic_nanos;
using namespace std::chrono_literals;

constexpr std::uint64_t kWarm = 20;  // steps that do not count: the run is being opened

void check(const base::Status& status) {
    if (status.is_ok()) return;
    std::fprintf(stderr, "judge_latency_bench: %s\n", status.message().c_str());
    std::exit(1);
}

// Of one step; each field is written by one process and read after the other has ended.
struct Times {
    std::int64_t handed_over = 0;
    std::int64_t committed = 0;
    std::int64_t told = 0;
};

// Notes when the frame of each step was committed.
class TimedLog final : public storage::AppendFile {
  public:
    TimedLog(std::unique_ptr<storage::AppendFile> file, std::span<Times> times)
        : file_(std::move(file)), times_(times) {}

    base::Status append(base::ByteSpan bytes) override {
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
    std::string program = "build/bench/traindbg";
    std::string rule = "build/bench/benchmarks/cpp/liblatency_rule.so";
    std::string steps = "1600";
    std::string interval_millis = "20";
    std::string tensors = "100";
    std::string processes = "1";
    std::string directory;
};

std::span<Times> mapped(const std::string& path, std::size_t steps) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const std::size_t bytes = steps * sizeof(Times);
    void* memory = MAP_FAILED;
    if (file >= 0 && ::ftruncate(file, static_cast<off_t>(bytes)) == 0)
        memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        std::perror(path.c_str());
        std::exit(1);
    }
    ::close(file);
    return {static_cast<Times*>(memory), steps};
}

// The training: TIMES STEPS INTERVAL TENSORS, under `traindbg run`.
int train(char** arguments) {
    const auto steps = static_cast<std::size_t>(std::strtoul(arguments[1], nullptr, 10));
    const std::span<Times> times = mapped(arguments[0], steps);
    const char* const run = std::getenv("TRAINDBG_RUN_DIR");
    if (run == nullptr) return 1;
    TimedFileSystem files(times);
    write::WriterOptions options;
    options.run_directory = run;
    auto writer = write::RunWriter::open(files, options);
    check(writer.status());
    const model::TensorTable table = bench::table_of(std::strtoul(arguments[3], nullptr, 10));
    std::vector<model::StepRecord> records = bench::steps_of(table, steps);
    for (const model::TensorInfo& info : table) (*writer)->add_tensor(info);
    const auto interval =
        std::chrono::nanoseconds(static_cast<std::int64_t>(std::strtod(arguments[2], nullptr) * 1e6));
    auto next = std::chrono::steady_clock::now();
    for (std::size_t step = 0; step < steps; ++step) {
        times[step].handed_over = monotonic_nanos();
        (*writer)->append(std::move(records[step]));
        next += interval;
        std::this_thread::sleep_until(next);
    }
    check((*writer)->close(60s));
    if ((*writer)->counts().steps_dropped != 0) std::fprintf(stderr, "steps were dropped\n");
    return 0;
}

// Notes when each finding was told, until the supervisor has ended.
void listen(int descriptor, std::span<Times> times, bool shows_all) {
    constexpr std::string_view kProbe = "latency probe of step ";
    std::string text;
    std::array<char, 65536> buffer;
    while (true) {
        const ssize_t size = ::read(descriptor, buffer.data(), buffer.size());
        if (size <= 0) break;
        const std::int64_t now = monotonic_nanos();
        if (shows_all)
            static_cast<void>(!::write(STDERR_FILENO, buffer.data(), static_cast<std::size_t>(size)));
        text.append(buffer.data(), static_cast<std::size_t>(size));
        std::size_t read_to = 0;
        for (std::size_t at = text.find(kProbe); at != std::string::npos; at = text.find(kProbe, at + 1)) {
            const std::size_t end = text.find(" end", at);
            if (end == std::string::npos) break;
            const std::size_t step = std::strtoul(text.c_str() + at + kProbe.size(), nullptr, 10);
            if (step < times.size() && times[step].told == 0) times[step].told = now;
            read_to = end;
        }
        text.erase(0, read_to);
        if (text.size() > (1U << 20)) text.erase(0, text.size() - 1000);
    }
}

void print(const char* what, std::vector<std::int64_t> nanos) {
    std::sort(nanos.begin(), nanos.end());
    const auto at = [&](double share) {
        return static_cast<double>(
                   nanos[static_cast<std::size_t>(share * static_cast<double>(nanos.size() - 1))]) *
               1e-6;
    };
    std::printf("  %-20s p50 %7.2f ms, p99 %7.2f ms, max %7.2f ms, min %7.2f ms (%zu findings)\n", what,
                at(0.5), at(0.99), at(1), at(0), nanos.size());
}

int measure(const Options& options, const char* self) {
    const std::string shared = options.directory + "/times";
    const auto steps = static_cast<std::size_t>(std::strtoul(options.steps.c_str(), nullptr, 10));
    const std::span<Times> times = mapped(shared, steps);
    std::array<int, 2> pair{};
    if (::pipe2(pair.data(), O_CLOEXEC) != 0) return 1;
    const std::string run = options.directory + "/run";
    const pid_t child = ::fork();
    if (child == 0) {
        ::dup2(pair[1], STDERR_FILENO);
        ::execl(options.program.c_str(), "traindbg", "run", "--run-dir", run.c_str(), "--no-report",
                "--rule-plugin", options.rule.c_str(), "--processes", options.processes.c_str(), "--config",
                "none", "--", self, "--train", shared.c_str(), options.steps.c_str(),
                options.interval_millis.c_str(), options.tensors.c_str(), static_cast<char*>(nullptr));
        std::_Exit(127);
    }
    ::close(pair[1]);
    listen(pair[0], times, std::getenv("SHOW") != nullptr);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        std::fprintf(stderr, "judge_latency_bench: %s run has failed\n", options.program.c_str());
        return 1;
    }
    std::vector<std::int64_t> from_commit;
    std::vector<std::int64_t> from_hand_over;
    std::size_t missing = 0;
    for (std::size_t step = kWarm; step < steps; step += 2) {
        const Times& time = times[step];
        if (time.told == 0 || time.committed == 0) {
            ++missing;
            continue;
        }
        from_commit.push_back(time.told - time.committed);
        from_hand_over.push_back(time.told - time.handed_over);
    }
    if (from_commit.empty()) return 1;
    std::printf("%s steps of %s tensors, one every %s ms, rules in %s process%s; %zu findings not told\n",
                options.steps.c_str(), options.tensors.c_str(), options.interval_millis.c_str(),
                options.processes.c_str(), options.processes == "1" ? "" : "es", missing);
    print("committed -> told", std::move(from_commit));
    print("handed over -> told", std::move(from_hand_over));
    std::fflush(stdout);
    return 0;
}

int usage() {
    std::fputs(
        "usage: judge_latency_bench [--program TRAINDBG] [--rule FILE] [--steps N] [--interval "
        "MILLISECONDS]\n"
        "                           [--tensors N] [--processes N] [--directory D]\n",
        stderr);
    return 2;
}

}  // namespace
}  // namespace traindbg

int main(int argc, char** argv) {
    if (argc == 6 && std::string_view(argv[1]) == "--train") return traindbg::train(argv + 2);
    traindbg::Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view argument = argv[i];
        if (i + 1 == argc) return traindbg::usage();
        const char* const value = argv[i + 1];
        if (argument == "--program") options.program = value;
        else if (argument == "--rule") options.rule = value;
        else if (argument == "--steps") options.steps = value;
        else if (argument == "--interval") options.interval_millis = value;
        else if (argument == "--tensors") options.tensors = value;
        else if (argument == "--processes") options.processes = value;
        else if (argument == "--directory") options.directory = value;
        else return traindbg::usage();
    }
    const std::string base =
        options.directory.empty() ? std::filesystem::temp_directory_path().string() : options.directory;
    std::string pattern = base + "/traindbg-latency-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
        std::perror(pattern.c_str());
        return 1;
    }
    options.directory = pattern;
    std::error_code error;
    const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
    const int code = traindbg::measure(options, self.c_str());
    std::filesystem::remove_all(pattern);
    return code;
}
