// Says that what is evaluated was standardised by its own mean and spread, not by those of the training.
//
// Thread-safety: one thread.
#pragma once

#include <optional>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class OwnStatistics {
  public:
    // Takes a step of either mode. Whether it tells of such columns.
    bool observe(const model::StepView& step);
    // False where no evaluation has such columns. `ratio`: of the losses (LossRatio).
    bool judge(const std::optional<double>& ratio, FindingSink& sink);

  private:
    struct Columns {
        double standardised = 0, of = 0, values = 0;
        model::StepIndex step = 0;
    };

    static constexpr const char* kKey = "own statistics";
    static constexpr double kFewest = 2;       // columns: a single one of grey images is often made so
    static constexpr double kMostKnown = 0.1;  // rows of the training

    Columns columns_;
    bool is_training_evaluated_ = false;  // the training's own rows
    Firing firing_;
};

}  // namespace traindbg::rules
