// What tensors held at one moment, to be compared with what they hold later: weights before and after an
// optimizer's step.
//
// All copies lie in one block of memory, as large as the tensors are together, which is given back with
// the object. A dense tensor is copied in the order in which it lies, any other one row-major.
// Cost: one copy at the speed of memory, and the first use of that memory.
// Thread-safety: none is needed for const members. The tensors must not change during `make`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg::capture {

class TensorCopies {
  public:
    TensorCopies() = default;

    // Views without data, and those that cannot be copied, are left out. kResourceExhausted: there is not
    // as much memory.
    [[nodiscard]] static base::Result<TensorCopies> make(std::span<const tensor::TensorView> views);

    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    // The copy of `views[i]`, borrowed from this object; without data where it was left out.
    [[nodiscard]] tensor::TensorView view(std::size_t i) const noexcept;

  private:
    struct Free {
        void operator()(std::byte* memory) const noexcept { std::free(memory); }
    };
    struct Entry {
        std::size_t offset = 0;
        tensor::DType dtype = tensor::DType::kUnknown;
        bool is_copied = false;
        std::vector<std::int64_t> shape;
        std::vector<std::int64_t> strides;  // empty: row-major
    };

    std::unique_ptr<std::byte, Free> memory_;
    std::vector<Entry> entries_;
};

}  // namespace traindbg::capture
