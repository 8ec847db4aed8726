#include "traindbg/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"

namespace traindbg::cli {
namespace {

constexpr std::array kHandled = {SIGCHLD, SIGINT,  SIGQUIT, SIGTERM,  SIGHUP, SIGUSR1,
                                 SIGUSR2, SIGTSTP, SIGCONT, SIGWINCH, SIGPIPE};

sigset_t handled_signals() noexcept {
    sigset_t set;
    sigemptyset(&set);
    for (const int signal : kHandled) sigaddset(&set, signal);
    return set;
}

// The C arrays that exec wants, pointing into strings that outlive them.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> environment_with(const Environment& extra) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        bool replaced = false;
        for (const auto& [name, value] : extra)
            replaced = replaced || (text.starts_with(name) && text.substr(name.size()).starts_with('='));
        if (!replaced) variables.emplace_back(text);
    }
    for (const auto& [name, value] : extra) variables.push_back(name + "=" + value);
    return variables;
}

// The parent's memory is shared copy-on-write and we have one thread, so that anything is allowed
// between fork and exec; what is there needs no memory all the same.
Spawned spawn_with_output(const std::vector<std::string>& command, const Environment& extra,
                          const sigset_t& mask, int output, int input, bool is_silent) {
    std::array<int, 2> report{};  // closed by a successful exec; else carries its errno
    if (::pipe2(report.data(), O_CLOEXEC) != 0) return {-1, errno};
    const std::vector<std::string> variables = environment_with(extra);
    const std::vector<char*> arguments = pointers_to(command);
    const std::vector<char*> environment = pointers_to(variables);

    const pid_t pid = ::fork();
    if (pid == 0) {
        if (output >= 0) ::dup2(output, STDOUT_FILENO);
        if (input >= 0) ::dup2(input, STDIN_FILENO);
        if (is_silent) {
            const int nothing = ::open("/dev/null", O_RDWR);
            if (nothing >= 0) {
                ::dup2(nothing, STDIN_FILENO);
                ::dup2(nothing, STDERR_FILENO);
            }
        }
        ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
        ::execvpe(arguments[0], arguments.data(), environment.data());
        const int error = errno;
        [[maybe_unused]] const ssize_t written = ::write(report[1], &error, sizeof error);
        ::_exit(kExitNotFound);
    }
    const int fork_error = errno;
    ::close(report[1]);
    if (pid < 0) {
        ::close(report[0]);
        return {-1, fork_error};
    }
    int error = 0;
    ssize_t size = 0;
    do size = ::read(report[0], &error, sizeof error);
    while (size < 0 && errno == EINTR);
    ::close(report[0]);
    if (size != sizeof error) return {pid, 0};
    ::waitpid(pid, nullptr, 0);
    return {-1, error};
}

}  // namespace

base::Result<SignalGate> SignalGate::open() {
    // A parent that ignores SIGCHLD would have children vanish without a status.
    ::signal(SIGCHLD, SIG_DFL);
    const sigset_t set = handled_signals();
    sigset_t before;
    if (const int error = ::pthread_sigmask(SIG_BLOCK, &set, &before); error != 0)
        return base::Status::from_errno("signals", error);
    sigset_t watched = set;
    sigdelset(&watched, SIGPIPE);  // blocked only: a broken pipe is an error of write, nothing more
    const int descriptor = ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0) {
        const int error = errno;
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return base::Status::from_errno("signalfd", error);
    }
    return SignalGate(descriptor, before);
}

SignalGate::~SignalGate() {
    if (descriptor_ < 0) return;
    while (next()) continue;  // seen and dealt with, or too late to matter
    const timespec now{};
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    while (::sigtimedwait(&pipe, nullptr, &now) > 0) continue;
    ::close(descriptor_);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::optional<signalfd_siginfo> SignalGate::next() noexcept {
    signalfd_siginfo signal{};
    const ssize_t size = ::read(descriptor_, &signal, sizeof signal);
    if (size != sizeof signal) return std::nullopt;
    return signal;
}

bool came_from_terminal(const signalfd_siginfo& signal) noexcept { return signal.ssi_code == SI_KERNEL; }

Spawned spawn(const std::vector<std::string>& command, const Environment& extra, const sigset_t& mask,
              int output, int input) noexcept {
    return spawn_with_output(command, extra, mask, output, input, /*is_silent=*/false);
}

std::string spawn_failure(const std::vector<std::string>& command, int error) {
    const std::string name = base::printable(command.front());
    std::error_code ignored;
    const bool is_path = command.front().find('/') != std::string::npos;
    const bool is_there = is_path && std::filesystem::exists(command.front(), ignored);
    if (error == ENOENT && is_there)
        return base::format(
            "{}: cannot be run: the interpreter in its first line (#!) does not exist; start it as "
            "traindbg run -- python {}",
            name, name);
    if (error == ENOENT || error == ENOTDIR)
        return is_path ? base::format("{}: no such file; check the path", name)
                       : base::format("{}: command not found; check the spelling and PATH", name);
    if (error == EACCES && is_there && !std::filesystem::is_directory(command.front(), ignored))
        return base::format(
            "{}: not executable; make it so with chmod +x, or start it as traindbg run -- python {}", name,
            name);
    return base::format("{}: cannot be run: {}", name, std::strerror(error));
}

std::optional<int> try_wait(pid_t pid) noexcept {
    int status = 0;
    pid_t got = 0;
    do got = ::waitpid(pid, &status, WNOHANG);
    while (got < 0 && errno == EINTR);
    if (got == pid) return status;
    if (got < 0) return W_EXITCODE(kExitInternal, 0);  // somebody else took it: nothing is known of it
    return std::nullopt;
}

Captured run_and_capture(const std::vector<std::string>& command, const Environment& extra,
                         std::chrono::milliseconds limit) {
    Captured captured;
    std::array<int, 2> channel{};
    if (::pipe2(channel.data(), O_CLOEXEC) != 0) return captured;
    sigset_t mask;
    sigemptyset(&mask);
    const Spawned child = spawn_with_output(command, extra, mask, channel[1], -1, /*is_silent=*/true);
    ::close(channel[1]);
    const std::int64_t deadline = base::monotonic_nanos() + std::chrono::nanoseconds(limit).count();
    constexpr std::size_t kMostBytes = 64 << 10;
    bool in_time = child.pid > 0;
    while (in_time) {
        const std::int64_t left = (deadline - base::monotonic_nanos()) / 1'000'000;
        pollfd waiting{channel[0], POLLIN, 0};
        if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) == 0) {
            in_time = false;
            break;
        }
        std::array<char, 4096> block{};
        const ssize_t size = ::read(channel[0], block.data(), block.size());
        if (size < 0 && errno == EINTR) continue;
        if (size <= 0) break;
        if (captured.output.size() < kMostBytes)
            captured.output.append(block.data(), static_cast<std::size_t>(size));
    }
    ::close(channel[0]);
    if (child.pid <= 0) return captured;
    if (!in_time) ::kill(child.pid, SIGKILL);
    int status = 0;
    while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) continue;
    if (in_time) captured.exit_code = exit_code_of_wait_status(status);
    return captured;
}

}  // namespace traindbg::cli
