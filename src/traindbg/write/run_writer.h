// Records of one worker, on their way to disk.
//
// The training hands over a whole step and goes on; a thread of the writer encodes and appends it.
// Between them is a queue that is bounded in bytes, and for whole tensors an arena of a fixed size, from
// which they go to the disk as they are. What happens when either is full is a named policy, and
// everything that was dropped is counted and recorded in the run itself.
//
// The log is written in parts. A part that is full is sealed by another thread of low priority: its steps are
// put into a file of columns, and the log is removed. What of older parts is kept says `retention`.
//
// Failure: on a full disk whole tensors stop first, statistics go on from room that was set aside, then steps
// are counted only, until there is room again. After another error of the file system a new part is tried
// once; then the writer reports it (base::log), counts all further records as dropped and lets the training
// go on. Nothing here throws or waits without a deadline. A child made by `fork` shares no writer: all calls
// do nothing there. Thread-safety: `add_tensor`, `append`, `event` from one thread at a time; the rest from
// any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/format/records.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_record.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/write/whole_tensor.h"

namespace traindbg::write {

using model::OverflowPolicy;

// The most channels that a step may have in all its samples; those of `append` that are beyond are left out.
using format::kMostStepChannels;

struct WriterOptions {
    std::string run_directory;
    model::WorkerId worker = 0;  // taken by the writer when free, else the next free one; nine digits
    std::size_t queue_bytes = 64ULL << 20;
    std::size_t arena_bytes =
        0;  // for whole tensors; 0: Arena::default_bytes(). Made when the first one comes
    model::OverflowPolicy overflow = model::OverflowPolicy::kKeepReductionsOnly;
    std::chrono::milliseconds block_for{50};
    std::chrono::milliseconds sync_interval{1000};  // fdatasync at least this often; 0: never
    std::uint64_t part_bytes = 16ULL << 20;         // of the log; then the next part begins
    std::uint64_t blob_bytes = 1ULL << 30;          // the same for whole tensors
    std::uint64_t reserve_bytes = 16ULL << 20;  // set aside for statistics on a disk that gets full; 0: none
    std::chrono::milliseconds probe_interval{5000};  // how often a full disk is asked again
    bool seals_parts = true;                         // false: somebody else does (`traindbg compact`)
    int sealer_nice = 19;  // of the thread that seals: it takes what the training leaves
    model::Retention retention = {};
    // Not 0: a ring. A part ends after so many steps, and only the last one that is full and the one under
    // way are there; nothing is sealed, nor kept when the writer is closed, unless `keep_ring` asks for it.
    // With a `sync_interval` of 0 most of it never leaves the page cache, and outlives the process all the
    // same.
    std::uint64_t ring_steps = 0;
    // Asked once the run's directory is gone, by any of the writer's threads, also after the writer has gone:
    // whether somebody else tells the user. Empty: nobody does.
    std::function<bool()> is_loss_told = {};
};

// What has happened to the records so far.
struct WriterCounts {
    std::uint64_t steps_written = 0;
    std::uint64_t bytes_written = 0;
    std::uint64_t steps_dropped = 0;
    std::uint64_t raw_tensors_dropped = 0;
    std::uint64_t parts_sealed = 0;
    bool is_paused = false;  // the disk is full or the quota used up: steps are only counted, for now
    bool failed = false;     // the file system refused; nothing more is written
    std::string failure;     // why
};

class RunWriter {
  public:
    // Claims a worker directory in an existing run directory and starts the thread. kResourceExhausted also
    // where memory or threads are.
    [[nodiscard]] static base::Result<std::unique_ptr<RunWriter>> open(storage::FileSystem& files,
                                                                       WriterOptions options);
    RunWriter(const RunWriter&) = delete;
    RunWriter& operator=(const RunWriter&) = delete;
    ~RunWriter();  // close(1 s)

    [[nodiscard]] model::WorkerId worker() const noexcept;

    // `info.id` must be the number of tensors added before. Must come before a step that uses it.
    void add_tensor(const model::TensorInfo& info) noexcept;
    void describe(const model::WorkerMeta& meta) noexcept;
    // Something worth knowing that is no measurement; `json` is one JSON object.
    void event(std::string_view kind, std::string_view json) noexcept;
    // Room for one whole tensor of the step under way; nothing when there is none, after waiting as the
    // policy says. The caller counts what it had to leave out and tells `append`.
    [[nodiscard]] std::optional<ArenaBlock> take_room(std::size_t bytes) noexcept;
    // A step with its whole tensors: those in `tensors`, then those in `record.raw`, whose bytes are moved
    // from. `tensors_left_out` got no room: they are counted as dropped, and by any policy but
    // kKeepReductionsOnly the step is dropped with them.
    void append(model::StepRecord&& record, std::vector<WholeTensor>&& tensors = {},
                std::uint64_t tensors_left_out = 0) noexcept;
    // An empty record, with the memory of one that was written, if there is one.
    [[nodiscard]] model::StepRecord recycled() noexcept;

    // Of a ring: what is in it now stays for good, and the next steps begin a new one beside it.
    void keep_ring() noexcept;

    // Waits until everything handed over so far is in the file. False: not within `patience`, or it could not
    // be written.
    [[nodiscard]] bool flush(std::chrono::nanoseconds patience) noexcept;
    // Writes what is queued and the end record, seals the last part if there is time left, and ends the
    // threads. A writer that does not answer in time is left behind and reported; it is never waited for.
    [[nodiscard]] base::Status close(std::chrono::nanoseconds patience) noexcept;
    // For the child after a fork: forgets the parent's thread and files without touching them.
    void abandon() noexcept;

    [[nodiscard]] WriterCounts counts() const;

  private:
    class Impl;
    RunWriter() noexcept;
    static base::Result<std::unique_ptr<RunWriter>> open_or_throw(storage::FileSystem& files,
                                                                  WriterOptions options);

    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::write
