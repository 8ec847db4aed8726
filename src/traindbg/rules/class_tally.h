// How often each class was a label, was predicted and was found: over the run, and among the last labels.
//
// Thread-safety: one thread. Cost: linear in the number of classes.
#pragma once

#include <cstdint>
#include <vector>

#include "traindbg/model/statistics.h"

namespace traindbg::rules {

class ClassTally {
  public:
    // `in_batch`: labels of the batch.
    void add(const model::ClassCounts& counts, double in_batch);

    // Over the run, per class and of all.
    [[nodiscard]] const std::vector<double>& labels() const noexcept { return labels_; }
    [[nodiscard]] double total() const noexcept { return total_; }
    // Of about the last `kWindow` labels: how many there are, were predicted and were found of each class.
    [[nodiscard]] const std::vector<double>& recent() const noexcept { return recent_; }
    [[nodiscard]] const std::vector<double>& predicted() const noexcept { return predicted_; }
    [[nodiscard]] const std::vector<double>& hits() const noexcept { return hits_; }

    // How many classes have had a label.
    [[nodiscard]] std::size_t seen() const;
    // Of the labels of the run.
    [[nodiscard]] double entropy() const;
    // Batches that have labels enough to tell how mixed they are, and the mean entropy of these.
    [[nodiscard]] std::uint64_t batches() const noexcept { return batches_; }
    [[nodiscard]] double entropy_of_batch() const { return batch_entropy_ / static_cast<double>(batches_); }
    // Of each class, the share of its recent samples that the model finds; 0 where there are none.
    [[nodiscard]] std::vector<double> shares_found() const;
    // Of recent predictions with labels, from 0, as often as by chance with these shares, to 1: Cohen's
    // kappa. Source: Cohen, "A coefficient of agreement for nominal scales", 1960.
    [[nodiscard]] double agreement() const;

    static constexpr double kWindow = 2000;      // labels
    static constexpr double kLabelsOfBatch = 8;  // fewest that tell how mixed it is

  private:
    std::vector<double> labels_, recent_, predicted_, hits_;
    double total_ = 0, batch_entropy_ = 0;
    std::uint64_t batches_ = 0;
};

// The first class that has the most labels; some class has one.
[[nodiscard]] std::size_t most_frequent(const std::vector<double>& labels);

}  // namespace traindbg::rules
