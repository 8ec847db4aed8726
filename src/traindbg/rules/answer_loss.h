// The loss of answers to yes or no beside that of the best constant answer: how bad it is that the rare
// answer is hardly given.
//
// One that gives it now and then and has a loss below that of its frequency alone may be calibrated: few
// samples are likelier than not. So may any that is judged by the order of its answers. Thread-safety: one
// thread.
#pragma once

#include <string>

#include "traindbg/model/finding.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/robust.h"

namespace traindbg::rules {

class AnswerLoss {
  public:
    // Takes a TRAIN step: whether the training's program names measures of order or probabilities alone.
    void observe(const model::StepView& step);
    // The losses of a TRAIN step.
    void add(const model::StepView& step);
    // How many times a label that is yes counts (pos_weight).
    void set_weight(double weight) noexcept { weight_ = weight; }

    // It makes samples of a rare yes count less still.
    [[nodiscard]] bool is_weight_turned(bool is_yes_rare) const noexcept {
        return is_yes_rare && weight_ < kTurned;
    }
    // A sentence that says so; empty where it is not.
    [[nodiscard]] std::string about_weight(bool is_yes_rare) const;
    // Of the best of constant answers. `yes`: their share of the labels.
    [[nodiscard]] double constant_loss(double yes) const;
    // Sets a finding's severity, and says in its evidence what is known of the loss. `now_and_then`: the rare
    // answer is given to some.
    void weigh(model::Finding& finding, double yes, bool now_and_then) const;

  private:
    static constexpr double kTelling = 0.9;  // of the loss by frequency alone: less tells samples apart
    static constexpr double kTurned = 0.5;

    Recent losses_{64};
    double weight_ = 1;
    bool judges_order_ = false;
};

}  // namespace traindbg::rules
