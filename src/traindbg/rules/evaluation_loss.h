// The loss of the evaluations, as rules see it: one number for each of them, the mean over its batches.
//
// Evaluated batches between two training steps are one evaluation. Thread-safety: one thread. Memory does not
// grow with the run.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"

namespace traindbg::rules {

// The loss of every evaluated batch.
[[nodiscard]] model::Requirement evaluation_loss_requirement(std::string_view rule);
// The labels of some of them, by class, for `label_entropy`.
[[nodiscard]] model::Requirement evaluation_classes_requirement(std::string_view rule);

class EvaluationLoss {
  public:
    // Takes a step of any mode. True where a training step ended an evaluation.
    bool observe(const model::StepView& step);
    // The run is over; what was evaluated last counts, too.
    void end();

    [[nodiscard]] std::uint64_t count() const noexcept { return evaluations_; }  // that are over
    [[nodiscard]] double first() const noexcept { return first_; }               // count() > 0
    [[nodiscard]] double before() const noexcept { return before_; }             // the last but one
    [[nodiscard]] double last() const noexcept { return last_; }
    // How many of the last ones were each better than the one before.
    [[nodiscard]] std::uint64_t in_a_row() const noexcept { return in_a_row_; }
    // One number for each, of as many batches as the first one had: what is evaluated once more after the
    // last step of all (a test set, the best model) is not among them. The last ones, `kKept` at most.
    [[nodiscard]] const std::deque<double>& values() const noexcept { return values_; }
    // How many were no better than the best before them, and how many have come since the best.
    [[nodiscard]] std::uint64_t not_better() const noexcept { return not_better_; }
    [[nodiscard]] std::uint64_t since_best() const noexcept { return since_best_; }
    [[nodiscard]] double best() const noexcept { return best_; }
    // The best one when for the first time one was no better; not_better() > 0.
    [[nodiscard]] double best_at_setback() const noexcept { return best_at_setback_; }
    // The function, by which evaluations are told; empty before the first one.
    [[nodiscard]] const std::string& function() const noexcept { return function_; }
    // What guessing gives, of a classification whose labels were counted.
    [[nodiscard]] std::optional<double> label_entropy() const;

  private:
    std::string function_;
    std::vector<double> labels_;  // per class, over the run
    double sum_ = 0, first_ = 0, before_ = 0, last_ = 0;
    static constexpr std::size_t kKept = 64;
    std::deque<double> values_;
    double head_ = 0, best_ = 0, best_at_setback_ = 0;
    std::uint64_t usual_ = 0, not_better_ = 0, since_best_ = 0;  // `usual_`: batches of the first one
    std::uint64_t batches_ = 0, evaluations_ = 0, in_a_row_ = 0;
};

}  // namespace traindbg::rules
