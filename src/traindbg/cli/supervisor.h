// Runs a training as a child and judges it meanwhile. `traindbg run` without its options.
//
// The child has our terminal and our process group. Signals that the terminal sends reach it without
// us; those that a process sends to us are passed on. Whatever happens to the judging, the child goes
// on; if we die, it goes on as well.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/actions/notifier.h"
#include "traindbg/cli/console.h"
#include "traindbg/cli/judging.h"
#include "traindbg/cli/notifying.h"
#include "traindbg/cli/process.h"
#include "traindbg/model/finding.h"
#include "traindbg/rules/rule.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

struct SupervisorOptions {
    std::vector<std::string> command;
    Environment environment;
    std::string run;  // its directory; empty: the training runs unobserved
    std::string run_name;
    std::vector<rules::RuleChoice> choices;
    Spreading spreading{};
    Acting act;                             // what is done about findings
    actions::Notifier* notifier = nullptr;  // outlives the call
    MetricsPublisher* metrics = nullptr;    // likewise
    std::chrono::nanoseconds notify_timeout = std::chrono::seconds(30);
    model::Severity act_at = model::Severity::kWarning;
    // Nothing: a training that comes to no step boundary is asked, and not ended.
    std::optional<std::chrono::nanoseconds> stop_grace;
    bool quiet = false;
    // Called once the training runs, and then about every second: for what goes on beside it.
    std::function<void()> on_started{};
    std::function<void()> on_look{};
};

struct Supervised {
    int spawn_error = 0;  // errno: there never was a child
    int wait_status = 0;
    bool attached = false;         // a model was seen
    bool stopped_by_rule = false;  // it left its loop, or was ended, because a rule asked for it
    bool interrupted = false;      // the terminal sent SIGINT meanwhile
    bool was_judged = false;       // `verdict` is of this training
    std::optional<model::Finding> stop_cause;
    std::uint64_t steps_seen = 0;
    std::int64_t wall_nanos = 0;  // how long the child lived
    model::Verdict verdict;
    std::vector<std::string> troubles;
    bool is_gone = false;       // the run's directory is not there any more; told
    base::Status verdict_kept;  // where the disk had no room for it: not told yet
};

[[nodiscard]] Supervised supervise(const SupervisorOptions& options, Console& console,
                                   storage::FileSystem& files);

}  // namespace traindbg::cli
