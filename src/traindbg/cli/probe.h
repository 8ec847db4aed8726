// A training that is run for a few steps, to see its tensors: `traindbg explain-plan`.
//
// The child has our terminal and process group, and its standard output goes to our standard error. It is
// asked to stop as `traindbg run` asks, so that its `finally` blocks run; who does not stop in time gets
// SIGTERM and then SIGKILL.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/cli/process.h"
#include "traindbg/model/requirement.h"

namespace traindbg::cli {

// Steps that a probe looks at. At the last one the loop is not looked at, so that what that takes can be told
// from what tensors take.
inline constexpr std::uint64_t kProbedSteps = 4;

// The plan by which a probe sees at its first steps all that `config` would capture at any: each requirement
// at every step. Whole tensors are left out; their size is known without.
[[nodiscard]] model::CaptureConfig probing_plan(const model::CaptureConfig& config);

struct ProbeOptions {
    std::vector<std::string> command;
    Environment environment;
    std::string run;                     // its directory, ready for a training
    std::uint64_t steps = kProbedSteps;  // it is asked to stop after so many
    std::chrono::nanoseconds within{};   // for the first of them, and each that follows
    std::chrono::nanoseconds grace = std::chrono::seconds(30);  // to stop, once it was asked
};
struct Probed {
    int spawn_error = 0;  // errno: there never was a child
    int wait_status = 0;
    std::uint64_t steps = 0;    // that it ended
    bool was_asked = false;     // to stop: it did not end by itself
    bool was_too_slow = false;  // no step within the time
    bool was_interrupted = false;
};
[[nodiscard]] base::Result<Probed> run_probe(const ProbeOptions& options);

}  // namespace traindbg::cli
