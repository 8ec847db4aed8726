// The writer's thread: everything that touches files. Private to `write`; used by that thread alone.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/format/records.h"
#include "traindbg/model/step_source.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/blob_file.h"
#include "traindbg/write/frame_file.h"
#include "traindbg/write/seal_thread.h"
#include "traindbg/write/shared.h"

namespace traindbg::write {

class Scribe {
  public:
    // `header` and `log`: of part 0, which holds nothing but its header. `lock`: of the worker's directory,
    // let go when `run` ends (by the sealer, too); null: this file system has none. `sealer`: null, nothing
    // is sealed.
    Scribe(storage::FileSystem& files, const WriterOptions& options, const format::FileHeader& header,
           FrameFile log, std::shared_ptr<storage::FileLock> lock, std::shared_ptr<SealThread> sealer,
           std::shared_ptr<Shared> shared);

    // Until the queue is closed and empty.
    void run() noexcept;

  private:
    using nanoseconds = std::chrono::nanoseconds;

    struct BatchedStep {
        std::size_t end;  // of its frame in `batch_`
        std::uint64_t raw_tensors;
    };
    // What keeps whole tensors, or everything, from being written for a while.
    enum class Shortage : std::uint8_t { kNone, kDisk, kQuota };

    [[nodiscard]] bool work();
    void give_up();
    [[nodiscard]] nanoseconds wait_time() const;
    [[nodiscard]] bool is_dirty() const;
    [[nodiscard]] bool has_failed() const noexcept;
    [[nodiscard]] bool is_paused() const noexcept { return pause_ != Shortage::kNone; }

    void encode(Item item);
    void encode_step(StepItem& item);
    void encode_event(const format::EventRecord& event);
    void encode_pending();
    void encode_schema(base::ByteWriter& out, FrameFile& log, std::vector<model::TensorInfo>& tensors);
    void encode_dropped();
    void encode_end();
    void encode_totals(format::FrameType type, const format::TotalsRecord& totals);
    [[nodiscard]] format::TotalsRecord totals() const;

    void write_raw(StepItem& item);
    [[nodiscard]] base::Status start_blob(const model::StepRecord& first);
    void end_blob();
    void commit();
    void drop_batch(std::uint64_t kept);
    void sync(bool at_once);
    [[nodiscard]] base::Status sync_all();

    [[nodiscard]] bool is_ring() const noexcept { return options_.ring_steps != 0; }
    [[nodiscard]] bool is_part_full() const noexcept;
    void keep_ring();
    void end_ring_part(std::uint32_t part);
    void discard_ring() noexcept;
    void remove_ring_part(std::uint32_t part, std::uint32_t first_blob, std::uint32_t end_blob) noexcept;
    [[nodiscard]] base::Status start_part();
    [[nodiscard]] base::Status replace_part();
    void roll();
    void hand_over_part();
    void on_log_error(const base::Status& status);
    void fail(const base::Status& status) noexcept;
    void on_raw_error(const base::Status& status);
    [[nodiscard]] bool is_gone(const base::Status& status);

    void take_reserve();
    [[nodiscard]] bool give_reserve_back();
    void stop_raw(Shortage why, const std::string& reason);
    void pause(Shortage why, const base::Status& status);
    void look_after_room(bool is_last);
    [[nodiscard]] bool resume();
    [[nodiscard]] std::uint64_t bytes_used() const;
    void update_bytes_written();

    storage::FileSystem& files_;
    const WriterOptions options_;
    const storage::RunLayout layout_;
    const std::string directory_;  // the worker's
    format::FileHeader header_;    // of the part that is being written
    FrameFile log_;
    std::shared_ptr<storage::FileLock> directory_lock_;
    std::uint32_t next_part_;
    bool log_is_open_ = true;     // false: it ended with an error
    bool was_restarted_ = false;  // after an error, once
    std::uint64_t roll_at_bytes_;
    const std::shared_ptr<SealThread> sealer_;
    const std::shared_ptr<Shared> shared_;

    std::optional<BlobFile> blob_;      // made when the first whole tensor comes
    std::vector<BlobFile> full_blobs_;  // not synced yet
    std::uint32_t next_blob_ = 0;
    bool raw_failed_ = false;
    std::unique_ptr<storage::AppendFile> reserve_;
    bool reserve_was_tried_ = false;
    Shortage raw_shortage_ = Shortage::kNone;
    Shortage pause_ = Shortage::kNone;
    bool raw_stop_was_told_ = false;
    bool pause_was_told_ = false;
    bool disk_was_told_ = false;  // that it is full, by either of them
    std::int64_t last_probe_nanos_ = 0;
    std::int64_t last_sync_nanos_ = 0;
    std::uint64_t closed_bytes_ = 0;  // of parts and blobs before these

    model::TensorTable table_;
    std::vector<std::uint64_t> element_counts_;  // of `table_`
    std::optional<model::WorkerMeta> meta_;
    base::ByteWriter payload_;
    base::ByteWriter batch_;
    std::vector<BatchedStep> steps_;  // those in `batch_`
    std::vector<format::RawPlace> places_;
    std::vector<std::shared_ptr<FlushMarker>> markers_;
    format::TotalsRecord told_;  // what the last DROPPED frame said

    // Of a ring.
    struct RingPart {
        std::uint32_t part;
        std::uint32_t first_blob, end_blob;  // of its steps' whole tensors
        std::uint64_t bytes;
    };
    std::optional<RingPart> ring_part_;   // the last one that is full, until another one is
    std::uint64_t part_steps_ = 0;        // in the part under way
    std::uint32_t part_first_blob_ = 0;   // its first
    std::uint64_t part_begin_bytes_ = 0;  // `closed_bytes_` when it began
    std::uint64_t removed_bytes_ = 0;     // of closed files that are gone, or kept for good
    std::uint64_t kept_bytes_ = 0;        // of the latter
    bool keeps_any_ = false;
    bool keeps_part_ = false;  // the part under way
};

}  // namespace traindbg::write
