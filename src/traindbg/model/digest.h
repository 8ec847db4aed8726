// What tells two tensors apart without keeping either, where somebody asked for it. Plain values.
#pragma once

#include <bit>
#include <cstdint>

#include "traindbg/model/tensor_info.h"

namespace traindbg::model {

struct Digest {
    // XXH3 (64 bits) of the elements' bytes, row-major and little-endian, and then of the element type and
    // the shape. Equal tensors have equal fingerprints on every machine, in every run and however they lie in
    // memory; others have one in 2^64 by chance. It knows no NaN and no sign of zero but their bits. Nobody
    // is kept from making two tensors of one fingerprint on purpose.
    std::uint64_t fingerprint = 0;
    // Of the finite elements, in float64; 1 where there is none, 0 as soon as one is 0. Else it is infinite
    // or 0 only where the product, but for the rounding of each multiplication, does not fit into a double.
    double product = 1;

    // The products' bits are compared, as the bytes of the fingerprint are.
    friend bool operator==(const Digest& a, const Digest& b) noexcept {
        return a.fingerprint == b.fingerprint &&
               std::bit_cast<std::uint64_t>(a.product) == std::bit_cast<std::uint64_t>(b.product);
    }
};

struct DigestSample {
    TensorId tensor = 0;
    Digest digest;

    friend bool operator==(const DigestSample&, const DigestSample&) = default;
};

}  // namespace traindbg::model
