// How the samples of a batch differ: a table of some of its values, and what is told of its rows.
//
// Means and centred values are taken in doubles, so that nothing is lost where rows are nearly equal; centred
// values and their products are floats.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/reduce/elements.h"
#include "traindbg/reduce/kernels.h"
#include "traindbg/reduce/layout.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using base::Code;
using base::Result;
using base::Status;

// Products of floats are safe between these; else the values are scaled first.
constexpr double kLeastSquaresOfTable = 1e-20, kMostSquaresOfTable = 1e30;
constexpr double kShortestRow = 1e-30;

constexpr std::size_t up_to_multiple(std::size_t n, std::size_t of) noexcept {
    return (n + of - 1) / of * of;
}

// The first place from `data` on where no vector of a block lies across two lines of the cache.
float* at_block(float* data) noexcept {
    constexpr std::size_t kBytes = kColumnBlock * sizeof(float);
    const std::size_t over = reinterpret_cast<std::uintptr_t>(data) % kBytes;
    return over == 0 ? data : data + (kBytes - over) / sizeof(float);
}

// The values of a batch that are looked at, row by row.
class BatchTable {
  public:
    // `most_columns`: of a row, at most.
    [[nodiscard]] static Result<BatchTable> make(const KernelTable& kernel, const tensor::TensorView& view,
                                                 std::int64_t most_columns);

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::size_t columns() const noexcept { return columns_; }
    [[nodiscard]] const float* row(std::size_t i) const noexcept {
        return first_ + static_cast<std::ptrdiff_t>(i) * stride_;
    }

  private:
    std::size_t rows_ = 0;
    std::size_t columns_ = 0;
    const float* first_ = nullptr;
    std::ptrdiff_t stride_ = 0;        // in floats
    std::unique_ptr<float[]> copied_;  // where the tensor's memory is no table of floats
};

Result<BatchTable> BatchTable::make(const KernelTable& kernel, const tensor::TensorView& view,
                                    std::int64_t most_columns) {
    if (!tensor::is_floating(view.dtype))
        return Status(Code::kUnsupported,
                      base::format("tensor: no batch of {}", tensor::to_string(view.dtype)));
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView checked, CheckedView::make(view));
    const std::size_t rank = checked.rank();
    if (rank < 2 || checked.dimension(0).extent < kFewestSamples ||
        checked.count() < 2 * static_cast<std::uint64_t>(checked.dimension(0).extent))
        return Status(Code::kInvalidArgument,
                      base::format("tensor: no batch of {} samples or more, of two values or more each",
                                   kFewestSamples));
    const Dimension samples = checked.dimension(0);
    std::array<std::int64_t, kMostDimensions> extents;
    std::array<std::int64_t, kMostDimensions> strides;
    auto values = static_cast<std::int64_t>(checked.count()) / samples.extent;
    for (std::size_t i = 1; i < rank; ++i) {
        const Dimension dimension = checked.dimension(i);
        extents[i] = dimension.extent;
        strides[i] = dimension.stride;
        if (values <= kMostSampleValues) continue;
        const std::int64_t inner = values / dimension.extent;
        extents[i] = std::min(dimension.extent, std::max<std::int64_t>(1, kMostSampleValues / inner));
        values = inner * extents[i];
    }
    TRAINDBG_ASSIGN_OR_RETURN(
        const CheckedView one,
        CheckedView::make(
            {view.data, view.dtype, {extents.data() + 1, rank - 1}, {strides.data() + 1, rank - 1}}));
    Walk walk = Walk::row_major(one);
    const std::size_t bytes = checked.element_bytes();
    BatchTable out;
    out.rows_ = static_cast<std::size_t>(std::min(samples.extent, kMostSamples));
    out.columns_ = static_cast<std::size_t>(std::min(values, most_columns));
    const bool is_aligned = reinterpret_cast<std::uintptr_t>(view.data) % alignof(float) == 0;
    if (view.dtype == tensor::DType::kFloat32 && is_aligned && walk.rank == 1 &&
        walk.dimensions[0].stride == 1) {
        out.first_ = static_cast<const float*>(view.data);
        out.stride_ = static_cast<std::ptrdiff_t>(samples.stride);
        return out;
    }
    out.copied_ = std::make_unique_for_overwrite<float[]>(out.rows_ * out.columns_);
    out.first_ = out.copied_.get();
    out.stride_ = static_cast<std::ptrdiff_t>(out.columns_);
    float* to = out.copied_.get();
    for (std::size_t i = 0; i < out.rows_; ++i) {
        std::size_t left = out.columns_;
        const auto read = [&](const std::byte* at, std::size_t count, std::int64_t stride) {
            count = std::min(count, left);
            left -= count;
            while (count > 0) {
                const std::size_t part = std::min(count, kPart);
                const float* const found = floats_at(kernel, view.dtype, at, part, stride, to);
                if (found != to) std::memcpy(to, found, part * sizeof(float));
                to += part;
                at += static_cast<std::int64_t>(part * bytes) * stride;
                count -= part;
            }
            return left > 0;
        };
        walk.for_each_run(bytes, read);
        walk.begin += samples.stride * static_cast<std::int64_t>(bytes);
    }
    return out;
}

// (sum of e)^2 / (sum of e^2): of the products of centred rows with each other, the trace and the sum of the
// squares. `table` has room for whole blocks, and 0 in what is no value.
double participation_ratio(const KernelTable& kernel, float* table, std::size_t rows, std::size_t columns,
                           double trace) noexcept {
    if (!std::isfinite(trace)) return std::numeric_limits<double>::quiet_NaN();
    if (trace == 0) return 0;
    if (trace < kLeastSquaresOfTable || trace > kMostSquaresOfTable) {
        const double factor = 1 / std::sqrt(trace);
        for (std::size_t i = 0; i < rows * columns; ++i)
            table[i] = static_cast<float>(static_cast<double>(table[i]) * factor);
        trace = 1;
    }
    const double squares = kernel.squared_products(table, rows, columns);
    return squares == 0 ? 0 : trace * (trace / squares);
}

struct Asked {
    bool deviation = false;
    bool directions = false;
    bool turn = false;
};

Result<RowSpread> spread_by(const KernelTable& kernel, const tensor::TensorView& view, Asked asked) {
    const std::int64_t most_columns = asked.deviation ? kMostSampleValues : kMostSpreadValues;
    TRAINDBG_ASSIGN_OR_RETURN(const BatchTable table, BatchTable::make(kernel, view, most_columns));
    const std::size_t rows = table.rows();
    const std::size_t columns = table.columns();
    const auto samples = static_cast<double>(rows);
    const double values = samples * static_cast<double>(columns);
    RowSpread out;

    std::vector<double> sums(asked.turn ? 2 * columns : columns);
    double squares = 0;
    double units = 0;  // the squared lengths of the rows' unit vectors: 1 each, but 0 where all values are 0
    for (std::size_t i = 0; i < rows; ++i) {
        const double own = kernel.add_to_columns(table.row(i), columns, sums.data());
        squares += own;
        if (!asked.turn) continue;
        const double inverse = 1 / std::max(std::sqrt(own), kShortestRow);
        units += own * inverse * inverse;
        kernel.add_scaled(table.row(i), columns, inverse, sums.data() + columns);
    }
    if (asked.deviation) out.size = std::sqrt(squares / values);
    if (asked.turn) {
        double mean = 0;  // the squared length of the unit vectors' mean
        for (std::size_t i = columns; i < sums.size(); ++i) mean += (sums[i] / samples) * (sums[i] / samples);
        const double apart = units / samples - mean;
        out.turn = apart < 0 ? 0 : std::sqrt(apart);
    }

    for (std::size_t i = 0; i < columns; ++i) sums[i] /= samples;
    const std::size_t kept =
        asked.directions ? std::min(columns, static_cast<std::size_t>(kMostSpreadValues)) : 0;
    const std::size_t width = up_to_multiple(kept, kColumnBlock);
    const std::size_t height = up_to_multiple(rows, kRowBlock);
    const std::size_t size = kept > 0 ? width * height : 0;
    const auto memory = std::make_unique_for_overwrite<float[]>(size + columns - kept + kColumnBlock);
    float* const centred = at_block(memory.get());
    double trace = 0;
    double others = 0;
    for (std::size_t i = 0; i < rows; ++i) {
        if (kept > 0) {
            float* const row = centred + i * width;
            trace += kernel.centre(table.row(i), kept, sums.data(), row);
            std::fill(row + kept, row + width, 0.0F);
        }
        if (kept < columns)
            others += kernel.centre(table.row(i) + kept, columns - kept, sums.data() + kept, centred + size);
    }
    if (kept > 0) {
        std::fill(centred + rows * width, centred + size, 0.0F);
        out.directions = participation_ratio(kernel, centred, height, width, trace);
    }
    if (asked.deviation) out.deviation = std::sqrt((trace + others) / values);
    return out;
}

}  // namespace

Result<RowSpread> row_spread(const tensor::TensorView& view) {
    return spread_by(chosen_kernel(), view, {.deviation = true, .directions = true, .turn = true});
}

Result<RowSpread> row_deviation(const tensor::TensorView& view) {
    return spread_by(chosen_kernel(), view, {.deviation = true});
}

Result<double> row_directions(const tensor::TensorView& view) {
    TRAINDBG_ASSIGN_OR_RETURN(const RowSpread spread, spread_by(chosen_kernel(), view, {.directions = true}));
    return spread.directions;
}

Result<RowSpread> row_spread_with_kernel(std::string_view name, const tensor::TensorView& view) {
    TRAINDBG_ASSIGN_OR_RETURN(const KernelTable* const kernel, find_kernel(name));
    return spread_by(*kernel, view, {.deviation = true, .directions = true, .turn = true});
}

}  // namespace traindbg::reduce
