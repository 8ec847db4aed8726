// Where the values of options come from that are not on the command line: the environment, as
// TRAINDBG_ON_FINDING for --on-finding, and then a settings file (settings/settings.h). The first that has a
// value counts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/options/option_set.h"
#include "traindbg/settings/settings.h"

namespace traindbg::options {

struct SettingsFile {
    std::string path;  // empty: there is none
    settings::Settings settings;
};

// The file at `config`; where that is empty, what TRAINDBG_CONFIG names. "none", or nothing: no file.
// `named_by` is what messages call the one who gave `config`: "--config". kNotFound for a file that is not
// there; kInvalidArgument names what is wrong with it.
[[nodiscard]] base::Result<SettingsFile> named_settings(const std::string& config, std::string_view named_by);
// The same of --config; where nothing is named ./traindbg.toml, else ./pyproject.toml where it has a table
// [tool.traindbg].
[[nodiscard]] base::Result<SettingsFile> find_settings(const std::string& config);

// Gives the options what the command line left open, of the environment and of the file. A key of the file
// that is no option is an error.
[[nodiscard]] base::Status apply_settings(const SettingsFile& file, OptionSet& options);
// The same of the file alone.
[[nodiscard]] base::Status apply_file(const SettingsFile& file, OptionSet& options);

// TRAINDBG_ON_FINDING for "on-finding".
[[nodiscard]] std::string environment_name(std::string_view option);

// The variables of `environment` ("NAME=VALUE") that begin with TRAINDBG_, have a value and are read by
// nothing of the project, in words, each with the nearest name that is. Those that `words` or another
// variable name as env:NAME are somebody's own.
[[nodiscard]] std::vector<std::string> unknown_variables(std::span<const std::string> environment,
                                                         std::span<const std::string> words);

}  // namespace traindbg::options
