#include "traindbg/reduce/layout.h"

#include <string>
#include <utility>

namespace traindbg::reduce {
namespace {

using base::Code;
using base::Status;

// Appends `next` (further out) to the dimensions of a walk, joined to the last one where it continues it.
void append(Walk& walk, const Dimension& next) noexcept {
    if (walk.rank > 0) {
        Dimension& last = walk.dimensions[walk.rank - 1];
        std::int64_t end = 0;
        if (!__builtin_mul_overflow(last.stride, last.extent, &end) && end == next.stride) {
            last.extent *= next.extent;
            return;
        }
    }
    walk.dimensions[walk.rank++] = next;
}

}  // namespace

std::size_t flat_count(const tensor::TensorView& view) noexcept {
    if (view.data == nullptr) return 0;
    if (!view.strides.empty() && view.strides.size() != view.shape.size()) return 0;
    std::int64_t count = 1;
    for (std::size_t i = view.shape.size(); i-- > 0;) {
        const std::int64_t extent = view.shape[i];
        if (!view.strides.empty() && extent != 1 && view.strides[i] != count) return 0;
        if (extent <= 0 || __builtin_mul_overflow(count, extent, &count)) return 0;
    }
    return static_cast<std::size_t>(count);
}

void gather_bytes(std::size_t element_bytes, const std::byte* from, std::size_t count, std::int64_t stride,
                  std::byte* to) noexcept {
    switch (element_bytes) {
        case 1: return gather<std::uint8_t>(from, count, stride, to);
        case 2: return gather<std::uint16_t>(from, count, stride, to);
        case 4: return gather<std::uint32_t>(from, count, stride, to);
        case 8: return gather<std::uint64_t>(from, count, stride, to);
        default: return gather<std::array<std::uint64_t, 2>>(from, count, stride, to);
    }
}

base::Result<CheckedView> CheckedView::make(const tensor::TensorView& view) {
    CheckedView out;
    out.element_bytes_ = tensor::byte_size(view.dtype);
    if (out.element_bytes_ == 0) return Status(Code::kUnsupported, "tensor: unknown element type");
    if (view.shape.size() > kMostDimensions)
        return Status(Code::kUnsupported, "tensor: more than 64 dimensions");
    if (!view.strides.empty() && view.strides.size() != view.shape.size())
        return Status(Code::kInvalidArgument, "tensor: not as many strides as dimensions");
    out.rank_ = view.shape.size();
    out.data_ = static_cast<const std::byte*>(view.data);
    out.dtype_ = view.dtype;
    std::int64_t count = 1;
    bool empty = false;
    for (std::size_t i = out.rank_; i-- > 0;) {
        const std::int64_t extent = view.shape[i];
        if (extent < 0) return Status(Code::kInvalidArgument, "tensor: a dimension is negative");
        // Without strides the elements lie row-major: the stride is the count of what lies inside.
        out.dimensions_[i] = {extent, view.strides.empty() ? count : view.strides[i]};
        if (extent == 0) empty = true;
        else if (__builtin_mul_overflow(count, extent, &count))
            return Status(Code::kInvalidArgument, "tensor: more elements than can be counted");
    }
    out.count_ = empty ? 0 : static_cast<std::uint64_t>(count);
    if (out.count_ > 0 && view.data == nullptr)
        return Status(Code::kInvalidArgument, "tensor: has elements but no memory");
    return out;
}

Walk Walk::any_order(const CheckedView& view, int without) noexcept {
    std::array<Dimension, kMostDimensions> sorted;
    std::size_t size = 0;
    Walk walk;
    walk.begin = view.data();
    for (std::size_t i = 0; i < view.rank(); ++i) {
        if (static_cast<int>(i) == without) continue;
        Dimension dimension = view.dimension(i);
        if (dimension.extent == 1) continue;
        if (dimension.stride == 0) {
            walk.repeats *= static_cast<std::uint64_t>(dimension.extent);
            continue;
        }
        if (dimension.stride < 0) {
            walk.begin +=
                (dimension.extent - 1) * dimension.stride * static_cast<std::int64_t>(view.element_bytes());
            dimension.stride = -dimension.stride;
        }
        std::size_t at = size++;
        for (; at > 0 && sorted[at - 1].stride > dimension.stride; --at) sorted[at] = sorted[at - 1];
        sorted[at] = dimension;
    }
    for (std::size_t i = 0; i < size; ++i) append(walk, sorted[i]);
    if (walk.rank == 0) walk.dimensions[walk.rank++] = {1, 1};
    return walk;
}

Walk Walk::row_major(const CheckedView& view) noexcept {
    Walk walk;
    walk.begin = view.data();
    for (std::size_t i = view.rank(); i-- > 0;)
        if (view.dimension(i).extent != 1) append(walk, view.dimension(i));
    if (walk.rank == 0) walk.dimensions[walk.rank++] = {1, 1};
    return walk;
}

}  // namespace traindbg::reduce
