// Where the values of options come from that are not on the command line: the environment, as
// TRAINDBG_ON_FINDING for --on-finding, and then a settings file (settings/settings.h). The first that has a
// value counts.
#pragma once

#include <string>

#include "traindbg/base/status.h"
#include "traindbg/cli/option_set.h"
#include "traindbg/settings/settings.h"

namespace traindbg::cli {

struct SettingsFile {
    std::string path;  // empty: there is none
    settings::Settings settings;
};

// The file at `config`; where that is empty, what TRAINDBG_CONFIG names; else ./traindbg.toml, else
// ./pyproject.toml where it has a table [tool.traindbg]. "none": no file. kNotFound for one that was named
// and is not there; kInvalidArgument names what is wrong in it.
[[nodiscard]] base::Result<SettingsFile> find_settings(const std::string& config);

// Gives the options what the command line left open. A key of the file that is no option is an error.
[[nodiscard]] base::Status apply_settings(const SettingsFile& file, OptionSet& options);

// TRAINDBG_ON_FINDING for "on-finding".
[[nodiscard]] std::string environment_name(std::string_view option);

}  // namespace traindbg::cli
