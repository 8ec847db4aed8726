#include "traindbg/storage/pipe_file_system.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "traindbg/base/clock.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every libc declares it

namespace traindbg::storage {
namespace {

using base::ByteBuffer;
using base::ByteReader;
using base::ByteSpan;
using base::ByteWriter;
using base::Code;
using base::FileDescriptor;
using base::Result;
using base::Status;

enum class Request : std::uint8_t { kList = 1, kOpen = 2, kRead = 3, kSize = 4, kExists = 5, kClose = 6 };

constexpr std::size_t kMostRequestBytes = 64 << 10;
constexpr std::size_t kMostReadBytes = 8 << 20;     // of one request; a larger read is several
constexpr std::size_t kMostAnswerBytes = 64 << 20;  // a list of very many files
constexpr std::size_t kMostOpenFiles = 100'000;
constexpr std::int64_t kPatienceNanos = 120'000'000'000;

Status lost(const char* what) { return {Code::kUnavailable, std::string("traindbg --serve-files: ") + what}; }

// Sends all of it, on a socket, without SIGPIPE.
bool send_all(int descriptor, ByteSpan bytes) {
    while (!bytes.empty()) {
        const ssize_t count = ::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
}

using Interrupt = std::function<bool()>;

// False: the time is up, or (first asked after a while) `is_interrupted` says so.
bool wait_for_bytes(int descriptor, std::int64_t deadline, const Interrupt& is_interrupted) {
    constexpr std::int64_t kSliceNanos = 100'000'000;
    while (true) {
        std::int64_t left = INT64_MAX;
        if (deadline != INT64_MAX) left = deadline - base::monotonic_nanos();
        if (left <= 0) return false;
        if (is_interrupted) left = std::min(left, kSliceNanos);
        pollfd waiting{descriptor, POLLIN, 0};
        const int millis = left == INT64_MAX ? -1 : static_cast<int>(left / 1'000'000 + 1);
        const int ready = ::poll(&waiting, 1, millis);
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
        if (is_interrupted && is_interrupted()) return false;
    }
}

// Exactly `size` bytes; fewer: the other side ended, or took too long.
ByteBuffer receive(int descriptor, std::size_t size, std::int64_t deadline) {
    ByteBuffer bytes;
    constexpr std::size_t kStep = 1 << 20;  // memory grows with what really comes
    std::size_t done = 0;
    while (done < size) {
        bytes.resize(std::min(size, std::max(done + kStep, done)));
        if (!wait_for_bytes(descriptor, deadline, {})) break;
        const ssize_t count = ::read(descriptor, bytes.data() + done, bytes.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) break;
        done += static_cast<std::size_t>(count);
    }
    bytes.resize(done);
    return bytes;
}

void put_length(ByteBuffer& message) {
    const auto size = static_cast<std::uint32_t>(message.size() - sizeof(std::uint32_t));
    std::memcpy(message.data(), &size, sizeof(size));
}

ByteWriter begin_message() {
    ByteWriter out;
    out.fixed<std::uint32_t>(0);
    return out;
}

}  // namespace

// The process, and the one conversation with it.
class PipeFileSystem::Connection {
  public:
    Connection(FileDescriptor socket, pid_t pid)
        : socket_(std::move(socket)), pid_(pid), generation_(base::fork_generation()) {}
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    ~Connection() {
        socket_.reset();  // it reads the end and goes
        if (base::fork_generation() != generation_) return;
        const std::int64_t deadline = base::monotonic_nanos() + 200'000'000;
        while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
            if (base::monotonic_nanos() > deadline) {
                ::kill(pid_, SIGKILL);  // it waits for its network
                static_cast<void>(::waitpid(pid_, nullptr, 0));
                return;
            }
            const timespec little{0, 2'000'000};
            ::nanosleep(&little, nullptr);
        }
    }

    // The content of the answer.
    Result<ByteBuffer> ask(ByteWriter&& request) {
        if (!is_ours()) return lost("belongs to the process that opened the run; open it again after a fork");
        ByteBuffer message = request.take();
        if (message.size() > kMostRequestBytes) return Status(Code::kInvalidArgument, "a path is too long");
        put_length(message);
        const std::lock_guard lock(mutex_);
        if (is_lost_) return lost("has ended");
        const std::int64_t deadline = base::monotonic_nanos() + kPatienceNanos;
        TRAINDBG_RETURN_IF_ERROR(catch_up(deadline));
        TRAINDBG_ASSIGN_OR_RETURN(ByteBuffer answer, exchange(message, deadline));
        const auto code = std::to_integer<std::uint8_t>(answer.front());
        answer.erase(answer.begin());
        if (code > static_cast<std::uint8_t>(Code::kInternal)) {
            is_lost_ = true;
            return lost("gave an answer that is none");
        }
        if (code == 0) return answer;
        const std::string_view message_text(reinterpret_cast<const char*>(answer.data()), answer.size());
        return Status(static_cast<Code>(code), base::printable(message_text.substr(0, 4096)));
    }

    // Not those of the process that we were forked from.
    [[nodiscard]] bool is_ours() const noexcept { return base::fork_generation() == generation_; }
    // Told with the next request: to close a file waits for nothing.
    void close_file(std::uint64_t handle) {
        const std::lock_guard lock(mutex_);
        if (!is_lost_) to_close_.push_back(handle);
    }

    void set_interrupt(Interrupt is_interrupted) {
        const std::lock_guard lock(mutex_);
        is_interrupted_ = std::move(is_interrupted);
    }

  private:
    // What an interrupted caller left, and the files that were closed since.
    Status catch_up(std::int64_t deadline) {
        if (has_unwanted_answer_) TRAINDBG_RETURN_IF_ERROR(take_answer(deadline).status());
        has_unwanted_answer_ = false;
        while (!to_close_.empty()) {
            ByteWriter request = begin_message();
            request.fixed(Request::kClose);
            request.varint(to_close_.back());
            to_close_.pop_back();
            ByteBuffer message = request.take();
            put_length(message);
            TRAINDBG_RETURN_IF_ERROR(exchange(message, deadline).status());
        }
        return Status::ok();
    }

    Result<ByteBuffer> exchange(ByteSpan message, std::int64_t deadline) {
        if (!send_all(socket_.get(), message)) {
            is_lost_ = true;
            return lost("has ended");
        }
        has_unwanted_answer_ = true;  // unless we wait for it
        TRAINDBG_ASSIGN_OR_RETURN(ByteBuffer answer, take_answer(deadline));
        has_unwanted_answer_ = false;
        return answer;
    }

    // One answer. After any error but an interruption there is no conversation any more.
    Result<ByteBuffer> take_answer(std::int64_t deadline) {
        bool was_interrupted = false;
        const Interrupt ask_once = [&] { return was_interrupted = is_interrupted_(); };
        if (!wait_for_bytes(socket_.get(), deadline, is_interrupted_ ? ask_once : Interrupt()) &&
            was_interrupted)
            return Status(Code::kUnavailable, "interrupted");
        is_lost_ = true;  // until the whole answer is there
        std::uint32_t size = 0;
        const ByteBuffer head = receive(socket_.get(), sizeof(size), deadline);
        if (head.size() != sizeof(size)) return lost("gave no answer");
        std::memcpy(&size, head.data(), sizeof(size));
        if (size == 0 || size > kMostAnswerBytes) return lost("gave an answer that is none");
        ByteBuffer answer = receive(socket_.get(), size, deadline);
        if (answer.size() != size) return lost("gave half an answer");
        is_lost_ = false;
        return answer;
    }

    FileDescriptor socket_;
    const pid_t pid_;
    const std::uint32_t generation_;
    std::mutex mutex_;
    Interrupt is_interrupted_;
    bool has_unwanted_answer_ = false;  // of a request whose caller was interrupted
    std::vector<std::uint64_t> to_close_;
    bool is_lost_ = false;
};

namespace {

class PipeReadFile final : public ReadFile {
  public:
    PipeReadFile(std::shared_ptr<PipeFileSystem::Connection> connection, std::uint64_t handle)
        : connection_(std::move(connection)), handle_(handle) {}
    ~PipeReadFile() override {
        if (connection_->is_ours()) connection_->close_file(handle_);
    }

    Result<ByteBuffer> read_at(std::uint64_t offset, std::size_t size) override {
        ByteBuffer all;
        while (size > 0) {
            const std::size_t wanted = std::min(size, kMostReadBytes);
            ByteWriter request = begin_message();
            request.fixed(Request::kRead);
            request.varint(handle_);
            request.varint(offset);
            request.varint(wanted);
            TRAINDBG_ASSIGN_OR_RETURN(ByteBuffer bytes, connection_->ask(std::move(request)));
            if (bytes.size() > wanted) return lost("gave more than was asked for");
            const std::size_t got = bytes.size();
            if (all.empty()) all = std::move(bytes);
            else all.insert(all.end(), bytes.begin(), bytes.end());
            if (got < wanted) break;
            offset += got;
            size -= got;
        }
        return all;
    }
    Result<std::uint64_t> size() override {
        ByteWriter request = begin_message();
        request.fixed(Request::kSize);
        request.varint(handle_);
        TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer answer, connection_->ask(std::move(request)));
        ByteReader reader(answer);
        const std::uint64_t size = reader.varint();
        if (!reader.ok()) return lost("gave an answer that is none");
        return size;
    }

  private:
    const std::shared_ptr<PipeFileSystem::Connection> connection_;
    const std::uint64_t handle_;
};

Status pipe_is_read_only(const std::string& path) {
    return {Code::kUnsupported, base::printable(path) + ": is only read from here"};
}

ByteWriter path_request(Request what, const std::string& path) {
    ByteWriter request = begin_message();
    request.fixed(what);
    request.text(path);
    return request;
}

// One request's answer, without the length.
void answer_request(FileSystem& files, std::map<std::uint64_t, std::unique_ptr<ReadFile>>& open,
                    std::uint64_t& next_handle, ByteReader& request, ByteWriter& out) {
    const auto fail = [&out](const Status& status) {
        out.fixed(static_cast<std::uint8_t>(status.code()));
        out.append(base::as_bytes(status.message()));
    };
    const auto good = [&out] { out.fixed(static_cast<std::uint8_t>(Code::kOk)); };
    const auto bad = [&] { fail({Code::kInvalidArgument, "that is no request"}); };
    const auto what = request.fixed<Request>();
    if (what == Request::kList || what == Request::kOpen || what == Request::kExists) {
        const std::string path(request.text());
        if (!request.ok()) return bad();
        if (what == Request::kExists) {
            const bool exists = files.exists(path);
            good();
            out.fixed(static_cast<std::uint8_t>(exists ? 1 : 0));
        } else if (what == Request::kList) {
            const auto entries = files.list(path);
            if (!entries.is_ok()) return fail(entries.status());
            good();
            out.varint(entries->size());
            for (const DirectoryEntry& entry : *entries) {
                out.text(entry.name);
                out.fixed(
                    static_cast<std::uint8_t>((entry.is_directory ? 1 : 0) | (entry.is_regular ? 2 : 0)));
            }
        } else {
            if (open.size() >= kMostOpenFiles)
                return fail({Code::kResourceExhausted, path + ": too many open files"});
            auto file = files.open(path);
            if (!file.is_ok()) return fail(file.status());
            open[next_handle] = std::move(file).value();
            good();
            out.varint(next_handle++);
        }
        return;
    }
    const std::uint64_t handle = request.varint();
    const auto it = open.find(handle);
    if (!request.ok() || it == open.end()) return bad();
    if (what == Request::kRead) {
        const std::uint64_t offset = request.varint();
        const std::uint64_t size = request.varint();
        if (!request.ok() || size > kMostReadBytes) return bad();
        const auto bytes = it->second->read_at(offset, static_cast<std::size_t>(size));
        if (!bytes.is_ok()) return fail(bytes.status());
        good();
        out.append(*bytes);
    } else if (what == Request::kSize) {
        const auto size = it->second->size();
        if (!size.is_ok()) return fail(size.status());
        good();
        out.varint(*size);
    } else if (what == Request::kClose) {
        open.erase(it);
        good();
    } else {
        bad();
    }
}

}  // namespace

PipeFileSystem::PipeFileSystem(std::shared_ptr<Connection> connection) noexcept
    : connection_(std::move(connection)) {}
PipeFileSystem::~PipeFileSystem() = default;

void PipeFileSystem::set_interrupt(std::function<bool()> is_interrupted) {
    connection_->set_interrupt(std::move(is_interrupted));
}

Result<std::unique_ptr<PipeFileSystem>> PipeFileSystem::start(const std::vector<std::string>& command) {
    if (command.empty()) return Status(Code::kInvalidArgument, "no program to start");
    std::array<int, 2> pair{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
        return Status::from_errno(command.front() + ": socketpair", errno);
    FileDescriptor ours(pair[0]);
    FileDescriptor theirs(pair[1]);
    std::vector<char*> arguments;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, theirs.get(), STDOUT_FILENO);
    // Nothing of what this process does with signals is for that one.
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    pid_t pid = -1;
    const int error =
        ::posix_spawn(&pid, command.front().c_str(), &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) return Status::from_errno(command.front() + ": start", error);
    return std::unique_ptr<PipeFileSystem>(
        new PipeFileSystem(std::make_shared<Connection>(std::move(ours), pid)));
}

Result<std::unique_ptr<ReadFile>> PipeFileSystem::open(const std::string& path) {
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer answer, connection_->ask(path_request(Request::kOpen, path)));
    ByteReader reader(answer);
    const std::uint64_t handle = reader.varint();
    if (!reader.ok()) return lost("gave an answer that is none");
    return std::unique_ptr<ReadFile>(std::make_unique<PipeReadFile>(connection_, handle));
}

Result<std::vector<DirectoryEntry>> PipeFileSystem::list(const std::string& path) {
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer answer, connection_->ask(path_request(Request::kList, path)));
    ByteReader reader(answer);
    std::vector<DirectoryEntry> entries;
    const std::size_t count = reader.count(2);
    entries.reserve(count);
    for (std::size_t i = 0; i < count && reader.ok(); ++i) {
        DirectoryEntry entry;
        entry.name = reader.text();
        const auto kind = reader.fixed<std::uint8_t>();
        entry.is_directory = (kind & 1U) != 0;
        entry.is_regular = (kind & 2U) != 0;
        entries.push_back(std::move(entry));
    }
    if (!reader.ok()) return lost("gave an answer that is none");
    return entries;
}

bool PipeFileSystem::exists(const std::string& path) {
    const auto answer = connection_->ask(path_request(Request::kExists, path));
    return answer.is_ok() && answer->size() == 1 && answer->front() == std::byte{1};
}

Result<std::unique_ptr<AppendFile>> PipeFileSystem::create(const std::string& path) {
    return pipe_is_read_only(path);
}
Status PipeFileSystem::put_atomic(const std::string& path, ByteSpan) { return pipe_is_read_only(path); }
Status PipeFileSystem::create_directories(const std::string& path) { return pipe_is_read_only(path); }
Status PipeFileSystem::create_directory(const std::string& path) { return pipe_is_read_only(path); }
Status PipeFileSystem::remove(const std::string& path) { return pipe_is_read_only(path); }

Status serve_files(FileSystem& files, int input, int output) {
    std::map<std::uint64_t, std::unique_ptr<ReadFile>> open;
    std::uint64_t next_handle = 1;
    while (true) {
        std::uint32_t size = 0;
        const ByteBuffer head = receive(input, sizeof(size), INT64_MAX);
        if (head.empty()) return Status::ok();
        if (head.size() == sizeof(size)) std::memcpy(&size, head.data(), sizeof(size));
        if (size == 0 || size > kMostRequestBytes) return {Code::kDataLoss, "what came is no request"};
        const ByteBuffer body = receive(input, size, INT64_MAX);
        if (body.size() != size) return {Code::kDataLoss, "what came is half a request"};
        ByteReader request(body);
        ByteWriter out = begin_message();
        answer_request(files, open, next_handle, request, out);
        ByteBuffer answer = out.take();
        if (answer.size() > kMostAnswerBytes) return {Code::kResourceExhausted, "an answer is too long"};
        put_length(answer);
        ByteSpan rest(answer);
        while (!rest.empty()) {
            const ssize_t count = ::write(output, rest.data(), rest.size());
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return Status::ok();  // nobody listens any more
            rest = rest.subspan(static_cast<std::size_t>(count));
        }
    }
}

}  // namespace traindbg::storage
