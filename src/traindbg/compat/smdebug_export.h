// Writes a run of ours in the layout of the SageMaker Debugger client, so that the client opens it
// (docs/format/smdebug.md): statistics as reductions, losses and metrics as numbers, whole tensors as values.
//
// Names, modes, mode steps and workers stay as they are. The step over all modes, which the layout numbers
// its files by, is counted from the modes' own steps. Units and counts of classes have no place there and are
// left out. Element types that the client cannot read back are widened to the next that it can, without loss.
//
// Threads: one. Memory: one step. The end marker is written last: a directory without it is not whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/model/step.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::compat {

struct SmdebugExport {
    std::string to;               // a directory that is not there yet, or empty
    bool with_values = true;      // whole tensors
    bool with_reductions = true;  // statistics
    bool with_scalars = true;     // losses and metrics
    // What is written; empty: everything.
    std::function<bool(const model::TensorInfo&)> selects_tensor;
    std::function<bool(model::WorkerId, model::Mode, model::StepIndex)> selects_step;
    std::function<bool(std::string_view reduction)> selects_reduction;  // "min", "l2", "abs_mean"
    // Called after every step with the number of steps done and of those there are.
    std::function<void(std::uint64_t done, std::uint64_t all)> progress;
};

struct SmdebugExported {
    std::uint64_t workers = 0;
    std::uint64_t steps = 0;    // of all workers
    std::uint64_t records = 0;  // reductions, numbers and values
    std::uint64_t bytes = 0;    // of all files
    std::uint64_t files = 0;
    std::uint64_t widened = 0;   // values that got another element type
    std::uint64_t repeated = 0;  // steps that a worker recorded a second time
    std::uint64_t left_out = 0;  // values without elements, and of unknown types
};

// kAlreadyExists: there is something in `to`.
[[nodiscard]] base::Result<SmdebugExported> export_smdebug(read::Run& run, const SmdebugExport& job,
                                                           storage::FileSystem& files);

}  // namespace traindbg::compat
