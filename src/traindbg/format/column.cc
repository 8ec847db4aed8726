#include "traindbg/format/column.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"
#include "traindbg/format/frame.h"

namespace traindbg::format {
namespace {

using base::ByteReader;
using base::ByteSpan;
using base::ByteWriter;
using base::Code;
using base::Result;
using base::Status;

// What an opaque column may grow to; writers end a page long before.
constexpr std::uint32_t kMostColumnBytes = std::uint32_t{64} << 20;
// Below this, zstd's own header costs more than it saves.
constexpr std::size_t kLeastToCompress = 32;

Status damaged(const char* what) { return {Code::kDataLoss, what}; }

Encoding encoding_of(const ColumnEntry& entry) noexcept {
    return static_cast<Encoding>(entry.encoding & ~kCompressed);
}

// Why a column in an encoding that its values do not have cannot be read: nobody knows yet what it means, or
// it is wrong. The table that says it has a checksum.
Status not_decoded(const ColumnEntry& entry, const char* damage) {
    if (encoding_of(entry) <= Encoding::kBytes) return damaged(damage);
    return {Code::kUnsupported,
            base::format("written by a newer version of traindbg (column {} in encoding {})",
                         unsigned{entry.column}, static_cast<unsigned>(encoding_of(entry)))};
}

std::int64_t difference(std::uint64_t a, std::uint64_t b) noexcept {
    return static_cast<std::int64_t>(a - b);
}

}  // namespace

ColumnEncoder::ColumnEncoder(std::uint64_t salt) : seed_(checksum_seed(salt)) {}

ColumnEntry ColumnEncoder::store(Encoding encoding, ByteSpan raw, ByteWriter& out) {
    ColumnEntry entry;
    entry.encoding = static_cast<std::uint8_t>(encoding);
    entry.raw_bytes = static_cast<std::uint32_t>(raw.size());
    ByteSpan stored = raw;
    if (raw.size() >= kLeastToCompress) {
        if (const ByteSpan compressed = compressor_.compress(raw); !compressed.empty()) {
            stored = compressed;
            entry.encoding |= kCompressed;
        }
    }
    entry.stored_bytes = static_cast<std::uint32_t>(stored.size());
    entry.checksum = base::crc32c(stored, seed_);
    out.append(stored);
    return entry;
}

ColumnEntry ColumnEncoder::integers(std::span<const std::uint64_t> values, ByteWriter& out) {
    varints_.clear();
    if (!values.empty()) {
        const std::uint64_t stride = values.size() > 1 ? values[1] - values[0] : 0;
        bool is_linear = true;
        for (std::size_t i = 2; i < values.size() && is_linear; ++i)
            is_linear = values[i] - values[i - 1] == stride;
        if (is_linear) {
            varints_.zigzag(static_cast<std::int64_t>(values[0]));
            varints_.zigzag(static_cast<std::int64_t>(stride));
            return store(Encoding::kLinear, varints_.bytes(), out);
        }
    }
    std::uint64_t before = 0;
    for (const std::uint64_t value : values) {
        varints_.zigzag(difference(value, before));
        before = value;
    }
    return store(Encoding::kDeltas, varints_.bytes(), out);
}

template <typename T>
ColumnEntry ColumnEncoder::split(std::span<const T> values, ByteWriter& out) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const auto bits = [&](std::size_t i) { return std::bit_cast<Bits>(values[i]); };
    bool is_constant = true;
    for (std::size_t i = 1; i < values.size() && is_constant; ++i) is_constant = bits(i) == bits(0);
    if (is_constant && !values.empty())
        return store(Encoding::kConstant, std::as_bytes(values.first(1)), out);
    planes_.resize(values.size_bytes());
    for (std::size_t plane = 0; plane < sizeof(T); ++plane) {
        std::byte* const bytes = planes_.data() + plane * values.size();
        for (std::size_t i = 0; i < values.size(); ++i)
            bytes[i] = static_cast<std::byte>(bits(i) >> (8 * plane) & 0xFF);
    }
    return store(Encoding::kPlanes, planes_, out);
}

ColumnEntry ColumnEncoder::floats(std::span<const float> values, ByteWriter& out) {
    return split<float>(values, out);
}

ColumnEntry ColumnEncoder::doubles(std::span<const double> values, ByteWriter& out) {
    return split<double>(values, out);
}

ColumnEntry ColumnEncoder::bytes(ByteSpan values, ByteWriter& out) {
    return store(Encoding::kBytes, values, out);
}

Result<ByteSpan> ColumnDecoder::open(const ColumnEntry& entry, ByteSpan stored, std::uint64_t salt) {
    if (stored.size() != entry.stored_bytes || entry.raw_bytes > kMostColumnBytes)
        return damaged("a column is not as large as its page says");
    if (base::crc32c(stored, checksum_seed(salt)) != entry.checksum)
        return damaged("the checksum of a column does not match");
    if ((entry.encoding & kCompressed) == 0) {
        if (entry.raw_bytes != entry.stored_bytes)
            return damaged("a column is not as large as its page says");
        return stored;
    }
    TRAINDBG_RETURN_IF_ERROR(decompressor_.decompress(stored, entry.raw_bytes, buffer_));
    return ByteSpan(buffer_);
}

Status ColumnDecoder::integers(const ColumnEntry& entry, ByteSpan stored, std::uint64_t salt,
                               std::size_t rows, std::vector<std::uint64_t>& out) {
    const Encoding encoding = encoding_of(entry);
    if (encoding != Encoding::kLinear && encoding != Encoding::kDeltas)
        return not_decoded(entry, "a column of integers does not hold any");
    if (rows > kMostPageRows || entry.raw_bytes > 20 + rows * 10)
        return damaged("a column is larger than its values can be");
    TRAINDBG_ASSIGN_OR_RETURN(const ByteSpan raw, open(entry, stored, salt));
    ByteReader reader(raw);
    out.resize(rows);
    if (encoding == Encoding::kLinear) {
        auto value = static_cast<std::uint64_t>(reader.zigzag());
        const auto stride = static_cast<std::uint64_t>(reader.zigzag());
        for (std::uint64_t& each : out) {
            each = value;
            value += stride;
        }
    } else {
        std::uint64_t value = 0;
        for (std::uint64_t& each : out) {
            value += static_cast<std::uint64_t>(reader.zigzag());
            each = value;
        }
    }
    if (!reader.ok() || reader.remaining() != 0) return damaged("a column does not hold its values");
    return Status::ok();
}

template <typename T>
Status ColumnDecoder::join(const ColumnEntry& entry, ByteSpan stored, std::uint64_t salt, std::size_t rows,
                           std::vector<T>& out) {
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    const bool is_constant = encoding_of(entry) == Encoding::kConstant;
    if (!is_constant && encoding_of(entry) != Encoding::kPlanes)
        return not_decoded(entry, "a column of floats does not hold any");
    if (rows > kMostPageRows || entry.raw_bytes != (is_constant ? sizeof(T) : rows * sizeof(T)))
        return damaged("a column is not as large as its values");
    TRAINDBG_ASSIGN_OR_RETURN(const ByteSpan raw, open(entry, stored, salt));
    out.resize(rows);
    if (is_constant) {
        T value{};
        std::memcpy(&value, raw.data(), sizeof(T));
        std::fill(out.begin(), out.end(), value);
        return Status::ok();
    }
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(raw.data());
    for (std::size_t i = 0; i < rows; ++i) {
        Bits bits = 0;
        for (std::size_t plane = 0; plane < sizeof(T); ++plane)
            bits |= static_cast<Bits>(bytes[plane * rows + i]) << (8 * plane);
        out[i] = std::bit_cast<T>(bits);
    }
    return Status::ok();
}

Status ColumnDecoder::floats(const ColumnEntry& entry, ByteSpan stored, std::uint64_t salt, std::size_t rows,
                             std::vector<float>& out) {
    return join<float>(entry, stored, salt, rows, out);
}

Status ColumnDecoder::doubles(const ColumnEntry& entry, ByteSpan stored, std::uint64_t salt, std::size_t rows,
                              std::vector<double>& out) {
    return join<double>(entry, stored, salt, rows, out);
}

Result<ByteSpan> ColumnDecoder::bytes(const ColumnEntry& entry, ByteSpan stored, std::uint64_t salt) {
    if (encoding_of(entry) != Encoding::kBytes)
        return not_decoded(entry, "a column of bytes does not hold any");
    return open(entry, stored, salt);
}

}  // namespace traindbg::format
