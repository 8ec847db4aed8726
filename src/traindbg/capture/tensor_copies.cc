#include "traindbg/capture/tensor_copies.h"

#include <utility>

#include "traindbg/reduce/reducer.h"

namespace traindbg::capture {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::TensorView;

constexpr std::size_t kAlignment = 64;  // what copies past the caches need

// The bytes of a view's elements, rounded up to the alignment; 0: there are none, or too many.
std::size_t room_for(const TensorView& view) noexcept {
    const std::int64_t count = view.element_count();
    std::size_t bytes = 0;
    if (view.data == nullptr || count <= 0 ||
        __builtin_mul_overflow(static_cast<std::size_t>(count), tensor::byte_size(view.dtype), &bytes) ||
        __builtin_add_overflow(bytes, kAlignment - 1, &bytes))
        return 0;
    return bytes / kAlignment * kAlignment;
}

bool lies_in_a_block(const TensorView& view) noexcept {
    return (view.strides.empty() || view.strides.size() == view.shape.size()) && view.is_dense() &&
           view.block_begin() == view.data;
}

}  // namespace

Result<TensorCopies> TensorCopies::make(std::span<const TensorView> views) {
    TensorCopies out;
    out.entries_.resize(views.size());
    std::size_t total = 0;
    for (std::size_t i = 0; i < views.size(); ++i) {
        out.entries_[i].offset = total;
        if (__builtin_add_overflow(total, room_for(views[i]), &total))
            return Status(Code::kResourceExhausted, "copies of tensors: more bytes than can be counted");
    }
    if (total == 0) return out;
    out.memory_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, total)));
    if (!out.memory_) return Status(Code::kResourceExhausted, "copies of tensors: no memory");
    for (std::size_t i = 0; i < views.size(); ++i) {
        const TensorView& view = views[i];
        if (room_for(view) == 0) continue;
        Entry& entry = out.entries_[i];
        const std::int64_t count = view.element_count();
        const std::span<std::byte> room{out.memory_.get() + entry.offset,
                                        static_cast<std::size_t>(count) * tensor::byte_size(view.dtype)};
        entry.dtype = view.dtype;
        entry.shape.assign(view.shape.begin(), view.shape.end());
        TensorView from = view;
        if (lies_in_a_block(view)) {
            entry.strides.assign(view.strides.begin(), view.strides.end());
            from = {view.data, view.dtype, {&count, 1}, {}};
        }
        entry.is_copied = reduce::copy_row_major(from, room).is_ok();
    }
    return out;
}

TensorView TensorCopies::view(std::size_t i) const noexcept {
    const Entry& entry = entries_[i];
    if (!entry.is_copied) return {};
    return {memory_.get() + entry.offset, entry.dtype, entry.shape, entry.strides};
}

}  // namespace traindbg::capture
