// The keys by which every verb's --json tells of workers that are missing or stopped early.
#pragma once

#include "traindbg/model/json.h"
#include "traindbg/read/worker_gaps.h"

namespace traindbg::cli {

// Sets `missing_workers` (numbers) and `stopped_workers` (`worker`, `last_step` or null,
// `last_step_of_others`, `closed`).
void put_worker_gaps(model::Json& json, const read::WorkerGaps& gaps);

}  // namespace traindbg::cli
