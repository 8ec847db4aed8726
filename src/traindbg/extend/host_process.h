// A process for somebody else's code: started with limits, asked and answering over a socket of its own,
// ended when it takes too long.
//
// It has a session of its own (no signal of a terminal reaches it), nothing on its standard input, and ends
// with us however we end. What it prints is kept to the last few lines, for the message when it fails. Its
// memory (what it may write to: RLIMIT_DATA) is limited by the kernel, its time by whoever asks.
//
// Thread-safety: one thread at a time. Errors: every failure ends the process, and its status says what
// became of it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/status.h"

namespace traindbg::extend {

// The descriptor at which the process finds its socket.
inline constexpr int kHostDescriptor = 3;

struct HostOptions {
    std::vector<std::string> command;     // argv; the first is a path, or is looked up in PATH
    std::uint64_t memory = 1ULL << 30;    // bytes; 0: no limit
    std::vector<std::string> unset = {};  // variables that it is not to inherit
};

class HostProcess {
  public:
    [[nodiscard]] static base::Result<std::unique_ptr<HostProcess>> start(const HostOptions& options);
    HostProcess(const HostProcess&) = delete;
    HostProcess& operator=(const HostProcess&) = delete;
    ~HostProcess();  // ends it

    [[nodiscard]] bool is_running() const noexcept { return pid_ >= 0; }
    // Sends a frame and gives the JSON of the answer, within `limit`.
    [[nodiscard]] base::Result<std::string> ask(std::string_view request, std::chrono::nanoseconds limit);

  private:
    HostProcess(pid_t pid, base::FileDescriptor socket, base::FileDescriptor output, std::uint64_t memory);
    // Takes what it printed; true: there may be more to come.
    bool drain();
    [[nodiscard]] base::Status ended();
    [[nodiscard]] std::string last_words() const;
    // Its wait status; -1: it does not end.
    int end() noexcept;

    pid_t pid_;
    base::FileDescriptor socket_;
    base::FileDescriptor output_;  // of what it prints
    std::uint64_t memory_;
    std::string printed_;  // the end of it
};

}  // namespace traindbg::extend
