// A loss that is a sum over the batch where it is usually a mean (`reduction="sum"`, or squared or absolute
// errors that the loop adds up): gradients, and steps of an optimizer that follows them, are as many times as
// large as there are values in the sum.
//
// Thread-safety: one thread. Cost: linear in the step's numbers.
#pragma once

#include <optional>
#include <string>

#include "traindbg/model/finding.h"
#include "traindbg/model/step_source.h"

namespace traindbg::rules {

class SummedLoss {
  public:
    // Takes a TRAIN step.
    void observe(const model::StepView& step);
    // Of how many values the value that backward() is called on is the sum. Nothing where it is a mean, or
    // where the loop divides it.
    [[nodiscard]] std::optional<double> terms() const;
    // The same where the optimizer's steps grow with the gradient.
    [[nodiscard]] std::optional<double> values() const;
    // Says so in a finding about steps that are too large: in its message, its fix and its evidence.
    void explain(model::Finding& finding) const;
    // Says so in a finding about clipping that leaves `share` of gradients that are too large.
    void explain_clipping(model::Finding& finding, double share) const;

    // The name of the evidence.
    static constexpr const char* kEvidence = "values that the loss is the sum of";

  private:
    double values_ = 0;  // 0: it is no sum, or not known to be one
    std::optional<double> rate_;
    bool follows_ = false;  // plain gradient descent
};

}  // namespace traindbg::rules
