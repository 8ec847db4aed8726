// The seam between the store and the operating system.
//
// Everything that the store does to files goes through this interface, so that tests can inject an
// error at any call, or lose what was not synced, without privileges. `posix_file_system()` is the
// real one; `FaultFileSystem` and `MemoryFileSystem` live beside it.
//
// What survives a loss of power: the bytes of a file up to its last `sync`, which makes the file's name and
// its directory's name last, too, with all that happened in that directory before; and what `put_atomic`
// put. A file that was removed may come back until a later sync in its directory.
//
// Thread-safety: a FileSystem may be used from any thread; a file object from one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"

namespace traindbg::storage {

// A file that only grows.
class AppendFile {
  public:
    AppendFile() = default;
    AppendFile(const AppendFile&) = delete;
    AppendFile& operator=(const AppendFile&) = delete;
    virtual ~AppendFile() = default;

    // Appends all of `bytes`; short writes and EINTR are dealt with inside. After an error some first part
    // may have been written, and `size` says how much: where the disk was full (kResourceExhausted), what
    // is missing may be appended once there is room; after any other error the file must not be appended
    // to again.
    [[nodiscard]] virtual base::Status append(base::ByteSpan bytes) = 0;
    // What was appended survives a power loss once this returns ok. After an error the bytes since the last
    // sync are in doubt for good (the system may have thrown them away): all later calls give an error, too.
    [[nodiscard]] virtual base::Status sync() = 0;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    // Sets room for `bytes` aside, so that a disk that gets full cannot refuse the next appends up to that
    // many, or so that removing the file frees that many. Changes no size. 0 gives it back. kUnsupported: not
    // on this file system.
    [[nodiscard]] virtual base::Status reserve(std::uint64_t bytes);
};

// Of files made by `create_bulk`: what is written past the page cache, and how little is not worth it.
inline constexpr std::size_t kDirectAlignment = 4096;
inline constexpr std::size_t kLeastDirectBytes = std::size_t{256} << 10;

// A piece of a file in memory, for as long as this lives. Read-only.
class Mapping {
  public:
    Mapping() = default;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    virtual ~Mapping() = default;

    [[nodiscard]] virtual base::ByteSpan bytes() const noexcept = 0;
};

// What others wait for in vain as long as this lives. It ends with the process, however that ends.
class FileLock {
  public:
    FileLock() = default;
    FileLock(const FileLock&) = delete;
    FileLock& operator=(const FileLock&) = delete;
    virtual ~FileLock() = default;
};

class ReadFile {
  public:
    ReadFile() = default;
    ReadFile(const ReadFile&) = delete;
    ReadFile& operator=(const ReadFile&) = delete;
    virtual ~ReadFile() = default;

    // Up to `size` bytes from `offset`; fewer at the end of the file.
    [[nodiscard]] virtual base::Result<base::ByteBuffer> read_at(std::uint64_t offset, std::size_t size) = 0;
    // The same into memory of the caller's, who so need not take fresh memory for each piece; gives how much
    // of it was filled.
    [[nodiscard]] virtual base::Result<std::size_t> read_into(std::uint64_t offset, std::span<std::byte> out);
    // The size now; a file that is being written grows.
    [[nodiscard]] virtual base::Result<std::uint64_t> size() = 0;
    // `size` bytes from `offset`, without copying them where the system can do that. For files that do not
    // change any more: reading from a mapping of a file that somebody cuts off ends the process (SIGBUS).
    // kDataLoss when the file is shorter than that. The mapping outlives the file object.
    [[nodiscard]] virtual base::Result<std::unique_ptr<Mapping>> map(std::uint64_t offset, std::size_t size);
};

struct DirectoryEntry {
    std::string name;
    bool is_directory = false;
    bool is_regular = false;  // neither: link, device, socket, FIFO; the store never opens those
};

enum class LockFile : std::uint8_t {
    kMustExist,
    kIsMade,  // where it is not there
};

class FileSystem {
  public:
    FileSystem() = default;
    FileSystem(const FileSystem&) = delete;
    FileSystem& operator=(const FileSystem&) = delete;
    virtual ~FileSystem() = default;

    // A new file; kAlreadyExists when there is one. Mode 0600. A child made by `fork` has no part in it: what
    // it does with the object there fails.
    [[nodiscard]] virtual base::Result<std::unique_ptr<AppendFile>> create(const std::string& path) = 0;
    // The same for a file that is written in large stretches which nobody reads soon: they go past the page
    // cache where the system can do that, without a copy, and where a stretch's address and its place in the
    // file agree modulo kDirectAlignment.
    [[nodiscard]] virtual base::Result<std::unique_ptr<AppendFile>> create_bulk(const std::string& path);
    // Refuses anything that is not a regular file, and never blocks on opening.
    [[nodiscard]] virtual base::Result<std::unique_ptr<ReadFile>> open(const std::string& path) = 0;
    // Puts `bytes` at `path` so that a reader sees either the old or the new content, whole.
    [[nodiscard]] virtual base::Status put_atomic(const std::string& path, base::ByteSpan bytes) = 0;
    // The directory and its missing parents, mode 0700; they survive a loss of power. Ok when it exists.
    [[nodiscard]] virtual base::Status create_directories(const std::string& path) = 0;
    // Exactly one new directory; kAlreadyExists when there is one: how a worker claims its place. Its name
    // lasts once a file in it was synced.
    [[nodiscard]] virtual base::Status create_directory(const std::string& path) = 0;
    // Sorted by name.
    [[nodiscard]] virtual base::Result<std::vector<DirectoryEntry>> list(const std::string& path) = 0;
    // A file, or a directory in which there is nothing.
    [[nodiscard]] virtual base::Status remove(const std::string& path) = 0;
    [[nodiscard]] virtual bool exists(const std::string& path) = 0;
    // The lock of a file that is there for this alone, and that nobody removes. kUnavailable: somebody else
    // holds it. kNotFound: no such file, and it was not to be made. kUnsupported: this file system has no
    // locks. A child made by `fork` does not hold it. Never waits.
    [[nodiscard]] virtual base::Result<std::unique_ptr<FileLock>> try_lock(const std::string& path,
                                                                           LockFile file);
    // Bytes that can still be written near `path`, an existing directory; UINT64_MAX: not known.
    [[nodiscard]] virtual base::Result<std::uint64_t> free_bytes(const std::string& path);
};

// The real one; lives for ever.
[[nodiscard]] FileSystem& posix_file_system();

// The whole file, or kResourceExhausted when it is larger than `most_bytes`.
[[nodiscard]] base::Result<base::ByteBuffer> read_whole(FileSystem& files, const std::string& path,
                                                        std::uint64_t most_bytes = 64ULL << 20);

}  // namespace traindbg::storage
