#include "traindbg/options/notify_options.h"

#include "traindbg/base/format.h"

namespace traindbg::options {
namespace {

constexpr double kMostSeconds = 86400;

}  // namespace

void NotifyOptions::declare(OptionSet& options) {
    options.texts(
        {.names = "--notify",
         .placeholder = "TARGET",
         .help = "Tell findings to somebody: command:SH, file:PATH, https://..., slack:URL, "
                 "discord:URL, teams:URL; env:NAME and @FILE say where that stands, as a URL may be "
                 "secret. Again for another one.",
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
}

std::vector<std::string> NotifyOptions::words() const {
    std::vector<std::string> words;
    if (targets.empty()) return words;
    for (const std::string& target : targets) words.insert(words.end(), {"--notify", target});
    words.insert(words.end(), {"--notify-cooldown", base::format("{}", cooldown)});
    words.insert(words.end(), {"--notify-timeout", base::format("{}", timeout)});
    if (dry_run) words.emplace_back("--notify-dry-run");
    return words;
}

}  // namespace traindbg::options
