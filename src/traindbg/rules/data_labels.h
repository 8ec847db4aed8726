// Whether a training is given labels of its data, or compares what its models return with each other.
//
// Thread-safety: one thread. Cost: linear in the step's tensors.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {

class DataLabels {
  public:
    // Takes a TRAIN step.
    void observe(const model::StepView& step) {
        if (loop_fact(step, "target_has_gradient")) are_made_ = true;
        if (are_made_ || are_given_) return;
        for (const model::TensorSample& sample : step.record->tensors) {
            if (step.info(sample.tensor).role != model::Role::kLabel) continue;
            const model::Statistics& s = sample.statistics;
            if (s.finite() == 0) continue;
            if (s.min == s.max) {
                note_class(step.info(sample.tensor).name, s.min);
                continue;
            }
            const auto last = static_cast<double>(s.count - 1);
            const bool are_numbers = s.min == 0 && s.max == last && std::abs(s.mean - last / 2) < 1e-3 * last;
            are_given_ = are_given_ || !are_numbers;
        }
    }
    // Some loss function was given labels that are not all equal, nor the numbers of rows; or classes that
    // are another one in a later batch, as of data that is sorted by them.
    [[nodiscard]] bool are_given() const noexcept { return are_given_; }
    // They have a gradient: the model made them itself.
    [[nodiscard]] bool are_made() const noexcept { return are_made_; }

  private:
    // All labels of a batch are of this class. A loss that compares with other samples is given one number
    // all the time: the place of the sample that belongs there.
    void note_class(std::string_view name, double value) {
        if (name != "label/cross_entropy" && name != "label/nll_loss") return;
        if (class_ && *class_ != value) are_given_ = true;
        class_ = value;
    }

    bool are_given_ = false, are_made_ = false;
    std::optional<double> class_;
};

[[nodiscard]] inline model::Requirement label_requirement(std::string_view rule) {
    return {"labels",
            model::Mode::kTrain,
            model::What::kStatistics,
            {.every = 50, .dense_until = 10},
            std::string(rule)};
}

}  // namespace traindbg::rules
