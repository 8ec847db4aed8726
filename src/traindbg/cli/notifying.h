// From the options to who is told of findings.
#pragma once

#include <memory>
#include <string>

#include "traindbg/actions/notifier.h"
#include "traindbg/base/status.h"
#include "traindbg/options/notify_options.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

// kInvalidArgument: a target that cannot be one. Asks nobody: whether a server is there shows later.
[[nodiscard]] base::Status check_targets(const options::NotifyOptions& options);
// Nothing where nobody is to be told. `run`: its directory, on this machine.
[[nodiscard]] base::Result<std::unique_ptr<actions::Notifier>> open_notifier(
    const options::NotifyOptions& options, const std::string& run, storage::FileSystem& files);

}  // namespace traindbg::cli
