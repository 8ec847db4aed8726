// Judging a stored run: what `check` does, and what `show` and `report` fall back to.
#pragma once

#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/read/worker_gaps.h"
#include "traindbg/rules/rule.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

// What the judge did not see of a run.
struct Unseen {
    std::size_t damaged_places = 0;  // that could not be read
    read::WorkerGaps workers;        // those that are missing or stopped early
};

// All steps that `run` (a directory) has now, through the same reader and engine as a live run. It may be a
// run of the SageMaker Debugger client, too.
[[nodiscard]] base::Result<model::Verdict> judge_run(const std::string& run,
                                                     const std::vector<rules::RuleChoice>& choices,
                                                     storage::FileSystem& files, Unseen* unseen = nullptr);

// The rules, with their parameters, that a run was judged by while it was recorded; the defaults
// when that is not known. `unknown`: names of those that are not here, such as custom rules.
[[nodiscard]] std::vector<rules::RuleChoice> rules_of_run(const std::string& run, storage::FileSystem& files,
                                                          std::vector<std::string>* unknown = nullptr);

}  // namespace traindbg::cli
