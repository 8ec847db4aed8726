#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <new>

#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/unshared_descriptor.h"

namespace traindbg::storage {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::FileDescriptor;
using base::Result;
using base::Status;
using internal::UnsharedDescriptor;

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

// What `sync` gives; over a network a signal may interrupt it, and it then has lost nothing.
template <typename Sync>
int sync_retrying(Sync sync, int descriptor) noexcept {
    int result = 0;
    do result = sync(descriptor);
    while (result != 0 && errno == EINTR);
    return result;
}

Status sync_directory(const std::string& path) {
    const FileDescriptor directory(open_retrying(path.c_str(), O_RDONLY | O_DIRECTORY));
    if (!directory.is_open()) return error_at(path, "open", errno);
    // Some network file systems cannot sync a directory and say so; there is nothing more to do.
    if (sync_retrying(::fsync, directory.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
        return error_at(path, "fsync", errno);
    return Status::ok();
}

// Writes all of `bytes`, at `offset` or (-1) where the descriptor stands. `*written` counts what was taken,
// also when an error comes back; `*error` is the errno of that.
Status write_all(int descriptor, ByteSpan bytes, const std::string& path, std::uint64_t* written,
                 std::int64_t offset = -1, int* error = nullptr) {
    const auto fail = [&](int why) {
        if (error != nullptr) *error = why;
        return error_at(path, "write", why);
    };
    while (!bytes.empty()) {
        const ssize_t count = offset < 0 ? ::write(descriptor, bytes.data(), bytes.size())
                                         : ::pwrite(descriptor, bytes.data(), bytes.size(), offset);
        if (count < 0) {
            if (errno == EINTR) continue;
            return fail(errno);
        }
        if (count == 0) return fail(ENOSPC);
        *written += static_cast<std::uint64_t>(count);
        if (offset >= 0) offset += count;
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return Status::ok();
}

// Sets blocks aside behind the end of the file; its size stays.
Status reserve_blocks(int descriptor, std::uint64_t from, std::uint64_t bytes, const std::string& path) {
    int result = 0;
    do
        result =
            ::fallocate(descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from), static_cast<off_t>(bytes));
    while (result != 0 && errno == EINTR);
    if (result == 0) return Status::ok();
    if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)
        return {Code::kUnsupported, path + ": this file system cannot set room aside"};
    return error_at(path, "reserve", errno);
}

// Syncing as every append file does it, with a memory for errors.
class Syncer {
  public:
    Status sync(int descriptor, const std::string& path) {
        if (!failure_.is_ok()) return failure_;
        if (sync_retrying(::fdatasync, descriptor) != 0) {
            // The kernel may have dropped the pages and marked them clean: a second call would say "ok".
            failure_ = error_at(path, "fdatasync", errno);
            return failure_;
        }
        if (!name_is_synced_) {
            // The file's name and its directory's name must survive, too.
            const std::string directory = parent_of(path);
            TRAINDBG_RETURN_IF_ERROR(sync_directory(directory));
            TRAINDBG_RETURN_IF_ERROR(sync_directory(parent_of(directory)));
            name_is_synced_ = true;
        }
        return Status::ok();
    }

  private:
    bool name_is_synced_ = false;
    Status failure_;
};

class PosixAppendFile final : public AppendFile {
  public:
    PosixAppendFile(UnsharedDescriptor descriptor, std::string path)
        : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

    Status append(ByteSpan bytes) override { return write_all(descriptor_.get(), bytes, path_, &size_); }
    Status sync() override { return syncer_.sync(descriptor_.get(), path_); }
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    Status reserve(std::uint64_t bytes) override {
        if (bytes == 0)  // gives back what was set aside behind the end
            return ::ftruncate(descriptor_.get(), static_cast<off_t>(size_)) == 0
                       ? Status::ok()
                       : error_at(path_, "truncate", errno);
        return reserve_blocks(descriptor_.get(), size_, bytes, path_);
    }

  private:
    UnsharedDescriptor descriptor_;
    std::string path_;
    std::uint64_t size_ = 0;
    Syncer syncer_;
};

// Two descriptors of one file: whole blocks of long stretches go past the page cache, the rest through it.
// A block is never written both ways, so that the two views of the file cannot disagree.
class BulkAppendFile final : public AppendFile {
  public:
    BulkAppendFile(UnsharedDescriptor descriptor, UnsharedDescriptor direct, std::string path)
        : descriptor_(std::move(descriptor)), direct_(std::move(direct)), path_(std::move(path)) {}

    Status append(ByteSpan bytes) override {
        const std::size_t head = std::min<std::size_t>(
            bytes.size(), (kDirectAlignment - size_ % kDirectAlignment) % kDirectAlignment);
        TRAINDBG_RETURN_IF_ERROR(append_buffered(bytes.first(head)));
        bytes = bytes.subspan(head);
        const std::size_t blocks = bytes.size() / kDirectAlignment * kDirectAlignment;
        const bool is_aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % kDirectAlignment == 0;
        if (direct_.is_open() && is_aligned && blocks >= kLeastDirectBytes) {
            TRAINDBG_ASSIGN_OR_RETURN(const std::size_t done, append_direct(bytes.first(blocks)));
            bytes = bytes.subspan(done);
        }
        return append_buffered(bytes);
    }
    Status sync() override { return syncer_.sync(descriptor_.get(), path_); }
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    Status reserve(std::uint64_t bytes) override {
        return reserve_blocks(descriptor_.get(), size_, bytes, path_);
    }

  private:
    // How much was taken; less than all where the system refuses to write directly: no error, then the page
    // cache takes it, from now on.
    Result<std::size_t> append_direct(ByteSpan blocks) {
        const std::uint64_t before = size_;
        int error = 0;
        const Status status =
            write_all(direct_.get(), blocks, path_, &size_, static_cast<std::int64_t>(size_), &error);
        if (!status.is_ok() && error == EINVAL) direct_.reset();
        else TRAINDBG_RETURN_IF_ERROR(status);
        return static_cast<std::size_t>(size_ - before);
    }

    Status append_buffered(ByteSpan bytes) {
        while (!bytes.empty()) {
            const ByteSpan piece = bytes.first(std::min(bytes.size(), kPieceBytes));
            TRAINDBG_RETURN_IF_ERROR(
                write_all(descriptor_.get(), piece, path_, &size_, static_cast<std::int64_t>(size_)));
            bytes = bytes.subspan(piece.size());
            if (size_ - told_ >= kPieceBytes) pass_on();
        }
        return Status::ok();
    }
    // The page cache is not to fill up with what nobody reads: the last piece is sent to the disk, the one
    // before, which is there by now, is forgotten. Advice only; nothing depends on it.
    void pass_on() noexcept {
        const auto last = static_cast<off64_t>(told_);
        const auto bytes = static_cast<off64_t>(size_ - told_);
        ::sync_file_range(descriptor_.get(), last, bytes, SYNC_FILE_RANGE_WRITE);
        ::posix_fadvise(descriptor_.get(), 0, last, POSIX_FADV_DONTNEED);
        told_ = size_;
    }

    static constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

    UnsharedDescriptor descriptor_;
    UnsharedDescriptor direct_;  // not open: this file system does not do that
    std::string path_;
    std::uint64_t size_ = 0;
    std::uint64_t told_ = 0;  // up to here the system was told what to do with the pages
    Syncer syncer_;
};

class PosixMapping final : public Mapping {
  public:
    PosixMapping(void* memory, std::size_t length, std::size_t skip, std::size_t size) noexcept
        : memory_(memory), length_(length), bytes_(static_cast<const std::byte*>(memory) + skip, size) {}
    PosixMapping(const PosixMapping&) = delete;
    PosixMapping& operator=(const PosixMapping&) = delete;
    ~PosixMapping() override { ::munmap(memory_, length_); }
    [[nodiscard]] ByteSpan bytes() const noexcept override { return bytes_; }

  private:
    void* memory_;
    std::size_t length_;
    ByteSpan bytes_;
};

class EmptyMapping final : public Mapping {
  public:
    [[nodiscard]] ByteSpan bytes() const noexcept override { return {}; }
};

class PosixLock final : public FileLock {
  public:
    explicit PosixLock(UnsharedDescriptor descriptor) : descriptor_(std::move(descriptor)) {}
    PosixLock(const PosixLock&) = delete;
    PosixLock& operator=(const PosixLock&) = delete;
    ~PosixLock() override {
        // Not by closing alone: a child that was made a moment ago may still have its share.
        if (base::fork_generation() == generation_) ::flock(descriptor_.get(), LOCK_UN);
    }

  private:
    UnsharedDescriptor descriptor_;
    const std::uint32_t generation_ = base::fork_generation();
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
        TRAINDBG_ASSIGN_OR_RETURN(const std::size_t done, read_into(offset, bytes));
        bytes.resize(done);  // less: somebody cut the file
        return bytes;
    }

    Result<std::size_t> read_into(std::uint64_t offset, std::span<std::byte> out) override {
        std::size_t done = 0;
        while (done < out.size()) {
            const ssize_t count = ::pread(descriptor_.get(), out.data() + done, out.size() - done,
                                          static_cast<off_t>(offset + done));
            if (count < 0) {
                if (errno == EINTR) continue;
                return error_at(path_, "read", errno);
            }
            if (count == 0) break;
            done += static_cast<std::size_t>(count);
        }
        return done;
    }

    Result<std::uint64_t> size() override {
        struct stat info {};
        if (::fstat(descriptor_.get(), &info) != 0) return error_at(path_, "stat", errno);
        return static_cast<std::uint64_t>(info.st_size);
    }

    Result<std::unique_ptr<Mapping>> map(std::uint64_t offset, std::size_t size) override {
        TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t whole, this->size());
        if (offset > whole || size > whole - offset)
            return Status(Code::kDataLoss, path_ + ": is shorter than what is to be mapped");
        if (size == 0) return std::unique_ptr<Mapping>(std::make_unique<EmptyMapping>());
        static const auto kPage = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
        const auto skip = static_cast<std::size_t>(offset % kPage);
        if (size > std::numeric_limits<std::size_t>::max() - skip) return error_at(path_, "map", ENOMEM);
        void* const memory = ::mmap(nullptr, size + skip, PROT_READ, MAP_SHARED, descriptor_.get(),
                                    static_cast<off_t>(offset - skip));
        if (memory == MAP_FAILED) return error_at(path_, "map", errno);
        try {
            return std::unique_ptr<Mapping>(std::make_unique<PosixMapping>(memory, size + skip, skip, size));
        } catch (const std::bad_alloc&) {
            ::munmap(memory, size + skip);
            return error_at(path_, "map", ENOMEM);
        }
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
        TRAINDBG_ASSIGN_OR_RETURN(UnsharedDescriptor descriptor, create_new(path, O_APPEND, path));
        return std::unique_ptr<AppendFile>(std::make_unique<PosixAppendFile>(std::move(descriptor), path));
    }

    Result<std::unique_ptr<AppendFile>> create_bulk(const std::string& path) override {
        TRAINDBG_ASSIGN_OR_RETURN(UnsharedDescriptor descriptor, create_new(path, 0, path));
        UnsharedDescriptor direct(
            FileDescriptor(open_retrying(path.c_str(), O_WRONLY | O_DIRECT | O_NOFOLLOW)));
        return std::unique_ptr<AppendFile>(
            std::make_unique<BulkAppendFile>(std::move(descriptor), std::move(direct), path));
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
        TRAINDBG_ASSIGN_OR_RETURN(UnsharedDescriptor descriptor, create_new(temporary, 0, path));
        std::uint64_t written = 0;
        Status status = write_all(descriptor.get(), bytes, path, &written);
        if (status.is_ok() && sync_retrying(::fsync, descriptor.get()) != 0)
            status = error_at(path, "fsync", errno);
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
            if (!part.empty() && ::mkdir(part.c_str(), kDirectoryMode) == 0) {
                TRAINDBG_RETURN_IF_ERROR(sync_directory(parent_of(part)));
            } else if (!part.empty()) {
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
        if (::unlink(path.c_str()) == 0) return Status::ok();
        const int error = errno;
        // Of a directory some systems say one, some the other.
        if ((error == EISDIR || error == EPERM) && ::rmdir(path.c_str()) == 0) return Status::ok();
        return error_at(path, "remove", error);
    }

    bool exists(const std::string& path) override {
        struct stat info {};
        return ::lstat(path.c_str(), &info) == 0;
    }

    Result<std::unique_ptr<FileLock>> try_lock(const std::string& path, LockFile file) override {
        constexpr int kFlags = O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
        const int making = file == LockFile::kIsMade ? O_CREAT : 0;
        // For writing, because network file systems make a lock of their own kind of it that asks for that.
        FileDescriptor opened(open_retrying(path.c_str(), O_RDWR | making | kFlags, kFileMode));
        const int error = errno;
        if (!opened.is_open() && (error == EACCES || error == EROFS || error == EPERM))
            opened = FileDescriptor(open_retrying(path.c_str(), O_RDONLY | kFlags));
        if (!opened.is_open()) return error_at(path, "open", error);
        UnsharedDescriptor descriptor(std::move(opened));
        int result = 0;
        do result = ::flock(descriptor.get(), LOCK_EX | LOCK_NB);
        while (result != 0 && errno == EINTR);
        if (result != 0 && errno == EWOULDBLOCK)
            return Status(Code::kUnavailable, path + ": a living process holds it");
        if (result != 0) return Status(Code::kUnsupported, path + ": this file system has no locks");
        return std::unique_ptr<FileLock>(std::make_unique<PosixLock>(std::move(descriptor)));
    }

    Result<std::uint64_t> free_bytes(const std::string& path) override {
        struct statvfs info {};
        if (::statvfs(path.c_str(), &info) != 0) return error_at(path, "statvfs", errno);
        return static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize;
    }

  private:
    // Errors name `told`.
    static Result<UnsharedDescriptor> create_new(const std::string& file, int flags,
                                                 const std::string& told) {
        FileDescriptor descriptor(
            open_retrying(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | flags, kFileMode));
        if (!descriptor.is_open()) return error_at(told, "create", errno);
        return UnsharedDescriptor(std::move(descriptor));
    }

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
