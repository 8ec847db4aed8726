#include "traindbg/options/run_options.h"

namespace traindbg::options {

void RunOptions::declare(OptionSet& options) {
    options.group("Upload", true);
    options.text({.names = "--upload",
                  .placeholder = "URL",
                  .help = "Also upload it while it is recorded: s3://bucket/prefix, or s3://bucket/prefix/ "
                          "to put it under its name there (default: TRAINDBG_UPLOAD).",
                  .of_program = true},
                 upload);
    options.number({.names = "--upload-interval",
                    .placeholder = "SECONDS",
                    .help = "How often what is new is uploaded (default 10).",
                    .of_program = true},
                   upload_interval, 0.1, 86400);
    options.number({.names = "--upload-timeout",
                    .placeholder = "SECONDS",
                    .help = "How long the upload may go on after the training (default 60).",
                    .of_program = true},
                   upload_timeout, 0, 86400);
    options.text({.names = "--endpoint-url",
                  .placeholder = "URL",
                  .help = "Of the upload's server, if it is not AWS (default: AWS_ENDPOINT_URL_S3, "
                          "AWS_ENDPOINT_URL, the profile's endpoint_url).",
                  .of_program = true},
                 endpoint_url);
    options.group("When a rule fires", true);
    options.text({.names = "--on-finding",
                  .placeholder = "ACTION",
                  .help = kOnFindingHelp,
                  .choices = on_finding_words()},
                 on_finding);
    options.flag({.names = "--dry-run", .help = kDryRunHelp}, dry_run);
    corrections.declare(options);
    options.text({.names = "--act-at",
                  .placeholder = "SEVERITY",
                  .help = "The least severity to act on (default warning).",
                  .choices = {"info", "warning", "error"}},
                 act_at);
    options.number(
        {.names = "--stop-grace",
         .placeholder = "SECONDS",
         .help = "How long a stop request may take before SIGTERM, and after another as long "
                 "SIGKILL (default: for ever, as a long step or evaluation is waited for; 30 where "
                 "stop_training_on_fire of StalledTrainingRule asked).",
         .of_program = true},
        stop_grace, 0, 1e6);
    options.text(
        {.names = "--fail-on",
         .placeholder = "SEVERITY",
         .help = "Exit with 1 when the training succeeded but a rule fired at this severity or above, and "
                 "with 2 when nothing could be judged (default never).",
         .choices = fail_on_words(),
         .of_program = true},
        fail_on);
    notify.declare(options);
    rules.declare(options, true);
    capture.declare(options);
    store.declare(options);
}

std::vector<std::string> run_option_names() {
    OptionSet set("run");
    RunOptions options;
    options.declare(set);
    return set.settable();
}

const std::vector<std::string>& on_finding_words() {
    static const std::vector<std::string> words = {"none", "stop", "checkpoint-stop", "lower-lr",
                                                   "roll-back"};
    return words;
}

const std::vector<std::string>& fail_on_words() {
    static const std::vector<std::string> words = {"never", "info", "warning", "error"};
    return words;
}

}  // namespace traindbg::options
