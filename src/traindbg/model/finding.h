// What a rule found, and what became of each rule in a run.
//
// One finding per fault, not one per step and layer: a rule reports again under the same `key` while
// the fault lasts, and the engine keeps one finding with the first step, the last step and the worst
// place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/model/rule_info.h"
#include "traindbg/model/source_line.h"
#include "traindbg/model/step.h"

namespace traindbg::model {

// A number that supports a finding: {"gradient norm", 3.1e7, "expected below", 100}.
struct Evidence {
    std::string name;
    double value = 0;
    std::string relation;  // how to read `reference`: "usual", "limit", "before"; may be empty
    double reference = 0;

    friend bool operator==(const Evidence&, const Evidence&) = default;
};

enum class FindingState : std::uint8_t {
    kPending = 0,   // the rule sees it, and its hold is not over: recorded, never acted upon
    kFiring = 1,    // it counts
    kResolved = 2,  // the rule says that it is over
};
[[nodiscard]] std::string_view to_string(FindingState state) noexcept;
[[nodiscard]] std::optional<FindingState> parse_finding_state(std::string_view word) noexcept;

// In a finding that a rule hands over: "the step that I was just shown".
inline constexpr StepIndex kThisStep = UINT64_MAX;

struct Finding {
    std::string rule;
    std::string key;   // tells this fault from others of the same rule, e.g. a layer group
    std::string kind;  // the kind of fault, e.g. "unshuffled_data"; a rule that tells but one leaves it empty
    Severity severity = Severity::kWarning;
    FindingState state = FindingState::kFiring;
    Mode mode = Mode::kTrain;
    WorkerId worker = 0;
    StepIndex first_step = kThisStep;  // where the fault was first seen
    StepIndex step = 0;                // the step that made it fire
    StepIndex last_step = 0;           // where it was last seen
    std::uint64_t times = 1;           // how often it began to fire; 0: it is pending and never did
    std::string tensor;                // the worst or first place; empty when the fault has no single place
    std::string layer;                 // its module path
    std::uint64_t places = 1;          // how many tensors show it
    std::string message;               // one sentence with the numbers
    std::string fix;                   // what to change, concrete
    std::vector<Evidence> evidence;
    // Tensors (with the statistic's name) that a report should plot: {"gradient/fc1.weight", "l2"}.
    std::vector<std::pair<std::string, std::string>> plots;
    std::vector<SourceLine> sources;  // where in the training's code to look, the likeliest place first

    friend bool operator==(const Finding&, const Finding&) = default;
};

// Whether a rule could judge.
enum class CheckState : std::uint8_t {
    kNotChecked = 0,  // its data was missing: `reason` says which
    kClean = 1,
    kFired = 2,
};
[[nodiscard]] std::string_view to_string(CheckState state) noexcept;
[[nodiscard]] std::optional<CheckState> parse_check_state(std::string_view word) noexcept;

struct RuleOutcome {
    std::string rule;
    CheckState state = CheckState::kNotChecked;
    std::string reason;  // of kNotChecked
    std::uint64_t steps_judged = 0;

    friend bool operator==(const RuleOutcome&, const RuleOutcome&) = default;
};

// What speaks for a cause, or against it.
struct CauseEvidence {
    std::string text;               // a sentence
    std::string rule;               // whose finding or silence it is; empty: a fact about the training
    std::string key;                // the finding's
    std::optional<StepIndex> step;  // since when, where it is a finding

    friend bool operator==(const CauseEvidence&, const CauseEvidence&) = default;
};

// A likely cause, drawn from all findings together.
struct Cause {
    std::string name;                                  // fault kind, e.g. "learning_rate_too_high"
    std::string title;                                 // "Learning rate too high"
    double confidence = 0;                             // 0..1
    std::string explanation;                           // what speaks for it, and what would refute it
    std::string fix;                                   // concrete lines where possible
    std::vector<std::string> rules;                    // the findings that it explains
    std::vector<CauseEvidence> evidence_for = {};      // findings first, the earliest first
    std::vector<CauseEvidence> evidence_against = {};  // likewise
    std::vector<SourceLine> sources = {};              // where in the training's code to change something

    friend bool operator==(const Cause&, const Cause&) = default;
};

// Below, a cause is less likely than not: whoever shows it says that it is not sure, and shows the next one,
// too.
inline constexpr double kSureConfidence = 0.5;
[[nodiscard]] inline bool is_sure(const Cause& cause) noexcept { return cause.confidence >= kSureConfidence; }

// The whole verdict about a run.
struct Verdict {
    std::vector<Finding> findings;      // in the order in which they fired
    std::vector<RuleOutcome> outcomes;  // one per enabled rule
    std::vector<Cause> causes;          // most likely first

    friend bool operator==(const Verdict&, const Verdict&) = default;
};

}  // namespace traindbg::model
