// What the bytes of a fuzzer's input make of a sealed part. The first says how: the rest as it is; or frames,
// pages and columns with right checksums around any content, which is what a hostile program could write.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "traindbg/base/bytes.h"
#include "traindbg/base/crc32c.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/segment.h"

namespace traindbg::fuzz {

inline constexpr std::uint64_t kSalt = 42;

// A page of columns, each a number, an encoding, sizes and bytes of the input.
inline base::ByteBuffer make_page(base::ByteReader& input) {
    base::ByteWriter columns;
    base::ByteWriter table;
    table.fixed(std::uint32_t{0});
    table.fixed(std::uint32_t{0});
    table.fixed(static_cast<std::uint8_t>(input.fixed<std::uint8_t>() % 7));
    table.varint(input.fixed<std::uint8_t>() % 4);
    table.varint(input.fixed<std::uint16_t>() % 5000);
    const std::uint8_t count = input.fixed<std::uint8_t>() % 14;
    table.varint(count);
    for (std::uint8_t k = 0; k < count && input.ok(); ++k) {
        table.fixed(static_cast<std::uint8_t>(input.fixed<std::uint8_t>() % 60));
        table.fixed(static_cast<std::uint8_t>(input.fixed<std::uint8_t>() & 0x87));
        const auto raw_bytes = input.fixed<std::uint16_t>();
        const auto stored = input.fixed<std::uint8_t>();
        const base::ByteSpan bytes = input.raw(std::min<std::size_t>(stored, input.remaining()));
        table.varint(raw_bytes);
        table.varint(bytes.size());
        table.fixed(base::crc32c(bytes, format::checksum_seed(kSalt)));
        columns.append(bytes);
    }
    table.patch(4, static_cast<std::uint32_t>(table.size()));
    table.patch(0, base::crc32c(base::ByteSpan(table.bytes()).subspan(4), format::checksum_seed(kSalt)));
    table.append(columns.bytes());
    return table.take();
}

inline base::ByteBuffer make_framed(base::ByteReader& input) {
    base::ByteWriter out;
    format::FileHeader header;
    header.kind = format::FileKind::kSegment;
    header.salt = kSalt;
    format::append_file_header(out, header);
    std::uint64_t sequence = 2;
    while (input.ok() && input.remaining() >= 2) {
        const auto type = static_cast<format::FrameType>(input.fixed<std::uint8_t>() % 13);
        if (type == format::FrameType::kPage) {
            format::append_frame(out, type, sequence++, make_page(input), kSalt).ignore();
            continue;
        }
        const auto length = input.fixed<std::uint8_t>();
        const base::ByteSpan payload = input.raw(std::min<std::size_t>(length, input.remaining()));
        format::append_frame(out, type, sequence++, payload, kSalt).ignore();
    }
    return out.take();
}

inline base::ByteBuffer segment_of(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return {};
    const base::ByteSpan content = std::as_bytes(std::span(data, size)).subspan(1);
    if (data[0] % 2 == 0) return {content.begin(), content.end()};
    base::ByteReader input(content);
    return make_framed(input);
}

}  // namespace traindbg::fuzz
