// One source for all instruction sets: Highway includes this file again for every target, each time
// with another HWY_NAMESPACE and other compiler options in force.
//
// The choice between the targets at run time is ours and small (at the end of the file), so that
// neither the extension nor the program depends on Highway's shared library.

// The static target must be one that every CPU has. What the compiler may assume of the CPU by default
// is kept out of it, so that no code from this file that is shared with others needs more than that.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_BASELINE_SCALAR
#define HWY_DISABLE_PCLMUL_AES  // nothing here encrypts
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#elif defined(__aarch64__)
#define HWY_BASELINE_TARGETS HWY_NEON
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "traindbg/reduce/kernels.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <limits>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "traindbg/base/format.h"
#include "traindbg/reduce/kernels.h"

HWY_BEFORE_NAMESPACE();
namespace traindbg::reduce::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using DoubleTag = hn::ScalableTag<double>;
template <typename Lane>
using TagOf = hn::ScalableTag<Lane>;
template <typename Lane>
using VectorOf = hn::Vec<TagOf<Lane>>;

constexpr std::size_t kGroup = 4;  // vectors per turn of a loop
constexpr std::size_t kMostBlock = 2048;
constexpr std::size_t kMostLanes = 16;  // of float, in all the targets that are compiled
constexpr std::size_t kSlowBlock = 512;

template <typename Lane>
struct Group {
    VectorOf<Lane> a, b, c, d;
};

// What the elements in memory are and how they become lanes. `Data` is where they lie.
template <typename ElementType, typename LaneType>
struct OneArray {
    using Element = ElementType;
    using Lane = LaneType;
    using Data = const Element*;
    using Sums = Accumulator;
    static constexpr bool kIsDifference = false;
};

template <typename Float>
struct Plain : OneArray<Float, Float> {
    using Element = Float;
    using Lane = Float;
    static HWY_INLINE Group<Lane> load_group(const Element* data) {
        const TagOf<Lane> tag;
        const std::size_t lanes = hn::Lanes(tag);
        return {hn::LoadU(tag, data), hn::LoadU(tag, data + lanes), hn::LoadU(tag, data + 2 * lanes),
                hn::LoadU(tag, data + 3 * lanes)};
    }
    static HWY_INLINE void widen(const Element* data, std::size_t n, Lane* out) {
        std::memcpy(out, data, n * sizeof(Lane));
    }
};

HWY_INLINE hn::Vec<FloatTag> widen_brain(const std::uint16_t* data) {
    const hn::Rebind<std::uint32_t, FloatTag> words;
    const hn::Rebind<std::uint16_t, FloatTag> halves;
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(halves, data))));
}

HWY_INLINE hn::Vec<FloatTag> widen_half(const std::uint16_t* data) {
    const FloatTag tag;
    const hn::Rebind<std::uint16_t, FloatTag> bits;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSE4
    // No instruction for it, and Highway's stand-in takes infinities and NaN for numbers.
    const hn::RebindToSigned<FloatTag> words;
    const auto word =
        hn::BitCast(words, hn::PromoteTo(hn::RebindToUnsigned<FloatTag>(), hn::LoadU(bits, data)));
    const auto sign = hn::ShiftLeft<16>(hn::And(word, hn::Set(words, 0x8000)));
    const auto size = hn::And(word, hn::Set(words, 0x7FFF));
    const auto shifted = hn::ShiftLeft<13>(size);
    const auto normal = hn::Add(shifted, hn::Set(words, (127 - 15) << 23));
    const auto special = hn::Or(shifted, hn::Set(words, 0x7F800000));
    const auto subnormal = hn::BitCast(words, hn::Mul(hn::ConvertTo(tag, size), hn::Set(tag, 0x1p-24F)));
    const auto is_special = hn::Gt(size, hn::Set(words, 0x7BFF));
    const auto is_subnormal = hn::Lt(size, hn::Set(words, 0x0400));
    const auto value = hn::IfThenElse(is_special, special, hn::IfThenElse(is_subnormal, subnormal, normal));
    return hn::BitCast(tag, hn::Or(value, sign));
#else
    const hn::Rebind<hwy::float16_t, FloatTag> halves;
    return hn::PromoteTo(tag, hn::BitCast(halves, hn::LoadU(bits, data)));
#endif
}

// Widens any number of elements with a function that takes a vector full of them.
template <typename WidenVector>
HWY_NOINLINE void widen_all(const std::uint16_t* data, std::size_t n, float* out, WidenVector widen_vector) {
    const FloatTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) hn::StoreU(widen_vector(data + i), tag, out + i);
    if (i == n) return;
    std::array<std::uint16_t, kMostLanes> rest{};
    HWY_ALIGN std::array<float, kMostLanes> wide;
    std::memcpy(rest.data(), data + i, (n - i) * sizeof(std::uint16_t));
    hn::Store(widen_vector(rest.data()), tag, wide.data());
    std::memcpy(out + i, wide.data(), (n - i) * sizeof(float));
}

struct Brain : OneArray<std::uint16_t, float> {
    static HWY_INLINE Group<float> load_group(const Element* data) {
        const FloatTag tag;
        const std::size_t lanes = hn::Lanes(tag);
#if HWY_TARGET == HWY_SCALAR
        return {widen_brain(data), widen_brain(data + lanes), widen_brain(data + 2 * lanes),
                widen_brain(data + 3 * lanes)};
#else
        // The order of the elements does not matter: odd ones are a mask away, even ones a shift.
        const hn::Repartition<std::uint32_t, FloatTag> words;
        const hn::Repartition<std::uint16_t, FloatTag> halves;
        const auto upper = hn::Set(words, 0xFFFF0000U);
        const auto first = hn::BitCast(words, hn::LoadU(halves, data));
        const auto second = hn::BitCast(words, hn::LoadU(halves, data + 2 * lanes));
        return {hn::BitCast(tag, hn::ShiftLeft<16>(first)), hn::BitCast(tag, hn::And(first, upper)),
                hn::BitCast(tag, hn::ShiftLeft<16>(second)), hn::BitCast(tag, hn::And(second, upper))};
#endif
    }
    static HWY_INLINE void widen(const Element* data, std::size_t n, float* out) {
        widen_all(data, n, out, [](const std::uint16_t* from) HWY_ATTR { return widen_brain(from); });
    }
};

struct Half : OneArray<std::uint16_t, float> {
    static HWY_INLINE Group<float> load_group(const Element* data) {
        const std::size_t lanes = hn::Lanes(FloatTag());
        return {widen_half(data), widen_half(data + lanes), widen_half(data + 2 * lanes),
                widen_half(data + 3 * lanes)};
    }
    static HWY_INLINE void widen(const Element* data, std::size_t n, float* out) {
        widen_all(data, n, out, [](const std::uint16_t* from) HWY_ATTR { return widen_half(from); });
    }
};

// Two arrays of the same type: an element is what the second has more than the first.
template <typename Inner>
struct Difference {
    using Array = Inner;
    using Lane = typename Inner::Lane;
    using Sums = DifferenceAccumulator;
    static constexpr bool kIsDifference = true;
    struct Data {
        const typename Inner::Element* before;
        const typename Inner::Element* after;

        Data operator+(std::size_t n) const { return {before + n, after + n}; }
        Data& operator+=(std::size_t n) { return *this = *this + n; }
    };

    // Adds the squares of the first array to `squares`.
    static HWY_INLINE Group<Lane> load_group(const Data& data, VectorOf<Lane>& squares) {
        const Group<Lane> x = Inner::load_group(data.before);
        const Group<Lane> y = Inner::load_group(data.after);
        squares = hn::Add(squares, hn::Add(hn::MulAdd(x.a, x.a, hn::Mul(x.b, x.b)),
                                           hn::MulAdd(x.c, x.c, hn::Mul(x.d, x.d))));
        return {hn::Sub(y.a, x.a), hn::Sub(y.b, x.b), hn::Sub(y.c, x.c), hn::Sub(y.d, x.d)};
    }
    static HWY_INLINE Group<Lane> load_group(const Data& data) {
        const Group<Lane> x = Inner::load_group(data.before);
        const Group<Lane> y = Inner::load_group(data.after);
        return {hn::Sub(y.a, x.a), hn::Sub(y.b, x.b), hn::Sub(y.c, x.c), hn::Sub(y.d, x.d)};
    }
    // Less than a group. `before` gets the first array.
    static HWY_INLINE void widen(const Data& data, std::size_t n, Lane* out, Lane* before) {
        Inner::widen(data.before, n, before);
        Inner::widen(data.after, n, out);
        for (std::size_t i = 0; i < n; ++i) out[i] -= before[i];
    }
    static HWY_INLINE void widen(const Data& data, std::size_t n, Lane* out) {
        HWY_ALIGN std::array<Lane, kGroup * kMostLanes> before;
        widen(data, n, out, before.data());
    }
};

template <typename Lane>
HWY_INLINE double sum_of(VectorOf<Lane> v) {
    const TagOf<Lane> tag;
    return static_cast<double>(hn::GetLane(hn::SumOfLanes(tag, v)));
}

// At most kSlowBlock doubles, any of which may be NaN or infinite. `data` has room for padding up to
// a whole vector.
HWY_INLINE void add_masked(double* data, std::size_t n, Accumulator& into) {
    const DoubleTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    std::size_t padded = n;
    // Padding with NaN leaves every result but the count of NaN alone.
    for (; padded % lanes != 0; ++padded) data[padded] = std::numeric_limits<double>::quiet_NaN();

    double shift = into.mean;
    if (into.finite == 0) {
        std::size_t first = 0;
        while (first < n && !(data[first] - data[first] == 0)) ++first;
        shift = first < n ? data[first] : 0;
    }
    const auto infinity = hn::Set(tag, std::numeric_limits<double>::infinity());
    const auto none = hn::Zero(tag);
    const auto shifts = hn::Set(tag, shift);
    auto l1 = none;
    auto sum = none;
    auto squares = none;
    auto smallest = infinity;
    auto largest = hn::Neg(infinity);
    std::size_t finite = 0;
    std::size_t nan = 0;
    std::size_t positive = 0;
    std::size_t zero = 0;
    for (std::size_t i = 0; i < padded; i += lanes) {
        const auto x = hn::LoadU(tag, data + i);
        const auto size = hn::Abs(x);
        const auto is_finite = hn::Lt(size, infinity);
        finite += hn::CountTrue(tag, is_finite);
        nan += hn::CountTrue(tag, hn::IsNaN(x));
        positive += hn::CountTrue(tag, hn::Eq(x, infinity));
        zero += hn::CountTrue(tag, hn::Eq(x, none));
        l1 = hn::Add(l1, hn::IfThenElseZero(is_finite, size));
        const auto distance = hn::IfThenElseZero(is_finite, hn::Sub(x, shifts));
        sum = hn::Add(sum, distance);
        squares = hn::MulAdd(distance, distance, squares);
        smallest = hn::Min(smallest, hn::IfThenElse(is_finite, x, infinity));
        largest = hn::Max(largest, hn::IfThenElse(is_finite, x, hn::Neg(infinity)));
    }
    nan -= padded - n;
    into.count += n;
    into.nan += nan;
    into.positive_infinite += positive;
    into.negative_infinite += n - finite - nan - positive;
    into.zero += zero;
    if (finite == 0) return;
    into.min = std::min(into.min, hn::GetLane(hn::MinOfLanes(tag, smallest)));
    into.max = std::max(into.max, hn::GetLane(hn::MaxOfLanes(tag, largest)));
    into.l1 += sum_of<double>(l1);
    const auto size = static_cast<double>(finite);
    const double total = sum_of<double>(sum);
    into.join_moments(size, shift + total / size,
                      std::max(0.0, sum_of<double>(squares) - total * (total / size)));
}

HWY_INLINE void to_doubles(const double* lanes, std::size_t n, double* out) {
    std::memcpy(out, lanes, n * sizeof(double));
}
HWY_INLINE void to_doubles(const float* lanes, std::size_t n, double* out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<double>(lanes[i]);
}

// At most kSlowBlock elements as doubles.
template <typename Source>
HWY_INLINE void widen_slowly(const typename Source::Data& data, std::size_t n, double* out) {
    HWY_ALIGN std::array<typename Source::Lane, kSlowBlock> lanes;
    Source::widen(data, n, lanes.data());
    to_doubles(lanes.data(), n, out);
}
template <typename Inner>
HWY_INLINE void subtract_slowly(const typename Difference<Inner>::Data& data, std::size_t n, double* out,
                                DifferenceAccumulator& into) {
    HWY_ALIGN std::array<double, kSlowBlock> before;
    widen_slowly<Inner>(data.before, n, before.data());
    widen_slowly<Inner>(data.after, n, out);
    double squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double square = before[i] * before[i];
        squares += before[i] - before[i] == 0 ? square : 0.0;
        out[i] -= before[i];
    }
    into.before_squares += squares;
}

template <typename Source>
HWY_NOINLINE void add_slowly(typename Source::Data data, std::size_t n, typename Source::Sums& into) {
    HWY_ALIGN std::array<double, kSlowBlock + kMostLanes> doubles;
    while (n > 0) {
        const std::size_t part = std::min(n, kSlowBlock);
        if constexpr (Source::kIsDifference)
            subtract_slowly<typename Source::Array>(data, part, doubles.data(), into);
        else widen_slowly<Source>(data, part, doubles.data());
        add_masked(doubles.data(), part, into);
        data += part;
        n -= part;
    }
}

// The mean of a block, roughly. All of the block takes part (but an incomplete last group), so that one
// large element cannot make the shift larger than what the block's own sum of |x| allows.
template <typename Source>
HWY_INLINE typename Source::Lane shift_for(const typename Source::Data& data, std::size_t n) {
    using Lane = typename Source::Lane;
    const TagOf<Lane> tag;
    const std::size_t lanes = hn::Lanes(tag);
    const std::size_t step = kGroup * lanes;
    auto sum = hn::Zero(tag);
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        const Group<Lane> x = Source::load_group(data + i);
        sum = hn::Add(sum, hn::Add(hn::Add(x.a, x.b), hn::Add(x.c, x.d)));
    }
    if (i == 0) {
        HWY_ALIGN std::array<Lane, kGroup * kMostLanes> few;
        Source::widen(data, n, few.data());
        for (i = n; i % lanes != 0; ++i) few[i] = 0;
        for (std::size_t k = 0; k < n; k += lanes) sum = hn::Add(sum, hn::Load(tag, few.data() + k));
        i = n;
    }
    return static_cast<Lane>(sum_of<Lane>(sum) / static_cast<double>(i));
}

// One block, not empty. False, and nothing added: it holds something that is not
// finite, or is so large or so small that squares of lanes are not to be trusted.
template <typename Source>
HWY_INLINE bool add_block(const typename Source::Data& data, std::size_t n, typename Source::Sums& into) {
    using Lane = typename Source::Lane;
    const TagOf<Lane> tag;
    const hn::RebindToSigned<TagOf<Lane>> integers;
    const std::size_t lanes = hn::Lanes(tag);
    const std::size_t step = kGroup * lanes;
    const Lane shift = into.finite > 0 ? static_cast<Lane>(into.mean) : shift_for<Source>(data, n);
    const auto shifts = hn::Set(tag, shift);
    const auto none = hn::Zero(tag);
    auto l1 = none;
    auto sum = none;
    Group<Lane> squares{none, none, none, none};
    [[maybe_unused]] auto before = none;  // the squares of the first of two arrays
    auto smallest = hn::Set(tag, std::numeric_limits<Lane>::infinity());
    auto largest = hn::Neg(smallest);
    std::size_t zero = 0;
#if HWY_TARGET > HWY_AVX3  // a mask is a vector of -1: adding it up is cheaper than counting it
    auto zeros = hn::Zero(integers);
#endif
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        const Group<Lane> x = [&]() HWY_ATTR {
            if constexpr (Source::kIsDifference) return Source::load_group(data + i, before);
            else return Source::load_group(data + i);
        }();
        l1 = hn::Add(l1, hn::Add(hn::Add(hn::Abs(x.a), hn::Abs(x.b)), hn::Add(hn::Abs(x.c), hn::Abs(x.d))));
        smallest = hn::Min(smallest, hn::Min(hn::Min(x.a, x.b), hn::Min(x.c, x.d)));
        largest = hn::Max(largest, hn::Max(hn::Max(x.a, x.b), hn::Max(x.c, x.d)));
#if HWY_TARGET > HWY_AVX3
        const auto is_zero = [&](auto v) HWY_ATTR {
            return hn::VecFromMask(integers, hn::RebindMask(integers, hn::Eq(v, none)));
        };
        zeros =
            hn::Sub(zeros, hn::Add(hn::Add(is_zero(x.a), is_zero(x.b)), hn::Add(is_zero(x.c), is_zero(x.d))));
#else
        zero += hn::CountTrue(tag, hn::Eq(x.a, none)) + hn::CountTrue(tag, hn::Eq(x.b, none)) +
                hn::CountTrue(tag, hn::Eq(x.c, none)) + hn::CountTrue(tag, hn::Eq(x.d, none));
#endif
        const Group<Lane> y{hn::Sub(x.a, shifts), hn::Sub(x.b, shifts), hn::Sub(x.c, shifts),
                            hn::Sub(x.d, shifts)};
        sum = hn::Add(sum, hn::Add(hn::Add(y.a, y.b), hn::Add(y.c, y.d)));
        squares.a = hn::MulAdd(y.a, y.a, squares.a);
        squares.b = hn::MulAdd(y.b, y.b, squares.b);
        squares.c = hn::MulAdd(y.c, y.c, squares.c);
        squares.d = hn::MulAdd(y.d, y.d, squares.d);
    }
    if (const std::size_t rest = n - i; rest > 0) {
        HWY_ALIGN std::array<Lane, kGroup * kMostLanes> tail;
        if constexpr (Source::kIsDifference) {
            HWY_ALIGN std::array<Lane, kGroup * kMostLanes> first;
            Source::widen(data + i, rest, tail.data(), first.data());
            for (std::size_t k = rest; k % lanes != 0; ++k) first[k] = 0;
            for (std::size_t k = 0; k < rest; k += lanes) {
                const auto x = hn::Load(tag, first.data() + k);
                before = hn::MulAdd(x, x, before);
            }
        } else {
            Source::widen(data + i, rest, tail.data());
        }
        // Lanes without an element repeat one: harmless to the extremes, masked out of the sums.
        for (std::size_t k = rest; k % lanes != 0; ++k) tail[k] = tail[0];
        for (std::size_t k = 0; k < rest; k += lanes) {
            const auto here = hn::FirstN(tag, std::min(lanes, rest - k));
            const auto x = hn::Load(tag, tail.data() + k);
            l1 = hn::Add(l1, hn::IfThenElseZero(here, hn::Abs(x)));
            smallest = hn::Min(smallest, x);
            largest = hn::Max(largest, x);
            zero += hn::CountTrue(tag, hn::And(here, hn::Eq(x, none)));
            const auto y = hn::IfThenElseZero(here, hn::Sub(x, shifts));
            sum = hn::Add(sum, y);
            squares.a = hn::MulAdd(y, y, squares.a);
        }
    }
#if HWY_TARGET > HWY_AVX3
    zero += static_cast<std::size_t>(hn::GetLane(hn::SumOfLanes(integers, zeros)));
#endif
    const double block_l1 = sum_of<Lane>(l1);
    const double block_squares =
        sum_of<Lane>(hn::Add(hn::Add(squares.a, squares.b), hn::Add(squares.c, squares.d)));
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    if (!(block_l1 < kInfinity) || !(block_squares < kInfinity)) return false;
    const Lane block_min = hn::GetLane(hn::MinOfLanes(tag, smallest));
    const Lane block_max = hn::GetLane(hn::MaxOfLanes(tag, largest));
    if constexpr (sizeof(Lane) == sizeof(float)) {
        // Below this, squares that were flushed to zero could weigh more than 1e-6 of the sum.
        constexpr double kLeastSquares = 1e-28;
        if (block_squares < kLeastSquares && block_min < block_max) return false;
        if constexpr (Source::kIsDifference) {
            const double before_squares = sum_of<Lane>(before);
            if (!(before_squares < kInfinity) || before_squares < kLeastSquares) return false;
        }
    }
    if constexpr (Source::kIsDifference) into.before_squares += sum_of<Lane>(before);
    const auto size = static_cast<double>(n);
    const double total = sum_of<Lane>(sum);
    into.count += n;
    into.zero += zero;
    into.min = std::min(into.min, static_cast<double>(block_min));
    into.max = std::max(into.max, static_cast<double>(block_max));
    into.l1 += block_l1;
    into.join_moments(size, static_cast<double>(shift) + total / size,
                      std::max(0.0, block_squares - total * (total / size)));
    return true;
}

template <typename Source>
HWY_INLINE void add_all(typename Source::Data data, std::size_t n, typename Source::Sums& into) {
    // At most 32 turns of the loop, and so additions per lane.
    const std::size_t block = std::min(kMostBlock, 32 * kGroup * hn::Lanes(TagOf<typename Source::Lane>()));
    while (n > 0) {
        const std::size_t part = std::min(n, block);
        if (!add_block<Source>(data, part, into)) add_slowly<Source>(data, part, into);
        data += part;
        n -= part;
    }
}

void add_float32(const float* data, std::size_t n, Accumulator& into) noexcept {
    add_all<Plain<float>>(data, n, into);
}
void add_float64(const double* data, std::size_t n, Accumulator& into) noexcept {
    add_all<Plain<double>>(data, n, into);
}
void add_float16(const std::uint16_t* data, std::size_t n, Accumulator& into) noexcept {
    add_all<Half>(data, n, into);
}
void add_bfloat16(const std::uint16_t* data, std::size_t n, Accumulator& into) noexcept {
    add_all<Brain>(data, n, into);
}
void add_difference_float32(const float* before, const float* after, std::size_t n,
                            DifferenceAccumulator& into) noexcept {
    add_all<Difference<Plain<float>>>({before, after}, n, into);
}
void add_difference_float64(const double* before, const double* after, std::size_t n,
                            DifferenceAccumulator& into) noexcept {
    add_all<Difference<Plain<double>>>({before, after}, n, into);
}
void add_difference_float16(const std::uint16_t* before, const std::uint16_t* after, std::size_t n,
                            DifferenceAccumulator& into) noexcept {
    add_all<Difference<Half>>({before, after}, n, into);
}
void add_difference_bfloat16(const std::uint16_t* before, const std::uint16_t* after, std::size_t n,
                             DifferenceAccumulator& into) noexcept {
    add_all<Difference<Brain>>({before, after}, n, into);
}
void widen_float16(const std::uint16_t* data, std::size_t n, float* out) noexcept {
    Half::widen(data, n, out);
}
void widen_bfloat16(const std::uint16_t* data, std::size_t n, float* out) noexcept {
    Brain::widen(data, n, out);
}

// max(v, best) where a NaN in `v` counts as nothing, on every instruction set.
HWY_INLINE hn::Vec<FloatTag> raised(hn::Vec<FloatTag> v, hn::Vec<FloatTag> best) {
    return hn::IfThenElse(hn::Gt(v, best), v, best);
}

float largest(const float* data, std::size_t n) noexcept {
    const FloatTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    const std::size_t step = kGroup * lanes;
    const auto lowest = hn::Set(tag, -std::numeric_limits<float>::infinity());
    Group<float> best{lowest, lowest, lowest, lowest};
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        best.a = raised(hn::LoadU(tag, data + i), best.a);
        best.b = raised(hn::LoadU(tag, data + i + lanes), best.b);
        best.c = raised(hn::LoadU(tag, data + i + 2 * lanes), best.c);
        best.d = raised(hn::LoadU(tag, data + i + 3 * lanes), best.d);
    }
    // Not by MaxOfLanes, which in some targets takes infinities for the lowest finite numbers.
    HWY_ALIGN std::array<float, kMostLanes> maxima;
    hn::Store(hn::Max(hn::Max(best.a, best.b), hn::Max(best.c, best.d)), tag, maxima.data());
    float result = *std::max_element(maxima.begin(), maxima.begin() + static_cast<std::ptrdiff_t>(lanes));
    for (; i < n; ++i) result = data[i] > result ? data[i] : result;
    return result;
}

void raise(const float* data, std::size_t n, float* maxima) noexcept {
    const FloatTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes)
        hn::StoreU(raised(hn::LoadU(tag, data + i), hn::LoadU(tag, maxima + i)), tag, maxima + i);
    for (; i < n; ++i) maxima[i] = data[i] > maxima[i] ? data[i] : maxima[i];
}

void count_outside(const float* data, std::size_t n, float low, float high, std::uint64_t& below,
                   std::uint64_t& above) noexcept {
    const FloatTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    const auto lows = hn::Set(tag, low);
    const auto highs = hn::Set(tag, high);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto x = hn::LoadU(tag, data + i);
        below += hn::CountTrue(tag, hn::Lt(x, lows));
        above += hn::CountTrue(tag, hn::Gt(x, highs));
    }
    for (; i < n; ++i) {
        below += data[i] < low ? 1 : 0;
        above += data[i] > high ? 1 : 0;
    }
}

void find_extremes(const float* data, std::size_t n, Extremes& into) noexcept {
    const FloatTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    const std::size_t step = 2 * lanes;
    const auto none = hn::Zero(tag);
    const auto infinity = hn::Set(tag, std::numeric_limits<float>::infinity());
    const auto lowest = hn::Neg(infinity);
    auto first_min = infinity;
    auto second_min = infinity;
    auto first_max = lowest;
    auto second_max = lowest;
    std::size_t zeros = 0;
    std::size_t i = 0;
    for (; i + step <= n; i += step) {
        const auto a = hn::LoadU(tag, data + i);
        const auto b = hn::LoadU(tag, data + i + lanes);
        const auto a_is_finite = hn::Lt(hn::Abs(a), infinity);
        const auto b_is_finite = hn::Lt(hn::Abs(b), infinity);
        first_min = hn::Min(first_min, hn::IfThenElse(a_is_finite, a, infinity));
        second_min = hn::Min(second_min, hn::IfThenElse(b_is_finite, b, infinity));
        first_max = hn::Max(first_max, hn::IfThenElse(a_is_finite, a, lowest));
        second_max = hn::Max(second_max, hn::IfThenElse(b_is_finite, b, lowest));
        zeros += hn::CountTrue(tag, hn::Eq(a, none)) + hn::CountTrue(tag, hn::Eq(b, none));
    }
    // Not by MinOfLanes, which in some targets takes infinities for the largest finite numbers.
    HWY_ALIGN std::array<float, kMostLanes> minima;
    HWY_ALIGN std::array<float, kMostLanes> maxima;
    hn::Store(hn::Min(first_min, second_min), tag, minima.data());
    hn::Store(hn::Max(first_max, second_max), tag, maxima.data());
    for (std::size_t lane = 0; lane < lanes; ++lane) {
        into.min = std::min(into.min, minima[lane]);
        into.max = std::max(into.max, maxima[lane]);
    }
    for (; i < n; ++i) {
        const float x = data[i];
        zeros += x == 0 ? 1 : 0;
        if (!(x - x == 0)) continue;
        into.min = std::min(into.min, x);
        into.max = std::max(into.max, x);
    }
    into.zeros += zeros;
}

void widen_extremes(const float* data, std::size_t n, float* minima, float* maxima,
                    std::uint32_t* zeros) noexcept {
    const FloatTag tag;
    const hn::RebindToSigned<FloatTag> integers;
    const std::size_t lanes = hn::Lanes(tag);
    const auto none = hn::Zero(tag);
    const auto infinity = hn::Set(tag, std::numeric_limits<float>::infinity());
    const auto lowest = hn::Neg(infinity);
    auto* const counts = reinterpret_cast<std::int32_t*>(zeros);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        const auto x = hn::LoadU(tag, data + i);
        const auto is_finite = hn::Lt(hn::Abs(x), infinity);
        hn::StoreU(hn::Min(hn::LoadU(tag, minima + i), hn::IfThenElse(is_finite, x, infinity)), tag,
                   minima + i);
        hn::StoreU(hn::Max(hn::LoadU(tag, maxima + i), hn::IfThenElse(is_finite, x, lowest)), tag,
                   maxima + i);
        const auto is_zero = hn::VecFromMask(integers, hn::RebindMask(integers, hn::Eq(x, none)));
        hn::StoreU(hn::Sub(hn::LoadU(integers, counts + i), is_zero), integers, counts + i);
    }
    for (; i < n; ++i) {
        const float x = data[i];
        zeros[i] += x == 0 ? 1U : 0U;
        if (!(x - x == 0)) continue;
        minima[i] = std::min(minima[i], x);
        maxima[i] = std::max(maxima[i], x);
    }
}

// As many floats as a vector of doubles has lanes.
using NarrowTag = hn::Rebind<float, DoubleTag>;

HWY_INLINE hn::Vec<DoubleTag> load_wide(const float* data) {
    return hn::PromoteTo(DoubleTag(), hn::LoadU(NarrowTag(), data));
}

double add_to_columns(const float* data, std::size_t n, double* sums) noexcept {
    const DoubleTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    auto first = hn::Zero(tag);
    auto second = hn::Zero(tag);
    std::size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        const auto a = load_wide(data + i);
        const auto b = load_wide(data + i + lanes);
        hn::StoreU(hn::Add(hn::LoadU(tag, sums + i), a), tag, sums + i);
        hn::StoreU(hn::Add(hn::LoadU(tag, sums + i + lanes), b), tag, sums + i + lanes);
        first = hn::MulAdd(a, a, first);
        second = hn::MulAdd(b, b, second);
    }
    double squares = sum_of<double>(hn::Add(first, second));
    for (; i < n; ++i) {
        const auto x = static_cast<double>(data[i]);
        sums[i] += x;
        squares += x * x;
    }
    return squares;
}

void add_scaled(const float* data, std::size_t n, double factor, double* sums) noexcept {
    const DoubleTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    const auto factors = hn::Set(tag, factor);
    std::size_t i = 0;
    for (; i + lanes <= n; i += lanes)
        hn::StoreU(hn::MulAdd(load_wide(data + i), factors, hn::LoadU(tag, sums + i)), tag, sums + i);
    for (; i < n; ++i) sums[i] += static_cast<double>(data[i]) * factor;
}

double centre(const float* data, std::size_t n, const double* means, float* out) noexcept {
    const DoubleTag tag;
    const NarrowTag narrow;
    const std::size_t lanes = hn::Lanes(tag);
    auto first = hn::Zero(tag);
    auto second = hn::Zero(tag);
    std::size_t i = 0;
    for (; i + 2 * lanes <= n; i += 2 * lanes) {
        const auto a = hn::Sub(load_wide(data + i), hn::LoadU(tag, means + i));
        const auto b = hn::Sub(load_wide(data + i + lanes), hn::LoadU(tag, means + i + lanes));
        hn::StoreU(hn::DemoteTo(narrow, a), narrow, out + i);
        hn::StoreU(hn::DemoteTo(narrow, b), narrow, out + i + lanes);
        first = hn::MulAdd(a, a, first);
        second = hn::MulAdd(b, b, second);
    }
    double squares = sum_of<double>(hn::Add(first, second));
    for (; i < n; ++i) {
        const double x = static_cast<double>(data[i]) - means[i];
        out[i] = static_cast<float>(x);
        squares += x * x;
    }
    return squares;
}

// The squares of the products of four rows with two, added up. Eight sums at a time are as many as an AVX2
// CPU has registers for.
HWY_INLINE double squares_of_block(const float* four, const float* two, std::size_t columns) {
    const FloatTag tag;
    const std::size_t lanes = hn::Lanes(tag);
    auto a0 = hn::Zero(tag), a1 = a0, b0 = a0, b1 = a0, c0 = a0, c1 = a0, d0 = a0, d1 = a0;
    for (std::size_t i = 0; i < columns; i += lanes) {
        const auto x = hn::LoadU(tag, two + i);
        const auto y = hn::LoadU(tag, two + columns + i);
        const auto a = hn::LoadU(tag, four + i);
        const auto b = hn::LoadU(tag, four + columns + i);
        const auto c = hn::LoadU(tag, four + 2 * columns + i);
        const auto d = hn::LoadU(tag, four + 3 * columns + i);
        a0 = hn::MulAdd(a, x, a0);
        a1 = hn::MulAdd(a, y, a1);
        b0 = hn::MulAdd(b, x, b0);
        b1 = hn::MulAdd(b, y, b1);
        c0 = hn::MulAdd(c, x, c0);
        c1 = hn::MulAdd(c, y, c1);
        d0 = hn::MulAdd(d, x, d0);
        d1 = hn::MulAdd(d, y, d1);
    }
    const auto square = [](auto v) HWY_ATTR {
        const double sum = sum_of<float>(v);
        return sum * sum;
    };
    return square(a0) + square(a1) + square(b0) + square(b1) + square(c0) + square(c1) + square(d0) +
           square(d1);
}

double squared_products(const float* table, std::size_t rows, std::size_t columns) noexcept {
    double total = 0;
    for (std::size_t i = 0; i < rows; i += kRowBlock) {
        const float* const four = table + i * columns;
        for (std::size_t j = i; j < i + kRowBlock; j += 2)
            total += squares_of_block(four, table + j * columns, columns);
        double beside = 0;  // which comes twice: the table of products is symmetric
        for (std::size_t j = i + kRowBlock; j < rows; j += 2)
            beside += squares_of_block(four, table + j * columns, columns);
        total += 2 * beside;
    }
    return total;
}

bool multiply(const double* data, std::size_t n, double* chains, std::int64_t& exponent) noexcept {
    const DoubleTag tag;
    const hn::RebindToUnsigned<DoubleTag> integers;
    const std::size_t lanes = hn::Lanes(tag);
    const auto least = hn::Set(tag, std::numeric_limits<double>::min());
    const auto infinity = hn::Set(tag, std::numeric_limits<double>::infinity());
    const auto sign_and_mantissa = hn::Set(integers, std::uint64_t{0x800F'FFFF'FFFF'FFFF});
    const auto exponent_bits = hn::Set(integers, std::uint64_t{0x7FF0'0000'0000'0000});
    const auto one = hn::Set(integers, std::uint64_t{0x3FF0'0000'0000'0000});
    std::array<double, kProductChains> products;
    auto exponents = hn::Zero(integers);
    auto odd = hn::MaskFromVec(hn::Zero(tag));
    const auto multiply_by = [&](const double* at, auto& product) HWY_ATTR {
        const auto x = hn::LoadU(tag, at);
        const auto size = hn::Abs(x);
        odd = hn::Or(odd, hn::Or(hn::Lt(size, least), hn::Not(hn::Lt(size, infinity))));
        const auto bits = hn::BitCast(integers, x);
        exponents = hn::Add(exponents, hn::ShiftRight<52>(hn::And(bits, exponent_bits)));
        product = hn::Mul(product, hn::BitCast(tag, hn::Or(hn::And(bits, sign_and_mantissa), one)));
    };
    for (std::size_t chain = 0; chain < kProductChains; chain += 2 * lanes) {
        auto a = hn::LoadU(tag, chains + chain);
        auto b = hn::LoadU(tag, chains + chain + lanes);
        for (std::size_t i = chain; i < n; i += kProductChains) {
            multiply_by(data + i, a);
            multiply_by(data + i + lanes, b);
        }
        hn::StoreU(a, tag, products.data() + chain);
        hn::StoreU(b, tag, products.data() + chain + lanes);
    }
    if (!hn::AllFalse(tag, odd)) return false;
    std::memcpy(chains, products.data(), sizeof(products));
    std::array<std::uint64_t, kMostLanes> sums{};
    hn::StoreU(exponents, integers, sums.data());
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < lanes; ++i) sum += static_cast<std::int64_t>(sums[i]);
    exponent += sum - static_cast<std::int64_t>(n) * 1023;
    return true;
}

void stream(const std::byte* from, std::size_t bytes, std::byte* to) noexcept {
    using Byte = std::uint8_t;
    const hn::ScalableTag<Byte> tag;
    const std::size_t lanes = hn::Lanes(tag);
    const std::size_t step = kGroup * lanes;
    const auto* source = reinterpret_cast<const Byte*>(from);
    auto* target = reinterpret_cast<Byte*>(to);
    std::size_t i = 0;
    if (lanes >= 16) {  // a vector of one byte is no vector
        for (; i + step <= bytes; i += step) {
            const auto a = hn::LoadU(tag, source + i);
            const auto b = hn::LoadU(tag, source + i + lanes);
            const auto c = hn::LoadU(tag, source + i + 2 * lanes);
            const auto d = hn::LoadU(tag, source + i + 3 * lanes);
            hn::Stream(a, tag, target + i);
            hn::Stream(b, tag, target + i + lanes);
            hn::Stream(c, tag, target + i + 2 * lanes);
            hn::Stream(d, tag, target + i + 3 * lanes);
        }
        hwy::FlushStream();
    }
    std::memcpy(target + i, source + i, bytes - i);
}

constexpr std::string_view kName =
#if HWY_TARGET == HWY_AVX3
    "avx512";
#elif HWY_TARGET == HWY_AVX2
    "avx2";
#elif HWY_TARGET == HWY_SSE4
    "sse4";
#elif HWY_TARGET == HWY_NEON
    "neon";
#else
    "scalar";
#endif

}  // namespace

extern const KernelTable kTable;
const KernelTable kTable = {kName,
                            add_float32,
                            add_float64,
                            add_float16,
                            add_bfloat16,
                            add_difference_float32,
                            add_difference_float64,
                            add_difference_float16,
                            add_difference_bfloat16,
                            widen_float16,
                            widen_bfloat16,
                            largest,
                            raise,
                            count_outside,
                            find_extremes,
                            widen_extremes,
                            add_to_columns,
                            add_scaled,
                            centre,
                            squared_products,
                            multiply,
                            stream};

}  // namespace traindbg::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace traindbg::reduce {
namespace {

// What the compiler was allowed to use for a target, and so must be there.
#if HWY_TARGETS & HWY_SSE4
bool has_sse4() noexcept {
    return __builtin_cpu_supports("ssse3") != 0 && __builtin_cpu_supports("sse4.1") != 0 &&
           __builtin_cpu_supports("sse4.2") != 0;
}
#endif
#if HWY_TARGETS & HWY_AVX2
bool has_f16c() noexcept {  // a name that not every compiler's builtin knows
    unsigned int eax = 0;
    unsigned int ebx = 0;
    unsigned int ecx = 0;
    unsigned int edx = 0;
    return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}
bool has_avx2() noexcept {
    return has_sse4() && __builtin_cpu_supports("avx") != 0 && __builtin_cpu_supports("avx2") != 0 &&
           __builtin_cpu_supports("bmi") != 0 && __builtin_cpu_supports("bmi2") != 0 &&
           __builtin_cpu_supports("fma") != 0 && has_f16c();
}
#endif
#if HWY_TARGETS & HWY_AVX3
bool has_avx512() noexcept {
    return has_avx2() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
           __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512bw") != 0;
}
#endif

struct Runnable {
    std::array<const KernelTable*, 4> tables{};
    std::size_t size = 0;

    Runnable() noexcept {
#if HWY_TARGETS & HWY_AVX3
        if (has_avx512()) tables[size++] = &N_AVX3::kTable;
#endif
#if HWY_TARGETS & HWY_AVX2
        if (has_avx2()) tables[size++] = &N_AVX2::kTable;
#endif
#if HWY_TARGETS & HWY_SSE4
        if (has_sse4()) tables[size++] = &N_SSE4::kTable;
#endif
        tables[size++] = &HWY_STATIC_DISPATCH(kTable);
    }
};

}  // namespace

std::span<const KernelTable* const> runnable_kernels() noexcept {
    static const Runnable runnable;
    return {runnable.tables.data(), runnable.size};
}

const KernelTable& chosen_kernel() noexcept {
    static const KernelTable* const chosen = [] {
        const auto all = runnable_kernels();
        if (const char* wanted = std::getenv("TRAINDBG_KERNEL"); wanted != nullptr)
            for (const KernelTable* table : all)
                if (table->name == wanted) return table;
        return all.front();
    }();
    return *chosen;
}

base::Result<const KernelTable*> find_kernel(std::string_view name) {
    for (const KernelTable* table : runnable_kernels())
        if (table->name == name) return table;
    return base::Status(base::Code::kNotFound,
                        base::format("kernel '{}': this CPU has no such kernel", name));
}

}  // namespace traindbg::reduce
#endif  // HWY_ONCE
