#include "traindbg/base/byte_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace traindbg::base {
namespace {

using namespace std::chrono_literals;

TEST(ByteQueue, FirstInFirstOut) {
    ByteQueue<int> queue(100);
    EXPECT_TRUE(queue.empty());
    for (int i = 0; i < 5; ++i) EXPECT_EQ(queue.push(i, 10, 0ns), std::nullopt);
    EXPECT_EQ(queue.bytes(), 50U);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(queue.pop(0ns), i);
    EXPECT_EQ(queue.bytes(), 0U);
    EXPECT_EQ(queue.pop(0ns), std::nullopt);
}

TEST(ByteQueue, WhatDoesNotFitIsGivenBack) {
    ByteQueue<std::unique_ptr<int>> queue(10);
    EXPECT_EQ(queue.push(std::make_unique<int>(1), 8, 0ns), std::nullopt);
    auto refused = queue.push(std::make_unique<int>(2), 3, 0ns);
    ASSERT_TRUE(refused);
    EXPECT_EQ(**refused, 2);
    refused = queue.push(std::move(*refused), 3, 1ms);
    ASSERT_TRUE(refused) << "nobody made room meanwhile";
    EXPECT_EQ(queue.push(std::move(*refused), 2, 0ns), std::nullopt) << "to the last byte";
}

TEST(ByteQueue, AnItemLargerThanTheQuotaIsTakenAlone) {
    ByteQueue<int> queue(10);
    EXPECT_EQ(queue.push(1, 1000, 0ns), std::nullopt);
    EXPECT_TRUE(queue.push(2, 1, 0ns));
    EXPECT_EQ(queue.pop(0ns), 1);
    EXPECT_EQ(queue.push(2, 1, 0ns), std::nullopt);
}

TEST(ByteQueue, ClosingRefusesTheNewAndKeepsTheOld) {
    ByteQueue<int> queue(10);
    EXPECT_EQ(queue.push(1, 1, 0ns), std::nullopt);
    queue.close();
    EXPECT_TRUE(queue.closed());
    EXPECT_EQ(queue.push(2, 1, 0ns), 2);
    EXPECT_EQ(queue.pop(1h), 1);
    EXPECT_EQ(queue.pop(1h), std::nullopt) << "without waiting: nothing can come";
}

TEST(ByteQueue, ClosingWakesBothSides) {
    ByteQueue<int> full(1);
    ByteQueue<int> empty(1);
    ASSERT_EQ(full.push(1, 1, 0ns), std::nullopt);
    std::jthread producer([&] { EXPECT_EQ(full.push(2, 1, 1h), 2); });
    std::jthread consumer([&] { EXPECT_EQ(empty.pop(1h), std::nullopt); });
    std::this_thread::sleep_for(5ms);
    full.close();
    empty.close();
}

TEST(ByteQueue, AWaitingProducerGetsTheRoomThatAConsumerMakes) {
    ByteQueue<int> queue(1);
    ASSERT_EQ(queue.push(1, 1, 0ns), std::nullopt);
    std::jthread producer([&] { EXPECT_EQ(queue.push(2, 1, 1h), std::nullopt); });
    EXPECT_EQ(queue.pop(1h), 1);
    EXPECT_EQ(queue.pop(1h), 2);
}

// Each of these would sit in `linger` for an hour if it did not end as it says.
TEST(ByteQueue, LingeringEndsWhenHurriedClosedOrFilling) {
    ByteQueue<int> hurried(100);
    {
        const std::jthread consumer([&] { hurried.linger(1h); });
        hurried.hurry();
    }
    hurried.hurry();
    hurried.linger(1h);  // a hurry that came before it counts

    ByteQueue<int> closed(100);
    {
        const std::jthread consumer([&] { closed.linger(1h); });
        closed.close();
    }
    ByteQueue<int> filling(100);
    {
        const std::jthread consumer([&] { filling.linger(1h); });
        EXPECT_EQ(filling.push(1, 26, 0ns), std::nullopt);
    }
    EXPECT_EQ(filling.pop(0ns), 1);
}

TEST(ByteQueue, ManyThreadsLoseAndRepeatNothing) {
    constexpr int kThreads = 3;
    constexpr int kItems = 3000;
    ByteQueue<int> queue(64);
    std::vector<std::atomic<int>> seen(kThreads * kItems);
    std::atomic<bool> over_quota = false;
    {
        std::vector<std::jthread> consumers;
        for (int i = 0; i < kThreads; ++i) {
            consumers.emplace_back([&] {
                while (const auto item = queue.pop(1h)) {
                    if (queue.bytes() > 64) over_quota = true;
                    ++seen[static_cast<std::size_t>(*item)];
                }
            });
        }
        {
            std::vector<std::jthread> producers;
            for (int i = 0; i < kThreads; ++i) {
                producers.emplace_back([&, i] {
                    for (int k = 0; k < kItems; ++k)
                        EXPECT_EQ(queue.push(i * kItems + k, static_cast<std::size_t>(1 + k % 9), 1h),
                                  std::nullopt);
                });
            }
        }
        queue.close();
    }
    EXPECT_FALSE(over_quota);
    for (const std::atomic<int>& count : seen) EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace traindbg::base
