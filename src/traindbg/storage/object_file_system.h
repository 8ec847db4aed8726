// A bucket as a read-only file system, so that whoever reads runs from a disk reads them from there:
// "s3://bucket/runs/night/w0000/000000.log" is a file, whether it is one object or the pieces that an
// uploader puts while it grows (object_pieces.h).
//
// What it knows of a run comes from one list of all its objects, made when the run's directory is listed
// and the last one is older than `look_interval`: whoever asks every 20 ms costs no more requests than
// who asks every 2 s. Between two lists nothing changes; files that grow have grown after the next one.
// A list that fails for a reason that may pass leaves what was known: the reader sees no news.
//
// Bytes come by ranges: blocks of 256 KiB, up to 8 MiB in one request where reading goes forward. Blocks
// of what never changes are kept in memory (32 MiB) and in `cache`. Other files (JSON) are read whole
// when they are opened, so that their content is of one moment.
//
// Ownership: borrows the store and the cache, which must outlive it and its files. Thread-safety: the
// file system from any thread, a file from one at a time. Errors: those of the store; whatever writes
// gives kUnsupported.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "traindbg/storage/block_cache.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::storage {

struct ObjectFileSystemOptions {
    std::string root;  // what paths begin with: "s3://bucket"
    // Of which store, for the names of cached blocks: server and bucket.
    std::string identity;
    std::chrono::nanoseconds look_interval = std::chrono::seconds(2);
    std::chrono::nanoseconds patience = std::chrono::seconds(60);  // of one call
};

class ObjectFileSystem final : public FileSystem {
  public:
    ObjectFileSystem(ObjectStore& store, BlockCache& cache, ObjectFileSystemOptions options);
    ~ObjectFileSystem() override;

    base::Result<std::unique_ptr<AppendFile>> create(const std::string& path) override;
    base::Result<std::unique_ptr<ReadFile>> open(const std::string& path) override;
    base::Status put_atomic(const std::string& path, base::ByteSpan bytes) override;
    base::Status create_directories(const std::string& path) override;
    base::Status create_directory(const std::string& path) override;
    base::Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
    base::Status remove(const std::string& path) override;
    // False also when nobody could tell; `open` says why.
    bool exists(const std::string& path) override;

    class Core;

  private:
    std::shared_ptr<Core> core_;
};

}  // namespace traindbg::storage
