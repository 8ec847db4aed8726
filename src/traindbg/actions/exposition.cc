#include "traindbg/actions/exposition.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::actions {
namespace {

using base::Code;
using base::FileDescriptor;
using base::Result;
using base::Status;

constexpr std::string_view kPort = "prometheus:";
constexpr std::string_view kFile = "prometheus-file:";

class MetricsFile final : public Exposition {
  public:
    explicit MetricsFile(std::string path) : path_(std::move(path)) {}
    [[nodiscard]] Status open() override { return Status::ok(); }
    [[nodiscard]] std::string place() const override { return path_; }

    // A reader sees the file of before or this one, whole. What is lost with the machine's power is written
    // again soon, hence no sync.
    [[nodiscard]] Status publish(const Metrics& metrics) override {
        const std::string text = metrics_text(metrics, MetricsForm::kPrometheus);
        const std::string temporary = base::format("{}.{}.tmp", path_, ::getpid());
        // Readable for others, as far as the user's mask allows: the collector runs as somebody else.
        FileDescriptor file(
            ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644));
        if (file.get() < 0) return Status::from_errno(path_, errno);
        const ssize_t written = ::write(file.get(), text.data(), text.size());
        const int error = written < 0 ? errno : ENOSPC;
        const bool is_whole = written == static_cast<ssize_t>(text.size());
        if (is_whole && ::rename(temporary.c_str(), path_.c_str()) == 0) return Status::ok();
        const Status failed = Status::from_errno(path_, is_whole ? errno : error);
        ::unlink(temporary.c_str());
        return failed;
    }

  private:
    const std::string path_;
};

// A server for one page. One connection at a time and a short time for each: its clients are a scraper and a
// curious person.
class MetricsServer final : public Exposition {
  public:
    explicit MetricsServer(std::uint16_t port) : port_(port) {}
    ~MetricsServer() override {
        if (!thread_.joinable()) return;
        const std::uint64_t one = 1;
        static_cast<void>(!::write(leave_.get(), &one, sizeof(one)));
        thread_.join();
    }

    [[nodiscard]] Status open() override {
        FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        leave_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
        if (listener.get() < 0 || leave_.get() < 0) return Status::from_errno(name(), errno);
        const int yes = 1;
        ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        address.sin_port = htons(port_);
        socklen_t size = sizeof(address);
        auto* const generic = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 16) != 0 ||
            ::getsockname(listener.get(), generic, &size) != 0)
            return Status::from_errno(name(), errno);
        port_ = ntohs(address.sin_port);
        listener_ = std::move(listener);
        // A signal for the program is not this thread's.
        sigset_t all;
        sigset_t before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        thread_ = std::thread([this] { serve(); });
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        return Status::ok();
    }

    [[nodiscard]] Status publish(const Metrics& metrics) override {
        const std::lock_guard lock(mutex_);
        metrics_ = metrics;
        return Status::ok();
    }
    [[nodiscard]] std::string place() const override {
        return base::format("http://127.0.0.1:{}/metrics", port_);
    }

  private:
    static constexpr std::size_t kMostRequestBytes = 8192;
    static constexpr std::int64_t kNanosForOne = 2'000'000'000;

    [[nodiscard]] std::string name() const { return base::format("prometheus:{}", port_); }

    void serve() {
        while (true) {
            std::array<pollfd, 2> waiting{{{listener_.get(), POLLIN, 0}, {leave_.get(), POLLIN, 0}}};
            if (::poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR) return;
            if (waiting[1].revents != 0) return;
            if (waiting[0].revents == 0) continue;
            const FileDescriptor client(
                ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
            if (client.get() < 0) {
                // No descriptors left, most likely: not asked again at once.
                if (errno == EMFILE || errno == ENFILE) static_cast<void>(::poll(&waiting[1], 1, 100));
                continue;
            }
            deadline_ = base::monotonic_nanos() + kNanosForOne;
            const std::string request = read_request(client.get());
            if (request.empty()) continue;
            write_all(client.get(), answer_to(request));
            ::shutdown(client.get(), SHUT_WR);
        }
    }

    // False: the time is over, or we are to leave.
    [[nodiscard]] bool wait_for(int client, short what) {
        const std::int64_t left = deadline_ - base::monotonic_nanos();
        if (left <= 0) return false;
        std::array<pollfd, 2> waiting{{{client, what, 0}, {leave_.get(), POLLIN, 0}}};
        return ::poll(waiting.data(), waiting.size(), static_cast<int>(left / 1'000'000) + 1) > 0 &&
               waiting[1].revents == 0;
    }

    // Its head. Empty: there came none.
    [[nodiscard]] std::string read_request(int client) {
        std::string text;
        std::array<char, 1024> piece{};
        while (text.find("\r\n\r\n") == std::string::npos) {
            if (text.size() > kMostRequestBytes || !wait_for(client, POLLIN)) return {};
            const ssize_t got = ::recv(client, piece.data(), piece.size(), 0);
            if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
            if (got <= 0) return {};
            text.append(piece.data(), static_cast<std::size_t>(got));
        }
        return text;
    }

    void write_all(int client, std::string_view text) {
        while (!text.empty()) {
            const ssize_t sent = ::send(client, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN && errno != EINTR) return;
            if (sent > 0) text.remove_prefix(static_cast<std::size_t>(sent));
            else if (!wait_for(client, POLLOUT)) return;
        }
    }

    // The value of a header in any case of its name.
    [[nodiscard]] static std::string_view header(std::string_view request, std::string_view name) {
        for (std::size_t at = request.find("\r\n"); at != std::string_view::npos;
             at = request.find("\r\n", at + 2)) {
            std::string_view line = request.substr(at + 2);
            line = line.substr(0, line.find("\r\n"));
            if (line.size() <= name.size() || line[name.size()] != ':') continue;
            const bool is_it = std::equal(name.begin(), name.end(), line.begin(), [](char a, char b) {
                return a == (b >= 'A' && b <= 'Z' ? static_cast<char>(b - 'A' + 'a') : b);
            });
            if (!is_it) continue;
            line.remove_prefix(name.size() + 1);
            while (line.starts_with(' ')) line.remove_prefix(1);
            return line;
        }
        return {};
    }

    // A page of the web may make a browser ask here under a name of its own; it gets nothing.
    [[nodiscard]] static bool is_local_name(std::string_view host) {
        if (host.starts_with("[::1]")) return true;
        host = host.substr(0, host.find(':'));
        return host.empty() || host == "localhost" ||
               host.find_first_not_of("0123456789.") == std::string_view::npos;
    }

    [[nodiscard]] std::string answer_to(std::string_view request) {
        const std::string_view line = request.substr(0, request.find("\r\n"));
        const std::string_view method = line.substr(0, line.find(' '));
        std::string_view path = line.substr(std::min(line.size(), method.size() + 1));
        path = path.substr(0, path.find_first_of(" ?"));
        std::string_view status = "200 OK";
        MetricsForm form = MetricsForm::kPrometheus;
        std::string body;
        if (!is_local_name(header(request, "host"))) {
            status = "403 Forbidden";
            body = "ask for 127.0.0.1 or localhost\n";
        } else if (method != "GET" && method != "HEAD") {
            status = "405 Method Not Allowed";
            body = "GET only\n";
        } else if (path != "/metrics") {
            status = "404 Not Found";
            body = "there is /metrics\n";
        } else {
            form = preferred_form(header(request, "accept"));
            Metrics now;
            {
                const std::lock_guard lock(mutex_);
                now = metrics_;
            }
            body = metrics_text(now, form);
        }
        const bool is_page = status.starts_with("200");
        std::string answer = base::format(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n", status,
            is_page ? content_type(form) : "text/plain; charset=utf-8", body.size(),
            status.starts_with("405") ? "Allow: GET, HEAD\r\n" : "");
        if (method != "HEAD") answer += body;
        return answer;
    }

    std::uint16_t port_;
    FileDescriptor listener_;
    FileDescriptor leave_;
    std::int64_t deadline_ = 0;
    std::mutex mutex_;
    Metrics metrics_;
    std::thread thread_;
};

}  // namespace

bool is_exposition(std::string_view target) noexcept {
    return target.starts_with(kPort) || target.starts_with(kFile) || target == "prometheus";
}

Result<std::unique_ptr<Exposition>> make_exposition(std::string_view target) {
    if (target.starts_with(kFile)) {
        const std::string path(target.substr(kFile.size()));
        if (path.empty() || path.ends_with('/'))
            return Status(Code::kInvalidArgument,
                          "'prometheus-file:' names no file, as in "
                          "prometheus-file:/var/lib/node_exporter/traindbg.prom");
        return std::unique_ptr<Exposition>(std::make_unique<MetricsFile>(path));
    }
    const std::string_view digits = target.substr(std::min(target.size(), kPort.size()));
    std::uint16_t port = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size())
        return Status(
            Code::kInvalidArgument,
            base::format("'{}': is no port; give prometheus:9464, or prometheus:0 for any that is free",
                         base::printable(target.substr(0, 40))));
    return std::unique_ptr<Exposition>(std::make_unique<MetricsServer>(port));
}

}  // namespace traindbg::actions
