// How far steps move the weights, at which learning rate, and what clipping left of the gradients: what the
// rules about optimizers share.
//
// Only weight matrices count (two dimensions and more, no embeddings, no norm layers): of a bias or a scale
// that starts at 0 any step is large. Where a model has embeddings alone, those of up to 1,024 rows count.
//
// Thread-safety: one thread. Memory does not grow with the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/robust.h"

namespace traindbg::rules {

// Whether a tensor of a parameter is that of a matrix of which the size of an update tells something: no
// table, no norm, no input of models that is optimized itself.
[[nodiscard]] bool is_matrix(const model::TensorInfo& info);
// Of an embedding with few rows, most of which move in a step.
[[nodiscard]] bool is_small_table(const model::TensorInfo& info);

// How much a matrix of weights enlarges what it is given: its root mean square times √fan_in, about 1 after a
// sound initialisation. 0 where nothing is known of it.
[[nodiscard]] double gain_of(const model::TensorInfo& info, const model::Statistics& statistics);

// Below it a matrix does not carry a signal on, and is smaller than any sound initialisation makes it.
inline constexpr double kSmallGain = 0.15;

// Updates, at the first steps and then at few: they need a copy of all weights.
[[nodiscard]] model::Requirement update_requirement(std::string_view rule);
// The learning rate, wherever it changes.
[[nodiscard]] model::Requirement rate_requirement(std::string_view rule);
// Gradients before they are clipped, at few steps: they need a copy of all gradients.
[[nodiscard]] model::Requirement unclipped_requirement(std::string_view rule);

// ‖Δw‖ / ‖w‖ of the weight matrices. Of one whose gain is below `kSmallGain`, as it is where weights start
// near 0, the size that it has at that gain stands for ‖w‖: beside next to nothing any step is large.
class WeightUpdates {
  public:
    struct Look {
        model::StepIndex step = 0;
        double typical = 0;  // the median over the matrices
        double largest = 0;
        std::string place;  // of the largest
    };
    // True where the step has updates of matrices.
    bool observe(const model::StepView& step);
    // How many steps were looked at.
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] const Look& last() const noexcept { return looks_.back(); }  // count() > 0
    // The last 16 looks, oldest first.
    [[nodiscard]] const std::vector<Look>& looks() const noexcept { return looks_; }
    // Over the whole run: the largest update that any matrix ever had.
    [[nodiscard]] double highest() const noexcept { return highest_; }
    // The look at which the typical update was largest, but for the first step.
    [[nodiscard]] const Look& worst() const noexcept { return worst_; }
    // There are embeddings alone, which often start near 0 and grow fast on purpose.
    [[nodiscard]] bool are_of_tables() const noexcept { return are_of_tables_; }
    // Some matrix is kept in 16 bits: its updates are what rounding left of them.
    [[nodiscard]] bool are_rounded() const noexcept { return are_rounded_; }

  private:
    std::vector<Look> looks_;
    std::uint64_t count_ = 0;
    double highest_ = 0;
    Look worst_;
    bool are_rounded_ = false, are_of_tables_ = false;
};

// The learning rate over the run, the largest of all groups. Before the first one was recorded it is that of
// the optimizer's description.
class LearningRates {
  public:
    // To be called with every TRAIN step.
    void observe(const model::StepView& step);
    // After `observe`: the rate of this step is the first one of a new training of the same weights.
    void begin_anew(model::StepIndex step);
    [[nodiscard]] bool is_known() const noexcept { return known_; }
    [[nodiscard]] double now() const noexcept { return now_; }
    [[nodiscard]] double first() const noexcept { return first_; }
    [[nodiscard]] double peak() const noexcept { return peak_; }
    [[nodiscard]] model::StepIndex peak_step() const noexcept { return peak_step_; }
    // What a schedule multiplies; 0 where that is not known.
    [[nodiscard]] double base() const noexcept { return base_; }
    // It grows, or has only just stopped to: the last fifth of the steps, and at least ten, saw a new peak.
    [[nodiscard]] bool is_warming_up(model::StepIndex step) const noexcept;
    // It is multiplied by one number at every step, and has become a hundred times as large by that: as where
    // it is tried out which rate a training bears. No schedule of a training rises so.
    [[nodiscard]] bool is_tried_out() const noexcept;

  private:
    void look_at_rise(model::StepIndex step);

    bool known_ = false;
    double now_ = 0, peak_ = 0, first_ = 0, base_ = 0;
    model::StepIndex peak_step_ = 0;
    model::StepIndex last_step_ = 0;
    double last_ = 0, factor_ = 0;  // the rate at `last_step_`, over the one before
    double risen_from_ = 0;         // where it began to be multiplied by this factor
    std::uint64_t rises_ = 0;       // in a row
};

// What share of the gradients' norm clipping left.
class Clipping {
  public:
    // True where the step has gradients before and after.
    bool observe(const model::StepView& step);
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] double share() const noexcept { return share_; }      // at the last look
    [[nodiscard]] double highest() const noexcept { return highest_; }  // the largest share ever
    [[nodiscard]] double before() const noexcept { return before_; }
    [[nodiscard]] double after() const noexcept { return after_; }

  private:
    std::uint64_t count_ = 0;
    double share_ = 1, highest_ = 0, before_ = 0, after_ = 0;
};

}  // namespace traindbg::rules
