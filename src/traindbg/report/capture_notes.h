// What a run has to tell about its own capture, beside the numbers: what a budget left out, what a flight
// recorder kept, what could not be captured and what failed; what traindbg changed in the training, and what
// it computed for it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "traindbg/model/json.h"
#include "traindbg/read/run.h"

namespace traindbg::report {

// Label and text of each line, for people; `run_words` is how the run is named on a command line.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> capture_notes(const read::Run& run,
                                                                             const std::string& run_words);
// The same as "budget", "flight", "corrections", "evaluation_losses", "not_captured", "tensors_skipped",
// "failures" (of traindbg itself) and "parts_off"; null, or empty, where there is nothing.
void put_capture_notes(model::Json& json, const read::Run& run);
// Why nothing of a tensor may be there; empty: the run says nothing of it. Not safe to print as it is.
[[nodiscard]] std::string why_not_captured(const read::Run& run, const std::string& tensor);

}  // namespace traindbg::report
