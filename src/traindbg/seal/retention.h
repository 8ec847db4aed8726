// What of a worker's files is kept: by age and by quota.
//
// Two kinds of things go: blobs (whole tensors) that hold nothing of the steps that are kept, and steps of
// old sealed parts, which are written anew without them. Statistics of steps that are neither TRAIN nor old
// stay, as do all events. What was removed is added up in `<worker>/removed.json`, for reports.
//
// Threads, errors and the right to do so: as for sealing (sealer.h). Cost: a look at each sealed part's end;
// a part that is thinned is read and written whole.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/step.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::seal {

struct RetentionLimits {
    std::uint32_t first_live_part = UINT32_MAX;  // this one and later ones are not touched
    std::uint32_t first_live_blob = UINT32_MAX;
    bool is_dry_run = false;
    // Over its quota, a worker whose retention keeps everything loses its oldest files all the same. Asked
    // for by a user, never by a training: that stops recording instead.
    bool quota_removes = false;
    // Thins a part of which some steps are too young as well. A training waits until none is, so that none is
    // written anew at every turn.
    bool splits_parts = false;
};

struct Removal {
    std::string path;
    std::uint64_t bytes = 0;  // that it frees; of a dry run and a part that would be thinned: an estimate
    std::string why;          // "whole tensors of steps before 4000", "over the quota of 10 GiB", ...
};

struct RetentionReport {
    std::vector<Removal> removals;  // done, or to be done
    std::uint64_t bytes_freed = 0;
    std::uint64_t bytes_left = 0;  // of all of the worker's files
    std::uint64_t steps_removed = 0;
    std::vector<std::string> problems;  // what could not be removed or written anew, and why
};

[[nodiscard]] base::Result<RetentionReport> apply_retention(storage::FileSystem& files,
                                                            const storage::RunLayout& layout,
                                                            model::WorkerId worker,
                                                            const model::Retention& retention,
                                                            const RetentionLimits& limits);

// The same for all workers of a run whose processes are gone; those that live are named and left alone.
struct CollectReport {
    std::vector<Removal> removals;
    std::uint64_t bytes_freed = 0;
    std::uint64_t bytes_left = 0;
    std::uint64_t steps_removed = 0;
    std::vector<model::WorkerId> workers_alive;
    std::vector<std::string> problems;
};
[[nodiscard]] base::Result<CollectReport> collect_run(storage::FileSystem& files, const std::string& run,
                                                      const model::Retention& retention, bool is_dry_run);

}  // namespace traindbg::seal
