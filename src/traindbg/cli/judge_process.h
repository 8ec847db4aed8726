// The other end of `SpreadJudge`: a process that judges a run by some of the rules and says what it finds.
// Not for people: `traindbg --judge RUN`, with a task on standard input (judge_protocol.h).
//
// It follows the run through the same reader, follower and engine as a judge that does it all by itself. It
// ends when its judge does, and never before it has said why.
#pragma once

#include <string>

#include "traindbg/cli/console.h"

namespace traindbg::cli {

// Gives the exit code.
[[nodiscard]] int serve_judging(const std::string& run, Console& console);

}  // namespace traindbg::cli
