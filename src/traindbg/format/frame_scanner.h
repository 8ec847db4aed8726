// Walks the frames of one file, however it was cut or damaged.
//
// The caller reads; the scanner judges. It is given a window of the file that begins at `position()`
// and answers with the next thing in it: a frame, a hole (bytes that belong to no frame, with the
// place where the next good frame begins), or that it needs a larger window. After damage it looks
// for the next frame in steps of 8 bytes, by magic and checksum.
//
// What ends in the middle of a frame is not damage to the scanner: it may still be growing. With
// `at_end` it also looks behind such a frame, so that a damaged length field does not hide the rest.
//
// Ownership: a frame borrows the window. Thread-safety: one thread. Errors: as items. Cost: one
// checksum per frame; a search costs a comparison per 8 bytes and gives up (`kForeign`) when bytes
// that were made to look like frames have cost it too many checksums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "traindbg/base/bytes.h"
#include "traindbg/format/frame.h"

namespace traindbg::format {

struct ScanItem {
    enum class Kind : std::uint8_t {
        kFrame,
        kHole,      // `offset`, `bytes` (0: frames are missing, nothing lies in their place), `what`
        kNeedMore,  // come again with a window of at least `bytes_needed`; with `at_end`: nothing more
        kForeign,   // no further frame will be found: `what` says why
    };
    Kind kind = Kind::kNeedMore;
    std::uint64_t offset = 0;
    Frame frame;
    std::uint64_t bytes = 0;
    std::string what;
    std::size_t bytes_needed = 0;
};

// The header of a file that begins with `bytes`, from whichever of its two copies is whole.
[[nodiscard]] std::optional<FileHeader> find_file_header(base::ByteSpan bytes);

class FrameScanner {
  public:
    // From the beginning of a file.
    FrameScanner() = default;
    // From a place in a file whose header is known, e.g. where an index says that a frame begins.
    FrameScanner(std::uint64_t offset, const FileHeader& header)
        : header_(header), position_(offset), sequence_known_(false) {}

    // Where the next window must begin.
    [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
    // The first byte that is not accounted for by a frame or a hole.
    [[nodiscard]] std::uint64_t settled() const noexcept { return hole_begin_.value_or(position_); }
    // Nothing until the file's header was found.
    [[nodiscard]] const std::optional<FileHeader>& header() const noexcept { return header_; }
    // Why the bytes from `settled()` to the file's end are no frame (after kNeedMore with `at_end`).
    [[nodiscard]] const std::string& tail_reason() const noexcept { return tail_reason_; }

    // `window` begins at `position()`; `at_end`: the file has no more bytes behind it now.
    [[nodiscard]] ScanItem next(base::ByteSpan window, bool at_end);

  private:
    [[nodiscard]] ScanItem take(const Frame& frame);
    [[nodiscard]] ScanItem hole_before(std::uint64_t offset, const Frame& frame);

    std::optional<FileHeader> header_;
    std::uint64_t position_ = 0;
    std::optional<std::uint64_t> hole_begin_;
    std::string hole_reason_;
    std::string tail_reason_;
    std::uint64_t next_sequence_ = 0;
    bool sequence_known_ = true;
    bool given_up_ = false;
    std::uint64_t search_bytes_left_ = std::uint64_t{256} << 20;
};

}  // namespace traindbg::format
