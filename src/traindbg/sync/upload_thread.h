// Uploads a run in rounds, on a thread of its own, so that nobody waits for the network: not the
// training, which does not know of it, and not the supervisor, until the end, and then so long and no
// longer.
//
// Thread-safety: all members from one thread (the owner's), but `counts`. The thread blocks all signals.
// Errors: told by `news`, each once; the rounds go on. Refused credentials or a missing bucket are tried
// again, too: somebody may put them right while the training runs.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "traindbg/sync/uploader.h"

namespace traindbg::sync {

class UploadThread {
  public:
    // `files` and `store` must outlive it.
    // `is_once`: what is there now, as `finish` does it, and no more.
    UploadThread(UploadOptions options, storage::FileSystem& files, storage::ObjectStore& store,
                 std::chrono::nanoseconds interval, bool is_once = false);
    UploadThread(const UploadThread&) = delete;
    UploadThread& operator=(const UploadThread&) = delete;
    // Cancels what goes on; takes about a second.
    ~UploadThread();

    // The first error since the last good round; nothing when it was told already.
    [[nodiscard]] std::optional<base::Status> news();
    // The last round: all that is there now. Ok, or why not all of it is up after `patience`.
    [[nodiscard]] base::Status finish(std::chrono::nanoseconds patience);
    // Ends whatever goes on, without waiting for it.
    void cancel();
    // How the last round went, once it was done.
    [[nodiscard]] std::optional<base::Status> ended();
    // END.json is up.
    [[nodiscard]] bool has_end() const noexcept { return has_end_.load(); }
    [[nodiscard]] const UploadCounts& counts() const noexcept { return uploader_.counts(); }

  private:
    void work();

    const std::chrono::nanoseconds interval_;
    std::atomic<bool> is_cancelled_{false};
    std::atomic<bool> has_end_{false};
    Uploader uploader_;

    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_last_ = false;   // asked for by `finish`
    bool is_ended_ = false;  // the thread did its last round
    bool is_told_ = false;   // of `trouble_`
    std::optional<base::Status> trouble_;
    std::int64_t deadline_nanos_ = INT64_MAX;
    std::thread thread_;
};

}  // namespace traindbg::sync
