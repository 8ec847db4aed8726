// A whole tensor on its way to the disk: what `model::RawTensor` is for readers, with bytes that need not be
// copied again. They lie in an arena's block, which goes back when this is destroyed, or in a buffer.
#pragma once

#include <cstdint>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/tensor/dtype.h"
#include "traindbg/write/arena.h"

namespace traindbg::write {

struct WholeTensor {
    model::TensorId tensor = 0;
    tensor::DType dtype = tensor::DType::kUnknown;
    std::vector<std::int64_t> shape;
    ArenaBlock block;        // row-major, or, when this is empty:
    base::ByteBuffer owned;  // the same

    [[nodiscard]] base::ByteSpan bytes() const noexcept {
        return block.is_empty() ? base::ByteSpan(owned) : base::ByteSpan(block.bytes());
    }
};

}  // namespace traindbg::write
