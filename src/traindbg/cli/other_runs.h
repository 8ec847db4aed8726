// Other runs, for rules that compare (rules/other_run.h).
#pragma once

#include <string>

namespace traindbg::cli {

// From here on a rule's other run is found as the RUN of a verb is: a directory, ours or one of the SageMaker
// Debugger client, a name under the runs root, `last`, or an s3:// URL. `root`: what --runs says; empty: the
// environment's, or the default.
void open_other_runs_below(const std::string& root);

}  // namespace traindbg::cli
