// Who is told of findings: the options of `run` and `watch`. What a target may be: actions/channel.h.
#pragma once

#include <string>
#include <vector>

#include "traindbg/options/option_set.h"

namespace traindbg::options {

struct NotifyOptions {
    std::vector<std::string> targets;  // --notify TARGET, again for each
    double cooldown = 0;               // --notify-cooldown SECONDS
    double timeout = 30;               // --notify-timeout SECONDS
    bool dry_run = false;              // --notify-dry-run

    void declare(OptionSet& options);
    // The options as they would stand on a command line: nothing where nobody is told.
    [[nodiscard]] std::vector<std::string> words() const;
};

}  // namespace traindbg::options
