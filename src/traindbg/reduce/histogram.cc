// Counts of values per bin of model/histogram.h.
//
// The upper eleven bits of a float32 (sign, exponent, two bits of the mantissa) are the key: each key
// lies in one bin, so the loop is a shift and an increment, and what a key means is looked up once at the
// end. Four tables are counted into in turn, because equal values follow each other in tensors, and an
// increment that waits for the store before it takes five times as long. Exact zeros share a key with
// the smallest subnormal numbers, and infinities with some NaNs: these few keys are counted apart.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>

#include "traindbg/base/format.h"
#include "traindbg/reduce/elements.h"
#include "traindbg/reduce/layout.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::Histogram;
using tensor::DType;

constexpr std::size_t kKeys = 2048;
constexpr std::size_t kTables = 4;
constexpr std::size_t kBlock = 1024;  // elements that are widened at a time
constexpr unsigned kKeyShift = 32 - 11;
constexpr std::uint32_t kSign = 0x8000'0000;
constexpr std::uint32_t kInfinityBits = 0x7F80'0000;
constexpr std::uint32_t kMostCount = UINT32_MAX - kBlock;  // a table is emptied before it is this full

// All counts that a pass needs: 44 KiB, on the heap, because a training's thread may have a small stack.
struct Counts {
    std::array<std::array<std::uint32_t, kKeys>, kTables> tables{};
    std::uint64_t in_tables = 0;
    std::uint64_t zeros[2] = {};       // by sign
    std::uint64_t infinities[2] = {};  // by sign
    std::array<std::uint64_t, model::kMostBins> bins{};

    std::uint64_t& of_bin(int bin) noexcept { return bins[static_cast<std::size_t>(bin - model::kLeastBin)]; }
};

// The bin of all values with this key, but for zeros and infinities.
int bin_of_key(std::size_t key) noexcept {
    const std::size_t magnitude = key & (kKeys / 2 - 1);
    const auto exponent = static_cast<int>(magnitude >> 2) - 127;
    int bin = 0;
    if (exponent == 128) return model::kNanBin;
    if (exponent < model::kLeastBinExponent) bin = model::kUnderflowBin;
    else if (exponent >= model::kEndBinExponent) bin = model::kOverflowBin;
    else
        bin = model::kFirstBin + (exponent - model::kLeastBinExponent) * model::kBinsPerOctave +
              static_cast<int>(magnitude & 3);
    return key >= kKeys / 2 ? -bin : bin;
}

void empty_tables(Counts& counts) noexcept {
    for (std::size_t key = 0; key < kKeys; ++key) {
        std::uint64_t sum = 0;
        for (auto& table : counts.tables) sum += std::exchange(table[key], 0);
        if (sum != 0) counts.of_bin(bin_of_key(key)) += sum;
    }
    counts.in_tables = 0;
}

// At most kBlock elements that lie in a row, at any address.
void add_block(const std::byte* data, std::size_t n, Counts& counts) noexcept {
    const auto bits_at = [data](std::size_t i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, data + i * sizeof(bits), sizeof(bits));
        return bits;
    };
    auto& [a, b, c, d] = counts.tables;
    std::size_t i = 0;
    for (; i + kTables <= n; i += kTables) {
        ++a[bits_at(i) >> kKeyShift];
        ++b[bits_at(i + 1) >> kKeyShift];
        ++c[bits_at(i + 2) >> kKeyShift];
        ++d[bits_at(i + 3) >> kKeyShift];
    }
    for (; i < n; ++i) ++a[bits_at(i) >> kKeyShift];
    // Sums of 0 and 1 that a compiler can make vectors of.
    std::uint32_t zeros = 0;
    std::uint32_t negative_zeros = 0;
    std::uint32_t infinities = 0;
    std::uint32_t negative_infinities = 0;
    for (i = 0; i < n; ++i) {
        const std::uint32_t bits = bits_at(i);
        zeros += bits == 0 ? 1U : 0U;
        negative_zeros += bits == kSign ? 1U : 0U;
        infinities += bits == kInfinityBits ? 1U : 0U;
        negative_infinities += bits == (kInfinityBits | kSign) ? 1U : 0U;
    }
    counts.zeros[0] += zeros;
    counts.zeros[1] += negative_zeros;
    counts.infinities[0] += infinities;
    counts.infinities[1] += negative_infinities;
    counts.in_tables += n;
    if (counts.in_tables >= kMostCount) empty_tables(counts);
}

// Doubles and wide integers, whose bins a float32 could miss by rounding.
template <typename Element>
void add_wide(const std::byte* data, std::size_t n, Counts& counts) noexcept {
    constexpr unsigned kShift = 52 - 2;
    constexpr int kLeastKey = (1023 + model::kLeastBinExponent) * model::kBinsPerOctave;
    constexpr int kInfiniteKey = 0x7FF * model::kBinsPerOctave;
    for (std::size_t i = 0; i < n; ++i) {
        Element element;
        std::memcpy(&element, data + i * sizeof(Element), sizeof(Element));
        const auto bits = std::bit_cast<std::uint64_t>(static_cast<double>(element));
        const std::uint64_t magnitude = bits << 1 >> 1;
        const auto key = static_cast<int>(magnitude >> kShift);
        int bin = std::clamp(key - kLeastKey + model::kFirstBin, model::kUnderflowBin, model::kOverflowBin);
        if (magnitude == 0) bin = model::kZeroBin;
        if (key >= kInfiniteKey) bin = magnitude << 12 == 0 ? model::kInfiniteBin : model::kNanBin;
        ++counts.of_bin((bits >> 63) != 0 && bin != model::kNanBin ? -bin : bin);
    }
}

void add_stretch(const KernelTable& kernel, DType dtype, const std::byte* data, std::size_t n,
                 Counts& counts) noexcept {
    switch (dtype) {
        case DType::kFloat64: return add_wide<double>(data, n, counts);
        case DType::kInt64: return add_wide<std::int64_t>(data, n, counts);
        case DType::kUInt64: return add_wide<std::uint64_t>(data, n, counts);
        case DType::kInt32: return add_wide<std::int32_t>(data, n, counts);
        case DType::kUInt32: return add_wide<std::uint32_t>(data, n, counts);
        default: break;
    }
    const std::size_t bytes = tensor::byte_size(dtype);
    std::array<float, kBlock> floats;
    // The kernels that widen halves want them aligned.
    const bool as_is = dtype == DType::kFloat32;
    const bool aligned = reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
    alignas(8) std::array<std::byte, kBlock * sizeof(float)> copy;
    while (n > 0) {
        const std::size_t part = std::min(n, kBlock);
        if (as_is) {
            add_block(data, part, counts);
        } else {
            const std::byte* from = data;
            if (!aligned) {
                std::memcpy(copy.data(), data, part * bytes);
                from = copy.data();
            }
            to_floats(kernel, dtype, from, part, floats.data());
            add_block(reinterpret_cast<const std::byte*>(floats.data()), part, counts);
        }
        data += part * bytes;
        n -= part;
    }
}

Histogram to_histogram(Counts& counts, std::uint64_t repeats) {
    empty_tables(counts);
    // Zeros were taken for the smallest numbers of their sign, infinities for NaN.
    counts.of_bin(model::kUnderflowBin) -= counts.zeros[0];
    counts.of_bin(-model::kUnderflowBin) -= counts.zeros[1];
    counts.of_bin(model::kZeroBin) += counts.zeros[0] + counts.zeros[1];
    counts.of_bin(model::kNanBin) -= counts.infinities[0] + counts.infinities[1];
    counts.of_bin(model::kInfiniteBin) += counts.infinities[0];
    counts.of_bin(-model::kInfiniteBin) += counts.infinities[1];
    Histogram out;
    out.reserve(static_cast<std::size_t>(
        std::count_if(counts.bins.begin(), counts.bins.end(), [](std::uint64_t n) { return n != 0; })));
    for (int bin = model::kLeastBin; bin <= model::kNanBin; ++bin)
        if (const std::uint64_t count = counts.of_bin(bin); count != 0)
            out.push_back({static_cast<std::int16_t>(bin), count * repeats});
    return out;
}

Result<Histogram> histogram_by(const KernelTable& kernel, const tensor::TensorView& view) {
    if (!is_real(view.dtype))
        return Status(Code::kUnsupported,
                      base::format("tensor: no histogram of {}", tensor::to_string(view.dtype)));
    const std::unique_ptr<Counts> counts(new (std::nothrow) Counts);
    if (!counts) return Status(Code::kResourceExhausted, "tensor: no memory for its histogram");
    if (const std::size_t n = flat_count(view); n > 0) {
        add_stretch(kernel, view.dtype, static_cast<const std::byte*>(view.data), n, *counts);
        return to_histogram(*counts, 1);
    }
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView checked, CheckedView::make(view));
    if (checked.count() == 0) return Histogram{};
    const Walk walk = Walk::any_order(checked);
    walk.for_each_stretch(tensor::byte_size(view.dtype), [&](const std::byte* data, std::size_t n) {
        add_stretch(kernel, view.dtype, data, n, *counts);
        return true;
    });
    return to_histogram(*counts, walk.repeats);
}

}  // namespace

Result<Histogram> histogram(const tensor::TensorView& view) { return histogram_by(chosen_kernel(), view); }

Result<Histogram> histogram_with_kernel(std::string_view name, const tensor::TensorView& view) {
    TRAINDBG_ASSIGN_OR_RETURN(const KernelTable* const kernel, find_kernel(name));
    return histogram_by(*kernel, view);
}

}  // namespace traindbg::reduce
