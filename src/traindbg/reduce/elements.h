// From the elements of any real type to the lanes that the kernels work on. Internal to the module.
#pragma once

#include <cstddef>
#include <cstdint>

#include "traindbg/reduce/kernels.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::reduce {

// Whether elements of this type are real numbers.
[[nodiscard]] constexpr bool is_real(tensor::DType dtype) noexcept {
    using tensor::DType;
    return dtype != DType::kUnknown && dtype != DType::kComplex64 && dtype != DType::kComplex128;
}

// Whether every value of the type is a float32.
[[nodiscard]] constexpr bool fits_float(tensor::DType dtype) noexcept {
    using tensor::DType;
    return dtype != DType::kFloat64 && dtype != DType::kInt64 && dtype != DType::kInt32 &&
           dtype != DType::kUInt64 && dtype != DType::kUInt32;
}

// Adds `n` contiguous elements of a real type. The type's own kernel reads them where they lie; types
// without one are widened block by block.
void add_elements(const KernelTable& kernel, tensor::DType dtype, const std::byte* data, std::size_t n,
                  Accumulator& into) noexcept;

// The same of `after - before`, element by element.
void add_differences(const KernelTable& kernel, tensor::DType dtype, const std::byte* before,
                     const std::byte* after, std::size_t n, DifferenceAccumulator& into) noexcept;

// As float32. Exact for floats of at most 32 bits; a double is rounded, but one that is not zero stays
// so, with its sign.
void to_floats(const KernelTable& kernel, tensor::DType dtype, const std::byte* data, std::size_t n,
               float* out) noexcept;

// As float64; 64-bit integers are rounded to the nearest.
void to_doubles(const KernelTable& kernel, tensor::DType dtype, const std::byte* data, std::size_t n,
                double* out) noexcept;

// What `floats_at` takes at a time, at most.
inline constexpr std::size_t kPart = 512;
// Elements that lie `stride` apart, as float32: where they are if possible, else in `buffer`, which has room
// for kPart.
[[nodiscard]] const float* floats_at(const KernelTable& kernel, tensor::DType dtype, const std::byte* data,
                                     std::size_t n, std::int64_t stride, float* buffer) noexcept;

// One element. A 64-bit integer is rounded to the nearest double.
[[nodiscard]] double to_double(tensor::DType dtype, const std::byte* data) noexcept;

}  // namespace traindbg::reduce
