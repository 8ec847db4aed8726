#include "traindbg/storage/control_block.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "traindbg/base/clock.h"
#include "traindbg/base/file_descriptor.h"

namespace traindbg::storage {
namespace {

using base::Code;
using base::FileDescriptor;
using base::Result;
using base::Status;

constexpr std::uint64_t kControlMagic = 0x314C544347424454;  // the bytes "TDBGCTL1"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kPageBytes = 4096;
// A pwrite takes as long as all else that ends a step, and nobody needs the number more often.
constexpr std::int64_t kLeastNanosBetweenWrites = 100'000'000;

}  // namespace

// The layout of docs/format/control.md. Both sides of the conversation have a cache line of their own.
struct ControlBlock::Page {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t reserved;
    std::array<std::byte, 48> pad_0;
    // Written by the supervisor.
    std::uint32_t stop;
    std::uint32_t flight_copies;
    std::uint32_t plans;
    std::uint32_t lower_lr;
    std::uint32_t roll_back;
    std::uint32_t checkpoint;
    std::uint64_t bad_since;
    std::array<std::byte, 32> pad_1;
    // Written by the training.
    std::uint64_t step;
    std::int64_t last_step_nanos;
    std::int64_t pid;
    std::uint32_t state;
    std::uint32_t pad_2;
    std::uint64_t stop_step;
    std::array<std::byte, 24> pad_3;
    std::array<std::byte, kPageBytes - 192> rest;
};

namespace {

template <typename T>
T load(T& word, std::memory_order order = std::memory_order_relaxed) noexcept {
    static_assert(std::atomic_ref<T>::is_always_lock_free, "a lock would lie in one process only");
    return std::atomic_ref<T>(word).load(order);
}

Status control_error(const std::string& path, const char* what, int error) {
    return Status::from_errno(path + ": " + what, error);
}

// A complete new page under a name of its own, then linked to `path`: whoever opens `path` sees a
// whole page or none. kAlreadyExists when somebody else was first.
Status create_page(const std::string& path) {
    // The bytes are written, not only reserved: a page without a block behind it could not be written
    // to on a full disk.
    std::array<std::byte, kPageBytes> page{};
    std::memcpy(page.data(), &kControlMagic, sizeof(kControlMagic));
    std::memcpy(page.data() + 8, &kVersion, sizeof(kVersion));

    static std::atomic<std::uint64_t> counter{0};
    const std::string temporary =
        path + "." + std::to_string(::getpid()) + "." + std::to_string(counter.fetch_add(1)) + ".tmp";
    FileDescriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file.is_open()) return control_error(path, "create", errno);
    Status status;
    std::size_t done = 0;
    while (status.is_ok() && done < page.size()) {
        const ssize_t count = ::write(file.get(), page.data() + done, page.size() - done);
        if (count > 0) done += static_cast<std::size_t>(count);
        else if (count == 0 || errno != EINTR)
            status = control_error(path, "write", count == 0 ? ENOSPC : errno);
    }
    if (status.is_ok() && ::link(temporary.c_str(), path.c_str()) != 0) {
        if (errno == EEXIST) {
            status = control_error(path, "create", EEXIST);
        } else if (::rename(temporary.c_str(), path.c_str()) == 0) {  // no hard links here
            return Status::ok();
        } else {
            status = control_error(path, "create", errno);
        }
    }
    ::unlink(temporary.c_str());
    return status;
}

}  // namespace

Result<std::unique_ptr<ControlBlock>> ControlBlock::open(const std::string& path) {
    static_assert(sizeof(Page) == kPageBytes);
    static_assert(offsetof(Page, stop) == 64 && offsetof(Page, flight_copies) == 68 &&
                  offsetof(Page, plans) == 72 && offsetof(Page, lower_lr) == 76 &&
                  offsetof(Page, roll_back) == 80 && offsetof(Page, checkpoint) == 84 &&
                  offsetof(Page, bad_since) == 88 && offsetof(Page, step) == 128 &&
                  offsetof(Page, state) == 152 && offsetof(Page, stop_step) == 160);

    const auto open_existing = [&path] {
        return FileDescriptor(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    };
    FileDescriptor file = open_existing();
    if (!file.is_open() && errno == ENOENT) {
        const Status created = create_page(path);
        if (!created.is_ok() && created.code() != Code::kAlreadyExists) return created;
        file = open_existing();
    }
    if (!file.is_open()) {
        if (errno == ELOOP) return Status(Code::kInvalidArgument, path + ": is a symbolic link");
        return control_error(path, "open", errno);
    }
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return control_error(path, "stat", errno);
    if (!S_ISREG(info.st_mode)) return Status(Code::kInvalidArgument, path + ": is not a regular file");
    // A mapping beyond the end of the file would be a SIGBUS later.
    if (info.st_size < static_cast<off_t>(kPageBytes))
        return Status(Code::kDataLoss, path + ": is too short to be a control block");

    void* memory = ::mmap(nullptr, kPageBytes, PROT_READ, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return control_error(path, "map", errno);
    std::unique_ptr<ControlBlock> block(new ControlBlock(static_cast<Page*>(memory), file.release()));
    if (block->page_->magic != kControlMagic)
        return Status(Code::kDataLoss, path + ": is not a control block of traindbg");
    if (block->page_->version != kVersion)
        return Status(Code::kUnsupported, path + ": has version " + std::to_string(block->page_->version) +
                                              "; this traindbg understands version 1");
    return block;
}

ControlBlock::~ControlBlock() {
    ::munmap(page_, kPageBytes);
    ::close(descriptor_);
}

// What cannot be written is not known to the other side; nothing else depends on it.
void ControlBlock::put(std::size_t offset, const void* word, std::size_t bytes) const noexcept {
    while (::pwrite(descriptor_, word, bytes, static_cast<off_t>(offset)) < 0 && errno == EINTR) continue;
}

void ControlBlock::request_stop() noexcept {
    constexpr std::uint32_t kStop = 1;
    put(offsetof(Page, stop), &kStop, sizeof(kStop));
}
[[gnu::hot]] bool ControlBlock::stop_requested() const noexcept { return load(page_->stop) != 0; }

void ControlBlock::announce_stop_step(std::uint64_t step) noexcept {
    put(offsetof(Page, stop_step), &step, sizeof(step));
}
std::uint64_t ControlBlock::stop_step() const noexcept {
    return load(page_->stop_step, std::memory_order_acquire);
}

void ControlBlock::request_flight_copy() noexcept {
    const std::uint32_t next = flight_copies_requested() + 1;
    put(offsetof(Page, flight_copies), &next, sizeof(next));
}
std::uint32_t ControlBlock::flight_copies_requested() const noexcept { return load(page_->flight_copies); }

void ControlBlock::announce_plan() noexcept {
    const std::uint32_t next = plans_announced() + 1;
    put(offsetof(Page, plans), &next, sizeof(next));
}
[[gnu::hot]] std::uint32_t ControlBlock::plans_announced() const noexcept {
    return load(page_->plans, std::memory_order_acquire);
}

void ControlBlock::request_lower_lr() noexcept {
    const std::uint32_t next = load(page_->lower_lr) + 1;
    put(offsetof(Page, lower_lr), &next, sizeof(next));
}
// The step first: who sees the new count sees it, too.
void ControlBlock::request_roll_back(std::uint64_t bad_since) noexcept {
    put(offsetof(Page, bad_since), &bad_since, sizeof(bad_since));
    const std::uint32_t next = load(page_->roll_back) + 1;
    put(offsetof(Page, roll_back), &next, sizeof(next));
}
void ControlBlock::request_checkpoint(std::uint64_t bad_since) noexcept {
    put(offsetof(Page, bad_since), &bad_since, sizeof(bad_since));
    constexpr std::uint32_t kCheckpoint = 1;
    put(offsetof(Page, checkpoint), &kCheckpoint, sizeof(kCheckpoint));
}
[[gnu::hot]] CorrectionsAsked ControlBlock::corrections_asked() const noexcept {
    CorrectionsAsked out;
    out.lower_lr = load(page_->lower_lr);
    // The step last: it is that of each asking seen.
    out.checkpoint = load(page_->checkpoint, std::memory_order_acquire);
    out.roll_back = load(page_->roll_back, std::memory_order_acquire);
    out.bad_since = load(page_->bad_since);
    return out;
}

void ControlBlock::put_step(std::uint64_t step, std::int64_t nanos) noexcept {
    static_assert(offsetof(Page, last_step_nanos) == offsetof(Page, step) + sizeof(step));
    const std::array<std::uint64_t, 2> words = {step, static_cast<std::uint64_t>(nanos)};
    put(offsetof(Page, step), words.data(), sizeof(words));
    written_nanos_.store(nanos, std::memory_order_relaxed);
}
[[gnu::hot]] void ControlBlock::publish_step(std::uint64_t step) noexcept {
    const std::int64_t now = base::monotonic_nanos();
    step_.store(step, std::memory_order_relaxed);
    step_nanos_.store(now, std::memory_order_relaxed);
    const std::int64_t written = written_nanos_.load(std::memory_order_relaxed);
    if (written == 0 || now - written >= kLeastNanosBetweenWrites) put_step(step, now);
}
void ControlBlock::publish_state(TrainingState state) noexcept {
    const std::int64_t nanos = step_nanos_.load(std::memory_order_relaxed);
    if (nanos != written_nanos_.load(std::memory_order_relaxed))
        put_step(step_.load(std::memory_order_relaxed), nanos);
    const auto word = static_cast<std::uint32_t>(state);
    put(offsetof(Page, state), &word, sizeof(word));
}
void ControlBlock::publish_pid(std::int64_t pid) noexcept { put(offsetof(Page, pid), &pid, sizeof(pid)); }

std::uint64_t ControlBlock::step() const noexcept { return load(page_->step, std::memory_order_acquire); }
TrainingState ControlBlock::state() const noexcept {
    const std::uint32_t state = load(page_->state, std::memory_order_acquire);
    // A newer training may know more states; for us it is attached.
    return state <= static_cast<std::uint32_t>(TrainingState::kEnded) ? static_cast<TrainingState>(state)
                                                                      : TrainingState::kAttached;
}
std::int64_t ControlBlock::pid() const noexcept { return load(page_->pid); }
bool ControlBlock::is_supervised() const noexcept {
    if (::flock(descriptor_, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
    ::flock(descriptor_, LOCK_UN);
    return false;
}

std::int64_t ControlBlock::last_step_nanos() const noexcept { return load(page_->last_step_nanos); }

}  // namespace traindbg::storage
