#include "traindbg/tensor/tensor_view.h"

#include <cstddef>

namespace traindbg::tensor {

std::int64_t TensorView::element_count() const noexcept {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
}

bool TensorView::is_row_major() const noexcept {
    if (strides.empty()) return true;
    std::int64_t expected = 1;
    for (std::size_t i = shape.size(); i-- > 0;) {
        if (shape[i] == 0) return true;
        if (shape[i] != 1 && strides[i] != expected) return false;
        expected *= shape[i];
    }
    return true;
}

bool TensorView::is_dense() const noexcept {
    if (is_row_major()) return true;
    // Dense in some order: walking the dimensions by growing stride, each stride is the size of all
    // the dimensions before. There are few dimensions, so a quadratic walk needs no memory.
    const std::int64_t count = element_count();
    std::int64_t expected = 1;
    while (expected < count) {
        bool found = false;
        for (std::size_t i = 0; i < shape.size(); ++i) {
            const std::int64_t stride = strides[i] < 0 ? -strides[i] : strides[i];
            if (shape[i] > 1 && stride == expected) {
                expected *= shape[i];
                found = true;
                break;
            }
        }
        if (!found) return false;
    }
    return expected == count;
}

const void* TensorView::block_begin() const noexcept {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < strides.size(); ++i)
        if (strides[i] < 0 && shape[i] > 0) offset += (shape[i] - 1) * strides[i];
    return static_cast<const std::byte*>(data) + offset * static_cast<std::int64_t>(byte_size(dtype));
}

}  // namespace traindbg::tensor
