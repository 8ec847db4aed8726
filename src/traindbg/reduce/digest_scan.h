// A digest, made of stretches of elements as they come. Internal to the module.
//
// XXH3 was chosen for the fingerprint because a checksum is too weak to tell tensors apart by (of n tensors,
// about n²/2^33 pairs would share a CRC-32), and a cryptographic hash takes ten times as long for a promise
// that nobody here needs: a tensor is not forged.
//
// The product keeps mantissas and exponents apart, so that nothing on the way leaves the range of double.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// Nothing of the library is linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "traindbg/model/digest.h"
#include "traindbg/reduce/kernels.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg::reduce {

// The product of the finite elements of what is added. The same to the last bit however it comes in pieces.
class Product {
  public:
    Product() noexcept { chains_.fill(1.0); }
    // Elements of a real type that lie in a row, at any address.
    void add(const KernelTable& kernel, tensor::DType dtype, const std::byte* data, std::size_t n) noexcept;
    [[nodiscard]] double value() const noexcept;

  private:
    void add_block(const KernelTable& kernel, const double* data, std::size_t n) noexcept;
    void add_one(double value) noexcept;

    std::array<double, kProductChains> chains_;  // 1 to below 2 in size, between blocks
    std::int64_t exponent_ = 0;
    std::size_t next_ = 0;  // chain of the next element
    bool has_zero_ = false;
};

// The view must outlive it.
class DigestScan {
  public:
    DigestScan(const KernelTable& kernel, const tensor::TensorView& view) noexcept;
    // The next elements of the view, in row-major order, that lie in a row.
    void add(const std::byte* data, std::size_t n) noexcept;
    // Once, when all were added.
    [[nodiscard]] model::Digest finish() noexcept;

  private:
    const KernelTable& kernel_;
    const tensor::TensorView& view_;
    XXH3_state_t hash_;
    Product product_;
};

}  // namespace traindbg::reduce
