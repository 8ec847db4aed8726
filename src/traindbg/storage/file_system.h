// The seam between the store and the operating system.
//
// Everything that the store does to files goes through this interface, so that tests can inject an
// error at any call, or lose what was not synced, without privileges. `posix_file_system()` is the
// real one; `FaultFileSystem` and `MemoryFileSystem` live beside it.
//
// Thread-safety: a FileSystem may be used from any thread; a file object from one at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
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

    // Appends all of `bytes`; short writes and EINTR are dealt with inside. After an error an unknown
    // part may have been written: the file must not be appended to again.
    [[nodiscard]] virtual base::Status append(base::ByteSpan bytes) = 0;
    // What was appended survives a power loss once this returns ok.
    [[nodiscard]] virtual base::Status sync() = 0;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
};

class ReadFile {
  public:
    ReadFile() = default;
    ReadFile(const ReadFile&) = delete;
    ReadFile& operator=(const ReadFile&) = delete;
    virtual ~ReadFile() = default;

    // Up to `size` bytes from `offset`; fewer at the end of the file.
    [[nodiscard]] virtual base::Result<base::ByteBuffer> read_at(std::uint64_t offset, std::size_t size) = 0;
    // The size now; a file that is being written grows.
    [[nodiscard]] virtual base::Result<std::uint64_t> size() = 0;
};

struct DirectoryEntry {
    std::string name;
    bool is_directory = false;
    bool is_regular = false;  // neither: link, device, socket, FIFO; the store never opens those
};

class FileSystem {
  public:
    FileSystem() = default;
    FileSystem(const FileSystem&) = delete;
    FileSystem& operator=(const FileSystem&) = delete;
    virtual ~FileSystem() = default;

    // A new file; kAlreadyExists when there is one. Mode 0600.
    [[nodiscard]] virtual base::Result<std::unique_ptr<AppendFile>> create(const std::string& path) = 0;
    // Refuses anything that is not a regular file, and never blocks on opening.
    [[nodiscard]] virtual base::Result<std::unique_ptr<ReadFile>> open(const std::string& path) = 0;
    // Puts `bytes` at `path` so that a reader sees either the old or the new content, whole.
    [[nodiscard]] virtual base::Status put_atomic(const std::string& path, base::ByteSpan bytes) = 0;
    // The directory and its missing parents, mode 0700. Ok when it exists.
    [[nodiscard]] virtual base::Status create_directories(const std::string& path) = 0;
    // Exactly one new directory; kAlreadyExists when there is one: how a worker claims its place.
    [[nodiscard]] virtual base::Status create_directory(const std::string& path) = 0;
    // Sorted by name.
    [[nodiscard]] virtual base::Result<std::vector<DirectoryEntry>> list(const std::string& path) = 0;
    [[nodiscard]] virtual base::Status remove(const std::string& path) = 0;
    [[nodiscard]] virtual bool exists(const std::string& path) = 0;
};

// The real one; lives for ever.
[[nodiscard]] FileSystem& posix_file_system();

// The whole file, or kResourceExhausted when it is larger than `most_bytes`.
[[nodiscard]] base::Result<base::ByteBuffer> read_whole(FileSystem& files, const std::string& path,
                                                        std::uint64_t most_bytes = 64ULL << 20);

}  // namespace traindbg::storage
