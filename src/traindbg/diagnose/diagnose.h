// From findings to causes.
//
// Findings are symptoms; several share one cause, and one cause shows in several. A small table of
// hypotheses weighs the findings, their order in time and the training's own settings (optimizers, learning
// rates, modules, loaders), and names the likeliest cause first, with what speaks for it and what against
// (evidence.h). A cause that another one explains is not reported again.
#pragma once

#include <span>
#include <vector>

#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"

namespace traindbg::diagnose {

// Most likely first; empty when there is no finding above info, or none that is understood. Of `outcomes`,
// the rules that were checked and are clean speak against causes that they would see. Where the first is less
// likely than not (`model::kSureConfidence`), the next likeliest is among them whatever it explains.
[[nodiscard]] std::vector<model::Cause> likely_causes(std::span<const model::Finding> findings,
                                                      std::span<const model::RuleOutcome> outcomes,
                                                      const model::WorkerMeta& meta);

}  // namespace traindbg::diagnose
