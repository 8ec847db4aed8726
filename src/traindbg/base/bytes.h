// Reading and writing little-endian bytes with every bound checked.
//
// `ByteWriter` appends to a buffer that it owns; `ByteReader` walks a span that somebody else owns
// and never reads past it: after the first short read it stays failed, all further reads give zero,
// and the caller asks `ok()` once at the end. That shape keeps decoders of untrusted input free of a
// check per field and still safe.
//
// Thread-safety: one thread per object. Cost: no allocation in `ByteReader`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace traindbg::base {

static_assert(std::endian::native == std::endian::little,
              "the run format is little-endian and written without swapping");

using ByteSpan = std::span<const std::byte>;
using ByteBuffer = std::vector<std::byte>;

[[nodiscard]] inline ByteSpan as_bytes(std::string_view text) noexcept {
    return std::as_bytes(std::span(text.data(), text.size()));
}

class ByteWriter {
  public:
    [[nodiscard]] const ByteBuffer& bytes() const noexcept { return bytes_; }
    [[nodiscard]] ByteBuffer take() noexcept { return std::move(bytes_); }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_.size(); }
    void clear() noexcept { bytes_.clear(); }
    void reserve(std::size_t size) { bytes_.reserve(size); }

    template <typename T>
    requires std::is_trivially_copyable_v<T>
    void fixed(T value) { append(std::as_bytes(std::span(&value, 1))); }
    template <typename T>
    requires std::is_trivially_copyable_v<T>
    void array(std::span<const T> values) { append(std::as_bytes(values)); }
    void append(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    // LEB128: seven bits a byte, least significant first.
    void varint(std::uint64_t value) {
        while (value >= 0x80) {
            bytes_.push_back(static_cast<std::byte>(value | 0x80));
            value >>= 7;
        }
        bytes_.push_back(static_cast<std::byte>(value));
    }
    void zigzag(std::int64_t value) {
        varint((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
    }
    // A varint length, then the bytes.
    void text(std::string_view value) {
        varint(value.size());
        append(as_bytes(value));
    }
    // `size` zeros more, to be written to by the caller before anything else is appended.
    [[nodiscard]] std::span<std::byte> extend(std::size_t size) {
        bytes_.resize(bytes_.size() + size);
        return std::span(bytes_).last(size);
    }
    // Puts a varint before what was written from `offset` on: the length of something that is known
    // afterwards.
    void insert_varint(std::size_t offset, std::uint64_t value) {
        ByteWriter number;
        number.varint(value);
        bytes_.insert(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), number.bytes_.begin(),
                      number.bytes_.end());
    }
    void pad_to(std::size_t alignment) {
        while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
    }
    // Overwrites what was written before; `offset + sizeof(T)` must lie inside.
    template <typename T>
    requires std::is_trivially_copyable_v<T>
    void patch(std::size_t offset, T value) { std::memcpy(bytes_.data() + offset, &value, sizeof(T)); }

  private:
    ByteBuffer bytes_;
};

class ByteReader {
  public:
    explicit ByteReader(ByteSpan bytes) noexcept : bytes_(bytes) {}

    [[nodiscard]] bool ok() const noexcept { return ok_; }
    [[nodiscard]] std::size_t offset() const noexcept { return offset_; }
    [[nodiscard]] std::size_t remaining() const noexcept { return bytes_.size() - offset_; }
    // Marks the input as bad, for decoders that find a value out of range.
    void fail() noexcept {
        ok_ = false;
        offset_ = bytes_.size();
    }

    template <typename T>
    requires std::is_trivially_copyable_v<T>
    [[nodiscard]] T fixed() noexcept {
        T value{};
        const ByteSpan source = raw(sizeof(T));
        if (source.size() == sizeof(T)) std::memcpy(&value, source.data(), sizeof(T));
        return value;
    }
    [[nodiscard]] std::uint64_t varint() noexcept {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (remaining() == 0) break;
            const auto byte = std::to_integer<std::uint64_t>(bytes_[offset_++]);
            value |= (byte & 0x7F) << shift;
            if ((byte & 0x80) == 0) {
                if (shift == 63 && byte > 1) break;  // more than 64 bits
                return value;
            }
        }
        fail();
        return 0;
    }
    [[nodiscard]] std::int64_t zigzag() noexcept {
        const std::uint64_t value = varint();
        return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
    }
    // A count of things that take at least `bytes_each` bytes: fails when the rest cannot hold them,
    // so that a caller may allocate for the count it got.
    [[nodiscard]] std::size_t count(std::size_t bytes_each = 1) noexcept {
        const std::uint64_t value = varint();
        if (bytes_each != 0 && value > remaining() / bytes_each) {
            fail();
            return 0;
        }
        return static_cast<std::size_t>(value);
    }
    [[nodiscard]] ByteSpan raw(std::size_t size) noexcept {
        if (size > remaining()) {
            fail();
            return {};
        }
        const ByteSpan part = bytes_.subspan(offset_, size);
        offset_ += size;
        return part;
    }
    [[nodiscard]] std::string_view text() noexcept {
        const ByteSpan part = raw(count());
        return {reinterpret_cast<const char*>(part.data()), part.size()};
    }
    template <typename T>
    requires std::is_trivially_copyable_v<T>
    void array(std::span<T> out) noexcept {
        const ByteSpan part = raw(out.size_bytes());
        if (part.size() == out.size_bytes() && !out.empty())
            std::memcpy(out.data(), part.data(), part.size());
    }

  private:
    ByteSpan bytes_;
    std::size_t offset_ = 0;
    bool ok_ = true;
};

}  // namespace traindbg::base
