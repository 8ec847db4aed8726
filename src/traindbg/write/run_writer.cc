#include "traindbg/write/run_writer.h"

#include <pthread.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "traindbg/base/byte_queue.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/crc32c.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::write {
namespace {

using base::ByteWriter;
using base::Code;
using base::LogLevel;
using base::Result;
using base::Status;
using format::FrameType;
using model::StepRecord;
using model::TensorInfo;
using std::chrono::nanoseconds;

constexpr std::size_t kBatchBytes = std::size_t{1} << 20;  // of encoded frames per append
constexpr nanoseconds kIdleWait = std::chrono::milliseconds(500);
// Between two rounds of the thread, so that a training of short steps does not wake it at each. A step
// is in the file that much later, and what writing takes.
constexpr nanoseconds kLinger = std::chrono::milliseconds(10);
constexpr model::WorkerId kMostWorkers = 10'000;
constexpr model::WorkerId kLargestWorker = 999'999'999;  // readers know directories of nine digits
// No wait is longer: a deadline computed from "for ever" would lie in the past.
constexpr nanoseconds kLongestWait = std::chrono::hours(24);

std::uint64_t random_salt() {
    std::uint64_t salt = 0;
    if (::getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != static_cast<ssize_t>(sizeof(salt)))
        salt = static_cast<std::uint64_t>(base::wall_nanos()) * 0x9E3779B97F4A7C15 +
               static_cast<std::uint64_t>(base::monotonic_nanos()) + static_cast<std::uint64_t>(::getpid());
    return salt | 1;  // header frames use 0
}

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

std::size_t weight_of(const StepRecord& record) {
    std::size_t bytes = sizeof(StepRecord) + record.tensors.size() * sizeof(model::TensorSample) +
                        record.scalars.size() * sizeof(model::ScalarSample);
    for (const model::ClassSample& sample : record.classes)
        bytes += sizeof(sample) + (sample.counts.labels.size() + sample.counts.predictions.size() +
                                   sample.counts.hits.size()) *
                                      sizeof(std::uint32_t);
    for (const model::HistogramSample& sample : record.histograms)
        bytes += sizeof(sample) + sample.bins.size() * sizeof(model::HistogramBin);
    for (const model::RawTensor& raw : record.raw) bytes += sizeof(raw) + raw.bytes.size();
    return bytes;
}

// Somebody waits until everything before this place of the queue is in the file.
struct FlushMarker {
    std::mutex mutex;
    std::condition_variable changed;
    bool reached = false;

    void reach() {
        {
            const std::lock_guard lock(mutex);
            reached = true;
        }
        changed.notify_all();
    }
    bool wait(nanoseconds patience) {
        std::unique_lock lock(mutex);
        return changed.wait_for(lock, patience, [this] { return reached; });
    }
};

using Item = std::variant<StepRecord, format::EventRecord, std::shared_ptr<FlushMarker>>;

// What the training's side and the thread share. Held by both, so that either may go first.
struct Shared {
    explicit Shared(const WriterOptions& options) : queue(options.queue_bytes) {}

    base::ByteQueue<Item> queue;
    std::atomic<std::uint64_t> steps_written{0};
    std::atomic<std::uint64_t> bytes_written{0};
    std::atomic<std::uint64_t> steps_dropped{0};
    std::atomic<std::uint64_t> raw_tensors_dropped{0};
    std::atomic<bool> failed{false};
    std::atomic<bool> left_behind{false};  // nobody waits for the thread any more: it ends when it can
    std::atomic<bool> has_pending{false};

    std::mutex mutex;  // guards all below
    std::condition_variable changed;
    std::vector<TensorInfo> pending_tensors;  // never dropped, unlike what is in the queue
    std::optional<model::WorkerMeta> pending_meta;
    std::string failure;
    bool finished = false;

    void count_dropped(const StepRecord& record) noexcept {
        steps_dropped.fetch_add(1, std::memory_order_relaxed);
        raw_tensors_dropped.fetch_add(record.raw.size(), std::memory_order_relaxed);
    }
};

// A file of frames that is being written.
class FrameFile {
  public:
    static Result<FrameFile> create(storage::FileSystem& files, const std::string& path,
                                    const format::FileHeader& header) {
        TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::AppendFile> file, files.create(path));
        FrameFile created(std::move(file), header.salt);
        ByteWriter bytes;
        format::append_file_header(bytes, header);
        TRAINDBG_RETURN_IF_ERROR(created.file_->append(bytes.bytes()));
        created.sequence_ = 2;
        created.is_dirty_ = true;
        return created;
    }

    // Adds a frame to `buffer`, which a later `append` puts into the file.
    Status add(ByteWriter& buffer, FrameType type, base::ByteSpan payload) {
        TRAINDBG_RETURN_IF_ERROR(format::append_frame(buffer, type, sequence_, payload, salt_));
        ++sequence_;
        return Status::ok();
    }
    Status append(base::ByteSpan bytes) {
        is_dirty_ = true;
        return file_->append(bytes);
    }
    Status sync() {
        if (!is_dirty_) return Status::ok();
        is_dirty_ = false;
        return file_->sync();
    }
    [[nodiscard]] std::uint64_t size() const { return file_->size(); }
    [[nodiscard]] bool is_dirty() const noexcept { return is_dirty_; }

  private:
    FrameFile(std::unique_ptr<storage::AppendFile> file, std::uint64_t salt)
        : file_(std::move(file)), salt_(salt) {}

    std::unique_ptr<storage::AppendFile> file_;
    std::uint64_t salt_;
    std::uint64_t sequence_ = 0;
    bool is_dirty_ = false;
};

// A file of whole tensors that is being written.
class Blob {
  public:
    static Result<Blob> create(storage::FileSystem& files, const storage::RunLayout& layout,
                               const format::FileHeader& of_log) {
        format::FileHeader header = of_log;
        header.kind = format::FileKind::kBlob;
        header.part = 0;
        header.salt = random_salt();
        TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::AppendFile> file,
                                  files.create(layout.blob(header.worker, header.part)));
        ByteWriter bytes;
        format::append_file_header(bytes, header);
        bytes.pad_to(format::kBlobHeaderBytes);
        TRAINDBG_RETURN_IF_ERROR(file->append(bytes.bytes()));
        return Blob(std::move(file), header);
    }

    // Fills in where the bytes lie.
    Status append(base::ByteSpan bytes, format::RawPlace& place) {
        is_dirty_ = true;
        place.blob = header_.part;
        place.offset = file_->size();
        place.checksum = base::crc32c(bytes, format::checksum_seed(header_.salt));
        TRAINDBG_RETURN_IF_ERROR(file_->append(bytes));
        constexpr std::array<std::byte, format::kBlobAlignment> kZeros{};
        const std::uint64_t over = file_->size() % format::kBlobAlignment;
        if (over == 0) return Status::ok();
        return file_->append(base::ByteSpan(kZeros).first(static_cast<std::size_t>(kZeros.size() - over)));
    }
    Status sync() {
        if (!is_dirty_) return Status::ok();
        is_dirty_ = false;
        return file_->sync();
    }
    [[nodiscard]] std::uint64_t size() const { return file_->size(); }
    [[nodiscard]] bool is_dirty() const noexcept { return is_dirty_; }

  private:
    Blob(std::unique_ptr<storage::AppendFile> file, const format::FileHeader& header)
        : file_(std::move(file)), header_(header) {}

    std::unique_ptr<storage::AppendFile> file_;
    format::FileHeader header_;
    bool is_dirty_ = true;
};

// The thread's side: everything that touches files. Used by that thread alone.
class Scribe {
  public:
    Scribe(storage::FileSystem& files, storage::RunLayout layout, const format::FileHeader& header,
           FrameFile log, std::chrono::milliseconds sync_interval, std::shared_ptr<Shared> shared)
        : files_(files),
          layout_(std::move(layout)),
          header_(header),
          log_(std::move(log)),
          sync_interval_(sync_interval),
          shared_(std::move(shared)) {}

    void run() noexcept {
        last_sync_nanos_ = base::monotonic_nanos();
        bool more = true;
        while (more) {
            try {
                more = work();
            } catch (const std::exception& error) {
                fail(Status(Code::kResourceExhausted, error.what()));
            }
        }
        {
            const std::lock_guard lock(shared_->mutex);
            shared_->finished = true;
        }
        shared_->changed.notify_all();
    }

  private:
    struct BatchedStep {
        std::size_t end;  // of its frame in `batch_`
        std::uint64_t raw_tensors;
    };

    // One round: wait, encode what is there, append, sync when it is time. False: all is done.
    bool work() {
        std::optional<Item> item = shared_->queue.pop(wait_time());
        // Asked after the wait: a queue that is closed and empty now stays so.
        const bool is_last = !item && shared_->queue.closed() && shared_->queue.empty();
        while (item) {
            if (shared_->left_behind.load(std::memory_order_relaxed)) return give_up(std::move(*item));
            encode(std::move(*item));
            if (batch_.size() >= kBatchBytes) break;
            item = shared_->queue.pop(nanoseconds::zero());
        }
        if (shared_->left_behind.load(std::memory_order_relaxed)) return false;
        encode_pending();
        encode_dropped();
        if (is_last) encode_end();
        commit();
        sync(is_last);
        for (const std::shared_ptr<FlushMarker>& marker : markers_) marker->reach();
        markers_.clear();
        if (!is_last) shared_->queue.linger(kLinger);
        return !is_last;
    }

    // Nobody waits any more: what is still queued is lost.
    bool give_up(Item first) {
        std::optional<Item> item = std::move(first);
        while (item) {
            if (const auto* record = std::get_if<StepRecord>(&*item)) shared_->count_dropped(*record);
            item = shared_->queue.pop(nanoseconds::zero());
        }
        drop_batch(0);
        return false;
    }

    nanoseconds wait_time() const {
        if (!is_dirty() || sync_interval_ <= nanoseconds::zero() || has_failed()) return kIdleWait;
        const auto due = nanoseconds(last_sync_nanos_ - base::monotonic_nanos()) + sync_interval_;
        return std::clamp(due, nanoseconds::zero(), kIdleWait);
    }
    bool is_dirty() const { return log_.is_dirty() || (blob_ && blob_->is_dirty()); }
    bool has_failed() const { return shared_->failed.load(std::memory_order_relaxed); }

    void encode(Item item) {
        if (auto* record = std::get_if<StepRecord>(&item)) encode_step(*record);
        else if (const auto* event = std::get_if<format::EventRecord>(&item)) encode_event(*event);
        else markers_.push_back(std::move(std::get<std::shared_ptr<FlushMarker>>(item)));
    }

    void encode_step(const StepRecord& record) {
        if (has_failed()) return shared_->count_dropped(record);
        encode_pending();  // what the step refers to was added before it
        write_raw(record);
        const std::uint64_t raw_lost = record.raw.size() - places_.size();
        shared_->raw_tensors_dropped.fetch_add(raw_lost, std::memory_order_relaxed);
        payload_.clear();
        if (format::encode_step(payload_, record, table_, places_) != 0)
            base::log_once(LogLevel::kWarning, "write.classes",
                           "a loss has too many classes to record their counts; they are left out");
        const Status status = log_.add(batch_, FrameType::kStep, payload_.bytes());
        if (status.is_ok()) {
            steps_.push_back({batch_.size(), places_.size()});
            return;
        }
        shared_->steps_dropped.fetch_add(1, std::memory_order_relaxed);
        shared_->raw_tensors_dropped.fetch_add(places_.size(), std::memory_order_relaxed);
        base::log_once(LogLevel::kWarning, "write.step_too_large",
                       base::format("a step could not be recorded: {}", status.message()));
    }

    void encode_event(const format::EventRecord& event) {
        if (has_failed()) return;
        payload_.clear();
        format::encode_event(payload_, event);
        if (!log_.add(batch_, FrameType::kEvent, payload_.bytes()).is_ok())
            base::log_once(LogLevel::kWarning, "write.event_too_large",
                           base::format("an event of kind '{}' is too large to record", event.kind));
    }

    // New tensors and the worker's description: they come before everything that was handed over
    // after them.
    void encode_pending() {
        if (!shared_->has_pending.exchange(false)) return;
        std::vector<TensorInfo> tensors;
        std::optional<model::WorkerMeta> meta;
        {
            const std::lock_guard lock(shared_->mutex);
            tensors = std::exchange(shared_->pending_tensors, {});
            meta = std::exchange(shared_->pending_meta, std::nullopt);
        }
        if (has_failed()) return;
        if (meta) {
            payload_.clear();
            format::encode_worker(payload_, *meta);
            // A description cannot become as large as a frame; if it did, the run is whole without it.
            log_.add(batch_, FrameType::kWorker, payload_.bytes()).ignore();
        }
        constexpr std::size_t kTensorsPerFrame = 1000;
        for (std::size_t begin = 0; begin < tensors.size(); begin += kTensorsPerFrame) {
            const std::size_t end = std::min(tensors.size(), begin + kTensorsPerFrame);
            std::vector<TensorInfo> some(std::make_move_iterator(tensors.begin() + static_cast<long>(begin)),
                                         std::make_move_iterator(tensors.begin() + static_cast<long>(end)));
            payload_.clear();
            format::encode_schema(payload_, some);
            if (const Status status = log_.add(batch_, FrameType::kSchema, payload_.bytes()); !status.is_ok())
                fail(Status(status.code(), "the tensors' descriptions: " + status.message()));
            for (TensorInfo& info : some) {
                // By number, as readers do it: one that was lost for want of memory must not move others.
                if (info.id >= table_.size()) table_.resize(std::size_t{info.id} + 1);
                table_[info.id] = std::move(info);
            }
        }
    }

    format::TotalsRecord totals() const {
        return {base::wall_nanos(), shared_->steps_written.load(std::memory_order_relaxed) + steps_.size(),
                shared_->steps_dropped.load(std::memory_order_relaxed),
                shared_->raw_tensors_dropped.load(std::memory_order_relaxed)};
    }

    void encode_totals(FrameType type, const format::TotalsRecord& totals) {
        payload_.clear();
        format::encode_totals(payload_, totals);
        log_.add(batch_, type, payload_.bytes()).ignore();  // some 40 bytes always fit
    }

    void encode_dropped() {
        const format::TotalsRecord now = totals();
        if (has_failed() || (now.steps_dropped == told_.steps_dropped &&
                             now.raw_tensors_dropped == told_.raw_tensors_dropped))
            return;
        encode_totals(FrameType::kDropped, now);
        told_ = now;
    }

    void encode_end() {
        if (!has_failed()) encode_totals(FrameType::kEnd, totals());
    }

    // Puts the step's whole tensors into the blob, and where they lie into `places_`: before the step
    // itself, whose frame says that they are there. After an error of that file the steps go on
    // without them.
    void write_raw(const StepRecord& record) {
        places_.clear();
        if (record.raw.empty() || raw_failed_) return;
        if (!blob_) {
            Result<Blob> created = Blob::create(files_, layout_, header_);
            if (!created) return fail_raw(created.status());
            blob_.emplace(std::move(created).value());
        }
        for (const model::RawTensor& tensor : record.raw) {
            format::RawPlace place{tensor.tensor, tensor.dtype, tensor.shape, 0, 0, tensor.bytes.size(), 0};
            if (const Status status = blob_->append(tensor.bytes, place); !status.is_ok())
                return fail_raw(status);
            places_.push_back(std::move(place));
            update_bytes_written();
        }
    }

    // Appends the batch. What an error left of it is found by the file's size.
    void commit() {
        if (batch_.size() == 0) return;
        if (has_failed()) return drop_batch(0);
        const std::uint64_t before = log_.size();
        const Status status = log_.append(batch_.bytes());
        update_bytes_written();
        const std::uint64_t kept = status.is_ok() ? batch_.size() : log_.size() - before;
        drop_batch(kept);
        if (!status.is_ok()) fail(status);
    }

    // Accounts for the batch, of which `kept` bytes are in the file, and empties it.
    void drop_batch(std::uint64_t kept) {
        for (const BatchedStep& step : steps_) {
            if (step.end <= kept) {
                shared_->steps_written.fetch_add(1, std::memory_order_relaxed);
            } else {
                shared_->steps_dropped.fetch_add(1, std::memory_order_relaxed);
                shared_->raw_tensors_dropped.fetch_add(step.raw_tensors, std::memory_order_relaxed);
            }
        }
        steps_.clear();
        batch_.clear();
    }

    void sync(bool at_once) {
        if (sync_interval_ <= nanoseconds::zero() || has_failed() || !is_dirty()) return;
        const std::int64_t now = base::monotonic_nanos();
        if (!at_once && nanoseconds(now - last_sync_nanos_) < sync_interval_) return;
        // A step must not outlive the tensors that it names.
        if (blob_ && !raw_failed_)
            if (const Status status = blob_->sync(); !status.is_ok()) fail_raw(status);
        if (const Status status = log_.sync(); !status.is_ok()) fail(status);
        last_sync_nanos_ = base::monotonic_nanos();
    }

    void update_bytes_written() {
        shared_->bytes_written.store(log_.size() + (blob_ ? blob_->size() : 0), std::memory_order_relaxed);
    }

    void fail(const Status& status) noexcept {
        drop_batch(0);
        if (shared_->failed.exchange(true)) return;
        try {
            {
                const std::lock_guard lock(shared_->mutex);
                shared_->failure = status.message();
            }
            base::log(LogLevel::kError,
                      base::format("recording ends here, the training goes on: {}", status.message()));
        } catch (const std::exception&) {
            return;  // the flag is set; only the words are missing
        }
    }

    void fail_raw(const Status& status) {
        raw_failed_ = true;
        {
            const std::lock_guard lock(shared_->mutex);
            shared_->failure = status.message();
        }
        base::log(
            LogLevel::kError,
            base::format("whole tensors are not recorded any more, statistics are: {}", status.message()));
    }

    storage::FileSystem& files_;
    const storage::RunLayout layout_;
    const format::FileHeader header_;
    FrameFile log_;
    std::optional<Blob> blob_;  // made when the first whole tensor comes
    bool raw_failed_ = false;
    const nanoseconds sync_interval_;
    const std::shared_ptr<Shared> shared_;
    std::int64_t last_sync_nanos_ = 0;

    model::TensorTable table_;
    ByteWriter payload_;
    ByteWriter batch_;
    std::vector<format::RawPlace> places_;  // of the step that is being encoded
    std::vector<BatchedStep> steps_;        // those in `batch_`
    std::vector<std::shared_ptr<FlushMarker>> markers_;
    format::TotalsRecord told_;  // what the last DROPPED frame said
};

// No signal reaches this thread as long as one of these lives, however its scope is left.
class SignalsHeld {
  public:
    SignalsHeld() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;
    ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

// Starts `scribe` in a thread that takes no signals: those are the training's.
Result<std::jthread> start_thread(std::unique_ptr<Scribe> scribe) {
    const SignalsHeld held;  // a new thread begins with the mask of its maker
    try {
        return std::jthread([scribe = std::move(scribe)] {
            pthread_setname_np(pthread_self(), "traindbg-writer");
            // Politeness only: a thread of its own nice value is a Linux speciality.
            setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), 5);
            scribe->run();
        });
    } catch (const std::system_error& error) {
        return Status(Code::kResourceExhausted,
                      base::format("cannot start the writer's thread: {}", error.what()));
    }
}

}  // namespace

class RunWriter::Impl {
  public:
    Impl(WriterOptions options, model::WorkerId worker, std::shared_ptr<Shared> shared, std::jthread thread)
        : options_(std::move(options)),
          worker_(worker),
          shared_(std::move(shared)),
          thread_(std::move(thread)) {}

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

    void append(StepRecord&& record) {
        if (shared_->failed.load(std::memory_order_relaxed)) return shared_->count_dropped(record);
        const bool gives_up_raw =
            options_.overflow == OverflowPolicy::kKeepReductionsOnly && !record.raw.empty();
        std::size_t bytes = weight_of(record);
        std::optional<Item> refused =
            push(Item(std::move(record)), bytes, gives_up_raw ? nanoseconds::zero() : patience());
        if (!refused) return;
        auto& again = std::get<StepRecord>(*refused);
        if (gives_up_raw) {
            shared_->raw_tensors_dropped.fetch_add(again.raw.size(), std::memory_order_relaxed);
            again.raw.clear();
            bytes = weight_of(again);
            refused = push(std::move(*refused), bytes, patience());
            if (!refused) return;
        }
        shared_->count_dropped(std::get<StepRecord>(*refused));
    }

    // A step for which there was no memory.
    void count_lost_step() noexcept { shared_->steps_dropped.fetch_add(1, std::memory_order_relaxed); }

    bool flush(nanoseconds patience) {
        patience = std::min(patience, kLongestWait);
        const std::int64_t deadline = base::monotonic_nanos() + patience.count();
        auto marker = std::make_shared<FlushMarker>();
        if (shared_->queue.push(Item(marker), 0, patience)) {
            // The queue is closed: then everything is in the file once the thread has ended.
            return wait_finished(nanoseconds(deadline - base::monotonic_nanos())) && !shared_->failed.load();
        }
        shared_->queue.hurry();
        return marker->wait(nanoseconds(deadline - base::monotonic_nanos())) && !shared_->failed.load();
    }

    Status close(nanoseconds patience) {
        patience = std::min(patience, kLongestWait);
        const std::lock_guard lock(close_mutex_);
        if (!is_closed_) {
            is_closed_ = true;
            shared_->queue.close();
            if (wait_finished(patience)) {
                thread_.join();
            } else {
                shared_->left_behind.store(true);
                thread_.detach();
                close_status_ = Status(
                    Code::kUnavailable,
                    base::format("{}: the writer did not finish within {} ms; the last steps may be missing",
                                 options_.run_directory,
                                 std::chrono::duration_cast<std::chrono::milliseconds>(patience).count()));
                base::log(LogLevel::kWarning, close_status_.message());
            }
        }
        if (!close_status_.is_ok()) return close_status_;
        if (!shared_->failed.load()) return Status::ok();
        const std::lock_guard shared_lock(shared_->mutex);
        return {Code::kUnavailable, shared_->failure};
    }

    [[nodiscard]] WriterCounts counts() const {
        WriterCounts counts;
        counts.steps_written = shared_->steps_written.load(std::memory_order_relaxed);
        counts.bytes_written = shared_->bytes_written.load(std::memory_order_relaxed);
        counts.steps_dropped = shared_->steps_dropped.load(std::memory_order_relaxed);
        counts.raw_tensors_dropped = shared_->raw_tensors_dropped.load(std::memory_order_relaxed);
        counts.failed = shared_->failed.load(std::memory_order_relaxed);
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
    bool wait_finished(nanoseconds patience) {
        std::unique_lock lock(shared_->mutex);
        return shared_->changed.wait_for(lock, patience, [this] { return shared_->finished; });
    }

    const WriterOptions options_;
    const model::WorkerId worker_;
    const std::uint32_t generation_ = base::fork_generation();
    std::atomic<bool> abandoned_{false};
    const std::shared_ptr<Shared> shared_;
    std::jthread thread_;
    // The last wait was in vain. Until there is room again nothing waits, or a disk that stands still
    // would cost the training `block_for` at each of its steps.
    bool stalled_ = false;
    std::mutex close_mutex_;
    bool is_closed_ = false;
    Status close_status_;
};

RunWriter::RunWriter(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

Result<std::unique_ptr<RunWriter>> RunWriter::open(storage::FileSystem& files, WriterOptions options) {
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
    format::FileHeader header;
    header.worker = worker;
    header.salt = random_salt();
    header.run_uuid = read_run_uuid(files, layout);
    TRAINDBG_ASSIGN_OR_RETURN(FrameFile log, FrameFile::create(files, layout.log(worker, 0), header));
    auto shared = std::make_shared<Shared>(options);
    auto scribe =
        std::make_unique<Scribe>(files, layout, header, std::move(log), options.sync_interval, shared);
    TRAINDBG_ASSIGN_OR_RETURN(std::jthread thread, start_thread(std::move(scribe)));
    return std::unique_ptr<RunWriter>(new RunWriter(
        std::make_unique<Impl>(std::move(options), worker, std::move(shared), std::move(thread))));
}

RunWriter::~RunWriter() {
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

void RunWriter::append(model::StepRecord&& record) noexcept {
    if (impl_->is_abandoned()) return;
    try {
        impl_->append(std::move(record));
    } catch (const std::exception& error) {
        impl_->count_lost_step();
        base::log_once(LogLevel::kError, "write.append", error.what());
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
