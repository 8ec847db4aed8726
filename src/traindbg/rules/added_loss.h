// What a loop adds by hand to the value of its one loss function, and whether that is a penalty on the
// weights.
//
// It is known to be of the weights alone where it is the same multiple of a sum over them at each look, while
// that sum changes much: nothing else that falls in a training does that.
//
// Thread-safety: one thread. Cost: linear in the tensors of a step whose weights were captured.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/robust.h"

namespace traindbg::rules {

class AddedLoss {
  public:
    struct Level {
        double added = 0, value = 0;  // medians: of what is added, and of the loss function's values
    };
    struct Penalty {
        std::string_view sum;             // what it is a multiple of: "squares", "magnitudes" or "norms"
        double factor = 0;                // at the last look
        double norm = 0, first_norm = 0;  // of all weights, at the last look and the first one
    };

    // Takes a TRAIN step. Where another training begins in the same process, all begins anew.
    void observe(const model::StepView& step);
    // Over the first five steps with both; nothing before, nor where several loss functions were called.
    [[nodiscard]] std::optional<Level> at_start() const;
    // Over the last ten.
    [[nodiscard]] Level now() const;
    // "cross_entropy".
    [[nodiscard]] std::string_view function() const noexcept;
    // At some look the sum of squares was no more than a third of what it was at the first one, or the other
    // sums than its root, and the norm is no more than four fifths of that now. Nothing where several loss
    // functions were called, or nothing was added.
    [[nodiscard]] std::optional<Penalty> penalty() const;
    // Of what `backward()` was called on: no trend over the last third of the training.
    [[nodiscard]] bool stands_still() const;

  private:
    // The quotient of what was added and a sum, over all looks.
    struct Proportion {
        double least = 0, most = 0, last = 0;
        double first_sum = 0, lowest_sum = 0;

        void add(double added, double sum);
        [[nodiscard]] bool is_same(double fallen) const;
    };
    struct Sum {
        std::string_view name;
        double fallen;  // times, as where weights fall to the root of a third
    };
    static constexpr std::array<Sum, 4> kSums = {
        {{"squares", 3}, {"squares", 3}, {"magnitudes", 1.73}, {"norms", 1.73}}};

    std::string function_;  // "loss/cross_entropy"
    bool has_several_ = false;
    std::size_t looks_ = 0;
    std::array<Proportion, kSums.size()> proportions_;  // the second of matrices alone
    double norm_ = 0, first_norm_ = 0;
    Recent added_{10}, values_{10};
    std::vector<double> first_added_, first_values_;
    Blocks totals_;
};

}  // namespace traindbg::rules
