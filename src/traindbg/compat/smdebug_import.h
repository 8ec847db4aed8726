// Writes a run of the SageMaker Debugger client down as a run of ours, so that every verb and every reader of
// ours has it: its steps as `SmdebugSource` gives them.
//
// Threads: one. Cost: one pass; memory for one step and the writer's queue.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/compat/smdebug_source.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::compat {

struct SmdebugImport {
    std::string from;           // the directory that was the original's out_dir
    std::string run_directory;  // exists, holds a RUN.json and no workers
    bool with_values = true;    // whole tensors, too
    // Called after every step with the number of steps done and of those there are.
    std::function<void(std::uint64_t done, std::uint64_t all)> progress;
};

struct SmdebugImported {
    std::uint64_t steps = 0;
    std::uint64_t tensors = 0;  // of all workers
    std::uint64_t workers = 0;
    std::int64_t first_wall_nanos = 0;
    std::int64_t last_wall_nanos = 0;
    bool is_complete = false;  // the training had ended
    SmdebugSkips skips;
    std::vector<read::Damage> damage;
};

[[nodiscard]] base::Result<SmdebugImported> import_smdebug(const SmdebugImport& job,
                                                           storage::FileSystem& files);

}  // namespace traindbg::compat
