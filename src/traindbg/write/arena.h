// Memory in which whole tensors wait for the disk.
//
// A ring whose addresses are reserved once: a tensor takes a block and copies itself into it, the writer's
// thread writes the block to the disk from where it lies, and gives it back. Blocks lie one after the other,
// each at a multiple of kBlockAlignment, what is left of their last one filled with zeros: so a stretch of
// them is a stretch of the file.
//
// Memory comes as far as blocks have reached, in huge pages, and stays: whoever takes a block that reaches
// further has the system fill it in with one call, which costs less than to meet its pages one by one. As
// long as nothing is in use the next block is the first of the ring again, so that small steps need one huge
// page.
//
// Ownership: a block keeps its arena alive. Thread-safety: any thread. In the child of a `fork` there is no
// such memory; blocks that it inherited are given up without a touch. Errors: `take` gives nothing. Cost: a
// lock per block, and once for each huge page what the system takes to clear it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"

namespace traindbg::write {

class Arena;

class ArenaBlock {
  public:
    ArenaBlock() noexcept = default;
    ArenaBlock(ArenaBlock&& other) noexcept;
    ArenaBlock& operator=(ArenaBlock&& other) noexcept;
    ~ArenaBlock() { reset(); }

    [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
    [[nodiscard]] bool is_empty() const noexcept { return arena_ == nullptr; }
    // Gives it back now.
    void reset() noexcept;

  private:
    friend class Arena;
    ArenaBlock(std::shared_ptr<Arena> arena, std::span<std::byte> bytes, std::uint64_t serial) noexcept
        : arena_(std::move(arena)), bytes_(bytes), serial_(serial) {}

    std::shared_ptr<Arena> arena_;
    std::span<std::byte> bytes_;
    std::uint64_t serial_ = 0;
};

class Arena : public std::enable_shared_from_this<Arena> {
  public:
    static constexpr std::size_t kBlockAlignment = 64;

    // `bytes` is rounded up to a whole number of MiB. kResourceExhausted: there are not so many addresses, or
    // the system does not promise so much memory.
    [[nodiscard]] static base::Result<std::shared_ptr<Arena>> create(std::size_t bytes);
    // What to take when nobody says: 256 MiB, or 5 % of the memory that this process may use if that is less.
    [[nodiscard]] static std::size_t default_bytes() noexcept;
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;
    ~Arena();

    // A block of `bytes`, waiting up to `patience` for others to be given back. Nothing when the time is up,
    // and at once when the whole arena is smaller.
    [[nodiscard]] std::optional<ArenaBlock> take(std::size_t bytes, std::chrono::nanoseconds patience);

    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::size_t bytes_in_use() const;
    // How far blocks have reached: what there is memory for.
    [[nodiscard]] std::size_t bytes_touched() const;

  private:
    friend class ArenaBlock;
    struct Range {
        std::uint64_t begin;  // a position: grows for ever, its place in memory is the rest by `capacity_`
        bool is_free;
    };

    Arena(std::byte* memory, std::size_t capacity) noexcept;
    [[nodiscard]] std::optional<std::uint64_t> place_for(std::uint64_t bytes) const noexcept;
    [[nodiscard]] std::span<std::byte> reach(std::size_t end) noexcept;
    void give_back(std::uint64_t serial) noexcept;

    std::byte* const memory_;
    const std::size_t capacity_;
    const std::uint32_t generation_;  // of the process that has the memory

    mutable std::mutex mutex_;
    std::condition_variable freed_;
    std::deque<Range> ranges_;        // in use, and free ones between them; in the order of their positions
    std::uint64_t first_serial_ = 0;  // of the first range
    std::uint64_t head_ = 0;          // the position behind the last range
    std::size_t touched_ = 0;         // of the memory, from its begin
};

}  // namespace traindbg::write
