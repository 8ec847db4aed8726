#include "traindbg/write/frame_file.h"

#include <sys/random.h>
#include <unistd.h>

#include <utility>

#include "traindbg/base/clock.h"

namespace traindbg::write {

using base::ByteSpan;
using base::ByteWriter;
using base::Result;
using base::Status;

std::uint64_t random_salt() noexcept {
    std::uint64_t salt = 0;
    if (::getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != static_cast<ssize_t>(sizeof(salt)))
        salt = static_cast<std::uint64_t>(base::wall_nanos()) * 0x9E3779B97F4A7C15 +
               static_cast<std::uint64_t>(base::monotonic_nanos()) + static_cast<std::uint64_t>(::getpid());
    return salt | 1;
}

Result<FrameFile> FrameFile::create(storage::FileSystem& files, const std::string& path,
                                    const format::FileHeader& header) {
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::AppendFile> file, files.create(path));
    FrameFile created(std::move(file), header.salt);
    ByteWriter bytes;
    format::append_file_header(bytes, header);
    if (const Status status = created.append(bytes.bytes()); !status.is_ok()) {
        files.remove(path).ignore();  // a file without a header would only be reported as damage
        return status;
    }
    return created;
}

Status FrameFile::add(ByteWriter& buffer, format::FrameType type, ByteSpan payload) {
    TRAINDBG_RETURN_IF_ERROR(format::append_frame(buffer, type, sequence_, payload, salt_));
    ++sequence_;
    return Status::ok();
}

Status FrameFile::append(ByteSpan bytes) {
    is_dirty_ = true;
    return file_->append(bytes);
}

Status FrameFile::sync() {
    if (!is_dirty_) return Status::ok();
    TRAINDBG_RETURN_IF_ERROR(file_->sync());
    is_dirty_ = false;
    return Status::ok();
}

}  // namespace traindbg::write
