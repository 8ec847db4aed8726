// What the compatible rules share: which tensors a rule inspects, whole tensors as numbers, one finding for
// as long as the condition holds.
//
// Thread-safety: as a rule's. Errors: none; patterns were checked with the parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/pattern.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules::compatible {

// At which steps the original saves what a rule attaches.
inline constexpr std::uint64_t kSaveInterval = 500;
// What a rule says of its source.
inline constexpr std::string_view kSource =
    "Amazon SageMaker Developer Guide, \"List of Debugger built-in rules\", 2023";

// The tensors in one of some collections or with a name in which one of some patterns is found, ours or the
// original's. With neither, all of a training's tensors: not what only we record of it.
class Selection {
  public:
    // What a pattern's default stands for in a run whose modules are called otherwise.
    using Also = bool (*)(const model::TensorInfo& info);

    Selection(std::vector<std::string> collections, const std::vector<std::string>& patterns,
              Also also = nullptr);
    // Of a rule's `collection_names` and `tensor_regex`.
    explicit Selection(const Parameters& parameters);

    // Remembered by id: one worker's tensors only.
    [[nodiscard]] bool includes(const model::StepView& step, model::TensorId tensor);

  private:
    [[nodiscard]] bool look_up(const model::TensorInfo& info, const std::string& root) const;

    std::vector<std::string> collections_;
    std::vector<base::Pattern> patterns_;
    Also also_;
    std::vector<signed char> known_;  // by id: -1 not looked up yet
};

// `collection_names` and `tensor_regex`, as most rules have them.
[[nodiscard]] std::vector<model::ParameterInfo> selection_parameters();
// The losses, which the original saves by default, and built-in collections that `collection_names` names.
[[nodiscard]] std::vector<model::Requirement> selection_requirements(const Parameters& parameters,
                                                                     const std::string& rule,
                                                                     model::What what);

// The values of a whole tensor; nothing for types that have no order (complex numbers).
[[nodiscard]] std::optional<std::vector<double>> values_of(const model::RawTensor& raw);
// Which class each of the values stands for: of rows with several predictions (dimension 1) the largest, else
// the nearest whole number. `rows`: how many there must be; 0: as many as there are values.
[[nodiscard]] std::optional<std::vector<std::int64_t>> classes_of(const model::RawTensor& raw,
                                                                  std::size_t rows);
[[nodiscard]] const model::RawTensor* raw_of(const model::StepRecord& record, model::TensorId tensor);

// Which channel each value of a whole tensor belongs to.
class Channels {
  public:
    // Those of model::channel_dimension.
    Channels(model::Role role, const std::vector<std::int64_t>& shape);
    Channels(std::size_t dimension, const std::vector<std::int64_t>& shape);

    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t of(std::size_t element) const noexcept { return element / stride_ % count_; }

  private:
    std::size_t count_ = 1;
    std::size_t stride_ = 1;
};

// Whether a parameter has its default.
[[nodiscard]] bool is_default(const model::RuleInfo& info, const Parameters& parameters,
                              std::string_view name);

// Numbers as scalars: of losses and metrics, and of tensors with one element.
struct Number {
    model::TensorId tensor = 0;
    double value = 0;
};
[[nodiscard]] std::vector<Number> numbers_of(const model::StepView& step);

// A loss, or one of XGBoost's metrics that is an error ("train-rmse", "validation-logloss"), and not one that
// is to grow ("validation-auc").
[[nodiscard]] bool is_loss(const model::TensorInfo& info);
// In evaluation, or called as a number of validation is: "loss/val_mse", "metric/validation-rmse".
[[nodiscard]] bool is_of_validation(const model::StepView& step, const model::TensorInfo& info);

// Where a condition holds.
struct Place {
    model::TensorId tensor = 0;
    double value = 0;
};

class CompatibleRule : public Rule {
  public:
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return why_not_; }

  protected:
    explicit CompatibleRule(std::string why_not) : why_not_(std::move(why_not)) {}

    // This tensor is judged at this step. Always true.
    bool looked(model::TensorId tensor);
    // The step was judged, and the condition holds nowhere in it. The finding is over once each tensor that
    // it was about was looked at again.
    void pass(FindingSink& sink);
    // Of the first of them.
    [[nodiscard]] model::Finding finding_at(const model::StepView& step, const std::vector<Place>& places);
    // The step was judged, and the condition holds.
    void fire(FindingSink& sink, model::Finding finding);
    void why_not(std::string reason) { why_not_ = std::move(reason); }

  private:
    void forget_looked();

    std::uint64_t judged_ = 0;
    std::string why_not_;
    std::vector<model::TensorId> looked_;  // at this step
    std::set<model::TensorId> firing_;     // that the finding is about
};

}  // namespace traindbg::rules::compatible
