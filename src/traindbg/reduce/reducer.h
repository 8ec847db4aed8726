// One pass over a tensor gives all its statistics.
//
// Throughput is what matters here: a training's weights, gradients and activations are read once, in
// the training's own thread, at close to the speed of memory. The kernel is one generic source,
// compiled for several instruction sets and chosen at run time; every variant gives the same counts
// exactly and the same moments within the tolerance below.
//
// Accuracy, of every kernel and every element type, against a reference in two passes whose sums are of
// more than double precision: counts, min and max are exact; mean is within 1e-6 of the mean of |x| (of
// values that cancel out it need not have one right digit), l1 within 1e-6 and l2 within 1e-5 of itself,
// std within 1e-5 of itself and 1e-14 of the mean of |x|. An element is taken as the nearest double, which
// only 64-bit integers beyond 2^53 are not; files of a run hold float32 of all but the counts. Values that
// are not finite never enter the moments.
// Thread-safety: pure functions; the memory must not change during the call (a torn read gives
// wrong numbers, never a crash). No allocation for dense tensors.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/channel_statistics.h"
#include "traindbg/model/digest.h"
#include "traindbg/model/histogram.h"
#include "traindbg/model/statistics.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg::reduce {

// Fails with kUnsupported for complex and unknown element types. Bool counts as 0 and 1. Any strides.
[[nodiscard]] base::Result<model::Statistics> statistics(const tensor::TensorView& view);

// How the values are distributed, exactly: every element is looked at. Any real element type, any
// strides; bool counts as 0 and 1. 64-bit integers are rounded to the nearest double. A pass of its own that
// takes about ten times as long as `statistics`, and some 5 µs for a small tensor: for who asks for it. Takes
// 44 KiB of heap memory for its duration.
[[nodiscard]] base::Result<model::Histogram> histogram(const tensor::TensorView& view);

// The least and the largest element and the share of zeros of each index of `dimension` (which is ignored
// where there is none); model::channel_dimension says which it is. Exact, but that what is no float32 is
// rounded to one. Any real element type, any strides; bool counts as 0 and 1. A pass of its own, in the order
// of memory. Fails with kUnsupported beyond model::kMostChannels. Takes 20 bytes of heap memory for a
// channel.
[[nodiscard]] base::Result<model::ChannelStatistics> channel_statistics(const tensor::TensorView& view,
                                                                        std::size_t dimension);

// Fingerprint and product; see model::Digest. Any real element type, any strides: the fingerprint is of the
// elements' bits, of the element type and of the shape, not of how the elements lie. The product counts bool
// as 0 and 1 and rounds 64-bit integers to doubles. Of n elements it is within n 2^-53 of the true one,
// relatively, where that is a normal double, and the same to the last bit on every CPU and for every layout.
// A pass of its own, row-major; no allocation.
[[nodiscard]] base::Result<model::Digest> digest(const tensor::TensorView& view);

// `statistics(view)` and `digest(view)` at once: a dense row-major tensor is read from memory one time.
[[nodiscard]] base::Result<model::Statistics> statistics_and_digest(const tensor::TensorView& view,
                                                                    model::Digest& digest);

// `statistics(view)` and `copy_row_major(view, out)` at once, and `digest(view)` where there is a place for
// it: the tensor is read from memory one time. `out` is filled also where the statistics fail (kUnsupported),
// and left in an unknown state by any other error. Fastest for dense tensors and an `out` that is aligned to
// 64 bytes, which is then written past the caches.
[[nodiscard]] base::Result<model::Statistics> copy_with_statistics(const tensor::TensorView& view,
                                                                   std::span<std::byte> out,
                                                                   model::Digest* digest = nullptr);

// What became of a tensor: `difference` is of `after - before`, element by element. Both have one shape and
// one element type (kInvalidArgument), each may have its own strides. One pass over both. The accuracy is
// that of `statistics`, but that a difference of a type of at most 32 bits is rounded to float32 once, min
// and max included, which moves std by up to 2^-23 of the mean of |x|. Where one element is not finite, the
// difference is what IEEE 754 says (inf - inf is NaN).
struct DifferenceStatistics {
    model::Statistics difference;
    double before_l2 = 0;  // of the finite elements of `before`
};
[[nodiscard]] base::Result<DifferenceStatistics> difference_statistics(const tensor::TensorView& before,
                                                                       const tensor::TensorView& after);
// The differences themselves, row-major in `out`, which has element_count() elements of
// `difference_type(dtype)`: float32, or float64 where a float32 does not hold every value of the type.
[[nodiscard]] base::Status subtract(const tensor::TensorView& before, const tensor::TensorView& after,
                                    std::span<std::byte> out);
[[nodiscard]] tensor::DType difference_type(tensor::DType dtype) noexcept;

// What an activation's units do; see model::UnitStatistics for what a unit is. Float types only.
[[nodiscard]] base::Result<model::UnitStatistics> unit_statistics(const tensor::TensorView& view,
                                                                  model::ActivationKind kind);

// Counts labels, arg-max predictions and hits of a classification batch. `logits` is [n, classes]
// (or [classes]), `labels` [n] of any integer type; labels outside 0..classes-1 (such as an ignore
// index) are skipped, with their predictions. The first of equal logits wins; NaN never does, and a row
// of nothing else has no prediction. Fails with kInvalidArgument when the shapes do not fit, kUnsupported for
// more than `kMostClasses` classes.
inline constexpr std::int64_t kMostClasses = 65'536;
[[nodiscard]] base::Result<model::ClassCounts> class_counts(const tensor::TensorView& logits,
                                                            const tensor::TensorView& labels);

// How much the samples of a batch differ. Of a batch [samples, ...] the first kMostSamples samples are looked
// at, each as a row of at most kMostSampleValues values: of each inner dimension in turn, the outermost
// first, only so many indexes are taken that a row is not longer. Of a double the nearest float32 is taken.
//
// Against a float64 reference in two passes: `deviation` and `size` within 1e-6, `directions` within 1e-5,
// relative; `turn` within 1e-6. What is not finite in a tensor makes the numbers NaN or infinite. Fails with
// kUnsupported for what is no float, kInvalidArgument for fewer than kFewestSamples samples or than two
// values of a sample. One to three passes over the table, and on the heap 4 bytes for each value of what is
// not float32 in rows without gaps, 16 for each value of a row, and 4 for each value that directions are of.
inline constexpr std::int64_t kFewestSamples = 8;
inline constexpr std::int64_t kMostSamples = 64;
inline constexpr std::int64_t kMostSampleValues = 4096;
inline constexpr std::int64_t kMostSpreadValues = 512;  // that directions are of
struct RowSpread {
    double deviation = 0;  // from row to row, of the typical column: a root of a mean of squares
    double size = 0;       // root mean square of all values
    // In how many directions rows spread, as their participation ratio: (sum of e)^2 / (sum of e^2) of the
    // eigenvalues e of their covariance. n where n of them are equal and the others 0; 0 where rows are
    // equal.
    double directions = 0;
    double turn = 0;  // how far the rows' unit vectors lie from their mean: 0 to 1
};
[[nodiscard]] base::Result<RowSpread> row_spread(const tensor::TensorView& view);
// The first two of these, and the third alone, for which only the first kMostSpreadValues values of a row are
// read.
[[nodiscard]] base::Result<RowSpread> row_deviation(const tensor::TensorView& view);
[[nodiscard]] base::Result<double> row_directions(const tensor::TensorView& view);

// The value of a tensor with exactly one element.
[[nodiscard]] base::Result<double> scalar_value(const tensor::TensorView& view);

// Copies `view` row-major into `out`, which has element_count() * byte_size(dtype) bytes.
[[nodiscard]] base::Status copy_row_major(const tensor::TensorView& view, std::span<std::byte> out);

// The kernel that `statistics` uses on this CPU ("avx2"), and all that this CPU could run; a test
// compares them. Kernels are also chosen by TRAINDBG_KERNEL=<name>, where the CPU has one of that name.
[[nodiscard]] std::string_view kernel_name();
[[nodiscard]] std::vector<std::string_view> available_kernels();
// For tests and benchmarks: the same by a kernel of that name.
[[nodiscard]] base::Result<model::Statistics> statistics_with_kernel(std::string_view kernel,
                                                                     const tensor::TensorView& view);
[[nodiscard]] base::Result<DifferenceStatistics> difference_statistics_with_kernel(
    std::string_view kernel, const tensor::TensorView& before, const tensor::TensorView& after);
[[nodiscard]] base::Result<model::Histogram> histogram_with_kernel(std::string_view name,
                                                                   const tensor::TensorView& view);
[[nodiscard]] base::Result<model::UnitStatistics> unit_statistics_with_kernel(std::string_view name,
                                                                              const tensor::TensorView& view,
                                                                              model::ActivationKind kind);
[[nodiscard]] base::Result<model::ClassCounts> class_counts_with_kernel(std::string_view name,
                                                                        const tensor::TensorView& logits,
                                                                        const tensor::TensorView& labels);
[[nodiscard]] base::Result<model::ChannelStatistics> channel_statistics_with_kernel(
    std::string_view name, const tensor::TensorView& view, std::size_t dimension);
[[nodiscard]] base::Result<RowSpread> row_spread_with_kernel(std::string_view name,
                                                             const tensor::TensorView& view);
[[nodiscard]] base::Result<model::Digest> digest_with_kernel(std::string_view name,
                                                             const tensor::TensorView& view);

}  // namespace traindbg::reduce
