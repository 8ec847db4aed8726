// By what the rows of a batch are known again: fingerprints of a few rows, and of each row of some values
// that are always at the same places.
//
// There are two of a row, of the first and of the second half of these values, and two of other halves, of
// every other value: where rows are padded at their end, the second half says nothing. A fingerprint is the
// sum of the values' bits, as integers (bytes without a sign, wider ones with one), times odd factors that
// are always the same, modulo 2^64. hooks/torch/data/rows.py makes the same ones on devices, to the last bit.
//
// Plain values; what is taken of a tensor is taken at the call, and the tensor may change afterwards.
// Thread-safety: none is needed for const members. Cost: some nanoseconds a value, at most 64 rows of 256
// values; of values that are far apart, what it takes to fetch each from memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traindbg/tensor/tensor_view.h"

namespace traindbg::capture {

inline constexpr std::size_t kMostPrintedRows = 64;     // of a batch
inline constexpr std::size_t kMostPrintedValues = 256;  // of a row

// Of a row: the first values and the others, or the 1st, 3rd, ... and the others.
enum Half : std::uint8_t { kFirstHalf, kSecondHalf, kEvenHalf, kOddHalf };
inline constexpr std::size_t kHalves = 4;
// For numbers of each half, that of the cut where more come: of a cut, the half where fewer do.
[[nodiscard]] constexpr std::int64_t of_halves(const std::array<std::int64_t, kHalves>& numbers) noexcept {
    return std::max(std::min(numbers[kFirstHalf], numbers[kSecondHalf]),
                    std::min(numbers[kEvenHalf], numbers[kOddHalf]));
}

// A number that a loss is given for a row, of any element type. NaN is equal to nothing.
struct RowLabel {
    std::int64_t whole = 0;  // the number, where it is a whole one of 64 bits
    double beyond = 0;       // any other number; 0: there is none

    [[nodiscard]] static RowLabel of(double number) noexcept;
    [[nodiscard]] bool is_whole() const noexcept;
    [[nodiscard]] bool is_negative() const noexcept { return whole < 0 || beyond < 0; }
    [[nodiscard]] std::uint64_t number() const noexcept;  // another one for another label
    bool operator==(const RowLabel&) const = default;
};

class RowPrints {
  public:
    // Of a batch of so many rows with so many values each; the fingerprints are put in later.
    RowPrints(std::int64_t batch, std::int64_t values) noexcept : batch_(batch), values_(values) {}

    // None where there are none: of fewer than two rows or two values in each, and of element types that are
    // no real numbers.
    [[nodiscard]] static std::optional<RowPrints> take(const tensor::TensorView& batch);
    // How often a value differs from the one before, in the first 1024 of each row. `batch`: as for `take`.
    void take_changes(const tensor::TensorView& batch);
    // What else belongs to the rows: a tensor with as many. False where it has none, or nothing in them.
    [[nodiscard]] bool take_further(const tensor::TensorView& further);
    // One for each row of the batch, whatever the shape. False where there is another number of them.
    [[nodiscard]] bool take_labels(const tensor::TensorView& labels);

    // What was computed elsewhere, a number for each row that is looked at; of halves, those of the first,
    // the second and the even one.
    [[nodiscard]] bool put_halves(std::span<const std::int64_t> numbers);
    [[nodiscard]] bool put_changes(std::span<const std::int64_t> numbers);
    [[nodiscard]] bool put_further(std::span<const std::int64_t> numbers);
    // Labels of the rows that are looked at, one for each.
    [[nodiscard]] bool put_labels(const tensor::TensorView& labels);

    [[nodiscard]] std::size_t size() const noexcept { return halves_.size(); }  // rows that were looked at
    [[nodiscard]] std::int64_t batch() const noexcept { return batch_; }        // rows that there are
    [[nodiscard]] std::int64_t values() const noexcept { return values_; }      // of a row
    [[nodiscard]] std::uint64_t half(std::size_t row, std::size_t which) const noexcept {
        const auto& [first, second, even] = halves_[row];
        return which == kOddHalf ? first + second - even : halves_[row][which];
    }
    // Both halves in one number, and with what else belongs to the row.
    [[nodiscard]] std::uint64_t both(std::size_t row) const noexcept;
    [[nodiscard]] std::uint64_t whole(std::size_t row) const noexcept;
    [[nodiscard]] std::int64_t changes(std::size_t row) const noexcept {
        return row < changes_.size() ? changes_[row] : 0;
    }
    [[nodiscard]] bool has_further() const noexcept { return !further_.empty(); }
    // One for each row; empty where they are not known, or where no label comes twice: those are numbers of
    // the rows or amounts.
    [[nodiscard]] std::span<const RowLabel> labels() const noexcept { return labels_; }

  private:
    [[nodiscard]] std::size_t looked_at() const noexcept;
    [[nodiscard]] bool read_labels(const tensor::TensorView& labels);  // at least one for each row
    void mix_in(std::span<const std::uint64_t> further);

    std::int64_t batch_ = 0;
    std::int64_t values_ = 0;
    std::vector<std::array<std::uint64_t, 3>> halves_;  // but for the odd ones
    std::vector<std::uint64_t> further_;                // empty: nothing
    std::vector<std::int64_t> changes_;
    std::vector<RowLabel> labels_;
};

}  // namespace traindbg::capture
