// What the training's side of a writer and its thread share. Held by both, so that either may go first.
// Private to `write`.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "traindbg/base/byte_queue.h"
#include "traindbg/format/records.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_record.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/write/run_writer.h"
#include "traindbg/write/whole_tensor.h"

namespace traindbg::write {

// Somebody waits until everything before this place of the queue is in the file.
struct FlushMarker {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_reached = false;
    bool is_in_file = false;

    void reach(bool in_file) {
        {
            const std::lock_guard lock(mutex);
            is_reached = true;
            is_in_file = in_file;
        }
        changed.notify_all();
    }
    bool wait(std::chrono::nanoseconds patience) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, patience, [this] { return is_reached; }) && is_in_file;
    }
};

struct StepItem {
    model::StepRecord record;  // without whole tensors: those are beside it
    std::vector<WholeTensor> tensors;
};

// Of a ring: all before this place of the queue stays.
struct KeepRing {};

using Item = std::variant<StepItem, format::EventRecord, std::shared_ptr<FlushMarker>, KeepRing>;

struct Shared {
    explicit Shared(const WriterOptions& options) : queue(options.queue_bytes) {}

    base::ByteQueue<Item> queue;
    std::atomic<std::uint64_t> steps_written{0};
    std::atomic<std::uint64_t> bytes_written{0};
    std::atomic<std::uint64_t> steps_dropped{0};
    std::atomic<std::uint64_t> raw_tensors_dropped{0};
    std::atomic<std::uint64_t> parts_sealed{0};
    std::atomic<bool> has_failed{false};
    std::atomic<bool> is_paused{false};       // nothing is written: the disk is full, or the quota used up
    std::atomic<bool> raw_is_off{false};      // whole tensors are not taken: the same, or their file failed
    std::atomic<bool> is_left_behind{false};  // nobody waits for the thread any more: it ends when it can
    std::atomic<bool> has_pending{false};

    std::mutex mutex;  // guards all below
    std::condition_variable changed;
    std::vector<model::TensorInfo> pending_tensors;  // never dropped, unlike what is in the queue
    std::optional<model::WorkerMeta> pending_meta;
    std::string failure;
    bool is_finished = false;
    // Records that were written, without content: their memory is there already, while fresh memory of that
    // size would cost the training a page fault per 4 KiB at every step.
    std::vector<model::StepRecord> spares;

    void count_dropped(std::uint64_t whole_tensors) noexcept {
        steps_dropped.fetch_add(1, std::memory_order_relaxed);
        raw_tensors_dropped.fetch_add(whole_tensors, std::memory_order_relaxed);
    }
    // What is queued when nobody waits for the thread any more: by whoever comes first, each item once.
    void drop_queued() {
        while (std::optional<Item> item = queue.pop(std::chrono::nanoseconds::zero())) drop(*item);
    }
    void drop(Item& item) {
        if (const auto* step = std::get_if<StepItem>(&item)) count_dropped(step->tensors.size());
        if (const auto* marker = std::get_if<std::shared_ptr<FlushMarker>>(&item)) (*marker)->reach(false);
    }
    void tell_failure(std::string message) {
        const std::lock_guard lock(mutex);
        failure = std::move(message);
    }
    void give_spare(model::StepRecord&& record) {
        constexpr std::size_t kMostSpares = 4;
        record.tensors.clear();
        record.scalars.clear();
        record.classes.clear();
        record.histograms.clear();
        record.channels.clear();
        record.digests.clear();
        record.raw.clear();
        const std::lock_guard lock(mutex);
        if (spares.size() < kMostSpares) spares.push_back(std::move(record));
    }
};

}  // namespace traindbg::write
