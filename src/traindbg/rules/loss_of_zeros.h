// What the loss of a model that says 0 is, or of one that guesses: what the first loss of a training is
// beside.
//
// Thread-safety: one thread. Cost: linear in the numbers of a step; a few words of memory.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {

class LossOfZeros {
  public:
    // Takes a TRAIN step: the first one, and others, whose targets may be larger.
    void observe(const model::StepView& step);
    // Of the loss that backward() is called on, at most: the entropy of the labels; of a squared error, the
    // labels' mean square, the largest of the steps that were taken; of other distances the root of that, of
    // huber_loss half of the square where that is more; of a binary cross-entropy, ln 2. Nothing where it is
    // not known: another loss, a sum of several, one that is summed over the batch, a second training.
    [[nodiscard]] std::optional<double> of(const TrainingLoss& loss) const;

  private:
    void observe_first(const model::StepView& step);

    struct Function {
        double loss = 0;      // the first one
        double of_zeros = 0;  // 0: not known
    };
    std::map<std::string, Function, std::less<>> functions_;
    bool is_summed_ = false;  // over the batch: in other units
};

}  // namespace traindbg::rules
