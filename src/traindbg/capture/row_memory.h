// What is remembered of the rows of one training: which rows it had, how much these are alike, and their
// classes. hooks/torch/data/rows.py says what is a batch of the training and what is not.
//
// What is kept are numbers, of at most 16,384 rows and those of one batch more: 4 MiB.
// Errors: std::bad_alloc alone; what was learned of the batch until then stays. Thread-safety: none.
// Cost: some nanoseconds a row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "traindbg/capture/number_table.h"
#include "traindbg/capture/row_prints.h"

namespace traindbg::capture {

inline constexpr std::size_t kMostKnownRows = 16'384;

class RowMemory {
  public:
    struct Figures {
        std::int64_t known = 0;       // rows
        std::int64_t looked_at = 0;   // rows, also the same again
        std::int64_t pairs = 0;       // of rows within batches
        std::int64_t alike = 0;       // pairs that are equal
        std::int64_t half_alike = 0;  // pairs that are equal in one half only (`of_halves`)
    };
    struct Found {
        std::int64_t known = 0;
        std::int64_t half_alike = 0;  // others, of which both halves are known, cut one way or the other
    };
    struct Relabelled {
        std::int64_t again = 0;    // rows that came again with a class
        std::int64_t changed = 0;  // of these, those that had another class before
        double by_chance = 0;      // the share of them, if classes were drawn anew each time
    };

    // A batch of the training, with its labels if it has any.
    void learn(const RowPrints& rows);

    [[nodiscard]] Figures figures() const noexcept;
    [[nodiscard]] Found find(const RowPrints& rows) const noexcept;
    // None: fewer than 40 came again, or they did because rows are alike.
    [[nodiscard]] std::optional<Relabelled> relabelled() const noexcept;

  private:
    // Whether rows are known by the first input alone: these have no others, or ones that are made anew for
    // each batch, such as noise. First inputs that are alike, such as categories, come again with other rows.
    [[nodiscard]] bool by_first_alone(const RowPrints& rows) const noexcept;
    void learn_labels(const RowPrints& rows);
    template <typename NumberOf>
    [[nodiscard]] std::int64_t equal_pairs(std::size_t rows, const NumberOf& number_of);

    // By all that belongs to a row and, of rows with further inputs, by the first one alone.
    NumberSet known_;
    NumberSet firsts_;
    // Of rows with further inputs: those that came again by the first one, and those that did by all of them.
    std::int64_t firsts_again_ = 0;
    std::int64_t wholes_again_ = 0;
    // Of these: all; pairs within batches, and those that are equal by the first one; so many, at most, came
    // again by the first one because these are alike.
    std::int64_t firsts_learned_ = 0;
    std::int64_t firsts_pairs_ = 0;
    std::int64_t firsts_alike_ = 0;
    double firsts_by_chance_ = 0;
    std::array<NumberSet, kHalves> halves_;
    std::int64_t looked_at_ = 0;
    std::int64_t pairs_ = 0;
    std::int64_t alike_ = 0;
    std::array<std::int64_t, kHalves> half_alike_{};

    NumberTable<RowLabel> classes_;       // of rows
    NumberTable<std::int64_t> of_class_;  // how many rows of `classes_` have it
    std::int64_t squares_ = 0;            // of these numbers, added up
    std::int64_t again_ = 0;
    std::int64_t changed_ = 0;
    std::int64_t twice_ = 0;  // rows that came several times in one batch
    double by_chance_ = 0;    // how many came again because rows are alike

    NumberTable<std::int64_t> often_;  // of the numbers that are looked at, how often each comes
};

}  // namespace traindbg::capture
