#include "traindbg/seal/thin.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "traindbg/format/column.h"
#include "traindbg/format/frame_scanner.h"
#include "traindbg/format/record_parts.h"
#include "traindbg/format/records.h"
#include "traindbg/format/segment.h"
#include "traindbg/model/step_record.h"

namespace traindbg::seal {
namespace {

using base::ByteBuffer;
using base::ByteReader;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using format::Column;
using format::ColumnEntry;
using format::FrameType;
using format::PageKind;
using format::PageTable;
using model::Statistics;
using model::StepRecord;
using model::TensorSample;

constexpr std::uint32_t kNotKept = std::numeric_limits<std::uint32_t>::max();

constexpr std::array kMoments = {
    std::pair{Column::kMin, &Statistics::min},   std::pair{Column::kMax, &Statistics::max},
    std::pair{Column::kMean, &Statistics::mean}, std::pair{Column::kStd, &Statistics::std},
    std::pair{Column::kL1, &Statistics::l1},     std::pair{Column::kL2, &Statistics::l2},
};
constexpr std::array kCounts = {
    std::pair{Column::kNan, &Statistics::nan},
    std::pair{Column::kPositiveInfinite, &Statistics::positive_infinite},
    std::pair{Column::kNegativeInfinite, &Statistics::negative_infinite},
    std::pair{Column::kZero, &Statistics::zero},
};

Status damaged(const char* what) { return {Code::kDataLoss, what}; }

// One that is not would get lost here.
bool is_known(const ColumnEntry& entry) {
    const std::uint8_t number = entry.column;
    const auto lies = [number](Column first, Column last) {
        return number >= static_cast<std::uint8_t>(first) && number <= static_cast<std::uint8_t>(last);
    };
    return lies(Column::kRow, Column::kL2) || lies(Column::kCount, Column::kHigh) ||
           lies(Column::kValue, Column::kValue) || lies(Column::kLengths, Column::kBins) ||
           lies(Column::kMode, Column::kCaptureNanos);
}

// The part's frames, in memory: the kept steps get their content page by page.
class Thinner {
  public:
    Thinner(const format::FileHeader& header, const std::function<bool(model::Mode, model::StepIndex)>& keeps)
        : header_(header), keeps_(keeps), builder_(log_header(header), header.salt + 2) {}

    Status take(const format::Frame& frame) {
        switch (frame.type) {
            case FrameType::kFileHeader:
            case FrameType::kIndex: return Status::ok();
            case FrameType::kFooter: is_whole_ = true; return Status::ok();
            case FrameType::kSchema:
                TRAINDBG_RETURN_IF_ERROR(format::decode_schema(frame.payload, table_));
                return builder_.add(frame);
            case FrameType::kWorker:
            case FrameType::kEvent: return builder_.add(frame);
            case FrameType::kDropped:
            case FrameType::kEnd:  // behind the steps, as in a log
                totals_type_ = frame.type;
                totals_.emplace(frame.payload.begin(), frame.payload.end());
                return Status::ok();
            case FrameType::kPage: return take_page(frame.payload);
            default: return {Code::kUnsupported, "holds records that this version does not know"};
        }
    }

    Result<ByteBuffer> finish() {
        if (!is_whole_) return damaged("the sealed part has no footer");
        base::ByteWriter payload;
        format::Frame frame;
        const std::vector<std::uint64_t> counts = format::element_counts(table_);
        for (const Kept& step : steps_) {
            payload.clear();
            if (format::encode_step(payload, step.record, table_, step.places, counts) != 0)
                return damaged("a step has too many classes or channels");
            frame.type = FrameType::kStep;
            frame.payload = payload.bytes();
            TRAINDBG_RETURN_IF_ERROR(builder_.add(frame));
        }
        if (totals_) {
            frame.type = totals_type_;
            frame.payload = *totals_;
            TRAINDBG_RETURN_IF_ERROR(builder_.add(frame));
        }
        return builder_.finish();
    }

    [[nodiscard]] std::uint64_t removed() const noexcept { return removed_; }

  private:
    struct Kept {
        StepRecord record;
        std::vector<format::RawPlace> places;
        std::uint64_t classes_left = format::kMostClasses;
        std::uint64_t channels_left = format::kMostStepChannels;
    };

    static format::FileHeader log_header(format::FileHeader header) {
        header.kind = format::FileKind::kLog;
        return header;
    }

    Status take_page(ByteSpan payload) {
        TRAINDBG_ASSIGN_OR_RETURN(page_, format::decode_page_table(payload, header_.salt));
        for (const ColumnEntry& column : page_->columns)
            if (!is_known(column))
                return {Code::kUnsupported, "holds columns that this version does not know"};
        payload_ = payload;
        switch (page_->kind) {
            case PageKind::kSteps: return take_steps();
            case PageKind::kStatistics: return take_statistics();
            case PageKind::kScalars: return take_scalars();
            case PageKind::kHistograms: return take_histograms();
            case PageKind::kClasses: return take_classes();
            case PageKind::kRaw: return take_places();
            case PageKind::kChannels: return take_channels();
            case PageKind::kDigests: return take_digests();
        }
        return {Code::kUnsupported, "holds pages that this version does not know"};
    }

    [[nodiscard]] ByteSpan stored(const ColumnEntry& entry) const {
        return payload_.subspan(std::min<std::size_t>(entry.offset, payload_.size()))
            .first(std::min<std::size_t>(
                entry.stored_bytes, payload_.size() - std::min<std::size_t>(entry.offset, payload_.size())));
    }
    // False: the column was left out.
    Result<bool> integers(Column column, std::vector<std::uint64_t>& out) {
        const ColumnEntry* entry = page_->find(column);
        if (entry == nullptr) return false;
        TRAINDBG_RETURN_IF_ERROR(decoder_.integers(*entry, stored(*entry), header_.salt, page_->rows, out));
        return true;
    }
    // The kept step of each row of the page.
    Status find_targets() {
        TRAINDBG_ASSIGN_OR_RETURN(const bool has_rows, integers(Column::kRow, rows_));
        if (!has_rows) return damaged("a page has no rows");
        targets_.assign(page_->rows, nullptr);
        for (std::size_t i = 0; i < targets_.size(); ++i) {
            if (rows_[i] >= kept_at_.size()) return damaged("a page names a step that is not there");
            if (kept_at_[rows_[i]] != kNotKept) targets_[i] = &steps_[kept_at_[rows_[i]]];
        }
        return Status::ok();
    }

    // These pages come before all others.
    Status take_steps() {
        constexpr std::array kColumns = {Column::kMode,        Column::kStep,           Column::kSequence,
                                         Column::kWallNanos,   Column::kMonotonicNanos, Column::kStepNanos,
                                         Column::kCaptureNanos};
        std::array<std::vector<std::uint64_t>, kColumns.size()> columns;
        for (std::size_t i = 0; i < kColumns.size(); ++i) {
            TRAINDBG_ASSIGN_OR_RETURN(const bool found, integers(kColumns[i], columns[i]));
            if (!found) columns[i].assign(page_->rows, 0);
        }
        for (std::size_t i = 0; i < page_->rows; ++i) {
            if (columns[0][i] == 0 || columns[0][i] >= model::kModeCount) return damaged("a step of no mode");
            const auto mode = static_cast<model::Mode>(columns[0][i]);
            if (!keeps_(mode, columns[1][i])) {
                kept_at_.push_back(kNotKept);
                ++removed_;
                continue;
            }
            kept_at_.push_back(static_cast<std::uint32_t>(steps_.size()));
            StepRecord& record = steps_.emplace_back().record;
            record.mode = mode;
            record.step = columns[1][i];
            record.sequence = columns[2][i];
            record.wall_nanos = static_cast<std::int64_t>(columns[3][i]);
            record.monotonic_nanos = static_cast<std::int64_t>(columns[4][i]);
            record.step_nanos = columns[5][i];
            record.capture_nanos = columns[6][i];
        }
        return Status::ok();
    }

    Status take_statistics() {
        TRAINDBG_RETURN_IF_ERROR(find_targets());
        std::vector<TensorSample> samples(page_->rows);
        for (TensorSample& sample : samples) {
            sample.tensor = page_->tensor;
            if (format::is_known(table_, page_->tensor))
                sample.statistics.count = format::element_count(table_[page_->tensor].shape);
        }
        std::vector<float> floats;
        for (const auto& [column, moment] : kMoments) {
            const ColumnEntry* entry = page_->find(column);
            if (entry == nullptr) continue;
            TRAINDBG_RETURN_IF_ERROR(
                decoder_.floats(*entry, stored(*entry), header_.salt, page_->rows, floats));
            for (std::size_t i = 0; i < samples.size(); ++i)
                samples[i].statistics.*moment = static_cast<double>(floats[i]);
        }
        std::vector<std::uint64_t> numbers;
        const auto each = [&](Column column, const auto& put) -> Status {
            TRAINDBG_ASSIGN_OR_RETURN(const bool found, integers(column, numbers));
            for (std::size_t i = 0; found && i < samples.size(); ++i) put(samples[i], numbers[i]);
            return Status::ok();
        };
        TRAINDBG_RETURN_IF_ERROR(
            each(Column::kCount, [](TensorSample& s, std::uint64_t n) { s.statistics.count = n; }));
        for (const auto& [column, count] : kCounts) {
            const auto member = count;
            TRAINDBG_RETURN_IF_ERROR(
                each(column, [member](TensorSample& s, std::uint64_t n) { s.statistics.*member = n; }));
        }
        TRAINDBG_RETURN_IF_ERROR(each(Column::kUnits, [](TensorSample& s, std::uint64_t n) {
            s.units.units = static_cast<std::uint32_t>(n);
        }));
        TRAINDBG_RETURN_IF_ERROR(each(Column::kInactiveUnits, [](TensorSample& s, std::uint64_t n) {
            s.units.inactive_units = static_cast<std::uint32_t>(n);
        }));
        TRAINDBG_RETURN_IF_ERROR(
            each(Column::kLow, [](TensorSample& s, std::uint64_t n) { s.units.low = n; }));
        TRAINDBG_RETURN_IF_ERROR(
            each(Column::kHigh, [](TensorSample& s, std::uint64_t n) { s.units.high = n; }));
        for (std::size_t i = 0; i < samples.size(); ++i)
            if (targets_[i] != nullptr) targets_[i]->record.tensors.push_back(samples[i]);
        return Status::ok();
    }

    Status take_scalars() {
        TRAINDBG_RETURN_IF_ERROR(find_targets());
        std::vector<double> values(page_->rows, 0);
        if (const ColumnEntry* entry = page_->find(Column::kValue))
            TRAINDBG_RETURN_IF_ERROR(
                decoder_.doubles(*entry, stored(*entry), header_.salt, page_->rows, values));
        for (std::size_t i = 0; i < values.size(); ++i)
            if (targets_[i] != nullptr) targets_[i]->record.scalars.push_back({page_->tensor, values[i]});
        return Status::ok();
    }

    Status take_histograms() {
        TRAINDBG_RETURN_IF_ERROR(find_targets());
        const ColumnEntry* entry = page_->find(Column::kBins);
        if (entry == nullptr) return damaged("a page of histograms is empty");
        TRAINDBG_ASSIGN_OR_RETURN(const ByteSpan bytes, decoder_.bytes(*entry, stored(*entry), header_.salt));
        TRAINDBG_ASSIGN_OR_RETURN(std::vector<model::Histogram> histograms,
                                  format::decode_histogram_rows(bytes, page_->rows));
        for (std::size_t i = 0; i < histograms.size(); ++i)
            if (targets_[i] != nullptr)
                targets_[i]->record.histograms.push_back({page_->tensor, std::move(histograms[i])});
        return Status::ok();
    }

    // Calls `put` with a reader over the bytes of each row whose step is kept.
    template <typename Put>
    Status each_opaque_row(const Put& put) {
        TRAINDBG_RETURN_IF_ERROR(find_targets());
        std::vector<std::uint64_t> lengths;
        TRAINDBG_ASSIGN_OR_RETURN(const bool has_lengths, integers(Column::kLengths, lengths));
        const ColumnEntry* entry = page_->find(Column::kBytes);
        if (!has_lengths || entry == nullptr) return damaged("a page has no lengths");
        TRAINDBG_ASSIGN_OR_RETURN(ByteSpan bytes, decoder_.bytes(*entry, stored(*entry), header_.salt));
        for (std::size_t i = 0; i < lengths.size(); ++i) {
            if (lengths[i] > bytes.size()) return damaged("a row is longer than its page");
            const auto length = static_cast<std::size_t>(lengths[i]);
            if (targets_[i] != nullptr) {
                ByteReader reader(bytes.first(length));
                put(*targets_[i], reader);
                if (!reader.ok()) return damaged("a row is damaged");
            }
            bytes = bytes.subspan(length);
        }
        return Status::ok();
    }

    Status take_classes() {
        return each_opaque_row([&](Kept& kept, ByteReader& reader) {
            model::ClassSample sample;
            sample.tensor = page_->tensor;
            format::internal::decode_class_counts(reader, kept.classes_left, sample.counts);
            kept.record.classes.push_back(std::move(sample));
        });
    }
    Status take_channels() {
        return each_opaque_row([&](Kept& kept, ByteReader& reader) {
            model::ChannelSample sample;
            sample.tensor = page_->tensor;
            format::internal::decode_channels(reader, kept.channels_left, sample.channels);
            kept.record.channels.push_back(std::move(sample));
        });
    }
    Status take_digests() {
        return each_opaque_row([&](Kept& kept, ByteReader& reader) {
            kept.record.digests.push_back({page_->tensor, format::internal::decode_digest(reader)});
        });
    }
    Status take_places() {
        return each_opaque_row([&](Kept& kept, ByteReader& reader) {
            format::RawPlace place;
            place.tensor = page_->tensor;
            format::internal::decode_raw_place(reader, table_, place);
            kept.places.push_back(std::move(place));
        });
    }

    const format::FileHeader header_;
    const std::function<bool(model::Mode, model::StepIndex)>& keeps_;
    format::SegmentBuilder builder_;
    format::ColumnDecoder decoder_;
    model::TensorTable table_;
    std::vector<std::uint32_t> kept_at_;  // row -> index of `steps_`
    std::vector<Kept> steps_;
    std::optional<ByteBuffer> totals_;
    FrameType totals_type_ = FrameType::kEnd;
    std::uint64_t removed_ = 0;
    bool is_whole_ = false;

    // Of the page under way.
    std::optional<PageTable> page_;
    ByteSpan payload_;
    std::vector<std::uint64_t> rows_;
    std::vector<Kept*> targets_;
};

}  // namespace

Result<ByteBuffer> thin_segment(ByteSpan segment,
                                const std::function<bool(model::Mode mode, model::StepIndex step)>& keeps,
                                std::uint64_t* steps_removed) {
    const std::optional<format::FileHeader> header = format::find_file_header(segment);
    if (!header || header->kind != format::FileKind::kSegment) return damaged("is no sealed part");
    TRAINDBG_RETURN_IF_ERROR(format::check_version(*header));
    Thinner thinner(*header, keeps);
    format::FrameScanner scanner;
    while (true) {
        const auto at = static_cast<std::size_t>(scanner.position());
        const format::ScanItem item = scanner.next(segment.subspan(std::min(at, segment.size())), true);
        if (item.kind == format::ScanItem::Kind::kNeedMore) break;
        if (item.kind != format::ScanItem::Kind::kFrame) return Status(Code::kDataLoss, item.what);
        TRAINDBG_RETURN_IF_ERROR(thinner.take(item.frame));
    }
    if (scanner.settled() != segment.size()) return damaged("the sealed part has no end");
    TRAINDBG_ASSIGN_OR_RETURN(ByteBuffer thinned, thinner.finish());
    if (steps_removed != nullptr) *steps_removed = thinner.removed();
    return thinned;
}

}  // namespace traindbg::seal
