// Says that the channels of evaluated images come in another order than in training, as with BGR and RGB.
//
// Hooks compare how far the first channel lies above the last one. Thread-safety: one thread.
#pragma once

#include <optional>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/exchanged.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class ChannelOrder {
  public:
    // Takes a step of either mode. Whether it tells of channels.
    bool observe(const model::StepView& step);
    // False where they are not exchanged, or do no harm. `ratio`: of the losses (LossRatio).
    bool judge(const std::optional<double>& ratio, FindingSink& sink);

    // How far the mean of the first channel lies above that of the last one.
    [[nodiscard]] double in_training() const noexcept { return in_training_; }
    [[nodiscard]] double in_evaluation() const noexcept { return in_evaluation_; }
    // In training the first channel is above the last one as often as below, in evaluation it is not.
    [[nodiscard]] bool are_colours_turned() const;

  private:
    static constexpr const char* kKey = "channels";
    static constexpr int kFewestExchanged = 2;  // evaluations in a row
    static constexpr double kTurned = 0.25;     // of how far the channels are apart in evaluation

    double in_training_ = 0, in_evaluation_ = 0;
    Apart apart_;
    int exchanged_in_a_row_ = 0;
    Firing firing_;
};

}  // namespace traindbg::rules
