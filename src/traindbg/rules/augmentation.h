// Random augmentation that leaves too little of what is to be learned.
//
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>

#include "traindbg/rules/input_values.h"

namespace traindbg::rules {

struct AugmentationLimits {
    double noise = 1.25;        // ratio of the standard deviations that it adds
    double high = 0.6;          // share of the loss of guessing, at which little is learned
    std::uint64_t steps = 100;  // that a training has to learn something

    static constexpr double kMostIsGone = 0.8;  // more zeros than that, of all values

    // The share at which little is learned, where colours are turned one way and another.
    [[nodiscard]] constexpr double high_of_colours() const noexcept { return 2.0 / 3 * high; }
};

// How a training fares whose inputs are other ones each time.
struct AugmentedTraining {
    double share = 1;                  // its loss, of that of guessing
    std::optional<double> ratio = {};  // of the losses (LossRatio)
    bool are_colours_turned = false;
};

// What is random in its inputs is more than what they say.
[[nodiscard]] bool is_augmented_away(const InputValues& input, const AugmentedTraining& training,
                                     const AugmentationLimits& limits);

}  // namespace traindbg::rules
