// Who is told of findings: the options of `run` and `watch`. What a target may be: actions/channel.h.
#pragma once

#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/options/option_set.h"
#include "traindbg/settings/actions_json.h"

namespace traindbg::options {

struct NotifyOptions {
    std::vector<std::string> targets;  // --notify TARGET, again for each
    double cooldown = 0;               // --notify-cooldown SECONDS
    double timeout = 30;               // --notify-timeout SECONDS
    bool dry_run = false;              // --notify-dry-run
    std::string actions_json;          // --actions-json actions.json
    const OptionSet* declared_in = nullptr;

    void declare(OptionSet& options);
    // What --actions-json asks for, whichever rule fires.
    [[nodiscard]] base::Result<std::vector<settings::RequestedAction>> actions() const;
    // The options as they would stand on a command line: nothing where nobody is told.
    [[nodiscard]] std::vector<std::string> words() const;
};

}  // namespace traindbg::options
