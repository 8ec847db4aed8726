// Rules in a shared library of the user's, behind the C interface of `traindbg/plugin.h`.
//
// Loaded for the life of the process: nobody knows what a library leaves behind. Its rules run in this
// process, one call at a time; one that crashes takes it along, but never the training.
//
// Errors name the file: kNotFound (there is none), kInvalidArgument (no library, no plugin, a bad
// description), kUnsupported (a plugin of another version of the interface).
#pragma once

#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/rules/rule.h"

namespace traindbg::extend {

[[nodiscard]] base::Result<std::vector<rules::RuleEntry>> load_plugin(const std::string& path);

}  // namespace traindbg::extend
