// A queue between one thread that must not wait and one that may: bounded in bytes, not in items.
//
// The producer is the training. `push` gives the item back when the quota is used up and the
// deadline passes, so that the caller decides what to drop and counts it. Nothing waits for ever:
// every wait has a deadline, and `close` wakes both sides.
//
// Waking a thread costs the producer a system call, some microseconds: too much for every small item.
// A consumer that calls `linger` between rounds lets items gather meanwhile, and `push` is then no
// more than a lock and a move.
//
// Thread-safety: all members may be called from any thread. A child process made by `fork` must not
// use a queue of its parent: no consumer lives there.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

namespace traindbg::base {

template <typename T>
class ByteQueue {
  public:
    using Duration = std::chrono::nanoseconds;

    explicit ByteQueue(std::size_t quota_bytes) : quota_bytes_(quota_bytes) {}

    // Takes `item`, which weighs `bytes`; waits up to `patience` for room. An item larger than the
    // whole quota is taken when the queue is empty. Returns the item when it was not taken.
    [[nodiscard]] std::optional<T> push(T item, std::size_t bytes, Duration patience) {
        std::unique_lock lock(mutex_);
        const auto has_room = [&] { return closed_ || items_.empty() || bytes_ + bytes <= quota_bytes_; };
        if (!has_room()) {
            if (patience <= Duration::zero() || !room_.wait_for(lock, patience, has_room)) return item;
        }
        if (closed_) return item;
        items_.emplace_back(std::move(item), bytes);
        bytes_ += bytes;
        const bool wake_lingerer = lingers_ && bytes_ > quota_bytes_ / 4;
        lock.unlock();
        filled_.notify_one();
        if (wake_lingerer) hurried_.notify_one();
        return std::nullopt;
    }

    // The oldest item, waiting up to `patience` for one. Nothing when the time is up, or when the
    // queue was closed and is empty.
    [[nodiscard]] std::optional<T> pop(Duration patience) {
        std::unique_lock lock(mutex_);
        if (!filled_.wait_for(lock, patience, [&] { return closed_ || !items_.empty(); }))
            return std::nullopt;
        if (items_.empty()) return std::nullopt;
        auto [item, bytes] = std::move(items_.front());
        items_.pop_front();
        bytes_ -= bytes;
        lock.unlock();
        room_.notify_one();
        return std::optional<T>(std::move(item));
    }

    // For the consumer: lets `pause` pass while items gather, unless the queue fills up, is closed,
    // or somebody calls `hurry`.
    void linger(Duration pause) {
        std::unique_lock lock(mutex_);
        lingers_ = true;
        hurried_.wait_for(lock, pause, [&] { return closed_ || hurry_ || bytes_ > quota_bytes_ / 4; });
        lingers_ = false;
        hurry_ = false;
    }
    // Ends a `linger` under way, or the next one.
    void hurry() {
        {
            const std::lock_guard lock(mutex_);
            hurry_ = true;
        }
        hurried_.notify_one();
    }

    // No further item is taken; those inside can still be popped.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        room_.notify_all();
        filled_.notify_all();
        hurried_.notify_all();
    }

    [[nodiscard]] bool closed() const {
        const std::lock_guard lock(mutex_);
        return closed_;
    }
    [[nodiscard]] std::size_t bytes() const {
        const std::lock_guard lock(mutex_);
        return bytes_;
    }
    [[nodiscard]] bool empty() const {
        const std::lock_guard lock(mutex_);
        return items_.empty();
    }

  private:
    const std::size_t quota_bytes_;
    mutable std::mutex mutex_;
    std::condition_variable room_;
    std::condition_variable filled_;
    std::condition_variable hurried_;
    std::deque<std::pair<T, std::size_t>> items_;
    std::size_t bytes_ = 0;
    bool closed_ = false;
    bool lingers_ = false;
    bool hurry_ = false;
};

}  // namespace traindbg::base
