// A WeightedRandomSampler that draws rows of frequent classes more often still.
//
// Thread-safety: one thread. Cost: n log n in the number of classes; memory does not grow with the run.
#pragma once

#include <string_view>
#include <vector>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class WeightedDrawing {
  public:
    // Takes a TRAIN step. The weights, and how many rows have each, are told at the first steps.
    void observe(const model::StepView& step);
    // `labels`: drawn so far, of each class; `tensor`: of the loss or classes.
    void judge(const std::vector<double>& labels, std::string_view tensor, FindingSink& sink);

    [[nodiscard]] bool is_firing() const noexcept { return !firing_.is_empty(); }

  private:
    void say(std::string_view tensor, FindingSink& sink);

    static constexpr const char* kDrawing = "drawing";
    static constexpr double kFewestDrawn = 500;  // labels
    // Rows are counted all; but the weights may be the counts of a larger part, before the data was split.
    static constexpr double kNear = 0.02, kErrors = 0.5;

    std::vector<double> weights_, rows_;  // each weight, and rows that have it
    Firing firing_;
};

// Weights are of classes: these are as frequent as it makes them, the first as the first, and so on. Rows may
// be weighed by anything else, as by where they are from. `rows`: that have each weight; `labels`: drawn.
[[nodiscard]] bool are_drawn_by_weight(const std::vector<double>& weights, const std::vector<double>& rows,
                                       std::vector<double> labels);

}  // namespace traindbg::rules
