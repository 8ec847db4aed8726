// From the options to who is told of findings, what is done about them, and where metrics are shown.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "traindbg/actions/exposition.h"
#include "traindbg/actions/notifier.h"
#include "traindbg/base/status.h"
#include "traindbg/cli/console.h"
#include "traindbg/options/notify_options.h"
#include "traindbg/options/rule_options.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

// An action that a document of SageMaker Debugger asks for, and of which rule. Empty: any.
struct RuleAction {
    std::string rule;
    settings::RequestedAction action;
    bool is_parameter = false;  // a parameter of the rule asks for it: stop_training_on_fire
};
// Those of --actions-json and --rules-json.
[[nodiscard]] base::Result<std::vector<RuleAction>> requested_actions(const options::NotifyOptions& notify,
                                                                      const options::RuleOptions& rules);
// The stop that StalledTrainingRule asks for where it is chosen so.
[[nodiscard]] std::vector<RuleAction> actions_of_parameters(const std::vector<rules::RuleChoice>& choices);

// What is done about findings: a word of actions::make_action, and the rules it is done for.
struct Acting {
    std::string action = "none";
    std::set<std::string> rules = {};     // empty: all
    std::vector<std::string> notes = {};  // on what was asked for and is not done in this run
    // Rules that say that no step comes any more: a training that they stop is ended where it does not leave.
    std::set<std::string> stalls = {};
    bool dry_run = false;  // of --dry-run
};
// `on_finding`: of --on-finding. An action with a prefix is for runs whose name, or TRAINING_JOB_NAME where
// that is set, begins with it.
[[nodiscard]] Acting what_to_do(const std::string& on_finding, const std::vector<RuleAction>& requested,
                                const std::string& run_name, const std::string& job_name);

// kInvalidArgument: a target that cannot be one. Asks nobody: whether a server is there shows later.
[[nodiscard]] base::Status check_targets(const options::NotifyOptions& options,
                                         const std::vector<RuleAction>& requested);
// Whether anybody is told, beside those who look at metrics.
[[nodiscard]] bool tells_somebody(const options::NotifyOptions& options,
                                  const std::vector<RuleAction>& requested);
// Nothing where nobody is to be told. `run`: its directory, on this machine. `past`: whom its journal names
// as told before. `dry_run`: of --dry-run.
[[nodiscard]] base::Result<std::unique_ptr<actions::Notifier>> open_notifier(
    const options::NotifyOptions& options, const std::vector<RuleAction>& requested, const std::string& run,
    storage::FileSystem& files, bool dry_run, actions::PastActions past = {});

// Metrics of a run, kept up to date wherever they are shown.
class MetricsPublisher {
  public:
    // Nothing where none are asked for. What cannot be opened is a trouble.
    [[nodiscard]] static std::unique_ptr<MetricsPublisher> open(const options::NotifyOptions& options,
                                                                const std::string& run,
                                                                storage::FileSystem& files);
    // Nanoseconds until they should be published anew.
    [[nodiscard]] std::int64_t due_in() const noexcept;
    // With its run, host and time filled in here.
    void publish(actions::Metrics metrics);
    // "http://127.0.0.1:9464/metrics"
    [[nodiscard]] std::vector<std::string> places() const;
    [[nodiscard]] std::vector<std::string> take_troubles();

  private:
    std::vector<std::unique_ptr<actions::Exposition>> expositions_;
    std::vector<std::string> troubles_;
    std::set<std::string> told_;  // troubles, each once
    std::string run_;
    std::string host_;
    std::int64_t next_nanos_ = 0;
};

// The same, with what is to be said about it said.
[[nodiscard]] std::unique_ptr<MetricsPublisher> open_metrics(const options::NotifyOptions& options,
                                                             const std::string& run,
                                                             storage::FileSystem& files, Console& console);

}  // namespace traindbg::cli
