// A tensor made for a test: values of any element type in memory of any layout, and the reference that
// the reducer is compared with.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "traindbg/model/statistics.h"
#include "traindbg/tensor/dtype.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg::reduce::test {

using tensor::DType;

// All of which reductions are made: any that there is, but for complex ones.
inline std::vector<DType> real_types() {
    std::vector<DType> types;
    for (unsigned number = 1; number <= static_cast<unsigned>(tensor::kLastDType); ++number) {
        const auto dtype = static_cast<DType>(number);
        if (tensor::is_floating(dtype) || tensor::is_integer(dtype)) types.push_back(dtype);
    }
    return types;
}

// The nearest half to a float, by search: positive halves are ordered like their bits.
inline std::uint16_t to_half(float value) {
    const bool negative = std::signbit(value);
    const float size = std::abs(value);
    if (std::isnan(value)) return 0x7E00;
    std::uint32_t low = 0;
    std::uint32_t high = 0x7C00;
    while (low + 1 < high) {
        const std::uint32_t middle = (low + high) / 2;
        (tensor::half_to_float(static_cast<std::uint16_t>(middle)) <= size ? low : high) = middle;
    }
    if (size >= 65520.0F) low = 0x7C00;
    return static_cast<std::uint16_t>(low | (negative ? 0x8000U : 0U));
}

template <typename T>
void put(std::byte* at, T value) {
    std::memcpy(at, &value, sizeof value);
}
template <typename T>
T get(const std::byte* at) {
    T value;
    std::memcpy(&value, at, sizeof value);
    return value;
}

// Stores `value`, rounded to the type; fp8 takes its bits from the value's whole part.
inline void encode(DType dtype, double value, std::byte* at) {
    // 0 for what no integer can be.
    const auto whole = [&] { return std::fabs(value) < 9e18 ? static_cast<std::int64_t>(value) : 0; };
    switch (dtype) {
        case DType::kFloat64: return put(at, value);
        case DType::kFloat32: return put(at, static_cast<float>(value));
        case DType::kFloat16: return put(at, to_half(static_cast<float>(value)));
        case DType::kBFloat16: {
            const auto narrow = static_cast<float>(value);
            const auto bits = std::bit_cast<std::uint32_t>(narrow) >> 16;
            return put(at, static_cast<std::uint16_t>(std::isnan(value) ? 0x7FC0 : bits));
        }
        case DType::kInt64: return put(at, whole());
        case DType::kInt32: return put(at, static_cast<std::int32_t>(whole()));
        case DType::kInt16: return put(at, static_cast<std::int16_t>(whole()));
        case DType::kUInt64: return put(at, static_cast<std::uint64_t>(whole()));
        case DType::kUInt32: return put(at, static_cast<std::uint32_t>(whole()));
        case DType::kUInt16: return put(at, static_cast<std::uint16_t>(whole()));
        case DType::kBool: return put(at, static_cast<std::uint8_t>(value > 0 ? 1 : 0));
        default: return put(at, static_cast<std::uint8_t>(whole()));
    }
}

inline double decode(DType dtype, const std::byte* at) {
    switch (dtype) {
        case DType::kFloat64: return get<double>(at);
        case DType::kFloat32: return static_cast<double>(get<float>(at));
        case DType::kFloat16: return static_cast<double>(tensor::half_to_float(get<std::uint16_t>(at)));
        case DType::kBFloat16: return static_cast<double>(tensor::bfloat16_to_float(get<std::uint16_t>(at)));
        case DType::kFloat8E4M3:
        case DType::kFloat8E5M2:
        case DType::kFloat8E4M3Fnuz:
        case DType::kFloat8E5M2Fnuz:
        case DType::kFloat8E8M0:
            return static_cast<double>(tensor::float8_to_float(dtype, get<std::uint8_t>(at)));
        case DType::kInt64: return static_cast<double>(get<std::int64_t>(at));
        case DType::kInt32: return get<std::int32_t>(at);
        case DType::kInt16: return get<std::int16_t>(at);
        case DType::kInt8: return get<std::int8_t>(at);
        case DType::kUInt64: return static_cast<double>(get<std::uint64_t>(at));
        case DType::kUInt32: return get<std::uint32_t>(at);
        case DType::kUInt16: return get<std::uint16_t>(at);
        default: return get<std::uint8_t>(at);
    }
}

// Memory, a place in it, and shape and strides that lead through it.
class StridedTensor {
  public:
    // Row-major.
    StridedTensor(DType dtype, std::vector<std::int64_t> shape) : dtype_(dtype), shape_(std::move(shape)) {
        std::int64_t size = 1;
        strides_.resize(shape_.size());
        for (std::size_t i = shape_.size(); i-- > 0;) {
            strides_[i] = size;
            size *= shape_[i];
        }
        memory_.resize(static_cast<std::size_t>(size) * tensor::byte_size(dtype));
    }
    // Any layout in `elements` elements of memory, starting at element `offset`.
    StridedTensor(DType dtype, std::size_t elements, std::int64_t offset, std::vector<std::int64_t> shape,
                  std::vector<std::int64_t> strides)
        : dtype_(dtype),
          memory_(elements * tensor::byte_size(dtype)),
          offset_(offset),
          shape_(std::move(shape)),
          strides_(std::move(strides)) {}

    // Fills all memory, seen or not, with what `next` gives.
    template <typename Next>
    StridedTensor& fill(Next&& next) {
        const std::size_t bytes = tensor::byte_size(dtype_);
        for (std::size_t at = 0; at < memory_.size(); at += bytes)
            encode(dtype_, next(), memory_.data() + at);
        return *this;
    }
    void set(std::size_t element, double value) {
        encode(dtype_, value, memory_.data() + element * tensor::byte_size(dtype_));
    }

    [[nodiscard]] tensor::TensorView view() const {
        return {memory_.data() + offset_ * static_cast<std::int64_t>(tensor::byte_size(dtype_)), dtype_,
                shape_, strides_};
    }
    [[nodiscard]] const std::vector<std::int64_t>& shape() const { return shape_; }

    // Every element, row-major.
    [[nodiscard]] std::vector<double> values() const {
        std::vector<double> out;
        std::vector<std::int64_t> index(shape_.size(), 0);
        for (const std::int64_t extent : shape_)
            if (extent == 0) return out;
        while (true) {
            out.push_back(at(index));
            std::size_t i = shape_.size();
            for (; i > 0; --i) {
                if (++index[i - 1] < shape_[i - 1]) break;
                index[i - 1] = 0;
            }
            if (i == 0) return out;
        }
    }
    [[nodiscard]] double at(const std::vector<std::int64_t>& index) const {
        std::int64_t element = offset_;
        for (std::size_t i = 0; i < index.size(); ++i) element += index[i] * strides_[i];
        return decode(dtype_,
                      memory_.data() + element * static_cast<std::int64_t>(tensor::byte_size(dtype_)));
    }

  private:
    DType dtype_;
    std::vector<std::byte> memory_;
    std::int64_t offset_ = 0;
    std::vector<std::int64_t> shape_;
    std::vector<std::int64_t> strides_;
};

// Two passes, in extended precision.
inline model::Statistics reference(const std::vector<double>& values) {
    model::Statistics out;
    out.count = values.size();
    long double sum = 0;
    long double l1 = 0;
    long double squares = 0;
    bool any = false;
    for (const double x : values) {
        if (std::isnan(x)) {
            ++out.nan;
            continue;
        }
        if (std::isinf(x)) {
            ++(x > 0 ? out.positive_infinite : out.negative_infinite);
            continue;
        }
        if (x == 0) ++out.zero;
        out.min = any ? std::min(out.min, x) : x;
        out.max = any ? std::max(out.max, x) : x;
        any = true;
        sum += x;
        l1 += std::abs(x);
        squares += static_cast<long double>(x) * x;
    }
    const auto n = static_cast<long double>(out.finite());
    if (!any) return out;
    const long double mean = sum / n;
    long double deviations = 0;
    for (const double x : values)
        if (std::isfinite(x)) deviations += (x - mean) * (x - mean);
    out.mean = static_cast<double>(mean);
    out.std = static_cast<double>(std::sqrt(deviations / n));
    out.l1 = static_cast<double>(l1);
    out.l2 = static_cast<double>(std::sqrt(squares));
    return out;
}

// What reducer.h promises, to the digit; `of_squares`: of l2 and std, relatively.
inline void expect_close(const model::Statistics& got, const model::Statistics& want, const std::string& what,
                         double of_squares = 1e-5) {
    SCOPED_TRACE(what);
    EXPECT_EQ(got.count, want.count);
    EXPECT_EQ(got.nan, want.nan);
    EXPECT_EQ(got.positive_infinite, want.positive_infinite);
    EXPECT_EQ(got.negative_infinite, want.negative_infinite);
    EXPECT_EQ(got.zero, want.zero);
    EXPECT_EQ(got.min, want.min);
    EXPECT_EQ(got.max, want.max);
    const double mean_size = want.finite() == 0 ? 0 : want.l1 / static_cast<double>(want.finite());
    EXPECT_NEAR(got.mean, want.mean, 1e-6 * mean_size);
    EXPECT_NEAR(got.l1, want.l1, 1e-6 * want.l1);
    EXPECT_NEAR(got.l2, want.l2, of_squares * want.l2);
    EXPECT_NEAR(got.std, want.std, of_squares * want.std + 1e-14 * mean_size);
}

}  // namespace traindbg::reduce::test
