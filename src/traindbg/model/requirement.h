// What somebody (a rule, the user) needs to have captured, as plain values.
//
// Capture knows requirements, not rules: the union of all of them is the capture plan. Written as
// JSON into a run's `plan.json`:
//   {"collection": "gradients", "mode": "train", "what": ["statistics"],
//    "schedule": {"every": 10, "dense_until": 20}, "for": "vanishing_gradient"}
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/step.h"

namespace traindbg::model {

// At which steps of its mode something is due. Of what is asked for by rules `dense_until`, `start` and `end`
// count from the first step of a training, of which there may be several in a process, one after the other:
// `began` is its number. Intervals have the same steps in all of them.
struct Schedule {
    std::uint64_t every = 1;         // 0: never by interval
    std::uint64_t dense_until = 0;   // and at every step below this one, where trainings go wrong most
    std::uint64_t start = 0;         // never before this step
    std::uint64_t end = UINT64_MAX;  // never at or after it

    [[nodiscard]] bool holds(StepIndex step, StepIndex began = 0) const noexcept {
        return step >= began && step - began >= start && step - began < end;
    }
    [[nodiscard]] bool is_due(StepIndex step, StepIndex began = 0) const noexcept {
        if (!holds(step, began)) return false;
        return step - began < dense_until || (every != 0 && step % every == 0);
    }
    friend bool operator==(const Schedule&, const Schedule&) = default;
};

// What is taken of a tensor. A set of bits.
enum class What : std::uint8_t {
    kNothing = 0,
    kStatistics = 1,  // model::Statistics; of a loss: its value
    kUnits = 2,       // model::UnitStatistics (activations)
    kClasses = 4,     // model::ClassCounts (labels and predictions)
    kRaw = 8,         // the values themselves
    kHistogram = 16,  // model::Histogram
    kChannels = 32,   // model::ChannelStatistics
    kDigest = 64,     // model::Digest
};
[[nodiscard]] constexpr What operator|(What a, What b) noexcept {
    return static_cast<What>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr What& operator|=(What& a, What b) noexcept { return a = a | b; }
[[nodiscard]] constexpr bool has(What set, What bit) noexcept {
    return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(bit)) != 0;
}

struct Requirement {
    std::string collection;  // a built-in collection or one of the user's
    Mode mode = Mode::kTrain;
    What what = What::kStatistics;
    Schedule schedule;
    std::string asked_by;               // rule name, or "user": shown by explanations
    std::vector<StepIndex> steps = {};  // and at these; sorted
    std::uint64_t every_ms = 0;         // and when so long has passed since it was due last; 0: never by time

    // By step; whether it is by time, only a clock can tell.
    [[nodiscard]] bool is_due(StepIndex step, StepIndex began = 0) const noexcept {
        return schedule.is_due(step, began) ||
               (schedule.holds(step, began) && std::binary_search(steps.begin(), steps.end(), step));
    }
    friend bool operator==(const Requirement&, const Requirement&) = default;
};

// A collection of the user's: the tensors whose names match. Regular expressions are searched, not
// matched from the start; `exclude` wins over `include`.
struct CollectionSpec {
    std::string name;
    std::vector<std::string> include;
    std::vector<std::string> exclude;

    friend bool operator==(const CollectionSpec&, const CollectionSpec&) = default;
};

// What becomes of a step that the writer has no room for.
enum class OverflowPolicy : std::uint8_t {
    kBlockFor,            // wait up to `block_for`, then drop whole steps at once until there is room again
    kDropNewest,          // drop the whole step at once
    kKeepReductionsOnly,  // drop its whole tensors at once; wait for the rest as kBlockFor does
};
[[nodiscard]] std::string_view to_string(OverflowPolicy policy) noexcept;  // "block_for", ...
[[nodiscard]] std::optional<OverflowPolicy> parse_overflow_policy(std::string_view word) noexcept;

// What happens at a step that needs what modules return, when the model is compiled (torch.compile).
// Compiled code shows nothing of that, and what it computes differs in the last bits from what the same
// model computes uncompiled.
enum class CompiledModels : std::uint8_t {
    kAuto,   // kEager for what the user asked for, kSkip for what rules need
    kSkip,   // it runs as it would; inputs, outputs and activations are not captured
    kEager,  // that step runs uncompiled
};
[[nodiscard]] std::string_view to_string(CompiledModels choice) noexcept;  // "auto", "skip", "eager"
[[nodiscard]] std::optional<CompiledModels> parse_compiled_models(std::string_view word) noexcept;

// Which forward passes of a step are looked at, where several share one optimizer step (gradient
// accumulation).
enum class MicroBatches : std::uint8_t {
    kFirst,
    kAll,  // of the second one and those after it the tensors' names end with "@2", "@3", ...
};
[[nodiscard]] std::string_view to_string(MicroBatches choice) noexcept;  // "first", "all"
[[nodiscard]] std::optional<MicroBatches> parse_micro_batches(std::string_view word) noexcept;

// The last steps in detail, in a ring beside the run (`<run>/flight`), of which what led to trouble is kept.
struct FlightRecorder {
    std::uint64_t steps = 0;           // at least so many; 0: there is none
    std::vector<std::string> collect;  // collections of which statistics are taken at every step
    std::vector<std::string> raw;      // and those of which whole tensors are

    friend bool operator==(const FlightRecorder&, const FlightRecorder&) = default;
};

// What traindbg may change in a training, because its user asked for it. Nothing by default.
struct Corrections {
    // Steps with gradients that are not finite, or far larger than those before, change no parameter.
    bool skip_bad_steps = false;
    std::uint64_t snapshot_every = 0;  // steps from one copy of the parameters in memory to the next; 0: none
    double lr_factor = 0.5;            // what the learning rate is multiplied with when it is to be lowered
    std::uint64_t most = 10;           // so many corrections in all
    bool dry_run = false;              // say what would be corrected, and correct nothing

    friend bool operator==(const Corrections&, const Corrections&) = default;
};

// What is kept of a worker's steps. A step's age is counted in steps of its mode.
struct Retention {
    std::uint64_t quota_bytes = 10ULL << 30;  // of one worker's files; 0: no limit
    std::uint64_t keep_last = 0;              // so many steps in full; 0: all
    std::uint64_t thin = 0;          // of older ones every so many-th stays; 0: none does. Of keep_last only
    std::uint64_t keep_tensors = 0;  // whole tensors of so many steps; 0: of all

    friend bool operator==(const Retention&, const Retention&) = default;
};

// All that capture has to know: the content of `plan.json`.
struct CaptureConfig {
    std::vector<Requirement> requirements;
    std::vector<CollectionSpec> collections;
    std::uint64_t queue_bytes = 64ULL << 20;  // between training and writer thread
    std::uint64_t arena_bytes = 0;            // the same for whole tensors; 0: by the machine's memory
    OverflowPolicy overflow = OverflowPolicy::kKeepReductionsOnly;
    std::uint64_t block_for_ms = 50;
    std::uint64_t part_bytes = 16ULL << 20;
    Retention retention = {};
    CompiledModels compiled = CompiledModels::kAuto;
    MicroBatches micro_batches = MicroBatches::kFirst;
    // The share of the training's time that capture may take; where it would take more, steps that are due
    // are left out. 0: no limit. Nothing: as `limit_of` in capture/capture_plan.h says.
    std::optional<double> budget = {};
    FlightRecorder flight = {};
    Corrections corrections = {};
    // At a few steps a copy of the model computes the step's batch again, changed in part.
    bool probe = false;

    friend bool operator==(const CaptureConfig&, const CaptureConfig&) = default;
};

}  // namespace traindbg::model
