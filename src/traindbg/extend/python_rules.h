// Rules in Python, each in a process of its own: what it says of itself, and a rule that asks it.
//
// A source is described by a process that ends with the description. Each rule that judges has one process,
// shared by the workers whose steps it is shown, from the first such step on. It runs `_rule_host.py` of the
// package. A rule that fails, takes too long or too much memory, or answers what is no answer, is reported as
// not checked; nothing else notices.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/rules/rule.h"

namespace traindbg::extend {

struct PythonHost {
    std::vector<std::string> command;  // the interpreter and the script
    std::uint64_t memory = 1ULL << 30;
    std::chrono::nanoseconds for_step = std::chrono::seconds(5);  // one call of the rule
    std::chrono::nanoseconds to_load = std::chrono::seconds(60);  // imports, which may be large
};

// `source`: PATH.py, PATH.py:CLASS, or the name of an entry point of the group "traindbg.rules". All rules in
// it, or that one. Errors name the source.
[[nodiscard]] base::Result<std::vector<rules::RuleEntry>> load_python_rules(const std::string& source,
                                                                            const PythonHost& host);

}  // namespace traindbg::extend
