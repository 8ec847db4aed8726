#include "traindbg/rules/answers_given.h"

#include <cmath>
#include <vector>

namespace traindbg::rules {
namespace {

bool takes_logits(const LossCall& call) { return call.function == "binary_cross_entropy_with_logits"; }

}  // namespace

bool is_about_answers(const LossCall& call) {
    return (takes_logits(call) || call.function == "binary_cross_entropy") && call.labelled != nullptr;
}

std::optional<AnswerBatch> answer_batch(const LossCall& call) {
    if (!is_about_answers(call)) return std::nullopt;
    const std::vector<std::int64_t>& shape = call.prediction->shape;
    if (!(shape.size() == 1 || (shape.size() == 2 && shape[1] == 1))) return std::nullopt;
    const model::Statistics& labels = *call.labelled;
    const double mean = labels.mean;
    const bool are_hard =
        labels.min >= 0 && labels.max <= 1 && std::abs(labels.std * labels.std - mean * (1 - mean)) < 1e-4;
    if (!are_hard) return std::nullopt;
    const double border = takes_logits(call) ? 0 : 0.5;
    return AnswerBatch{.function = call.function,
                       .labels = static_cast<double>(labels.count),
                       .yes = mean,
                       .says_yes = call.predicted->max > border,
                       .says_no = call.predicted->min < border};
}

void AnswersGiven::add(const AnswerBatch& batch, model::StepIndex step) {
    labels_ += batch.labels;
    yes_ += batch.yes * batch.labels;
    const bool is_given = is_yes_rare() ? batch.says_yes : batch.says_no;
    if (is_given) {
        ++given_;
        if (step >= kUnsettled) ++given_in_all_;
        missed_ = 0;
        missed_since_ = step + 1;
    } else if (step >= kFirstSteps) {
        given_ = 0;
        missed_ += (is_yes_rare() ? batch.yes : 1 - batch.yes) * batch.labels;
    }
    is_missed_ = !is_given;
}

bool AnswersGiven::is_never_given(double ratio) const {
    return is_missed_ && labels_ >= kFewestLabels && labels_ - rare() >= ratio * rare() &&
           missed_ >= most_missed();
}

}  // namespace traindbg::rules
