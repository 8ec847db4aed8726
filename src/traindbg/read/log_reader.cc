#include "traindbg/read/log_reader.h"

#include <algorithm>

#include "traindbg/base/format.h"

namespace traindbg::read::internal {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using format::ScanItem;

constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
// Of `frame_at`: stays in the processor's second cache between the copy and the checksum.
constexpr std::size_t kLookBackBytes = std::size_t{256} << 10;
constexpr std::size_t kMostReaderDamage = 1000;  // entries per file: a file of garbage is told briefly

}  // namespace

Status LogReader::poll(const std::function<void(std::uint64_t, const format::Frame&)>& visit) {
    if (is_dead_) return Status::ok();
    TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t size, file_->size());
    if (size == size_ && !tail_ && !is_behind_) return Status::ok();
    size_ = size;
    is_behind_ = true;
    tail_.reset();
    std::size_t wanted = kWindowBytes;
    while (true) {
        const std::uint64_t begin = scanner_.position();
        TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer window, file_->read_at(begin, wanted));
        const bool at_end = window.size() < wanted || begin + window.size() >= size;
        while (true) {
            const auto used = static_cast<std::size_t>(scanner_.position() - begin);
            ScanItem item = scanner_.next(ByteSpan(window).subspan(std::min(used, window.size())), at_end);
            if (item.kind == ScanItem::Kind::kFrame) {
                if (item.frame.type == format::FrameType::kFileHeader) {
                    if (Status status = format::check_version(*scanner_.header()); !status.is_ok()) {
                        is_dead_ = true;
                        return {status.code(), name_ + ": " + status.message()};
                    }
                }
                visit(item.offset, item.frame);
            } else if (item.kind == ScanItem::Kind::kHole) {
                if (damage_.size() < kMostReaderDamage)
                    damage_.push_back({name_, item.offset, item.bytes, std::move(item.what), false});
            } else if (item.kind == ScanItem::Kind::kForeign) {
                is_dead_ = true;
                damage_.push_back(
                    {name_, item.offset, size - std::min(size, item.offset), std::move(item.what), false});
                return Status::ok();
            } else if (!at_end) {
                wanted = std::max(kWindowBytes, item.bytes_needed);
                break;
            } else {
                is_behind_ = false;
                const std::uint64_t settled = scanner_.settled();
                if (settled < size)
                    tail_ = Damage{name_, settled, size - settled, scanner_.tail_reason(), true};
                return Status::ok();
            }
        }
    }
}

Result<format::Frame> LogReader::frame_at(std::uint64_t offset, std::size_t bytes) {
    if (offset < window_begin_ || offset + bytes > window_begin_ + window_bytes_) {
        // A larger piece, because the frames that follow will most likely be asked for next. The frame itself
        // may end behind the size that the last look began with: the file grows while it is looked at.
        const std::uint64_t most = size_ > offset ? size_ - offset : 0;
        const auto wanted = static_cast<std::size_t>(
            std::max<std::uint64_t>(bytes, std::min<std::uint64_t>(kLookBackBytes, most)));
        window_bytes_ = 0;
        if (window_.size() < wanted) window_.resize(wanted);
        TRAINDBG_ASSIGN_OR_RETURN(window_bytes_, file_->read_into(offset, std::span(window_).first(wanted)));
        window_begin_ = offset;
    }
    const ByteSpan rest =
        ByteSpan(window_).first(window_bytes_).subspan(static_cast<std::size_t>(offset - window_begin_));
    if (header()) {
        const format::ParsedFrame parsed = format::parse_frame(rest, header()->salt, false);
        if (parsed.outcome == format::ParseOutcome::kFrame) return parsed.frame;
    }
    return Status(Code::kDataLoss,
                  base::format("{}: the frame at {} changed while it was read", name_, offset));
}

}  // namespace traindbg::read::internal
