// The memory of a strided tensor as something that can be walked. Internal to the module.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "traindbg/base/status.h"
#include "traindbg/model/channel_statistics.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg::reduce {

inline constexpr std::size_t kMostDimensions = 64;  // no framework allows more

// Copies `count` elements that lie `stride` elements apart. They may lie at any address: a tensor can be
// a view into a byte buffer.
template <typename Word>
inline void gather(const std::byte* from, std::size_t count, std::int64_t stride, std::byte* to) noexcept {
    if (stride == 1) {
        std::memcpy(to, from, count * sizeof(Word));
        return;
    }
    const std::int64_t step = stride * static_cast<std::int64_t>(sizeof(Word));
    for (std::size_t i = 0; i < count; ++i)
        std::memcpy(to + i * sizeof(Word), from + static_cast<std::int64_t>(i) * step, sizeof(Word));
}
// The same for elements of 1, 2, 4, 8 or 16 bytes.
void gather_bytes(std::size_t element_bytes, const std::byte* from, std::size_t count, std::int64_t stride,
                  std::byte* to) noexcept;

// Without initial values: arrays of these are filled only as far as they are used.
struct Dimension {
    std::int64_t extent;
    std::int64_t stride;  // in elements
};

// The number of elements, if they lie one after the other from `view.data` on: the common case, for
// which nothing else here is needed. 0: they do not, or the view is empty or wrong.
[[nodiscard]] std::size_t flat_count(const tensor::TensorView& view) noexcept;

// A tensor whose shape and strides were checked against each other. Strides are filled in.
class CheckedView {
  public:
    // kInvalidArgument: negative extents, strides of another rank, a count that overflows, no memory.
    [[nodiscard]] static base::Result<CheckedView> make(const tensor::TensorView& view);

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::size_t rank() const noexcept { return rank_; }
    [[nodiscard]] const Dimension& dimension(std::size_t i) const noexcept { return dimensions_[i]; }
    [[nodiscard]] const std::byte* data() const noexcept { return data_; }
    [[nodiscard]] tensor::DType dtype() const noexcept { return dtype_; }
    [[nodiscard]] std::size_t element_bytes() const noexcept { return element_bytes_; }

  private:
    std::array<Dimension, kMostDimensions> dimensions_;
    std::size_t rank_ = 0;
    std::uint64_t count_ = 0;
    const std::byte* data_ = nullptr;
    tensor::DType dtype_ = tensor::DType::kUnknown;
    std::size_t element_bytes_ = 0;
};

// Which dimension of an activation counts the units; -1: the tensor is one unit.
[[nodiscard]] inline int unit_dimension(std::size_t rank) noexcept {
    return rank == 0 ? -1 : static_cast<int>(model::channel_dimension(model::Role::kActivation, rank));
}

// The elements of a view (or of one slice of it) in whatever order memory likes best: dimensions are
// sorted by stride, joined where they lie without a gap, turned around where a stride is negative. A
// dimension of stride 0 repeats the same elements; it is left out and counted in `repeats`.
struct Walk {
    const std::byte* begin = nullptr;
    std::size_t rank = 0;  // at least 1
    std::array<Dimension, kMostDimensions> dimensions;
    std::uint64_t repeats = 1;

    // `without`: a dimension to leave out, so that the walk is over one index of it; -1: none.
    // The view must not be empty.
    [[nodiscard]] static Walk any_order(const CheckedView& view, int without = -1) noexcept;
    // The same in row-major order, where only neighbouring dimensions can be joined and none turned.
    [[nodiscard]] static Walk row_major(const CheckedView& view) noexcept;

    // Calls `visit(first, count, stride)` for each run along the first dimension, until it gives
    // false. False: it did.
    template <typename Visit>
    bool for_each_run(std::size_t element_bytes, Visit&& visit) const {
        std::array<std::int64_t, kMostDimensions> index;
        std::fill_n(index.begin(), rank, 0);
        const std::byte* at = begin;
        const auto bytes = static_cast<std::int64_t>(element_bytes);
        while (true) {
            if (!visit(at, static_cast<std::size_t>(dimensions[0].extent), dimensions[0].stride))
                return false;
            std::size_t i = 1;
            for (; i < rank; ++i) {
                at += dimensions[i].stride * bytes;
                if (++index[i] < dimensions[i].extent) break;
                at -= dimensions[i].stride * dimensions[i].extent * bytes;
                index[i] = 0;
            }
            if (i >= rank) return true;
        }
    }

    // Calls `visit(first, count)` for contiguous stretches of elements that together are all elements
    // of the walk. Short or strided runs are gathered in a buffer on the stack.
    template <typename Visit>
    bool for_each_stretch(std::size_t element_bytes, Visit&& visit) const {
        switch (element_bytes) {
            case 1: return stretches<std::uint8_t>(visit);
            case 2: return stretches<std::uint16_t>(visit);
            case 4: return stretches<std::uint32_t>(visit);
            default: return stretches<std::uint64_t>(visit);
        }
    }

  private:
    static constexpr std::size_t kBuffer = 2048;   // elements
    static constexpr std::size_t kLongRun = 1024;  // worth a call of its own

    template <typename Word, typename Visit>
    bool stretches(Visit& visit) const {
        if (rank == 1 && dimensions[0].stride == 1)
            return visit(begin, static_cast<std::size_t>(dimensions[0].extent));
        alignas(64) std::array<std::byte, kBuffer * sizeof(Word)> buffer;
        std::size_t used = 0;
        const bool all =
            for_each_run(sizeof(Word), [&](const std::byte* first, std::size_t count, std::int64_t stride) {
                if (stride == 1 && count >= kLongRun) return static_cast<bool>(visit(first, count));
                while (count > 0) {
                    const std::size_t part = std::min(count, kBuffer - used);
                    gather<Word>(first, part, stride, buffer.data() + used * sizeof(Word));
                    first += static_cast<std::int64_t>(part * sizeof(Word)) * stride;
                    count -= part;
                    used += part;
                    if (used == kBuffer) {
                        used = 0;
                        if (!visit(static_cast<const std::byte*>(buffer.data()), kBuffer)) return false;
                    }
                }
                return true;
            });
        if (!all) return false;
        return used == 0 || visit(static_cast<const std::byte*>(buffer.data()), used);
    }
};

}  // namespace traindbg::reduce
