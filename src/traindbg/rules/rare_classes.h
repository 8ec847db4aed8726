// Which classes are rare, and which of these a model misses: in training, in evaluations, and to the end.
//
// Thread-safety: pure functions. Cost: linear in the number of classes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "traindbg/model/step.h"
#include "traindbg/rules/class_evaluations.h"
#include "traindbg/rules/class_tally.h"

namespace traindbg::rules {

// Steps from which a training is judged as it goes on, and the fewest of one that is judged at its end.
inline constexpr model::StepIndex kStepsToSettle = 200, kStepsOfShortTraining = 50;
// Looks in a row at which classes are to be missed.
inline constexpr std::uint64_t kLooksToMiss = 3;
// Share of a class that is found: below it the model ignores the class, in training and in evaluations.
inline constexpr double kIgnoredShare = 0.05, kMissedShare = 0.25;

struct Rarity {
    double ratio = 8;                      // labels of the most frequent class for each label of a rare one
    std::span<const double> weights = {};  // of classes in the loss; empty where there are none
    // What is told apart is what comes next in a sequence.
    bool are_next = false;
};

// Many classes, or what comes next in a sequence: chance decides where a rare one comes, as a word that
// opens a sentence, and none of its places is likelier to have it than a frequent one.
[[nodiscard]] bool is_vocabulary(const ClassTally& tally, const Rarity& rarity);
// Whether a class is rare in the loss: by its labels, and what they are weighted with.
[[nodiscard]] bool counts_less(const std::vector<double>& labels, std::size_t rare, std::size_t common,
                               const Rarity& rarity);
// Rare classes of which the model finds next to nothing among the last labels, though it tells classes apart
// or favours one.
[[nodiscard]] std::vector<std::size_t> ignored_classes(const ClassTally& tally, const Rarity& rarity);
// Those that it misses in evaluations: rare classes that are known by heart alone. `are_told`: such classes
// are firing already.
[[nodiscard]] std::vector<std::size_t> missed_in_evaluation(const ClassTally& tally,
                                                            const ClassEvaluations& evaluations,
                                                            const Rarity& rarity, bool are_told);
// Those that it misses among the last labels, no less than before: what is missed of the rows that it is
// trained on is missed of others, too. `before`: shares found some time ago (ClassTally::shares_found).
[[nodiscard]] std::vector<std::size_t> missed_to_the_end(const ClassTally& tally, const Rarity& rarity,
                                                         const std::vector<double>& before);

}  // namespace traindbg::rules
