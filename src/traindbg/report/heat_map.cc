#include "traindbg/report/heat_map.h"

#include <algorithm>
#include <cmath>

namespace traindbg::report {
namespace {

void merge(HeatCell& into, const HeatCell& from) noexcept {
    if (std::isnan(into.value) || from.value > into.value) into.value = from.value;
    into.not_finite = into.not_finite || from.not_finite;
}

}  // namespace

HeatMap::HeatMap(std::size_t rows, std::size_t most_columns)
    : rows_(rows), most_columns_(std::max<std::size_t>(2, most_columns)) {}

void HeatMap::add(std::uint64_t step, std::size_t row, double value, bool not_finite) {
    if (row >= rows_) return;
    if (columns_.empty() || step != step_) {
        step_ = step;
        if (columns_.empty() || steps_in_last_ == steps_per_column_) {
            if (columns_.size() == most_columns_) merge_pairs();
            if (columns_.empty() || steps_in_last_ == steps_per_column_) {
                columns_.push_back({step, step, std::vector<HeatCell>(rows_)});
                steps_in_last_ = 0;
            }
        }
        ++steps_in_last_;
        columns_.back().last = step;
    }
    HeatCell cell;
    auto narrow = static_cast<float>(value);
    // What is too small for a float is still not nothing.
    if (narrow == 0 && value != 0) narrow = std::numeric_limits<float>::denorm_min();
    if (std::isfinite(narrow)) cell.value = narrow;
    cell.not_finite = not_finite || !std::isfinite(narrow);
    merge(columns_.back().cells[row], cell);
}

void HeatMap::keep_rows(const std::vector<std::size_t>& rows) {
    for (Column& column : columns_) {
        std::vector<HeatCell> cells;
        cells.reserve(rows.size());
        for (const std::size_t row : rows) cells.push_back(column.cells[row]);
        column.cells = std::move(cells);
    }
    rows_ = rows.size();
}

bool HeatMap::row_is_empty(std::size_t row) const noexcept {
    return std::all_of(columns_.begin(), columns_.end(),
                       [row](const Column& column) { return column.cells[row].empty(); });
}

void HeatMap::merge_pairs() {
    const std::size_t odd = columns_.size() % 2;
    for (std::size_t i = 0; i + 1 < columns_.size(); i += 2) {
        Column merged = std::move(columns_[i]);
        merged.last = columns_[i + 1].last;
        for (std::size_t row = 0; row < rows_; ++row) merge(merged.cells[row], columns_[i + 1].cells[row]);
        columns_[i / 2] = std::move(merged);
    }
    if (odd != 0) columns_[columns_.size() / 2] = std::move(columns_.back());
    columns_.resize(columns_.size() / 2 + odd);
    // After an odd number the last column is only half full and takes the steps to come.
    steps_in_last_ = odd != 0 ? steps_per_column_ : 2 * steps_per_column_;
    steps_per_column_ *= 2;
}

}  // namespace traindbg::report
