// What each channel of a tensor holds, where somebody asked for it: which units are dead, which saturate,
// which have weights that run away.
//
// A channel is an index of dimension 1: of a batch of activations, a unit; it is an index of the last
// dimension where there are three (as in a transformer), and of dimension 0 where there is one. That is what
// UnitStatistics calls a unit. Of a weight, of its gradient, its update and its optimizer state, and of a
// buffer, a channel is an index of dimension 0, whatever the number of dimensions: what makes one output.
// A tensor without dimensions has one channel.
//
// Plain values; the cost of a channel is 12 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traindbg/model/tensor_info.h"

namespace traindbg::model {

// Index = channel; the three vectors have one length. Rounded to float32: a finite value stays finite, one
// that is not zero stays so.
struct ChannelStatistics {
    std::vector<float> min;  // of the finite elements; 0 where there is none
    std::vector<float> max;
    std::vector<float> zero;  // the share of elements that are 0; 0 where there are no elements

    [[nodiscard]] std::size_t channels() const noexcept { return min.size(); }
    friend bool operator==(const ChannelStatistics&, const ChannelStatistics&) = default;
};

// Tensors of more channels are skipped, and counted: they bound what a step may hold of one tensor.
inline constexpr std::uint32_t kMostChannels = 65'536;

// Of which dimension the channels are indexes, of a tensor of this role and rank. `rank` is not 0.
[[nodiscard]] constexpr std::size_t channel_dimension(Role role, std::size_t rank) noexcept {
    switch (role) {
        case Role::kWeight:
        case Role::kBias:
        case Role::kGradient:
        case Role::kGradientBefore:
        case Role::kWeightUpdate:
        case Role::kOptimizerState:
        case Role::kBuffer: return 0;
        default: return rank == 3 ? 2 : rank == 1 ? 0 : 1;
    }
}

struct ChannelSample {
    TensorId tensor = 0;
    ChannelStatistics channels;

    friend bool operator==(const ChannelSample&, const ChannelSample&) = default;
};

}  // namespace traindbg::model
