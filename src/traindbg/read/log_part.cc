#include <algorithm>
#include <utility>

#include "traindbg/format/step_sample.h"
#include "traindbg/read/part.h"

namespace traindbg::read::internal {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::StepRecord;
using model::TensorTable;

constexpr std::size_t kMostLogDamage = 1000;  // entries per file: a file of garbage is told briefly

bool is_log_damage(const Status& status) {
    return status.code() == Code::kDataLoss || status.code() == Code::kUnsupported;
}

}  // namespace

Result<bool> LogPart::poll(const FrameVisitor& visit) {
    bool is_new = false;
    TRAINDBG_RETURN_IF_ERROR(reader_.poll([&](std::uint64_t offset, const format::Frame& frame) {
        is_new = true;
        if (frame.flags != 0) return;  // of a newer version: this one cannot know what it holds
        if (frame.type != format::FrameType::kStep) return visit(offset, frame);
        const Result<format::StepPrefix> prefix = format::decode_step_prefix(frame.payload);
        // The checksum was right, so this is no damage of the disk: another program wrote it.
        if (!prefix) return note(offset, frame.bytes, prefix.status().message());
        steps_.push_back({offset,
                          {prefix->mode, prefix->step, prefix->sequence},
                          static_cast<std::uint32_t>(frame.bytes),
                          prefix->raw_tensors != 0});
        if (prefix->mode != model::Mode::kTrain) return;
        step_nanos_ += prefix->step_nanos;
        capture_nanos_ += prefix->capture_nanos;
    }));
    return is_new;
}

void LogPart::note(std::uint64_t offset, std::uint64_t bytes, std::string what) {
    if (damage_.size() < kMostLogDamage && damaged_offsets_.insert(offset).second)
        damage_.push_back({reader_.name(), offset, bytes, std::move(what), false});
}

void LogPart::note_row(std::uint64_t row, const std::string& what) {
    note(steps_[row].offset, steps_[row].bytes, what);
}

void LogPart::append_damage(std::vector<Damage>& out) const {
    out.insert(out.end(), damage_.begin(), damage_.end());
    out.insert(out.end(), reader_.damage().begin(), reader_.damage().end());
    if (reader_.tail()) out.push_back(*reader_.tail());
}

Result<std::optional<StepKey>> LogPart::key(std::uint64_t row) { return std::optional(steps_[row].key); }

Result<std::optional<std::uint64_t>> LogPart::find(model::Mode mode, model::StepIndex step) {
    const auto it = std::find_if(steps_.begin(), steps_.end(), [&](const Entry& entry) {
        return entry.key.mode == mode && entry.key.step == step;
    });
    if (it == steps_.end()) return std::optional<std::uint64_t>();
    return std::optional(static_cast<std::uint64_t>(it - steps_.begin()));
}

Status LogPart::steps(model::Mode mode, std::vector<model::StepIndex>& out) {
    for (const Entry& entry : steps_)
        if (entry.key.mode == mode) out.push_back(entry.key.step);
    return Status::ok();
}

Status LogPart::load(std::uint64_t row, const TensorTable& table, StepRecord& record,
                     std::vector<format::RawPlace>* places, std::uint64_t& skipped) {
    const Entry& entry = steps_[row];
    TRAINDBG_ASSIGN_OR_RETURN(const format::Frame frame, reader_.frame_at(entry.offset, entry.bytes));
    TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t unknown,
                              format::decode_step(frame.payload, table, record, places));
    skipped += unknown;
    return Status::ok();
}

Status LogPart::series(model::TensorId tensor, const Statistic& statistic, const TensorTable& table,
                       std::vector<SeriesPoint>& out) {
    const auto parts =
        statistic.kind == StatisticKind::kMoment ? format::SampleParts::kMoments : format::SampleParts::kAll;
    model::TensorSample sample;
    double value = 0;
    // False: the step has none of it.
    const auto read = [&](const Entry& entry) -> Result<bool> {
        TRAINDBG_ASSIGN_OR_RETURN(const format::Frame frame, reader_.frame_at(entry.offset, entry.bytes));
        if (statistic.kind == StatisticKind::kValue)
            return format::decode_scalar_of(frame.payload, table, tensor, value);
        TRAINDBG_ASSIGN_OR_RETURN(const bool is_there,
                                  format::decode_sample_of(frame.payload, table, tensor, parts, sample));
        if (!is_there) return false;
        const std::optional<double> taken = value_of(statistic, sample);
        value = taken.value_or(0);
        return taken.has_value();
    };
    for (std::uint64_t row = 0; row < steps_.size(); ++row) {
        const Entry& entry = steps_[row];
        const Result<bool> is_there = read(entry);
        if (!is_there) {
            if (!is_log_damage(is_there.status())) return is_there.status();
            note_row(row, is_there.status().message());
        } else if (*is_there) {
            out.push_back({entry.key.mode, entry.key.step, value});
        }
    }
    release();
    return Status::ok();
}

Status LogPart::digests(model::TensorId tensor, const TensorTable& table, std::vector<DigestPoint>& out) {
    StepRecord record;
    std::uint64_t skipped = 0;
    for (std::uint64_t row = 0; row < steps_.size(); ++row) {
        const Status status = load(row, table, record, nullptr, skipped);
        if (is_log_damage(status)) {
            note_row(row, status.message());
            continue;
        }
        TRAINDBG_RETURN_IF_ERROR(status);
        for (const model::DigestSample& sample : record.digests)
            if (sample.tensor == tensor)
                out.push_back({steps_[row].key.mode, steps_[row].key.step, sample.digest});
    }
    release();
    return Status::ok();
}

Status LogPart::places(model::TensorId tensor, const TensorTable& table, std::vector<PlacedTensor>& out) {
    StepRecord record;
    std::vector<format::RawPlace> found;
    std::uint64_t skipped = 0;
    for (std::uint64_t row = 0; row < steps_.size(); ++row) {
        if (!steps_[row].has_raw) continue;
        const Status status = load(row, table, record, &found, skipped);
        if (is_log_damage(status)) {
            note_row(row, status.message());
            continue;
        }
        TRAINDBG_RETURN_IF_ERROR(status);
        for (const format::RawPlace& place : found)
            if (place.tensor == tensor) out.push_back({steps_[row].key, place});
    }
    release();
    return Status::ok();
}

}  // namespace traindbg::read::internal
