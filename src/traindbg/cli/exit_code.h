// What the program's exit code says. docs/cli.md repeats it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"

namespace traindbg::cli {

enum ExitCode : int {
    kExitClean = 0,           // judged, and nothing at or above --fail-on
    kExitFired = 1,           // a rule fired at or above --fail-on
    kExitUsage = 2,           // wrong use, or nothing could be judged
    kExitInternal = 3,        // a defect of ours, or output that could not be written
    kExitStoppedByRule = 90,  // `run`: a rule ended the training
    kExitNotExecutable = 126,
    kExitNotFound = 127,
    kExitSignal = 128,  // + the signal's number
};

// The least severity that makes a finding count; nothing: none does ("never").
using FailOn = std::optional<model::Severity>;

// Of one of options::fail_on_words().
[[nodiscard]] base::Result<FailOn> parse_fail_on(std::string_view word);
[[nodiscard]] bool has_finding_at(const model::Verdict& verdict, FailOn fail_on) noexcept;
// No rule had anything to judge (a verdict without rules has judged nothing either).
[[nodiscard]] bool nothing_was_checked(const model::Verdict& verdict) noexcept;

// Of `check`: fired, clean, or could not judge.
[[nodiscard]] int exit_code_of_check(const model::Verdict& verdict, FailOn fail_on) noexcept;

// How the training ended, as far as its exit code is concerned.
struct TrainingEnd {
    int code = 0;  // as a shell reports it: 128+n after signal n
    bool stopped_by_rule = false;
};
// Of `run`: the script's own code, but 90 when a rule stopped it, and 1 when it succeeded although a
// rule fired at or above --fail-on, or 2 when --fail-on was given and nothing could be judged.
[[nodiscard]] int exit_code_of_run(const TrainingEnd& end, const model::Verdict& verdict,
                                   FailOn fail_on) noexcept;
// For a status of waitpid: the code, or 128+n.
[[nodiscard]] int exit_code_of_wait_status(int wait_status) noexcept;
// Of `execvp`'s errno: 127 when there is no such command, else 126.
[[nodiscard]] int exit_code_of_exec_error(int error) noexcept;
// Of an error that ends a verb.
[[nodiscard]] int exit_code_of(const base::Status& status) noexcept;

}  // namespace traindbg::cli
