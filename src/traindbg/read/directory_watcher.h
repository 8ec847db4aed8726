// Tells when something in a directory was made or written. Private to `read`.
//
// A system without inotify, or without one to spare, gives a watcher that does not work: `descriptor`
// is -1 then, and waiting is a plain sleep. So does a path that is no directory of this machine.
//
// Thread-safety: one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>

namespace traindbg::read::internal {

// How long to wait at most before looking again, without anything that wakes.
inline constexpr std::chrono::nanoseconds kPollInterval = std::chrono::milliseconds(20);
// With inotify nothing should be missed; a look now and then costs nothing and heals what is.
inline constexpr std::chrono::nanoseconds kLookInterval = std::chrono::seconds(1);

class DirectoryWatcher {
  public:
    DirectoryWatcher();
    DirectoryWatcher(const DirectoryWatcher&) = delete;
    DirectoryWatcher& operator=(const DirectoryWatcher&) = delete;
    ~DirectoryWatcher();

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    // Watches the run's own directory for workers, or a worker's for all that is written. True when it
    // was not watched before.
    bool watch_run(const std::string& directory);
    bool watch_worker(const std::string& directory);
    // Forgets the events so far: the caller is about to look for itself.
    void drain() noexcept;
    // Until something happened, but no longer than `patience`, nor than it is wise not to look.
    void wait(std::chrono::nanoseconds patience) const noexcept;

  private:
    bool watch(const std::string& directory, std::uint32_t events);
    void stop() noexcept;

    int descriptor_;
    std::set<std::string> watched_;
};

}  // namespace traindbg::read::internal
