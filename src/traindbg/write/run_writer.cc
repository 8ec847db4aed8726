#include "traindbg/write/run_writer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <iterator>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "traindbg/base/clock.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/base/text.h"
#include "traindbg/format/frame.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/frame_file.h"
#include "traindbg/write/scribe.h"
#include "traindbg/write/seal_thread.h"
#include "traindbg/write/shared.h"
#include "traindbg/write/thread.h"

namespace traindbg::write {
namespace {

using base::Code;
using base::LogLevel;
using base::Result;
using base::Status;
using model::OverflowPolicy;
using model::StepRecord;
using model::TensorInfo;
using std::chrono::nanoseconds;

constexpr model::WorkerId kMostWorkers = 10'000;
constexpr model::WorkerId kLargestWorker = 999'999'999;  // readers know directories of nine digits
// No wait is longer: a deadline computed from "for ever" would lie in the past.
constexpr nanoseconds kLongestWait = std::chrono::hours(24);

// The run's identity, for the file headers; zeros when the run has none (yet).
std::array<std::byte, 16> read_run_uuid(storage::FileSystem& files, const storage::RunLayout& layout) {
    std::array<std::byte, 16> uuid{};
    const Result<base::ByteBuffer> bytes = storage::read_whole(files, layout.run_json(), 1 << 20);
    if (!bytes) return uuid;
    const Result<model::RunMeta> meta =
        model::run_meta_from_json({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
    if (!meta) return uuid;
    std::size_t digits = 0;
    for (const char c : meta->uuid) {
        if (c == '-') continue;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0 || digits == 32) return {};
        uuid[digits / 2] = uuid[digits / 2] << 4 | static_cast<std::byte>(digit);
        ++digits;
    }
    if (digits != 32) return {};
    return uuid;
}

// What an item takes of the queue. Blocks of the arena have a bound of their own.
std::size_t weight_of(const StepItem& item) {
    const StepRecord& record = item.record;
    std::size_t bytes = sizeof(StepItem) + record.tensors.size() * sizeof(model::TensorSample) +
                        record.scalars.size() * sizeof(model::ScalarSample);
    for (const model::ClassSample& sample : record.classes)
        bytes += sizeof(sample) + (sample.counts.labels.size() + sample.counts.predictions.size() +
                                   sample.counts.hits.size()) *
                                      sizeof(std::uint32_t);
    for (const model::HistogramSample& sample : record.histograms)
        bytes += sizeof(sample) + sample.bins.size() * sizeof(model::HistogramBin);
    for (const model::ChannelSample& sample : record.channels)
        bytes += sizeof(sample) + 3 * sample.channels.channels() * sizeof(float);
    bytes += record.digests.size() * sizeof(model::DigestSample);
    for (const WholeTensor& tensor : item.tensors) bytes += sizeof(tensor) + tensor.owned.size();
    return bytes;
}

bool has_owned_bytes(const std::vector<WholeTensor>& tensors) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [](const WholeTensor& tensor) { return !tensor.owned.empty(); });
}

}  // namespace

class RunWriter::Impl {
  public:
    Impl(WriterOptions options, model::WorkerId worker, std::shared_ptr<Shared> shared,
         std::shared_ptr<SealThread> sealer)
        : options_(std::move(options)),
          worker_(worker),
          shared_(std::move(shared)),
          sealer_(std::move(sealer)) {}
    void own(std::jthread thread) noexcept { thread_ = std::move(thread); }

    [[nodiscard]] model::WorkerId worker() const noexcept { return worker_; }
    [[nodiscard]] bool is_abandoned() const noexcept {
        return abandoned_.load(std::memory_order_relaxed) || base::fork_generation() != generation_;
    }
    [[nodiscard]] bool is_over() const noexcept { return !thread_.joinable(); }
    void abandon() noexcept { abandoned_.store(true, std::memory_order_relaxed); }

    void add_tensor(const TensorInfo& info) {
        const std::lock_guard lock(shared_->mutex);
        shared_->pending_tensors.push_back(info);
        shared_->has_pending.store(true);
    }

    void describe(const model::WorkerMeta& meta) {
        const std::lock_guard lock(shared_->mutex);
        shared_->pending_meta = meta;
        shared_->pending_meta->worker = worker_;
        shared_->has_pending.store(true);
    }

    void event(std::string_view kind, std::string_view json) {
        Item item = format::EventRecord{base::wall_nanos(), std::string(kind), std::string(json)};
        const std::size_t bytes = sizeof(Item) + kind.size() + json.size();
        if (push(std::move(item), bytes, patience()))
            base::log_once(LogLevel::kWarning, "write.event_dropped",
                           base::format("an event of kind '{}' could not be recorded", kind));
    }

    std::optional<ArenaBlock> take_room(std::size_t bytes) {
        // Where whole tensors are not written for now there is nothing to wait for.
        if (shared_->raw_is_off.load(std::memory_order_relaxed)) return std::nullopt;
        const std::shared_ptr<Arena> arena = get_arena();
        if (!arena) return std::nullopt;
        if (bytes > arena->capacity()) {
            base::log_once(
                LogLevel::kWarning, "write.tensor_too_large",
                base::format(
                    "a tensor of {} is not recorded whole: the memory for whole tensors on their way "
                    "to the disk has {}; raise arena_bytes",
                    base::human_bytes(bytes), base::human_bytes(arena->capacity())));
            has_too_large_ = true;  // which is no reason to drop the step
            return std::nullopt;
        }
        // What the step under way holds comes back only after it: with half of the memory in its own hands it
        // takes what is free and does not wait.
        if (step_bytes_ + bytes > arena->capacity() / 2) {
            std::optional<ArenaBlock> free = arena->take(bytes, nanoseconds::zero());
            if (free) {
                step_bytes_ += bytes;
                return free;
            }
            if (step_bytes_ != 0) {
                base::log_once(
                    LogLevel::kWarning, "write.step_too_large_for_arena",
                    base::format(
                        "the whole tensors of a step do not fit into the memory for whole tensors on "
                        "their way to the disk ({}): some are left out; raise arena_bytes",
                        base::human_bytes(arena->capacity())));
                has_too_large_ = true;
                return std::nullopt;
            }
        }
        const bool waits = options_.overflow == OverflowPolicy::kBlockFor && !arena_is_stalled_;
        std::optional<ArenaBlock> block =
            arena->take(bytes, waits ? nanoseconds(options_.block_for) : nanoseconds::zero());
        if (block) step_bytes_ += bytes;
        if (block) arena_is_stalled_ = false;
        else if (waits) arena_is_stalled_ = true;
        return block;
    }

    void append(StepRecord&& record, std::vector<WholeTensor>&& tensors, std::uint64_t left_out) {
        step_bytes_ = 0;
        StepItem item{std::move(record), std::move(tensors)};
        for (model::RawTensor& raw : item.record.raw)
            item.tensors.push_back({raw.tensor, raw.dtype, std::move(raw.shape), {}, std::move(raw.bytes)});
        item.record.raw.clear();
        const std::uint64_t all = item.tensors.size() + left_out;
        // Without room for a whole tensor a step is either not whole, and goes, or goes on without it: so
        // says the policy, unless whole tensors are not written at all for now.
        const bool drops_step = left_out != 0 && options_.overflow != OverflowPolicy::kKeepReductionsOnly &&
                                !shared_->raw_is_off.load(std::memory_order_relaxed) &&
                                !std::exchange(has_too_large_, false);
        if (shared_->has_failed.load(std::memory_order_relaxed) || drops_step)
            return shared_->count_dropped(all);
        // Counted once it is known what became of the step: what throws before that loses all of it.
        const auto goes_without = [this](std::uint64_t lost) {
            shared_->raw_tensors_dropped.fetch_add(lost, std::memory_order_relaxed);
        };

        const bool gives_up_raw =
            options_.overflow == OverflowPolicy::kKeepReductionsOnly && has_owned_bytes(item.tensors);
        std::size_t bytes = weight_of(item);
        std::optional<Item> refused =
            push(Item(std::move(item)), bytes, gives_up_raw ? nanoseconds::zero() : patience());
        if (!refused) return goes_without(left_out);
        if (gives_up_raw) {
            auto& again = std::get<StepItem>(*refused);
            again.tensors.clear();
            bytes = weight_of(again);
            refused = push(std::move(*refused), bytes, patience());
            if (!refused) return goes_without(all);
        }
        shared_->count_dropped(all);
    }

    StepRecord recycled() {
        const std::lock_guard lock(shared_->mutex);
        if (shared_->spares.empty()) return {};
        StepRecord record = std::move(shared_->spares.back());
        shared_->spares.pop_back();
        return record;
    }

    void keep_ring() {
        // Without a size it finds room in a queue that is full.
        static_cast<void>(shared_->queue.push(Item(KeepRing{}), 0, nanoseconds::zero()));
        shared_->queue.hurry();
    }

    // A step for which there was no memory.
    void count_lost_step(std::uint64_t whole_tensors) noexcept { shared_->count_dropped(whole_tensors); }

    bool flush(nanoseconds patience) {
        patience = std::min(patience, kLongestWait);
        const std::int64_t deadline = base::monotonic_nanos() + patience.count();
        auto marker = std::make_shared<FlushMarker>();
        if (shared_->queue.push(Item(marker), 0, patience)) {
            // The queue is closed: then everything is in the file once the thread has ended.
            return wait_finished(nanoseconds(deadline - base::monotonic_nanos())) &&
                   !shared_->has_failed.load() && !shared_->is_paused.load();
        }
        shared_->queue.hurry();
        return marker->wait(nanoseconds(deadline - base::monotonic_nanos()));
    }

    Status close(nanoseconds patience) {
        patience = std::min(patience, kLongestWait);
        const std::lock_guard lock(close_mutex_);
        if (!is_closed_) {
            is_closed_ = true;
            const std::int64_t deadline = base::monotonic_nanos() + patience.count();
            shared_->queue.close();
            if (wait_finished(patience)) {
                thread_.join();
                // What it does not reach in time stays a log, which is as good.
                if (sealer_) sealer_->finish(nanoseconds(deadline - base::monotonic_nanos()));
            } else {
                shared_->is_left_behind.store(true);
                thread_.detach();
                shared_->drop_queued();  // what it has in hand it counts itself, if it ever comes back
                if (sealer_) sealer_->finish(nanoseconds::zero());
                close_status_ = Status(
                    Code::kUnavailable,
                    base::format("{}: the writer did not finish within {} ms; the last steps may be missing",
                                 options_.run_directory,
                                 std::chrono::duration_cast<std::chrono::milliseconds>(patience).count()));
                base::log(LogLevel::kWarning, close_status_.message());
            }
            give_arena_up();
        }
        if (!close_status_.is_ok()) return close_status_;
        if (!shared_->has_failed.load() && !shared_->is_paused.load()) return Status::ok();
        const std::lock_guard shared_lock(shared_->mutex);
        return {Code::kUnavailable, shared_->failure};
    }

    [[nodiscard]] WriterCounts counts() const {
        WriterCounts counts;
        counts.steps_written = shared_->steps_written.load(std::memory_order_relaxed);
        counts.bytes_written = shared_->bytes_written.load(std::memory_order_relaxed);
        counts.steps_dropped = shared_->steps_dropped.load(std::memory_order_relaxed);
        counts.raw_tensors_dropped = shared_->raw_tensors_dropped.load(std::memory_order_relaxed);
        counts.parts_sealed = shared_->parts_sealed.load(std::memory_order_relaxed);
        counts.is_paused = shared_->is_paused.load(std::memory_order_relaxed);
        counts.failed = shared_->has_failed.load(std::memory_order_relaxed);
        const std::lock_guard lock(shared_->mutex);
        counts.failure = shared_->failure;
        return counts;
    }

  private:
    // How long the training may be held up when the queue is full.
    [[nodiscard]] nanoseconds patience() const {
        return options_.overflow == OverflowPolicy::kDropNewest || stalled_ ? nanoseconds::zero()
                                                                            : nanoseconds(options_.block_for);
    }
    std::optional<Item> push(Item item, std::size_t bytes, nanoseconds patience) {
        std::optional<Item> refused = shared_->queue.push(std::move(item), bytes, patience);
        if (!refused) stalled_ = false;
        else if (patience > nanoseconds::zero()) stalled_ = true;
        return refused;
    }
    // Made when it is needed first: most runs record no whole tensor. Null: there is none.
    std::shared_ptr<Arena> get_arena() {
        const std::lock_guard lock(arena_mutex_);
        if (arena_ || arena_was_tried_) return arena_;
        arena_was_tried_ = true;
        const std::size_t bytes = options_.arena_bytes != 0 ? options_.arena_bytes : Arena::default_bytes();
        Result<std::shared_ptr<Arena>> arena = Arena::create(bytes);
        if (arena) arena_ = std::move(arena).value();
        else base::log_once(LogLevel::kWarning, "write.arena", arena.status().message());
        return arena_;
    }
    // For good. Blocks that are still in use keep it.
    void give_arena_up() noexcept {
        std::shared_ptr<Arena> let_go;
        const std::lock_guard lock(arena_mutex_);
        arena_was_tried_ = true;
        let_go.swap(arena_);
    }
    bool wait_finished(nanoseconds patience) {
        std::unique_lock lock(shared_->mutex);
        return shared_->changed.wait_for(lock, patience, [this] { return shared_->is_finished; });
    }

    const WriterOptions options_;
    const model::WorkerId worker_;
    const std::uint32_t generation_ = base::fork_generation();
    std::atomic<bool> abandoned_{false};
    const std::shared_ptr<Shared> shared_;
    const std::shared_ptr<SealThread> sealer_;  // null: nothing is sealed
    std::jthread thread_;
    std::mutex arena_mutex_;        // guards these two: `close` may come from another thread
    std::shared_ptr<Arena> arena_;  // shared with its blocks
    bool arena_was_tried_ = false;
    std::size_t step_bytes_ = 0;     // taken from the arena for the step under way
    bool has_too_large_ = false;     // a tensor of the step under way is larger than the arena
    bool arena_is_stalled_ = false;  // as stalled_, for the arena
    // The last wait was in vain. Until there is room again nothing waits, or a disk that stands still
    // would cost the training `block_for` at each of its steps.
    bool stalled_ = false;
    std::mutex close_mutex_;
    bool is_closed_ = false;
    Status close_status_;
};

RunWriter::RunWriter() noexcept = default;

Result<std::unique_ptr<RunWriter>> RunWriter::open(storage::FileSystem& files, WriterOptions options) {
    try {
        return open_or_throw(files, std::move(options));
    } catch (const std::exception& error) {
        return Status(Code::kResourceExhausted, error.what());
    }
}

Result<std::unique_ptr<RunWriter>> RunWriter::open_or_throw(storage::FileSystem& files,
                                                            WriterOptions options) {
    const storage::RunLayout layout{options.run_directory};
    model::WorkerId worker = options.worker;
    if (worker > kLargestWorker)
        return Status(Code::kInvalidArgument,
                      base::format("worker {}: is more than the largest number, {}", worker, kLargestWorker));
    while (true) {
        const Status claimed = files.create_directory(layout.worker_directory(worker));
        if (claimed.is_ok()) break;
        if (claimed.code() != Code::kAlreadyExists) return claimed;
        if (++worker >= options.worker + kMostWorkers || worker > kLargestWorker)
            return Status(Code::kResourceExhausted,
                          base::format("{}: has no free place for another worker", options.run_directory));
    }
    // Before there is anything that another process could find there and take for left behind. A file system
    // without locks is written all the same; nobody else changes what lies there.
    Result<std::unique_ptr<storage::FileLock>> locked =
        files.try_lock(layout.lock(worker), storage::LockFile::kIsMade);
    if (!locked && locked.status().code() != Code::kUnsupported) return locked.status();
    // Shared, because two threads need it and either may end last.
    const std::shared_ptr<storage::FileLock> lock = locked ? std::move(locked).value() : nullptr;
    format::FileHeader header;
    header.worker = worker;
    header.salt = random_salt();
    header.run_uuid = read_run_uuid(files, layout);
    if (options.ring_steps != 0) TRAINDBG_RETURN_IF_ERROR(files.put_atomic(layout.ring(worker), {}));
    TRAINDBG_ASSIGN_OR_RETURN(FrameFile log, FrameFile::create(files, layout.log(worker, 0), header));
    auto shared = std::make_shared<Shared>(options);
    std::shared_ptr<SealThread> sealer;
    if (options.seals_parts && options.ring_steps == 0)
        sealer = std::make_shared<SealThread>(files, layout, worker, options.retention, options.sealer_nice,
                                              shared, lock, options.is_loss_told);
    auto scribe = std::make_shared<Scribe>(files, options, header, std::move(log), lock, sealer, shared);
    auto impl = std::make_unique<Impl>(std::move(options), worker, std::move(shared), std::move(sealer));
    std::unique_ptr<RunWriter> writer(new RunWriter);
    // Last, because nothing would end it if something failed after it.
    TRAINDBG_ASSIGN_OR_RETURN(std::jthread thread, start_thread({.name = "traindbg-writer", .nice = 5},
                                                                [scribe] { scribe->run(); }));
    impl->own(std::move(thread));
    writer->impl_ = std::move(impl);
    return writer;
}

RunWriter::~RunWriter() {
    if (!impl_) return;  // it could not be opened
    if (impl_->is_abandoned()) {
        if (impl_->is_over()) return;  // it was closed before: no thread is left that could matter
        // The thread and the locks are the parent's; even destroying them could hang. A few hundred
        // bytes stay behind in the child.
        static_cast<void>(impl_.release());
        return;
    }
    close(std::chrono::seconds(1)).ignore();
}

model::WorkerId RunWriter::worker() const noexcept { return impl_->worker(); }

void RunWriter::abandon() noexcept { impl_->abandon(); }

// At the boundary to the training nothing is thrown: what fails for want of memory is dropped.

void RunWriter::add_tensor(const model::TensorInfo& info) noexcept {
    if (impl_->is_abandoned()) return;
    try {
        impl_->add_tensor(info);
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kError, "write.add_tensor", error.what());
    }
}

void RunWriter::describe(const model::WorkerMeta& meta) noexcept {
    if (impl_->is_abandoned()) return;
    try {
        impl_->describe(meta);
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kError, "write.describe", error.what());
    }
}

void RunWriter::event(std::string_view kind, std::string_view json) noexcept {
    if (impl_->is_abandoned()) return;
    try {
        impl_->event(kind, json);
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kError, "write.event", error.what());
    }
}

std::optional<ArenaBlock> RunWriter::take_room(std::size_t bytes) noexcept {
    if (impl_->is_abandoned()) return std::nullopt;
    try {
        return impl_->take_room(bytes);
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kError, "write.take_room", error.what());
        return std::nullopt;
    }
}

void RunWriter::append(model::StepRecord&& record, std::vector<WholeTensor>&& tensors,
                       std::uint64_t tensors_left_out) noexcept {
    if (impl_->is_abandoned()) return;
    const std::uint64_t all = tensors.size() + record.raw.size() + tensors_left_out;
    try {
        impl_->append(std::move(record), std::move(tensors), tensors_left_out);
    } catch (const std::exception& error) {
        impl_->count_lost_step(all);
        base::log_once(LogLevel::kError, "write.append", error.what());
    }
}

model::StepRecord RunWriter::recycled() noexcept {
    if (impl_->is_abandoned()) return {};
    return impl_->recycled();
}

void RunWriter::keep_ring() noexcept {
    if (impl_->is_abandoned()) return;
    try {
        impl_->keep_ring();
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kError, "write.keep_ring", error.what());
    }
}

bool RunWriter::flush(nanoseconds patience) noexcept {
    if (impl_->is_abandoned()) return false;
    try {
        return impl_->flush(patience);
    } catch (const std::exception&) {
        return false;
    }
}

Status RunWriter::close(nanoseconds patience) noexcept {
    if (impl_->is_abandoned()) return Status::ok();
    try {
        return impl_->close(patience);
    } catch (const std::exception&) {
        return Status(Code::kResourceExhausted, {});
    }
}

WriterCounts RunWriter::counts() const {
    if (impl_->is_abandoned()) return {};
    return impl_->counts();
}

}  // namespace traindbg::write
