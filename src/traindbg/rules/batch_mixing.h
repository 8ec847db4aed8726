// Batches that are not mixed: each of few classes, though the data has several.
//
// Thread-safety: one thread. Cost: linear in the number of classes. Memory does not grow with the run.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traindbg/model/statistics.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/answers_given.h"
#include "traindbg/rules/class_tally.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

// Of batches whose classes are counted.
class ClassMixing {
  public:
    // How much of a batch's labels the batch of the step before had, too. `in_batch`: labels.
    void add(const model::ClassCounts& counts, double in_batch, model::StepIndex step);
    // `tally`: with these batches; `tensor`: of the classes.
    void judge(const ClassTally& tally, std::string_view tensor, bool is_game, FindingSink& sink);

    [[nodiscard]] bool is_unmixed(const ClassTally& tally) const;
    [[nodiscard]] bool is_firing() const noexcept { return !firing_.is_empty(); }

  private:
    [[nodiscard]] bool is_slow(const ClassTally& tally) const;

    static constexpr const char* kOrder = "order";
    static constexpr std::size_t kMostPairs = 64, kMostClasses = 1000;
    static constexpr std::size_t kFewestPairs = 10;

    std::vector<double> last_shares_;                   // of the batch before
    std::vector<std::vector<double>> shares_in_a_row_;  // those of batches that came right after another
    double overlap_ = 0;
    model::StepIndex last_step_ = 0;
    Firing firing_;
};

// Of batches of answers to yes or no: the same answer for batch after batch, then the other one. Two losses
// of a step, for what is and what is not, have one answer each, too, but no order.
class AnswerMixing {
  public:
    // `yes`: their share of the labels so far.
    void judge(const AnswerBatch& batch, double yes, model::StepIndex step, bool is_game, FindingSink& sink);

    [[nodiscard]] bool is_firing() const noexcept { return !firing_.is_empty(); }

  private:
    static constexpr const char* kOrder = "order_of_yes_and_no";

    std::uint64_t batches_ = 0, kept_ = 0, switched_ = 0;
    double entropy_ = 0;
    int last_side_ = -1;  // 1: nearly all yes; 0: nearly all no
    model::StepIndex last_step_ = 0;
    Firing firing_;
};

}  // namespace traindbg::rules
