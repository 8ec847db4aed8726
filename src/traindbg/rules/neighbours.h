// Whether the inputs tell the labels: of some hundred rows, whether the labels of rows that are nearest to
// each other are more alike than those of any two.
//
// A training that learns nothing has another cause where they are than where they are not: there is
// something to learn, or labels do not belong to their inputs (or what tells them is finer than a distance,
// as in a parity). Hooks compare the first rows once (`loop/neighbours_...`), of inputs of floating point
// with one label for each row.
//
// Thread-safety: one thread. Cost: linear in the numbers of the steps that tell it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "traindbg/model/finding.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"

namespace traindbg::rules {

// The facts, and the inputs that they are told of.
[[nodiscard]] std::vector<model::Requirement> neighbour_requirements(std::string_view rule);

class Neighbours {
  public:
    // Takes a TRAIN step.
    void observe(const model::StepView& step);

    // How far labels differ between neighbours, as a share of how far those of any two rows do: 0 where the
    // inputs tell the labels, 1 where they say nothing. Nothing where it is not known of 96 rows at least.
    [[nodiscard]] std::optional<double> unlike() const;
    [[nodiscard]] double rows() const noexcept { return rows_; }
    // Of classes, the share of rows whose nearest one has another label.
    [[nodiscard]] double differ() const noexcept { return differ_; }
    // The same for a finding about a training that does not learn; empty or one item.
    [[nodiscard]] std::vector<model::Evidence> evidence() const;

  private:
    double rows_ = 0, differ_ = 0, any_differ_ = 0;
};

}  // namespace traindbg::rules
