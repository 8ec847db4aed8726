// One statistic of a tensor over all workers, step by step: what one process that trains alone would tell.
//
// How it follows from what each worker recorded depends on what the tensor is:
// - A distributed tensor (it has a ShardInfo): the statistics of its parts, merged (`model::merge`). A part
// that
//   several workers hold counts once, so that of a replicated tensor it is the first worker's.
// - A parameter, its gradient, and all else that has no batch: every worker has the same; the first worker's.
// - Inputs, outputs, activations and tensors of the user's: each worker saw its own part of a batch; merged.
// - Losses and metrics: the mean over the workers.
// A step is left out, and told, at which a part or a worker is missing.
//
// Statistics of units and digests cannot be merged: where nothing has to be they are the first worker's, and
// elsewhere an error.
//
// Cost: reads the few columns that are needed of every worker that holds a part. Threads: as `Run`.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/step.h"
#include "traindbg/read/run.h"

namespace traindbg::read {

struct MergedSeries {
    std::vector<model::WorkerId> workers;  // whose records it is made of
    std::vector<SeriesPoint> points;       // by mode, then by step
    std::vector<std::pair<model::Mode, model::StepIndex>> left_out;
};

// kNotFound and kInvalidArgument as `Run::series`; where something is to be merged, kInvalidArgument also for
// tensors whose parts have yet to be reduced ("partial"), for statistics of units, and for the product.
[[nodiscard]] base::Result<MergedSeries> merged_series(Run& run, const std::string& tensor,
                                                       std::string_view statistic);

// The worker whose fingerprints are those of the whole tensor: the first one, where nothing is to be merged.
// kInvalidArgument where something is; kNotFound as `Run::digests`.
[[nodiscard]] base::Result<model::WorkerId> worker_of_whole(Run& run, const std::string& tensor);

}  // namespace traindbg::read
