// When a finding fired, as far as its place among others goes: engines that are shown the same steps give the
// same moments, whichever of the rules each of them has.
#pragma once

#include <compare>
#include <cstdint>

#include "traindbg/model/step.h"

namespace traindbg::engine {

// What the rules were asked when it fired. In the order in which it happens after one step; numbers are told
// from process to process.
enum class Phase : std::uint8_t {
    kStep = 0,
    kTime = 1,       // no new step came
    kEnd = 2,        // the last word
    kTimeAtEnd = 3,  // the time at which a stored run ended
};

// Smaller is earlier.
struct Moment {
    std::uint64_t steps = 0;  // that had been shown, this one included
    Phase phase = Phase::kStep;
    model::WorkerId worker = 0;  // whose rules were asked; the finding may be about another
    std::uint64_t rule = 0;      // its place in the choice

    friend auto operator<=>(const Moment&, const Moment&) = default;
};

}  // namespace traindbg::engine
