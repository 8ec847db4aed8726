// The frame: how every record of the native format lies in a file. docs/format/native.md is the full
// description; this is the code beside it.
//
//   0  u32 magic "TDBF"     16  u16 type
//   4  u32 payload bytes    18  u16 flags
//   8  u64 sequence         20  u32 crc32c
//  24  payload, then zero bytes up to a multiple of 8
//
// The checksum covers the file's salt, bytes 4..20 and everything from byte 24 to the end of the frame.
// The salt is random and stands in the file's header frame (whose own checksum uses salt 0): bytes of
// another log, inside a tensor or in a recycled disk block, never pass for a frame of this one.
//
// Ownership: a parsed frame borrows the bytes that it was parsed from. Errors: none thrown; a frame is
// whole, incomplete or bad. Cost: one pass over the frame for the checksum, no allocation in reading.
// Thread-safety: free functions and plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"

namespace traindbg::format {

inline constexpr std::uint16_t kFormatMajor = 1;  // a reader refuses a larger one
inline constexpr std::uint16_t kFormatMinor = 1;  // a reader ignores what a larger one added
inline constexpr std::uint32_t kFrameMagic = 0x46424454;
inline constexpr std::size_t kFrameHeaderBytes = 24;
inline constexpr std::size_t kFrameAlignment = 8;
inline constexpr std::size_t kMostPayloadBytes = std::size_t{16} << 20;
// Header frames are looked for in this many first bytes of a file, and nowhere else.
inline constexpr std::uint64_t kHeaderZoneBytes = 4096;

// The numbers are written into files: never change one, only add.
enum class FrameType : std::uint16_t {
    kFileHeader = 1,
    kSchema = 2,
    kWorker = 3,
    kStep = 4,
    kEvent = 6,
    kDropped = 7,
    kEnd = 8,
    kSteps = 9,  // of sealed parts, as all that follow
    kPage = 10,
    kIndex = 11,
    kFooter = 12,
};

enum class FileKind : std::uint16_t {
    kLog = 1,      // grows: a frame per step
    kSegment = 2,  // the same part, sealed: columns per tensor
    kBlob = 3,     // whole tensors; frames at its beginning only
};

// The first bytes of a blob belong to its header; tensors lie behind, each at a multiple of 64.
inline constexpr std::uint64_t kBlobHeaderBytes = 4096;
inline constexpr std::uint64_t kBlobAlignment = 64;

// What a file says about itself in its first two frames.
struct FileHeader {
    std::uint16_t major = kFormatMajor;
    std::uint16_t minor = kFormatMinor;
    FileKind kind = FileKind::kLog;
    std::uint32_t worker = 0;
    std::uint32_t part = 0;
    std::uint64_t salt = 0;
    std::array<std::byte, 16> run_uuid{};  // zeros: not known

    friend bool operator==(const FileHeader&, const FileHeader&) = default;
};

struct Frame {
    std::uint64_t sequence = 0;
    FrameType type{};  // may be one that this version does not know
    std::uint16_t flags = 0;
    base::ByteSpan payload;
    std::size_t bytes = 0;  // of the whole frame, with padding
};

// The size of a frame with this payload.
[[nodiscard]] constexpr std::size_t frame_bytes(std::size_t payload_bytes) noexcept {
    return (kFrameHeaderBytes + payload_bytes + kFrameAlignment - 1) / kFrameAlignment * kFrameAlignment;
}

// Appends one frame to `out`, whose size must be a multiple of 8. kResourceExhausted when the payload
// is larger than a frame may hold; nothing was appended then.
[[nodiscard]] base::Status append_frame(base::ByteWriter& out, FrameType type, std::uint64_t sequence,
                                        base::ByteSpan payload, std::uint64_t salt);

// What the checksum of bytes that are no frame begins with: whole tensors and columns are covered by
// `base::crc32c(bytes, checksum_seed(salt))`, so that bytes of another file do not pass for them.
[[nodiscard]] std::uint32_t checksum_seed(std::uint64_t salt) noexcept;

// Appends the two header frames that every file begins with, sequence 0 and 1. Two, because nothing
// in the file could be verified without its salt.
void append_file_header(base::ByteWriter& out, const FileHeader& header);

// kDataLoss when it is too short. A newer major version is returned as it is: the caller refuses it.
[[nodiscard]] base::Result<FileHeader> decode_file_header(base::ByteSpan payload);
// kUnsupported with a message for the user when this version cannot read the file.
[[nodiscard]] base::Status check_version(const FileHeader& header);

enum class ParseOutcome : std::uint8_t {
    kFrame,       // whole and verified
    kIncomplete,  // may become a frame: more bytes are needed
    kBad,         // will never be one
};

struct ParsedFrame {
    ParseOutcome outcome = ParseOutcome::kBad;
    bool has_magic = false;        // it looked like a frame
    Frame frame;                   // of kFrame
    std::size_t bytes_needed = 0;  // of kIncomplete: from the frame's start
};

// What stands at the beginning of `bytes`. `salt`: of the file, nothing while it is not known.
// `header_allowed`: this place is in the header zone, where header frames may stand.
[[nodiscard]] ParsedFrame parse_frame(base::ByteSpan bytes, std::optional<std::uint64_t> salt,
                                      bool header_allowed) noexcept;

}  // namespace traindbg::format
