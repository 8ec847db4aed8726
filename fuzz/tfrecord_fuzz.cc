// The TFRecord scanner over any bytes, in windows of any size: it must come to an end, account for every
// byte once, and give each record only with a footer that it was told to take.
#include <algorithm>
#include <cstdlib>

#include "traindbg/format/tfrecord.h"

using namespace traindbg::format;
using traindbg::base::ByteSpan;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const std::size_t window_bytes = 1 + static_cast<std::size_t>(data[0]) * 4;
    const RecordCheck check = (data[1] & 1) != 0 ? RecordCheck::kChecksum : RecordCheck::kChecksumOrConstant;
    const std::uint64_t most = (data[1] & 2) != 0 ? kMostRecordPayloadBytes : 64;
    const ByteSpan bytes = std::as_bytes(std::span(data, size)).subspan(2);
    RecordScanner scanner(check, 0, most);
    std::size_t wanted = window_bytes;
    std::uint64_t settled = 0;
    while (true) {
        const auto begin =
            static_cast<std::size_t>(std::min<std::uint64_t>(scanner.position(), bytes.size()));
        const ByteSpan window = bytes.subspan(begin, std::min(wanted, bytes.size() - begin));
        const bool at_end = begin + window.size() == bytes.size();
        const std::uint64_t position = scanner.position();
        const RecordItem item = scanner.next(window, at_end);
        wanted = window_bytes;
        if (item.kind == RecordItem::Kind::kRecord) {
            require(item.offset == settled);
            require(item.record.payload.size() <= most);
            require(item.bytes == record_bytes(item.record.payload.size()));
            const auto again = parse_record(
                bytes.subspan(static_cast<std::size_t>(item.offset), static_cast<std::size_t>(item.bytes)),
                check);
            require(again.is_ok() && again->footer == item.record.footer);
            settled += item.bytes;
        } else if (item.kind == RecordItem::Kind::kHole) {
            require(item.offset == settled && item.bytes != 0);
            settled += item.bytes;
        } else if (item.kind == RecordItem::Kind::kForeign || at_end) {
            break;
        } else {
            require(scanner.position() > position || item.bytes_needed > window.size());
            wanted = std::max(window_bytes, item.bytes_needed);
        }
        require(scanner.settled() == settled);
    }
    return 0;
}
