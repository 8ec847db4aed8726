#include "traindbg/seal/retention.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/format/frame_scanner.h"
#include "traindbg/format/records.h"
#include "traindbg/format/removals.h"
#include "traindbg/format/segment.h"
#include "traindbg/seal/sealer.h"
#include "traindbg/seal/thin.h"

namespace traindbg::seal {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using nlohmann::json;

constexpr std::uint64_t kLargestSegment = std::uint64_t{256} << 20;  // larger ones are not thinned
constexpr std::size_t kMostSchemaBytes = std::size_t{64} << 20;
constexpr auto kTrain = static_cast<std::size_t>(model::Mode::kTrain) - 1;  // in a footer's modes

// What is known of a sealed part without its pages.
struct Part {
    std::uint32_t number = 0;
    std::uint64_t bytes = 0;
    format::SegmentFooter footer;
};

struct Known {
    WorkerFiles files;
    std::vector<Part> parts;
    std::map<std::uint32_t, model::StepIndex> blob_begins;  // blob -> the first TRAIN step that it may hold
    std::optional<model::StepIndex> newest;                 // TRAIN step
};

// Events of kind "blob" say with which step a blob began.
void note_blob(ByteSpan payload, Known& known) {
    const Result<format::EventRecord> event = format::decode_event(payload);
    if (!event || event->kind != "blob") return;
    const json value = json::parse(event->json, nullptr, false);
    if (!value.is_object() || value.value("mode", json()) != "train") return;
    const json blob = value.value("blob", json());
    const json step = value.value("step", json());
    if (!blob.is_number_unsigned() || !step.is_number_unsigned()) return;
    const auto number = blob.get<std::uint64_t>();
    if (number <= UINT32_MAX)
        known.blob_begins[static_cast<std::uint32_t>(number)] = step.get<model::StepIndex>();
}

void note_step(model::StepIndex step, Known& known) {
    known.newest = std::max(known.newest.value_or(step), step);
}

// All frames of `bytes`, whole ones only.
template <typename Visit>
void for_each_frame(ByteSpan bytes, std::uint64_t offset, const format::FileHeader& header,
                    const Visit& visit) {
    format::FrameScanner scanner(offset, header);
    while (true) {
        const auto at = static_cast<std::size_t>(scanner.position() - offset);
        const format::ScanItem item = scanner.next(bytes.subspan(std::min(at, bytes.size())), true);
        if (item.kind == format::ScanItem::Kind::kNeedMore || item.kind == format::ScanItem::Kind::kForeign)
            return;
        if (item.kind == format::ScanItem::Kind::kFrame) visit(item.frame);
    }
}

Status look_at_segment(storage::FileSystem& files, const std::string& path, const WorkerFiles::File& file,
                       bool with_events, Known& known) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ReadFile> opened, files.open(path));
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer head,
                              opened->read_at(0, static_cast<std::size_t>(format::kHeaderZoneBytes)));
    const std::optional<format::FileHeader> header = format::find_file_header(head);
    if (!header) return {Code::kDataLoss, path + ": has no header"};
    TRAINDBG_RETURN_IF_ERROR(format::check_version(*header));
    const std::uint64_t zone = std::min<std::uint64_t>(file.bytes, format::kFooterZoneBytes);
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer tail,
                              opened->read_at(file.bytes - zone, static_cast<std::size_t>(zone)));
    const std::optional<format::SegmentFooter> footer = format::find_footer(tail, header->salt);
    if (!footer) return {Code::kDataLoss, path + ": has no footer"};
    known.parts.push_back({file.number, file.bytes, *footer});
    if (footer->modes[kTrain].steps != 0) note_step(footer->modes[kTrain].most, known);
    const std::uint64_t begin = footer->schema_offset + footer->schema_bytes;
    if (!with_events || footer->pages_offset < begin || footer->pages_offset - begin > kMostSchemaBytes)
        return Status::ok();
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer between,
                              opened->read_at(begin, static_cast<std::size_t>(footer->pages_offset - begin)));
    for_each_frame(between, begin, *header, [&](const format::Frame& frame) {
        if (frame.type == format::FrameType::kEvent) note_blob(frame.payload, known);
    });
    return Status::ok();
}

// Of a part that is no sealed one: what it says of steps and blobs.
Status look_at_log(storage::FileSystem& files, const std::string& path, Known& known) {
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer bytes, storage::read_whole(files, path, kLargestSegment));
    const std::optional<format::FileHeader> header = format::find_file_header(bytes);
    if (!header) return Status::ok();
    for_each_frame(bytes, 0, *header, [&](const format::Frame& frame) {
        if (frame.type == format::FrameType::kEvent) note_blob(frame.payload, known);
        if (frame.type != format::FrameType::kStep) return;
        const Result<format::StepPrefix> prefix = format::decode_step_prefix(frame.payload);
        if (prefix && prefix->mode == model::Mode::kTrain) note_step(prefix->step, known);
    });
    return Status::ok();
}

class Collector {
  public:
    Collector(storage::FileSystem& files, const storage::RunLayout& layout, model::WorkerId worker,
              const model::Retention& retention, const RetentionLimits& limits)
        : files_(files), layout_(layout), worker_(worker), retention_(retention), limits_(limits) {}

    Result<RetentionReport> run() {
        TRAINDBG_ASSIGN_OR_RETURN(known_.files, list_worker(files_, layout_, worker_));
        report_.bytes_left = known_.files.bytes();
        const bool is_over = retention_.quota_bytes != 0 && report_.bytes_left > retention_.quota_bytes;
        const bool may_remove_for_quota =
            limits_.quota_removes || retention_.keep_last != 0 || retention_.keep_tensors != 0;
        if (retention_.keep_last == 0 && retention_.keep_tensors == 0 && !(is_over && may_remove_for_quota))
            return std::move(report_);
        look();
        if (retention_.keep_tensors != 0) remove_old_blobs();
        if (retention_.keep_last != 0) thin_old_parts();
        if (retention_.quota_bytes != 0 && may_remove_for_quota) remove_for_quota();
        if (!report_.removals.empty() && !limits_.is_dry_run) tell_in_run();
        return std::move(report_);
    }

  private:
    void look() {
        const bool with_events = !known_.files.blobs.empty();
        for (const WorkerFiles::File& file : known_.files.segments) {
            const Status status =
                look_at_segment(files_, layout_.segment(worker_, file.number), file, with_events, known_);
            if (!status.is_ok()) report_.problems.push_back(status.message());
        }
        // The log that is being written is newer than all else; without it things only look younger.
        for (const WorkerFiles::File& file : known_.files.logs) {
            if (file.number >= limits_.first_live_part) continue;
            const Status status = look_at_log(files_, layout_.log(worker_, file.number), known_);
            if (!status.is_ok()) report_.problems.push_back(status.message());
        }
    }

    // The first TRAIN step that belongs to the `count` newest; nothing: all do.
    [[nodiscard]] std::optional<model::StepIndex> first_of_newest(std::uint64_t count) const {
        if (!known_.newest || *known_.newest < count) return std::nullopt;
        return *known_.newest - count + 1;
    }

    void remove_old_blobs() {
        const std::optional<model::StepIndex> first = first_of_newest(retention_.keep_tensors);
        if (!first) return;
        std::vector<WorkerFiles::File> left;
        for (const WorkerFiles::File& blob : known_.files.blobs) {
            // What a later blob began with is later than all that this one holds.
            const auto later = known_.blob_begins.upper_bound(blob.number);
            const bool is_old = later != known_.blob_begins.end() && later->second <= *first;
            if (blob.number >= limits_.first_live_blob || !is_old ||
                !remove(layout_.blob(worker_, blob.number), blob.bytes,
                        base::format("whole tensors of steps before {}", *first)))
                left.push_back(blob);
        }
        known_.files.blobs = std::move(left);
    }

    [[nodiscard]] bool stays(model::Mode mode, model::StepIndex step, model::StepIndex first) const noexcept {
        if (mode != model::Mode::kTrain || step >= first) return true;
        return retention_.thin != 0 && step % retention_.thin == 0;
    }

    void thin_old_parts() {
        const std::optional<model::StepIndex> first = first_of_newest(retention_.keep_last);
        if (!first) return;
        for (Part& part : known_.parts) {
            const format::SegmentFooter::ModeRange& train = part.footer.modes[kTrain];
            if (part.number >= limits_.first_live_part || train.steps == 0 || train.least >= *first) continue;
            const bool has_young = train.most >= *first;
            if (has_young && !limits_.splits_parts) continue;
            const model::StepIndex last_old = has_young ? *first - 1 : train.most;
            std::uint64_t most_left = has_young ? train.most - last_old : 0;
            if (retention_.thin != 0)
                most_left +=
                    last_old / retention_.thin + 1 - (train.least + retention_.thin - 1) / retention_.thin;
            if (train.steps <= most_left) continue;
            if (const Status status = thin(part, *first); !status.is_ok())
                report_.problems.push_back(
                    base::format("{}: {}", layout_.segment(worker_, part.number), status.message()));
        }
    }

    Status thin(Part& part, model::StepIndex first) {
        const std::string path = layout_.segment(worker_, part.number);
        TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer before,
                                  storage::read_whole(files_, path, kLargestSegment));
        std::uint64_t removed = 0;
        TRAINDBG_ASSIGN_OR_RETURN(
            const ByteBuffer after,
            thin_segment(
                before,
                [this, first](model::Mode mode, model::StepIndex step) { return stays(mode, step, first); },
                &removed));
        if (removed == 0 || after.size() >= before.size()) return Status::ok();
        const std::string why = retention_.thin == 0 ? base::format("{} steps before {}", removed, first)
                                                     : base::format("{} steps before {}; every {}th stays",
                                                                    removed, first, retention_.thin);
        if (!limits_.is_dry_run) {
            announce(why);
            TRAINDBG_RETURN_IF_ERROR(files_.put_atomic(path, after));
        }
        part.bytes = after.size();
        report_.steps_removed += removed;
        note(path, before.size() - after.size(), why);
        return Status::ok();
    }

    // The oldest go first: whole tensors, then parts; the newest of each stays.
    void remove_for_quota() {
        const std::string why =
            base::format("over the quota of {}", base::human_bytes(retention_.quota_bytes));
        for (const WorkerFiles::File& blob : known_.files.blobs) {
            if (report_.bytes_left <= retention_.quota_bytes) return;
            if (blob.number < limits_.first_live_blob &&
                (limits_.quota_removes || blob.number != known_.files.blobs.back().number))
                remove(layout_.blob(worker_, blob.number), blob.bytes, why);
        }
        for (const Part& part : known_.parts) {
            if (report_.bytes_left <= retention_.quota_bytes) return;
            if (part.number >= limits_.first_live_part || part.number == known_.parts.back().number) continue;
            // Behind a log that stays, a gap in the middle would look like damage.
            if (!known_.files.logs.empty() && known_.files.logs.front().number < part.number) return;
            // One that cannot be removed would have a gap behind it.
            if (!remove(layout_.segment(worker_, part.number), part.bytes, why)) return;
            report_.steps_removed += part.footer.steps;
        }
    }

    bool remove(const std::string& path, std::uint64_t bytes, const std::string& why) {
        if (!limits_.is_dry_run) {
            announce(why);
            if (const Status status = files_.remove(path); !status.is_ok()) {
                report_.problems.push_back(status.message());
                return false;
            }
        }
        note(path, bytes, why);
        return true;
    }

    // Before the first file goes or gets smaller: without a word in the run, its absence would be damage to
    // who reads now, or for ever when this process dies before the sum is written. On a full disk the file
    // goes all the same: then there is room for the sum.
    void announce(const std::string& why) {
        if (std::exchange(is_announced_, true)) return;
        const std::string path = layout_.removed_json(worker_);
        if (files_.exists(path)) return;
        format::Removals removals;
        removals.last = why;
        files_.put_atomic(path, base::as_bytes(format::to_json(removals))).ignore();
    }

    void note(const std::string& path, std::uint64_t bytes, const std::string& why) {
        report_.removals.push_back({path, bytes, why});
        report_.bytes_freed += bytes;
        report_.bytes_left -= std::min(bytes, report_.bytes_left);
    }

    // What is missing from the run on purpose stands in the run.
    void tell_in_run() {
        const std::string path = layout_.removed_json(worker_);
        format::Removals removals;
        if (const Result<ByteBuffer> before = storage::read_whole(files_, path, 1 << 16)) {
            auto old =
                format::removals_from_json({reinterpret_cast<const char*>(before->data()), before->size()});
            if (old) removals = std::move(old).value();
        }
        removals.bytes += report_.bytes_freed;
        removals.steps += report_.steps_removed;
        removals.last = report_.removals.back().why;
        const Status status = files_.put_atomic(path, base::as_bytes(format::to_json(removals)));
        if (!status.is_ok()) report_.problems.push_back(status.message());
    }

    storage::FileSystem& files_;
    const storage::RunLayout& layout_;
    const model::WorkerId worker_;
    const model::Retention& retention_;
    const RetentionLimits& limits_;
    Known known_;
    RetentionReport report_;
    bool is_announced_ = false;
};

}  // namespace

Result<RetentionReport> apply_retention(storage::FileSystem& files, const storage::RunLayout& layout,
                                        model::WorkerId worker, const model::Retention& retention,
                                        const RetentionLimits& limits) {
    return Collector(files, layout, worker, retention, limits).run();
}

Result<CollectReport> collect_run(storage::FileSystem& files, const std::string& run,
                                  const model::Retention& retention, bool is_dry_run) {
    const storage::RunLayout layout{run};
    if (!files.exists(layout.run_json()))
        return Status(Code::kNotFound, run + ": is no run: there is no RUN.json in it");
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<model::WorkerId> workers, list_workers(files, layout));
    CollectReport report;
    for (const model::WorkerId worker : workers) {
        // To look needs no right, and makes no file.
        const Result<std::unique_ptr<storage::FileLock>> lock = lock_worker(
            files, layout, worker, is_dry_run ? storage::LockFile::kMustExist : storage::LockFile::kIsMade);
        const bool is_free = !lock && lock.status().code() == Code::kNotFound;
        if (is_free && !is_dry_run) continue;
        if (!lock && lock.status().code() == Code::kUnavailable) {
            report.workers_alive.push_back(worker);
            if (const Result<WorkerFiles> found = list_worker(files, layout, worker))
                report.bytes_left += found->bytes();
            continue;
        }
        if (!lock && !is_free) {
            report.problems.push_back(lock.status().message());
            continue;
        }
        Result<RetentionReport> one =
            apply_retention(files, layout, worker, retention,
                            {.is_dry_run = is_dry_run, .quota_removes = true, .splits_parts = true});
        if (!one) {
            report.problems.push_back(one.status().message());
            continue;
        }
        report.bytes_freed += one->bytes_freed;
        report.bytes_left += one->bytes_left;
        report.steps_removed += one->steps_removed;
        std::move(one->removals.begin(), one->removals.end(), std::back_inserter(report.removals));
        std::move(one->problems.begin(), one->problems.end(), std::back_inserter(report.problems));
    }
    return report;
}

}  // namespace traindbg::seal
