// Where the files of a run are.
#pragma once

#include <memory>
#include <string>

#include "traindbg/storage/file_system.h"

namespace traindbg::bindings {

// The disk, or a bucket. A bucket is read by the program `traindbg` in a process of its own: this one talks
// to no network. Copies share that process, which ends with the last of them and of the files they opened: so
// a run, who follows it and its tables see the same moment. Thread-safe.
class RunFiles {
  public:
    // `path`: of the run. `program`: the native program, where there is one. Raises; needs the GIL.
    RunFiles(const std::string& path, const std::string& program);

    [[nodiscard]] storage::FileSystem& operator*() const noexcept {
        return bucket_ ? *bucket_ : storage::posix_file_system();
    }

  private:
    std::shared_ptr<storage::FileSystem> bucket_;
};

}  // namespace traindbg::bindings
