// The extremes and the share of zeros of each channel.
//
// Memory is gone through in its own order, whatever dimension counts the channels. Where the elements of a
// channel lie nearer to each other than channels do (a batch of images, a weight), its runs are read one by
// one; else (channels-last, the batch of a linear layer) a row of neighbouring channels is read at a time,
// and widens their extremes side by side.
#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/model/channel_statistics.h"
#include "traindbg/reduce/elements.h"
#include "traindbg/reduce/layout.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::ChannelStatistics;
using tensor::DType;

constexpr std::int64_t kWorthRows = 8;                       // fewer channels are not read side by side
constexpr std::uint64_t kMostRows = std::uint64_t{1} << 31;  // whose zeros are counted in 32 bits

// Elements that lie `stride` apart, as float64. At most kPart.
const double* doubles_at(const KernelTable& kernel, DType dtype, const std::byte* data, std::size_t n,
                         std::int64_t stride, double* buffer) noexcept {
    alignas(64) std::array<std::byte, kPart * sizeof(double)> gathered;
    gather_bytes(tensor::byte_size(dtype), data, n, stride, gathered.data());
    to_doubles(kernel, dtype, gathered.data(), n, buffer);
    return buffer;
}

// The nearest float32, but never an infinity or a zero made of something else.
float to_float(double value) noexcept {
    const auto narrowed = static_cast<float>(std::clamp<double>(value, -FLT_MAX, FLT_MAX));
    return narrowed == 0 && value != 0 ? std::copysign(FLT_TRUE_MIN, static_cast<float>(value > 0) - 0.5F)
                                       : narrowed;
}

// `Lane`: float where it holds every value of the element type, else double.
template <typename Lane>
class ChannelScan {
  public:
    // `axis`: the dimension of which channels are indexes; -1: all is one channel.
    ChannelScan(const KernelTable& kernel, const CheckedView& view, int axis)
        : kernel_(kernel),
          view_(view),
          rest_(Walk::any_order(view, axis)),
          channel_(axis < 0 ? Dimension{1, 0} : view.dimension(static_cast<std::size_t>(axis))),
          minima_(static_cast<std::size_t>(channel_.extent), std::numeric_limits<Lane>::infinity()),
          maxima_(minima_.size(), -std::numeric_limits<Lane>::infinity()),
          zeros_(minima_.size()) {}

    [[nodiscard]] ChannelStatistics scan() {
        const Dimension& run = rest_.dimensions[0];
        const bool are_nearer = run.extent == 1 || std::abs(channel_.stride) < run.stride;
        if (are_nearer && channel_.extent >= kWorthRows) scan_rows();
        else scan_runs();
        double elements = 1;  // of a channel
        for (std::size_t i = 0; i < rest_.rank; ++i)
            elements *= static_cast<double>(rest_.dimensions[i].extent);
        ChannelStatistics out;
        const auto fill = [&](std::vector<float>& column, const std::vector<Lane>& values) {
            column.reserve(values.size());
            for (const Lane value : values)
                column.push_back(std::isfinite(value) ? to_float(static_cast<double>(value)) : 0.0F);
        };
        fill(out.min, minima_);
        fill(out.max, maxima_);
        out.zero.reserve(zeros_.size());
        for (const std::uint64_t zeros : zeros_)
            out.zero.push_back(static_cast<float>(static_cast<double>(zeros) / elements));
        return out;
    }

  private:
    using Buffer = std::array<Lane, kPart>;

    [[nodiscard]] std::int64_t bytes(std::int64_t elements) const noexcept {
        return elements * static_cast<std::int64_t>(view_.element_bytes());
    }
    [[nodiscard]] const Lane* read(const std::byte* at, std::size_t n, std::int64_t stride,
                                   Buffer& buffer) const noexcept {
        if constexpr (std::is_same_v<Lane, float>)
            return floats_at(kernel_, view_.dtype(), at, n, stride, buffer.data());
        else return doubles_at(kernel_, view_.dtype(), at, n, stride, buffer.data());
    }

    void scan_rows() {
        std::array<std::uint32_t, kPart> zeros;
        Buffer buffer;
        for (std::int64_t first = 0; first < channel_.extent; first += static_cast<std::int64_t>(kPart)) {
            const auto size = static_cast<std::size_t>(
                std::min<std::int64_t>(static_cast<std::int64_t>(kPart), channel_.extent - first));
            const auto channel = static_cast<std::size_t>(first);
            const auto keep_zeros = [&] {
                for (std::size_t i = 0; i < size; ++i) zeros_[channel + i] += zeros[i];
                zeros.fill(0);
            };
            zeros.fill(0);
            std::uint64_t rows = 0;
            rest_.for_each_run(
                view_.element_bytes(), [&](const std::byte* at, std::size_t count, std::int64_t stride) {
                    at += bytes(first * channel_.stride);
                    for (std::size_t i = 0; i < count; ++i, at += bytes(stride)) {
                        add_row(read(at, size, channel_.stride, buffer), size, channel, zeros.data());
                        if (++rows % kMostRows == 0) keep_zeros();
                    }
                    return true;
                });
            keep_zeros();
        }
    }
    void add_row(const Lane* data, std::size_t n, std::size_t first, std::uint32_t* zeros) noexcept {
        if constexpr (std::is_same_v<Lane, float>) {
            kernel_.widen_extremes(data, n, minima_.data() + first, maxima_.data() + first, zeros);
        } else {
            for (std::size_t i = 0; i < n; ++i) {
                zeros[i] += data[i] == 0 ? 1U : 0U;
                if (std::isfinite(data[i])) widen(first + i, data[i]);
            }
        }
    }

    void scan_runs() {
        // All places where a run of the first channel begins.
        Walk places;
        places.begin = rest_.begin;
        places.rank = std::max<std::size_t>(rest_.rank - 1, 1);
        places.dimensions[0] = {1, 1};  // where the run is all there is
        std::copy_n(rest_.dimensions.begin() + 1, rest_.rank - 1, places.dimensions.begin());
        places.for_each_run(
            view_.element_bytes(), [&](const std::byte* at, std::size_t count, std::int64_t stride) {
                for (std::size_t i = 0; i < count; ++i, at += bytes(stride))
                    for (std::int64_t channel = 0; channel < channel_.extent; ++channel)
                        add_run(at + bytes(channel * channel_.stride), static_cast<std::size_t>(channel));
                return true;
            });
    }
    void add_run(const std::byte* at, std::size_t channel) noexcept {
        const Dimension& run = rest_.dimensions[0];
        Buffer buffer;
        for (auto left = static_cast<std::size_t>(run.extent); left > 0;) {
            const std::size_t part = std::min(left, kPart);
            const Lane* const data = read(at, part, run.stride, buffer);
            if constexpr (std::is_same_v<Lane, float>) {
                Extremes extremes{minima_[channel], maxima_[channel], zeros_[channel]};
                kernel_.find_extremes(data, part, extremes);
                minima_[channel] = extremes.min;
                maxima_[channel] = extremes.max;
                zeros_[channel] = extremes.zeros;
            } else {
                for (std::size_t i = 0; i < part; ++i) {
                    zeros_[channel] += data[i] == 0 ? 1U : 0U;
                    if (std::isfinite(data[i])) widen(channel, data[i]);
                }
            }
            at += bytes(static_cast<std::int64_t>(part) * run.stride);
            left -= part;
        }
    }

    void widen(std::size_t channel, Lane value) noexcept {
        minima_[channel] = std::min(minima_[channel], value);
        maxima_[channel] = std::max(maxima_[channel], value);
    }

    const KernelTable& kernel_;
    const CheckedView& view_;
    const Walk rest_;  // one channel
    const Dimension channel_;
    std::vector<Lane> minima_;
    std::vector<Lane> maxima_;
    std::vector<std::uint64_t> zeros_;
};

Result<ChannelStatistics> channels_by(const KernelTable& kernel, const tensor::TensorView& view,
                                      std::size_t dimension) {
    TRAINDBG_ASSIGN_OR_RETURN(const CheckedView checked, CheckedView::make(view));
    if (!is_real(view.dtype))
        return Status(Code::kUnsupported,
                      base::format("tensor: no channels of {}", tensor::to_string(view.dtype)));
    const bool has_channels = checked.rank() != 0;
    if (has_channels && dimension >= checked.rank())
        return Status(Code::kInvalidArgument, base::format("tensor: has no dimension {}", dimension));
    const std::int64_t channels = has_channels ? checked.dimension(dimension).extent : 1;
    if (channels > std::int64_t{model::kMostChannels})
        return Status(Code::kUnsupported,
                      base::format("tensor: its {} channels are more than the {} that are looked at",
                                   channels, model::kMostChannels));
    if (checked.count() == 0) {
        const std::vector<float> zeros(static_cast<std::size_t>(channels));
        return ChannelStatistics{zeros, zeros, zeros};
    }
    const int axis = has_channels ? static_cast<int>(dimension) : -1;
    return fits_float(view.dtype) ? ChannelScan<float>(kernel, checked, axis).scan()
                                  : ChannelScan<double>(kernel, checked, axis).scan();
}

}  // namespace

Result<ChannelStatistics> channel_statistics(const tensor::TensorView& view, std::size_t dimension) {
    return channels_by(chosen_kernel(), view, dimension);
}

Result<ChannelStatistics> channel_statistics_with_kernel(std::string_view name,
                                                         const tensor::TensorView& view,
                                                         std::size_t dimension) {
    TRAINDBG_ASSIGN_OR_RETURN(const KernelTable* const kernel, find_kernel(name));
    return channels_by(*kernel, view, dimension);
}

}  // namespace traindbg::reduce
