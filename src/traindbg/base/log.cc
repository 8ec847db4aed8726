#include "traindbg/base/log.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>

namespace traindbg::base {
namespace {

LogLevel threshold() noexcept {
    static const LogLevel level = [] {
        const char* setting = std::getenv("TRAINDBG_LOG");
        const std::string_view word = setting != nullptr ? setting : "";
        if (word == "quiet") return LogLevel::kError;
        if (word == "debug") return LogLevel::kDebug;
        return LogLevel::kInfo;
    }();
    return level;
}

}  // namespace

void log(LogLevel level, std::string_view message) noexcept {
    if (level < threshold()) return;
    try {
        std::string line = "traindbg: ";
        if (level == LogLevel::kWarning) line += "warning: ";
        if (level == LogLevel::kError) line += "error: ";
        line += message;
        line += '\n';
        // One write, so that lines of several threads and processes do not mix. Nobody can be told
        // when it fails.
        [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    } catch (const std::exception&) {
        return;  // out of memory: silence is better than harm
    }
}

void log_once(LogLevel level, std::string_view key, std::string_view message) noexcept {
    // Hashes of the keys that were said. No lock: the child of a fork would wait for ever for one that
    // another thread of its parent held. No destructor: threads may say something while the process exits.
    static constinit std::array<std::atomic<std::size_t>, 1024> said{};
    const std::size_t hash = std::hash<std::string_view>{}(key) | 1;  // 0 is an empty place
    for (std::size_t i = 0; i < said.size(); ++i) {
        std::atomic<std::size_t>& place = said[(hash / 2 + i) % said.size()];
        std::size_t there = 0;
        if (place.compare_exchange_strong(there, hash, std::memory_order_relaxed)) return log(level, message);
        if (there == hash) return;
    }
}

}  // namespace traindbg::base
