// Says that two inputs of one shape are exchanged in evaluation.
//
// Thread-safety: one thread. Memory does not grow with the run: a few numbers for each pair of inputs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/exchanged.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/input_names.h"
#include "traindbg/rules/known_rows.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class ExchangedInputs {
  public:
    // Takes a step of either mode.
    void observe(const model::StepView& step);
    // How many pairs were judged. `ratio`: of the losses (LossRatio).
    std::uint64_t judge(const model::StepView& step, const InputNames& names, const KnownRows& rows,
                        const std::optional<double>& ratio, FindingSink& sink);

  private:
    // How far the first one's mean and standard deviation lie above those of the second, in the same batch.
    struct Pair {
        Recent means{64}, stds{64}, rows{64};          // of training batches
        double evaluated_mean = 0, evaluated_std = 0;  // sums, each batch by its rows
        double evaluated_rows = 0, evaluated_batches = 0;

        [[nodiscard]] Apart apart() const;
    };

    static constexpr std::size_t kMostInputs = 4;
    static constexpr std::size_t kFewestBatches = 10;  // of the training
    static constexpr double kFewestRows = 64;          // of evaluations

    std::map<std::pair<model::TensorId, model::TensorId>, Pair> pairs_;
    Firing firing_;
};

}  // namespace traindbg::rules
