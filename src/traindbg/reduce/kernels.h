// The inner loops, compiled once per instruction set. Internal to the module.
//
// Every function reads a flat array of `n` elements and knows nothing of shapes. `Accumulator` is the
// state between calls: calling a kernel twice with halves gives what one call with the whole gives,
// up to rounding.
//
// How the moments stay accurate in float lanes: elements are read in blocks of at most 2048; within a
// block a lane adds at most 32 numbers, then the block's sums go into doubles. The second moment is
// taken about a shift near the mean (the running mean, or in the first block that block's own), and
// blocks are joined by the formula of Chan, Golub and LeVeque ("Updating formulae and a pairwise
// algorithm for computing sample variances", 1979). Since the joined second moment has no
// cancellation left, the sum of squares is `m2 + n * mean * mean`, and needs no pass of its own.
//
// NaN and infinities cost nothing where there are none: they make the block's sum of |x| not finite,
// and only then is the block read again, by a masked loop in doubles. Blocks whose squares would
// underflow go the same way.
//
// A difference of two arrays goes through the same loop: it is taken in registers, and the squares of the
// first array are added up beside. In float lanes it is rounded to a float once; in the masked loop it
// is taken in doubles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::reduce {

struct Accumulator {
    std::uint64_t count = 0;
    std::uint64_t nan = 0;
    std::uint64_t positive_infinite = 0;
    std::uint64_t negative_infinite = 0;
    std::uint64_t zero = 0;
    double min = std::numeric_limits<double>::infinity();
    double max = -std::numeric_limits<double>::infinity();
    double l1 = 0;
    // Of the finite elements: how many, their mean, the sum of their squared distances from it.
    double finite = 0;
    double mean = 0;
    double m2 = 0;

    void join_moments(double other_finite, double other_mean, double other_m2) noexcept {
        const double share = other_finite / (finite + other_finite);
        const double delta = other_mean - mean;
        m2 += other_m2 + delta * delta * (finite * share);
        mean += delta * share;
        finite += other_finite;
    }
};

// Of `after - before`, element by element, and of `before` the sum of the squares of what is finite.
struct DifferenceAccumulator : Accumulator {
    double before_squares = 0;
};

// Of the finite elements; zeros of all.
struct Extremes {
    float min = std::numeric_limits<float>::infinity();
    float max = -std::numeric_limits<float>::infinity();
    std::uint64_t zeros = 0;
};

// A product is made in so many chains, element i in chain i % kProductChains, so that it is the same to the
// last bit whatever the width of the vectors.
inline constexpr std::size_t kProductChains = 16;

inline constexpr std::size_t kRowBlock = 4;
inline constexpr std::size_t kColumnBlock = 16;

struct KernelTable {
    std::string_view name;

    void (*add_float32)(const float* data, std::size_t n, Accumulator& into) noexcept;
    void (*add_float64)(const double* data, std::size_t n, Accumulator& into) noexcept;
    void (*add_float16)(const std::uint16_t* data, std::size_t n, Accumulator& into) noexcept;
    void (*add_bfloat16)(const std::uint16_t* data, std::size_t n, Accumulator& into) noexcept;

    void (*add_difference_float32)(const float* before, const float* after, std::size_t n,
                                   DifferenceAccumulator& into) noexcept;
    void (*add_difference_float64)(const double* before, const double* after, std::size_t n,
                                   DifferenceAccumulator& into) noexcept;
    void (*add_difference_float16)(const std::uint16_t* before, const std::uint16_t* after, std::size_t n,
                                   DifferenceAccumulator& into) noexcept;
    void (*add_difference_bfloat16)(const std::uint16_t* before, const std::uint16_t* after, std::size_t n,
                                    DifferenceAccumulator& into) noexcept;

    void (*widen_float16)(const std::uint16_t* data, std::size_t n, float* out) noexcept;
    void (*widen_bfloat16)(const std::uint16_t* data, std::size_t n, float* out) noexcept;

    // The largest element that is not NaN; -infinity if there is none.
    float (*largest)(const float* data, std::size_t n) noexcept;
    // maxima[i] = max(maxima[i], data[i]), a NaN in data ignored.
    void (*raise)(const float* data, std::size_t n, float* maxima) noexcept;
    // Adds how many elements are below `low` and above `high`.
    void (*count_outside)(const float* data, std::size_t n, float low, float high, std::uint64_t& below,
                          std::uint64_t& above) noexcept;

    void (*find_extremes)(const float* data, std::size_t n, Extremes& into) noexcept;
    // The same where data[i] is one more element of channel i. `zeros` are not to overflow.
    void (*widen_extremes)(const float* data, std::size_t n, float* minima, float* maxima,
                           std::uint32_t* zeros) noexcept;

    // Of a row of a table: sums[i] += data[i]. The sum of the squares.
    double (*add_to_columns)(const float* data, std::size_t n, double* sums) noexcept;
    // The same of data[i] * factor, without squares.
    void (*add_scaled)(const float* data, std::size_t n, double factor, double* sums) noexcept;
    // out[i] = data[i] - means[i], taken in doubles. The sum of the squares of these.
    double (*centre)(const float* data, std::size_t n, const double* means, float* out) noexcept;
    // The sum of the squares of all products of two rows, each with each in both orders. `rows` is a multiple
    // of kRowBlock and `columns` of kColumnBlock; the rows lie one after the other.
    double (*squared_products)(const float* table, std::size_t rows, std::size_t columns) noexcept;

    // Multiplies the chains by the elements' mantissas (with their signs, from 1 to below 2 in size) and adds
    // up their exponents. `n` is a multiple of kProductChains and at most 4096. False, and nothing was done:
    // an element is zero, subnormal or not finite.
    bool (*multiply)(const double* data, std::size_t n, double* chains, std::int64_t& exponent) noexcept;

    // Copies `bytes` bytes past the caches, to memory that nobody reads soon. `to` is aligned to
    // kStreamAlignment. Visible to other threads as any store is.
    void (*stream)(const std::byte* from, std::size_t bytes, std::byte* to) noexcept;
};

inline constexpr std::size_t kStreamAlignment = 64;

// All tables that this CPU can run, the best first. The last one needs nothing of the CPU.
[[nodiscard]] std::span<const KernelTable* const> runnable_kernels() noexcept;
// The first of them, or the one that TRAINDBG_KERNEL names.
[[nodiscard]] const KernelTable& chosen_kernel() noexcept;
// The one of that name; kNotFound where this CPU cannot run it.
[[nodiscard]] base::Result<const KernelTable*> find_kernel(std::string_view name);

}  // namespace traindbg::reduce
