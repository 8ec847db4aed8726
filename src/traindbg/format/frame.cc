#include "traindbg/format/frame.h"

#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::format {
namespace {

using base::ByteSpan;
using base::ByteWriter;
using base::Code;
using base::Result;
using base::Status;

// `frame` begins at the magic and ends behind the padding.
std::uint32_t checksum(ByteSpan frame, std::uint64_t salt) noexcept {
    const std::uint32_t crc = base::crc32c(frame.subspan(4, 16), checksum_seed(salt));
    return base::crc32c(frame.subspan(kFrameHeaderBytes), crc);
}

}  // namespace

std::uint32_t checksum_seed(std::uint64_t salt) noexcept {
    return base::crc32c(std::as_bytes(std::span(&salt, 1)));
}

Status append_frame(ByteWriter& out, FrameType type, std::uint64_t sequence, ByteSpan payload,
                    std::uint64_t salt) {
    if (payload.size() > kMostPayloadBytes)
        return {Code::kResourceExhausted,
                base::format("a record of {} is larger than a frame may be ({})",
                             base::human_bytes(payload.size()), base::human_bytes(kMostPayloadBytes))};
    const std::size_t start = out.size();
    out.fixed(kFrameMagic);
    out.fixed(static_cast<std::uint32_t>(payload.size()));
    out.fixed(sequence);
    out.fixed(static_cast<std::uint16_t>(type));
    out.fixed(std::uint16_t{0});  // flags
    out.fixed(std::uint32_t{0});  // the checksum, below
    out.append(payload);
    out.pad_to(kFrameAlignment);
    const std::uint64_t used_salt = type == FrameType::kFileHeader ? 0 : salt;
    out.patch(start + 20, checksum(ByteSpan(out.bytes()).subspan(start), used_salt));
    return Status::ok();
}

void append_file_header(ByteWriter& out, const FileHeader& header) {
    ByteWriter payload;
    payload.fixed(header.major);
    payload.fixed(header.minor);
    payload.fixed(static_cast<std::uint16_t>(header.kind));
    payload.fixed(std::uint16_t{0});
    payload.fixed(header.worker);
    payload.fixed(header.part);
    payload.fixed(header.salt);
    payload.append(header.run_uuid);
    for (std::uint64_t sequence = 0; sequence < 2; ++sequence)
        append_frame(out, FrameType::kFileHeader, sequence, payload.bytes(), 0).ignore();  // 40 bytes fit
}

Result<FileHeader> decode_file_header(ByteSpan payload) {
    base::ByteReader reader(payload);
    FileHeader header;
    header.major = reader.fixed<std::uint16_t>();
    header.minor = reader.fixed<std::uint16_t>();
    header.kind = static_cast<FileKind>(reader.fixed<std::uint16_t>());
    static_cast<void>(reader.fixed<std::uint16_t>());
    header.worker = reader.fixed<std::uint32_t>();
    header.part = reader.fixed<std::uint32_t>();
    header.salt = reader.fixed<std::uint64_t>();
    reader.array(std::span<std::byte>(header.run_uuid));
    if (!reader.ok()) return Status(Code::kDataLoss, "the file header is too short");
    return header;
}

Status check_version(const FileHeader& header) {
    if (header.major <= kFormatMajor && header.major != 0) return Status::ok();
    return {Code::kUnsupported,
            base::format("was written in format {}.{}; this traindbg reads up to {}.x: use a newer traindbg",
                         header.major, header.minor, kFormatMajor)};
}

ParsedFrame parse_frame(ByteSpan bytes, std::optional<std::uint64_t> salt, bool header_allowed) noexcept {
    ParsedFrame parsed;
    base::ByteReader reader(bytes);
    if (bytes.size() < kFrameHeaderBytes) {
        // Too short to judge, unless what is there differs from the magic already.
        const std::size_t known = std::min(bytes.size(), sizeof(kFrameMagic));
        if (std::memcmp(bytes.data(), &kFrameMagic, known) != 0 && known != 0) return parsed;
        parsed.outcome = ParseOutcome::kIncomplete;
        parsed.has_magic = known == sizeof(kFrameMagic);
        parsed.bytes_needed = kFrameHeaderBytes;
        return parsed;
    }
    if (reader.fixed<std::uint32_t>() != kFrameMagic) return parsed;
    parsed.has_magic = true;
    const auto payload_bytes = reader.fixed<std::uint32_t>();
    if (payload_bytes > kMostPayloadBytes) return parsed;
    parsed.frame.sequence = reader.fixed<std::uint64_t>();
    parsed.frame.type = static_cast<FrameType>(reader.fixed<std::uint16_t>());
    parsed.frame.flags = reader.fixed<std::uint16_t>();
    const auto stored = reader.fixed<std::uint32_t>();
    const bool is_header = parsed.frame.type == FrameType::kFileHeader;
    if (is_header ? !header_allowed : !salt.has_value()) return parsed;
    parsed.frame.bytes = frame_bytes(payload_bytes);
    if (bytes.size() < parsed.frame.bytes) {
        parsed.outcome = ParseOutcome::kIncomplete;
        parsed.bytes_needed = parsed.frame.bytes;
        return parsed;
    }
    if (checksum(bytes.first(parsed.frame.bytes), is_header ? 0 : *salt) != stored) return parsed;
    parsed.frame.payload = bytes.subspan(kFrameHeaderBytes, payload_bytes);
    parsed.outcome = ParseOutcome::kFrame;
    return parsed;
}

}  // namespace traindbg::format
