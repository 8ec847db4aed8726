// A file system in memory, for tests and fuzzing: fast, without privileges, and able to lose power.
//
// It remembers for each file how much of it was synced. `lose_power` puts all files back to that, as
// a machine that was switched off would; what lies between is kept, cut or zeroed as asked.
//
// Ownership: files that were opened share their bytes with the file system and may outlive it.
// Thread-safety: all members from any thread; a file object from one at a time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "traindbg/storage/file_system.h"

namespace traindbg::storage {

// What becomes of bytes that were appended and never synced.
enum class UnsyncedBytes : std::uint8_t {
    kLost,    // the file ends where it was synced last
    kZeroed,  // the length survived, the content did not
    kHalf,    // the first half of them survived
};

class MemoryFileSystem final : public FileSystem {
  public:
    MemoryFileSystem();
    ~MemoryFileSystem() override;

    base::Result<std::unique_ptr<AppendFile>> create(const std::string& path) override;
    base::Result<std::unique_ptr<ReadFile>> open(const std::string& path) override;
    base::Status put_atomic(const std::string& path, base::ByteSpan bytes) override;
    base::Status create_directories(const std::string& path) override;
    base::Status create_directory(const std::string& path) override;
    base::Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
    base::Status remove(const std::string& path) override;
    bool exists(const std::string& path) override;

    // The whole content of a file; empty when there is none.
    [[nodiscard]] base::ByteBuffer content(const std::string& path) const;
    // How much of it would survive a loss of power.
    [[nodiscard]] std::uint64_t synced_bytes(const std::string& path) const;
    // Replaces it, whatever was there. The parent directory is made when it is missing.
    void set_content(const std::string& path, base::ByteBuffer bytes);
    // All files, sorted.
    [[nodiscard]] std::vector<std::string> paths() const;
    void lose_power(UnsyncedBytes unsynced);

    struct File;

  private:
    [[nodiscard]] base::Status check_parent(const std::string& path) const;

    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<File>> files_;
    std::set<std::string> directories_;
};

}  // namespace traindbg::storage
