#include "traindbg/cli/exit_code.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

#include "traindbg/base/text.h"
#include "traindbg/options/run_options.h"

namespace traindbg::cli {

base::Result<FailOn> parse_fail_on(std::string_view word) {
    if (word == "never") return FailOn();
    if (const auto severity = model::parse_severity(word)) return FailOn(severity);
    return base::Status(base::Code::kInvalidArgument, "--fail-on: '" + base::printable(word) +
                                                          "' is not a severity" +
                                                          base::did_you_mean(word, options::fail_on_words()) +
                                                          "; give never, info, warning or error");
}

bool has_finding_at(const model::Verdict& verdict, FailOn fail_on) noexcept {
    return fail_on && std::any_of(verdict.findings.begin(), verdict.findings.end(), [&](const auto& finding) {
               return finding.times > 0 && finding.severity >= *fail_on;  // 0: it is pending
           });
}

bool nothing_was_checked(const model::Verdict& verdict) noexcept {
    return std::all_of(verdict.outcomes.begin(), verdict.outcomes.end(),
                       [](const auto& outcome) { return outcome.state == model::CheckState::kNotChecked; });
}

int exit_code_of_check(const model::Verdict& verdict, FailOn fail_on) noexcept {
    if (has_finding_at(verdict, fail_on)) return kExitFired;
    return nothing_was_checked(verdict) ? kExitUsage : kExitClean;
}

int exit_code_of_run(const TrainingEnd& end, const model::Verdict& verdict, FailOn fail_on) noexcept {
    if (end.stopped_by_rule) return kExitStoppedByRule;
    if (end.code != 0 || !fail_on) return end.code;
    if (has_finding_at(verdict, fail_on)) return kExitFired;
    return nothing_was_checked(verdict) ? kExitUsage : kExitClean;
}

int exit_code_of_wait_status(int wait_status) noexcept {
    if (WIFEXITED(wait_status)) return WEXITSTATUS(wait_status);
    if (WIFSIGNALED(wait_status)) return kExitSignal + WTERMSIG(wait_status);
    return kExitInternal;
}

int exit_code_of_exec_error(int error) noexcept {
    return error == ENOENT || error == ENOTDIR ? kExitNotFound : kExitNotExecutable;
}

int exit_code_of(const base::Status& status) noexcept {
    if (status.is_ok()) return kExitClean;
    return status.code() == base::Code::kInternal ? kExitInternal : kExitUsage;
}

}  // namespace traindbg::cli
