// A look at somebody else's tensor memory: pointer, element type, shape, strides. Never owns.
//
// The memory, the shape and the strides must stay alive and unchanged for as long as the view is
// used; capture uses a view only inside the call that it was handed to. Strides count elements, not
// bytes; they may be zero (an expanded tensor) or negative.
#pragma once

#include <cstdint>
#include <span>

#include "traindbg/tensor/dtype.h"

namespace traindbg::tensor {

struct TensorView {
    const void* data = nullptr;
    DType dtype = DType::kUnknown;
    std::span<const std::int64_t> shape;
    std::span<const std::int64_t> strides;  // empty: row-major without gaps

    [[nodiscard]] std::int64_t element_count() const noexcept;
    // Whether the elements fill one block of memory in some order of the dimensions, each exactly
    // once: then a reduction that does not care for order can read it as a flat array.
    [[nodiscard]] bool is_dense() const noexcept;
    // Whether they fill it in row-major order, so that a flat copy is the tensor.
    [[nodiscard]] bool is_row_major() const noexcept;
    // The block's first byte, which is before `data` where a stride is negative.
    [[nodiscard]] const void* block_begin() const noexcept;
};

}  // namespace traindbg::tensor
