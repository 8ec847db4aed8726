// Says that a model takes most of its inputs away itself, in training mode alone: what it does to them is not
// seen of the inputs, but of what its first layer with weights is given.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/augmentation.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class MaskedInside {
  public:
    explicit MaskedInside(const AugmentationLimits& limits) : limits_(limits) {}

    // Takes a TRAIN step; false where it tells nothing of this. `ratio`: of the losses (LossRatio).
    bool judge(const model::StepView& step, const Guessing& guessing, const std::optional<double>& ratio,
               FindingSink& sink);

  private:
    [[nodiscard]] bool is_destroyed(const Guessing& guessing, const std::optional<double>& ratio) const;
    void say(const Guessing& guessing, FindingSink& sink);

    static constexpr const char* kKey = "augmentation inside";
    static constexpr std::size_t kFewestLooks = 3;

    AugmentationLimits limits_;
    std::string layer_;
    Recent ours_{16};  // shares of zeros that it is given in training
    double theirs_ = 0;
    Firing firing_;
};

}  // namespace traindbg::rules
