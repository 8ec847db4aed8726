// From findings to causes.
//
// Findings are symptoms; several share one cause, and one cause shows in several. A small table of
// hypotheses weighs the findings, their order in time and the training's own settings (optimizer,
// learning rate), and names the likeliest cause first. A cause that another one explains is not
// reported again.
#pragma once

#include <span>
#include <vector>

#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"

namespace traindbg::diagnose {

// Most likely first; empty when there is no finding above info, or none that is understood.
[[nodiscard]] std::vector<model::Cause> likely_causes(std::span<const model::Finding> findings,
                                                      const model::WorkerMeta& meta);

}  // namespace traindbg::diagnose
