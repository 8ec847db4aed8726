#include "traindbg/extend/host_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/extend/protocol.h"

namespace traindbg::extend {
namespace {

using base::Code;
using base::FileDescriptor;
using base::Result;
using base::Status;
using std::chrono::nanoseconds;

// Of what it prints, so much is kept.
constexpr std::size_t kMostPrinted = 4096;
constexpr std::size_t kMostLastWords = 600;
// The training goes first, and so does what judges it.
constexpr int kNicer = 5;
constexpr auto kPatienceWithDying = std::chrono::seconds(2);

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    pointers.reserve(texts.size() + 1);
    for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
    pointers.push_back(nullptr);
    return pointers;
}

std::vector<std::string> environment_without(const std::vector<std::string>& unset) {
    std::vector<std::string> variables;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        const std::string_view name = text.substr(0, text.find('='));
        if (std::find(unset.begin(), unset.end(), name) == unset.end()) variables.emplace_back(text);
    }
    return variables;
}

// In the child, between fork and exec, where nothing may allocate.
struct Child {
    char* const* arguments;
    char* const* environment;
    int socket;
    int output;
    std::uint64_t memory;
    pid_t parent;

    [[noreturn]] void run() const noexcept {
        ::setsid();
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1);  // who was to be told of has gone already
        const int nothing = ::open("/dev/null", O_RDWR);
        // Away from where the others go.
        const int link = ::fcntl(socket, F_DUPFD, 10);
        const int printed = ::fcntl(output, F_DUPFD, 10);
        if (nothing < 0 || link < 0 || printed < 0) ::_exit(1);
        ::dup2(nothing, STDIN_FILENO);
        ::dup2(printed, STDOUT_FILENO);
        ::dup2(printed, STDERR_FILENO);
        ::dup2(link, kHostDescriptor);
        if (::syscall(SYS_close_range, static_cast<unsigned>(kHostDescriptor) + 1, ~0U, 0U) != 0)
            for (int descriptor = kHostDescriptor + 1; descriptor < 256; ++descriptor) ::close(descriptor);
        const rlimit none{0, 0};
        ::setrlimit(RLIMIT_CORE, &none);
        if (memory != 0) {
            const rlimit most{memory, memory};
            ::setrlimit(RLIMIT_DATA, &most);
        }
        errno = 0;
        static_cast<void>(::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer));
        for (const int signal : {SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD})
            ::signal(signal, SIG_DFL);
        sigset_t open;
        sigemptyset(&open);
        ::sigprocmask(SIG_SETMASK, &open, nullptr);
        ::execvpe(arguments[0], arguments, environment);
        const char* why = ::strerrordesc_np(errno);
        for (const char* text :
             {static_cast<const char*>(arguments[0]), ": cannot be started: ", why == nullptr ? "" : why}) {
            [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
        }
        ::_exit(127);
    }
};

std::string in_seconds(nanoseconds limit) {
    return base::format("{} s", base::human_number(std::chrono::duration<double>(limit).count()));
}

}  // namespace

HostProcess::HostProcess(pid_t pid, FileDescriptor socket, FileDescriptor output, std::uint64_t memory)
    : pid_(pid), socket_(std::move(socket)), output_(std::move(output)), memory_(memory) {}

HostProcess::~HostProcess() { static_cast<void>(end()); }

Result<std::unique_ptr<HostProcess>> HostProcess::start(const HostOptions& options) {
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
        return Status::from_errno("a socket for a rule", errno);
    FileDescriptor socket(pair[0]);
    const FileDescriptor child_socket(pair[1]);
    if (::pipe2(pair.data(), O_CLOEXEC) != 0) return Status::from_errno("a pipe for a rule", errno);
    FileDescriptor output(pair[0]);
    const FileDescriptor child_output(pair[1]);
    for (const int descriptor : {socket.get(), output.get()})
        ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);

    const std::vector<std::string> variables = environment_without(options.unset);
    const std::vector<char*> arguments = pointers_to(options.command);
    const std::vector<char*> environment = pointers_to(variables);
    const Child child{arguments.data(),   environment.data(), child_socket.get(),
                      child_output.get(), options.memory,     ::getpid()};
    const pid_t pid = ::fork();
    if (pid == 0) child.run();
    if (pid < 0) return Status::from_errno("a process for a rule", errno);
    return std::unique_ptr<HostProcess>(
        new HostProcess(pid, std::move(socket), std::move(output), options.memory));
}

int HostProcess::end() noexcept {
    if (pid_ < 0) return -1;
    // Its children, too; until it has a session of its own there is only itself.
    ::kill(-pid_, SIGKILL);
    ::kill(pid_, SIGKILL);
    int status = -1;
    const std::int64_t until = base::monotonic_nanos() + nanoseconds(kPatienceWithDying).count();
    while (true) {
        const pid_t waited = ::waitpid(pid_, &status, WNOHANG);
        if (waited == pid_) break;
        if ((waited < 0 && errno != EINTR) || base::monotonic_nanos() > until) {
            status = -1;
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    pid_ = -1;
    return status;
}

bool HostProcess::drain() {
    std::array<char, 4096> buffer;
    for (int reads = 0; reads < 64; ++reads) {
        const ssize_t size = ::read(output_.get(), buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR) continue;
        if (size == 0) return false;
        if (size < 0) return errno == EAGAIN;
        printed_.append(buffer.data(), static_cast<std::size_t>(size));
        if (printed_.size() > kMostPrinted) printed_.erase(0, printed_.size() - kMostPrinted);
    }
    return true;
}

std::string HostProcess::last_words() const {
    std::string_view text = printed_;
    while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
    if (text.empty()) return {};
    text = text.substr(text.size() - std::min(text.size(), kMostLastWords));
    std::string line(text);
    std::replace(line.begin(), line.end(), '\n', ' ');
    return "; it printed: " + base::printable(line);
}

// It closed its socket: it has ended, or is about to.
Status HostProcess::ended() {
    int status = -1;
    const std::int64_t until = base::monotonic_nanos() + nanoseconds(kPatienceWithDying).count();
    while (pid_ >= 0 && base::monotonic_nanos() < until) {
        drain();
        const pid_t waited = ::waitpid(pid_, &status, WNOHANG);
        if (waited == pid_) {
            ::kill(-pid_, SIGKILL);  // its children
            pid_ = -1;
            break;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (pid_ >= 0) {
        end();
        return {Code::kUnavailable, "its process closed the connection" + last_words()};
    }
    drain();
    if (WIFSIGNALED(status)) {
        const char* name = ::sigabbrev_np(WTERMSIG(status));
        return {Code::kUnavailable, base::format("its process was ended by signal {} (SIG{}){}{}",
                                                 WTERMSIG(status), name == nullptr ? "?" : name,
                                                 memory_ == 0 ? ""
                                                              : base::format(" (it may have {} of memory)",
                                                                             base::human_bytes(memory_)),
                                                 last_words())};
    }
    return {Code::kUnavailable,
            base::format("its process ended with code {}{}", WEXITSTATUS(status), last_words())};
}

Result<std::string> HostProcess::ask(std::string_view request, nanoseconds limit) {
    if (pid_ < 0) return Status(Code::kUnavailable, "its process has ended");
    const std::int64_t deadline = base::monotonic_nanos() + limit.count();
    std::string answer;
    bool prints = true;
    while (true) {
        std::array<pollfd, 2> waiting{
            {{socket_.get(), static_cast<short>(request.empty() ? POLLIN : POLLIN | POLLOUT), 0},
             {prints ? output_.get() : -1, POLLIN, 0}}};
        const std::int64_t left = deadline - base::monotonic_nanos();
        if (left <= 0) {
            drain();
            end();
            return Status(Code::kUnavailable, base::format("took longer than {} and was ended{}",
                                                           in_seconds(limit), last_words()));
        }
        if (::poll(waiting.data(), waiting.size(), static_cast<int>(left / 1'000'000 + 1)) < 0) continue;
        if (waiting[1].revents != 0) prints = drain();
        if ((waiting[0].revents & POLLOUT) != 0) {
            const ssize_t sent = ::send(socket_.get(), request.data(), request.size(), MSG_NOSIGNAL);
            if (sent > 0) request.remove_prefix(static_cast<std::size_t>(sent));
            else if (errno != EAGAIN && errno != EINTR) return ended();
        }
        if ((waiting[0].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
        std::array<char, 65536> buffer;
        const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
        if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (size <= 0) return ended();
        answer.append(buffer.data(), static_cast<std::size_t>(size));
        const auto json = answer_in(answer);
        if (!json.is_ok() || (json->has_value() && !request.empty())) {
            drain();
            end();
            return Status(Code::kDataLoss, (json.is_ok() ? "its process answered before it was asked"
                                                         : json.status().message()) +
                                               last_words());
        }
        if (json->has_value()) {
            if (prints) drain();
            return std::string(**json);
        }
    }
}

}  // namespace traindbg::extend
