#include "traindbg/reduce/elements.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "traindbg/reduce/layout.h"

namespace traindbg::reduce {
namespace {

using tensor::DType;

constexpr std::size_t kConverted = 1024;

// The 256 values of a type of floats of 8 bits.
using ByteTable = std::array<float, 256>;
template <DType kType>
const ByteTable& table_of() noexcept {
    static const ByteTable table = [] {
        ByteTable values{};
        for (std::size_t bits = 0; bits < values.size(); ++bits)
            values[bits] = tensor::float8_to_float(kType, static_cast<std::uint8_t>(bits));
        return values;
    }();
    return table;
}

template <typename From, typename To>
void convert(const std::byte* data, std::size_t n, To* out) noexcept {
    for (std::size_t i = 0; i < n; ++i) {
        From value;
        std::memcpy(&value, data + i * sizeof(From), sizeof(From));
        out[i] = static_cast<To>(value);
    }
}

void look_up(const ByteTable& table, const std::byte* data, std::size_t n, float* out) noexcept {
    for (std::size_t i = 0; i < n; ++i) out[i] = table[std::to_integer<std::uint8_t>(data[i])];
}

void truth(const std::byte* data, std::size_t n, float* out) noexcept {
    for (std::size_t i = 0; i < n; ++i) out[i] = data[i] != std::byte{0} ? 1.0F : 0.0F;
}

void narrow(const std::byte* data, std::size_t n, float* out) noexcept {
    for (std::size_t i = 0; i < n; ++i) {
        double value = 0;
        std::memcpy(&value, data + i * sizeof(double), sizeof(double));
        const auto rounded = static_cast<float>(value);
        const bool lost = rounded == 0 && value != 0;
        out[i] = lost ? std::copysign(std::numeric_limits<float>::min(), static_cast<float>(value > 0) - 0.5F)
                      : rounded;
    }
}

void to_doubles(DType dtype, const std::byte* data, std::size_t n, double* out) noexcept {
    switch (dtype) {
        case DType::kInt64: return convert<std::int64_t>(data, n, out);
        case DType::kInt32: return convert<std::int32_t>(data, n, out);
        case DType::kUInt64: return convert<std::uint64_t>(data, n, out);
        case DType::kUInt32: return convert<std::uint32_t>(data, n, out);
        default: return convert<double>(data, n, out);
    }
}

bool is_aligned(const std::byte* data, std::size_t alignment) noexcept {
    return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

}  // namespace

void to_floats(const KernelTable& kernel, DType dtype, const std::byte* data, std::size_t n,
               float* out) noexcept {
    switch (dtype) {
        case DType::kFloat32: std::memcpy(out, data, n * sizeof(float)); return;
        case DType::kFloat16:
            return kernel.widen_float16(reinterpret_cast<const std::uint16_t*>(data), n, out);
        case DType::kBFloat16:
            return kernel.widen_bfloat16(reinterpret_cast<const std::uint16_t*>(data), n, out);
        case DType::kFloat8E4M3: return look_up(table_of<DType::kFloat8E4M3>(), data, n, out);
        case DType::kFloat8E5M2: return look_up(table_of<DType::kFloat8E5M2>(), data, n, out);
        case DType::kFloat8E4M3Fnuz: return look_up(table_of<DType::kFloat8E4M3Fnuz>(), data, n, out);
        case DType::kFloat8E5M2Fnuz: return look_up(table_of<DType::kFloat8E5M2Fnuz>(), data, n, out);
        case DType::kFloat8E8M0: return look_up(table_of<DType::kFloat8E8M0>(), data, n, out);
        case DType::kFloat64: return narrow(data, n, out);
        case DType::kInt64: return convert<std::int64_t>(data, n, out);
        case DType::kInt32: return convert<std::int32_t>(data, n, out);
        case DType::kUInt64: return convert<std::uint64_t>(data, n, out);
        case DType::kUInt32: return convert<std::uint32_t>(data, n, out);
        case DType::kInt16: return convert<std::int16_t>(data, n, out);
        case DType::kInt8: return convert<std::int8_t>(data, n, out);
        case DType::kUInt16: return convert<std::uint16_t>(data, n, out);
        case DType::kUInt8: return convert<std::uint8_t>(data, n, out);
        case DType::kBool: return truth(data, n, out);
        case DType::kUnknown:
        case DType::kComplex64:
        case DType::kComplex128: std::fill_n(out, n, std::numeric_limits<float>::quiet_NaN()); return;
    }
}

void to_doubles(const KernelTable& kernel, DType dtype, const std::byte* data, std::size_t n,
                double* out) noexcept {
    if (!fits_float(dtype)) return to_doubles(dtype, data, n, out);
    std::array<float, kPart> floats;
    const std::size_t bytes = tensor::byte_size(dtype);
    for (std::size_t done = 0; done < n;) {
        const std::size_t part = std::min(n - done, kPart);
        to_floats(kernel, dtype, data + done * bytes, part, floats.data());
        std::copy_n(floats.begin(), part, out + done);
        done += part;
    }
}

const float* floats_at(const KernelTable& kernel, DType dtype, const std::byte* data, std::size_t n,
                       std::int64_t stride, float* buffer) noexcept {
    if (dtype == DType::kFloat32 && stride == 1 && is_aligned(data, alignof(float)))
        return reinterpret_cast<const float*>(data);
    if (stride == 1) {
        to_floats(kernel, dtype, data, n, buffer);
        return buffer;
    }
    alignas(64) std::array<std::byte, kPart * sizeof(double)> gathered;
    gather_bytes(tensor::byte_size(dtype), data, n, stride, gathered.data());
    to_floats(kernel, dtype, gathered.data(), n, buffer);
    return buffer;
}

void add_elements(const KernelTable& kernel, DType dtype, const std::byte* data, std::size_t n,
                  Accumulator& into) noexcept {
    // Frameworks align elements; a view into a byte buffer need not be, and is copied.
    if (is_aligned(data, tensor::byte_size(dtype))) {
        switch (dtype) {
            case DType::kFloat32: return kernel.add_float32(reinterpret_cast<const float*>(data), n, into);
            case DType::kFloat64: return kernel.add_float64(reinterpret_cast<const double*>(data), n, into);
            case DType::kFloat16:
                return kernel.add_float16(reinterpret_cast<const std::uint16_t*>(data), n, into);
            case DType::kBFloat16:
                return kernel.add_bfloat16(reinterpret_cast<const std::uint16_t*>(data), n, into);
            default: break;
        }
    }
    const std::size_t bytes = tensor::byte_size(dtype);
    std::array<float, kConverted> floats;
    std::array<double, kConverted> doubles;
    while (n > 0) {
        const std::size_t part = std::min(n, kConverted);
        if (fits_float(dtype)) {
            to_floats(kernel, dtype, data, part, floats.data());
            kernel.add_float32(floats.data(), part, into);
        } else {
            to_doubles(dtype, data, part, doubles.data());
            kernel.add_float64(doubles.data(), part, into);
        }
        data += part * bytes;
        n -= part;
    }
}

void add_differences(const KernelTable& kernel, DType dtype, const std::byte* before, const std::byte* after,
                     std::size_t n, DifferenceAccumulator& into) noexcept {
    const std::size_t bytes = tensor::byte_size(dtype);
    if (is_aligned(before, bytes) && is_aligned(after, bytes)) {
        switch (dtype) {
            case DType::kFloat32:
                return kernel.add_difference_float32(reinterpret_cast<const float*>(before),
                                                     reinterpret_cast<const float*>(after), n, into);
            case DType::kFloat64:
                return kernel.add_difference_float64(reinterpret_cast<const double*>(before),
                                                     reinterpret_cast<const double*>(after), n, into);
            case DType::kFloat16:
                return kernel.add_difference_float16(reinterpret_cast<const std::uint16_t*>(before),
                                                     reinterpret_cast<const std::uint16_t*>(after), n, into);
            case DType::kBFloat16:
                return kernel.add_difference_bfloat16(reinterpret_cast<const std::uint16_t*>(before),
                                                      reinterpret_cast<const std::uint16_t*>(after), n, into);
            default: break;
        }
    }
    std::array<std::array<float, kConverted>, 2> floats;
    std::array<std::array<double, kConverted>, 2> doubles;
    while (n > 0) {
        const std::size_t part = std::min(n, kConverted);
        if (fits_float(dtype)) {
            to_floats(kernel, dtype, before, part, floats[0].data());
            to_floats(kernel, dtype, after, part, floats[1].data());
            kernel.add_difference_float32(floats[0].data(), floats[1].data(), part, into);
        } else {
            to_doubles(dtype, before, part, doubles[0].data());
            to_doubles(dtype, after, part, doubles[1].data());
            kernel.add_difference_float64(doubles[0].data(), doubles[1].data(), part, into);
        }
        before += part * bytes;
        after += part * bytes;
        n -= part;
    }
}

[[gnu::hot]] double to_double(DType dtype, const std::byte* data) noexcept {
    if (dtype == DType::kFloat32) {  // nearly always
        float value = 0;
        std::memcpy(&value, data, sizeof(value));
        return static_cast<double>(value);
    }
    if (fits_float(dtype)) {
        // The table with the plainest code will do for one element.
        float value = 0;
        to_floats(*runnable_kernels().back(), dtype, data, 1, &value);
        return static_cast<double>(value);
    }
    double value = 0;
    to_doubles(dtype, data, 1, &value);
    return value;
}

}  // namespace traindbg::reduce
