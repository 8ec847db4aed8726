// All options that may stand in a settings file. `traindbg run` has them on its command line, and what
// another verb or `traindbg.watch` cannot follow of them is told from what is no option.
#pragma once

#include <string>
#include <vector>

#include "traindbg/options/correction_options.h"
#include "traindbg/options/notify_options.h"
#include "traindbg/options/option_set.h"
#include "traindbg/options/rule_options.h"
#include "traindbg/options/store_options.h"

namespace traindbg::options {

struct RunOptions {
    std::string upload;           // --upload s3://bucket/prefix
    double upload_interval = 10;  // --upload-interval SECONDS
    double upload_timeout = 60;   // --upload-timeout SECONDS
    std::string endpoint_url;     // --endpoint-url URL
    std::string on_finding;       // --on-finding stop
    bool dry_run = false;         // --dry-run
    CorrectionOptions corrections;
    std::string act_at;             // --act-at error
    double stop_grace = -1;         // --stop-grace SECONDS; less than 0: for ever
    std::string fail_on = "never";  // --fail-on error
    NotifyOptions notify;
    RuleOptions rules;
    CaptureOptions capture;
    StoreOptions store;

    void declare(OptionSet& options);
};

// The names of all of them.
[[nodiscard]] std::vector<std::string> run_option_names();

// What --on-finding may say, and its help.
[[nodiscard]] const std::vector<std::string>& on_finding_words();
inline constexpr const char* kOnFindingHelp =
    "What to do: none (default); stop the training at its next step boundary; checkpoint-stop, the same "
    "with a checkpoint written into the run before; lower-lr, multiply its learning rate; roll-back, "
    "do that and go back to parameters of before the fault. The last two act only on faults that they help "
    "against.";

// Of --dry-run.
inline constexpr const char* kDryRunHelp =
    "Do nothing about findings and tell nobody: say, and write into the run's actions.jsonl, what would have "
    "been done.";

// What --fail-on may say: "never" and the severities.
[[nodiscard]] const std::vector<std::string>& fail_on_words();

}  // namespace traindbg::options
