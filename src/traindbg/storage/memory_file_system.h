// A file system in memory, for tests and fuzzing: fast, without privileges, and able to lose power.
//
// It remembers for each file how much of it was synced, and for each directory which names in it were.
// `lose_power` puts all back to that, as a machine that was switched off would; what lies between is kept,
// cut, zeroed or mixed as asked. `after_power_loss` gives what would be found, and this one goes on: so one
// recording can be cut off at any number of places.
//
// Ownership: files that were opened share their bytes with the file system and may outlive it.
// Thread-safety: all members from any thread; a file object from one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "traindbg/storage/file_system.h"

namespace traindbg::storage {

// What becomes of bytes that were appended and never synced.
enum class UnsyncedBytes : std::uint8_t {
    kLost,         // the file ends where it was synced last
    kZeroed,       // the length survived, the content did not
    kHalf,         // the first half of them survived
    kRandomPages,  // each page of 4 KiB, and at its end the file, by chance: written, zeros, or partly
                   // written
};
// What becomes of names that were made, changed or removed and not synced since.
enum class UnsyncedNames : std::uint8_t {
    kKept,    // all is as it was
    kLost,    // new ones are gone, removed and replaced ones are back
    kRandom,  // each by chance
};
struct PowerLoss {
    UnsyncedBytes bytes = UnsyncedBytes::kLost;
    UnsyncedNames names = UnsyncedNames::kKept;
    std::uint64_t seed = 0;
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
    base::Result<std::unique_ptr<FileLock>> try_lock(const std::string& path, LockFile file) override;

    // The whole content of a file; empty when there is none.
    [[nodiscard]] base::ByteBuffer content(const std::string& path) const;
    // How much of it would survive a loss of power.
    [[nodiscard]] std::uint64_t synced_bytes(const std::string& path) const;
    // Replaces it, whatever was there. The parent directory is made when it is missing.
    void set_content(const std::string& path, base::ByteBuffer bytes);
    // All files, sorted.
    [[nodiscard]] std::vector<std::string> paths() const;
    // What is open stays so, but writes no longer reach what is found here.
    void lose_power(const PowerLoss& loss);
    void lose_power(UnsyncedBytes unsynced) { lose_power(PowerLoss{unsynced, UnsyncedNames::kKept, 0}); }
    [[nodiscard]] std::unique_ptr<MemoryFileSystem> after_power_loss(const PowerLoss& loss) const;

    struct File;
    struct Disk;

  private:
    std::shared_ptr<Disk> disk_;
};

}  // namespace traindbg::storage
