// TFRecord framing: how TensorFlow, TensorBoard and the SageMaker Debugger client lay records into files.
//
//   u64 length of the payload     u32 masked CRC-32C of these 8 bytes
//   payload                       u32 footer
//
// All little-endian. The footer is the masked CRC-32C of the payload; the SageMaker Debugger client
// writes one constant in its place (`kConstantFooter`), whatever the payload.
//
// The length has a checksum of its own, so a record whose payload is damaged still says where the next
// one begins; after a damaged length the scanner looks for the next place where a whole record lies. A
// record whose length is right and whose bytes are not all there is torn or still being written: what
// lies in it is never searched. There is no salt in this format: behind a damaged length, a record that
// is the content of another one can be taken for one of the file.
//
// Ownership: a payload borrows the window. Thread-safety: free functions and plain values; a scanner
// belongs to one thread. Errors: as values and items. Cost: one pass over each payload for its checksum;
// a search costs some comparisons per byte and gives up when it was long (`kForeign`).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"

namespace traindbg::format {

inline constexpr std::size_t kRecordHeaderBytes = 12;
inline constexpr std::size_t kRecordFooterBytes = 4;
// The masked checksum of the ten characters "0x12345678".
inline constexpr std::uint32_t kConstantFooter = 0x062DC0B3;
// A protobuf message is no longer than this.
inline constexpr std::uint64_t kMostRecordPayloadBytes = std::uint64_t{1} << 31;

// What stands behind a payload.
enum class RecordFooter : std::uint8_t {
    kChecksum,  // the payload's own checksum: the payload is as it was written
    kConstant,  // the constant: nothing is known about the payload
};
// Which footers a reader takes.
enum class RecordCheck : std::uint8_t {
    kChecksum,            // TensorFlow, TensorBoard
    kChecksumOrConstant,  // the SageMaker Debugger client, which can be told to write either
};

// The CRC-32C of `bytes`, rotated and shifted as the format wants it.
[[nodiscard]] std::uint32_t masked_crc32c(base::ByteSpan bytes) noexcept;

[[nodiscard]] constexpr std::uint64_t record_bytes(std::uint64_t payload_bytes) noexcept {
    return kRecordHeaderBytes + payload_bytes + kRecordFooterBytes;
}
// Appends one record.
void append_record(base::ByteWriter& out, base::ByteSpan payload,
                   RecordFooter footer = RecordFooter::kChecksum);

struct Record {
    base::ByteSpan payload;
    RecordFooter footer = RecordFooter::kChecksum;
};
// The payload of the record that `bytes` is, exactly: for readers that know from an index where a record
// lies. kDataLoss says what is wrong with it.
[[nodiscard]] base::Result<Record> parse_record(base::ByteSpan bytes, RecordCheck check);

struct RecordItem {
    enum class Kind : std::uint8_t {
        kRecord,    // `offset`, `record`, `bytes` of all of it
        kHole,      // `offset`, `bytes` that belong to no good record, `what`
        kNeedMore,  // come again with a window of at least `bytes_needed`; with `at_end`: nothing more
        kForeign,   // no further record will be found: `what` says why
    };
    Kind kind = Kind::kNeedMore;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    Record record;
    std::string what;
    std::size_t bytes_needed = 0;
};

// Walks the records of one file, however it was cut or damaged, as FrameScanner does for frames.
class RecordScanner {
  public:
    // From `offset`, where a record begins. `most_payload_bytes` bounds the window that a caller must
    // hold: a larger record is skipped over as a hole.
    explicit RecordScanner(RecordCheck check, std::uint64_t offset = 0,
                           std::uint64_t most_payload_bytes = kMostRecordPayloadBytes)
        : check_(check), most_payload_bytes_(most_payload_bytes), position_(offset) {}

    // Where the next window must begin. Behind the file's end while a record that is too large is skipped.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    // The first byte that is not accounted for by a record or a hole.
    [[nodiscard]] std::uint64_t settled() const noexcept { return hole_begin_.value_or(position_); }
    // Why the bytes from `settled()` to the file's end are no record (after kNeedMore with `at_end`);
    // empty where there are none.
    [[nodiscard]] const std::string& tail_reason() const noexcept { return tail_reason_; }

    // `window` begins at `position()`; `at_end`: the file has no more bytes behind it now.
    [[nodiscard]] RecordItem next(base::ByteSpan window, bool at_end);

  private:
    [[nodiscard]] RecordItem take(std::uint64_t bytes, const Record& record);
    [[nodiscard]] RecordItem hole_until(std::uint64_t end);
    [[nodiscard]] RecordItem search(base::ByteSpan window, bool at_end);

    RecordCheck check_;
    std::uint64_t most_payload_bytes_;
    std::uint64_t position_ = 0;
    std::optional<std::uint64_t> hole_begin_;
    std::string hole_reason_;
    std::string tail_reason_;
    bool given_up_ = false;
    std::uint64_t search_bytes_left_ = std::uint64_t{64} << 20;
};

}  // namespace traindbg::format
