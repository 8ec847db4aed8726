// Which run is meant: a path, a name under the runs root, or `last`.
//
// The runs root is TRAINDBG_RUNS, or ./traindbg-runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/options/option_set.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

// The argument RUN, as `resolve_run` understands it, and the option --runs, as `runs_root` does: the
// same for every verb that has them. `value` must outlive the parsing.
void declare_run(options::OptionSet& options, std::string& value);
void declare_runs(options::OptionSet& options, std::string& value);

// `option` (--runs) when it is not empty, else the environment's, else the default.
[[nodiscard]] std::string runs_root(const std::string& option);

// The names of the runs (directories that hold a RUN.json) in `root`, sorted; empty when it is not
// there.
[[nodiscard]] std::vector<std::string> run_names(const std::string& root, storage::FileSystem& files);

// The directory of the run that `argument` means. kNotFound names what was tried and the nearest run.
[[nodiscard]] base::Result<std::string> resolve_run(const std::string& argument, const std::string& root,
                                                    storage::FileSystem& files);

// A name for a new run, from the time and the script: "20261120-213045-train". Local time, as the
// person who looks for it remembers it.
[[nodiscard]] std::string new_run_name(const std::vector<std::string>& command, std::int64_t wall_nanos);

// `path` made absolute against the working directory.
[[nodiscard]] std::string absolute_path(const std::string& path);
[[nodiscard]] std::string base_name(std::string_view path);

// `word` as a shell takes it: quoted where it has to be.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace traindbg::cli
