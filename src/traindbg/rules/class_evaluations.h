// What the model finds of each class in evaluations: of the recent ones together, and of the last two.
//
// Evaluated batches between two training steps are one evaluation. Thread-safety: one thread. Memory does not
// grow with the run.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/class_tally.h"

namespace traindbg::rules {

class ClassEvaluations {
  public:
    // Takes an EVAL step. `tensor`: the name of the classes that are counted; `last`: training step.
    void observe(const model::StepView& step, std::string_view tensor, model::StepIndex last);

    // Samples of each class, and those found, in recent evaluations.
    [[nodiscard]] const std::vector<double>& labels() const noexcept { return recent_.recent(); }
    [[nodiscard]] const std::vector<double>& found() const noexcept { return recent_.hits(); }
    // Training steps done at the first of these.
    [[nodiscard]] model::StepIndex since() const noexcept { return since_; }
    // Of a class in the latest evaluation, and in the one before.
    [[nodiscard]] std::optional<double> share_found(std::size_t number) const {
        return latest_.share(number);
    }
    [[nodiscard]] std::optional<double> share_found_before(std::size_t number) const {
        return before_.share(number);
    }

  private:
    static constexpr model::StepIndex kFewestToForget = 50;  // training steps since the first of these

    struct Evaluation {
        model::StepIndex after = 0;  // so many training steps, at least
        std::vector<double> labels, hits;

        void add(const model::ClassCounts& counts);
        [[nodiscard]] std::optional<double> share(std::size_t number) const;
    };

    ClassTally recent_;
    model::StepIndex since_ = 0;
    Evaluation latest_, before_;
};

}  // namespace traindbg::rules
