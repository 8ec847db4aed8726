// A run of the SageMaker Debugger client as a run of ours (`compat` reads it).
#pragma once

#include <string>

#include "traindbg/base/status.h"
#include "traindbg/exchange/import_tensorboard.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::exchange {

// Whether `from` is a directory of that layout.
[[nodiscard]] bool is_smdebug(const std::string& from, storage::FileSystem& files);

// As `import_tensorboard`; progress is in steps. kUnsupported for a choice of roles: there, collections say
// what a tensor is.
[[nodiscard]] base::Result<ImportResult> import_smdebug(const ImportRequest& request);

}  // namespace traindbg::exchange
