// Which answers a model with one output gives to yes or no: whether the rarer one was ever given.
//
// Labels and predictions of a binary cross-entropy are not counted as classes are, but the extremes of its
// output tell that. Thread-safety: one thread. Memory does not grow with the run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "traindbg/model/step.h"
#include "traindbg/rules/loss_arguments.h"

namespace traindbg::rules {

// A batch whose labels are yes or no, one for each output. Borrowed from the step.
struct AnswerBatch {
    std::string_view function;
    double labels = 0, yes = 0;              // how many, and the share that is yes
    bool says_yes = false, says_no = false;  // the model, to one of them at least
};
// Whether a call is of such a loss and has labels, whatever they are.
[[nodiscard]] bool is_about_answers(const LossCall& call);
// Nothing where labels are between yes and no, or are of pixels or of several outputs.
[[nodiscard]] std::optional<AnswerBatch> answer_batch(const LossCall& call);

class AnswersGiven {
  public:
    void add(const AnswerBatch& batch, model::StepIndex step);

    [[nodiscard]] double labels() const noexcept { return labels_; }
    [[nodiscard]] double yes() const noexcept { return yes_; }
    [[nodiscard]] double rare() const noexcept { return std::min(yes_, labels_ - yes_); }
    [[nodiscard]] bool is_yes_rare() const noexcept { return 2 * yes_ < labels_; }
    // Looks in a row at which the rare answer was given.
    [[nodiscard]] std::uint64_t given_in_a_row() const noexcept { return given_; }
    // Its samples since then, none of which was given it, and from which step on.
    [[nodiscard]] double missed() const noexcept { return missed_; }
    [[nodiscard]] model::StepIndex missed_since() const noexcept {
        return std::max(missed_since_, kFirstSteps);
    }
    // Such samples from which on it is never given: an answer that was given now and then will be again.
    [[nodiscard]] double most_missed() const { return 5 * (1 + static_cast<double>(given_in_all_)); }
    // It is never given, and is at most one in 1 + `ratio`.
    [[nodiscard]] bool is_never_given(double ratio) const;

  private:
    static constexpr model::StepIndex kFirstSteps = 40;  // of which no answer is expected yet
    static constexpr model::StepIndex kUnsettled = 100;  // steps that do not tell how often one is given
    static constexpr double kFewestLabels = 500;

    double labels_ = 0, yes_ = 0, missed_ = 0;
    model::StepIndex missed_since_ = 0;  // step after the last one at which the rare answer was given
    std::uint64_t given_ = 0;            // looks in a row
    std::uint64_t given_in_all_ = 0;     // of all looks from kUnsettled on
    bool is_missed_ = false;             // in the last batch
};

}  // namespace traindbg::rules
