// What `run` says when the training is over, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/cli/supervisor.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/read/run.h"

namespace traindbg::cli {

struct Summary {
    std::string run_name;
    std::string run;  // its directory
    std::string runs_root;
    std::vector<std::string> command;
    int exit_code = 0;  // ours
    model::RunEnd end;
    const Supervised* supervised = nullptr;
    std::optional<read::RunTotals> totals;
    std::size_t train_steps = 0;  // recorded
    std::size_t evaluation_steps = 0;
    std::uint64_t damaged_places = 0;
    read::WorkerGaps workers;                                // that are missing or stopped early
    std::vector<std::pair<std::string, std::string>> notes;  // label and text: what capture has to tell
    bool is_gone = false;    // the run's directory: there is nothing to look at
    bool cut_off = false;    // a worker never closed its record: its last steps may be missing
    std::string report;      // its path; empty: none
    std::string upload_url;  // where the run was uploaded to; empty: nowhere
    bool upload_is_whole = false;
    std::uint64_t upload_objects = 0;
    std::uint64_t upload_bytes = 0;
};

// "ended with code 1", "killed by signal 9 (Killed)".
[[nodiscard]] std::string how_it_ended(const Supervised& supervised);
// Why no model was seen, as far as the command tells, and what to do.
[[nodiscard]] std::string why_not_attached(const std::vector<std::string>& command, int exit_code);

[[nodiscard]] std::string summary_text(const Summary& summary, bool colour, std::size_t columns = 100);
// One line of JSON.
[[nodiscard]] std::string summary_json(const Summary& summary);

}  // namespace traindbg::cli
