#include "traindbg/options/notify_options.h"

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/options/configuration_file.h"

namespace traindbg::options {

using base::Result;

namespace {

constexpr double kMostSeconds = 86400;

}  // namespace

void NotifyOptions::declare(OptionSet& options) {
    declared_in = &options;
    options.texts(
        {.names = "--notify",
         .placeholder = "TARGET",
         .help = "Tell findings to somebody: command:SH, file:PATH, https://..., slack:URL, "
                 "discord:URL, teams:URL, smtp://USER@HOST?to=ADDRESS&password=env:NAME, sns:ARN, "
                 "sns:+NUMBER, sns:ADDRESS, cloudwatch:NAMESPACE, events:BUS, lambda:FUNCTION; "
                 "prometheus:PORT and prometheus-file:PATH show metrics of the run; env:NAME and @FILE "
                 "say where that stands, as a URL may be secret. Again for another one.",
         .repeatable = true},
        targets, false);
    options.number({.names = "--notify-cooldown",
                    .placeholder = "SECONDS",
                    .help = "At most one notification in so long; what comes between is told with the next "
                            "(default 0).",
                    .completes = Completes::kNothing},
                   cooldown, 0, kMostSeconds);
    options.number({.names = "--notify-timeout",
                    .placeholder = "SECONDS",
                    .help = "How long notifications may take after the training (default 30)."},
                   timeout, 0, kMostSeconds);
    options.flag({.names = "--notify-dry-run",
                  .help = "Tell nobody; actions.jsonl in the run says what would have been told."},
                 dry_run);
    options.text(
        {.names = "--actions-json",
         .placeholder = "FILE",
         .help = "Also act as these actions of SageMaker Debugger say (StopTraining, Email, SMS); the "
                 "JSON itself is taken, too.",
         .completes = Completes::kFile},
        actions_json);
}

Result<std::vector<settings::RequestedAction>> NotifyOptions::actions() const {
    const std::string option = place_of(declared_in, "actions-json");
    if (actions_json.empty()) return std::vector<settings::RequestedAction>();
    if (actions_json.starts_with('{') || actions_json.starts_with('['))
        return settings::parse_actions_json(actions_json, option);
    TRAINDBG_ASSIGN_OR_RETURN(const std::string text, read_configuration(option, actions_json));
    return settings::parse_actions_json(text, "actions " + base::printable(actions_json));
}

std::vector<std::string> NotifyOptions::words() const {
    std::vector<std::string> words;
    if (!actions_json.empty()) words.insert(words.end(), {"--actions-json", actions_json});
    if (targets.empty() && actions_json.empty()) return words;
    for (const std::string& target : targets) words.insert(words.end(), {"--notify", target});
    words.insert(words.end(), {"--notify-cooldown", base::format("{}", cooldown)});
    words.insert(words.end(), {"--notify-timeout", base::format("{}", timeout)});
    if (dry_run) words.emplace_back("--notify-dry-run");
    return words;
}

}  // namespace traindbg::options
