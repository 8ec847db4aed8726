// Rows known again: whether the training's are other ones each time, and which ones are evaluated.
//
// Hooks tell it with an evaluation's batch, or after an evaluation of which no loss was seen. Thread-safety:
// one thread.
#pragma once

#include "traindbg/model/step_source.h"

namespace traindbg::rules {

class KnownRows {
  public:
    // Takes a step of either mode.
    void observe(const model::StepView& step);

    // Of 500 rows of the training hardly any came again: they are augmented, or there are very many of them.
    [[nodiscard]] bool are_others() const noexcept { return are_others_; }
    // Rows of the largest evaluation without a loss, and how many more had the same rows as the first one.
    [[nodiscard]] double evaluated() const noexcept { return evaluated_; }
    [[nodiscard]] double evaluated_again() const noexcept { return evaluated_again_; }
    // Enough of these to say that the same rows are evaluated at intervals.
    [[nodiscard]] bool are_evaluated_again() const noexcept { return evaluated_again_ >= kAgain; }

  private:
    static constexpr double kAgain = 2;
    static constexpr double kFewestLookedAt = 500;

    bool are_others_ = false;
    double evaluated_ = 0, evaluated_again_ = 0;
};

}  // namespace traindbg::rules
