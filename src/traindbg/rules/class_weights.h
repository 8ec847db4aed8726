// Weights of classes in the loss that are the wrong way round, or those of other classes: beside the labels
// that the loss was given.
//
// Thread-safety: one thread. Cost: n log n in the number of classes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/class_tally.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class ClassWeights {
  public:
    // Takes a TRAIN step whose classes were counted. `tensor`: their name; `tally`: with those of the step.
    void judge(const model::StepView& step, std::string_view tensor, const ClassTally& tally,
               FindingSink& sink);
    // Takes a TRAIN step of a training whose classes are not counted otherwise, where each pixel or position
    // has a label. False where it tells of none.
    bool judge_places(const model::StepView& step, FindingSink& sink);

    // What each class counts in the loss; empty where that is not told.
    [[nodiscard]] const std::vector<double>& of_classes() const noexcept { return weights_; }
    [[nodiscard]] bool is_firing() const noexcept { return !firing_.is_empty(); }

  private:
    void say_turned(const std::vector<double>& weights, const std::vector<double>& labels,
                    std::string_view tensor, FindingSink& sink);
    void say_of_others(const std::vector<double>& labels, std::string_view tensor, FindingSink& sink);

    static constexpr const char* kTurned = "weights";
    static constexpr const char* kOfOthers = "weights_of_others";
    static constexpr std::uint64_t kFewestBatches = 3;
    static constexpr double kFewestLabels = 100, kFewestLabelsOfTwo = 500;
    static constexpr double kFewestLabelsOfOthers = 1000, kFewestLabelsOfPlaces = 500;
    static constexpr double kNear = 0.1, kErrors = 1.5;
    // Of labels that come in patches: what is counted of a few dozen tells no more than one.
    static constexpr double kErrorsOfPlaces = 8;

    std::vector<double> weights_;
    std::vector<double> labels_of_places_, weights_of_places_;
    std::uint64_t steps_of_places_ = 0;
    Firing firing_;
};

}  // namespace traindbg::rules
