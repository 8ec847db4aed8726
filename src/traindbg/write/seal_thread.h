// The thread that turns finished parts of the log into sealed ones. Private to `write`.
//
// It starts with the first part and has the lowest priority there is unless told otherwise; nobody waits for
// it but `finish`, and that with a deadline. What it cannot seal stays a log, which readers read as well, and
// `traindbg compact` seals later; the first error is said. After each part it removes what the retention does
// not keep.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "traindbg/model/requirement.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/shared.h"

namespace traindbg::write {

class SealThread {
  public:
    // `shared` counts what was sealed. `lock`: of the worker's directory; it is let go once the thread has
    // ended, and shared with the writer's thread, of which nobody knows whether it ends sooner or later.
    // `files` must live as long as the process if a thread is left behind.
    SealThread(storage::FileSystem& files, storage::RunLayout layout, model::WorkerId worker,
               const model::Retention& retention, int nice, std::shared_ptr<Shared> shared,
               std::shared_ptr<storage::FileLock> lock, std::function<bool()> is_loss_told = {});
    SealThread(const SealThread&) = delete;
    SealThread& operator=(const SealThread&) = delete;
    ~SealThread();  // finish(0); in a child made by `fork` nothing

    // `first_blob_kept`: the blob that is being written; it and later ones are not touched. `closed_bytes`:
    // of all files that were finished so far, whatever became of them. By the writer's thread; errors leave
    // the part a log.
    void add(std::uint32_t part, std::uint32_t first_blob_kept, std::uint64_t closed_bytes) noexcept;
    // What was left of the worker's finished files after the last part was sealed, and the `closed_bytes`
    // that came with that part: what was closed since is beside it.
    struct Kept {
        std::uint64_t bytes = 0;
        std::uint64_t closed_bytes = 0;
    };
    [[nodiscard]] Kept kept() const noexcept;
    // No further part comes: waits until those there are sealed. False: not within `patience`; the thread
    // ends with the part that it has in hand.
    bool finish(std::chrono::nanoseconds patience) noexcept;

  private:
    struct State;
    [[nodiscard]] State& state() const noexcept { return **state_; }

    // Shared with the thread, and behind a pointer that can be let go without a touch: in a child.
    std::unique_ptr<std::shared_ptr<State>> state_;
    const std::uint32_t generation_;
};

}  // namespace traindbg::write
