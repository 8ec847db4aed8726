// Judging a stored run: what `check` does, and what `show` and `report` fall back to.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/engine/engine.h"
#include "traindbg/model/finding.h"
#include "traindbg/options/rule_options.h"
#include "traindbg/read/worker_gaps.h"
#include "traindbg/rules/rule.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

// What the judge did not see of a run.
struct Unseen {
    std::size_t damaged_places = 0;  // that could not be read
    read::WorkerGaps workers;        // those that are missing or stopped early
};

// Over how many processes the rules are spread, and what those need to know.
struct Spreading {
    std::uint64_t processes = 1;                                  // 1: in this process
    std::chrono::nanoseconds patience = std::chrono::minutes(1);  // with one that says nothing
    options::CustomRuleOptions custom{};                          // where the user's own rules come from
    std::string runs{};                                           // the root of other runs (other_runs.h)
    std::vector<std::string> program{};                           // of the processes; empty: this one

    [[nodiscard]] static Spreading of(const options::RuleOptions& options, const std::string& runs);
};

// All steps that `run` (a directory) has now, through the same reader and engine as a live run. It may be a
// run of the SageMaker Debugger client, too. `on_trouble` is told of processes that were lost.
[[nodiscard]] base::Result<model::Verdict> judge_run(
    const std::string& run, const std::vector<rules::RuleChoice>& choices, storage::FileSystem& files,
    Unseen* unseen = nullptr, const Spreading& spreading = {},
    const std::function<void(const std::string& what)>& on_trouble = {});
// The same by an engine that is there, in this process. `after_step` is called after each step.
[[nodiscard]] base::Status judge_stored(const std::string& run, engine::Engine& engine, bool with_raw,
                                        storage::FileSystem& files, Unseen* unseen,
                                        const std::function<void()>& after_step = {});

// The rules, with their parameters, that a run was judged by while it was recorded; the defaults
// when that is not known. `unknown`: names of those that are not here, such as custom rules.
[[nodiscard]] std::vector<rules::RuleChoice> rules_of_run(const std::string& run, storage::FileSystem& files,
                                                          std::vector<std::string>* unknown = nullptr);

}  // namespace traindbg::cli
