// A file system that fails on purpose: it passes every call on to another one, until a plan says
// that this call is to fail. Tests run a piece of work once to learn how many calls it makes and
// then again for each of them, so that every error path is taken.
//
// Ownership: borrows the other file system, which must outlive it and its files.
// Thread-safety: all members from any thread.
#pragma once

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "traindbg/storage/file_system.h"

namespace traindbg::storage {

enum class FileCall : std::uint8_t {
    kCreate,
    kOpen,
    kPutAtomic,
    kCreateDirectory,
    kList,
    kRemove,
    kAppend,
    kSync,
    kRead,
    kSize,
    kReserve,
    kMap,
    kLock,
};

// Bytes that the disk cannot read any more: a call that touches one of them fails with EIO.
struct BadSector {
    std::string path;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

struct FaultPlan {
    std::uint64_t fail_at_call = UINT64_MAX;  // the call with this number (from 0) and ...
    bool keep_failing = true;                 // ... all after it, or this one alone
    int error = EIO;
    bool tear_append = false;                // an append that is to fail writes the first half before
    std::uint64_t space_bytes = UINT64_MAX;  // of all files together; then ENOSPC, after what still fits
    bool fail_sync = false;                  // every sync: EIO
    BadSector bad_sector;
    std::chrono::nanoseconds latency{0};  // before every append and sync
    // Beside these, the calls for which it says so.
    std::function<bool(FileCall, const std::string& path)> fails;
    // Called before every call goes on, in the thread that makes it: may wait, to be a slow disk.
    std::function<void(FileCall, const std::string& path)> before;
};

class FaultFileSystem final : public FileSystem {
  public:
    FaultFileSystem(FileSystem& files, FaultPlan plan);
    ~FaultFileSystem() override;

    base::Result<std::unique_ptr<AppendFile>> create(const std::string& path) override;
    base::Result<std::unique_ptr<ReadFile>> open(const std::string& path) override;
    base::Status put_atomic(const std::string& path, base::ByteSpan bytes) override;
    base::Status create_directories(const std::string& path) override;
    base::Status create_directory(const std::string& path) override;
    base::Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
    base::Status remove(const std::string& path) override;
    bool exists(const std::string& path) override;
    base::Result<std::unique_ptr<AppendFile>> create_bulk(const std::string& path) override;
    base::Result<std::unique_ptr<FileLock>> try_lock(const std::string& path, LockFile file) override;
    base::Result<std::uint64_t> free_bytes(const std::string& path) override;

    // Makes room on a disk with `space_bytes`, as somebody who removes other files does. Removing a file that
    // was written through this file system makes room as well.
    void add_space(std::uint64_t bytes);
    // Calls so far, with those that failed.
    [[nodiscard]] std::uint64_t calls() const noexcept;

    class Faults;

  private:
    FileSystem& files_;
    std::shared_ptr<Faults> faults_;
};

}  // namespace traindbg::storage
