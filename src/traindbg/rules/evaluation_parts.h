// Evaluations of which a part is of the training's own data, as of loops that evaluate both after each epoch.
//
// Nothing says which batches are of which data; but from some batch on the losses are higher, or up to some
// batch, while all others are as low as the training loss.
//
// Thread-safety: one thread. Memory: at most `kMostEvaluations` evaluations of `kMostBatches` losses.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace traindbg::rules {

class EvaluationParts {
  public:
    static constexpr std::size_t kMostBatches = 64, kMostEvaluations = 512;

    // An evaluation is over, with the losses of its batches in their order and the mean training loss since
    // the one before (0: not known). True where it now shows, for the first time, that they have two parts:
    // then those before have others losses than was told of them.
    [[nodiscard]] bool add(std::span<const double> losses, double train);
    // The mean of the batches that are not of the training's data, or of all.
    [[nodiscard]] double loss_of(std::span<const double> losses) const;
    // The same of an evaluation that was added, by its number; `may_part()`.
    [[nodiscard]] double loss_of(std::size_t number) const { return loss_of(added_[number].losses); }
    [[nodiscard]] bool are_found() const noexcept { return part_.has_value(); }
    // Evaluations have equally many batches so far, two or more.
    [[nodiscard]] bool may_part() const noexcept { return is_even_; }
    // " Of the 12 batches of an evaluation ... "; empty where they have no parts.
    [[nodiscard]] std::string in_words() const;

  private:
    struct Added {
        std::vector<double> losses;
        double train = 0;
    };
    // Of the batches of an evaluation.
    struct Part {
        std::size_t begin = 0, end = 0;
    };
    [[nodiscard]] std::optional<Part> find() const;
    [[nodiscard]] std::vector<double> means_of_batches(std::size_t evaluations) const;

    bool is_even_ = true;
    std::size_t batches_ = 0;
    std::vector<Added> added_;
    std::optional<Part> part_;  // that counts
};

}  // namespace traindbg::rules
