// Says that a model with one output never gives a rare answer to yes or no, or hardly to any sample.
//
// Two sources tell: the extremes of what the output was, and answers that hooks count at some steps.
// Thread-safety: one thread. Memory does not grow with the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/answer_loss.h"
#include "traindbg/rules/answers_given.h"
#include "traindbg/rules/class_tally.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class RareAnswer {
  public:
    explicit RareAnswer(double ratio) : ratio_(ratio) {}

    // Takes a TRAIN step.
    void observe(const model::StepView& step);
    // Takes a call of a loss in it; the batch, where its labels are yes or no.
    std::optional<AnswerBatch> add(const LossCall& call, model::StepIndex step);
    // Adds the answers that a step tells to `tally`, as those of two classes. False where it tells none.
    // Their batches may well be of one class: some losses are called for what is and for what is not.
    bool count(const model::StepView& step, ClassTally& tally);
    // By these counts the rare answer is ignored. To begin with, it must be no matter of a few samples.
    [[nodiscard]] bool may_be_ignored(const ClassTally& tally) const;
    void set_ignored(bool is_ignored) noexcept { is_ignored_ = is_ignored; }

    // `last`: training step.
    void judge(const ClassTally& tally, model::StepIndex last, bool is_game, FindingSink& sink);

    [[nodiscard]] const AnswersGiven& given() const noexcept { return given_; }
    [[nodiscard]] bool are_counted() const noexcept { return are_counted_; }
    // The loss that was given such labels: "loss/binary_cross_entropy".
    [[nodiscard]] std::string loss() const { return "loss/" + function_; }
    [[nodiscard]] bool is_firing() const noexcept { return !firing_.is_empty(); }

  private:
    void say_never(model::StepIndex last, FindingSink& sink);
    void say_ignored(const ClassTally& tally, model::StepIndex last, FindingSink& sink);

    static constexpr const char* kYesOrNo = "yes_or_no";

    double ratio_;
    std::string function_;
    AnswersGiven given_;
    AnswerLoss loss_;
    bool are_counted_ = false;
    bool is_ignored_ = false;
    bool is_told_never_ = false;  // firing; taken back when the rare answer is given several times in a row
    Firing firing_;
};

}  // namespace traindbg::rules
