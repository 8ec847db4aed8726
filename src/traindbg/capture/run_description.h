// The files that describe a run, where capture is the first to write into it. Private to `capture`.
#pragma once

#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/json.h"
#include "traindbg/model/requirement.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::capture {

[[nodiscard]] std::string host_name();

// `json` with its checksum, unless there is a file already.
[[nodiscard]] base::Status put_if_missing(storage::FileSystem& files, const std::string& path,
                                          const model::Json& json);

// The run directory with its description and plan, as far as nobody made them before. `command`: of the
// training, redacted.
[[nodiscard]] base::Status prepare_run(storage::FileSystem& files, const storage::RunLayout& layout,
                                       const model::CaptureConfig& config,
                                       const std::vector<std::string>& command);

}  // namespace traindbg::capture
