#include "traindbg/write/arena.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "traindbg/base/fork_generation.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::write {
namespace {

constexpr std::size_t kUnit = std::size_t{1} << 20;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) noexcept {
    return (value + unit - 1) / unit * unit;
}

// The number that a file of the kernel's holds; nothing when there is none.
std::optional<std::uint64_t> read_number(const char* path) noexcept {
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): closed below, with nothing that throws between
    std::FILE* const file = std::fopen(path, "re");
    if (file == nullptr) return std::nullopt;
    unsigned long long number = 0;
    const bool found = std::fscanf(file, "%llu", &number) == 1;
    std::fclose(file);  // NOLINT(cppcoreguidelines-owning-memory)
    return found ? std::optional<std::uint64_t>(number) : std::nullopt;
}

// Every page gets its memory now; what is in it stays, for another thread may be writing there already. A
// system that cannot do so gives the memory when it is written to.
void fill_in([[maybe_unused]] std::span<std::byte> memory) noexcept {
#ifdef MADV_POPULATE_WRITE
    if (!memory.empty()) ::madvise(memory.data(), memory.size(), MADV_POPULATE_WRITE);
#endif
}

}  // namespace

ArenaBlock::ArenaBlock(ArenaBlock&& other) noexcept
    : arena_(std::move(other.arena_)), bytes_(std::exchange(other.bytes_, {})), serial_(other.serial_) {}

ArenaBlock& ArenaBlock::operator=(ArenaBlock&& other) noexcept {
    if (this == &other) return *this;
    reset();
    arena_ = std::move(other.arena_);
    bytes_ = std::exchange(other.bytes_, {});
    serial_ = other.serial_;
    return *this;
}

void ArenaBlock::reset() noexcept {
    if (!arena_) return;
    bytes_ = {};
    arena_->give_back(serial_);
    arena_.reset();
}

Arena::Arena(std::byte* memory, std::size_t capacity) noexcept
    : memory_(memory), capacity_(capacity), generation_(base::fork_generation()) {}

base::Result<std::shared_ptr<Arena>> Arena::create(std::size_t bytes) {
    const auto exhausted = [&] {
        return base::Status(
            base::Code::kResourceExhausted,
            base::format("there is no memory of {} for whole tensors on their way to the disk",
                         base::human_bytes(bytes)));
    };
    if (bytes > SIZE_MAX / 2) return exhausted();
    const auto capacity = static_cast<std::size_t>(round_up(std::max(bytes, kUnit), kUnit));
    // Larger by one huge page, so that the ring can begin at one.
    const std::size_t mapped = capacity + kHugePage;
    void* const all = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) return exhausted();
    auto* const begin = static_cast<std::byte*>(all);
    const std::size_t skip = (kHugePage - reinterpret_cast<std::uintptr_t>(all) % kHugePage) % kHugePage;
    if (skip != 0) ::munmap(begin, skip);
    if (skip != kHugePage) ::munmap(begin + skip + capacity, kHugePage - skip);
    std::byte* const memory = begin + skip;
    // Advice: a system that does not follow it is slower, not wrong. A child has no use for this memory, and
    // need not get its pages copied either.
    ::madvise(memory, capacity, MADV_HUGEPAGE);
    ::madvise(memory, capacity, MADV_DONTFORK);
    ::madvise(memory, capacity, MADV_DONTDUMP);
    try {
        // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
        return std::shared_ptr<Arena>(::new Arena(memory, capacity));
    } catch (const std::bad_alloc&) {
        ::munmap(memory, capacity);
        return exhausted();
    }
}

std::size_t Arena::default_bytes() noexcept {
    constexpr std::uint64_t kMost = std::uint64_t{256} << 20;
    std::uint64_t memory = UINT64_MAX;
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page_bytes = ::sysconf(_SC_PAGESIZE);
    if (pages > 0 && page_bytes > 0)
        memory = static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(page_bytes);
    // A container may be allowed less than the machine has.
    for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
        if (const std::optional<std::uint64_t> limit = read_number(path)) memory = std::min(memory, *limit);
    return static_cast<std::size_t>(std::min(kMost, memory / 20));
}

// No block is left: each of them keeps the arena.
Arena::~Arena() {
    if (base::fork_generation() == generation_) ::munmap(memory_, capacity_);
}

// Where in the ring a block of that size can begin; nothing: not now.
std::optional<std::uint64_t> Arena::place_for(std::uint64_t bytes) const noexcept {
    std::uint64_t begin = head_;
    // A block lies in one piece: what is left before the end of the ring may be too short.
    if (begin % capacity_ + bytes > capacity_) begin = round_up(begin, capacity_);
    const std::uint64_t tail = ranges_.empty() ? begin : ranges_.front().begin;
    if (begin + bytes - tail > capacity_) return std::nullopt;
    return begin;
}

std::optional<ArenaBlock> Arena::take(std::size_t bytes, std::chrono::nanoseconds patience) {
    if (bytes == 0 || bytes > capacity_ || base::fork_generation() != generation_) return std::nullopt;
    const std::uint64_t taken = round_up(bytes, kBlockAlignment);
    std::unique_lock lock(mutex_);
    std::optional<std::uint64_t> begin = place_for(taken);
    if (!begin && patience > std::chrono::nanoseconds::zero())
        freed_.wait_for(lock, patience, [&] { return (begin = place_for(taken)).has_value(); });
    if (!begin) return std::nullopt;
    ranges_.push_back({*begin, false});
    head_ = *begin + taken;
    const std::uint64_t serial = first_serial_ + ranges_.size() - 1;
    const auto place = static_cast<std::size_t>(*begin % capacity_);
    const std::span<std::byte> fresh = reach(place + static_cast<std::size_t>(taken));
    lock.unlock();
    fill_in(fresh);
    std::byte* const memory = memory_ + place;
    std::memset(memory + bytes, 0, static_cast<std::size_t>(taken) - bytes);
    return ArenaBlock(shared_from_this(), {memory, bytes}, serial);
}

// What has to be filled in before a block may end at `end`; the caller holds the lock, and does it without.
std::span<std::byte> Arena::reach(std::size_t end) noexcept {
    if (end <= touched_) return {};
    const std::size_t begin =
        std::exchange(touched_, std::min(capacity_, static_cast<std::size_t>(round_up(end, kHugePage))));
    return {memory_ + begin, touched_ - begin};
}

void Arena::give_back(std::uint64_t serial) noexcept {
    // The lock may be held by a thread that exists in another process only.
    if (base::fork_generation() != generation_) return;
    {
        const std::lock_guard lock(mutex_);
        ranges_[static_cast<std::size_t>(serial - first_serial_)].is_free = true;
        while (!ranges_.empty() && ranges_.front().is_free) {
            ranges_.pop_front();
            ++first_serial_;
        }
        // Nothing is in use: from the front again, where there is memory, which may still be in the cache.
        if (ranges_.empty()) head_ = round_up(head_, capacity_);
    }
    freed_.notify_one();
}

std::size_t Arena::bytes_in_use() const {
    const std::lock_guard lock(mutex_);
    return ranges_.empty() ? 0 : static_cast<std::size_t>(head_ - ranges_.front().begin);
}

std::size_t Arena::bytes_touched() const {
    const std::lock_guard lock(mutex_);
    return touched_;
}

}  // namespace traindbg::write
