// From a fault to the lines of the training's own code that it is about.
//
// The training says where in its code its optimizer is made, where backward is called, where a layer comes
// from (`WorkerMeta::sources`). Each kind of fault is about a few of these places.
#pragma once

#include <string_view>
#include <vector>

#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"

namespace traindbg::diagnose {

// Where to look for a fault of that kind, the likeliest place first, at most three lines; `finding` says in
// which layer or tensor it is. Empty where the training told no line that the kind is about.
[[nodiscard]] std::vector<model::SourceLine> source_lines(std::string_view kind,
                                                          const model::Finding& finding,
                                                          const model::WorkerMeta& meta);

}  // namespace traindbg::diagnose
