#include "traindbg/reduce/reducer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/reduce/digest_scan.h"
#include "traindbg/reduce/elements.h"
#include "traindbg/reduce/kernels.h"
#include "traindbg/reduce/layout.h"

namespace traindbg::reduce {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::ActivationKind;
using model::ClassCounts;
using model::Statistics;
using model::UnitStatistics;
using tensor::DType;
using tensor::TensorView;

// Sums of squares of doubles leave the range of double long before the elements do. `factor` is a power
// of two that brings the largest element near 1.
double rescaling_factor(double largest) noexcept {
    int exponent = 0;
    std::frexp(largest, &exponent);
    return std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
}

double largest_magnitude(const Accumulator& sums) noexcept {
    return sums.finite > 0 ? std::max(std::abs(sums.min), std::abs(sums.max)) : 0;
}

bool left_the_range(const Accumulator& sums) noexcept {
    const double largest = largest_magnitude(sums);
    constexpr double kLeast = 1e-140;
    if (largest == 0) return false;
    return largest < kLeast || !std::isfinite(sums.l1) || !std::isfinite(sums.m2) ||
           !std::isfinite(sums.finite * sums.mean * sums.mean + sums.m2);
}

Accumulator accumulate(const KernelTable& kernel, const Walk& walk, DType dtype) {
    Accumulator sums;
    walk.for_each_stretch(tensor::byte_size(dtype), [&](const std::byte* data, std::size_t n) {
        add_elements(kernel, dtype, data, n, sums);
        return true;
    });
    return sums;
}

Accumulator accumulate_rescaled(const KernelTable& kernel, const Walk& walk, double factor) {
    Accumulator sums;
    walk.for_each_stretch(sizeof(double), [&](const std::byte* data, std::size_t n) {
        std::array<double, 512> scaled;
        while (n > 0) {
            const std::size_t part = std::min(n, scaled.size());
            std::memcpy(scaled.data(), data, part * sizeof(double));
            for (std::size_t i = 0; i < part; ++i) scaled[i] *= factor;
            kernel.add_float64(scaled.data(), part, sums);
            data += part * sizeof(double);
            n -= part;
        }
        return true;
    });
    return sums;
}

Statistics to_statistics(const Accumulator& sums, std::uint64_t repeats) noexcept {
    const auto times = static_cast<double>(repeats);
    Statistics out;
    out.count = sums.count * repeats;
    out.nan = sums.nan * repeats;
    out.positive_infinite = sums.positive_infinite * repeats;
    out.negative_infinite = sums.negative_infinite * repeats;
    out.zero = sums.zero * repeats;
    if (sums.finite == 0) return out;
    out.min = sums.min;
    out.max = sums.max;
    out.l1 = sums.l1 * times;
    if (sums.min == sums.max) {  // exact, whatever the order of additions was
        out.mean = sums.min;
        out.l2 = std::abs(sums.min) * std::sqrt(sums.finite * times);
        return out;
    }
    out.mean = std::clamp(sums.mean, sums.min, sums.max);
    out.std = std::sqrt(sums.m2 / sums.finite);
    out.l2 = std::sqrt((sums.m2 + sums.finite * sums.mean * sums.mean) * times);
    return out;
}

Result<Statistics> strided_statistics(const KernelTable& kernel, const TensorView& view) {
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView checked, CheckedView::make(view));
    if (!is_real(view.dtype))
        return Status(Code::kUnsupported,
                      base::format("tensor: no statistics of {}", tensor::to_string(view.dtype)));
    if (checked.count() == 0) return Statistics{};
    const Walk walk = Walk::any_order(checked);
    const Accumulator sums = accumulate(kernel, walk, view.dtype);
    Statistics out = to_statistics(sums, walk.repeats);
    if (view.dtype == DType::kFloat64 && left_the_range(sums)) {
        const double factor = rescaling_factor(largest_magnitude(sums));
        const Statistics moments = to_statistics(accumulate_rescaled(kernel, walk, factor), walk.repeats);
        out.mean = std::clamp(moments.mean / factor, out.min, out.max);
        out.std = moments.std / factor;
        out.l1 = moments.l1 / factor;
        out.l2 = moments.l2 / factor;
    }
    return out;
}

Result<Statistics> statistics_by(const KernelTable& kernel, const TensorView& view) {
    if (const std::size_t n = flat_count(view); n > 0 && is_real(view.dtype)) {
        Accumulator sums;
        add_elements(kernel, view.dtype, static_cast<const std::byte*>(view.data), n, sums);
        if (view.dtype != DType::kFloat64 || !left_the_range(sums)) return to_statistics(sums, 1);
    }
    return strided_statistics(kernel, view);
}

// ---- differences ----

// Reads the elements of a view in row-major order, some at a time.
class RowMajorReader {
  public:
    explicit RowMajorReader(const CheckedView& view)
        : walk_(Walk::row_major(view)), bytes_(view.element_bytes()), at_(walk_.begin) {
        std::fill_n(index_.begin(), walk_.rank, 0);
    }

    // The next `n` elements; there must be as many.
    void read(std::size_t n, std::byte* out) noexcept {
        const Dimension& run = walk_.dimensions[0];
        while (n > 0) {
            const std::size_t part = std::min(n, static_cast<std::size_t>(run.extent - index_[0]));
            gather_bytes(bytes_, at_, part, run.stride, out);
            out += part * bytes_;
            n -= part;
            move(0, static_cast<std::int64_t>(part));
            for (std::size_t i = 0; i + 1 < walk_.rank && index_[i] == walk_.dimensions[i].extent; ++i) {
                move(i, -index_[i]);
                move(i + 1, 1);
            }
        }
    }

  private:
    void move(std::size_t dimension, std::int64_t by) noexcept {
        index_[dimension] += by;
        at_ += by * walk_.dimensions[dimension].stride * static_cast<std::int64_t>(bytes_);
    }

    Walk walk_;
    std::size_t bytes_;
    const std::byte* at_;
    std::array<std::int64_t, kMostDimensions> index_;
};

bool have_one_shape(const CheckedView& a, const CheckedView& b) noexcept {
    if (a.rank() != b.rank() || a.dtype() != b.dtype()) return false;
    for (std::size_t i = 0; i < a.rank(); ++i)
        if (a.dimension(i).extent != b.dimension(i).extent) return false;
    return true;
}

bool lie_alike(const CheckedView& a, const CheckedView& b) noexcept {
    for (std::size_t i = 0; i < a.rank(); ++i)
        if (a.dimension(i).extent > 1 && a.dimension(i).stride != b.dimension(i).stride) return false;
    return true;
}

// Calls `visit(before, after, n)` for contiguous stretches of elements that belong together. How often
// all of them have to be counted is returned. The views have one shape and are not empty.
template <typename Visit>
std::uint64_t for_each_pair(const CheckedView& before, const CheckedView& after, const Visit& visit) {
    if (lie_alike(before, after)) {
        const Walk first = Walk::any_order(before);
        const Walk second = Walk::any_order(after);
        if (first.rank == 1 && first.dimensions[0].stride == 1) {
            visit(first.begin, second.begin, static_cast<std::size_t>(first.dimensions[0].extent));
            return first.repeats;
        }
    }
    constexpr std::size_t kAtOnce = 1024;
    RowMajorReader first(before);
    RowMajorReader second(after);
    alignas(64) std::array<std::byte, kAtOnce * sizeof(double)> first_buffer;
    alignas(64) std::array<std::byte, kAtOnce * sizeof(double)> second_buffer;
    for (std::uint64_t left = before.count(); left > 0;) {
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, kAtOnce));
        first.read(part, first_buffer.data());
        second.read(part, second_buffer.data());
        visit(static_cast<const std::byte*>(first_buffer.data()),
              static_cast<const std::byte*>(second_buffer.data()), part);
        left -= part;
    }
    return 1;
}

// Of doubles whose squares left the range of double.
Statistics rescaled_difference(const KernelTable& kernel, const CheckedView& before, const CheckedView& after,
                               double factor) {
    Accumulator sums;
    const std::uint64_t repeats =
        for_each_pair(before, after, [&](const std::byte* first, const std::byte* second, std::size_t n) {
            std::array<double, 512> scaled;
            for (std::size_t done = 0; done < n;) {
                const std::size_t part = std::min(n - done, scaled.size());
                for (std::size_t i = 0; i < part; ++i) {
                    const std::size_t at = (done + i) * sizeof(double);
                    scaled[i] =
                        (to_double(DType::kFloat64, second + at) - to_double(DType::kFloat64, first + at)) *
                        factor;
                }
                kernel.add_float64(scaled.data(), part, sums);
                done += part;
            }
        });
    return to_statistics(sums, repeats);
}

Status check_pair(const CheckedView& before, const CheckedView& after) {
    if (!have_one_shape(before, after))
        return Status(Code::kInvalidArgument, "tensor: before and after differ in shape or element type");
    if (!is_real(after.dtype()))
        return Status(Code::kUnsupported,
                      base::format("tensor: no difference of {}", tensor::to_string(after.dtype())));
    return Status::ok();
}

Result<DifferenceStatistics> difference_by(const KernelTable& kernel, const TensorView& before,
                                           const TensorView& after) {
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView first, CheckedView::make(before));
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView second, CheckedView::make(after));
    TRAINDBG_RETURN_IF_ERROR(check_pair(first, second));
    DifferenceStatistics out;
    if (first.count() == 0) return out;
    DifferenceAccumulator sums;
    const std::uint64_t repeats =
        for_each_pair(first, second, [&](const std::byte* a, const std::byte* b, std::size_t n) {
            add_differences(kernel, after.dtype, a, b, n, sums);
        });
    out.difference = to_statistics(sums, repeats);
    out.before_l2 = std::sqrt(sums.before_squares * static_cast<double>(repeats));
    if (after.dtype != DType::kFloat64) return out;
    if (left_the_range(sums)) {
        const double factor = rescaling_factor(largest_magnitude(sums));
        const Statistics moments = rescaled_difference(kernel, first, second, factor);
        out.difference.mean = std::clamp(moments.mean / factor, out.difference.min, out.difference.max);
        out.difference.std = moments.std / factor;
        out.difference.l1 = moments.l1 / factor;
        out.difference.l2 = moments.l2 / factor;
    }
    constexpr double kLeastSquares = 1e-280;
    if (!(sums.before_squares >= kLeastSquares) || !std::isfinite(sums.before_squares)) {
        TRAINDBG_ASSIGN_OR_RETURN(const Statistics of_before, statistics_by(kernel, before));
        out.before_l2 = of_before.l2;
    }
    return out;
}

// ---- copies ----

// What is copied at a time: it stays in the first-level cache between being read for the statistics and
// being copied. A multiple of the kernels' blocks, so that the statistics are those of one call.
constexpr std::size_t kCopyBytes = std::size_t{32} << 10;
// The same where a digest is made, which has buffers of its own.
constexpr std::size_t kDigestBytes = std::size_t{16} << 10;
constexpr std::size_t kLeastStreamBytes = 4096;  // less may as well stay in a cache

// Whether the elements lie one after the other and are so many bytes.
bool is_flat_of(const TensorView& view, std::size_t bytes) noexcept {
    const std::size_t each = tensor::byte_size(view.dtype);
    return each != 0 && bytes != 0 && bytes % each == 0 && flat_count(view) == bytes / each;
}

void copy_flat(const KernelTable& kernel, const std::byte* from, std::size_t bytes, std::byte* to) noexcept {
    if (bytes >= kLeastStreamBytes && reinterpret_cast<std::uintptr_t>(to) % kStreamAlignment == 0)
        kernel.stream(from, bytes, to);
    else std::memcpy(to, from, bytes);
}

// The statistics of elements that lie in a row and are so many bytes, with a copy (where there is a place for
// it) and a digest (likewise) of each block while it is in the cache.
Result<Statistics> in_blocks(const KernelTable& kernel, const TensorView& view, std::size_t bytes,
                             std::byte* to, model::Digest* digest) {
    Accumulator sums;
    std::optional<DigestScan> scan;
    if (digest != nullptr) scan.emplace(kernel, view);
    const auto* const from = static_cast<const std::byte*>(view.data);
    const std::size_t block = scan ? kDigestBytes : kCopyBytes;
    for (std::size_t done = 0; done < bytes;) {
        const std::size_t part = std::min(block, bytes - done);
        const std::size_t elements = part / tensor::byte_size(view.dtype);
        add_elements(kernel, view.dtype, from + done, elements, sums);
        if (scan) scan->add(from + done, elements);
        if (to != nullptr) copy_flat(kernel, from + done, part, to + done);
        done += part;
    }
    if (scan) *digest = scan->finish();
    if (view.dtype != DType::kFloat64 || !left_the_range(sums)) return to_statistics(sums, 1);
    return strided_statistics(kernel, view);
}

// ---- units of an activation ----

class UnitScan {
  public:
    UnitScan(const KernelTable& kernel, const CheckedView& view)
        : kernel_(kernel),
          view_(view),
          axis_(unit_dimension(view.rank())),
          unit_(axis_ < 0 ? Dimension{1, 0} : view.dimension(static_cast<std::size_t>(axis_))) {}

    [[nodiscard]] std::int64_t units() const noexcept { return unit_.extent; }

    [[nodiscard]] std::uint32_t count_inactive() const {
        const Walk rest = Walk::any_order(view_, axis_);
        constexpr std::int64_t kWorthRowsOfUnits = 8;
        std::uint64_t inactive = 0;
        if (unit_.stride == 1 && unit_.extent >= kWorthRowsOfUnits) {
            for (std::int64_t first = 0; first < unit_.extent; first += static_cast<std::int64_t>(kPart))
                inactive += inactive_in_rows(
                    rest, first,
                    std::min<std::int64_t>(static_cast<std::int64_t>(kPart), unit_.extent - first));
        } else {
            for (std::int64_t unit = 0; unit < unit_.extent; ++unit)
                inactive += is_active(rest, unit) ? 0 : 1;
        }
        return static_cast<std::uint32_t>(inactive);
    }

    void count_outside(float low, float high, UnitStatistics& out) const {
        const Walk all = Walk::any_order(view_);
        std::array<float, kPart> buffer;
        all.for_each_stretch(view_.element_bytes(), [&](const std::byte* data, std::size_t n) {
            while (n > 0) {
                const std::size_t part = std::min(n, kPart);
                const float* const floats = floats_at(kernel_, view_.dtype(), data, part, 1, buffer.data());
                kernel_.count_outside(floats, part, low, high, out.low, out.high);
                data += part * view_.element_bytes();
                n -= part;
            }
            return true;
        });
        out.low *= all.repeats;
        out.high *= all.repeats;
    }

  private:
    [[nodiscard]] std::int64_t bytes(std::int64_t elements) const noexcept {
        return elements * static_cast<std::int64_t>(view_.element_bytes());
    }

    // Neighbouring units lie side by side: keep the largest value of each while going through the
    // rows, and stop once all are positive, which in a healthy network is soon.
    [[nodiscard]] std::uint64_t inactive_in_rows(const Walk& rest, std::int64_t first,
                                                 std::int64_t size) const {
        const auto n = static_cast<std::size_t>(size);
        std::array<float, kPart> maxima;
        std::array<float, kPart> buffer;
        std::fill_n(maxima.begin(), n, -std::numeric_limits<float>::infinity());
        const auto count_quiet = [&] {
            return std::count_if(maxima.begin(), maxima.begin() + size, [](float x) { return !(x > 0); });
        };
        std::uint64_t rows = 0;
        std::uint64_t next_look = 8;
        rest.for_each_run(view_.element_bytes(), [&](const std::byte* at, std::size_t count,
                                                     std::int64_t stride) {
            at += bytes(first);
            for (std::size_t i = 0; i < count; ++i, at += bytes(stride)) {
                kernel_.raise(floats_at(kernel_, view_.dtype(), at, n, 1, buffer.data()), n, maxima.data());
                if (++rows < next_look) continue;
                next_look *= 2;
                if (count_quiet() == 0) return false;
            }
            return true;
        });
        return static_cast<std::uint64_t>(count_quiet());
    }

    // One unit at a time, until a positive element is met.
    [[nodiscard]] bool is_active(const Walk& rest, std::int64_t unit) const {
        std::array<float, kPart> buffer;
        return !rest.for_each_run(
            view_.element_bytes(), [&](const std::byte* at, std::size_t count, std::int64_t stride) {
                at += bytes(unit * unit_.stride);
                while (count > 0) {
                    const std::size_t part = std::min(count, kPart);
                    const float* const floats =
                        floats_at(kernel_, view_.dtype(), at, part, stride, buffer.data());
                    if (kernel_.largest(floats, part) > 0) return false;
                    at += bytes(static_cast<std::int64_t>(part) * stride);
                    count -= part;
                }
                return true;
            });
    }

    const KernelTable& kernel_;
    const CheckedView& view_;
    int axis_;
    Dimension unit_;
};

Result<UnitStatistics> units_by(const KernelTable& kernel, const TensorView& view, ActivationKind kind) {
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView checked, CheckedView::make(view));
    if (!tensor::is_floating(view.dtype))
        return Status(Code::kUnsupported,
                      base::format("tensor: no unit statistics of {}", tensor::to_string(view.dtype)));
    UnitStatistics out;
    if (checked.count() == 0) return out;
    const UnitScan scan(kernel, checked);
    if (scan.units() > std::int64_t{std::numeric_limits<std::uint32_t>::max()})
        return Status(Code::kUnsupported, "tensor: too many units to count");
    out.units = static_cast<std::uint32_t>(scan.units());
    switch (kind) {
        case ActivationKind::kRelu: out.inactive_units = scan.count_inactive(); break;
        case ActivationKind::kTanh: scan.count_outside(-0.97F, 0.97F, out); break;
        case ActivationKind::kSigmoid: scan.count_outside(0.03F, 0.97F, out); break;
        case ActivationKind::kNone:
        case ActivationKind::kSmooth: break;
    }
    return out;
}

// ---- classes ----

constexpr std::int64_t kNoClass = -1;

// The first index of the largest element that is not NaN; kNoClass when all are NaN.
std::int64_t arg_max(const KernelTable& kernel, DType dtype, const std::byte* row, std::int64_t size,
                     std::int64_t stride) {
    const auto bytes = static_cast<std::int64_t>(tensor::byte_size(dtype));
    std::int64_t best_index = kNoClass;
    if (!fits_float(dtype)) {
        double best = 0;
        for (std::int64_t i = 0; i < size; ++i) {
            const double value = to_double(dtype, row + i * stride * bytes);
            if (std::isnan(value) || (best_index != kNoClass && !(value > best))) continue;
            best = value;
            best_index = i;
        }
        return best_index;
    }
    std::array<float, kPart> buffer;
    float best = 0;
    for (std::int64_t first = 0; first < size; first += static_cast<std::int64_t>(kPart)) {
        const auto n = static_cast<std::size_t>(std::min(static_cast<std::int64_t>(kPart), size - first));
        const float* const floats =
            floats_at(kernel, dtype, row + first * stride * bytes, n, stride, buffer.data());
        const float largest = kernel.largest(floats, n);
        if (best_index != kNoClass && !(largest > best)) continue;
        const float* const found = std::find(floats, floats + n, largest);
        if (found == floats + n) continue;  // nothing but NaN
        best = largest;
        best_index = first + (found - floats);
    }
    return best_index;
}

// The label, or kNoClass for one that is not in 0..classes-1.
std::int64_t label_at(DType dtype, const std::byte* data, std::int64_t classes) noexcept {
    if (dtype == DType::kUInt64) {
        std::uint64_t value = 0;
        std::memcpy(&value, data, sizeof value);
        return value < static_cast<std::uint64_t>(classes) ? static_cast<std::int64_t>(value) : kNoClass;
    }
    std::int64_t value = 0;
    if (dtype == DType::kInt64) std::memcpy(&value, data, sizeof value);
    else value = static_cast<std::int64_t>(to_double(dtype, data));  // at most 32 bits: exact
    return value >= 0 && value < classes ? value : kNoClass;
}

Result<ClassCounts> classes_by(const KernelTable& kernel, const TensorView& logits,
                               const TensorView& labels) {
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView rows, CheckedView::make(logits));
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView truth, CheckedView::make(labels));
    if (!is_real(logits.dtype))
        return Status(Code::kUnsupported,
                      base::format("logits: {} has no largest element", tensor::to_string(logits.dtype)));
    if (!tensor::is_integer(labels.dtype))
        return Status(Code::kInvalidArgument,
                      base::format("labels: {} is no integer type", tensor::to_string(labels.dtype)));
    const bool batched = rows.rank() == 2;
    if (!batched && rows.rank() != 1)
        return Status(Code::kInvalidArgument, "logits: shape is neither [n, classes] nor [classes]");
    const Dimension samples = batched ? rows.dimension(0) : Dimension{1, 0};
    const Dimension classes = rows.dimension(batched ? 1 : 0);
    const bool labels_fit =
        truth.rank() == 1 ? truth.dimension(0).extent == samples.extent : truth.rank() == 0 && !batched;
    if (!labels_fit)
        return Status(Code::kInvalidArgument, "labels: shape is not [n] for logits of [n, classes]");
    if (classes.extent > kMostClasses)
        return Status(Code::kUnsupported,
                      base::format("logits: {} classes are more than the {} that are counted", classes.extent,
                                   kMostClasses));
    const auto size = static_cast<std::size_t>(classes.extent);
    ClassCounts out;
    out.labels.resize(size);
    out.predictions.resize(size);
    out.hits.resize(size);
    if (size == 0) return out;
    const std::int64_t label_stride = truth.rank() == 1 ? truth.dimension(0).stride : 0;
    for (std::int64_t i = 0; i < samples.extent; ++i) {
        const std::int64_t label = label_at(
            labels.dtype, truth.data() + i * label_stride * static_cast<std::int64_t>(truth.element_bytes()),
            classes.extent);
        if (label == kNoClass) continue;
        const std::int64_t prediction =
            arg_max(kernel, logits.dtype,
                    rows.data() + i * samples.stride * static_cast<std::int64_t>(rows.element_bytes()),
                    classes.extent, classes.stride);
        ++out.labels[static_cast<std::size_t>(label)];
        if (prediction == kNoClass) continue;
        ++out.predictions[static_cast<std::size_t>(prediction)];
        if (prediction == label) ++out.hits[static_cast<std::size_t>(label)];
    }
    return out;
}

}  // namespace

Result<Statistics> statistics(const TensorView& view) { return statistics_by(chosen_kernel(), view); }

Result<Statistics> statistics_with_kernel(std::string_view kernel, const TensorView& view) {
    TRAINDBG_ASSIGN_OR_RETURN(const KernelTable* const table, find_kernel(kernel));
    return statistics_by(*table, view);
}

Result<DifferenceStatistics> difference_statistics(const TensorView& before, const TensorView& after) {
    return difference_by(chosen_kernel(), before, after);
}

DType difference_type(DType dtype) noexcept { return fits_float(dtype) ? DType::kFloat32 : DType::kFloat64; }

Status subtract(const TensorView& before, const TensorView& after, std::span<std::byte> out) {
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView first, CheckedView::make(before));
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView second, CheckedView::make(after));
    TRAINDBG_RETURN_IF_ERROR(check_pair(first, second));
    const bool is_float = fits_float(after.dtype);
    const std::size_t each = is_float ? sizeof(float) : sizeof(double);
    if (out.size() / each != first.count() || out.size() % each != 0)
        return Status(Code::kInvalidArgument, "tensor: the room for the difference is not of its size");
    RowMajorReader first_reader(first);
    RowMajorReader second_reader(second);
    std::array<std::byte, sizeof(double)> element{};
    for (std::size_t at = 0; at < out.size(); at += each) {
        first_reader.read(1, element.data());
        const double subtrahend = to_double(after.dtype, element.data());
        second_reader.read(1, element.data());
        const double difference = to_double(after.dtype, element.data()) - subtrahend;
        const auto narrow = static_cast<float>(difference);
        if (is_float) std::memcpy(out.data() + at, &narrow, each);
        else std::memcpy(out.data() + at, &difference, each);
    }
    return Status::ok();
}

Result<DifferenceStatistics> difference_statistics_with_kernel(std::string_view kernel,
                                                               const TensorView& before,
                                                               const TensorView& after) {
    TRAINDBG_ASSIGN_OR_RETURN(const KernelTable* const table, find_kernel(kernel));
    return difference_by(*table, before, after);
}

Result<UnitStatistics> unit_statistics(const TensorView& view, ActivationKind kind) {
    return units_by(chosen_kernel(), view, kind);
}

Result<UnitStatistics> unit_statistics_with_kernel(std::string_view name, const TensorView& view,
                                                   ActivationKind kind) {
    TRAINDBG_ASSIGN_OR_RETURN(const KernelTable* const kernel, find_kernel(name));
    return units_by(*kernel, view, kind);
}

Result<ClassCounts> class_counts(const TensorView& logits, const TensorView& labels) {
    return classes_by(chosen_kernel(), logits, labels);
}

Result<ClassCounts> class_counts_with_kernel(std::string_view name, const TensorView& logits,
                                             const TensorView& labels) {
    TRAINDBG_ASSIGN_OR_RETURN(const KernelTable* const kernel, find_kernel(name));
    return classes_by(*kernel, logits, labels);
}

[[gnu::hot]] Result<double> scalar_value(const TensorView& view) {
    // A loss is read at every step, where all that is touched beside it is out of the caches.
    const bool is_plain =
        view.data != nullptr && is_real(view.dtype) &&
        (view.strides.empty() || view.strides.size() == view.shape.size()) &&
        std::all_of(view.shape.begin(), view.shape.end(), [](std::int64_t extent) { return extent == 1; });
    if (is_plain) return to_double(view.dtype, static_cast<const std::byte*>(view.data));
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView checked, CheckedView::make(view));
    if (!is_real(view.dtype))
        return Status(Code::kUnsupported,
                      base::format("tensor: {} is no real number", tensor::to_string(view.dtype)));
    if (checked.count() != 1)
        return Status(Code::kInvalidArgument,
                      base::format("tensor: has {} elements, not one", checked.count()));
    return to_double(view.dtype, checked.data());
}

Result<Statistics> statistics_and_digest(const TensorView& view, model::Digest& digest) {
    const KernelTable& kernel = chosen_kernel();
    const std::size_t n = flat_count(view);
    if (n == 0 || !is_real(view.dtype)) {
        TRAINDBG_ASSIGN_OR_RETURN(digest, reduce::digest(view));
        return statistics_by(kernel, view);
    }
    return in_blocks(kernel, view, n * tensor::byte_size(view.dtype), nullptr, &digest);
}

Result<Statistics> copy_with_statistics(const TensorView& view, std::span<std::byte> out,
                                        model::Digest* digest) {
    const KernelTable& kernel = chosen_kernel();
    if (!is_real(view.dtype) || !is_flat_of(view, out.size())) {
        TRAINDBG_RETURN_IF_ERROR(copy_row_major(view, out));
        if (digest != nullptr) {
            TRAINDBG_ASSIGN_OR_RETURN(*digest, reduce::digest(view));
        }
        return statistics_by(kernel, view);
    }
    return in_blocks(kernel, view, out.size(), out.data(), digest);
}

Status copy_row_major(const TensorView& view, std::span<std::byte> out) {
    if (is_flat_of(view, out.size())) {
        copy_flat(chosen_kernel(), static_cast<const std::byte*>(view.data), out.size(), out.data());
        return Status::ok();
    }
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView checked, CheckedView::make(view));
    const std::size_t bytes = checked.element_bytes();
    if (checked.count() > std::numeric_limits<std::size_t>::max() / bytes ||
        out.size() != checked.count() * bytes)
        return Status(Code::kInvalidArgument, "tensor: the room for its copy is not of its size");
    if (checked.count() == 0) return Status::ok();
    std::byte* to = out.data();
    Walk::row_major(checked).for_each_run(bytes,
                                          [&](const std::byte* from, std::size_t count, std::int64_t stride) {
                                              gather_bytes(bytes, from, count, stride, to);
                                              to += count * bytes;
                                              return true;
                                          });
    return Status::ok();
}

std::string_view kernel_name() { return chosen_kernel().name; }

std::vector<std::string_view> available_kernels() {
    std::vector<std::string_view> names;
    for (const KernelTable* table : runnable_kernels()) names.push_back(table->name);
    return names;
}

}  // namespace traindbg::reduce
