// Overfit: validation losses far above those of training.

#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleOverfit = {
    .name = "Overfit",
    .title = "Overfit",
    .summary = "The validation loss is far above the training loss.",
    .when =
        "After each evaluation from step `start_step` on, the mean of its losses is compared with the mean "
        "of the training losses since the evaluation before: it fires when (validation - training) / "
        "training is more than `ratio_threshold` at `patience` evaluations in a row. The losses are those "
        "whose names match `tensor_regex`, or the collection of that name.",
    .why = "The model learns its training data by heart rather than what they have in common.",
    .fix = "Stop at the best evaluation; more data, augmentation, dropout, weight decay or a smaller model.",
    .healthy =
        "It knows none: in a healthy training, too, validation is often more than a tenth above training. "
        "Ours is `overfit`, which waits until the validation loss rises.",
    .cost = "The losses at every 500th step of each mode.",
    .original = "Overfit",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"tensor_regex",
                    "",
                    {},
                    0,
                    0,
                    "regular expressions of names of losses",
                    model::ParameterType::kPatterns},
                   {"start_step", "steps", 0, 0, 1e15, "step from which it compares",
                    model::ParameterType::kWhole},
                   {"patience", "evaluations", 1, 1, 1e9, "evaluations in a row that must exceed the ratio",
                    model::ParameterType::kWhole},
                   {"ratio_threshold", "ratio", 0.1, 0, 1e300, "how far above training validation may be"}},
    .readings =
        "The original does not say over what the means are: taken are the losses of one evaluation and those "
        "since the one before. What is called `val_...`, `validation-...`, `eval_...` or `test_...` and the "
        "like is of validation in whatever mode it stands (XGBoost, Keras). Of XGBoost's metrics those "
        "are losses that are errors (rmse, logloss, error and the like), and not those that are to grow "
        "(auc, "
        "map, ndcg). With a mean training loss of 0 or less "
        "nothing is judged.",
};

class Mean {
  public:
    void add(double value) {
        sum_ += value;
        ++count_;
    }
    [[nodiscard]] bool empty() const { return count_ == 0; }
    [[nodiscard]] double value() const { return sum_ / static_cast<double>(count_); }

  private:
    double sum_ = 0;
    std::uint64_t count_ = 0;
};

class Overfit final : public CompatibleRule {
  public:
    explicit Overfit(const Parameters& parameters)
        : CompatibleRule("no loss of training and of validation was recorded"),
          selection_({}, parameters.texts("tensor_regex"),
                     parameters.has("tensor_regex") ? nullptr
                                                    : +[](const model::TensorInfo& info) {
                                                          return info.role == model::Role::kLoss ||
                                                                 info.role == model::Role::kMetric;
                                                      }),
          by_pattern_(parameters.has("tensor_regex")),
          start_(static_cast<std::uint64_t>(parameters.at("start_step"))),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))),
          ratio_(parameters.at("ratio_threshold")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        // The losses of training of this step, where it has any, end the evaluation before it.
        std::vector<double> training, validation;
        std::string tensor;
        for (const Number& number : numbers_of(step)) {
            if (!selection_.includes(step, number.tensor)) continue;
            const model::TensorInfo& info = step.info(number.tensor);
            if (!by_pattern_ && !is_loss(info)) continue;
            if (is_of_validation(step, info)) {
                validation.push_back(number.value);
                tensor = info.name;
            } else {
                training.push_back(number.value);
            }
        }
        if (!training.empty() && !validation_.empty()) judge(sink, step.mode() == model::Mode::kTrain);
        if (step.mode() != model::Mode::kEval) step_ = step.step();
        for (const double value : training) training_.add(value);
        for (const double value : validation) validation_.add(value);
        if (!tensor.empty()) tensor_ = tensor;
        // Both in one step: that is the evaluation.
        if (!training.empty() && !validation.empty()) judge(sink, false);
    }

    void on_end(FindingSink& sink) override {
        if (!validation_.empty()) judge(sink, false);
    }

  private:
    void judge(FindingSink& sink, bool is_later) {
        const Mean training = std::exchange(training_, {});
        const Mean validation = std::exchange(validation_, {});
        if (training.empty() || !(training.value() > 0) || step_ < start_) return;
        const double ratio = (validation.value() - training.value()) / training.value();
        if (!(ratio > ratio_)) {
            in_a_row_ = 0;
            return pass(sink);
        }
        if (++in_a_row_ < patience_) return pass(sink);
        model::Finding finding;
        finding.tensor = tensor_;
        if (is_later) finding.first_step = step_;
        finding.message = base::format(
            "The validation loss is {} after step {} and the training loss {}: {:.3g} above it in "
            "proportion, "
            "{} time{} in a row.",
            base::human_number(validation.value()), step_, base::human_number(training.value()), ratio,
            in_a_row_, in_a_row_ == 1 ? "" : "s");
        finding.fix = kCompatibleOverfit.fix;
        finding.evidence.push_back({"(validation - training) / training", ratio, "limit", ratio_});
        finding.plots = {{tensor_, "value"}};
        fire(sink, std::move(finding));
    }

    Selection selection_;
    bool by_pattern_;
    std::uint64_t start_, patience_;
    double ratio_;
    Mean training_, validation_;
    model::StepIndex step_ = 0;  // the last of training
    std::string tensor_;
    std::uint64_t in_a_row_ = 0;
};

std::vector<model::Requirement> compatible_overfit_needs(const Parameters&) {
    return {{"losses",
             model::Mode::kGlobal,
             model::What::kStatistics,
             {.every = kSaveInterval},
             kCompatibleOverfit.name}};
}

}  // namespace

RuleEntry overfit() {
    return {&kCompatibleOverfit, &compatible_overfit_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<Overfit>(p); }};
}

}  // namespace traindbg::rules::compatible
