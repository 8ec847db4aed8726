// What one pass over a tensor tells about it.
//
// All the moments are over the *finite* elements alone; how many were not finite is counted beside.
// So one NaN does not hide what the other million values do, and a reader that wants NumPy's answer
// (NaN as soon as one is there) can still give it.
#pragma once

#include <cstdint>
#include <vector>

namespace traindbg::model {

struct Statistics {
    std::uint64_t count = 0;  // elements in all
    std::uint64_t nan = 0;
    std::uint64_t positive_infinite = 0;
    std::uint64_t negative_infinite = 0;
    std::uint64_t zero = 0;
    // Over the finite elements; all 0 when there is none.
    double min = 0;
    double max = 0;
    double mean = 0;
    double std = 0;  // population: divided by n, as numpy.std does
    double l1 = 0;   // sum of |x|
    double l2 = 0;   // square root of the sum of x²

    [[nodiscard]] std::uint64_t infinite() const noexcept { return positive_infinite + negative_infinite; }
    [[nodiscard]] std::uint64_t not_finite() const noexcept { return nan + infinite(); }
    [[nodiscard]] std::uint64_t finite() const noexcept { return count - not_finite(); }

    friend bool operator==(const Statistics&, const Statistics&) = default;
};

// Adds the elements of `from`, which are others than those of `into`: afterwards it holds what one pass over
// all of them would have told. Exact for counts, min and max; the others in float64, without the cancellation
// of sums of squares. Of statistics that come from a run, whose moments are float32, the result is within
// 2^-23 of l1 and l2, and mean and std within 2^-22 of the largest |mean| + std of a part.
void merge(Statistics& into, const Statistics& from) noexcept;

// What an activation's units do, where a rule asked for it. A unit is a channel: an index of
// dimension 1 (of the last dimension where the tensor has three, as in a transformer; of dimension 0
// where it has one). `low` and `high` count elements at the flat ends of the function:
// tanh: < -0.97, > 0.97; sigmoid: < 0.03, > 0.97; ReLU: none.
struct UnitStatistics {
    std::uint32_t units = 0;           // 0: not taken
    std::uint32_t inactive_units = 0;  // not one element > 0 in this batch (ReLU only)
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    friend bool operator==(const UnitStatistics&, const UnitStatistics&) = default;
};

// How often each class was the label, the prediction (largest logit), and both: index = class.
// The three vectors have one length.
struct ClassCounts {
    std::vector<std::uint32_t> labels;
    std::vector<std::uint32_t> predictions;
    std::vector<std::uint32_t> hits;

    friend bool operator==(const ClassCounts&, const ClassCounts&) = default;
};

}  // namespace traindbg::model
