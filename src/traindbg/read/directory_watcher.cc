#include "traindbg/read/directory_watcher.h"

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>

namespace traindbg::read::internal {

DirectoryWatcher::DirectoryWatcher() : descriptor_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}
DirectoryWatcher::~DirectoryWatcher() { stop(); }

bool DirectoryWatcher::watch_run(const std::string& directory) {
    // Only `control` is written to in place there, and that is no news.
    return watch(directory, IN_CREATE | IN_MOVED_TO);
}

bool DirectoryWatcher::watch_worker(const std::string& directory) {
    return watch(directory, IN_CREATE | IN_MODIFY | IN_MOVED_TO);
}

bool DirectoryWatcher::watch(const std::string& directory, std::uint32_t events) {
    if (descriptor_ < 0 || !watched_.insert(directory).second) return false;
    const int watch = ::inotify_add_watch(descriptor_, directory.c_str(), events | IN_ONLYDIR);
    if (watch < 0) stop();  // half of the directories would be worse than none
    return true;
}

void DirectoryWatcher::drain() noexcept {
    alignas(inotify_event) std::array<std::byte, 4096> events;
    while (descriptor_ >= 0 && ::read(descriptor_, events.data(), events.size()) > 0) continue;
}

void DirectoryWatcher::wait(std::chrono::nanoseconds patience) const noexcept {
    patience = std::min(patience, descriptor_ < 0 ? kPollInterval : kLookInterval);
    const timespec time{static_cast<time_t>(patience.count() / 1'000'000'000),
                        static_cast<long>(patience.count() % 1'000'000'000)};
    pollfd events{descriptor_, POLLIN, 0};  // a negative descriptor is ignored: a plain sleep
    ::ppoll(&events, 1, &time, nullptr);
}

void DirectoryWatcher::stop() noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
}

}  // namespace traindbg::read::internal
