#include "traindbg/write/scribe.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>
#include <variant>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/base/text.h"
#include "traindbg/write/gone.h"

namespace traindbg::write {
namespace {

using base::ByteWriter;
using base::Code;
using base::LogLevel;
using base::Result;
using base::Status;
using format::FrameType;
using model::TensorInfo;
using std::chrono::nanoseconds;

constexpr std::size_t kBatchBytes = std::size_t{1} << 20;  // of encoded frames per append
constexpr nanoseconds kIdleWait = std::chrono::milliseconds(500);
// Between two rounds of the thread, so that a training of short steps does not wake it at each. A step
// is in the file that much later, and what writing takes.
constexpr nanoseconds kLinger = std::chrono::milliseconds(10);
constexpr std::size_t kTensorsPerFrame = 1000;

std::string reserve_path(const std::string& directory) { return directory + "/reserve"; }

// Whole tensors end at nine tenths of the quota, so that statistics have the rest.
std::uint64_t raw_quota(std::uint64_t quota) noexcept { return quota / 10 * 9; }

}  // namespace

Scribe::Scribe(storage::FileSystem& files, const WriterOptions& options, const format::FileHeader& header,
               FrameFile log, std::shared_ptr<storage::FileLock> lock, std::shared_ptr<SealThread> sealer,
               std::shared_ptr<Shared> shared)
    : files_(files),
      options_(options),
      layout_{options.run_directory},
      directory_(layout_.worker_directory(header.worker)),
      header_(header),
      log_(std::move(log)),
      directory_lock_(std::move(lock)),
      next_part_(header.part + 1),
      roll_at_bytes_(log_.size() + options.part_bytes),
      sealer_(std::move(sealer)),
      shared_(std::move(shared)) {}

void Scribe::run() noexcept {
    last_sync_nanos_ = base::monotonic_nanos();
    bool more = true;
    while (more) {
        try {
            more = work();
        } catch (const std::exception& error) {
            fail(Status(Code::kResourceExhausted, error.what()));
        }
    }
    try {
        static_cast<void>(give_reserve_back());
        if (!has_failed() && !shared_->is_left_behind.load(std::memory_order_relaxed)) hand_over_part();
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kDebug, "write.end", error.what());  // the part stays a log
    }
    discard_ring();
    directory_lock_.reset();
    {
        const std::lock_guard lock(shared_->mutex);
        shared_->is_finished = true;
    }
    shared_->changed.notify_all();
}

// One round: wait, encode what is there, append, sync when it is time. False: all is done.
bool Scribe::work() {
    std::optional<Item> item = shared_->queue.pop(wait_time());
    // Asked after the wait: a queue that is closed and empty now stays so.
    const bool is_last = !item && shared_->queue.closed() && shared_->queue.empty();
    while (item) {
        if (shared_->is_left_behind.load(std::memory_order_relaxed)) {
            shared_->drop(*item);
            break;
        }
        encode(std::move(*item));
        if (batch_.size() >= kBatchBytes) break;
        item = shared_->queue.pop(nanoseconds::zero());
    }
    if (shared_->is_left_behind.load(std::memory_order_relaxed)) {
        give_up();
        return false;
    }
    if (!reserve_was_tried_ && batch_.size() != 0) take_reserve();
    if (is_last) look_after_room(true);
    encode_pending();
    encode_dropped();
    if (is_last) encode_end();
    const std::uint32_t part = header_.part;
    commit();
    if (!is_last && log_is_open_ && is_part_full() && !has_failed()) roll();
    sync(is_last);
    if (is_last && header_.part != part) {
        // An error has begun a new part: the end of the record belongs there.
        encode_dropped();
        encode_end();
        commit();
        sync(true);
    }
    const bool in_file = !has_failed() && !is_paused();
    for (const std::shared_ptr<FlushMarker>& marker : markers_) marker->reach(in_file);
    markers_.clear();
    if (is_last) return false;
    look_after_room(false);
    if (!is_ring()) shared_->queue.linger(kLinger);  // of a ring the very last steps are what matters
    return true;
}

// Nobody waits any more: what is still queued or encoded is lost.
void Scribe::give_up() {
    drop_batch(0);
    shared_->drop_queued();
    for (const std::shared_ptr<FlushMarker>& marker : markers_) marker->reach(false);
    markers_.clear();
}

nanoseconds Scribe::wait_time() const {
    if (!is_dirty() || options_.sync_interval <= nanoseconds::zero() || has_failed() || is_paused())
        return std::min<nanoseconds>(kIdleWait, options_.probe_interval);
    const auto due = nanoseconds(last_sync_nanos_ - base::monotonic_nanos()) + options_.sync_interval;
    return std::clamp(due, nanoseconds::zero(), kIdleWait);
}

bool Scribe::is_dirty() const {
    return log_.is_dirty() || (blob_ && blob_->is_dirty()) || !full_blobs_.empty();
}

bool Scribe::has_failed() const noexcept { return shared_->has_failed.load(std::memory_order_relaxed); }

// ---- from records to frames

void Scribe::encode(Item item) {
    if (auto* step = std::get_if<StepItem>(&item)) {
        try {
            encode_step(*step);
        } catch (...) {
            shared_->count_dropped(step->tensors.size());  // nobody else has it in hand
            throw;
        }
        shared_->give_spare(std::move(step->record));
    } else if (const auto* event = std::get_if<format::EventRecord>(&item)) {
        encode_event(*event);
    } else if (auto* marker = std::get_if<std::shared_ptr<FlushMarker>>(&item)) {
        markers_.push_back(std::move(*marker));
    } else {
        keep_ring();
    }
}

void Scribe::encode_step(StepItem& item) {
    encode_pending();  // what the step refers to was added before it
    if (has_failed() || is_paused()) return shared_->count_dropped(item.tensors.size());
    write_raw(item);
    payload_.clear();
    if (format::encode_step(payload_, item.record, table_, places_, element_counts_) != 0)
        base::log_once(LogLevel::kWarning, "write.classes",
                       "a step has too many classes or channels to record them all; some are left out");
    const Status status = log_.add(batch_, FrameType::kStep, payload_.bytes());
    if (status.is_ok()) {
        steps_.push_back({batch_.size(), places_.size()});
        shared_->raw_tensors_dropped.fetch_add(item.tensors.size() - places_.size(),
                                               std::memory_order_relaxed);
        return;
    }
    shared_->count_dropped(item.tensors.size());
    base::log_once(LogLevel::kWarning, "write.step_too_large",
                   base::format("a step could not be recorded: {}", status.message()));
}

void Scribe::encode_event(const format::EventRecord& event) {
    if (has_failed() || is_paused()) return;
    payload_.clear();
    format::encode_event(payload_, event);
    if (!log_.add(batch_, FrameType::kEvent, payload_.bytes()).is_ok())
        base::log_once(LogLevel::kWarning, "write.event_too_large",
                       base::format("an event of kind '{}' is too large to record", event.kind));
}

// New tensors and the worker's description: they come before everything that was handed over after them.
void Scribe::encode_pending() {
    if (!shared_->has_pending.exchange(false)) return;
    std::vector<TensorInfo> tensors;
    std::optional<model::WorkerMeta> meta;
    {
        const std::lock_guard lock(shared_->mutex);
        tensors = std::exchange(shared_->pending_tensors, {});
        meta = std::exchange(shared_->pending_meta, std::nullopt);
    }
    if (has_failed()) return;
    if (meta) meta_ = std::move(meta);
    // While nothing is written they wait in the table for the next part, which repeats all of it.
    const bool writes = !is_paused();
    if (writes && meta_) {
        payload_.clear();
        format::encode_worker(payload_, *meta_);
        // A description cannot become as large as a frame; if it did, the run is whole without it.
        log_.add(batch_, FrameType::kWorker, payload_.bytes()).ignore();
    }
    if (writes) encode_schema(batch_, log_, tensors);
    for (TensorInfo& info : tensors) {
        // By number, as readers do it: one that was lost for want of memory must not move others.
        const std::size_t least = std::size_t{info.id} + 1;
        if (table_.size() < least) table_.resize(least);
        if (element_counts_.size() < least) element_counts_.resize(least, format::kNotDescribed);
        element_counts_[info.id] = format::element_count(info.shape);
        table_[info.id] = std::move(info);
    }
}

// `tensors` are as they were afterwards.
void Scribe::encode_schema(ByteWriter& out, FrameFile& log, std::vector<TensorInfo>& tensors) {
    for (std::size_t begin = 0; begin < tensors.size(); begin += kTensorsPerFrame) {
        const auto first = tensors.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last =
            tensors.begin() + static_cast<std::ptrdiff_t>(std::min(tensors.size(), begin + kTensorsPerFrame));
        std::vector<TensorInfo> some(std::make_move_iterator(first), std::make_move_iterator(last));
        payload_.clear();
        format::encode_schema(payload_, some);
        std::move(some.begin(), some.end(), first);
        if (const Status status = log.add(out, FrameType::kSchema, payload_.bytes()); !status.is_ok())
            fail(Status(status.code(), "the tensors' descriptions: " + status.message()));
    }
}

format::TotalsRecord Scribe::totals() const {
    return {base::wall_nanos(), shared_->steps_written.load(std::memory_order_relaxed) + steps_.size(),
            shared_->steps_dropped.load(std::memory_order_relaxed),
            shared_->raw_tensors_dropped.load(std::memory_order_relaxed)};
}

void Scribe::encode_totals(FrameType type, const format::TotalsRecord& totals) {
    payload_.clear();
    format::encode_totals(payload_, totals);
    log_.add(batch_, type, payload_.bytes()).ignore();  // some 40 bytes always fit
}

void Scribe::encode_dropped() {
    const format::TotalsRecord now = totals();
    if (has_failed() || is_paused() ||
        (now.steps_dropped == told_.steps_dropped && now.raw_tensors_dropped == told_.raw_tensors_dropped))
        return;
    encode_totals(FrameType::kDropped, now);
    told_ = now;
}

void Scribe::encode_end() {
    if (!has_failed() && !is_paused()) encode_totals(FrameType::kEnd, totals());
}

// ---- to the files

// Puts the step's whole tensors into the blob, and where they lie into `places_`: before the step itself,
// whose frame says that they are there. After an error of that file the steps go on without them.
void Scribe::write_raw(StepItem& item) {
    places_.clear();
    if (item.tensors.empty() || raw_failed_ || raw_shortage_ != Shortage::kNone) return;
    if (options_.retention.quota_bytes != 0 && bytes_used() >= raw_quota(options_.retention.quota_bytes))
        return stop_raw(Shortage::kQuota,
                        base::format("{}: nine tenths of the quota of {} are used up", directory_,
                                     base::human_bytes(options_.retention.quota_bytes)));
    if (blob_ && blob_->size() >= options_.blob_bytes) end_blob();
    Status status;
    if (!blob_) status = start_blob(item.record);
    if (status.is_ok()) status = blob_->append(item.tensors, places_);
    update_bytes_written();
    if (status.is_ok()) return;
    end_blob();  // what is whole in it stays; nothing is added any more
    on_raw_error(status);
}

Status Scribe::start_blob(const model::StepRecord& first) {
    // A file that could not be begun may be there still: its number is used up.
    Result<BlobFile> created = BlobFile::create(files_, layout_, header_, next_blob_++, !is_ring());
    if (!created) return created.status();
    blob_.emplace(std::move(created).value());
    // For those who remove old ones: the blobs before this one hold nothing of this step or a later one.
    format::EventRecord event{first.wall_nanos, "blob", {}};
    event.json = base::format(R"({{"blob": {}, "mode": "{}", "step": {}}})", blob_->number(),
                              model::to_string(first.mode), first.step);
    encode_event(event);
    return Status::ok();
}

void Scribe::end_blob() {
    if (!blob_) return;
    closed_bytes_ += blob_->size();
    // Where nothing is ever synced nobody would let it go.
    if (options_.sync_interval > nanoseconds::zero()) full_blobs_.push_back(std::move(*blob_));
    blob_.reset();
}

// Appends the batch. What an error left of it is found by the file's size.
void Scribe::commit() {
    if (batch_.size() == 0) return;
    if (has_failed() || is_paused()) return drop_batch(0);
    const std::uint64_t before = log_.size();
    Status status = log_.append(batch_.bytes());
    if (status.code() == Code::kResourceExhausted) {
        // The disk is full: whole tensors stop, and the rest gets the room that was set aside.
        if (give_reserve_back()) {
            stop_raw(Shortage::kDisk, status.message());
            status = log_.append(base::ByteSpan(batch_.bytes()).subspan(log_.size() - before));
        }
    }
    update_bytes_written();
    const std::uint64_t kept = status.is_ok() ? batch_.size() : log_.size() - before;
    drop_batch(kept);
    if (!status.is_ok()) on_log_error(status);
}

// Accounts for the batch, of which `kept` bytes are in the file, and empties it.
void Scribe::drop_batch(std::uint64_t kept) {
    for (const BatchedStep& step : steps_) {
        if (step.end > kept) {
            shared_->count_dropped(step.raw_tensors);
            continue;
        }
        shared_->steps_written.fetch_add(1, std::memory_order_relaxed);
        ++part_steps_;
    }
    steps_.clear();
    batch_.clear();
}

void Scribe::sync(bool at_once) {
    if (options_.sync_interval <= nanoseconds::zero() || has_failed() || !log_is_open_ || !is_dirty()) return;
    const std::int64_t now = base::monotonic_nanos();
    if (!at_once && nanoseconds(now - last_sync_nanos_) < options_.sync_interval) return;
    const Status status = sync_all();
    last_sync_nanos_ = base::monotonic_nanos();
    if (!status.is_ok()) on_log_error(status);
}

// A step must not outlive the tensors that it names: their files come first, each of them, whatever became
// of the others.
Status Scribe::sync_all() {
    for (BlobFile& blob : full_blobs_)
        if (const Status status = blob.sync(); !status.is_ok()) on_raw_error(status);
    full_blobs_.clear();
    if (blob_) {
        if (const Status status = blob_->sync(); !status.is_ok()) {
            // Nothing is added to a file whose sync failed; it is not synced again either.
            closed_bytes_ += blob_->size();
            blob_.reset();
            on_raw_error(status);
        }
    }
    return log_.sync();
}

void Scribe::update_bytes_written() {
    shared_->bytes_written.store(closed_bytes_ + log_.size() + (blob_ ? blob_->size() : 0),
                                 std::memory_order_relaxed);
}

// ---- parts

// Begins the next part: with all that a reader of that part alone has to know. After an error the part under
// way is as it was.
Status Scribe::start_part() {
    format::FileHeader header = header_;
    header.part = next_part_;
    header.salt = random_salt();
    const std::string path = layout_.log(header.worker, header.part);
    // A number is used up by a file that stands there, not by one that could not be made.
    const auto take_back = [&](const Status& status) {
        const Status removed = status.code() == Code::kAlreadyExists ? status : files_.remove(path);
        if (!removed.is_ok() && removed.code() != Code::kNotFound) ++next_part_;
        return status;
    };
    Result<FrameFile> created = FrameFile::create(files_, path, header);
    if (!created) return take_back(created.status());
    FrameFile log = std::move(created).value();
    ByteWriter preamble;
    if (meta_) {
        payload_.clear();
        format::encode_worker(payload_, *meta_);
        log.add(preamble, FrameType::kWorker, payload_.bytes()).ignore();
    }
    std::vector<TensorInfo> known;
    for (const TensorInfo& info : table_)
        if (!info.name.empty()) known.push_back(info);
    encode_schema(preamble, log, known);
    if (const Status status = log.append(preamble.bytes()); !status.is_ok()) return take_back(status);
    ++next_part_;
    header_ = header;
    log_ = std::move(log);
    log_is_open_ = true;
    roll_at_bytes_ = log_.size() + options_.part_bytes;
    told_ = {};  // each part says itself what was lost until then
    return Status::ok();
}

// Begins the next part and hands the one under way to the sealer; after an error it is as it was.
Status Scribe::replace_part() {
    const std::uint32_t finished = header_.part;
    const std::uint64_t bytes = log_.size();
    TRAINDBG_RETURN_IF_ERROR(start_part());
    closed_bytes_ += bytes;
    if (is_ring()) end_ring_part(finished);
    if (sealer_) sealer_->add(finished, blob_ ? blob_->number() : next_blob_, closed_bytes_);
    return Status::ok();
}

// The part is full.
void Scribe::roll() {
    if (options_.sync_interval > nanoseconds::zero()) {
        if (const Status status = sync_all(); !status.is_ok()) return on_log_error(status);
        last_sync_nanos_ = base::monotonic_nanos();
    }
    if (const Status status = replace_part(); !status.is_ok()) {
        roll_at_bytes_ = log_.size() + options_.part_bytes / 4;
        part_steps_ = 0;  // not at the next step again
        if (is_gone(status)) return;
        base::log_once(LogLevel::kWarning, "write.roll",
                       base::format("the log goes on in a part that is full already: {}", status.message()));
    }
}

// A ring's parts are full by steps, so that it is known how many they hold, or where two of them would not
// fit into the quota: then it holds fewer, but the latest ones.
bool Scribe::is_part_full() const noexcept {
    if (!is_ring()) return log_.size() >= roll_at_bytes_;
    if (part_steps_ >= options_.ring_steps) return true;
    const std::uint64_t quota = options_.retention.quota_bytes;
    const std::uint64_t bytes = closed_bytes_ - part_begin_bytes_ + log_.size() + (blob_ ? blob_->size() : 0);
    return quota != 0 && part_steps_ != 0 && bytes >= raw_quota(quota) / 3;
}

// The parts that are there are not the ring's any more.
void Scribe::keep_ring() {
    if (!is_ring()) return;
    const std::uint64_t quota = options_.retention.quota_bytes;
    if (quota != 0 && kept_bytes_ >= quota)
        return base::log_once(LogLevel::kWarning, "write.keep_ring",
                              base::format("{}: what was kept takes {} already; no more is kept", directory_,
                                           base::human_bytes(kept_bytes_)));
    commit();
    keeps_any_ = true;
    if (ring_part_) {
        kept_bytes_ += ring_part_->bytes;
        removed_bytes_ += ring_part_->bytes;
        ring_part_.reset();
    }
    keeps_part_ = part_steps_ != 0;
    if (keeps_part_ && log_is_open_ && !has_failed()) roll();
}

// The next part has begun: what was full before this one goes.
void Scribe::end_ring_part(std::uint32_t part) {
    end_blob();
    if (ring_part_) {
        remove_ring_part(ring_part_->part, ring_part_->first_blob, ring_part_->end_blob);
        removed_bytes_ += ring_part_->bytes;
        ring_part_.reset();
    }
    const std::uint64_t bytes = closed_bytes_ - part_begin_bytes_;
    if (std::exchange(keeps_part_, false)) {
        kept_bytes_ += bytes;
        removed_bytes_ += bytes;
    } else {
        ring_part_ = {part, part_first_blob_, next_blob_, bytes};
    }
    part_begin_bytes_ = closed_bytes_;
    part_first_blob_ = next_blob_;
    part_steps_ = 0;
}

// After the end, when nothing of it is to be kept: all that there is, the directory, too.
void Scribe::discard_ring() noexcept {
    if (!is_ring() || keeps_any_ || shared_->is_left_behind.load(std::memory_order_relaxed)) return;
    try {
        log_.close();
        log_is_open_ = false;
        blob_.reset();
        if (ring_part_) remove_ring_part(ring_part_->part, ring_part_->first_blob, ring_part_->end_blob);
        remove_ring_part(header_.part, part_first_blob_, next_blob_);
        files_.remove(layout_.ring(header_.worker)).ignore();
        files_.remove(layout_.lock(header_.worker)).ignore();
        files_.remove(directory_).ignore();
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kDebug, "write.ring", error.what());  // it stays
    }
}

void Scribe::remove_ring_part(std::uint32_t part, std::uint32_t first_blob, std::uint32_t end_blob) noexcept {
    try {
        files_.remove(layout_.log(header_.worker, part)).ignore();
        for (std::uint32_t blob = first_blob; blob < end_blob; ++blob)
            files_.remove(layout_.blob(header_.worker, blob)).ignore();
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kDebug, "write.ring", error.what());
    }
}

// After the end: the last part.
void Scribe::hand_over_part() {
    if (!sealer_ || !log_is_open_) return;
    const std::uint64_t closed_bytes = closed_bytes_ + log_.size();
    log_.close();
    log_is_open_ = false;
    sealer_->add(header_.part, next_blob_, closed_bytes);
}

// The part ended with an error: what is whole in it stays.
void Scribe::on_log_error(const Status& status) {
    drop_batch(0);
    log_is_open_ = false;
    if (status.code() == Code::kResourceExhausted) {
        // At a sync the room that was set aside is there still: a new part gets it.
        if (!give_reserve_back() || !replace_part().is_ok()) return pause(Shortage::kDisk, status);
        return stop_raw(Shortage::kDisk, status.message());
    }
    if (is_gone(status)) return;
    if (was_restarted_) return fail(status);
    was_restarted_ = true;
    if (const Status started = replace_part(); !started.is_ok()) {
        if (started.code() == Code::kResourceExhausted) return pause(Shortage::kDisk, started);
        return fail(status);
    }
    shared_->tell_failure(status.message());
    base::log(LogLevel::kWarning,
              base::format("recording goes on in a new file after an error: {}", status.message()));
}

void Scribe::fail(const Status& status) noexcept {
    drop_batch(0);
    if (shared_->has_failed.exchange(true)) return;
    shared_->raw_is_off.store(true, std::memory_order_relaxed);
    try {
        shared_->tell_failure(status.message());
        base::log(LogLevel::kError,
                  base::format("recording ends here, the training goes on: {}", status.message()));
    } catch (const std::exception&) {
        return;  // the flag is set; only the words are missing
    }
}

// Whether the error is of a directory that is not there any more: nothing is written then, and it is told.
bool Scribe::is_gone(const Status& status) {
    if (!tell_if_gone(files_, layout_, header_.worker, options_.is_loss_told)) return false;
    drop_batch(0);
    shared_->raw_is_off.store(true, std::memory_order_relaxed);
    if (!shared_->has_failed.exchange(true)) shared_->tell_failure(status.message());
    return true;
}

// A disk that is full may have room again; another error ends whole tensors for good.
void Scribe::on_raw_error(const Status& status) {
    if (status.code() == Code::kResourceExhausted) return stop_raw(Shortage::kDisk, status.message());
    if (raw_failed_ || is_gone(status)) return;
    raw_failed_ = true;
    shared_->raw_is_off.store(true, std::memory_order_relaxed);
    shared_->tell_failure(status.message());
    base::log(LogLevel::kError,
              base::format("whole tensors are not recorded any more, statistics are: {}", status.message()));
}

// ---- a disk that gets full

// Room that nobody else can take, so that statistics go on for a while when the disk is full.
void Scribe::take_reserve() {
    reserve_was_tried_ = true;
    if (options_.reserve_bytes == 0 || reserve_) return;
    const std::string path = reserve_path(directory_);
    Result<std::unique_ptr<storage::AppendFile>> file = files_.create(path);
    if (!file) return;  // the log's own errors say more
    if (!(*file)->reserve(options_.reserve_bytes).is_ok()) {
        files_.remove(path).ignore();
        return;
    }
    reserve_ = std::move(file).value();
}

// False: there is none.
bool Scribe::give_reserve_back() {
    if (!reserve_) return false;
    // Closing frees nothing while a child made by `fork` has the file open, too.
    reserve_->reserve(0).ignore();
    reserve_.reset();
    return files_.remove(reserve_path(directory_)).is_ok();
}

std::uint64_t Scribe::bytes_used() const {
    // What the sealer found last, what was closed since then, and what is open.
    const SealThread::Kept kept = sealer_ ? sealer_->kept() : SealThread::Kept{};
    const std::uint64_t open = log_.size() + (blob_ ? blob_->size() : 0);
    const std::uint64_t closed = closed_bytes_ - removed_bytes_;
    return kept.bytes + (closed - std::min(closed, kept.closed_bytes)) + open;
}

void Scribe::stop_raw(Shortage why, const std::string& reason) {
    if (raw_shortage_ != Shortage::kNone) return;
    raw_shortage_ = why;
    last_probe_nanos_ = base::monotonic_nanos();
    shared_->raw_is_off.store(true, std::memory_order_relaxed);
    if (std::exchange(raw_stop_was_told_, true)) return;
    shared_->tell_failure(reason);
    if (why == Shortage::kQuota)
        return base::log(LogLevel::kWarning,
                         base::format("whole tensors are not recorded for now, statistics are: {}", reason));
    disk_was_told_ = true;
    const std::string_view what =
        next_blob_ == 0 ? "recording goes on in the room that was set aside, and pauses when that is used up"
                        : "whole tensors are not recorded for now, statistics while there is room for them";
    base::log(LogLevel::kWarning,
              base::format("the disk is full: {}; the training goes on: {}", what, reason));
}

void Scribe::pause(Shortage why, const Status& status) {
    if (is_paused()) return;
    // What pauses all is told, and not that it stops whole tensors as well.
    raw_stop_was_told_ = true;
    stop_raw(why, status.message());
    pause_ = why;
    shared_->is_paused.store(true, std::memory_order_relaxed);
    last_probe_nanos_ = base::monotonic_nanos();
    shared_->tell_failure(status.message());
    if (std::exchange(pause_was_told_, true) || (why == Shortage::kDisk && disk_was_told_)) return;
    base::log(
        LogLevel::kError,
        base::format("recording pauses and goes on by itself when there is room, the training goes on: {}",
                     status.message()));
}

// Stops at the quota, and goes on with what was stopped for want of room when there is some again.
void Scribe::look_after_room(bool is_last) {
    if (has_failed()) return;
    const std::uint64_t quota = options_.retention.quota_bytes;
    if (is_last && pause_ == Shortage::kQuota) {
        // The end of the record, and what is missing in it, has some hundred bytes.
        pause_ = Shortage::kNone;
        return;
    }
    // A ring makes room for itself.
    if (!is_paused() && !is_last && !is_ring() && quota != 0 && bytes_used() >= quota)
        return pause(
            Shortage::kQuota,
            Status(Code::kResourceExhausted,
                   base::format("{}: the quota of {} is used up; raise it, or let older steps be thinned",
                                directory_, base::human_bytes(quota))));
    if (raw_shortage_ == Shortage::kNone && !is_paused()) return;
    const std::int64_t now = base::monotonic_nanos();
    // A ring has room again as soon as it has removed a part.
    const bool waits = !is_ring() || raw_shortage_ != Shortage::kQuota;
    if (!is_last && waits && nanoseconds(now - last_probe_nanos_) < options_.probe_interval) return;
    last_probe_nanos_ = now;
    const std::uint64_t used = quota == 0 ? 0 : bytes_used();
    if (quota != 0 && used >= (is_paused() ? quota : raw_quota(quota))) return;
    // Not at the first free block: room for the reserve and as much again.
    const Result<std::uint64_t> free = files_.free_bytes(directory_);
    if (!free || *free < 2 * options_.reserve_bytes) return;
    if (is_paused() && !resume()) return;
    if (!is_last) take_reserve();
    if (quota != 0 && used >= raw_quota(quota)) return;  // statistics only
    raw_shortage_ = Shortage::kNone;
    if (!raw_failed_) shared_->raw_is_off.store(false, std::memory_order_relaxed);
}

bool Scribe::resume() {
    if (!log_is_open_) {
        if (!replace_part().is_ok()) return false;
    } else {
        // The part goes on, but what was described meanwhile stands in the table only. The first
        // description of a tensor counts: told twice is told once.
        std::vector<TensorInfo> known;
        for (const TensorInfo& info : table_)
            if (!info.name.empty()) known.push_back(info);
        if (meta_) {
            payload_.clear();
            format::encode_worker(payload_, *meta_);
            log_.add(batch_, FrameType::kWorker, payload_.bytes()).ignore();
        }
        encode_schema(batch_, log_, known);
    }
    pause_ = Shortage::kNone;
    shared_->is_paused.store(false, std::memory_order_relaxed);
    base::log_once(LogLevel::kInfo, "write.resumed", "there is room again: recording goes on");
    return true;
}

}  // namespace traindbg::write
