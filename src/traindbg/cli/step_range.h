// A half-open range of steps as a user writes it: "10:20", "10:", ":20", "7".
#pragma once

#include <cstdint>
#include <string>

#include "traindbg/base/status.h"
#include "traindbg/model/step.h"

namespace traindbg::cli {

struct StepRange {
    model::StepIndex first = 0;
    model::StepIndex end = UINT64_MAX;  // the first step that is not in it
};

// An empty text is every step; a single number that step alone.
[[nodiscard]] base::Result<StepRange> parse_step_range(const std::string& text);

}  // namespace traindbg::cli
