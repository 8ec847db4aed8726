#include "traindbg/capture/row_prints.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "traindbg/capture/number_table.h"

namespace traindbg::capture {
namespace {

using tensor::DType;
using tensor::TensorView;
using Extents = std::span<const std::int64_t>;

constexpr std::size_t kMostNeighbours = 4 * kMostPrintedValues;

// Which of so many values of a row is the i-th of `number` that are looked at: i * values / number, rounded
// down, without the product, which may be too large.
constexpr std::int64_t place_of_print(std::int64_t i, std::int64_t values, std::int64_t number) noexcept {
    return values / number * i + values % number * i / number;
}

constexpr std::array<std::uint64_t, kMostPrintedValues> odd_factors() noexcept {
    std::array<std::uint64_t, kMostPrintedValues> factors{};
    std::uint64_t state = 0;
    for (std::uint64_t& factor : factors) {
        state += 0x9E3779B97F4A7C15;
        factor = (mixed(state) | 1) - (std::uint64_t{1} << 63);
    }
    return factors;
}
constexpr std::array<std::uint64_t, kMostPrintedValues> kFactors = odd_factors();

std::size_t word_size(DType dtype) noexcept {
    return dtype == DType::kComplex64 || dtype == DType::kComplex128 ? 0 : tensor::byte_size(dtype);
}

template <typename Word>
Word word_at(const void* data, std::int64_t offset) noexcept {
    Word word;
    std::memcpy(&word, static_cast<const std::byte*>(data) + offset * static_cast<std::int64_t>(sizeof word),
                sizeof word);
    return word;
}

// Calls `visit` with a 0 of the integer type whose values an element's bits are taken for.
template <typename Visit>
void with_word(DType dtype, const Visit& visit) {
    switch (word_size(dtype)) {
        case 1: return visit(std::uint8_t{});
        case 2: return visit(std::int16_t{});
        case 4: return visit(std::int32_t{});
        case 8: return visit(std::int64_t{});
        default: return;
    }
}

// Where the elements of a tensor lie, counted row-major.
class Walk {
  public:
    Walk(Extents shape, Extents strides) noexcept : shape_(shape), strides_(strides) {
        std::int64_t expected = 1;
        for (std::size_t i = strides.size(); i-- > 0;) {
            if (shape[i] != 1 && strides[i] != expected) is_flat_ = false;
            expected *= shape[i];
        }
    }
    // The elements lie one after the other.
    [[nodiscard]] bool is_flat() const noexcept { return is_flat_; }
    [[nodiscard]] std::int64_t offset(std::int64_t number) const noexcept {
        if (is_flat_) return number;
        std::int64_t out = 0;
        for (std::size_t i = shape_.size(); i-- > 0; number /= shape_[i])
            out += number % shape_[i] * strides_[i];
        return out;
    }

  private:
    Extents shape_;
    Extents strides_;  // empty: one after the other
    bool is_flat_ = true;
};

// A batch as rows. The first dimension counts them.
class RowsOf {
  public:
    explicit RowsOf(const TensorView& view) noexcept
        : walk_(view.shape.subspan(1), view.strides.empty() ? Extents{} : view.strides.subspan(1)),
          values(view.element_count() / std::max<std::int64_t>(view.shape[0], 1)),
          stride(view.strides.empty() ? values : view.strides[0]) {}

    [[nodiscard]] bool is_flat() const noexcept { return walk_.is_flat(); }
    // Of the value so many-th of a row, in elements from the row's first.
    [[nodiscard]] std::int64_t offset(std::int64_t place) const noexcept { return walk_.offset(place); }

  private:
    Walk walk_;

  public:
    std::int64_t values;
    std::int64_t stride;  // from row to row
};

bool can_be_read(const TensorView& view) noexcept {
    return view.data != nullptr && word_size(view.dtype) > 0 &&
           (view.strides.empty() || view.strides.size() == view.shape.size());
}

// The sum of the values at `offsets`, times factors from the first of `factors` on: of the 1st, 3rd, ...
// value, and of the others.
template <typename Word>
std::array<std::uint64_t, 2> sums_of(const void* data, std::int64_t row,
                                     std::span<const std::int64_t> offsets,
                                     const std::uint64_t* factors) noexcept {
    const auto term = [&](std::size_t i) {
        const auto bits = static_cast<std::int64_t>(word_at<Word>(data, row + offsets[i]));
        return static_cast<std::uint64_t>(bits) * factors[i];
    };
    std::array<std::uint64_t, 2> sums{};
    const std::size_t pairs = offsets.size() / 2;
    for (std::size_t i = 0; i < 2 * pairs; i += 2) {
        sums[0] += term(i);
        sums[1] += term(i + 1);
    }
    if (offsets.size() > 2 * pairs) sums[0] += term(2 * pairs);
    return sums;
}

// Both are of one type; as floats, where NaN differs from itself, and 0 not from -0.
template <std::uint16_t kInfinity>
bool differ_as_floats(std::uint16_t left, std::uint16_t right) noexcept {
    const auto size = [](std::uint16_t bits) { return bits & 0x7FFF; };
    if (size(left) > kInfinity || size(right) > kInfinity) return true;
    return left != right && (size(left) | size(right)) != 0;
}

// How many of `count` values from `data` on differ from the one before.
template <typename Value, typename Differ>
std::int64_t count_changes(const std::byte* data, std::size_t count, const Differ& differ) noexcept {
    std::int32_t changes = 0;
    for (std::size_t i = 1; i < count; ++i) {
        Value before;
        Value value;
        std::memcpy(&before, data + (i - 1) * sizeof(Value), sizeof(Value));
        std::memcpy(&value, data + i * sizeof(Value), sizeof(Value));
        changes += differ(before, value) ? 1 : 0;
    }
    return changes;
}

std::int64_t count_changes(DType dtype, const std::byte* data, std::size_t count) noexcept {
    const auto differ = [](auto left, auto right) { return left != right; };
    const auto as_float8 = [dtype](std::uint8_t left, std::uint8_t right) {
        return tensor::float8_to_float(dtype, left) != tensor::float8_to_float(dtype, right);
    };
    switch (dtype) {
        case DType::kFloat64: return count_changes<double>(data, count, differ);
        case DType::kFloat32: return count_changes<float>(data, count, differ);
        case DType::kFloat16: return count_changes<std::uint16_t>(data, count, differ_as_floats<0x7C00>);
        case DType::kBFloat16: return count_changes<std::uint16_t>(data, count, differ_as_floats<0x7F80>);
        default: break;
    }
    switch (word_size(dtype)) {
        case 2: return count_changes<std::uint16_t>(data, count, differ);
        case 4: return count_changes<std::uint32_t>(data, count, differ);
        case 8: return count_changes<std::uint64_t>(data, count, differ);
        default: break;
    }
    return tensor::is_floating(dtype) ? count_changes<std::uint8_t>(data, count, as_float8)
                                      : count_changes<std::uint8_t>(data, count, differ);
}

RowLabel label_at(const TensorView& view, std::int64_t offset) noexcept {
    const void* data = view.data;
    switch (view.dtype) {
        case DType::kFloat64: return RowLabel::of(word_at<double>(data, offset));
        case DType::kFloat32: return RowLabel::of(double{word_at<float>(data, offset)});
        case DType::kFloat16:
            return RowLabel::of(double{tensor::half_to_float(word_at<std::uint16_t>(data, offset))});
        case DType::kBFloat16:
            return RowLabel::of(double{tensor::bfloat16_to_float(word_at<std::uint16_t>(data, offset))});
        case DType::kInt64: return {.whole = word_at<std::int64_t>(data, offset)};
        case DType::kInt32: return {.whole = word_at<std::int32_t>(data, offset)};
        case DType::kInt16: return {.whole = word_at<std::int16_t>(data, offset)};
        case DType::kInt8: return {.whole = word_at<std::int8_t>(data, offset)};
        case DType::kUInt64: {
            const auto number = word_at<std::uint64_t>(data, offset);
            if (number >> 63 != 0) return RowLabel::of(static_cast<double>(number));
            return {.whole = static_cast<std::int64_t>(number)};
        }
        case DType::kUInt32: return {.whole = word_at<std::uint32_t>(data, offset)};
        case DType::kUInt16: return {.whole = word_at<std::uint16_t>(data, offset)};
        case DType::kUInt8: return {.whole = word_at<std::uint8_t>(data, offset)};
        case DType::kBool: return {.whole = word_at<std::uint8_t>(data, offset) != 0 ? 1 : 0};
        default: break;
    }
    return RowLabel::of(double{tensor::float8_to_float(view.dtype, word_at<std::uint8_t>(data, offset))});
}

bool has_equal_ones(std::span<const RowLabel> labels) noexcept {
    for (std::size_t i = 1; i < labels.size(); ++i)
        for (std::size_t before = 0; before < i; ++before)
            if (labels[i] == labels[before]) return true;
    return false;
}

}  // namespace

RowLabel RowLabel::of(double number) noexcept {
    constexpr double kLimit = 9223372036854775808.0;  // 2^63
    const bool is_one_of_64_bits = number >= -kLimit && number < kLimit && std::trunc(number) == number;
    return is_one_of_64_bits ? RowLabel{.whole = static_cast<std::int64_t>(number)}
                             : RowLabel{.beyond = number};
}

bool RowLabel::is_whole() const noexcept {
    return beyond == 0 || (std::isfinite(beyond) && std::trunc(beyond) == beyond);
}

std::uint64_t RowLabel::number() const noexcept {
    return beyond == 0 ? static_cast<std::uint64_t>(whole) : mixed(std::bit_cast<std::uint64_t>(beyond));
}

std::optional<RowPrints> RowPrints::take(const TensorView& batch) {
    if (!can_be_read(batch) || batch.shape.size() < 2 || batch.shape[0] < 2) return std::nullopt;
    const RowsOf rows(batch);
    if (rows.values < 2) return std::nullopt;
    RowPrints out(batch.shape[0], rows.values);
    std::array<std::int64_t, kMostPrintedValues> places;
    const std::size_t count = std::min(static_cast<std::size_t>(rows.values), kMostPrintedValues);
    const auto number = static_cast<std::int64_t>(count);
    for (std::int64_t i = 0; i < number; ++i)
        places[static_cast<std::size_t>(i)] = rows.offset(place_of_print(i, rows.values, number));
    const std::span<const std::int64_t> all{places.data(), count};
    const std::size_t middle = count / 2;
    out.halves_.resize(out.looked_at());
    with_word(batch.dtype, [&]<typename Word>(Word) {
        std::int64_t row = 0;
        for (auto& halves : out.halves_) {
            const auto first = sums_of<Word>(batch.data, row, all.first(middle), kFactors.data());
            const auto second = sums_of<Word>(batch.data, row, all.subspan(middle), kFactors.data() + middle);
            halves = {first[0] + first[1], second[0] + second[1], first[0] + second[middle % 2]};
            row += rows.stride;
        }
    });
    return out;
}

void RowPrints::take_changes(const TensorView& batch) {
    if (!can_be_read(batch) || batch.shape.size() < 2) return;
    const RowsOf rows(batch);
    const std::size_t count = std::min(static_cast<std::size_t>(rows.values), kMostNeighbours);
    std::array<std::int64_t, kMostNeighbours> places;
    for (std::size_t i = 0; !rows.is_flat() && i < count; ++i)
        places[i] = rows.offset(static_cast<std::int64_t>(i));
    changes_.resize(looked_at());
    with_word(batch.dtype, [&]<typename Word>(Word) {
        std::array<Word, kMostNeighbours> gathered;
        std::int64_t row = 0;
        for (std::int64_t& changes : changes_) {
            const std::byte* data =
                static_cast<const std::byte*>(batch.data) + row * static_cast<std::int64_t>(sizeof(Word));
            if (!rows.is_flat()) {
                for (std::size_t i = 0; i < count; ++i) gathered[i] = word_at<Word>(data, places[i]);
                data = reinterpret_cast<const std::byte*>(gathered.data());
            }
            changes = count_changes(batch.dtype, data, count);
            row += rows.stride;
        }
    });
}

bool RowPrints::take_further(const TensorView& further) {
    if (!can_be_read(further) || further.shape.empty() || further.shape[0] != batch_) return false;
    const RowsOf rows(further);
    if (rows.values < 1) return false;
    // As the first half of a row in which the values come twice, so that one value will do.
    constexpr std::size_t kMost = kMostPrintedValues / 2;
    std::array<std::int64_t, kMost> places;
    const std::size_t count = std::min(static_cast<std::size_t>(rows.values), kMost);
    const auto number = static_cast<std::int64_t>(count);
    for (std::int64_t i = 0; i < number; ++i)
        places[static_cast<std::size_t>(i)] = rows.offset(place_of_print(i, rows.values, number));
    std::array<std::uint64_t, kMostPrintedRows> sums;
    with_word(further.dtype, [&]<typename Word>(Word) {
        std::int64_t row = 0;
        for (std::size_t i = 0; i < looked_at(); ++i, row += rows.stride) {
            const auto parts = sums_of<Word>(further.data, row, {places.data(), count}, kFactors.data());
            sums[i] = parts[0] + parts[1];
        }
    });
    mix_in({sums.data(), looked_at()});
    return true;
}

bool RowPrints::take_labels(const TensorView& labels) {
    return labels.element_count() == batch_ && read_labels(labels);
}

bool RowPrints::put_labels(const TensorView& labels) {
    return labels.element_count() == static_cast<std::int64_t>(looked_at()) && read_labels(labels);
}

bool RowPrints::read_labels(const TensorView& labels) {
    if (!can_be_read(labels)) return false;
    const Walk walk(labels.shape, labels.strides);
    labels_.resize(looked_at());
    for (std::size_t i = 0; i < labels_.size(); ++i)
        labels_[i] = label_at(labels, walk.offset(static_cast<std::int64_t>(i)));
    if (!has_equal_ones(labels_)) labels_.clear();
    return true;
}

bool RowPrints::put_halves(std::span<const std::int64_t> numbers) {
    if (numbers.size() != 3 * looked_at()) return false;
    halves_.resize(looked_at());
    for (std::size_t i = 0; i < numbers.size(); ++i)
        halves_[i / 3][i % 3] = static_cast<std::uint64_t>(numbers[i]);
    return true;
}

bool RowPrints::put_changes(std::span<const std::int64_t> numbers) {
    if (numbers.size() != looked_at()) return false;
    changes_.assign(numbers.begin(), numbers.end());
    return true;
}

bool RowPrints::put_further(std::span<const std::int64_t> numbers) {
    if (numbers.size() != looked_at()) return false;
    std::array<std::uint64_t, kMostPrintedRows> sums;
    std::transform(numbers.begin(), numbers.end(), sums.begin(),
                   [](std::int64_t number) { return static_cast<std::uint64_t>(number); });
    mix_in({sums.data(), numbers.size()});
    return true;
}

std::uint64_t RowPrints::both(std::size_t row) const noexcept {
    return mixed(mixed(halves_[row][0]) + halves_[row][1]);
}

std::uint64_t RowPrints::whole(std::size_t row) const noexcept {
    return further_.empty() ? both(row) : mixed(both(row) + further_[row]);
}

std::size_t RowPrints::looked_at() const noexcept {
    return std::min(static_cast<std::size_t>(std::max<std::int64_t>(batch_, 0)), kMostPrintedRows);
}

void RowPrints::mix_in(std::span<const std::uint64_t> further) {
    further_.resize(further.size());
    for (std::size_t i = 0; i < further.size(); ++i) further_[i] = further_[i] * 31 + further[i];
}

}  // namespace traindbg::capture
