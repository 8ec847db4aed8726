// A run directory that somebody removed or moved away while it is written. Private to `write`.
#pragma once

#include <functional>

#include "traindbg/model/step.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::write {

// Whether the worker's directory, or that of the whole run, is not there any more. Then that is said, once in
// this process; of a run not where `is_told` says that somebody else tells it. Any thread but the training's:
// it may wait a tenth of a second for a removal to come to its end.
[[nodiscard]] bool tell_if_gone(storage::FileSystem& files, const storage::RunLayout& layout,
                                model::WorkerId worker, const std::function<bool()>& is_told);

}  // namespace traindbg::write
