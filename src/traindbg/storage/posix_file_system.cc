#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <new>

#include "traindbg/storage/file_descriptor.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::storage {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using internal::FileDescriptor;

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

Status error_at(const std::string& path, const char* what, int error) {
    return Status::from_errno(path + ": " + what, error);
}

int open_retrying(const char* path, int flags, mode_t mode = 0) noexcept {
    int descriptor = -1;
    do descriptor = ::open(path, flags | O_CLOEXEC, mode);
    while (descriptor < 0 && errno == EINTR);
    return descriptor;
}

// "/a/b" of "/a/b/c", "." of "c", "/" of "/c".
std::string parent_of(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

Status sync_directory(const std::string& path) {
    const FileDescriptor directory(open_retrying(path.c_str(), O_RDONLY | O_DIRECTORY));
    if (!directory.is_open()) return error_at(path, "open", errno);
    // Some network file systems cannot sync a directory and say so; there is nothing more to do.
    if (::fsync(directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
        return error_at(path, "fsync", errno);
    return Status::ok();
}

// Writes all of `bytes`. `*written` counts what was taken, also when an error comes back.
Status write_all(int descriptor, ByteSpan bytes, const std::string& path, std::uint64_t* written) {
    while (!bytes.empty()) {
        const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
        if (count < 0) {
            if (errno == EINTR) continue;
            return error_at(path, "write", errno);
        }
        if (count == 0) return error_at(path, "write", ENOSPC);
        *written += static_cast<std::uint64_t>(count);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return Status::ok();
}

class PosixAppendFile final : public AppendFile {
  public:
    PosixAppendFile(FileDescriptor descriptor, std::string path)
        : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

    Status append(ByteSpan bytes) override { return write_all(descriptor_.get(), bytes, path_, &size_); }

    Status sync() override {
        if (::fdatasync(descriptor_.get()) != 0) return error_at(path_, "fdatasync", errno);
        if (!name_is_synced_) {
            // The file's name and its directory's name must survive, too.
            const std::string directory = parent_of(path_);
            TRAINDBG_RETURN_IF_ERROR(sync_directory(directory));
            TRAINDBG_RETURN_IF_ERROR(sync_directory(parent_of(directory)));
            name_is_synced_ = true;
        }
        return Status::ok();
    }

    [[nodiscard]] std::uint64_t size() const override { return size_; }

  private:
    FileDescriptor descriptor_;
    std::string path_;
    std::uint64_t size_ = 0;
    bool name_is_synced_ = false;
};

class PosixReadFile final : public ReadFile {
  public:
    PosixReadFile(FileDescriptor descriptor, std::string path)
        : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

    Result<ByteBuffer> read_at(std::uint64_t offset, std::size_t size) override {
        TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t whole, this->size());
        if (offset >= whole) return ByteBuffer();
        const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(size, whole - offset));
        ByteBuffer bytes;
        try {
            bytes.resize(wanted);
        } catch (const std::bad_alloc&) {
            return error_at(path_, "read", ENOMEM);
        }
        std::size_t done = 0;
        while (done < wanted) {
            const ssize_t count = ::pread(descriptor_.get(), bytes.data() + done, wanted - done,
                                          static_cast<off_t>(offset + done));
            if (count < 0) {
                if (errno == EINTR) continue;
                return error_at(path_, "read", errno);
            }
            if (count == 0) break;  // somebody cut the file
            done += static_cast<std::size_t>(count);
        }
        bytes.resize(done);
        return bytes;
    }

    Result<std::uint64_t> size() override {
        struct stat info {};
        if (::fstat(descriptor_.get(), &info) != 0) return error_at(path_, "stat", errno);
        return static_cast<std::uint64_t>(info.st_size);
    }

  private:
    FileDescriptor descriptor_;
    std::string path_;
};

struct CloseDirectory {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

class PosixFileSystem final : public FileSystem {
  public:
    Result<std::unique_ptr<AppendFile>> create(const std::string& path) override {
        FileDescriptor descriptor(
            open_retrying(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, kFileMode));
        if (!descriptor.is_open()) return error_at(path, "create", errno);
        return std::unique_ptr<AppendFile>(std::make_unique<PosixAppendFile>(std::move(descriptor), path));
    }

    Result<std::unique_ptr<ReadFile>> open(const std::string& path) override {
        // O_NONBLOCK: opening a FIFO would otherwise wait for a writer. It means nothing for the
        // regular files that are let through below.
        FileDescriptor descriptor(open_retrying(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
        if (!descriptor.is_open()) {
            if (errno == ELOOP)
                return Status(Code::kInvalidArgument, path + ": is a symbolic link, not a regular file");
            return error_at(path, "open", errno);
        }
        struct stat info {};
        if (::fstat(descriptor.get(), &info) != 0) return error_at(path, "stat", errno);
        if (!S_ISREG(info.st_mode)) return Status(Code::kInvalidArgument, path + ": is not a regular file");
        return std::unique_ptr<ReadFile>(std::make_unique<PosixReadFile>(std::move(descriptor), path));
    }

    Status put_atomic(const std::string& path, ByteSpan bytes) override {
        const std::string directory = parent_of(path);
        const std::string name = path.substr(path.find_last_of('/') + 1);  // npos + 1 == 0
        const std::string temporary = directory + "/." + name + "." + std::to_string(::getpid()) + "." +
                                      std::to_string(next_temporary_.fetch_add(1)) + ".tmp";
        FileDescriptor descriptor(
            open_retrying(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kFileMode));
        if (!descriptor.is_open()) return error_at(path, "create", errno);
        std::uint64_t written = 0;
        Status status = write_all(descriptor.get(), bytes, path, &written);
        if (status.is_ok() && ::fsync(descriptor.get()) != 0) status = error_at(path, "fsync", errno);
        descriptor.reset();
        if (status.is_ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
            status = error_at(path, "rename", errno);
        if (!status.is_ok()) {
            ::unlink(temporary.c_str());
            return status;
        }
        return sync_directory(directory);
    }

    Status create_directories(const std::string& path) override {
        for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
            const std::string part = path.substr(0, end);
            if (!part.empty() && ::mkdir(part.c_str(), kDirectoryMode) != 0) {
                const int error = errno;
                struct stat info {};
                if (::stat(part.c_str(), &info) != 0) return error_at(part, "create directory", error);
                if (!S_ISDIR(info.st_mode)) return error_at(part, "create directory", ENOTDIR);
            }
            if (end == std::string::npos) return Status::ok();
        }
    }

    Status create_directory(const std::string& path) override {
        if (::mkdir(path.c_str(), kDirectoryMode) != 0) return error_at(path, "create directory", errno);
        return Status::ok();
    }

    Result<std::vector<DirectoryEntry>> list(const std::string& path) override {
        const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
        if (!directory) return error_at(path, "list", errno);
        std::vector<DirectoryEntry> entries;
        while (true) {
            errno = 0;
            const dirent* entry = ::readdir(directory.get());
            if (entry == nullptr) {
                if (errno != 0) return error_at(path, "list", errno);
                break;
            }
            const std::string name(static_cast<const char*>(entry->d_name));
            if (name == "." || name == "..") continue;
            DirectoryEntry found{name, entry->d_type == DT_DIR, entry->d_type == DT_REG};
            if (entry->d_type == DT_UNKNOWN) {
                struct stat info {};
                // It may be gone by now: then it is not listed.
                if (::fstatat(::dirfd(directory.get()), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
                    continue;
                found.is_directory = S_ISDIR(info.st_mode);
                found.is_regular = S_ISREG(info.st_mode);
            }
            entries.push_back(std::move(found));
        }
        std::sort(entries.begin(), entries.end(),
                  [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
        return entries;
    }

    Status remove(const std::string& path) override {
        if (::unlink(path.c_str()) != 0) return error_at(path, "remove", errno);
        return Status::ok();
    }

    bool exists(const std::string& path) override {
        struct stat info {};
        return ::lstat(path.c_str(), &info) == 0;
    }

  private:
    std::atomic<std::uint64_t> next_temporary_{0};
};

}  // namespace

FileSystem& posix_file_system() {
    // Never destroyed: a writer's thread that was left behind may use it while the process exits.
    alignas(PosixFileSystem) static std::byte storage[sizeof(PosixFileSystem)];
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory)
    static PosixFileSystem* const files = ::new (static_cast<void*>(storage)) PosixFileSystem;
    return *files;
}

}  // namespace traindbg::storage
