#include "traindbg/format/frame_scanner.h"

#include "traindbg/base/format.h"

namespace traindbg::format {
namespace {

using base::ByteSpan;

const char* reason_of(const ParsedFrame& parsed, bool header_known) {
    if (parsed.outcome == ParseOutcome::kIncomplete) return "the file ends inside a frame";
    if (parsed.has_magic) return "the checksum does not match";
    return header_known ? "there is no frame here" : "there is no file header here";
}

}  // namespace

std::optional<FileHeader> find_file_header(ByteSpan bytes) {
    for (std::size_t at = 0; at < bytes.size() && at < kHeaderZoneBytes; at += kFrameAlignment) {
        const ParsedFrame parsed = parse_frame(bytes.subspan(at), std::nullopt, true);
        if (parsed.outcome != ParseOutcome::kFrame) continue;
        if (const base::Result<FileHeader> header = decode_file_header(parsed.frame.payload)) return *header;
    }
    return std::nullopt;
}

ScanItem FrameScanner::hole_before(std::uint64_t offset, const Frame& frame) {
    ScanItem item;
    item.kind = ScanItem::Kind::kHole;
    item.offset = *hole_begin_;
    item.bytes = offset - *hole_begin_;
    item.what = hole_reason_;
    if (sequence_known_ && frame.sequence > next_sequence_) {
        const std::uint64_t lost = frame.sequence - next_sequence_;
        item.what += base::format(" ({} frame{} lost)", lost, lost == 1 ? "" : "s");
    }
    next_sequence_ = frame.sequence;  // the gap was told with the hole
    hole_begin_.reset();
    hole_reason_.clear();
    return item;
}

ScanItem FrameScanner::take(const Frame& frame) {
    ScanItem item;
    if (sequence_known_ && frame.sequence != next_sequence_) {
        item.kind = ScanItem::Kind::kHole;
        item.offset = position_;
        if (frame.sequence > next_sequence_) {
            item.what =
                base::format("{} frames are missing before this place", frame.sequence - next_sequence_);
            next_sequence_ = frame.sequence;  // and the frame itself comes next
        } else {
            item.bytes = frame.bytes;
            item.what = "a frame that was there before";
            position_ += frame.bytes;
        }
        return item;
    }
    item.kind = ScanItem::Kind::kFrame;
    item.offset = position_;
    item.frame = frame;
    if (frame.type == FrameType::kFileHeader && !header_) {
        if (base::Result<FileHeader> header = decode_file_header(frame.payload)) header_ = *header;
    }
    next_sequence_ = frame.sequence + 1;
    sequence_known_ = true;
    position_ += frame.bytes;
    return item;
}

ScanItem FrameScanner::next(ByteSpan window, bool at_end) {
    ScanItem item;
    tail_reason_.clear();
    if (given_up_) {
        item.kind = ScanItem::Kind::kForeign;
        return item;
    }
    const auto give_up = [&](std::string why) {
        given_up_ = true;
        item.kind = ScanItem::Kind::kForeign;
        item.offset = settled();
        item.what = std::move(why);
        return item;
    };
    std::string first_reason;
    for (std::size_t at = 0; at < window.size(); at += kFrameAlignment) {
        const std::uint64_t offset = position_ + at;
        if (!header_ && offset >= kHeaderZoneBytes)
            return give_up("is not a log of traindbg, or its header is destroyed");
        const std::optional<std::uint64_t> salt =
            header_ ? std::optional(header_->salt) : std::optional<std::uint64_t>();
        const ParsedFrame parsed = parse_frame(window.subspan(at), salt, offset < kHeaderZoneBytes);
        if (parsed.outcome == ParseOutcome::kFrame) {
            if (at == 0 && !hole_begin_) return take(parsed.frame);
            if (!hole_begin_) {
                hole_begin_ = position_;
                hole_reason_ = first_reason;
            }
            position_ = offset;
            return hole_before(offset, parsed.frame);
        }
        if (at == 0) first_reason = reason_of(parsed, header_.has_value());
        if (parsed.outcome == ParseOutcome::kIncomplete && !at_end) {
            if (at != 0 && !hole_begin_) {
                hole_begin_ = position_;
                hole_reason_ = first_reason;
            }
            position_ = offset;
            item.bytes_needed = parsed.bytes_needed;
            return item;
        }
        // Only a candidate that was searched for costs: a damaged frame in its place is one checksum.
        const bool is_searched = at != 0 || hole_begin_;
        if (is_searched && parsed.has_magic && parsed.outcome == ParseOutcome::kBad &&
            parsed.frame.bytes != 0) {
            if (parsed.frame.bytes > search_bytes_left_)
                return give_up("too many bytes here look like frames and are none");
            search_bytes_left_ -= parsed.frame.bytes;
        }
    }
    if (at_end) {
        // The tail stays as it is: the next call may see it grown, or filled in by a slow file system.
        tail_reason_ = hole_begin_ ? hole_reason_ : first_reason;
        return item;
    }
    if (!window.empty()) {
        if (!hole_begin_) {
            hole_begin_ = position_;
            hole_reason_ = first_reason;
        }
        position_ += (window.size() + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
    }
    item.bytes_needed = kFrameHeaderBytes;
    return item;
}

}  // namespace traindbg::format
