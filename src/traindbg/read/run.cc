#include "traindbg/read/run.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_set>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/format/records.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run_impl.h"
#include "traindbg/read/salvaging_file.h"
#include "traindbg/storage/plan_files.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::read {
namespace {

using base::ByteBuffer;
using base::Code;
using base::Result;
using base::Status;
using format::FrameType;
using internal::WorkerState;
using model::Mode;
using model::StepIndex;
using model::StepRecord;
using model::WorkerId;

constexpr std::uint64_t kMostJsonBytes = 16ULL << 20;
constexpr std::size_t kMostDamage = 1000;
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::hours(24);
// Whole tensors are fetched together when no more than the first lies between them, and in all no more
// than the second.
constexpr std::uint64_t kMostGapBytes = 16 << 10;
constexpr std::uint64_t kMostStretchBytes = 4 << 20;

// After so many looks in a row that failed, a part is taken for one that nobody can read.
constexpr unsigned kMostLooks = 3;
// Of what lies between whole tensors, so much is looked at with one call.
constexpr std::uint64_t kGapWindowBytes = 1 << 20;

std::string_view text_of(const ByteBuffer& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool is_damage(const Status& status) {
    return status.code() == Code::kDataLoss || status.code() == Code::kUnsupported;
}

// It may go well the next time.
bool is_passing(const Status& status) {
    return status.code() == Code::kUnavailable || status.code() == Code::kResourceExhausted;
}

const model::WorkerMeta kNoMeta;
const model::TensorTable kNoTensors;

}  // namespace

// ---------------------------------------------------------------------------------- opening

Result<std::unique_ptr<Run::Impl>> Run::Impl::open(const std::string& path, storage::FileSystem& files) {
    std::string root = path;
    while (root.size() > 1 && root.back() == '/') root.pop_back();
    auto impl = std::unique_ptr<Impl>(new Impl(root, files));
    const Result<ByteBuffer> bytes = storage::read_whole(files, impl->layout_.run_json(), kMostJsonBytes);
    if (!bytes) {
        if (bytes.status().code() == Code::kNotFound)
            return Status(Code::kNotFound, base::format("{} is not a traindbg run (no RUN.json)", root));
        return bytes.status();
    }
    Result<model::RunMeta> meta = model::run_meta_from_json(text_of(*bytes));
    // The description is for people; the record is whole without it.
    if (!meta)
        impl->own_damage_.push_back(
            {impl->layout_.run_json(), 0, bytes->size(), meta.status().message(), false});
    else if (model::check_text(text_of(*bytes)) == model::TextCheck::kDamaged)
        impl->own_damage_.push_back(
            {impl->layout_.run_json(), 0, bytes->size(), std::string(model::kWrongText), false});
    if (meta) impl->meta_ = std::move(meta).value();
    TRAINDBG_RETURN_IF_ERROR(impl->refresh().status());
    return impl;
}

Result<bool> Run::Impl::refresh() {
    bool is_new = false;
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, files_.list(layout_.root));
    unread_.clear();
    passing_trouble_ = trouble_ = Status::ok();
    for (const storage::DirectoryEntry& entry : entries) {
        if (!entry.is_directory) continue;
        const std::optional<WorkerId> worker = storage::parse_worker_directory(entry.name);
        if (!worker) continue;
        const Result<bool> worker_is_new = refresh_worker(*worker);
        if (worker_is_new.is_ok()) {
            is_new = is_new || *worker_is_new;
            continue;
        }
        // What cannot be read does not hide the other workers.
        trouble_ = worker_is_new.status();
        if (is_passing(trouble_)) passing_trouble_ = trouble_;
        note_unread(layout_.worker_directory(*worker), trouble_);
    }
    const bool has_any = std::any_of(workers_.begin(), workers_.end(),
                                     [](const auto& entry) { return entry.second->has_log; });
    if (!has_any && !refused_.is_ok()) return refused_;
    if (!has_any && !trouble_.is_ok()) return trouble_;
    return is_new;
}

bool Run::Impl::watch_all(internal::DirectoryWatcher& watcher) const {
    bool any = watcher.watch_run(layout_.root);
    for (const auto& [id, worker] : workers_) any = watcher.watch_worker(layout_.worker_directory(id)) || any;
    return any;
}

Result<bool> Run::Impl::wait(std::chrono::nanoseconds patience) {
    if (!watcher_) watcher_ = std::make_unique<internal::DirectoryWatcher>();
    const std::int64_t deadline =
        base::monotonic_nanos() + std::clamp(patience, std::chrono::nanoseconds(0), kLongestWait).count();
    while (true) {
        watcher_->drain();
        TRAINDBG_ASSIGN_OR_RETURN(const bool is_new, refresh());
        // A worker that was found just now may have written between the look and its watch.
        const bool look_again = watch_all(*watcher_);
        if (is_new) return true;
        if (look_again) continue;
        const std::chrono::nanoseconds left(deadline - base::monotonic_nanos());
        if (left <= std::chrono::nanoseconds::zero()) return false;
        watcher_->wait(left);
    }
}

Result<std::map<std::uint32_t, internal::PartFiles>> Run::Impl::list_parts(WorkerId id) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries,
                              files_.list(layout_.worker_directory(id)));
    std::unique_ptr<WorkerState>& slot = workers_[id];
    if (!slot) slot = std::make_unique<WorkerState>();
    WorkerState& worker = *slot;
    std::map<std::uint32_t, internal::PartFiles> found;
    worker.blob_numbers.clear();
    for (const storage::DirectoryEntry& entry : entries) {
        if (!entry.is_regular) continue;
        if (entry.name == "removed.json") worker.has_removals = true;
        if (entry.name == "ring") worker.is_ring = true;
        if (const auto number = storage::parse_part(entry.name, ".blob")) worker.blob_numbers.insert(*number);
        if (const auto part = storage::parse_part(entry.name, ".log")) found[*part].log = true;
        else if (const auto sealed = storage::parse_part(entry.name, ".seg")) found[*sealed].segment = true;
    }
    return found;
}

Result<bool> Run::Impl::poll_log(WorkerId id, WorkerState& worker, internal::LogPart& log) {
    return log.poll([&](std::uint64_t offset, const format::Frame& frame) {
        if (const Status status = take_frame(id, worker, frame, log.number()); !status.is_ok())
            log.note(offset, frame.bytes, status.message());
    });
}

Result<bool> Run::Impl::refresh_worker(WorkerId id) {
    auto listed = list_parts(id);
    // A list is no picture of one moment: where a log becomes a segment meanwhile, it may show neither, and
    // the steps of the parts behind would come first. The segment was there before the log went.
    if (listed.is_ok() && !find(id)->is_covered_by(*listed)) listed = list_parts(id);
    if (!listed) {
        if (listed.status().code() == Code::kNotFound) return false;  // just removed
        return listed.status();
    }
    WorkerState& worker = *find(id);
    const std::map<std::uint32_t, internal::PartFiles>& found = *listed;
    bool is_new = false;
    for (const auto& [number, part] : worker.parts) {
        auto* const log = dynamic_cast<internal::LogPart*>(part.get());
        if (log == nullptr || found.contains(number) || worker.gone.contains(number)) continue;
        // Retention took it; who has it open reads it to its end.
        const Result<bool> polled = poll_log(id, worker, *log);
        if (is_passing(polled.status())) return polled.status();
        if (polled.is_ok() && *polled) is_new = true;
        worker.gone.insert(number);
    }
    std::erase_if(worker.unread, [&](const auto& entry) { return !found.contains(entry.first); });
    for (const auto& [number, kinds] : found) {  // in the order of writing
        worker.gone.erase(number);
        if (worker.refused.contains(number)) continue;
        const Status status = refresh_part(id, worker, number, kinds, is_new);
        if (status.is_ok()) {
            worker.unread.erase(number);
            continue;
        }
        if (status.code() == Code::kNotFound) break;  // just sealed: the next look finds the segment
        if (is_passing(status)) return status;        // the steps behind it would come first
        // For what nobody can read, those behind it do not wait.
        internal::UnreadPart& unread = worker.unread[number];
        unread.file = kinds.log ? layout_.log(id, number) : layout_.segment(id, number);
        ++unread.looks;
        trouble_ = status;
        note_unread(unread.file, status);
    }
    return is_new;
}

Status Run::Impl::refresh_part(WorkerId id, WorkerState& worker, std::uint32_t number,
                               const internal::PartFiles& kinds, bool& is_new) {
    const auto known = worker.parts.find(number);
    auto* log = known == worker.parts.end() ? nullptr : dynamic_cast<internal::LogPart*>(known->second.get());
    if (known != worker.parts.end() && log == nullptr) return Status::ok();  // sealed: it does not change
    if (kinds.segment && (log == nullptr || !kinds.log)) {
        if (log != nullptr) {
            // The log that was followed is gone, but not for who has it open: to its end first.
            const Result<bool> polled = poll_log(id, worker, *log);
            if (polled.is_ok() && *polled) is_new = true;
        }
        TRAINDBG_ASSIGN_OR_RETURN(const bool opened, open_segment(id, worker, number, kinds.log, is_new));
        if (opened) return Status::ok();
    }
    if (log == nullptr) {
        if (!kinds.log) return Status::ok();
        const std::string path = layout_.log(id, number);
        TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::ReadFile> file, open_file(path));
        auto added = std::make_unique<internal::LogPart>(std::move(file), path, number);
        log = added.get();
        worker.parts[number] = std::move(added);
    }
    const std::uint64_t rows_before = log->rows();
    const Result<bool> polled = poll_log(id, worker, *log);
    if (polled.status().code() == Code::kUnsupported) {
        refuse(worker, number, log->name(), polled.status());
        worker.parts.erase(number);
        return Status::ok();
    }
    is_new = is_new || (polled.is_ok() ? *polled : log->rows() != rows_before);
    return polled.status();
}

Result<std::unique_ptr<storage::ReadFile>> Run::Impl::open_file(const std::string& path) {
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::ReadFile> file, files_.open(path));
    return internal::salvaging(std::move(file),
                               [this, path](std::uint64_t offset, std::uint64_t bytes, const Status& status) {
                                   if (own_damage_.size() < kMostDamage &&
                                       lost_.emplace(path, offset / internal::kSalvageBlockBytes).second)
                                       own_damage_.push_back({path, offset, bytes, status.message(), false});
                               });
}

void Run::Impl::refuse(WorkerState& worker, std::uint32_t number, const std::string& file,
                       const Status& status) {
    // With a message when it is all there is; damage beside other files.
    worker.refused.insert(number);
    if (refused_.is_ok()) refused_ = status;
    own_damage_.push_back({file, 0, 0, status.message(), false, true});
}

Result<bool> Run::Impl::open_segment(WorkerId id, WorkerState& worker, std::uint32_t number,
                                     bool log_is_there, bool& is_new) {
    const std::string path = layout_.segment(id, number);
    Result<std::unique_ptr<storage::ReadFile>> file = open_file(path);
    if (!file) {
        if (file.status().code() == Code::kNotFound) return false;
        return file.status();
    }
    TRAINDBG_ASSIGN_OR_RETURN(internal::SegmentPart::Opened opened,
                              internal::SegmentPart::open(std::move(file).value(), path, number, decoder_));
    if (!opened.part) {
        if (log_is_there) {
            own_damage_.push_back({path, 0, 0, opened.refused.message() + "; its log is read instead", false,
                                   opened.refused.code() == Code::kUnsupported});
            return false;
        }
        worker.refused.insert(number);
        // Of a newer format: with a message when it is all there is; damage beside other files.
        const bool newer = opened.refused.code() == Code::kUnsupported;
        if (newer && refused_.is_ok()) refused_ = opened.refused;
        own_damage_.push_back({path, 0, 0, opened.refused.message(), false, newer});
        return true;
    }
    internal::SegmentPart& part = *opened.part;
    const auto before = worker.parts.find(number);
    // A log that was followed so far and is gone now holds the same steps in the same order, unless the
    // segment was thinned since: then the open log is the better one.
    const std::uint64_t rows_before = before == worker.parts.end() ? 0 : before->second->rows();
    if (part.rows() < rows_before) return false;
    const bool is_same_schema = before == worker.parts.end() && !worker.tensors.empty() &&
                                part.footer().schema_checksum != 0 &&
                                part.footer().schema_checksum == worker.schema_checksum;
    // What the log told already is not taken twice; descriptions may be.
    std::size_t events_to_skip = worker.events_of_logs[number];
    std::uint32_t schema_checksum = 0;
    TRAINDBG_RETURN_IF_ERROR(
        part.visit_frames(!is_same_schema, [&](std::uint64_t offset, const format::Frame& frame) {
            if (frame.type == FrameType::kEvent && events_to_skip != 0) {
                --events_to_skip;
                return;
            }
            if (frame.type == FrameType::kSchema)
                schema_checksum = base::crc32c(frame.payload, schema_checksum);
            if (const Status status = take_frame(id, worker, frame, number); !status.is_ok())
                part.note(offset, frame.bytes, status.message());
        }));
    // Where some descriptions are damaged, the next part's are read, too.
    if (!is_same_schema)
        worker.schema_checksum = schema_checksum == part.footer().schema_checksum ? schema_checksum : 0;
    is_new = is_new || before == worker.parts.end() || part.rows() > rows_before ||
             part.footer().has_ended != worker.has_ended;
    worker.has_log = true;
    worker.has_ended = worker.has_ended || part.footer().has_ended;
    worker.steps_dropped = std::max(worker.steps_dropped, part.footer().steps_dropped);
    worker.raw_tensors_dropped = std::max(worker.raw_tensors_dropped, part.footer().raw_tensors_dropped);
    worker.parts[number] = std::move(opened.part);
    return true;
}

Status Run::Impl::take_frame(WorkerId id, WorkerState& worker, const format::Frame& frame,
                             std::uint32_t part) {
    switch (frame.type) {
        case FrameType::kFileHeader: worker.has_log = true; break;
        case FrameType::kSchema: return format::decode_schema(frame.payload, worker.tensors);
        case FrameType::kWorker: {
            TRAINDBG_ASSIGN_OR_RETURN(worker.meta, format::decode_worker(frame.payload));
            worker.meta.worker = id;
            break;
        }
        case FrameType::kEvent: {
            ++worker.events_of_logs[part];
            TRAINDBG_ASSIGN_OR_RETURN(format::EventRecord event, format::decode_event(frame.payload));
            events_.push_back({id, event.wall_nanos, std::move(event.kind), std::move(event.json)});
            break;
        }
        case FrameType::kDropped:
        case FrameType::kEnd: {
            TRAINDBG_ASSIGN_OR_RETURN(const format::TotalsRecord told, format::decode_totals(frame.payload));
            worker.steps_dropped = std::max(worker.steps_dropped, told.steps_dropped);
            worker.raw_tensors_dropped = std::max(worker.raw_tensors_dropped, told.raw_tensors_dropped);
            if (frame.type == FrameType::kEnd) worker.has_ended = true;
            break;
        }
        default: break;  // of no interest here, or of a newer version
    }
    return Status::ok();
}

const std::vector<Damage>& Run::Impl::damage() {
    damage_ = own_damage_;
    damage_.insert(damage_.end(), unread_.begin(), unread_.end());
    damage_.insert(damage_.end(), verified_damage_.begin(), verified_damage_.end());
    for (const auto& [id, worker] : workers_) {
        std::uint32_t expected = 0;
        for (const auto& [number, part] : worker->parts) {
            if (number != expected && !worker->is_ring && !worker->refused.contains(expected) &&
                !worker->unread.contains(expected) &&
                !(worker->has_removals && expected == 0))  // the oldest go first
                damage_.push_back({layout_.worker_directory(id), 0, 0,
                                   number == expected + 1
                                       ? base::format("part {} is missing", expected)
                                       : base::format("parts {} to {} are missing", expected, number - 1),
                                   false});
            expected = number + 1;
            const std::size_t first = damage_.size();
            part->append_damage(damage_);
            // What a crash leaves behind is at the end of the last part only.
            if (number != worker->parts.rbegin()->first)
                for (std::size_t i = first; i < damage_.size(); ++i) damage_[i].tail = false;
        }
    }
    return damage_;
}

void Run::Impl::note_passed(const internal::UnreadPart& part) {
    if (own_damage_.size() < kMostDamage)
        own_damage_.push_back(
            {part.file, 0, 0, "could not be read when it was its turn; its steps were passed", false});
}

void Run::Impl::note_unread(const std::string& file, const Status& status) {
    if (status.is_ok()) return;
    if (std::none_of(unread_.begin(), unread_.end(), [&](const Damage& told) { return told.file == file; }))
        unread_.push_back({file, 0, 0, status.message(), false});
}

std::optional<format::Removals> Run::Impl::removals() const {
    std::optional<format::Removals> all;
    for (const auto& [id, worker] : workers_) {
        if (!worker->has_removals) continue;
        if (!all) all.emplace();
        const Result<ByteBuffer> bytes = storage::read_whole(files_, layout_.removed_json(id), 1 << 16);
        if (!bytes) continue;  // something was removed all the same
        const auto found =
            format::removals_from_json({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
        if (!found) continue;
        all->bytes += found->bytes;
        all->steps += found->steps;
        if (all->last.empty()) all->last = found->last;
    }
    return all;
}

RunTotals Run::Impl::totals() const {
    RunTotals totals;
    totals.samples_skipped = samples_skipped_;
    for (const auto& [id, worker] : workers_) {
        totals.steps_dropped += worker->steps_dropped;
        totals.raw_tensors_dropped += worker->raw_tensors_dropped;
        for (const auto& [number, part] : worker->parts) {
            totals.steps += part->rows();
            totals.bytes += part->bytes();
            totals.step_nanos += part->step_nanos();
            totals.capture_nanos += part->capture_nanos();
        }
        const Result<std::vector<storage::DirectoryEntry>> entries =
            files_.list(layout_.worker_directory(id));
        if (!entries) continue;
        for (const storage::DirectoryEntry& entry : *entries) {
            const std::optional<std::uint32_t> number = storage::parse_part(entry.name, ".blob");
            if (!number || !entry.is_regular) continue;
            const Result<std::unique_ptr<storage::ReadFile>> blob = files_.open(layout_.blob(id, *number));
            if (!blob) continue;
            if (const Result<std::uint64_t> size = (*blob)->size()) totals.bytes += *size;
        }
    }
    return totals;
}

std::optional<model::RunEnd> Run::Impl::end() const {
    const Result<ByteBuffer> bytes = storage::read_whole(files_, layout_.end_json(), kMostJsonBytes);
    if (!bytes) return std::nullopt;
    const Result<model::RunEnd> end = model::run_end_from_json(text_of(*bytes));
    return end ? std::optional(*end) : std::nullopt;
}

WorkerGaps Run::Impl::worker_gaps() {
    WorkerGaps gaps;
    std::uint64_t expected = 0;
    for (const auto& [id, worker] : workers_)
        for (const auto& [name, value] : worker->meta.environment)
            if (name == "WORLD_SIZE" && value.size() <= 6 && !value.empty() &&
                value.find_first_not_of("0123456789") == std::string::npos)
                expected = std::max<std::uint64_t>(expected, std::stoul(value));
    for (WorkerId id = 0; id < expected; ++id) {
        const WorkerState* worker = find(id);
        if (worker == nullptr || !worker->has_log) gaps.missing.push_back(id);
    }

    std::map<WorkerId, std::optional<StepIndex>> last_steps;
    std::optional<StepIndex> last;         // of all
    std::optional<StepIndex> last_closed;  // of those that closed their record
    for (const auto& [id, worker] : workers_) {
        if (!worker->has_log) continue;
        const Result<std::optional<StepIndex>> read = worker->last_train_step();
        if (!read) {  // nobody knows how far it is
            note_unread(layout_.worker_directory(id), read.status());
            continue;
        }
        const std::optional<StepIndex> step = *read;
        last_steps[id] = step;
        last = std::max(last, step);
        if (worker->has_ended) last_closed = std::max(last_closed, step);
    }
    const std::optional<model::RunEnd> told = last_steps.size() > 1 ? end() : std::nullopt;
    for (const auto& [id, step] : last_steps) {
        if (step >= last) continue;
        const bool has_closed = find(id)->has_ended;
        // Each leaves at the next end of a step when a rule stops them.
        // A step that was dropped leaves no number.
        const bool is_early =
            has_closed ? expected > 1 && find(id)->steps_dropped == 0 && !(told && told->stopped_by_rule)
                       : told.has_value() || step < last_closed;
        if (is_early) gaps.stopped.push_back({id, step, *last, has_closed});
    }
    return gaps;
}

// ---------------------------------------------------------------------------------- steps

bool WorkerState::is_covered_by(const std::map<std::uint32_t, internal::PartFiles>& files) const {
    if (is_ring) return true;
    for (const auto& [number, part] : parts)
        if (dynamic_cast<internal::LogPart*>(part.get()) != nullptr && !files.contains(number) &&
            !gone.contains(number))
            return false;
    // Behind those that are known, each follows the one before; the first is 0 but where some were removed.
    std::optional<std::uint32_t> next;
    if (!parts.empty()) next = parts.rbegin()->first + 1;
    else if (!has_removals) next = 0;
    for (const auto& [number, kinds] : files) {
        if (next && number > *next) return false;
        if (!next || number == *next) next = number + 1;
    }
    return true;
}

internal::Part* WorkerState::next(internal::Cursor& cursor) const {
    for (auto it = parts.lower_bound(cursor.part); it != parts.end(); ++it) {
        if (it->first != cursor.part) {
            // One that could never be opened is in `unread` alone.
            for (auto missing = unread.lower_bound(cursor.part);
                 missing != unread.end() && missing->first < it->first; ++missing)
                if (!is_given_up(missing->first)) return nullptr;
            cursor = {it->first, 0};
        }
        if (cursor.row < it->second->rows()) return it->second.get();
        if (it->second->is_behind() && !gone.contains(it->first) && !is_given_up(it->first)) return nullptr;
    }
    return nullptr;
}

bool WorkerState::is_given_up(std::uint32_t part) const {
    const auto found = unread.find(part);
    return found != unread.end() && found->second.looks >= kMostLooks;
}

bool WorkerState::is_undecided() const {
    return std::any_of(unread.begin(), unread.end(),
                       [](const auto& entry) { return entry.second.looks < kMostLooks; });
}

internal::Part& WorkerState::turn_to(internal::Part& part) {
    if (at_hand && *at_hand != part.number()) leave();
    at_hand = part.number();
    return part;
}

void WorkerState::leave() {
    if (!at_hand) return;
    if (const auto before = parts.find(*at_hand); before != parts.end()) before->second->release();
    at_hand.reset();
}

Result<std::optional<StepIndex>> WorkerState::last_train_step() const {
    std::vector<StepIndex> steps;
    for (auto it = parts.rbegin(); it != parts.rend() && steps.empty(); ++it)
        TRAINDBG_RETURN_IF_ERROR(it->second->steps(Mode::kTrain, steps));
    return steps.empty() ? std::nullopt : std::optional(*std::max_element(steps.begin(), steps.end()));
}

std::uint64_t WorkerState::steps() const noexcept {
    std::uint64_t steps = 0;
    for (const auto& [number, part] : parts) steps += part->rows();
    return steps;
}

Status Run::Impl::load(WorkerId id, WorkerState& worker, internal::Part& part, std::uint64_t row,
                       StepRecord& record, bool with_raw) {
    std::vector<format::RawPlace> places;
    std::uint64_t skipped = 0;
    TRAINDBG_RETURN_IF_ERROR(
        worker.turn_to(part).load(row, worker.tensors, record, with_raw ? &places : nullptr, skipped));
    count_skipped(worker, record, skipped);
    for (const format::RawPlace& place : places)
        TRAINDBG_RETURN_IF_ERROR(load_raw(id, worker, place, record));
    return Status::ok();
}

Result<bool> Run::Impl::load_if_whole(WorkerId id, WorkerState& worker, std::uint32_t number,
                                      std::uint64_t row, StepRecord& record, bool with_raw,
                                      std::vector<format::RawPlace>* places_found) {
    std::vector<format::RawPlace> places;
    std::uint64_t skipped = 0;
    const auto load_step = [&] {
        return worker.turn_to(*worker.parts.at(number))
            .load(row, worker.tensors, record, with_raw ? &places : nullptr, skipped);
    };
    Status status = load_step();
    if (status.code() == Code::kNotFound) {
        // In a bucket, the pieces of a log go when its segment is there: look, and take it from that.
        TRAINDBG_RETURN_IF_ERROR(refresh_worker(id).status());
        const auto part = worker.parts.find(number);
        if (part == worker.parts.end() || row >= part->second->rows()) return false;
        status = load_step();
    }
    if (is_damage(status) || status.code() == Code::kNotFound) {
        worker.parts.at(number)->note_row(row, status.message());
        return false;
    }
    TRAINDBG_RETURN_IF_ERROR(status);
    count_skipped(worker, record, skipped);
    if (places_found != nullptr) places_found->insert(places_found->end(), places.begin(), places.end());
    for (const format::RawPlace& place : places) {
        const Status opened = blob(id, worker, place.blob).status();
        if (opened.code() == Code::kNotFound && is_retired(worker, place.blob)) continue;  // on purpose
        // A blob that is gone is told once, not for each tensor in it.
        const Status loaded = opened.is_ok() ? load_raw(id, worker, place, record) : opened;
        if (loaded.is_ok()) continue;
        if (is_passing(loaded)) return loaded;
        if (!is_damage(loaded) && loaded.code() != Code::kNotFound) {
            note_unread(layout_.blob(id, place.blob), loaded);
            continue;
        }
        const std::uint64_t offset = opened.is_ok() ? place.offset : 0;
        if (own_damage_.size() < kMostDamage && worker.damaged_tensors.insert({place.blob, offset}).second)
            own_damage_.push_back({layout_.blob(id, place.blob), offset, opened.is_ok() ? place.bytes : 0,
                                   loaded.message(), false});
    }
    return true;
}

bool Run::Impl::is_retired(const WorkerState& worker, std::uint32_t blob) {
    // Retention takes the oldest first and says so in the worker's directory.
    return worker.has_removals && (worker.blob_numbers.empty() || blob < *worker.blob_numbers.begin());
}

void Run::Impl::count_skipped(WorkerState& worker, const StepRecord& record, std::uint64_t skipped) {
    if (skipped != 0 && worker.steps_with_skips.insert(record.sequence).second) samples_skipped_ += skipped;
}

Result<internal::Blob*> Run::Impl::blob(WorkerId id, WorkerState& worker, std::uint32_t number) {
    internal::Blob& blob = worker.blobs[number];
    if (blob.file) return &blob;
    const std::string path = layout_.blob(id, number);
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::ReadFile> file, open_file(path));
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer begin,
                              file->read_at(0, static_cast<std::size_t>(format::kBlobHeaderBytes)));
    const std::optional<format::FileHeader> header = format::find_file_header(begin);
    if (!header) return Status(Code::kDataLoss, path + ": the file has no header");
    TRAINDBG_RETURN_IF_ERROR(format::check_version(*header));
    blob.salt = header->salt;
    blob.file = std::move(file);
    return &blob;
}

Status Run::Impl::load_raw(WorkerId id, WorkerState& worker, const format::RawPlace& place,
                           StepRecord& record) {
    ByteBuffer bytes;
    TRAINDBG_RETURN_IF_ERROR(read_raw(id, worker, std::span(&place, 1), bytes));
    record.raw.push_back({place.tensor, place.dtype, place.shape, std::move(bytes)});
    return Status::ok();
}

Status Run::Impl::read_raw(WorkerId id, WorkerState& worker, std::span<const format::RawPlace> places,
                           ByteBuffer& out) {
    std::map<std::uint32_t, std::uint64_t> taken;  // of each blob: places that lie apart hold no more
    for (std::size_t begin = 0; begin < places.size();) {
        const format::RawPlace& first = places[begin];
        TRAINDBG_ASSIGN_OR_RETURN(internal::Blob* const from, blob(id, worker, first.blob));
        TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t size, from->file->size());
        // Those that lie close behind each other are fetched with one call.
        std::uint64_t stretch = first.bytes;
        std::size_t end = begin + 1;
        for (; end < places.size(); ++end) {
            const format::RawPlace& next = places[end];
            if (next.blob != first.blob || next.offset < first.offset + stretch ||
                next.offset - (first.offset + stretch) > kMostGapBytes ||
                next.offset + next.bytes - first.offset > kMostStretchBytes)
                break;
            stretch = next.offset + next.bytes - first.offset;
        }
        const auto damaged = [&](const format::RawPlace& place, std::string_view what) {
            return Status(Code::kDataLoss, base::format("{}: the whole tensor at {}: {}",
                                                        layout_.blob(id, place.blob), place.offset, what));
        };
        // Memory is taken for bytes that are there, not for those that a damaged record claims.
        if (first.offset > size || first.bytes > size - first.offset)
            return damaged(first, "the file ends before it");
        TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer bytes,
                                  from->file->read_at(first.offset, static_cast<std::size_t>(stretch)));
        for (; begin < end; ++begin) {
            const format::RawPlace& place = places[begin];
            const std::uint64_t at = place.offset - first.offset;
            if (at > bytes.size() || place.bytes > bytes.size() - at)
                return damaged(place, "the file ends before it");
            const base::ByteSpan tensor = base::ByteSpan(bytes).subspan(
                static_cast<std::size_t>(at), static_cast<std::size_t>(place.bytes));
            if (base::crc32c(tensor, format::checksum_seed(from->salt)) != place.checksum)
                return damaged(place, "the checksum does not match");
            if ((taken[place.blob] += place.bytes) > size)
                return damaged(place, "more is claimed than the file holds");
            out.insert(out.end(), tensor.begin(), tensor.end());
        }
    }
    return Status::ok();
}

Result<model::TensorId> Run::Impl::find_tensor(WorkerId id, const std::string& name) {
    WorkerState* worker = find(id);
    if (worker != nullptr) {
        for (; worker->named < worker->tensors.size(); ++worker->named)
            worker->ids.emplace(worker->tensors[worker->named].name,
                                static_cast<model::TensorId>(worker->named));
        const auto it = worker->ids.find(name);
        if (it != worker->ids.end() && !name.empty()) return it->second;
        // After damage a description may have come later than its place.
        for (const model::TensorInfo& info : worker->tensors)
            if (info.name == name && !name.empty()) return info.id;
    }
    std::vector<std::string> names;
    for (const auto& [other, state] : workers_)
        for (const model::TensorInfo& info : state->tensors) names.push_back(info.name);
    return Status(Code::kNotFound, base::format("tensor '{}' was not recorded by worker {}{}",
                                                base::printable(name), id, base::did_you_mean(name, names)));
}

Result<std::vector<internal::PlacedTensor>> Run::Impl::places(WorkerId id, const std::string& tensor) {
    TRAINDBG_ASSIGN_OR_RETURN(const model::TensorId number, find_tensor(id, tensor));
    WorkerState* worker = find(id);
    std::vector<internal::PlacedTensor> places;
    for (const auto& [part_number, part] : worker->parts)
        TRAINDBG_RETURN_IF_ERROR(part->places(number, worker->tensors, places));
    std::erase_if(places, [&](const internal::PlacedTensor& placed) {
        return !worker->blob_numbers.contains(placed.place.blob) && is_retired(*worker, placed.place.blob);
    });
    return places;
}

Status Run::Impl::verify() {
    verified_damage_.clear();
    unverified_.clear();
    for (const std::string& path :
         {layout_.run_json(), layout_.plan_json(), layout_.end_json(), layout_.verdict_json()})
        TRAINDBG_RETURN_IF_ERROR(verify_json(path));
    TRAINDBG_ASSIGN_OR_RETURN(const auto entries, files_.list(layout_.root));
    for (const storage::DirectoryEntry& entry : entries)
        if (entry.is_regular && storage::parse_plan_change(entry.name))
            TRAINDBG_RETURN_IF_ERROR(verify_json(layout_.root + "/" + entry.name));
    StepRecord record;
    std::vector<format::RawPlace> found;
    for (const auto& [id, worker] : workers_) {
        TRAINDBG_RETURN_IF_ERROR(verify_json(layout_.removed_json(id)));
        if (worker->parts.empty() && worker->refused.empty())
            verified_damage_.push_back(
                {layout_.worker_directory(id), 0, 0, "no part of what this worker recorded is there", false});
        std::map<std::uint32_t, std::vector<format::RawPlace>> places;  // by blob
        for (const auto& [number, part] : worker->parts) {
            if (auto* segment = dynamic_cast<internal::SegmentPart*>(part.get())) {
                const Status status = segment->verify();
                if (!is_damage(status)) TRAINDBG_RETURN_IF_ERROR(status);
                else segment->note(0, 0, status.message());
            }
            for (std::uint64_t row = 0; row < part->rows(); ++row) {
                found.clear();
                TRAINDBG_RETURN_IF_ERROR(
                    load_if_whole(id, *worker, number, row, record, true, &found).status());
                for (format::RawPlace& place : found) {
                    place.shape.clear();
                    places[place.blob].push_back(std::move(place));
                }
            }
        }
        for (const std::uint32_t number : worker->blob_numbers) {
            const std::string path = layout_.blob(id, number);
            const Status status = verify_blob(path, std::move(places[number]));
            if (status.is_ok() || status.code() == Code::kNotFound) continue;  // just removed
            if (is_passing(status)) return status;
            verified_damage_.push_back({path, 0, 0, status.message(), false});
        }
        worker->leave();
    }
    return Status::ok();
}

Status Run::Impl::verify_json(const std::string& path) {
    const Result<ByteBuffer> bytes = storage::read_whole(files_, path, kMostJsonBytes);
    if (bytes.status().code() == Code::kNotFound) return Status::ok();
    if (is_passing(bytes.status())) return bytes.status();
    if (!bytes) {
        verified_damage_.push_back({path, 0, 0, bytes.status().message(), false});
        return Status::ok();
    }
    const bool is_told = path == layout_.run_json();  // on opening
    const model::TextCheck check = model::check_text(text_of(*bytes));
    if (check == model::TextCheck::kWhole) return Status::ok();
    if (check == model::TextCheck::kUnchecked && model::Json::accept(text_of(*bytes)))
        unverified_.push_back({path, "has no checksum"});
    else if (!is_told)
        verified_damage_.push_back(
            {path, 0, bytes->size(),
             check == model::TextCheck::kDamaged ? std::string(model::kWrongText) : "is not JSON", false});
    return Status::ok();
}

Status Run::Impl::verify_blob(const std::string& path, std::vector<format::RawPlace> places) {
    const auto note = [&](std::uint64_t offset, std::uint64_t bytes, std::string what) {
        if (verified_damage_.size() < kMostDamage)
            verified_damage_.push_back({path, offset, bytes, std::move(what), false});
    };
    TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ReadFile> file, open_file(path));
    TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t size, file->size());
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer head,
                              file->read_at(0, static_cast<std::size_t>(format::kBlobHeaderBytes)));
    const base::ByteSpan zone(head);
    if (zone.size() < format::kBlobHeaderBytes) note(0, size, "the file ends inside its header");
    else if (const auto header = format::find_file_header(zone); !header)
        note(0, format::kBlobHeaderBytes, "the file has no header");
    else {
        base::ByteWriter expected;
        format::append_file_header(expected, *header);
        const std::size_t copies_bytes = expected.bytes().size();
        expected.pad_to(format::kBlobHeaderBytes);
        const base::ByteSpan wanted = expected.bytes();
        const auto found = std::mismatch(zone.begin(), zone.end(), wanted.begin(), wanted.end()).first;
        const auto wrong = static_cast<std::uint64_t>(found - zone.begin());
        // Of a newer version there may be more in it.
        if (found != zone.end() && header->minor <= format::kFormatMinor)
            note(wrong, 1,
                 wrong < copies_bytes ? "one of the two copies of the header is damaged; the other is whole"
                                      : "the zeros behind the header are damaged; nothing is lost with it");
    }

    std::sort(places.begin(), places.end(), [](const auto& a, const auto& b) { return a.offset < b.offset; });
    places.emplace_back().offset = size;  // the gap behind the last one
    std::uint64_t at = format::kBlobHeaderBytes;
    std::uint64_t of_no_step = 0;
    for (const format::RawPlace& place : places) {
        // What reaches up to the next place where a tensor may begin is zeros. Behind that, there may be
        // tensors whose steps were cut off, or removed.
        const std::uint64_t aligned =
            (at + format::kBlobAlignment - 1) / format::kBlobAlignment * format::kBlobAlignment;
        const std::uint64_t end = std::min(place.offset, size);
        bool is_used = false;
        for (std::uint64_t from = at; from < end;) {
            const std::uint64_t most = from < aligned ? aligned - from : kGapWindowBytes;
            TRAINDBG_ASSIGN_OR_RETURN(
                const ByteBuffer bytes,
                file->read_at(from, static_cast<std::size_t>(std::min(most, end - from))));
            if (bytes.empty()) break;
            const auto wrong =
                std::find_if(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; });
            if (wrong != bytes.end() && from < aligned)
                note(from + static_cast<std::uint64_t>(wrong - bytes.begin()), 1,
                     "the zeros behind a whole tensor are damaged; nothing is lost with it");
            else if (wrong != bytes.end()) is_used = true;
            from += bytes.size();
        }
        if (is_used) of_no_step += end - std::max(at, aligned);
        at = std::max(at, place.offset + place.bytes);
    }
    if (of_no_step != 0)
        unverified_.push_back({path, base::format("{} of whole tensors in it belong to no step that is there",
                                                  base::human_bytes(of_no_step))});
    return Status::ok();
}

// ---------------------------------------------------------------------------------- the public face

Run::Run(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Run::~Run() = default;

Result<std::unique_ptr<Run>> Run::open(const std::string& path, storage::FileSystem& files) {
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<Impl> impl, Impl::open(path, files));
    return std::unique_ptr<Run>(new Run(std::move(impl)));
}

const std::string& Run::path() const noexcept { return impl_->layout().root; }
storage::FileSystem& Run::files() const noexcept { return impl_->files(); }
const model::RunMeta& Run::meta() const noexcept { return impl_->meta(); }
const std::vector<Damage>& Run::damage() const { return impl_->damage(); }
const std::vector<RunEvent>& Run::events() const noexcept { return impl_->events(); }
RunTotals Run::totals() const noexcept { return impl_->totals(); }
std::optional<format::Removals> Run::removals() const { return impl_->removals(); }
Result<bool> Run::refresh() { return impl_->refresh(); }
Result<bool> Run::wait(std::chrono::nanoseconds patience) { return impl_->wait(patience); }
int Run::wake_descriptor() const noexcept { return impl_->wake_descriptor(); }

std::optional<model::RunEnd> Run::end() const { return impl_->end(); }

bool Run::is_complete() const noexcept {
    bool any = false;
    for (const auto& [id, worker] : impl_->workers()) {
        if (!worker->has_log) continue;
        if (!worker->has_ended) return false;
        any = true;
    }
    return any;
}

std::vector<WorkerId> Run::workers() const {
    std::vector<WorkerId> ids;
    for (const auto& [id, worker] : impl_->workers())
        if (worker->has_log) ids.push_back(id);
    return ids;
}

const model::WorkerMeta& Run::worker_meta(WorkerId worker) const {
    const WorkerState* state = impl_->find(worker);
    return state != nullptr ? state->meta : kNoMeta;
}

const model::TensorTable& Run::tensors(WorkerId worker) const {
    const WorkerState* state = impl_->find(worker);
    return state != nullptr ? state->tensors : kNoTensors;
}

std::vector<std::string> Run::tensor_names() const {
    std::vector<std::string> names;
    std::unordered_set<std::string> seen;
    for (const auto& [id, worker] : impl_->workers())
        for (const model::TensorInfo& info : worker->tensors)
            if (!info.name.empty() && seen.insert(info.name).second) names.push_back(info.name);
    return names;
}

std::vector<StepIndex> Run::steps(Mode mode) const {
    std::vector<StepIndex> steps;
    for (const auto& [id, worker] : impl_->workers())
        for (const auto& [number, part] : worker->parts)
            impl_->note_unread(part->name(), part->steps(mode, steps));
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    return steps;
}

Status Run::for_each_step(const std::function<bool(const model::StepView&)>& visit, bool with_raw) {
    StepRecord record;
    for (const auto& [id, worker] : impl_->workers()) {
        for (const auto& [number, part] : worker->parts) {
            for (std::uint64_t row = 0; row < part->rows(); ++row) {
                TRAINDBG_ASSIGN_OR_RETURN(const bool is_whole,
                                          impl_->load_if_whole(id, *worker, number, row, record, with_raw));
                if (!is_whole) continue;
                if (!visit({id, &record, &worker->tensors, &worker->meta})) return Status::ok();
            }
        }
        worker->leave();
    }
    return Status::ok();
}

Result<std::optional<StepRecord>> Run::step(WorkerId worker, Mode mode, StepIndex step, bool with_raw) {
    WorkerState* state = impl_->find(worker);
    if (state == nullptr) return std::optional<StepRecord>();
    for (const auto& [number, part] : state->parts) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> row, part->find(mode, step));
        if (!row) continue;
        StepRecord record;
        TRAINDBG_RETURN_IF_ERROR(impl_->load(worker, *state, *part, *row, record, with_raw));
        return std::optional(std::move(record));
    }
    return std::optional<StepRecord>();
}

Result<std::vector<SeriesPoint>> Run::series(WorkerId worker, const std::string& tensor,
                                             std::string_view statistic) {
    const internal::Statistic* row = internal::find_statistic(statistic);
    if (row == nullptr)
        return Status(Code::kInvalidArgument, base::format("statistic '{}' does not exist{}; there are: {}",
                                                           base::printable(statistic),
                                                           base::did_you_mean(statistic, statistic_names()),
                                                           base::join(statistic_names(), ", ")));
    if (row->kind == internal::StatisticKind::kDerived) return derived_series(worker, tensor, *row);
    if (row->kind == internal::StatisticKind::kDigest) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::vector<DigestPoint> found, digests(worker, tensor));
        std::vector<SeriesPoint> points;
        for (const DigestPoint& point : found)
            points.push_back({point.mode, point.step, point.digest.product});
        return points;
    }
    TRAINDBG_ASSIGN_OR_RETURN(const model::TensorId id, impl_->find_tensor(worker, tensor));
    WorkerState* state = impl_->find(worker);
    std::vector<SeriesPoint> points;
    for (const auto& [number, part] : state->parts)
        TRAINDBG_RETURN_IF_ERROR(part->series(id, *row, state->tensors, points));
    return points;
}

Result<std::vector<SeriesPoint>> Run::derived_series(WorkerId worker, const std::string& tensor,
                                                     const internal::Statistic& statistic) {
    TRAINDBG_ASSIGN_OR_RETURN(std::vector<SeriesPoint> points, series(worker, tensor, statistic.base));
    // Columns of a sealed part can be damaged one by one: a step counts where all of them are whole.
    constexpr std::array<std::string_view, 3> kCounts = {"count", "nan", "inf"};
    std::map<std::pair<Mode, StepIndex>, std::array<std::optional<double>, kCounts.size()>> elements;
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::vector<SeriesPoint> counted, series(worker, tensor, kCounts[i]));
        for (const SeriesPoint& point : counted) elements[{point.mode, point.step}][i] = point.value;
    }
    std::size_t kept = 0;
    for (const SeriesPoint& point : points) {
        const auto found = elements.find({point.mode, point.step});
        if (found == elements.end()) continue;
        const auto& [count, nan, infinite] = found->second;
        if (!count || !nan || !infinite) continue;
        points[kept++] = {point.mode, point.step, statistic.derive(point.value, *count - *nan - *infinite)};
    }
    points.resize(kept);
    return points;
}

Result<std::vector<DigestPoint>> Run::digests(WorkerId worker, const std::string& tensor) {
    TRAINDBG_ASSIGN_OR_RETURN(const model::TensorId id, impl_->find_tensor(worker, tensor));
    WorkerState* state = impl_->find(worker);
    std::vector<DigestPoint> points;
    for (const auto& [number, part] : state->parts)
        TRAINDBG_RETURN_IF_ERROR(part->digests(id, state->tensors, points));
    return points;
}

Result<std::vector<StepIndex>> Run::raw_steps(WorkerId worker, const std::string& tensor, Mode mode) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<internal::PlacedTensor> places,
                              impl_->places(worker, tensor));
    std::vector<StepIndex> steps;
    for (const internal::PlacedTensor& placed : places)
        if (placed.key.mode == mode) steps.push_back(placed.key.step);
    return steps;
}

Result<RawSeries> Run::raw_series(WorkerId worker, const std::string& tensor, Mode mode) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<internal::PlacedTensor> places,
                              impl_->places(worker, tensor));
    RawSeries series;
    std::vector<format::RawPlace> wanted;
    for (const internal::PlacedTensor& placed : places) {
        if (placed.key.mode != mode) continue;
        const format::RawPlace& place = placed.place;
        if (series.steps.empty()) {
            series.dtype = place.dtype;
            series.shape = place.shape;
        } else if (place.dtype != series.dtype || place.shape != series.shape ||
                   place.bytes != wanted.front().bytes) {
            return Status(
                Code::kInvalidArgument,
                base::format("tensor '{}' has another shape or type at step {} than before: read it "
                             "step by step",
                             base::printable(tensor), placed.key.step));
        }
        series.steps.push_back(placed.key.step);
        wanted.push_back(place);
    }
    TRAINDBG_RETURN_IF_ERROR(impl_->read_raw(worker, *impl_->find(worker), wanted, series.bytes));
    return series;
}

Result<std::optional<MappedTensor>> Run::map_raw(WorkerId worker, Mode mode, StepIndex step,
                                                 const std::string& tensor) {
    TRAINDBG_ASSIGN_OR_RETURN(const model::TensorId id, impl_->find_tensor(worker, tensor));
    WorkerState* state = impl_->find(worker);
    StepRecord record;
    std::vector<format::RawPlace> places;
    for (const auto& [number, part] : state->parts) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> row, part->find(mode, step));
        if (!row) continue;
        std::uint64_t skipped = 0;
        TRAINDBG_RETURN_IF_ERROR(state->turn_to(*part).load(*row, state->tensors, record, &places, skipped));
        const auto it = std::find_if(places.begin(), places.end(),
                                     [id](const format::RawPlace& place) { return place.tensor == id; });
        if (it == places.end()) return std::optional<MappedTensor>();
        TRAINDBG_ASSIGN_OR_RETURN(internal::Blob* const blob, impl_->blob(worker, *state, it->blob));
        TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::Mapping> mapping,
                                  blob->file->map(it->offset, static_cast<std::size_t>(it->bytes)));
        if (base::crc32c(mapping->bytes(), format::checksum_seed(blob->salt)) != it->checksum)
            return Status(Code::kDataLoss, base::format("{}: '{}' at step {}: the checksum does not match",
                                                        impl_->layout().blob(worker, it->blob),
                                                        base::printable(tensor), step));
        return std::optional(MappedTensor{it->dtype, it->shape, std::move(mapping)});
    }
    return std::optional<MappedTensor>();
}

std::vector<WorkerId> Run::missing_workers() const { return impl_->worker_gaps().missing; }
WorkerGaps Run::worker_gaps() const { return impl_->worker_gaps(); }

std::vector<WorkerId> Run::unclosed_workers() const {
    std::vector<WorkerId> unclosed;
    for (const auto& [id, worker] : impl_->workers())
        if (worker->has_log && !worker->has_ended) unclosed.push_back(id);
    return unclosed;
}

Status Run::verify() { return impl_->verify(); }
const std::vector<Unverified>& Run::unverified() const noexcept { return impl_->unverified(); }

const std::vector<std::string>& Run::statistic_names() { return internal::statistic_names(); }

std::optional<double> Run::statistic_of(const model::TensorSample& sample, std::string_view statistic) {
    const internal::Statistic* row = internal::find_statistic(statistic);
    return row == nullptr ? std::nullopt : internal::value_of(*row, sample);
}

}  // namespace traindbg::read
