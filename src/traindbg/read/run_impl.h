// What a Run knows about its files. Private to `read`: run.cc and run_tail.cc share it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "traindbg/format/records.h"
#include "traindbg/read/log_reader.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::read {

namespace internal {

// Where a step lies. All that is kept in memory of a step.
struct StepEntry {
    std::uint64_t offset = 0;
    model::StepIndex step = 0;
    std::uint64_t sequence = 0;
    std::uint32_t bytes = 0;
    std::uint32_t part = 0;  // index into WorkerState::parts
    model::Mode mode = model::Mode::kTrain;
};

// One numbered pair of files.
struct Part {
    std::uint32_t number = 0;
    std::unique_ptr<LogReader> log;
    bool is_refused = false;  // of a newer format
};

// A file of whole tensors, opened when one is asked for.
struct Blob {
    std::unique_ptr<storage::ReadFile> file;
    std::uint64_t salt = 0;
};

struct WorkerState {
    std::vector<Part> parts;
    std::map<std::uint32_t, Blob> blobs;
    std::vector<StepEntry> steps;  // in recorded order
    model::TensorTable tensors;
    model::WorkerMeta meta;
    std::uint64_t steps_dropped = 0;
    std::uint64_t raw_tensors_dropped = 0;
    std::set<std::uint64_t> steps_with_skips;  // sequences whose unknown samples were counted
    std::set<std::uint64_t> damaged_steps;     // sequences that were told in the run's damage
    bool has_log = false;                      // a file header was read
    bool has_ended = false;
};

}  // namespace internal

class Run::Impl {
  public:
    using Workers = std::map<model::WorkerId, std::unique_ptr<internal::WorkerState>>;

    [[nodiscard]] static base::Result<std::unique_ptr<Impl>> open(const std::string& path,
                                                                  storage::FileSystem& files);

    [[nodiscard]] base::Result<bool> refresh();
    // Decodes one step. `record` is overwritten; its buffers are used again.
    [[nodiscard]] base::Status load(model::WorkerId id, internal::WorkerState& worker,
                                    const internal::StepEntry& entry, model::StepRecord& record,
                                    bool with_raw);
    // The same; a step that is damaged is told in `damage()` and gives false, one whose whole tensors
    // are damaged comes without them.
    [[nodiscard]] base::Result<bool> load_if_whole(model::WorkerId id, internal::WorkerState& worker,
                                                   const internal::StepEntry& entry,
                                                   model::StepRecord& record, bool with_raw);

    [[nodiscard]] storage::FileSystem& files() const noexcept { return files_; }
    [[nodiscard]] const storage::RunLayout& layout() const noexcept { return layout_; }
    [[nodiscard]] const model::RunMeta& meta() const noexcept { return meta_; }
    [[nodiscard]] const std::vector<Damage>& damage() const noexcept { return damage_; }
    [[nodiscard]] const std::vector<RunEvent>& events() const noexcept { return events_; }
    [[nodiscard]] RunTotals totals() const;
    [[nodiscard]] const Workers& workers() const noexcept { return workers_; }
    [[nodiscard]] internal::WorkerState* find(model::WorkerId id) const {
        const auto it = workers_.find(id);
        return it == workers_.end() ? nullptr : it->second.get();
    }

  private:
    Impl(std::string root, storage::FileSystem& files) : files_(files), layout_{std::move(root)} {}

    [[nodiscard]] base::Result<bool> refresh_worker(model::WorkerId id);
    void take_frame(model::WorkerId id, internal::WorkerState& worker, std::uint32_t part,
                    std::uint64_t offset, const format::Frame& frame);
    [[nodiscard]] base::Status load_raw(model::WorkerId id, internal::WorkerState& worker,
                                        const std::vector<format::RawPlace>& places,
                                        model::StepRecord& record);
    void rebuild_damage();

    storage::FileSystem& files_;
    const storage::RunLayout layout_;
    model::RunMeta meta_;
    Workers workers_;
    std::vector<RunEvent> events_;
    std::vector<Damage> own_damage_;  // beside what the files' readers tell
    std::vector<Damage> unread_;      // what the last refresh could not read; the next one tries again
    base::Status refused_;            // the first log of a newer format
    std::vector<Damage> damage_;      // all of it
    RunTotals totals_;
};

}  // namespace traindbg::read
