// The user's own rules, loaded for a verb before any rule is named.
#pragma once

#include "traindbg/base/status.h"
#include "traindbg/options/rule_options.h"

namespace traindbg::cli {

// Adds them to the table of all rules. Rules in Python run by TRAINDBG_PYTHON, else the interpreter beside
// this program, else `python3`. Errors name the file.
[[nodiscard]] base::Status load_custom_rules(const options::CustomRuleOptions& options);

}  // namespace traindbg::cli
