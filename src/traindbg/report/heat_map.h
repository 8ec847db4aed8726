// One quantity of many tensors over the steps of a run, in bounded memory.
//
// Rows are tensors, columns are recorded steps. When there are more columns than wanted, neighbours
// are merged in pairs: a merged cell holds the largest value of its steps and remembers whether any
// of them held something that is not finite.
// Thread-safety: one thread at a time.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace traindbg::report {

struct HeatCell {
    float value = std::numeric_limits<float>::quiet_NaN();  // NaN: no value at these steps
    bool not_finite = false;  // the tensor held NaN or Inf at one of these steps

    [[nodiscard]] bool empty() const noexcept { return std::isnan(value) && !not_finite; }
};

class HeatMap {
  public:
    struct Column {
        std::uint64_t first = 0;  // steps, both included
        std::uint64_t last = 0;
        std::vector<HeatCell> cells;  // one per row
    };

    // `most_columns`: at least 2.
    HeatMap(std::size_t rows, std::size_t most_columns);

    // Steps must not go down. A value that is not finite itself counts as `not_finite`.
    void add(std::uint64_t step, std::size_t row, double value, bool not_finite);

    // Keeps these rows, in this order.
    void keep_rows(const std::vector<std::size_t>& rows);

    [[nodiscard]] const std::vector<Column>& columns() const noexcept { return columns_; }
    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] bool row_is_empty(std::size_t row) const noexcept;

  private:
    void merge_pairs();

    std::size_t rows_;
    std::size_t most_columns_;
    std::size_t steps_per_column_ = 1;
    std::size_t steps_in_last_ = 0;
    std::uint64_t step_ = 0;
    std::vector<Column> columns_;
};

}  // namespace traindbg::report
