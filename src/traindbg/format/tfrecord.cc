#include "traindbg/format/tfrecord.h"

#include <algorithm>
#include <cstring>

#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"

namespace traindbg::format {
namespace {

using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;

constexpr const char* kBadLength = "the checksum of a record's length does not match";
// A longer record than this is taken for damage, whatever its checksum says: no file is so large.
constexpr std::uint64_t kMostPlausibleBytes = std::uint64_t{1} << 48;

template <typename T>
T load(ByteSpan bytes, std::size_t at) noexcept {
    T value{};
    std::memcpy(&value, bytes.data() + at, sizeof(T));
    return value;
}

// The payload's length; nothing where no record's header stands. `bytes` has at least a header's.
std::optional<std::uint64_t> length_at(ByteSpan bytes) noexcept {
    const auto length = load<std::uint64_t>(bytes, 0);
    if (length > kMostPlausibleBytes) return std::nullopt;
    if (load<std::uint32_t>(bytes, 8) != masked_crc32c(bytes.first(8))) return std::nullopt;
    return length;
}

// The record whose header has been seen and that `bytes` is.
std::optional<Record> body_of(ByteSpan bytes, RecordCheck check) noexcept {
    Record record;
    const std::size_t size = bytes.size() - kRecordHeaderBytes - kRecordFooterBytes;
    record.payload = bytes.subspan(kRecordHeaderBytes, size);
    const auto footer = load<std::uint32_t>(bytes, kRecordHeaderBytes + size);
    if (footer == kConstantFooter && check == RecordCheck::kChecksumOrConstant) {
        record.footer = RecordFooter::kConstant;
        return record;
    }
    if (footer != masked_crc32c(record.payload)) return std::nullopt;
    return record;
}

}  // namespace

std::uint32_t masked_crc32c(ByteSpan bytes) noexcept {
    const std::uint32_t crc = base::crc32c(bytes);
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

void append_record(base::ByteWriter& out, ByteSpan payload, RecordFooter footer) {
    const std::uint64_t length = payload.size();
    out.fixed(length);
    out.fixed(masked_crc32c(std::as_bytes(std::span(&length, 1))));
    out.append(payload);
    out.fixed(footer == RecordFooter::kConstant ? kConstantFooter : masked_crc32c(payload));
}

Result<Record> parse_record(ByteSpan bytes, RecordCheck check) {
    if (bytes.size() < record_bytes(0)) return Status(Code::kDataLoss, "is too short for a record");
    const std::optional<std::uint64_t> length = length_at(bytes);
    if (!length) return Status(Code::kDataLoss, kBadLength);
    if (record_bytes(*length) != bytes.size()) {
        return Status(Code::kDataLoss, base::format("is a record of {} bytes, not of {}",
                                                    record_bytes(*length), bytes.size()));
    }
    if (const std::optional<Record> record = body_of(bytes, check)) return *record;
    return Status(Code::kDataLoss, "the checksum of a record does not match");
}

RecordItem RecordScanner::take(std::uint64_t bytes, const Record& record) {
    RecordItem item;
    item.kind = RecordItem::Kind::kRecord;
    item.offset = position_;
    item.bytes = bytes;
    item.record = record;
    position_ += bytes;
    return item;
}

RecordItem RecordScanner::hole_until(std::uint64_t end) {
    RecordItem item;
    item.kind = RecordItem::Kind::kHole;
    item.offset = settled();
    item.bytes = end - item.offset;
    item.what = std::move(hole_reason_);
    hole_begin_.reset();
    hole_reason_.clear();
    position_ = end;
    return item;
}

RecordItem RecordScanner::next(ByteSpan window, bool at_end) {
    RecordItem item;
    tail_reason_.clear();
    if (given_up_) {
        item.kind = RecordItem::Kind::kForeign;
        item.offset = settled();
        return item;
    }
    if (hole_begin_) return search(window, at_end);
    item.bytes_needed = kRecordHeaderBytes;
    if (window.size() < kRecordHeaderBytes) {
        if (at_end && !window.empty()) tail_reason_ = "the file ends inside a record";
        return item;
    }
    const std::optional<std::uint64_t> length = length_at(window);
    if (!length) {
        hole_reason_ = kBadLength;
        return search(window, at_end);
    }
    const std::uint64_t bytes = record_bytes(*length);
    if (*length > most_payload_bytes_) {
        hole_reason_ = base::format("a record of {} bytes, more than the {} that are read", *length,
                                    most_payload_bytes_);
        return hole_until(position_ + bytes);
    }
    if (window.size() < bytes) {
        if (at_end) tail_reason_ = "the file ends inside a record";
        item.bytes_needed = static_cast<std::size_t>(bytes);
        return item;
    }
    if (const auto record = body_of(window.first(static_cast<std::size_t>(bytes)), check_))
        return take(bytes, *record);
    hole_reason_ = "the checksum of a record does not match";
    return hole_until(position_ + bytes);
}

// Looks for the next whole record. The bytes before it are a hole.
RecordItem RecordScanner::search(ByteSpan window, bool at_end) {
    RecordItem item;
    const std::uint64_t begin = settled();
    const std::uint64_t budget = search_bytes_left_;
    const auto charge = [this](std::uint64_t bytes) {
        search_bytes_left_ -= std::min(bytes, search_bytes_left_);
        return search_bytes_left_ != 0;
    };
    const auto give_up = [&](std::string why) {
        given_up_ = true;
        item.kind = RecordItem::Kind::kForeign;
        item.offset = begin;
        item.what = std::move(why);
        return item;
    };
    std::size_t at = position_ == begin ? 1 : 0;  // no record begins where the hole does
    for (; at + kRecordHeaderBytes <= window.size(); ++at) {
        if (!charge(1)) return give_up("no record was found behind this place for very long");
        const std::optional<std::uint64_t> length = length_at(window.subspan(at));
        if (!length || *length > most_payload_bytes_) continue;
        const std::uint64_t bytes = record_bytes(*length);
        if (bytes > window.size() - at) {
            hole_begin_ = begin;
            if (at_end) return hole_until(position_ + at);  // torn, or still being written
            position_ += at;
            item.bytes_needed = static_cast<std::size_t>(bytes);
            return item;
        }
        if (body_of(window.subspan(at, static_cast<std::size_t>(bytes)), check_)) {
            hole_begin_ = begin;
            return hole_until(position_ + at);
        }
        if (!charge(bytes)) return give_up("too many bytes here look like records and are none");
    }
    item.bytes_needed = kRecordHeaderBytes;
    if (at_end) {
        // All stays as it is: the next call may see the file grown, or filled in by a slow file system.
        search_bytes_left_ = budget;
        tail_reason_ = hole_reason_;
        return item;
    }
    hole_begin_ = begin;
    position_ += std::min(at, window.size());
    return item;
}

}  // namespace traindbg::format
