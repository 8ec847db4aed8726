// Rows that come several times within one pass over data of which each is drawn once.
//
// Whether a pass is of that kind, and how long it is, whoever gives batches knows. Rows are known again by
// their fingerprints; those that hold hardly more than one value, as blank images and padding, are left out.
//
// What is kept are numbers of at most 16,384 rows, of the pass under way: at most 3 MiB.
// Errors: std::bad_alloc alone. Thread-safety: none. Cost: some nanoseconds a row.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "traindbg/capture/number_table.h"
#include "traindbg/capture/row_prints.h"

namespace traindbg::capture {

inline constexpr std::int64_t kMostRowsOfPass = 16'384;

class RowPasses {
  public:
    struct Pass {
        std::int64_t number = 0;  // counts from 1
        std::int64_t rows = 0;    // that it has
        bool operator==(const Pass&) const = default;
    };
    struct Batch {
        Pass of;
        std::int64_t step = 0;     // of the training
        std::int64_t size = 0;     // of which the first rows were looked at
        bool are_classes = false;  // a loss was given a score for each class, and labels say which is right
    };
    struct Again {
        std::int64_t looked_at = 0;  // rows of the pass
        std::int64_t of = 0;         // rows that it has
        std::int64_t again = 0;      // of those looked at, those that came before in the pass
        std::int64_t most = 0;       // how often the row came that came most often
        std::int64_t distinct = 0;   // rows that differ from all others
        double effective = 0;        // so many rows that come equally often have as much weight
        // The last two of the rows of each class that is known, added up.
        std::int64_t distinct_in_class = 0;
        double effective_in_class = 0;
        std::int64_t half_again = 0;     // of which one half only did (`of_halves`)
        std::int64_t labelled = 0;       // that came before, of those of which both classes are known
        std::int64_t contradicting = 0;  // of these, those of another class than before
        double by_chance = 0;            // the share of them, if classes were dealt out anew
        // An example: a row, and the step and place where it came before.
        std::int64_t before_step = 0;
        std::int64_t before = 0;
        std::int64_t again_step = 0;
        std::int64_t again_place = 0;
    };

    // A batch of the training. `rows` have their changes taken, and their labels if they have any.
    void batch(const Batch& batch, const RowPrints& rows);
    // More belongs to a row than was seen: of this pass nothing is told.
    void unknown() noexcept;
    // Of the pass of which most was seen. None: no pass was.
    [[nodiscard]] std::optional<Again> told();

  private:
    struct Seen {
        std::int64_t step = 0;
        std::size_t place = 0;  // in the batch
        std::int64_t times = 1;
        std::optional<RowLabel> label;
    };

    void begin(const Batch& batch);
    void keep();
    [[nodiscard]] bool is_replayed(const RowPrints& rows);
    void weigh(const RowLabel& label, std::int64_t squares);
    void came_again(const Seen& before, const Seen& now) noexcept;

    std::optional<Again> best_;
    Pass of_;
    std::int64_t since_ = 0;  // the pass's first step
    bool is_over_ = false;
    NumberTable<Seen> first_;  // where a row came for the first time
    std::array<NumberSet, kHalves> halves_;
    std::array<std::int64_t, kHalves> half_again_{};
    struct OfClass {
        std::int64_t rows = 0;     // that have it
        std::int64_t known = 0;    // of these, those that can be known again
        std::int64_t squares = 0;  // of how often each of these came, added up
    };
    NumberTable<OfClass> of_class_;
    std::int64_t classified_ = 0;   // rows that have one
    std::int64_t squares_ = 0;      // of the numbers of each class, added up
    std::int64_t row_squares_ = 0;  // of how often each row came, added up
    Again now_;                     // of the pass under way, but for what `keep` computes

    NumberSet looked_up_;                // of a batch
    NumberTable<std::int64_t> of_step_;  // how many rows of a batch came at that step
};

}  // namespace traindbg::capture
