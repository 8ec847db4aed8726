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
    // Until something happened, but no longer than `patience`.
    void wait(std::chrono::nanoseconds patience) const noexcept;

  private:
    bool watch(const std::string& directory, std::uint32_t events);
    void stop() noexcept;

    int descriptor_;
    std::set<std::string> watched_;
};

}  // namespace traindbg::read::internal
