#include "traindbg/write/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace traindbg::write {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(Arena, BlocksLieOneAfterTheOtherAndEndInZeros) {
    const auto arena = Arena::create(kMiB).value();
    EXPECT_EQ(arena->capacity(), kMiB);
    auto first = arena->take(100, 0ns);
    auto second = arena->take(64, 0ns);
    auto third = arena->take(1, 0ns);
    ASSERT_TRUE(first && second && third);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first->bytes().data()) % 4096, 0U);
    EXPECT_EQ(second->bytes().data(), first->bytes().data() + 128);
    EXPECT_EQ(third->bytes().data(), second->bytes().data() + 64);
    EXPECT_EQ(first->bytes().size(), 100U);
    std::fill(first->bytes().begin(), first->bytes().end(), std::byte{7});
    EXPECT_TRUE(std::all_of(first->bytes().data() + 100, first->bytes().data() + 128,
                            [](std::byte byte) { return byte == std::byte{0}; }));
    EXPECT_EQ(arena->bytes_in_use(), 256U);
}

TEST(Arena, MemoryComesBackInOrderWhateverTheOrderOfGivingBack) {
    const auto arena = Arena::create(kMiB).value();
    std::vector<ArenaBlock> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(*arena->take(kMiB / 4, 0ns));
    EXPECT_FALSE(arena->take(1, 0ns).has_value());
    blocks[2].reset();
    EXPECT_FALSE(arena->take(1, 0ns).has_value()) << "the oldest block is still in use";
    blocks[0].reset();
    EXPECT_TRUE(arena->take(kMiB / 4, 0ns).has_value());
    blocks[1].reset();
    blocks[3].reset();
    EXPECT_EQ(arena->bytes_in_use(), 0U);
    EXPECT_TRUE(arena->take(kMiB, 0ns).has_value()) << "all of it at once";
}

TEST(Arena, ABlockNeverGoesRoundTheEnd) {
    const auto arena = Arena::create(kMiB).value();
    auto first = arena->take(kMiB / 2, 0ns);
    auto second = arena->take(kMiB / 4, 0ns);
    const std::byte* const begin = first->bytes().data();
    first->reset();
    EXPECT_FALSE(arena->take(kMiB / 2 + 64, 0ns).has_value());
    auto third = arena->take(kMiB / 2, 0ns);
    ASSERT_TRUE(third.has_value());
    EXPECT_EQ(third->bytes().data(), begin);
}

TEST(Arena, WhatCannotEverFitIsRefusedAtOnce) {
    const auto arena = Arena::create(kMiB).value();
    EXPECT_FALSE(arena->take(kMiB + 1, 24h).has_value());
    EXPECT_FALSE(arena->take(SIZE_MAX, 24h).has_value());
    EXPECT_FALSE(arena->take(0, 24h).has_value());
    EXPECT_FALSE(Arena::create(SIZE_MAX / 2 - kMiB).is_ok());
    EXPECT_FALSE(Arena::create(SIZE_MAX).is_ok());
    EXPECT_GT(Arena::default_bytes(), 0U);
    EXPECT_LE(Arena::default_bytes(), 256 * kMiB);
}

TEST(Arena, TakeWaitsForABlockThatIsGivenBack) {
    const auto arena = Arena::create(kMiB).value();
    auto block = arena->take(kMiB, 0ns);
    EXPECT_FALSE(arena->take(1, 1ms).has_value());
    std::jthread other([&] { block->reset(); });
    EXPECT_TRUE(arena->take(kMiB, 60s).has_value());
}

TEST(Arena, BlocksOutliveTheArenasOwner) {
    auto arena = Arena::create(kMiB).value();
    auto block = arena->take(1000, 0ns);
    arena.reset();
    std::fill(block->bytes().begin(), block->bytes().end(), std::byte{1});
    ArenaBlock moved = std::move(*block);
    EXPECT_TRUE(block->is_empty());
    EXPECT_EQ(moved.bytes()[999], std::byte{1});
}

// Whether there is memory for the page at `address`.
bool is_resident(const std::byte* address) {
    const auto page = reinterpret_cast<std::uintptr_t>(address) / 4096 * 4096;
    unsigned char state = 0;
    EXPECT_EQ(::mincore(reinterpret_cast<void*>(page), 1, &state), 0);
    return (state & 1) != 0;
}

TEST(Arena, MemoryComesAsFarAsBlocksReach) {
    const auto arena = Arena::create(64 * kMiB).value();
    EXPECT_EQ(arena->bytes_touched(), 0U);
    const auto small = arena->take(3000, 0ns);
    const std::byte* const begin = small->bytes().data();
    EXPECT_EQ(arena->bytes_touched(), 2 * kMiB);
    EXPECT_FALSE(is_resident(begin + 2 * kMiB));
    EXPECT_FALSE(is_resident(begin + 63 * kMiB));
    const auto large = arena->take(5 * kMiB, 0ns);
    EXPECT_EQ(arena->bytes_touched(), 6 * kMiB);
    EXPECT_FALSE(is_resident(begin + 6 * kMiB));
    const auto rest = arena->take(57 * kMiB, 0ns);
    EXPECT_EQ(arena->bytes_touched(), 64 * kMiB);
}

#if defined(MADV_POPULATE_WRITE)
TEST(Arena, MemoryOfABlockIsThereBeforeItIsWrittenTo) {
    const auto arena = Arena::create(16 * kMiB).value();
    if (::madvise(nullptr, 0, MADV_POPULATE_WRITE) != 0) GTEST_SKIP() << "this system fills nothing in";
    const auto block = arena->take(5 * kMiB, 0ns);
    for (std::size_t at = 0; at < 5 * kMiB; at += 4096)
        ASSERT_TRUE(is_resident(block->bytes().data() + at)) << at;
}
#endif

TEST(Arena, SmallStepsUseTheSameMemoryAgainAndAgain) {
    const auto arena = Arena::create(64 * kMiB).value();
    const std::byte* const begin = arena->take(1, 0ns)->bytes().data();
    for (int step = 0; step < 10'000; ++step) {
        const auto first = arena->take(3000, 0ns);
        const auto second = arena->take(30'000, 0ns);
        ASSERT_EQ(first->bytes().data(), begin);
    }
    EXPECT_EQ(arena->bytes_touched(), 2 * kMiB);
}

TEST(Arena, AnArenaOfAnOddSizeIsUsedToItsEnd) {
    const auto arena = Arena::create(3 * kMiB).value();
    const auto block = arena->take(3 * kMiB, 0ns);
    std::fill(block->bytes().begin(), block->bytes().end(), std::byte{1});
    EXPECT_EQ(arena->bytes_touched(), 3 * kMiB);
}

void take_in_two_threads(std::size_t capacity) {
    const auto arena = Arena::create(capacity).value();
    std::vector<std::jthread> threads;
    std::atomic<int> wrong{0};
    for (unsigned id = 1; id <= 2; ++id)
        threads.emplace_back([&, id] {
            std::mt19937 random(id);
            std::vector<std::pair<ArenaBlock, std::byte>> held;
            for (int i = 0; i < 800; ++i) {
                const auto mark = static_cast<std::byte>(random());
                if (auto block = arena->take(1 + random() % 50'000, 0ns)) {
                    std::fill(block->bytes().begin(), block->bytes().end(), mark);
                    held.emplace_back(std::move(*block), mark);
                }
                if (held.size() > 5 || (i % 3 == 0 && !held.empty())) {
                    const std::size_t at = random() % held.size();
                    for (const std::byte byte : held[at].first.bytes())
                        wrong += byte == held[at].second ? 0 : 1;
                    held.erase(held.begin() + static_cast<long>(at));
                }
            }
        });
    threads.clear();
    EXPECT_EQ(wrong.load(), 0);
    EXPECT_EQ(arena->bytes_in_use(), 0U);
}

TEST(Arena, TwoThreadsNeverShareABlock) { take_in_two_threads(kMiB); }

TEST(Arena, MemoryThatAnotherThreadFillsInKeepsWhatIsWrittenThere) { take_in_two_threads(16 * kMiB); }

TEST(Arena, InTheChildOfAForkThereIsNone) {
    const auto arena = Arena::create(kMiB).value();
    auto block = arena->take(1000, 0ns);
    const pid_t child = ::fork();
    if (child == 0) {
        const bool none = !arena->take(1, 0ns).has_value();
        block->reset();  // must neither wait for a lock nor touch memory that is not there
        ::_exit(none ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    EXPECT_EQ(arena->bytes_in_use(), 1024U);
}

}  // namespace
}  // namespace traindbg::write
