// Records of one worker, on their way to disk.
//
// The training hands over a whole step and goes on; a thread of the writer encodes and appends it.
// Between them is a queue that is bounded in bytes. What happens when it is full is a named policy,
// and everything that was dropped is counted and recorded in the run itself.
//
// Failure: after an error of the file system the writer reports it once (base::log), counts all
// further records as dropped and lets the training go on. Nothing here throws or waits without a
// deadline. A child made by `fork` shares no writer: all calls do nothing there.
// Thread-safety: `add_tensor`, `append`, `event` from one thread at a time; the rest from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_record.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::write {

enum class OverflowPolicy : std::uint8_t {
    kBlockFor,            // wait up to `block_for`, then drop whole steps at once until there is room again
    kDropNewest,          // drop the whole step at once
    kKeepReductionsOnly,  // drop its raw tensors at once; wait for the rest as kBlockFor does
};

struct WriterOptions {
    std::string run_directory;
    model::WorkerId worker = 0;  // taken by the writer when free, else the next free one; nine digits
    std::size_t queue_bytes = 64ULL << 20;
    OverflowPolicy overflow = OverflowPolicy::kKeepReductionsOnly;
    std::chrono::milliseconds block_for{50};
    std::chrono::milliseconds sync_interval{1000};  // fdatasync at least this often; 0: never
};

// What has happened to the records so far.
struct WriterCounts {
    std::uint64_t steps_written = 0;
    std::uint64_t bytes_written = 0;
    std::uint64_t steps_dropped = 0;
    std::uint64_t raw_tensors_dropped = 0;
    bool failed = false;  // the file system refused; nothing more is written
    std::string failure;  // why
};

class RunWriter {
  public:
    // Claims a worker directory in an existing run directory and starts the thread.
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
    void append(model::StepRecord&& record) noexcept;

    // Waits until everything handed over so far is in the file. False: not within `patience`.
    [[nodiscard]] bool flush(std::chrono::nanoseconds patience) noexcept;
    // Writes what is queued and the end record, and ends the thread. A thread that does not answer in
    // time is left behind and reported; it is never waited for.
    [[nodiscard]] base::Status close(std::chrono::nanoseconds patience) noexcept;
    // For the child after a fork: forgets the parent's thread and files without touching them.
    void abandon() noexcept;

    [[nodiscard]] WriterCounts counts() const;

  private:
    class Impl;
    explicit RunWriter(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::write
