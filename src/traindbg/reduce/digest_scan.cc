#include "traindbg/reduce/digest_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/reduce/elements.h"
#include "traindbg/reduce/layout.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using base::Code;
using base::Result;
using base::Status;
using tensor::TensorView;

static_assert(std::endian::native == std::endian::little, "a fingerprint is of little-endian bytes");
// Before, XXH3 was not final: the same bytes had other hashes.
static_assert(XXH_VERSION_NUMBER >= 800, "fingerprints need xxHash 0.8 or newer");

constexpr std::size_t kWidened = 1024;  // elements that are widened at a time

// A mantissa of 1 to below 2 in size; its exponent is added to `exponent`.
double mantissa_of(double value, std::int64_t& exponent) noexcept {
    int power = 0;
    const double half = std::frexp(value, &power);
    exponent += power - 1;
    return half * 2;
}

}  // namespace

void Product::add(const KernelTable& kernel, tensor::DType dtype, const std::byte* data,
                  std::size_t n) noexcept {
    std::array<double, kWidened> doubles;
    const std::size_t bytes = tensor::byte_size(dtype);
    while (n > 0 && !has_zero_) {
        const std::size_t part = std::min(n, kWidened);
        to_doubles(kernel, dtype, data, part, doubles.data());
        add_block(kernel, doubles.data(), part);
        data += part * bytes;
        n -= part;
    }
}

void Product::add_block(const KernelTable& kernel, const double* data, std::size_t n) noexcept {
    std::size_t i = 0;
    for (; i < n && next_ != 0; ++i) add_one(data[i]);
    const std::size_t whole = (n - i) / kProductChains * kProductChains;
    if (kernel.multiply(data + i, whole, chains_.data(), exponent_)) i += whole;
    for (; i < n; ++i) add_one(data[i]);
    // Within a block a chain grows by less than 2 for each of its elements, which cannot overflow.
    for (double& chain : chains_) chain = mantissa_of(chain, exponent_);
}

void Product::add_one(double value) noexcept {
    if (value == 0) has_zero_ = true;
    else if (std::isfinite(value)) chains_[next_] *= mantissa_of(value, exponent_);
    next_ = (next_ + 1) % kProductChains;
}

double Product::value() const noexcept {
    if (has_zero_) return 0;
    std::int64_t exponent = exponent_;
    double mantissa = 1;
    for (const double chain : chains_) mantissa *= chain;
    mantissa = mantissa_of(mantissa, exponent);
    constexpr std::int64_t kBeyond = 4000;  // no double has such an exponent
    return std::ldexp(mantissa, static_cast<int>(std::clamp(exponent, -kBeyond, kBeyond)));
}

DigestScan::DigestScan(const KernelTable& kernel, const TensorView& view) noexcept
    : kernel_(kernel), view_(view) {
    XXH3_64bits_reset(&hash_);
}

void DigestScan::add(const std::byte* data, std::size_t n) noexcept {
    XXH3_64bits_update(&hash_, data, n * tensor::byte_size(view_.dtype));
    product_.add(kernel_, view_.dtype, data, n);
}

model::Digest DigestScan::finish() noexcept {
    // Type and shape are at the end, because what is in front of them does not say how long it is.
    for (const std::int64_t extent : view_.shape) XXH3_64bits_update(&hash_, &extent, sizeof(extent));
    const std::array<std::uint8_t, 2> end = {static_cast<std::uint8_t>(view_.dtype),
                                             static_cast<std::uint8_t>(view_.shape.size())};
    XXH3_64bits_update(&hash_, end.data(), end.size());
    return {XXH3_64bits_digest(&hash_), product_.value()};
}

namespace {

Result<model::Digest> digest_by(const KernelTable& kernel, const TensorView& view) {
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView checked, CheckedView::make(view));
    if (!is_real(view.dtype))
        return Status(Code::kUnsupported,
                      base::format("tensor: no digest of {}", tensor::to_string(view.dtype)));
    DigestScan scan(kernel, view);
    if (checked.count() != 0)
        Walk::row_major(checked).for_each_stretch(checked.element_bytes(),
                                                  [&](const std::byte* data, std::size_t n) {
                                                      scan.add(data, n);
                                                      return true;
                                                  });
    return scan.finish();
}

}  // namespace

Result<model::Digest> digest(const TensorView& view) { return digest_by(chosen_kernel(), view); }

Result<model::Digest> digest_with_kernel(std::string_view name, const TensorView& view) {
    TRAINDBG_ASSIGN_OR_RETURN(const KernelTable* const kernel, find_kernel(name));
    return digest_by(*kernel, view);
}

}  // namespace traindbg::reduce
