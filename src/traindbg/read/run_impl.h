// What a Run knows about its files. Private to `read`: run.cc and run_tail.cc share it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traindbg/format/records.h"
#include "traindbg/read/directory_watcher.h"
#include "traindbg/read/part.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::read {

namespace internal {

// A file of whole tensors, opened when one is asked for.
struct Blob {
    std::unique_ptr<storage::ReadFile> file;
    std::uint64_t salt = 0;
};

// A place between two steps of a worker: behind `row` steps of the part with this number.
struct Cursor {
    std::uint32_t part = 0;
    std::uint64_t row = 0;
};

// Which files of a part are there.
struct PartFiles {
    bool log = false;
    bool segment = false;
};

// A part that cannot be read: how many looks in a row failed.
struct UnreadPart {
    std::string file;
    unsigned looks = 0;
};

struct WorkerState {
    std::map<std::uint32_t, std::unique_ptr<Part>> parts;  // by number, as they were recorded
    std::set<std::uint32_t> gone;                          // logs among them of which no file is left
    std::set<std::uint32_t> refused;                       // of a newer format
    std::map<std::uint32_t, UnreadPart> unread;            // by number
    std::map<std::uint32_t, Blob> blobs;
    model::TensorTable tensors;
    std::unordered_map<std::string, model::TensorId> ids;  // of the first `named` tensors
    std::size_t named = 0;
    std::map<std::uint32_t, std::size_t> events_of_logs;  // by part, those that were taken
    std::set<std::uint32_t> blob_numbers;                 // of those that are there
    bool has_removals = false;                            // retention took something
    bool is_ring = false;               // a flight recorder's: parts may be missing wherever they are
    std::uint32_t schema_checksum = 0;  // of the segment whose tensors were read last
    model::WorkerMeta meta;
    std::uint64_t steps_dropped = 0;
    std::uint64_t raw_tensors_dropped = 0;
    std::set<std::uint64_t> steps_with_skips;  // sequences whose unknown samples were counted
    std::set<std::pair<std::uint32_t, std::uint64_t>> damaged_tensors;  // blob and offset, told already
    std::optional<std::uint32_t> at_hand;                               // the part that loaded a step last
    bool has_log = false;                                               // a file header was read
    bool has_ended = false;

    // False: a part that there must be is not in `files`.
    [[nodiscard]] bool is_covered_by(const std::map<std::uint32_t, PartFiles>& files) const;
    // Where the next step is, from `cursor` on; null when there is none yet. A part that cannot be read is
    // waited for until it is given up, and passed then.
    [[nodiscard]] Part* next(Cursor& cursor) const;
    [[nodiscard]] bool is_given_up(std::uint32_t part) const;
    // One cannot be read, and was not given up yet.
    [[nodiscard]] bool is_undecided() const;
    // Steps are mostly gone through in order: `part` is to load one, and what another part kept for that is
    // given back. So a scan of any number of parts has the memory of one.
    [[nodiscard]] Part& turn_to(Part& part);
    void leave();  // there are no more to come
    // The last TRAIN step; nothing: there is none.
    [[nodiscard]] base::Result<std::optional<model::StepIndex>> last_train_step() const;
    [[nodiscard]] std::uint64_t steps() const noexcept;
};

}  // namespace internal

class Run::Impl {
  public:
    using Workers = std::map<model::WorkerId, std::unique_ptr<internal::WorkerState>>;

    [[nodiscard]] static base::Result<std::unique_ptr<Impl>> open(const std::string& path,
                                                                  storage::FileSystem& files);

    [[nodiscard]] base::Result<bool> refresh();
    [[nodiscard]] base::Result<bool> wait(std::chrono::nanoseconds patience);
    [[nodiscard]] std::optional<format::Removals> removals() const;
    // Why the last `refresh` left something out that may be there at the next one.
    [[nodiscard]] const base::Status& passing_trouble() const noexcept { return passing_trouble_; }
    [[nodiscard]] int wake_descriptor() const noexcept { return watcher_ ? watcher_->descriptor() : -1; }
    // Watches every directory that is not watched yet; true when there was one.
    bool watch_all(internal::DirectoryWatcher& watcher) const;
    // Decodes one step. `record` is overwritten; its buffers are used again.
    [[nodiscard]] base::Status load(model::WorkerId id, internal::WorkerState& worker, internal::Part& part,
                                    std::uint64_t row, model::StepRecord& record, bool with_raw);
    // The same, by the part's number; a step that is damaged is told in `damage()` and gives false, a
    // whole tensor that is damaged is told there and left out.
    [[nodiscard]] base::Result<bool> load_if_whole(model::WorkerId id, internal::WorkerState& worker,
                                                   std::uint32_t number, std::uint64_t row,
                                                   model::StepRecord& record, bool with_raw,
                                                   std::vector<format::RawPlace>* places_found = nullptr);
    // The tensor's id; kNotFound names the nearest one.
    [[nodiscard]] base::Result<model::TensorId> find_tensor(model::WorkerId id, const std::string& name);
    [[nodiscard]] base::Result<std::vector<internal::PlacedTensor>> places(model::WorkerId id,
                                                                           const std::string& tensor);
    // The blob, opened; its header was verified.
    [[nodiscard]] base::Result<internal::Blob*> blob(model::WorkerId id, internal::WorkerState& worker,
                                                     std::uint32_t number);
    // Appends the bytes of all of them to `out`, verified.
    [[nodiscard]] base::Status read_raw(model::WorkerId id, internal::WorkerState& worker,
                                        std::span<const format::RawPlace> places, base::ByteBuffer& out);
    [[nodiscard]] base::Status verify();
    [[nodiscard]] const std::vector<Unverified>& unverified() const noexcept { return unverified_; }

    [[nodiscard]] storage::FileSystem& files() const noexcept { return files_; }
    [[nodiscard]] const storage::RunLayout& layout() const noexcept { return layout_; }
    [[nodiscard]] const model::RunMeta& meta() const noexcept { return meta_; }
    [[nodiscard]] const std::vector<Damage>& damage();
    [[nodiscard]] const std::vector<RunEvent>& events() const noexcept { return events_; }
    [[nodiscard]] RunTotals totals() const;
    [[nodiscard]] std::optional<model::RunEnd> end() const;
    [[nodiscard]] WorkerGaps worker_gaps();
    // A follower went past what cannot be read of a part: that stays told, whatever comes later.
    void note_passed(const internal::UnreadPart& part);
    // What cannot be read just now: told in the damage until the next `refresh`.
    void note_unread(const std::string& file, const base::Status& status);
    [[nodiscard]] const Workers& workers() const noexcept { return workers_; }
    [[nodiscard]] internal::WorkerState* find(model::WorkerId id) const {
        const auto it = workers_.find(id);
        return it == workers_.end() ? nullptr : it->second.get();
    }

  private:
    Impl(std::string root, storage::FileSystem& files) : files_(files), layout_{std::move(root)} {}

    [[nodiscard]] base::Result<bool> refresh_worker(model::WorkerId id);
    // The parts by number, and what else its directory tells of the worker.
    [[nodiscard]] base::Result<std::map<std::uint32_t, internal::PartFiles>> list_parts(model::WorkerId id);
    // Reads what was appended to a log; true: there was something.
    [[nodiscard]] base::Result<bool> poll_log(model::WorkerId id, internal::WorkerState& worker,
                                              internal::LogPart& log);
    // Opens the segment and takes what it says of the worker. False: it is damaged beyond use.
    [[nodiscard]] base::Result<bool> open_segment(model::WorkerId id, internal::WorkerState& worker,
                                                  std::uint32_t number, bool log_is_there, bool& is_new);
    [[nodiscard]] static bool is_retired(const internal::WorkerState& worker, std::uint32_t blob);
    // What is wrong with a frame, or nothing.
    [[nodiscard]] base::Status take_frame(model::WorkerId id, internal::WorkerState& worker,
                                          const format::Frame& frame, std::uint32_t part);
    // The file, read around what the disk no longer gives; that is told in the damage.
    [[nodiscard]] base::Result<std::unique_ptr<storage::ReadFile>> open_file(const std::string& path);
    // Takes what is new of one part. Ok also where the next look will find more.
    [[nodiscard]] base::Status refresh_part(model::WorkerId id, internal::WorkerState& worker,
                                            std::uint32_t number, const internal::PartFiles& kinds,
                                            bool& is_new);
    void refuse(internal::WorkerState& worker, std::uint32_t number, const std::string& file,
                const base::Status& status);
    [[nodiscard]] base::Status load_raw(model::WorkerId id, internal::WorkerState& worker,
                                        const format::RawPlace& place, model::StepRecord& record);
    // Reads a JSON file of the run, where it is; notes what is wrong with it.
    [[nodiscard]] base::Status verify_json(const std::string& path);
    // The header of a blob, and all that lies between the whole tensors of which `places` tells.
    [[nodiscard]] base::Status verify_blob(const std::string& path, std::vector<format::RawPlace> places);
    void count_skipped(internal::WorkerState& worker, const model::StepRecord& record, std::uint64_t skipped);

    storage::FileSystem& files_;
    const storage::RunLayout layout_;
    model::RunMeta meta_;
    format::ColumnDecoder decoder_;  // of all sealed parts
    Workers workers_;
    std::vector<RunEvent> events_;
    std::vector<Damage> own_damage_;                        // beside what the parts tell
    std::set<std::pair<std::string, std::uint64_t>> lost_;  // of it: file and block of what no disk gave
    std::vector<Damage> verified_damage_;                   // what only the last `verify` looks at
    std::vector<Unverified> unverified_;
    base::Status passing_trouble_;
    base::Status trouble_;        // what the last refresh could not read
    std::vector<Damage> unread_;  // since the last refresh; the next one tries again
    base::Status refused_;        // the first file of a newer format
    std::vector<Damage> damage_;  // all of it
    std::uint64_t samples_skipped_ = 0;
    std::unique_ptr<internal::DirectoryWatcher> watcher_;  // once somebody waits
};

}  // namespace traindbg::read
