#include "traindbg/rules/evaluation_loss.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

constexpr std::string_view kCalledPrefix = "loss/";
constexpr double kFewestEvaluated = 50;

}  // namespace

model::Requirement evaluation_loss_requirement(std::string_view rule) {
    return {"losses", model::Mode::kEval, model::What::kStatistics, {.every = 1}, std::string(rule)};
}

model::Requirement evaluation_classes_requirement(std::string_view rule) {
    return {"classes",
            model::Mode::kEval,
            model::What::kClasses,
            {.every = 5, .dense_until = 20},
            std::string(rule)};
}

bool EvaluationLoss::observe(const model::StepView& step) {
    if (step.mode() == model::Mode::kTrain) {
        if (batches_ == 0) return false;
        end();
        return true;
    }
    if (step.mode() != model::Mode::kEval) return false;
    for (const model::ScalarSample& sample : step.record->scalars) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (!is_first_loss(info) || !std::isfinite(sample.value)) continue;
        if (function_.empty()) function_ = info.name;
        if (info.name != function_) continue;
        sum_ += sample.value;
        ++batches_;
        if (usual_ == 0 || batches_ <= usual_) head_ += sample.value;
    }
    if (!function_.starts_with(kCalledPrefix)) return false;
    const std::string_view function = std::string_view(function_).substr(kCalledPrefix.size());
    for (const model::ClassSample& sample : step.record->classes) {
        const std::string_view name = step.info(sample.tensor).name;
        if (name.substr(name.find('/') + 1) != function) continue;
        const auto& labels = sample.counts.labels;
        if (labels_.size() < labels.size()) labels_.resize(labels.size());
        for (std::size_t i = 0; i < labels.size(); ++i) labels_[i] += labels[i];
    }
    return false;
}

void EvaluationLoss::end() {
    if (batches_ == 0) return;
    if (usual_ == 0) usual_ = batches_;
    const double value = std::exchange(head_, 0) / static_cast<double>(std::min(usual_, batches_));
    values_.push_back(value);
    if (values_.size() > kKept) values_.pop_front();
    if (evaluations_ == 0 || value < best_) {
        best_ = value;
        since_best_ = 0;
    } else {
        if (not_better_++ == 0) best_at_setback_ = best_;
        ++since_best_;
    }
    before_ = last_;
    last_ = std::exchange(sum_, 0) / static_cast<double>(std::exchange(batches_, 0));
    in_a_row_ = evaluations_ > 0 && last_ < before_ ? in_a_row_ + 1 : 0;
    if (evaluations_++ == 0) first_ = last_;
}

std::optional<double> EvaluationLoss::label_entropy() const {
    double total = 0;
    for (const double count : labels_) total += count;
    if (total < kFewestEvaluated) return std::nullopt;
    double entropy = 0;
    for (const double count : labels_)
        if (count > 0) entropy -= count / total * std::log(count / total);
    if (!(entropy > 0)) return std::nullopt;
    return entropy;
}

}  // namespace traindbg::rules
