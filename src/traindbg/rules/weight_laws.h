// By which law weights follow counts: of classes in a loss, or of rows that a sampler draws.
//
// They are to make up for the counts: one divided by these. Weights and counts are of the same classes, in
// their order. Thread-safety: pure functions. Cost: n log n in the number of classes.
#pragma once

#include <vector>

namespace traindbg::rules {

// How near to a law each weight must be: its logarithm, and by how many standard errors of the counts.
struct Nearness {
    double logarithm = 0, errors = 0;
};

// They are the counts, or a power of them such as the root: of all classes by the same law. Two weights
// follow some law always; theirs must be the counts themselves.
[[nodiscard]] bool are_weights_turned(const std::vector<double>& weights, const std::vector<double>& counts,
                                      Nearness near);
// They are one divided by the counts, or by their roots, but of the classes in another order: so they fit
// when both are sorted, and not as they are.
[[nodiscard]] bool are_weights_of_others(const std::vector<double>& weights,
                                         const std::vector<double>& counts);
// Small whole numbers, or such times one factor, are what somebody thought of, not what was counted.
[[nodiscard]] bool are_weights_costs(const std::vector<double>& weights);
// By how much the weight of each class is off from one divided by its count, or that to the power of `law`,
// as a logarithm and but for a factor that all have.
[[nodiscard]] std::vector<double> off_from_law(const std::vector<double>& weights,
                                               const std::vector<double>& counts, double law);

}  // namespace traindbg::rules
