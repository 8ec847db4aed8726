#include "traindbg/read/run.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <unordered_set>
#include <utility>

#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/format/records.h"
#include "traindbg/model/json.h"
#include "traindbg/read/log_reader.h"
#include "traindbg/read/run_impl.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::read {
namespace {

using base::ByteBuffer;
using base::Code;
using base::Result;
using base::Status;
using format::FrameType;
using internal::LogReader;
using internal::StepEntry;
using internal::WorkerState;
using model::Mode;
using model::StepIndex;
using model::StepRecord;
using model::WorkerId;

constexpr std::uint64_t kMostJsonBytes = 16ULL << 20;

std::string_view text_of(const ByteBuffer& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

struct StatisticRow {
    std::string_view name;
    double (*read)(const model::TensorSample&);
};

double number(std::uint64_t count) { return static_cast<double>(count); }

// Every statistic of a tensor that a user can ask for; "value" is beside, of scalars.
constexpr std::array kStatistics = {
    StatisticRow{"min", [](const model::TensorSample& s) { return s.statistics.min; }},
    StatisticRow{"max", [](const model::TensorSample& s) { return s.statistics.max; }},
    StatisticRow{"mean", [](const model::TensorSample& s) { return s.statistics.mean; }},
    StatisticRow{"std", [](const model::TensorSample& s) { return s.statistics.std; }},
    StatisticRow{"l1", [](const model::TensorSample& s) { return s.statistics.l1; }},
    StatisticRow{"l2", [](const model::TensorSample& s) { return s.statistics.l2; }},
    StatisticRow{"count", [](const model::TensorSample& s) { return number(s.statistics.count); }},
    StatisticRow{"nan", [](const model::TensorSample& s) { return number(s.statistics.nan); }},
    StatisticRow{"inf", [](const model::TensorSample& s) { return number(s.statistics.infinite()); }},
    StatisticRow{"zero", [](const model::TensorSample& s) { return number(s.statistics.zero); }},
    StatisticRow{"units", [](const model::TensorSample& s) { return number(s.units.units); }},
    StatisticRow{"inactive_units",
                 [](const model::TensorSample& s) { return number(s.units.inactive_units); }},
    StatisticRow{"low", [](const model::TensorSample& s) { return number(s.units.low); }},
    StatisticRow{"high", [](const model::TensorSample& s) { return number(s.units.high); }},
};
constexpr std::string_view kValue = "value";

const StatisticRow* find_statistic(std::string_view name) {
    const auto it = std::find_if(kStatistics.begin(), kStatistics.end(),
                                 [name](const StatisticRow& row) { return row.name == name; });
    return it == kStatistics.end() ? nullptr : &*it;
}
// These four are of activations only, where a rule asked for them.
bool is_of_units(std::string_view name) {
    return name == "units" || name == "inactive_units" || name == "low" || name == "high";
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
    if (meta) impl->meta_ = std::move(meta).value();
    else
        impl->own_damage_.push_back(
            {impl->layout_.run_json(), 0, bytes->size(), meta.status().message(), false});
    TRAINDBG_RETURN_IF_ERROR(impl->refresh().status());
    return impl;
}

Result<bool> Run::Impl::refresh() {
    bool is_new = false;
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, files_.list(layout_.root));
    unread_.clear();
    Status trouble;
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
        trouble = worker_is_new.status();
        unread_.push_back({layout_.worker_directory(*worker), 0, 0, trouble.message(), false});
    }
    rebuild_damage();
    const bool has_any = std::any_of(workers_.begin(), workers_.end(),
                                     [](const auto& entry) { return entry.second->has_log; });
    if (!has_any && !refused_.is_ok()) return refused_;
    if (!has_any && !trouble.is_ok()) return trouble;
    return is_new;
}

Result<bool> Run::Impl::refresh_worker(WorkerId id) {
    const std::string directory = layout_.worker_directory(id);
    const Result<std::vector<storage::DirectoryEntry>> entries = files_.list(directory);
    if (!entries) {
        if (entries.status().code() == Code::kNotFound) return false;  // just removed
        return entries.status();
    }
    std::unique_ptr<WorkerState>& slot = workers_[id];
    if (!slot) slot = std::make_unique<WorkerState>();
    WorkerState& worker = *slot;
    bool is_new = false;
    for (const storage::DirectoryEntry& entry : *entries) {  // sorted: parts in the order of writing
        const std::optional<std::uint32_t> part = storage::parse_part(entry.name, ".log");
        if (!part || !entry.is_regular) continue;
        auto it = std::find_if(worker.parts.begin(), worker.parts.end(),
                               [&](const internal::Part& known) { return known.number == *part; });
        if (it == worker.parts.end()) {
            const std::string path = layout_.log(id, *part);
            Result<std::unique_ptr<storage::ReadFile>> file = files_.open(path);
            if (!file) {
                if (file.status().code() == Code::kNotFound) continue;  // just removed
                return file.status();
            }
            internal::Part& added = worker.parts.emplace_back();
            added.number = *part;
            added.log = std::make_unique<LogReader>(std::move(file).value(), path);
            it = worker.parts.end() - 1;
        }
        if (it->is_refused) continue;
        const auto part_index = static_cast<std::uint32_t>(it - worker.parts.begin());
        const Status status = it->log->poll([&](std::uint64_t offset, const format::Frame& frame) {
            is_new = true;
            take_frame(id, worker, part_index, offset, frame);
        });
        if (status.code() == Code::kUnsupported) {
            // Refused with a message when it is all there is; damage beside other logs.
            it->is_refused = true;
            if (refused_.is_ok()) refused_ = status;
            own_damage_.push_back({it->log->name(), 0, it->log->size(), status.message(), false});
        } else if (!status.is_ok()) {
            return status;
        }
    }
    return is_new;
}

void Run::Impl::take_frame(WorkerId id, WorkerState& worker, std::uint32_t part, std::uint64_t offset,
                           const format::Frame& frame) {
    const auto damaged = [&](const Status& status) {
        // The checksum was right, so this is no damage of the disk: another program wrote it.
        own_damage_.push_back({worker.parts[part].log->name(), offset, frame.bytes, status.message(), false});
    };
    if (frame.flags != 0) return;  // of a newer version: this one cannot know what it holds
    switch (frame.type) {
        case FrameType::kFileHeader: worker.has_log = true; break;
        case FrameType::kSchema:
            if (const Status status = format::decode_schema(frame.payload, worker.tensors); !status.is_ok())
                damaged(status);
            break;
        case FrameType::kWorker: {
            Result<model::WorkerMeta> meta = format::decode_worker(frame.payload);
            if (!meta) return damaged(meta.status());
            worker.meta = std::move(meta).value();
            worker.meta.worker = id;
            break;
        }
        case FrameType::kStep: {
            const Result<format::StepPrefix> prefix = format::decode_step_prefix(frame.payload);
            if (!prefix) return damaged(prefix.status());
            worker.steps.push_back({offset, prefix->step, prefix->sequence,
                                    static_cast<std::uint32_t>(frame.bytes), part, prefix->mode});
            ++totals_.steps;
            if (prefix->mode == Mode::kTrain) {
                totals_.step_nanos += prefix->step_nanos;
                totals_.capture_nanos += prefix->capture_nanos;
            }
            break;
        }
        case FrameType::kEvent: {
            Result<format::EventRecord> event = format::decode_event(frame.payload);
            if (!event) return damaged(event.status());
            events_.push_back({id, event->wall_nanos, std::move(event->kind), std::move(event->json)});
            break;
        }
        case FrameType::kDropped:
        case FrameType::kEnd: {
            const Result<format::TotalsRecord> told = format::decode_totals(frame.payload);
            if (!told) return damaged(told.status());
            worker.steps_dropped = std::max(worker.steps_dropped, told->steps_dropped);
            worker.raw_tensors_dropped = std::max(worker.raw_tensors_dropped, told->raw_tensors_dropped);
            if (frame.type == FrameType::kEnd) worker.has_ended = true;
            break;
        }
        default: break;  // has no business in a log
    }
}

void Run::Impl::rebuild_damage() {
    damage_ = own_damage_;
    damage_.insert(damage_.end(), unread_.begin(), unread_.end());
    for (const auto& [id, worker] : workers_) {
        for (const internal::Part& part : worker->parts) {
            damage_.insert(damage_.end(), part.log->damage().begin(), part.log->damage().end());
            if (part.log->tail()) damage_.push_back(*part.log->tail());
        }
    }
}

RunTotals Run::Impl::totals() const {
    RunTotals totals = totals_;
    for (const auto& [id, worker] : workers_) {
        totals.steps_dropped += worker->steps_dropped;
        totals.raw_tensors_dropped += worker->raw_tensors_dropped;
        for (const internal::Part& part : worker->parts) {
            totals.bytes += part.log->size();
            const Result<std::unique_ptr<storage::ReadFile>> raw = files_.open(layout_.blob(id, part.number));
            if (!raw) continue;
            if (const Result<std::uint64_t> size = (*raw)->size()) totals.bytes += *size;
        }
    }
    return totals;
}

// ---------------------------------------------------------------------------------- steps

Status Run::Impl::load(WorkerId id, WorkerState& worker, const StepEntry& entry, StepRecord& record,
                       bool with_raw) {
    internal::Part& part = worker.parts[entry.part];
    TRAINDBG_ASSIGN_OR_RETURN(const format::Frame frame, part.log->frame_at(entry.offset, entry.bytes));
    std::vector<format::RawPlace> places;
    TRAINDBG_ASSIGN_OR_RETURN(
        const std::uint64_t skipped,
        format::decode_step(frame.payload, worker.tensors, record, with_raw ? &places : nullptr));
    if (skipped != 0 && worker.steps_with_skips.insert(entry.sequence).second)
        totals_.samples_skipped += skipped;
    return load_raw(id, worker, places, record);
}

Result<bool> Run::Impl::load_if_whole(WorkerId id, WorkerState& worker, const StepEntry& entry,
                                      StepRecord& record, bool with_raw) {
    Status status = load(id, worker, entry, record, with_raw);
    if (status.is_ok()) return true;
    const auto is_damage = [](const Status& s) {
        return s.code() == Code::kDataLoss || s.code() == Code::kUnsupported || s.code() == Code::kNotFound;
    };
    if (!is_damage(status)) return status;
    if (worker.damaged_steps.insert(entry.sequence).second) {
        own_damage_.push_back(
            {worker.parts[entry.part].log->name(), entry.offset, entry.bytes, status.message(), false});
        rebuild_damage();
    }
    if (!with_raw) return false;
    // The step itself may be whole where only its tensors are not.
    status = load(id, worker, entry, record, false);
    if (!status.is_ok() && !is_damage(status)) return status;
    return status.is_ok();
}

Status Run::Impl::load_raw(WorkerId id, WorkerState& worker, const std::vector<format::RawPlace>& places,
                           StepRecord& record) {
    for (const format::RawPlace& place : places) {
        const std::string path = layout_.blob(id, place.blob);
        const auto damaged = [&](std::string_view what) {
            return Status(Code::kDataLoss,
                          base::format("{}: the whole tensor at {}: {}", path, place.offset, what));
        };
        internal::Blob& blob = worker.blobs[place.blob];
        if (!blob.file) {
            TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::ReadFile> file, files_.open(path));
            TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer begin,
                                      file->read_at(0, static_cast<std::size_t>(format::kBlobHeaderBytes)));
            const std::optional<format::FileHeader> header = format::find_file_header(begin);
            if (!header) return damaged("the file has no header");
            TRAINDBG_RETURN_IF_ERROR(format::check_version(*header));
            blob.salt = header->salt;
            blob.file = std::move(file);
        }
        TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t size, blob.file->size());
        if (place.offset > size || place.bytes > size - place.offset)
            return damaged("the file ends before it");
        TRAINDBG_ASSIGN_OR_RETURN(ByteBuffer bytes,
                                  blob.file->read_at(place.offset, static_cast<std::size_t>(place.bytes)));
        if (bytes.size() != place.bytes) return damaged("the file ends before it");
        if (base::crc32c(bytes, format::checksum_seed(blob.salt)) != place.checksum)
            return damaged("the checksum does not match");
        record.raw.push_back({place.tensor, place.dtype, place.shape, std::move(bytes)});
    }
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
const model::RunMeta& Run::meta() const noexcept { return impl_->meta(); }
const std::vector<Damage>& Run::damage() const noexcept { return impl_->damage(); }
const std::vector<RunEvent>& Run::events() const noexcept { return impl_->events(); }
RunTotals Run::totals() const noexcept { return impl_->totals(); }
Result<bool> Run::refresh() { return impl_->refresh(); }

std::optional<model::RunEnd> Run::end() const {
    const Result<ByteBuffer> bytes =
        storage::read_whole(impl_->files(), impl_->layout().end_json(), kMostJsonBytes);
    if (!bytes) return std::nullopt;
    const Result<model::RunEnd> end = model::run_end_from_json(text_of(*bytes));
    return end ? std::optional(*end) : std::nullopt;
}

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
        for (const StepEntry& entry : worker->steps)
            if (entry.mode == mode) steps.push_back(entry.step);
    std::sort(steps.begin(), steps.end());
    steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
    return steps;
}

Status Run::for_each_step(const std::function<bool(const model::StepView&)>& visit, bool with_raw) {
    StepRecord record;
    for (const auto& [id, worker] : impl_->workers()) {
        for (const StepEntry& entry : worker->steps) {
            TRAINDBG_ASSIGN_OR_RETURN(const bool is_whole,
                                      impl_->load_if_whole(id, *worker, entry, record, with_raw));
            if (!is_whole) continue;
            if (!visit({id, &record, &worker->tensors, &worker->meta})) return Status::ok();
        }
    }
    return Status::ok();
}

Result<std::optional<StepRecord>> Run::step(WorkerId worker, Mode mode, StepIndex step, bool with_raw) {
    WorkerState* state = impl_->find(worker);
    if (state == nullptr) return std::optional<StepRecord>();
    const auto it = std::find_if(state->steps.begin(), state->steps.end(), [&](const StepEntry& entry) {
        return entry.mode == mode && entry.step == step;
    });
    if (it == state->steps.end()) return std::optional<StepRecord>();
    StepRecord record;
    TRAINDBG_RETURN_IF_ERROR(impl_->load(worker, *state, *it, record, with_raw));
    return std::optional(std::move(record));
}

Result<std::vector<SeriesPoint>> Run::series(WorkerId worker, const std::string& tensor,
                                             std::string_view statistic) {
    const StatisticRow* row = find_statistic(statistic);
    if (row == nullptr && statistic != kValue)
        return Status(Code::kInvalidArgument, base::format("statistic '{}' does not exist{}; there are: {}",
                                                           base::printable(statistic),
                                                           base::did_you_mean(statistic, statistic_names()),
                                                           base::join(statistic_names(), ", ")));
    WorkerState* state = impl_->find(worker);
    const auto has_name = [&](const model::TensorInfo& info) { return info.name == tensor; };
    if (state == nullptr || tensor.empty() ||
        std::none_of(state->tensors.begin(), state->tensors.end(), has_name))
        return Status(Code::kNotFound,
                      base::format("tensor '{}' was not recorded by worker {}{}", base::printable(tensor),
                                   worker, base::did_you_mean(tensor, tensor_names())));
    const auto id = std::find_if(state->tensors.begin(), state->tensors.end(), has_name)->id;
    const auto is_it = [id](const auto& sample) { return sample.tensor == id; };

    std::vector<SeriesPoint> points;
    StepRecord record;
    for (const StepEntry& entry : state->steps) {
        TRAINDBG_ASSIGN_OR_RETURN(const bool is_whole,
                                  impl_->load_if_whole(worker, *state, entry, record, false));
        if (!is_whole) continue;
        if (row == nullptr) {
            const auto it = std::find_if(record.scalars.begin(), record.scalars.end(), is_it);
            if (it != record.scalars.end()) points.push_back({record.mode, record.step, it->value});
            continue;
        }
        const auto it = std::find_if(record.tensors.begin(), record.tensors.end(), is_it);
        if (it == record.tensors.end()) continue;
        if (const std::optional<double> value = statistic_of(*it, statistic))
            points.push_back({record.mode, record.step, *value});
    }
    return points;
}

const std::vector<std::string>& Run::statistic_names() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all = {std::string(kValue)};
        for (const StatisticRow& row : kStatistics) all.emplace_back(row.name);
        return all;
    }();
    return names;
}

std::optional<double> Run::statistic_of(const model::TensorSample& sample, std::string_view statistic) {
    const StatisticRow* row = find_statistic(statistic);
    if (row == nullptr || (is_of_units(statistic) && sample.units.units == 0)) return std::nullopt;
    return row->read(sample);
}

}  // namespace traindbg::read
