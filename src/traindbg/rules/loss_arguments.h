// What loss functions were given, as rules see it: predictions, labels, what made the predictions, and how
// good the loss is beside that of a model that knows no input.
//
// The names are those of torch.nn.functional. Where a function is called several times in a step, its first
// call is looked at; of several micro-batches the first.
//
// Thread-safety: one thread. Cost: under a microsecond for each tensor of a step; memory does not grow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {

// Predictions and labels of the first steps and of some later ones, as all rules about them ask for them.
[[nodiscard]] std::vector<model::Requirement> argument_requirements(std::string_view rule);
// And what the model's modules and activation functions returned at the same steps.
[[nodiscard]] std::vector<model::Requirement> maker_requirements(std::string_view rule);
// How the labels of the first few steps are distributed.
[[nodiscard]] model::Requirement label_histogram_requirement(std::string_view rule);

// One call of a loss function. Borrowed from the step.
struct LossCall {
    std::string_view function;                           // "mse_loss"
    const model::TensorInfo* prediction = nullptr;       // never null
    const model::Statistics* predicted = nullptr;        // never null; has elements, all of them finite
    const model::TensorInfo* label = nullptr;            // null where there is none
    const model::Statistics* labelled = nullptr;         // the same
    const model::Histogram* label_bins = nullptr;        // null where it was not taken
    const model::ChannelStatistics* channels = nullptr;  // of the prediction; null where not taken
};
[[nodiscard]] std::vector<LossCall> loss_calls(const model::StepView& step);

// mse_loss, l1_loss, smooth_l1_loss, huber_loss: each value is compared with one target.
[[nodiscard]] bool is_regression(std::string_view function) noexcept;
// "mse_loss" of "loss/mse_loss"; empty for any other name.
[[nodiscard]] std::string_view function_of_loss(std::string_view tensor_name) noexcept;

// The function that a prediction went through last.
enum class Squash : std::uint8_t { kNone = 0, kSigmoid, kTanh, kRelu, kSoftplus, kExp };
[[nodiscard]] std::string_view to_string(Squash squash) noexcept;
// What the values can be.
struct Range {
    double low = 0, high = 0;
};
[[nodiscard]] Range range_of(Squash squash) noexcept;

// Which tensor of the step's forward pass a prediction is, or was made of by one more function: told by their
// number and their extremes, which these functions keep in order. So a sigmoid is seen also where the loop
// calls it, after the model has returned.
struct Maker {
    const model::TensorInfo* tensor = nullptr;  // null: none was found
    Squash squash = Squash::kNone;
};
[[nodiscard]] Maker maker_of(const model::StepView& step, const LossCall& call);

// How far the loss of a function is below that of a model that answers the same to every input.
class Guessing {
  public:
    // Takes the loss of a TRAIN step and the labels, where they were captured.
    void observe(const model::StepView& step);

    // The loss now, as a share of what the best constant answer gives: 1 is nothing learned, above 1 is worse
    // than that, 0 is perfect. Nothing where it is not known: another kind of loss, no labels yet, fewer than
    // ten losses.
    [[nodiscard]] std::optional<double> share() const;
    // The same of a classification whose labels are not counted, at least: as if its classes were equally
    // many.
    [[nodiscard]] std::optional<double> least_share() const;
    // The loss of the best constant answer.
    [[nodiscard]] std::optional<double> constant_loss() const;
    // The regression's or binary function's own loss: median of the last ten.
    [[nodiscard]] double level() const;
    // Of that function; empty for a classification.
    [[nodiscard]] const std::string& function() const noexcept { return function_; }
    // All labels looked at.
    [[nodiscard]] const model::Statistics& labels() const noexcept { return labels_; }
    [[nodiscard]] const TrainingLoss& loss() const noexcept { return loss_; }
    // The training does what it should: a share below 60 %, or, where that is not known, a loss below 60 % of
    // its start, and, of a classification, below 80 % of that of equal chances.
    [[nodiscard]] bool learns_well() const;

  private:
    TrainingLoss loss_;
    std::string function_;
    double bend_ = 1;  // beta of smooth_l1_loss, delta of huber_loss
    model::Statistics labels_;
    Recent values_{64};
    std::uint64_t count_ = 0;
    std::int64_t classes_ = 0;  // of a classification
    bool is_root_ = false;      // the function is written out in the loop, and is the whole loss
};

}  // namespace traindbg::rules
