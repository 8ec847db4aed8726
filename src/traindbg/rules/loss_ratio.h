// The loss of the evaluation as a multiple of the training's, of a function that both have.
//
// Thread-safety: one thread. Cost: linear in the step's numbers; memory does not grow with the run.
#pragma once

#include <map>
#include <optional>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/robust.h"

namespace traindbg::rules {

class LossRatio {
  public:
    // Takes a step of either mode.
    void observe(const model::StepView& step);
    // Of the medians of the last ten losses; nothing where it is not known.
    [[nodiscard]] std::optional<double> value() const;

    static constexpr double kWorse = 1.3;  // above it the evaluation's is clearly worse

  private:
    std::map<model::TensorId, Recent> training_, evaluation_;
};

// That it is worse, or not known.
[[nodiscard]] inline bool may_be_worse(const std::optional<double>& ratio) {
    return !ratio || *ratio > LossRatio::kWorse;
}
[[nodiscard]] inline bool is_worse(const std::optional<double>& ratio) {
    return ratio && *ratio > LossRatio::kWorse;
}

}  // namespace traindbg::rules
