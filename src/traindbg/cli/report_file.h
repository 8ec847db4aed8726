// Writes the HTML report of a run to a file, whole or not at all.
#pragma once

#include <string>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

// Errors name `path` or the run.
[[nodiscard]] base::Status write_report(read::Run& run, const model::Verdict& verdict,
                                        const std::string& path, storage::FileSystem& files);

}  // namespace traindbg::cli
