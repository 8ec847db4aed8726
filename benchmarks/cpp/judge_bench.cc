// How fast a stored run is judged: `traindbg check`, from its start to its exit, with all default rules.
//
//   judge_bench [--program TRAINDBG] [--tensors N] [--steps N] [--rounds N] [--processes N]... [--directory
//   D]
//
// A run of 1,000 tensors' statistics at 2,000 steps (healthy_training.h) is recorded by the real writer and
// sealed, as a training leaves it. Then the program checks it, with each number of processes in turn, several
// rounds: wall time (least, median, most), tensor-steps a second of the median, and CPU time of the program
// with its processes. `read` is the same reader alone, in this process: what judging cannot be faster than
// in one.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "healthy_training.h"
#include "traindbg/base/clock.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/run_writer.h"

namespace traindbg {
namespace {

using base::monotonic_nanos;
using namespace std::chrono_literals;

struct Options {
    std::string program = "build/bench/traindbg";
    std::size_t tensors = 1000;
    std::size_t steps = 2000;
    int rounds = 5;
    std::vector<std::string> processes;
    std::string directory;
};

void check(const base::Status& status) {
    if (status.is_ok()) return;
    std::fprintf(stderr, "judge_bench: %s\n", status.message().c_str());
    std::exit(1);
}

void record(const std::string& run, const Options& options) {
    const storage::RunLayout layout{run};
    check(storage::posix_file_system().create_directories(layout.root));
    check(storage::posix_file_system().put_atomic(layout.run_json(), base::as_bytes("{}")));
    const model::TensorTable table = bench::table_of(options.tensors);
    std::vector<model::StepRecord> steps = bench::steps_of(table, options.steps);
    write::WriterOptions writer_options;
    writer_options.run_directory = run;
    writer_options.queue_bytes = std::size_t{4} << 30;  // nothing is dropped
    auto writer = write::RunWriter::open(storage::posix_file_system(), writer_options);
    check(writer.status());
    for (const model::TensorInfo& info : table) (*writer)->add_tensor(info);
    for (model::StepRecord& step : steps) (*writer)->append(std::move(step));
    check((*writer)->close(600s));
    if ((*writer)->counts().steps_dropped != 0) std::fprintf(stderr, "judge_bench: steps were dropped\n");
}

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

struct Cost {
    std::vector<double> wall;  // seconds
    std::vector<double> cpu;
};

void print(const char* what, Cost cost, double tensor_steps) {
    std::sort(cost.wall.begin(), cost.wall.end());
    std::sort(cost.cpu.begin(), cost.cpu.end());
    const double median = cost.wall[cost.wall.size() / 2];
    std::printf("  %-14s %6.2f / %6.2f / %6.2f s, %5.2f million tensor-steps a second; CPU %6.2f s\n", what,
                cost.wall.front(), median, cost.wall.back(), tensor_steps / median * 1e-6,
                cost.cpu[cost.cpu.size() / 2]);
    std::fflush(stdout);
}

void check_once(const Options& options, const std::string& run, const std::string& processes, Cost& cost) {
    rusage before{};
    ::getrusage(RUSAGE_CHILDREN, &before);
    const std::int64_t begin = monotonic_nanos();
    const pid_t child = ::fork();
    if (child == 0) {
        if (std::freopen("/dev/null", "w", stdout) == nullptr) std::_Exit(126);
        ::execl(options.program.c_str(), "traindbg", "check", run.c_str(), "--json", "--processes",
                processes.c_str(), "--fail-on", "never", static_cast<char*>(nullptr));
        std::_Exit(127);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    cost.wall.push_back(static_cast<double>(monotonic_nanos() - begin) * 1e-9);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        std::fprintf(stderr, "judge_bench: %s check has failed\n", options.program.c_str());
        std::exit(1);
    }
    rusage after{};
    ::getrusage(RUSAGE_CHILDREN, &after);
    cost.cpu.push_back(seconds_of(after.ru_utime) + seconds_of(after.ru_stime) - seconds_of(before.ru_utime) -
                       seconds_of(before.ru_stime));
}

double read_all(const std::string& run, Cost& cost) {
    const std::int64_t begin = monotonic_nanos();
    const std::int64_t cpu = base::clock_nanos(CLOCK_PROCESS_CPUTIME_ID);
    auto tail = read::RunTail::open(run);
    check(tail.status());
    (*tail)->finish_when_idle();
    double tensor_steps = 0;
    while (true) {
        const auto step = (*tail)->next(0s);
        check(step.status());
        if (!step->has_value()) break;
        tensor_steps +=
            static_cast<double>((*step)->record->tensors.size() + (*step)->record->scalars.size());
    }
    cost.wall.push_back(static_cast<double>(monotonic_nanos() - begin) * 1e-9);
    cost.cpu.push_back(static_cast<double>(base::clock_nanos(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e-9);
    return tensor_steps;
}

int measure(const Options& options) {
    const std::string run = options.directory + "/run";
    record(run, options);
    Cost reading;
    double tensor_steps = 0;
    std::vector<Cost> checks(options.processes.size());
    for (int round = 0; round < options.rounds; ++round) {  // in turns: what else goes on hits all of them
        tensor_steps = read_all(run, reading);
        for (std::size_t i = 0; i < checks.size(); ++i)
            check_once(options, run, options.processes[i], checks[i]);
    }
    std::printf("%zu tensors, %zu steps, %.2f million tensor-steps, %d rounds\n", options.tensors,
                options.steps, tensor_steps * 1e-6, options.rounds);
    print("read", reading, tensor_steps);
    for (std::size_t i = 0; i < checks.size(); ++i)
        print(base::format("{} process{}", options.processes[i], options.processes[i] == "1" ? "" : "es")
                  .c_str(),
              checks[i], tensor_steps);
    return 0;
}

int usage() {
    std::fputs(
        "usage: judge_bench [--program TRAINDBG] [--tensors N] [--steps N] [--rounds N] [--processes N]...\n"
        "                   [--directory D]\n",
        stderr);
    return 2;
}

}  // namespace
}  // namespace traindbg

int main(int argc, char** argv) {
    traindbg::Options options;
    for (int i = 1; i < argc; i += 2) {
        const std::string_view argument = argv[i];
        if (i + 1 == argc) return traindbg::usage();
        const char* const value = argv[i + 1];
        if (argument == "--program") options.program = value;
        else if (argument == "--tensors") options.tensors = std::strtoul(value, nullptr, 10);
        else if (argument == "--steps") options.steps = std::strtoul(value, nullptr, 10);
        else if (argument == "--rounds") options.rounds = std::atoi(value);
        else if (argument == "--processes") options.processes.emplace_back(value);
        else if (argument == "--directory") options.directory = value;
        else return traindbg::usage();
    }
    if (options.rounds < 1 || options.steps == 0 || options.tensors < 3) return traindbg::usage();
    if (options.processes.empty()) options.processes = {"1", "2"};
    const std::string base =
        options.directory.empty() ? std::filesystem::temp_directory_path().string() : options.directory;
    std::string pattern = base + "/traindbg-judge-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) {
        std::perror(pattern.c_str());
        return 1;
    }
    options.directory = pattern;
    const int code = traindbg::measure(options);
    std::filesystem::remove_all(pattern);
    return code;
}
