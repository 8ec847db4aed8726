// Segments as a newer version may write them: the code of a column is changed, and all checksums fit.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "traindbg/base/crc32c.h"
#include "traindbg/format/frame_scanner.h"
#include "traindbg/format/segment.h"

namespace traindbg::testing {

// `segment` with another number, or another encoding, of the column at hand.
using Recoded = std::function<base::ByteBuffer(std::uint8_t column, std::uint8_t encoding)>;

// Goes through all columns of all pages.
inline void for_each_column(
    base::ByteSpan segment,
    const std::function<void(const format::PageTable&, const format::ColumnEntry&, const Recoded&)>& visit) {
    format::FrameScanner scanner;
    while (true) {
        const format::ScanItem item =
            scanner.next(segment.subspan(static_cast<std::size_t>(scanner.position())), true);
        if (item.kind != format::ScanItem::Kind::kFrame) break;
        if (item.frame.type != format::FrameType::kPage) continue;
        const std::uint64_t salt = scanner.header()->salt;
        const auto table = format::decode_page_table(item.frame.payload, salt);
        ASSERT_TRUE(table.is_ok()) << table.status().to_string();
        base::ByteReader reader(item.frame.payload);
        static_cast<void>(reader.raw(9));  // checksum, size, kind
        for (int i = 0; i < 3; ++i) static_cast<void>(reader.varint());
        for (const format::ColumnEntry& column : table->columns) {
            const std::size_t at = item.frame.payload.size() - reader.remaining();
            visit(*table, column, [&](std::uint8_t number, std::uint8_t encoding) {
                base::ByteBuffer payload(item.frame.payload.begin(), item.frame.payload.end());
                payload[at] = std::byte{number};
                payload[at + 1] = std::byte{encoding};
                const std::uint32_t checksum = base::crc32c(
                    base::ByteSpan(payload).first(table->bytes).subspan(4), format::checksum_seed(salt));
                std::memcpy(payload.data(), &checksum, sizeof(checksum));
                base::ByteWriter frame;
                EXPECT_TRUE(
                    format::append_frame(frame, item.frame.type, item.frame.sequence, payload, salt).is_ok());
                base::ByteBuffer changed(segment.begin(), segment.end());
                std::copy(frame.bytes().begin(), frame.bytes().end(),
                          changed.begin() + static_cast<std::ptrdiff_t>(item.offset));
                return changed;
            });
            static_cast<void>(reader.raw(2));
            for (int i = 0; i < 2; ++i) static_cast<void>(reader.varint());
            static_cast<void>(reader.fixed<std::uint32_t>());
        }
    }
}

}  // namespace traindbg::testing
