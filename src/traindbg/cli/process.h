// Starting a process and being told of signals, without threads and without handlers.
//
// The child stays in our process group and has our terminal, so that Ctrl-C, Ctrl-Z, stdin and
// `isatty` are for it as they would be without us. It outlives us if we die.
#pragma once

#include <sys/signalfd.h>
#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/status.h"

namespace traindbg::cli {

// From its construction on, the signals that a supervisor deals with arrive as readable bytes of a
// descriptor. A child gets the mask from before.
class SignalGate {
  public:
    [[nodiscard]] static base::Result<SignalGate> open();
    SignalGate(SignalGate&& other) noexcept
        : descriptor_(std::exchange(other.descriptor_, -1)), before_(other.before_) {}
    SignalGate& operator=(SignalGate&& other) = delete;
    SignalGate(const SignalGate&) = delete;
    SignalGate& operator=(const SignalGate&) = delete;
    // Lets the signals through again; those that still wait then act as they always did.
    ~SignalGate();

    [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
    [[nodiscard]] const sigset_t& mask_before() const noexcept { return before_; }
    // The next signal that came, without waiting.
    [[nodiscard]] std::optional<signalfd_siginfo> next() noexcept;

  private:
    SignalGate(int descriptor, const sigset_t& before) noexcept : descriptor_(descriptor), before_(before) {}
    int descriptor_;
    sigset_t before_;
};

// Whether the terminal (the kernel) raised the signal, so that our whole process group got it, and
// not some process that meant us alone.
[[nodiscard]] bool came_from_terminal(const signalfd_siginfo& signal) noexcept;

using Environment = std::vector<std::pair<std::string, std::string>>;

struct Spawned {
    pid_t pid = -1;
    int error = 0;  // errno of what failed, when there is no process
};
// Starts `command` (found in PATH as a shell does) with `extra` added to our environment. `output`: a
// descriptor that its standard output goes to; `input`: one that its standard input comes from; -1: ours.
[[nodiscard]] Spawned spawn(const std::vector<std::string>& command, const Environment& extra,
                            const sigset_t& mask, int output = -1, int input = -1) noexcept;
// Why `command` could not be started, and what to do.
[[nodiscard]] std::string spawn_failure(const std::vector<std::string>& command, int error);

// The wait status of a child that has ended; nothing while it runs.
[[nodiscard]] std::optional<int> try_wait(pid_t pid) noexcept;

// Runs a helper to its end, or kills it after `limit`; for `doctor`.
struct Captured {
    int exit_code = -1;  // -1: not started, or killed after the limit
    std::string output;  // of standard output, up to 64 kB
};
[[nodiscard]] Captured run_and_capture(const std::vector<std::string>& command, const Environment& extra,
                                       std::chrono::milliseconds limit);

}  // namespace traindbg::cli
