#include "traindbg/exchange/zip_writer.h"

#include <array>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::exchange {
namespace {

using base::ByteSpan;
using base::ByteWriter;
using base::Status;

constexpr std::uint16_t kVersionPlain = 20;
constexpr std::uint16_t kVersion64 = 45;
constexpr std::uint16_t kNameIsUtf8 = 1U << 11;
constexpr std::uint16_t kEarliestDate = 1 << 5 | 1;  // 1 January 1980: archives of equal runs are equal
constexpr std::uint16_t kExtra64 = 1;

// Tables for eight bytes at a time: entry [k][b] is the effect of byte b with k zero bytes behind it.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
constexpr Tables make_tables() {
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB8'8320U : 0U);
        tables[0][byte] = value;
    }
    for (std::size_t k = 1; k < tables.size(); ++k)
        for (std::size_t byte = 0; byte < 256; ++byte)
            tables[k][byte] = (tables[k - 1][byte] >> 8) ^ tables[0][tables[k - 1][byte] & 0xFF];
    return tables;
}
constexpr Tables kTables = make_tables();

}  // namespace

std::uint32_t crc32(ByteSpan bytes, std::uint32_t before) noexcept {
    std::uint32_t crc = ~before;
    while (bytes.size() >= 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, bytes.data(), sizeof(word));
        word ^= crc;
        crc = 0;
        for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> (8 * k) & 0xFF];
        bytes = bytes.subspan(8);
    }
    for (const std::byte byte : bytes)
        crc = (crc >> 8) ^ kTables[0][(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFF];
    return ~crc;
}

Status ZipWriter::add(const std::string& name, ByteSpan head, ByteSpan body) {
    if (name.size() > UINT16_MAX)
        return {base::Code::kInvalidArgument,
                base::format("{}...: the name is too long for an entry of a .npz",
                             base::printable(name.substr(0, 80)))};
    Entry entry{name, crc32(body, crc32(head)), head.size() + body.size(), file_.size()};
    const bool is_large = entry.bytes >= small_below_;
    const std::uint32_t bytes = is_large ? UINT32_MAX : static_cast<std::uint32_t>(entry.bytes);
    ByteWriter out;
    out.fixed(std::uint32_t{0x0403'4B50});
    out.fixed(is_large ? kVersion64 : kVersionPlain);
    out.fixed(kNameIsUtf8);
    out.fixed(std::uint16_t{0});  // stored
    out.fixed(std::uint16_t{0});  // time
    out.fixed(kEarliestDate);
    out.fixed(entry.checksum);
    out.fixed(bytes);
    out.fixed(bytes);
    out.fixed(static_cast<std::uint16_t>(name.size()));
    out.fixed(static_cast<std::uint16_t>(is_large ? 20 : 0));
    out.append(base::as_bytes(name));
    if (is_large) {
        out.fixed(kExtra64);
        out.fixed(std::uint16_t{16});
        out.fixed(entry.bytes);
        out.fixed(entry.bytes);
    }
    TRAINDBG_RETURN_IF_ERROR(file_.write(out.bytes()));
    TRAINDBG_RETURN_IF_ERROR(file_.write(head));
    TRAINDBG_RETURN_IF_ERROR(file_.write(body));
    entries_.push_back(std::move(entry));
    return Status::ok();
}

Status ZipWriter::finish() {
    const std::uint64_t begin = file_.size();
    ByteWriter out;
    for (const Entry& entry : entries_) {
        const bool large_bytes = entry.bytes >= small_below_;
        const bool large_offset = entry.offset >= small_below_;
        ByteWriter extra;
        if (large_bytes) {
            extra.fixed(entry.bytes);
            extra.fixed(entry.bytes);
        }
        if (large_offset) extra.fixed(entry.offset);
        const std::uint32_t bytes = large_bytes ? UINT32_MAX : static_cast<std::uint32_t>(entry.bytes);
        const std::uint16_t version = extra.size() > 0 ? kVersion64 : kVersionPlain;
        out.clear();
        out.fixed(std::uint32_t{0x0201'4B50});
        out.fixed(version);
        out.fixed(version);
        out.fixed(kNameIsUtf8);
        out.fixed(std::uint16_t{0});
        out.fixed(std::uint16_t{0});
        out.fixed(kEarliestDate);
        out.fixed(entry.checksum);
        out.fixed(bytes);
        out.fixed(bytes);
        out.fixed(static_cast<std::uint16_t>(entry.name.size()));
        out.fixed(static_cast<std::uint16_t>(extra.size() > 0 ? extra.size() + 4 : 0));
        out.fixed(std::uint16_t{0});  // comment
        out.fixed(std::uint16_t{0});  // disk
        out.fixed(std::uint16_t{0});  // internal attributes
        out.fixed(std::uint32_t{0});  // external attributes
        out.fixed(large_offset ? UINT32_MAX : static_cast<std::uint32_t>(entry.offset));
        out.append(base::as_bytes(entry.name));
        if (extra.size() > 0) {
            out.fixed(kExtra64);
            out.fixed(static_cast<std::uint16_t>(extra.size()));
            out.append(extra.bytes());
        }
        TRAINDBG_RETURN_IF_ERROR(file_.write(out.bytes()));
    }
    const std::uint64_t end = file_.size();
    const std::uint64_t count = entries_.size();
    const bool is_large = count >= UINT16_MAX || end - begin >= small_below_ || begin >= small_below_;
    out.clear();
    if (is_large) {
        out.fixed(std::uint32_t{0x0606'4B50});
        out.fixed(std::uint64_t{44});  // bytes of what follows
        out.fixed(kVersion64);
        out.fixed(kVersion64);
        out.fixed(std::uint32_t{0});
        out.fixed(std::uint32_t{0});
        out.fixed(count);
        out.fixed(count);
        out.fixed(end - begin);
        out.fixed(begin);
        out.fixed(std::uint32_t{0x0706'4B50});
        out.fixed(std::uint32_t{0});
        out.fixed(end);
        out.fixed(std::uint32_t{1});
    }
    out.fixed(std::uint32_t{0x0605'4B50});
    out.fixed(std::uint16_t{0});
    out.fixed(std::uint16_t{0});
    out.fixed(is_large ? std::uint16_t{UINT16_MAX} : static_cast<std::uint16_t>(count));
    out.fixed(is_large ? std::uint16_t{UINT16_MAX} : static_cast<std::uint16_t>(count));
    out.fixed(is_large ? UINT32_MAX : static_cast<std::uint32_t>(end - begin));
    out.fixed(is_large ? UINT32_MAX : static_cast<std::uint32_t>(begin));
    out.fixed(std::uint16_t{0});
    return file_.write(out.bytes());
}

}  // namespace traindbg::exchange
