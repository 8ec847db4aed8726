// A run that looks like a real one, for the report's tests: a small classifier whose loss falls, whose
// gradients vanish in one layer and become NaN near the end, with evaluations, counted classes, and
// names that try to be markup.
#pragma once

#include <string>
#include <vector>

#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_record.h"
#include "traindbg/model/step_source.h"

namespace traindbg::report::testing {

inline constexpr const char* kHostileName = "<img src=x onerror=alert(1)>";
inline constexpr const char* kHostileEnd = "</script><script>alert(2)</script>";

struct SampleRun {
    model::RunMeta meta;
    model::WorkerMeta worker;
    model::RunEnd end;
    model::TensorTable tensors;
    std::vector<model::StepRecord> steps;
    model::Verdict verdict;
};

struct SampleOptions {
    std::size_t steps = 200;
    std::size_t layers = 3;  // beside the hostile one
    bool with_faults = true;
};

[[nodiscard]] SampleRun make_sample_run(const SampleOptions& options = {});

}  // namespace traindbg::report::testing
