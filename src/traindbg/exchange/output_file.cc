#include "traindbg/exchange/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "traindbg/base/format.h"

namespace traindbg::exchange {
namespace {

namespace fs = std::filesystem;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;

constexpr std::size_t kBufferBytes = std::size_t{256} << 10;

std::string without_slashes(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path;
}

std::string partial_name(const std::string& path, std::string_view ending) {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
    return base::format("{}.{}.{}.{}", directory, path.substr(directory.size()), ::getpid(), ending);
}

Status exists_already(const std::string& path) {
    return {Code::kAlreadyExists, base::format("{}: exists already; --force replaces it", path)};
}

// A rename is on disk when its directory is.
void sync_directory_of(const std::string& path) noexcept {
    const std::size_t slash = path.rfind('/');
    const std::string directory = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
    const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return;
    ::fsync(descriptor);
    ::close(descriptor);
}

// Moves `from` to `to`, which must not be there. File systems without RENAME_NOREPLACE are asked first.
Status rename_new(const std::string& from, const std::string& to) {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return Status::ok();
    if (errno == EEXIST) return exists_already(to);
    struct stat there {};
    if ((errno == EINVAL || errno == ENOSYS) && ::lstat(to.c_str(), &there) != 0 &&
        ::rename(from.c_str(), to.c_str()) == 0)
        return Status::ok();
    return Status::from_errno(to, errno);
}

}  // namespace

OutputFile::OutputFile(OutputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      partial_(std::exchange(other.partial_, {})),
      overwrite_(other.overwrite_),
      buffer_(std::move(other.buffer_)),
      size_(other.size_) {}

OutputFile::~OutputFile() {
    if (partial_.empty()) return;
    if (descriptor_ >= 0) ::close(descriptor_);
    ::unlink(partial_.c_str());
}

Result<OutputFile> OutputFile::create(const std::string& path, bool overwrite) {
    OutputFile out;
    out.path_ = path;
    out.overwrite_ = overwrite;
    out.buffer_.reserve(kBufferBytes);
    if (path == "-") {
        out.descriptor_ = STDOUT_FILENO;
        return out;
    }
    struct stat there {};
    if (::lstat(path.c_str(), &there) == 0) {
        if (S_ISDIR(there.st_mode))
            return Status(Code::kAlreadyExists, base::format("{}: is a directory; name a file", path));
        if (!overwrite) return exists_already(path);
    }
    const std::string partial = partial_name(path, "part");
    ::unlink(partial.c_str());  // of a process that had our number
    out.descriptor_ = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (out.descriptor_ < 0) return Status::from_errno(path, errno);
    out.partial_ = partial;
    return out;
}

Status OutputFile::put(ByteSpan bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0)
            return Status::from_errno(path_ == "-" ? std::string_view("standard output") : path_, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return Status::ok();
}

Status OutputFile::flush() {
    Status status = put(buffer_);
    buffer_.clear();
    return status;
}

Status OutputFile::write(ByteSpan bytes) {
    size_ += bytes.size();
    if (buffer_.size() + bytes.size() > kBufferBytes) TRAINDBG_RETURN_IF_ERROR(flush());
    if (bytes.size() >= kBufferBytes) return put(bytes);
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    return Status::ok();
}

Status OutputFile::commit() {
    TRAINDBG_RETURN_IF_ERROR(flush());
    if (partial_.empty()) return Status::ok();
    if (::fsync(descriptor_) != 0) return Status::from_errno(path_, errno);
    if (::close(std::exchange(descriptor_, -1)) != 0) return Status::from_errno(path_, errno);
    if (overwrite_) {
        if (::rename(partial_.c_str(), path_.c_str()) != 0) return Status::from_errno(path_, errno);
    } else {
        TRAINDBG_RETURN_IF_ERROR(rename_new(partial_, path_));
    }
    partial_.clear();
    sync_directory_of(path_);
    return Status::ok();
}

OutputDirectory::OutputDirectory(OutputDirectory&& other) noexcept
    : path_(std::move(other.path_)),
      partial_(std::exchange(other.partial_, {})),
      mark_(std::move(other.mark_)),
      overwrite_(other.overwrite_) {}

OutputDirectory::~OutputDirectory() {
    if (partial_.empty()) return;
    std::error_code ignored;
    fs::remove_all(partial_, ignored);
}

Result<OutputDirectory> OutputDirectory::create(const std::string& path, bool overwrite,
                                                std::string_view mark) {
    OutputDirectory out;
    out.path_ = without_slashes(path);
    out.overwrite_ = overwrite;
    out.mark_ = mark;
    std::error_code error;
    const fs::file_status there = fs::symlink_status(out.path_, error);
    if (fs::exists(there)) {
        if (!overwrite) return exists_already(out.path_);
        if (!fs::is_directory(there))
            return Status(Code::kAlreadyExists,
                          base::format("{}: is no directory; name another place", out.path_));
        for (fs::recursive_directory_iterator entry(out.path_, error), end; !error && entry != end;
             entry.increment(error))
            if (!entry->is_directory(error) &&
                entry->path().filename().string().find(mark) == std::string::npos)
                return Status(Code::kAlreadyExists,
                              base::format("{}: holds {}, which no export made; name another place",
                                           out.path_, entry->path().string()));
        if (error) return Status::from_errno(out.path_, error.value());
    }
    const std::string partial = partial_name(out.path_, "part");
    fs::remove_all(partial, error);
    if (!fs::create_directories(partial, error) || error) return Status::from_errno(out.path_, error.value());
    out.partial_ = partial;
    return out;
}

Result<std::string> OutputDirectory::place(const std::string& relative) {
    const fs::path path = fs::path(partial_) / relative;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    if (error) return Status::from_errno(path.string(), error.value());
    return path.string();
}

Status OutputDirectory::commit() {
    std::error_code error;
    const bool replaces = overwrite_ && fs::exists(fs::symlink_status(path_, error));
    std::string old = partial_name(path_, "old");
    // At one stroke where the file system can: there is no moment without either.
    if (replaces && ::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, path_.c_str(), RENAME_EXCHANGE) == 0) {
        old = partial_;
    } else {
        if (replaces && ::rename(path_.c_str(), old.c_str()) != 0) return Status::from_errno(path_, errno);
        if (Status status = rename_new(partial_, path_); !status.is_ok()) {
            if (replaces) ::rename(old.c_str(), path_.c_str());
            return status;
        }
    }
    partial_.clear();
    sync_directory_of(path_);
    if (replaces) fs::remove_all(old, error);
    return Status::ok();
}

}  // namespace traindbg::exchange
