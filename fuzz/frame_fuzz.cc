// The frame scanner over any bytes, in windows of any size: it must come to an end, account for every
// byte once, and give each frame only with a checksum that matches.
#include <algorithm>
#include <cstdlib>

#include "traindbg/format/frame_scanner.h"

using traindbg::base::ByteSpan;
using traindbg::format::FrameScanner;
using traindbg::format::ScanItem;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::size_t window_bytes = 24 + static_cast<std::size_t>(data[0]) * 8;
    const ByteSpan bytes = std::as_bytes(std::span(data, size)).subspan(1);
    FrameScanner scanner;
    std::size_t wanted = window_bytes;
    std::uint64_t settled = 0;
    while (true) {
        const auto begin =
            static_cast<std::size_t>(std::min<std::uint64_t>(scanner.position(), bytes.size()));
        const ByteSpan window = bytes.subspan(begin, std::min(wanted, bytes.size() - begin));
        const bool at_end = begin + window.size() == bytes.size();
        const std::uint64_t position = scanner.position();
        const ScanItem item = scanner.next(window, at_end);
        wanted = window_bytes;
        if (item.kind == ScanItem::Kind::kFrame) {
            require(item.offset == settled);
            require(item.frame.payload.data() >= window.data() &&
                    item.frame.payload.data() + item.frame.payload.size() <= window.data() + window.size());
            settled += item.frame.bytes;
        } else if (item.kind == ScanItem::Kind::kHole) {
            require(item.offset == settled);
            settled += item.bytes;
        } else if (item.kind == ScanItem::Kind::kForeign || at_end) {
            break;
        } else {
            require(scanner.position() > position || item.bytes_needed > window.size());
            wanted = std::max(window_bytes, item.bytes_needed);
        }
        require(scanner.settled() == settled);
    }
    return 0;
}
