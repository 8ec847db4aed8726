// Turns the finished log of a part into its sealed form.
//
// The sealed part is put in one piece and synced before the log is removed, so that whoever looks finds one
// of them whole, after a crash of any kind, too; where both are there, they hold the same. A log that is
// damaged in its middle is left as it is: nothing of it is lost then that could be read. What a crash cut off
// at its end is no damage.
//
// Who may seal: who holds the lock of the worker's directory (`lock_worker`). Its writer does as long as it
// records.
// Threads: none of its own; one caller per worker at a time. Errors: values; the log stays. Memory: the
// numbers of one part. Cost: some 0.24 µs of CPU for each tensor of each step (benchmarks/RESULTS.md).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/format/frame_scanner.h"
#include "traindbg/model/step.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::seal {

struct SealedPart {
    std::uint64_t steps = 0;
    std::uint64_t log_bytes = 0;
    std::uint64_t segment_bytes = 0;
    std::uint64_t tail_bytes = 0;  // at the log's end, that belonged to no frame
};

// kDataLoss: the log is damaged; kUnsupported: of a newer format.
[[nodiscard]] base::Result<SealedPart> seal_part(storage::FileSystem& files, const storage::RunLayout& layout,
                                                 model::WorkerId worker, std::uint32_t part);

// The files of one worker, by kind and number, each list sorted.
struct WorkerFiles {
    struct File {
        std::uint32_t number = 0;
        std::uint64_t bytes = 0;
    };
    std::vector<File> logs;
    std::vector<File> segments;
    std::vector<File> blobs;
    std::vector<std::string> leftovers;  // full paths: what a process left that ended while it wrote

    [[nodiscard]] std::uint64_t bytes() const noexcept;
};
[[nodiscard]] base::Result<WorkerFiles> list_worker(storage::FileSystem& files,
                                                    const storage::RunLayout& layout, model::WorkerId worker);
// The workers of a run, sorted.
[[nodiscard]] base::Result<std::vector<model::WorkerId>> list_workers(storage::FileSystem& files,
                                                                      const storage::RunLayout& layout);

// The right to change a worker's directory whose process is gone, for as long as this lives; what was listed
// before is listed again. kUnavailable: that process lives, or somebody else has the right. kNotFound: there
// is nothing in it yet, or (kMustExist) nothing to lock, so that nobody lives. kUnsupported: the file system
// has no locks, so that nobody can tell.
[[nodiscard]] base::Result<std::unique_ptr<storage::FileLock>> lock_worker(
    storage::FileSystem& files, const storage::RunLayout& layout, model::WorkerId worker,
    storage::LockFile file = storage::LockFile::kIsMade);

// Seals all that is left of a run whose processes are gone.
struct CompactReport {
    std::uint64_t parts_sealed = 0;
    std::uint64_t steps = 0;
    std::uint64_t bytes_before = 0;  // of the logs
    std::uint64_t bytes_after = 0;   // of their sealed parts
    std::uint64_t leftovers_removed = 0;
    std::uint64_t logs_removed = 0;  // whose sealed part was there
    std::vector<model::WorkerId> workers_alive;
    std::vector<std::string> problems;          // what was left as it is, and why
    std::vector<std::string> problems_of_room;  // those of them that are of a disk that was full
};
// Calls `progress(parts done, parts in all)` after each part; false: stop here.
[[nodiscard]] base::Result<CompactReport> compact_run(
    storage::FileSystem& files, const std::string& run,
    const std::function<bool(std::uint64_t done, std::uint64_t all)>& progress = {});

}  // namespace traindbg::seal
