#include "traindbg/rules/augmentation.h"

#include <algorithm>

namespace traindbg::rules {
namespace {

// Times as wide as without the noise: of what varies a sixteenth is left.
constexpr double kDrowned = 4;
constexpr double kClearlyBelow = 0.85;  // loss of the evaluation, of that of the training
constexpr double kManyZeros = 0.2;      // more than in evaluation, of all values

}  // namespace

bool is_augmented_away(const InputValues& input, const AugmentedTraining& training,
                       const AugmentationLimits& limits) {
    const model::Statistics &ours = input.training.all, &theirs = input.evaluation.all;
    const double high = training.are_colours_turned ? limits.high_of_colours() : limits.high;
    if (training.share < high || !(theirs.std > 0)) return false;
    const double more_zeros = share_of_zeros(ours) - share_of_zeros(theirs);
    const bool is_most_gone = more_zeros >= AugmentationLimits::kMostIsGone;
    // What is learned of them serves the evaluation; where next to nothing is left of them, it is slow.
    const bool serves =
        training.ratio && (*training.ratio < kClearlyBelow || *training.ratio * training.share < high);
    // Samples that come without this input leave the others as they are.
    if ((serves || input.come_some_without()) && !is_most_gone) return false;
    if (training.are_colours_turned) return true;
    if (input.evaluation.batches < 2 && !is_most_gone && ours.std < kDrowned * theirs.std) return false;
    const bool is_wider =
        ours.std > limits.noise * theirs.std && ours.std - theirs.std > 6 * input.noise_of_stds();
    return is_wider || (more_zeros > kManyZeros && more_zeros > 6 * deviation_of(input.zeros.values()));
}

}  // namespace traindbg::rules
