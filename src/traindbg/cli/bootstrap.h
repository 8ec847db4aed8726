// Where the directory lies that is put in front of PYTHONPATH so that a training attaches by itself.
#pragma once

#include <string>

#include "traindbg/base/status.h"

namespace traindbg::cli {

// This program's file and its directory, symbolic links resolved; empty when the system does not say.
[[nodiscard]] std::string executable();
[[nodiscard]] std::string executable_directory();

// The directory that holds `sitecustomize.py`: TRAINDBG_BOOTSTRAP, else beside the program at
// `executable_directory`, as it is installed or in a source tree. kNotFound names what was tried.
[[nodiscard]] base::Result<std::string> find_bootstrap(const std::string& executable_directory);

// `directory` in front of what PYTHONPATH is now.
[[nodiscard]] std::string python_path_with(const std::string& directory, const char* python_path);

}  // namespace traindbg::cli
