// The arithmetic of a reduction on a device: what one thread does with its elements, and how what several
// threads found is put together. One source for both sides: NVRTC compiles this text, with kernels.cu behind
// it, for the GPU that is there (so nothing of the standard library is used); the compiler of the project
// compiles it for the host, where tests and machines without a GPU run it. Internal to the module.
//
// Accuracy: sums are of the distances from the middle one of nine of the tensor's elements, so that a mean
// far from zero costs no digits. The distances of one line of 16 bytes are added up in float32, as are their
// squares where no square can overflow or vanish; lines are added up in float64. So mean and l1 are within
// 1e-6 of l1 (the mean: of l1 / n), l2 and std within 1e-6 relatively, counts and extremes exact, however
// long the tensor is; but where the middle one of the nine lies d standard deviations from the mean, std is
// within d * 1e-6. What has no loop of its own is taken in float64 throughout.
#pragma once

#ifdef __CUDACC__
#define TRAINDBG_DEVICE __device__ __forceinline__
#define TRAINDBG_APART __device__ __noinline__
#define TRAINDBG_UNROLL _Pragma("unroll")
#define TRAINDBG_ONE_BY_ONE _Pragma("unroll 1")
#else
#include <bit>
#include <cstring>
#define TRAINDBG_DEVICE inline
#define TRAINDBG_APART inline
#define TRAINDBG_UNROLL
#define TRAINDBG_ONE_BY_ONE
#endif

namespace traindbg::reduce::device {

using Word32 = unsigned int;
using Word64 = unsigned long long;

// tensor::DType's numbers, of those types that a device reduces.
inline constexpr Word32 kFloat64 = 1, kFloat32 = 2, kFloat16 = 3, kBFloat16 = 4, kFloat8E4M3 = 5,
                        kFloat8E5M2 = 6, kInt64 = 7, kInt32 = 8, kInt16 = 9, kInt8 = 10, kUInt64 = 11,
                        kUInt32 = 12, kUInt16 = 13, kUInt8 = 14, kBool = 15;
// model::ActivationKind's numbers.
inline constexpr Word32 kRelu = 1, kTanh = 2, kSigmoid = 3;

// What was found in some of a tensor's elements. Sums are over the finite ones.
struct Found {
    double least, most;     // of the finite elements; +inf and -inf where there is none
    double sum;             // of x - start
    double squares;         // of (x - start)^2
    double sizes;           // of |x|
    double before_squares;  // of a difference: of what was before, squared
    Word64 nan, above, below, zero;
    Word64 low, high;  // at the flat ends of the activation
};
// What the host is told of a tensor.
struct Record {
    Found found;
    double start;  // what the distances are from
    Word64 inactive_units;
};

// A tensor whose elements lie in a row.
struct Task {
    const void* data;
    const void* before;  // null: no difference is asked for
    Word64 elements;
    Record* record;
    Found* scratch;   // one for each block
    Word32* arrived;  // how many blocks are done: 0 before and after
    Word32* active;   // by unit: `stamp` where an element was > 0; null: units are not counted
    Word32 first_block, blocks;
    Word32 inner, units;  // an element's unit is (its index / inner) % units
    Word32 stamp;
    unsigned char element, activation;
};
// Of a block.
inline constexpr Word32 kThreads = 256;
// As many as a kernel's arguments hold.
inline constexpr Word32 kMostTasks = 48;
struct Batch {
    Task tasks[kMostTasks];
    Word32 size;
};
static_assert(sizeof(Batch) <= 4096);

TRAINDBG_DEVICE float float_of_bits(Word32 bits) {
#ifdef __CUDACC__
    return __uint_as_float(bits);
#else
    return std::bit_cast<float>(bits);
#endif
}
TRAINDBG_DEVICE Word32 bits_of(float x) {
#ifdef __CUDACC__
    return __float_as_uint(x);
#else
    return std::bit_cast<Word32>(x);
#endif
}
TRAINDBG_DEVICE double double_of_bits(Word64 bits) {
#ifdef __CUDACC__
    return __longlong_as_double(static_cast<long long>(bits));
#else
    return std::bit_cast<double>(bits);
#endif
}
TRAINDBG_DEVICE float half_value(Word32 bits) {
#ifdef __CUDACC__
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(bits)));
    return value;
#else
    const Word32 sign = (bits & 0x8000U) << 16;
    const Word32 exponent = (bits >> 10) & 31U;
    const Word32 mantissa = bits & 1023U;
    if (exponent == 31) return float_of_bits(sign | 0x7f800000U | (mantissa << 13));
    if (exponent == 0) {
        const float size = static_cast<float>(mantissa) * 5.9604644775390625e-8F;  // 2^-24
        return sign != 0 ? -size : size;
    }
    return float_of_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
#endif
}
TRAINDBG_DEVICE float smaller(float a, float b) {
#ifdef __CUDACC__
    return fminf(a, b);
#else
    return b < a ? b : a;
#endif
}
TRAINDBG_DEVICE float larger(float a, float b) {
#ifdef __CUDACC__
    return fmaxf(a, b);
#else
    return b > a ? b : a;
#endif
}
TRAINDBG_DEVICE float size_of(float x) { return float_of_bits(bits_of(x) & 0x7fffffffU); }
TRAINDBG_DEVICE float e4m3_value(Word32 bits) {
    const Word32 sign = (bits & 0x80U) << 24;
    const Word32 exponent = (bits >> 3) & 15U;
    const Word32 mantissa = bits & 7U;
    if (exponent == 15 && mantissa == 7) return float_of_bits(0x7fc00000U);
    if (exponent == 0) {
        const float size = static_cast<float>(mantissa) * 0.001953125F;  // 2^-9
        return sign != 0 ? -size : size;
    }
    return float_of_bits(sign | ((exponent + 120) << 23) | (mantissa << 20));
}

// How a type's elements are read: `Bits` are one's, `Value` holds each of its values. The types that nearly
// all tensors have each get loops of their own; what else there is shares one that asks for the type at every
// element: each pair of loops takes the run-time compiler a third of a second.
template <Word32 type>
struct Element;
template <>
struct Element<kFloat32> {
    using Bits = Word32;
    using Value = float;
    static TRAINDBG_DEVICE Value value(Bits bits) { return float_of_bits(bits); }
};
template <>
struct Element<kFloat16> {
    using Bits = unsigned short;
    using Value = float;
    static TRAINDBG_DEVICE Value value(Bits bits) { return half_value(bits); }
};
template <>
struct Element<kBFloat16> {
    using Bits = unsigned short;
    using Value = float;
    static TRAINDBG_DEVICE Value value(Bits bits) { return float_of_bits(static_cast<Word32>(bits) << 16); }
};

// Sixteen bytes at a time are read where a tensor's address allows it.
struct alignas(16) Line {
    Word64 half[2];
};
template <typename Bits>
TRAINDBG_DEVICE Bits bits_at(const Line& line, Word32 index) {
    constexpr Word32 kEach = 8 / sizeof(Bits);
    if constexpr (kEach == 1) return line.half[index];
    else return static_cast<Bits>(line.half[index / kEach] >> (8 * sizeof(Bits) * (index % kEach)));
}
template <typename Bits>
TRAINDBG_DEVICE Bits load(const void* data, Word64 index) {
#ifdef __CUDACC__
    return static_cast<const Bits*>(data)[index];
#else
    Bits bits;  // at any address
    std::memcpy(&bits, static_cast<const unsigned char*>(data) + index * sizeof(Bits), sizeof(Bits));
    return bits;
#endif
}

TRAINDBG_DEVICE Line line_of(const void* data, Word64 index) {
#ifdef __CUDACC__
    return static_cast<const Line*>(data)[index];
#else
    return load<Line>(data, index);
#endif
}

// Of the other types. 64-bit integers are rounded.
TRAINDBG_APART double value_of(Word32 type, const void* data, Word64 index) {
    switch (type) {
        case kFloat64: return double_of_bits(load<Word64>(data, index));
        case kFloat8E4M3: return static_cast<double>(e4m3_value(load<unsigned char>(data, index)));
        case kFloat8E5M2:
            return static_cast<double>(
                half_value(static_cast<Word32>(load<unsigned char>(data, index)) << 8));
        case kInt64: return static_cast<double>(load<long long>(data, index));
        case kInt32: return static_cast<double>(load<int>(data, index));
        case kInt16: return static_cast<double>(load<short>(data, index));
        case kInt8: return static_cast<double>(load<signed char>(data, index));
        case kUInt64: return static_cast<double>(load<Word64>(data, index));
        case kUInt32: return static_cast<double>(load<Word32>(data, index));
        case kUInt16: return static_cast<double>(load<unsigned short>(data, index));
        case kUInt8: return static_cast<double>(load<unsigned char>(data, index));
        case kBool: return load<unsigned char>(data, index) != 0 ? 1.0 : 0.0;
        case kFloat32: return static_cast<double>(float_of_bits(load<Word32>(data, index)));
        case kFloat16: return static_cast<double>(half_value(load<unsigned short>(data, index)));
        default:
            return static_cast<double>(
                float_of_bits(static_cast<Word32>(load<unsigned short>(data, index)) << 16));
    }
}

TRAINDBG_DEVICE Found nothing_found() {
    const double infinity = double_of_bits(0x7ff0000000000000ULL);
    return {infinity, -infinity, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
}
TRAINDBG_DEVICE void add(Found& into, const Found& from) {
    into.least = from.least < into.least ? from.least : into.least;
    into.most = from.most > into.most ? from.most : into.most;
    into.sum += from.sum;
    into.squares += from.squares;
    into.sizes += from.sizes;
    into.before_squares += from.before_squares;
    into.nan += from.nan;
    into.above += from.above;
    into.below += from.below;
    into.zero += from.zero;
    into.low += from.low;
    into.high += from.high;
}

TRAINDBG_DEVICE bool is_finite(float x) { return x - x == 0; }
TRAINDBG_DEVICE bool is_finite(double x) { return x - x == 0; }

// One thread's account: counts in 32 bits, extremes in the type's own width.
template <typename Value>
struct Account {
    Value least, most;
    double sum = 0, squares = 0, sizes = 0, before_squares = 0;
    Word32 nan = 0, above = 0, below = 0, zero = 0, low = 0, high = 0;
    double start;

    TRAINDBG_DEVICE explicit Account(double from) : start(from) {
        const Value infinity = static_cast<Value>(double_of_bits(0x7ff0000000000000ULL));
        least = infinity;
        most = -infinity;
    }
    TRAINDBG_DEVICE void add(Value x) {
        if (is_finite(x)) {
            const double wide = static_cast<double>(x);
            const double distance = wide - start;
            sum += distance;
            squares += distance * distance;
            sizes += wide < 0 ? -wide : wide;
            least = x < least ? x : least;
            most = x > most ? x : most;
            zero += x == 0 ? 1U : 0U;
        } else if (x > 0) {
            ++above;
        } else if (x < 0) {
            ++below;
        } else {
            ++nan;
        }
    }
    // The values of a line, of floats alone. False: nothing was added, `add` is to take them one by one.
    template <Word32 kCount>
    TRAINDBG_DEVICE bool add_line(const float (&x)[kCount]) {
        const auto from = static_cast<float>(start);  // no digits are lost: it is one of the values
        float low_end = x[0];
        float high_end = x[0];
        float line_sum = 0;
        float line_squares = 0;
        float line_sizes = 0;
        float reach = 0;
        float odd = 0;  // NaN where one is not finite
        Word32 zeros = 0;
        TRAINDBG_UNROLL
        for (Word32 i = 0; i < kCount; ++i) {
            const float distance = x[i] - from;
            line_sum += distance;
            line_squares += distance * distance;
            reach = larger(reach, size_of(distance));
            line_sizes += size_of(x[i]);
            odd += x[i] * 0.0F;
            low_end = smaller(low_end, x[i]);
            high_end = larger(high_end, x[i]);
            zeros += x[i] == 0 ? 1U : 0U;
        }
        // Nothing overflowed, and squares that vanished are of no weight beside the largest.
        const bool is_plain =
            odd == 0 && reach < 1e18F && (reach > 1e-12F || reach == 0) && line_sizes < 1e38F;
        if (!is_plain) return false;
        sum += static_cast<double>(line_sum);
        squares += static_cast<double>(line_squares);
        sizes += static_cast<double>(line_sizes);
        least = smaller(least, low_end);
        most = larger(most, high_end);
        zero += zeros;
        return true;
    }
    TRAINDBG_DEVICE void add_before(Value x) {
        if (is_finite(x)) before_squares += static_cast<double>(x) * static_cast<double>(x);
    }
    TRAINDBG_DEVICE void count_ends(Value x, Word32 activation) {
        low += x < static_cast<Value>(activation == kTanh ? -0.97 : 0.03) ? 1U : 0U;
        high += x > static_cast<Value>(0.97) ? 1U : 0U;
    }
    [[nodiscard]] TRAINDBG_DEVICE Found found() const {
        return {static_cast<double>(least),
                static_cast<double>(most),
                sum,
                squares,
                sizes,
                before_squares,
                nan,
                above,
                below,
                zero,
                low,
                high};
    }
};

// Marks the units of which an element is > 0. It is told of elements in the order of memory, but may leap.
struct Marker {
    Word32* active;
    Word32 inner, units, stamp;
    Word32 unit = 0, within = 0;

    TRAINDBG_DEVICE void leap(Word64 index) {
        if (index <= 0xffffffffULL) {
            const auto small = static_cast<Word32>(index);
            unit = small / inner % units;
            within = small % inner;
        } else {
            unit = static_cast<Word32>(index / inner % units);
            within = static_cast<Word32>(index % inner);
        }
    }
    template <typename Value>
    TRAINDBG_DEVICE void next(Value x) {
        if (x > 0 && active[unit] != stamp) active[unit] = stamp;
        if (++within == inner) {
            within = 0;
            if (++unit == units) unit = 0;
        }
    }
};

// Where distances are from: the middle one of these samples that are finite. Their places are odd multiples,
// so that few are at one place of a row.
inline constexpr Word32 kSamples = 9;
TRAINDBG_DEVICE double sample_of(const Task& task, Word32 number) {
    const Word64 step = task.elements / (Word64{2} * kSamples);
    Word64 at = step * (Word64{2} * number + 1) + number;
    if (at >= task.elements) at = task.elements - 1;
    double x = value_of(task.element, task.data, at);
    if (task.before != nullptr) x -= value_of(task.element, task.before, at);
    return x;
}
TRAINDBG_DEVICE double middle_of(const double (&samples)[kSamples]) {
    Word32 finite = 0;
    for (const double sample : samples) finite += is_finite(sample) ? 1U : 0U;
    for (Word32 i = 0; i < kSamples; ++i) {
        if (!is_finite(samples[i])) continue;
        Word32 below = 0;  // in the order of their values, and of places where they are equal
        for (Word32 k = 0; k < kSamples; ++k) {
            const bool is_before = samples[k] < samples[i] || (samples[k] == samples[i] && k < i);
            below += is_before && is_finite(samples[k]) ? 1U : 0U;
        }
        if (below == finite / 2) return samples[i];
    }
    return 0.0;
}

// The elements of a block: whole lines, but for the last one's.
struct Stretch {
    Word64 begin, end;
};
TRAINDBG_DEVICE Stretch stretch_of(const Task& task, Word32 block, Word32 in_line) {
    const Word64 lines = (task.elements + in_line - 1) / in_line;
    const Word64 each = (lines + task.blocks - 1) / task.blocks * in_line;
    Stretch out{block * each, block * each + each};
    if (out.end > task.elements) out.end = task.elements;
    if (out.begin > out.end) out.begin = out.end;
    return out;
}

// What is counted of an activation beside its statistics.
struct Units {
    const Task& task;
    Marker marker;

    TRAINDBG_DEVICE explicit Units(const Task& of)
        : task(of), marker{of.active, of.inner, of.units, of.stamp} {}
    [[nodiscard]] TRAINDBG_DEVICE bool are_wanted() const {
        return task.active != nullptr || task.activation == kTanh || task.activation == kSigmoid;
    }
    TRAINDBG_DEVICE void leap(Word64 index) {
        if (task.active != nullptr) marker.leap(index);
    }
    template <typename Value>
    TRAINDBG_DEVICE void take(Account<Value>& account, Value x) {
        if (task.active != nullptr) marker.next(x);
        else account.count_ends(x, task.activation);
    }
};

// The part of thread `thread` of `threads` in the elements of block `block`.
template <Word32 type>
TRAINDBG_DEVICE Found part_of_lines(const Task& task, double start, Word32 block, Word32 thread,
                                    Word32 threads) {
    using E = Element<type>;
    using Bits = typename E::Bits;
    constexpr Word32 kInLine = sizeof(Line) / sizeof(Bits);
    Account<typename E::Value> account(start);
    Units units(task);
    const bool wants_units = units.are_wanted();
    const Stretch stretch = stretch_of(task, block, kInLine);
    const Word64 last = stretch.end / kInLine;
    // Several loads are on their way at a time. The rare rest is read again, so that there is one loop for
    // it.
    constexpr Word32 kTogether = 4;
    for (Word64 at = stretch.begin / kInLine + thread; at < last; at += kTogether * Word64{threads}) {
        Line lines[kTogether] = {};
        TRAINDBG_UNROLL
        for (Word32 i = 0; i < kTogether; ++i)
            if (at + i * Word64{threads} < last) lines[i] = line_of(task.data, at + i * Word64{threads});
        Word32 slow = 0;
        TRAINDBG_UNROLL
        for (Word32 i = 0; i < kTogether; ++i) {
            float x[kInLine];
            TRAINDBG_UNROLL
            for (Word32 k = 0; k < kInLine; ++k) x[k] = E::value(bits_at<Bits>(lines[i], k));
            if (at + i * Word64{threads} < last && !account.add_line(x)) slow |= 1U << i;
        }
        if (slow == 0 && !wants_units) continue;
        TRAINDBG_ONE_BY_ONE
        for (Word32 i = 0; i < kTogether; ++i) {
            const Word64 place = at + i * Word64{threads};
            if (place >= last) break;
            const bool is_slow = (slow >> i & 1U) != 0;
            if (!is_slow && !wants_units) continue;
            const Line line = line_of(task.data, place);
            units.leap(place * kInLine);
            TRAINDBG_ONE_BY_ONE
            for (Word32 k = 0; k < kInLine; ++k) {
                const float x = E::value(bits_at<Bits>(line, k));
                if (is_slow) account.add(x);
                if (wants_units) units.take(account, x);
            }
        }
    }
    // The rest of the tensor's last line.
    const Word64 mine = (last * kInLine > stretch.begin ? last * kInLine : stretch.begin) + thread;
    if (mine < stretch.end) {
        const auto x = E::value(load<Bits>(task.data, mine));
        if (wants_units) {
            units.leap(mine);
            units.take(account, x);
        }
        account.add(x);
    }
    return account.found();
}

// The same of `after - before`, in doubles: a difference may be more than a float holds.
template <Word32 type>
TRAINDBG_DEVICE Found part_of_differences(const Task& task, double start, Word32 block, Word32 thread,
                                          Word32 threads) {
    using E = Element<type>;
    using Bits = typename E::Bits;
    constexpr Word32 kInLine = sizeof(Line) / sizeof(Bits);
    Account<double> account(start);
    const auto take = [&](Bits after, Bits before) {
        const auto was = static_cast<double>(E::value(before));
        account.add(static_cast<double>(E::value(after)) - was);
        account.add_before(was);
    };
    const Stretch stretch = stretch_of(task, block, kInLine);
    const Word64 last = stretch.end / kInLine;
    for (Word64 at = stretch.begin / kInLine + thread; at < last; at += threads) {
        const Line line = line_of(task.data, at);
        const Line old = line_of(task.before, at);
        TRAINDBG_UNROLL
        for (Word32 i = 0; i < kInLine; ++i) take(bits_at<Bits>(line, i), bits_at<Bits>(old, i));
    }
    const Word64 mine = (last * kInLine > stretch.begin ? last * kInLine : stretch.begin) + thread;
    if (mine < stretch.end) take(load<Bits>(task.data, mine), load<Bits>(task.before, mine));
    return account.found();
}

// The same of any type, at any address.
TRAINDBG_DEVICE Found part_of_elements(const Task& task, double start, Word32 block, Word32 thread,
                                       Word32 threads) {
    Account<double> account(start);
    Units units(task);
    const bool wants_units = units.are_wanted();
    const Stretch stretch = stretch_of(task, block, 1);
    TRAINDBG_ONE_BY_ONE
    for (Word64 at = stretch.begin + thread; at < stretch.end; at += threads) {
        double x = value_of(task.element, task.data, at);
        if (task.before != nullptr) {
            const double was = value_of(task.element, task.before, at);
            account.add_before(was);
            x -= was;
        } else if (wants_units) {
            units.leap(at);
            units.take(account, x);
        }
        account.add(x);
    }
    return account.found();
}

TRAINDBG_DEVICE Found part_of(const Task& task, double start, Word32 block, Word32 thread, Word32 threads) {
    const Word64 addresses = reinterpret_cast<Word64>(task.data) | reinterpret_cast<Word64>(task.before);
    if (addresses % sizeof(Line) == 0) {
        const bool is_one = task.before == nullptr;
        switch (task.element) {
            case kFloat32:
                return is_one ? part_of_lines<kFloat32>(task, start, block, thread, threads)
                              : part_of_differences<kFloat32>(task, start, block, thread, threads);
            case kFloat16:
                return is_one ? part_of_lines<kFloat16>(task, start, block, thread, threads)
                              : part_of_differences<kFloat16>(task, start, block, thread, threads);
            case kBFloat16:
                return is_one ? part_of_lines<kBFloat16>(task, start, block, thread, threads)
                              : part_of_differences<kBFloat16>(task, start, block, thread, threads);
            default: break;
        }
    }
    return part_of_elements(task, start, block, thread, threads);
}

}  // namespace traindbg::reduce::device
