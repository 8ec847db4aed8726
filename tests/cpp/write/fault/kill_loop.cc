// Kills a process that records, again and again, and looks at what is left.
//
//   kill_loop ROUNDS DIRECTORY [SEED]
//
// In each round a child records steps whose content is known, in small parts that are sealed while it goes
// on, and says over a pipe which steps it was told to be in the file. It is killed (SIGKILL) at a random
// moment. Then the run is read with the reader that everybody uses: every step that was acknowledged must be
// there, and every step that is there must be what was recorded. Every fourth run is compacted and read
// again. Exit code 0: so it was.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/read/run.h"
#include "traindbg/seal/sealer.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/write/run_writer.h"

namespace {

using traindbg::model::StepRecord;
using traindbg::testing::sample_step;
using namespace std::chrono_literals;

constexpr std::uint64_t kMostSteps = 200'000;

bool has_tensors(std::uint64_t step) { return step % 9 == 0; }

// The child: records until it is killed.
[[noreturn]] void record(const std::string& run, int acknowledge, std::uint64_t seed) {
    traindbg::storage::FileSystem& files = traindbg::storage::posix_file_system();
    std::mt19937_64 random(seed);
    traindbg::write::WriterOptions options;
    options.run_directory = run;
    options.part_bytes = 5000 + random() % 60'000;
    options.blob_bytes = 20'000 + random() % 100'000;
    options.sync_interval = std::chrono::milliseconds(random() % 3);
    options.arena_bytes = 1 << 20;
    auto writer = traindbg::write::RunWriter::open(files, options);
    if (!writer.is_ok()) ::_exit(3);
    for (const auto& info : traindbg::testing::sample_tensors()) (*writer)->add_tensor(info);
    for (std::uint64_t step = 0; step < kMostSteps; ++step) {
        (*writer)->append(sample_step(step, has_tensors(step)));
        if (random() % 20 != 0) continue;
        if (!(*writer)->flush(60s)) ::_exit(4);
        if (::write(acknowledge, &step, sizeof(step)) != static_cast<ssize_t>(sizeof(step))) ::_exit(5);
    }
    (*writer)->close(60s).ignore();
    ::_exit(0);
}

// The last step that the child acknowledged; nothing: none.
std::optional<std::uint64_t> read_acknowledged(int descriptor) {
    std::optional<std::uint64_t> last;
    std::uint64_t step = 0;
    while (true) {
        const ssize_t count = ::read(descriptor, &step, sizeof(step));
        if (count < 0 && errno == EINTR) continue;
        if (count != static_cast<ssize_t>(sizeof(step))) return last;
        last = step;
    }
}

// False, with a message, when a step is missing, wrong or there twice.
bool check(const std::string& run, std::optional<std::uint64_t> acknowledged, std::uint64_t& found) {
    auto opened = traindbg::read::Run::open(run, traindbg::storage::posix_file_system());
    if (!opened.is_ok()) {
        std::fprintf(stderr, "%s: cannot be opened: %s\n", run.c_str(), opened.status().message().c_str());
        return false;
    }
    std::uint64_t next = 0;
    bool good = true;
    const auto status = (*opened)->for_each_step(
        [&](const traindbg::model::StepView& view) {
            StepRecord expected = sample_step(view.record->step, has_tensors(view.record->step));
            const bool is_acknowledged = acknowledged && view.record->step <= *acknowledged;
            // Of the last moment a step may be there whose tensors were not yet: never wrong ones.
            if (!is_acknowledged && view.record->raw.size() < expected.raw.size())
                expected.raw.resize(view.record->raw.size());
            if (view.record->step != next || !(*view.record == expected)) {
                std::fprintf(stderr, "%s: step %llu where %llu belongs, or with other values\n", run.c_str(),
                             static_cast<unsigned long long>(view.record->step),
                             static_cast<unsigned long long>(next));
                good = false;
            }
            ++next;
            return good;
        },
        true);
    if (!status.is_ok()) {
        std::fprintf(stderr, "%s: %s\n", run.c_str(), status.message().c_str());
        return false;
    }
    if (good && acknowledged && next <= *acknowledged) {
        std::fprintf(stderr, "%s: %llu steps are there, %llu was acknowledged\n", run.c_str(),
                     static_cast<unsigned long long>(next), static_cast<unsigned long long>(*acknowledged));
        return false;
    }
    for (const traindbg::read::Damage& damage : (*opened)->damage()) {
        if (damage.tail) continue;
        std::fprintf(stderr, "%s: damage that a kill cannot make: %s\n", damage.file.c_str(),
                     damage.what.c_str());
        return false;
    }
    found = next;
    return good;
}

struct Totals {
    std::uint64_t steps = 0;
    std::uint64_t acknowledged = 0;
    std::uint64_t sealed = 0;  // parts that were sealed before the kill
};

void count_files(const std::string& run, Totals& totals) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(run + "/w0000", error))
        totals.sealed += entry.path().extension() == ".seg" ? 1 : 0;
}

bool one_round(const std::string& directory, std::uint64_t round, std::mt19937_64& random, Totals& totals) {
    const std::string run = directory + "/run" + std::to_string(round);
    traindbg::storage::FileSystem& files = traindbg::storage::posix_file_system();
    if (!files.create_directories(run).is_ok() ||
        !files.put_atomic(run + "/RUN.json", traindbg::base::as_bytes(traindbg::testing::kSampleRunJson))
             .is_ok()) {
        std::fprintf(stderr, "%s: cannot be made\n", run.c_str());
        return false;
    }
    std::array<int, 2> pipe{};
    if (::pipe(pipe.data()) != 0) return false;
    const std::uint64_t seed = random();
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(pipe[0]);
        record(run, pipe[1], seed);
    }
    ::close(pipe[1]);
    ::usleep(static_cast<useconds_t>(random() % 30'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    const std::optional<std::uint64_t> acknowledged = read_acknowledged(pipe[0]);
    ::close(pipe[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) {
        std::fprintf(stderr, "%s: the child ended by itself with %d\n", run.c_str(), WEXITSTATUS(status));
        return false;
    }
    std::uint64_t found = 0;
    count_files(run, totals);
    if (!check(run, acknowledged, found)) return false;
    totals.steps += found;
    totals.acknowledged += acknowledged ? *acknowledged + 1 : 0;
    if (round % 4 == 0) {
        const auto compacted = traindbg::seal::compact_run(files, run);
        if (!compacted.is_ok() || !compacted->problems.empty() || !compacted->workers_alive.empty()) {
            std::fprintf(stderr, "%s: could not be compacted\n", run.c_str());
            return false;
        }
        std::uint64_t again = 0;
        if (!check(run, acknowledged, again) || again != found) {
            std::fprintf(stderr, "%s: compacting has changed the record\n", run.c_str());
            return false;
        }
    }
    std::error_code error;
    std::filesystem::remove_all(run, error);
    return true;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fputs("usage: kill_loop ROUNDS DIRECTORY [SEED]\n", stderr);
        return 2;
    }
    const std::uint64_t rounds = std::strtoull(argv[1], nullptr, 10);
    const std::string directory = argv[2];
    std::mt19937_64 random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);
    Totals totals;
    for (std::uint64_t round = 0; round < rounds; ++round) {
        if (!one_round(directory, round, random, totals)) {
            std::fprintf(stderr, "round %llu failed; what it left is in %s\n",
                         static_cast<unsigned long long>(round), directory.c_str());
            return 1;
        }
    }
    std::printf(
        "%llu kills: %llu steps found, %llu of them acknowledged, %llu parts sealed before; none lost, none "
        "wrong\n",
        static_cast<unsigned long long>(rounds), static_cast<unsigned long long>(totals.steps),
        static_cast<unsigned long long>(totals.acknowledged), static_cast<unsigned long long>(totals.sealed));
    return 0;
}
