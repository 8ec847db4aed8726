// What somebody (a rule, the user) needs to have captured, as plain values.
//
// Capture knows requirements, not rules: the union of all of them is the capture plan. Written as
// JSON into a run's `plan.json`:
//   {"collection": "gradients", "mode": "train", "what": ["statistics"],
//    "schedule": {"every": 10, "dense_until": 20}, "for": "vanishing_gradient"}
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traindbg/model/step.h"

namespace traindbg::model {

// At which steps of its mode something is due.
struct Schedule {
    std::uint64_t every = 1;         // 0: never by interval
    std::uint64_t dense_until = 0;   // and at every step below this one, where trainings go wrong most
    std::uint64_t start = 0;         // never before this step
    std::uint64_t end = UINT64_MAX;  // never at or after it

    [[nodiscard]] bool is_due(StepIndex step) const noexcept {
        if (step < start || step >= end) return false;
        return step < dense_until || (every != 0 && step % every == 0);
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
    std::string asked_by;  // rule name, or "user": shown by explanations

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

// All that capture has to know: the content of `plan.json`.
struct CaptureConfig {
    std::vector<Requirement> requirements;
    std::vector<CollectionSpec> collections;
    std::uint64_t queue_bytes = 64ULL << 20;  // between training and writer thread

    friend bool operator==(const CaptureConfig&, const CaptureConfig&) = default;
};

}  // namespace traindbg::model
