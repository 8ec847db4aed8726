// Columns: many values of one kind, one after the other, small on disk and quick to read.
//
// A page holds a table of its columns and then their bytes. Each column has a checksum of its own,
// so that a reader fetches and verifies what it wants and nothing else.
//
// Decoders are pure functions over bytes that nobody vouches for: the number of values is bounded by
// the page, sizes by the table, and the answer is a value, kDataLoss, or kUnsupported for an encoding of a
// newer version, whose bytes are not looked at.
//
// Thread-safety: free functions and plain values; a codec's scratch memory belongs to one thread.
// Cost: one pass over the values, and zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/format/compression.h"

namespace traindbg::format {

// No page has more rows.
inline constexpr std::uint32_t kMostPageRows = 4096;

// How a column's bytes are made. The numbers are written into files: never change one, only add.
enum class Encoding : std::uint8_t {
    kLinear = 0,    // zigzag first, zigzag stride: integers that count up evenly, or do not change
    kDeltas = 1,    // a zigzag for each integer: its distance from the one before, from 0 for the first
    kConstant = 2,  // 4 or 8 bytes: one float for all
    kPlanes = 3,    // floats by byte: all lowest bytes, then all second ones, ...
    kBytes = 4,     // as they are
};
// In the upper bit of an encoding's byte: the bytes were compressed with zstd afterwards.
inline constexpr std::uint8_t kCompressed = 0x80;

// An entry of a page's table.
struct ColumnEntry {
    std::uint8_t column = 0;  // what it holds: format::Column, or one that this version does not know
    std::uint8_t encoding = 0;
    std::uint32_t raw_bytes = 0;     // before compression
    std::uint32_t stored_bytes = 0;  // as they lie
    std::uint32_t checksum = 0;      // of the stored bytes, see checksum_seed
    std::uint32_t offset = 0;        // in the page; not written, the sum of those before
};

// Turns values into the bytes of a column. `entry.column` is the caller's; all else is filled in.
class ColumnEncoder {
  public:
    explicit ColumnEncoder(std::uint64_t salt);

    // Appends to `out` and returns the column's entry. At most kMostPageRows values.
    [[nodiscard]] ColumnEntry integers(std::span<const std::uint64_t> values, base::ByteWriter& out);
    [[nodiscard]] ColumnEntry floats(std::span<const float> values, base::ByteWriter& out);
    [[nodiscard]] ColumnEntry doubles(std::span<const double> values, base::ByteWriter& out);
    [[nodiscard]] ColumnEntry bytes(base::ByteSpan values, base::ByteWriter& out);

  private:
    template <typename T>
    [[nodiscard]] ColumnEntry split(std::span<const T> values, base::ByteWriter& out);
    [[nodiscard]] ColumnEntry store(Encoding encoding, base::ByteSpan raw, base::ByteWriter& out);

    std::uint32_t seed_;
    Compressor compressor_;
    base::ByteBuffer planes_;
    base::ByteWriter varints_;
};

class ColumnDecoder {
  public:
    // `stored` are the entry's bytes as they lie in the file, `rows` how many values there must be.
    [[nodiscard]] base::Status integers(const ColumnEntry& entry, base::ByteSpan stored, std::uint64_t salt,
                                        std::size_t rows, std::vector<std::uint64_t>& out);
    [[nodiscard]] base::Status floats(const ColumnEntry& entry, base::ByteSpan stored, std::uint64_t salt,
                                      std::size_t rows, std::vector<float>& out);
    [[nodiscard]] base::Status doubles(const ColumnEntry& entry, base::ByteSpan stored, std::uint64_t salt,
                                       std::size_t rows, std::vector<double>& out);
    // Borrows `stored` or memory of the decoder; valid until its next call.
    [[nodiscard]] base::Result<base::ByteSpan> bytes(const ColumnEntry& entry, base::ByteSpan stored,
                                                     std::uint64_t salt);

  private:
    template <typename T>
    [[nodiscard]] base::Status join(const ColumnEntry& entry, base::ByteSpan stored, std::uint64_t salt,
                                    std::size_t rows, std::vector<T>& out);
    // Verified and decompressed.
    [[nodiscard]] base::Result<base::ByteSpan> open(const ColumnEntry& entry, base::ByteSpan stored,
                                                    std::uint64_t salt);

    Decompressor decompressor_;
    base::ByteBuffer buffer_;
};

}  // namespace traindbg::format
