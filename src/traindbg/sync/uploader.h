// Mirrors a run directory into an object store, while it grows or after it ended.
//
// What goes where, under the prefix, by the file's name:
//
//   w0000/000003.seg        an immutable file: one object of that name
//   w0000/000003.log        a growing file: w0000/000003.log.0000, .0001, ... are its bytes, cut at whole
//                           frames. Once 000003.seg is up they are removed, the last one first.
//   w0000/000001.blob       growing like a log, in pieces of at most 16 MiB; in one object when it was
//                           finished before the first piece of it went up
//   RUN.json, verdict.json  every other file: one object, put again when its content changed
//   END.json                after everything else, so that who sees it sees all
//   control, .name          never
//
// A growing file is only appended to, so its pieces are immutable, and any number of them is a prefix of
// the file. Before the pieces of a log go up, those of the blobs that its steps name have gone up.
//
// What was done is read from the bucket itself (one list): a process that died at any point is continued
// by the next one, which puts nothing twice. Pieces are put only where there is none; two uploaders of
// one run get in each other's way but never into each other's data. RUN.json tells runs apart: a prefix
// that holds another run is refused.
//
// Memory: one piece, 16 MiB, and 40 bytes per object. Thread-safety: one thread; `counts` from any.
// Errors: those of the store, then the round ends and the next one goes on; a local file that cannot be
// read is told in `troubles` and tried again.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/format/frame_scanner.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::sync {

struct UploadOptions {
    std::string run;      // its directory
    std::string prefix;   // of all keys, without a "/" at the end
    bool is_dry = false;  // only look and count
    std::uint64_t piece_bytes = std::uint64_t{16} << 20;
    // After every object that was put or removed, and for each that a dry run would.
    std::function<void(const std::string& key, std::uint64_t bytes, bool is_removed)> told{};
};

struct UploadCounts {
    std::atomic<std::uint64_t> objects_put{0};
    std::atomic<std::uint64_t> bytes_put{0};
    std::atomic<std::uint64_t> objects_removed{0};
    std::atomic<std::uint64_t> objects_kept{0};   // were there already, in the last round
    std::atomic<std::uint64_t> bytes_pending{0};  // known and not up yet
    std::atomic<std::uint64_t> rounds{0};         // that came to their end
};

class Uploader {
  public:
    Uploader(UploadOptions options, storage::FileSystem& files, storage::ObjectStore& store);
    Uploader(const Uploader&) = delete;
    Uploader& operator=(const Uploader&) = delete;
    ~Uploader();

    // Puts what is new. `is_last`: nobody writes any more, as far as is known; what follows the last whole
    // frame goes up as well.
    [[nodiscard]] base::Status round(bool is_last, const storage::Patience& patience);

    [[nodiscard]] const UploadCounts& counts() const noexcept { return counts_; }
    // Local files that the last round could not read.
    [[nodiscard]] const std::vector<std::string>& troubles() const noexcept { return troubles_; }
    // END.json is up: the run is over, and all of it is there.
    [[nodiscard]] bool has_end() const noexcept { return has_end_; }

  private:
    struct Growing;
    struct Pieces;
    struct LocalFile;

    [[nodiscard]] base::Status look_at_bucket(const storage::Patience& patience);
    [[nodiscard]] base::Status check_identity(const storage::Patience& patience);
    [[nodiscard]] base::Result<std::vector<LocalFile>> look_at_files();
    void measure(LocalFile& file, bool is_last);
    static void hold_back_later_parts(std::vector<LocalFile>& found);
    [[nodiscard]] base::Status put_growing(const LocalFile& file, bool is_last,
                                           const storage::Patience& patience);
    [[nodiscard]] base::Status put_immutable(const LocalFile& file, const storage::Patience& patience);
    [[nodiscard]] base::Status put_changed(const LocalFile& file, const storage::Patience& patience);
    [[nodiscard]] base::Status remove_superseded(const storage::Patience& patience);
    [[nodiscard]] base::Status remove(const std::string& name, const storage::Patience& patience);
    void did_put(const std::string& name, std::uint64_t bytes);
    [[nodiscard]] std::string key_of(const std::string& name) const;
    [[nodiscard]] std::string path_of(const std::string& name) const { return options_.run + "/" + name; }

    const UploadOptions options_;
    storage::FileSystem& files_;
    storage::ObjectStore& store_;
    UploadCounts counts_;
    std::vector<std::string> troubles_;
    bool has_end_ = false;
    bool has_vanished_ = false;  // a file that was listed, in this round: its successor comes in the next

    bool knows_bucket_ = false;
    std::map<std::string, std::uint64_t> objects_;  // whole ones: name, size
    std::map<std::string, Pieces> pieces_;          // of growing files, by the file's name
    std::map<std::string, Growing> growing_;
    std::map<std::string, std::pair<std::uint64_t, std::uint32_t>> put_;  // size and checksum of what was put
};

}  // namespace traindbg::sync
