// A file of frames that is being written: a part of the log. Used by the writer's thread alone.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/format/frame.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::write {

// Random, never 0: header frames use that one.
[[nodiscard]] std::uint64_t random_salt() noexcept;

class FrameFile {
  public:
    // Writes the header, `header.salt` as it is.
    [[nodiscard]] static base::Result<FrameFile> create(storage::FileSystem& files, const std::string& path,
                                                        const format::FileHeader& header);

    // Adds a frame to `buffer`, which a later `append` puts into the file.
    [[nodiscard]] base::Status add(base::ByteWriter& buffer, format::FrameType type, base::ByteSpan payload);
    [[nodiscard]] base::Status append(base::ByteSpan bytes);
    // Does nothing when nothing was appended since the last time.
    [[nodiscard]] base::Status sync();
    [[nodiscard]] std::uint64_t size() const { return file_->size(); }
    [[nodiscard]] bool is_dirty() const noexcept { return is_dirty_; }
    // Nothing is asked of it afterwards.
    void close() noexcept { file_.reset(); }

  private:
    FrameFile(std::unique_ptr<storage::AppendFile> file, std::uint64_t salt) noexcept
        : file_(std::move(file)), salt_(salt) {}

    std::unique_ptr<storage::AppendFile> file_;
    std::uint64_t salt_;
    std::uint64_t sequence_ = 2;  // of the next frame; the header takes two
    bool is_dirty_ = true;
};

}  // namespace traindbg::write
