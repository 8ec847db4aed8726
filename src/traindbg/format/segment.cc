#include "traindbg/format/segment.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"
#include "traindbg/format/record_parts.h"
#include "traindbg/model/step_record.h"

namespace traindbg::format {
namespace {

using base::ByteBuffer;
using base::ByteReader;
using base::ByteSpan;
using base::ByteWriter;
using base::Code;
using base::Result;
using base::Status;
using model::Statistics;
using model::StepRecord;
using model::TensorId;
using model::TensorSample;

// A page of opaque rows ends when it holds this much, so that it fits a frame.
constexpr std::size_t kMostOpaqueBytes = std::size_t{4} << 20;
// The rows of a page of histograms: all bins in all of them stay below 6 MB.
constexpr std::size_t kMostHistogramRows = 1024;
constexpr std::size_t kTensorsPerSchema = 1000;

constexpr std::array kMomentColumns = {
    std::pair{Column::kMin, &Statistics::min},   std::pair{Column::kMax, &Statistics::max},
    std::pair{Column::kMean, &Statistics::mean}, std::pair{Column::kStd, &Statistics::std},
    std::pair{Column::kL1, &Statistics::l1},     std::pair{Column::kL2, &Statistics::l2},
};

// The integers of a statistics sample, in the order of kCountColumns.
constexpr std::array kCountColumns = {
    Column::kCount, Column::kNan,   Column::kPositiveInfinite, Column::kNegativeInfinite,
    Column::kZero,  Column::kUnits, Column::kInactiveUnits,    Column::kLow,
    Column::kHigh,
};
std::array<std::uint64_t, kCountColumns.size()> counts_of(const TensorSample& sample) noexcept {
    const Statistics& s = sample.statistics;
    return {s.count,
            s.nan,
            s.positive_infinite,
            s.negative_infinite,
            s.zero,
            sample.units.units,
            sample.units.inactive_units,
            sample.units.low,
            sample.units.high};
}

// Integers most of which are a default: nothing is kept until one is not.
class SparseIntegers {
  public:
    void add(std::uint64_t value, std::uint64_t usual, std::size_t rows_before) {
        if (values_.empty()) {
            if (value == usual) return;
            values_.assign(rows_before, usual);
        }
        values_.push_back(value);
    }
    [[nodiscard]] const std::vector<std::uint64_t>& values() const noexcept { return values_; }
    void clear() noexcept { values_.clear(); }

  private:
    std::vector<std::uint64_t> values_;
};

// Rows of one tensor that are not in a page yet. They come in step by step, tensor by tensor: what a row
// holds lies together until the page is made, so that it costs a cache line and not one for each column.
struct StatisticsRow {
    std::uint32_t row = 0;
    std::array<float, kMomentColumns.size()> moments{};
};
struct StatisticsRows {
    std::vector<StatisticsRow> rows;
    bool has_counts = false;  // one of `counts` has begun
    std::array<SparseIntegers, kCountColumns.size()> counts;
};
struct ScalarRows {
    std::vector<std::uint64_t> rows;
    std::vector<double> values;
};
struct HistogramRows {
    std::vector<std::uint64_t> rows;
    std::vector<model::Histogram> histograms;
};
struct OpaqueRows {
    std::vector<std::uint64_t> rows;
    std::vector<std::uint64_t> lengths;
    ByteWriter bytes;
};
constexpr std::array kStepColumns = {Column::kMode,        Column::kStep,           Column::kSequence,
                                     Column::kWallNanos,   Column::kMonotonicNanos, Column::kStepNanos,
                                     Column::kCaptureNanos};
struct StepRows {
    std::uint32_t first_row = 0;
    std::array<std::vector<std::uint64_t>, kStepColumns.size()> columns;
};

struct Page {
    PageEntry entry;
    ByteBuffer payload;
};

// Collects the columns of one page.
class PageWriter {
  public:
    explicit PageWriter(ColumnEncoder& encoder) : encoder_(encoder) {}

    void integers(Column column, std::span<const std::uint64_t> values) {
        add(column, encoder_.integers(values, bytes_));
    }
    void floats(Column column, std::span<const float> values) {
        add(column, encoder_.floats(values, bytes_));
    }
    void doubles(Column column, std::span<const double> values) {
        add(column, encoder_.doubles(values, bytes_));
    }
    void bytes(Column column, ByteSpan values) { add(column, encoder_.bytes(values, bytes_)); }

    [[nodiscard]] Page finish(PageEntry entry, std::uint64_t salt) {
        ByteWriter payload;
        payload.fixed(std::uint32_t{0});  // the checksum, below
        payload.fixed(std::uint32_t{0});  // the table's size, below
        payload.fixed(static_cast<std::uint8_t>(entry.kind));
        payload.varint(entry.tensor);
        payload.varint(entry.rows);
        payload.varint(columns_.size());
        for (const ColumnEntry& column : columns_) {
            payload.fixed(column.column);
            payload.fixed(column.encoding);
            payload.varint(column.raw_bytes);
            payload.varint(column.stored_bytes);
            payload.fixed(column.checksum);
        }
        entry.table_bytes = static_cast<std::uint32_t>(payload.size());
        payload.patch(4, entry.table_bytes);
        payload.patch(0, base::crc32c(ByteSpan(payload.bytes()).subspan(4), checksum_seed(salt)));
        payload.append(bytes_.bytes());
        return {entry, payload.take()};
    }

  private:
    void add(Column column, ColumnEntry entry) {
        entry.column = static_cast<std::uint8_t>(column);
        columns_.push_back(entry);
    }

    ColumnEncoder& encoder_;
    ByteWriter bytes_;
    std::vector<ColumnEntry> columns_;
};

void encode_footer(ByteWriter& out, const SegmentFooter& footer) {
    out.fixed(footer.schema_offset);
    out.fixed(footer.schema_bytes);
    out.fixed(footer.pages_offset);
    out.fixed(footer.index_offset);
    out.fixed(footer.index_bytes);
    out.fixed(footer.steps);
    out.fixed(footer.step_nanos);
    out.fixed(footer.capture_nanos);
    out.fixed(footer.tensors);
    out.fixed(footer.schema_checksum);
    out.fixed(static_cast<std::uint64_t>(footer.has_ended ? 1 : 0));
    out.fixed(footer.steps_dropped);
    out.fixed(footer.raw_tensors_dropped);
    for (const SegmentFooter::ModeRange& mode : footer.modes) {
        out.fixed(mode.steps);
        out.fixed(mode.least);
        out.fixed(mode.most);
    }
}

Status damaged_segment(const char* what) { return {Code::kDataLoss, base::format("a {} is damaged", what)}; }

}  // namespace

// ---------------------------------------------------------------------------------- reading

const ColumnEntry* PageTable::find(Column column) const noexcept {
    const auto it = std::find_if(columns.begin(), columns.end(), [column](const ColumnEntry& entry) {
        return entry.column == static_cast<std::uint8_t>(column);
    });
    return it == columns.end() ? nullptr : &*it;
}

Result<PageTable> decode_page_table(ByteSpan payload, std::uint64_t salt) {
    ByteReader head(payload);
    const auto checksum = head.fixed<std::uint32_t>();
    const auto table_bytes = head.fixed<std::uint32_t>();
    if (!head.ok() || table_bytes < 8 || table_bytes > payload.size()) return damaged_segment("page");
    if (base::crc32c(payload.subspan(4, table_bytes - 4), checksum_seed(salt)) != checksum)
        return Status(Code::kDataLoss, "the checksum of a page's table does not match");
    ByteReader reader(payload.subspan(8, table_bytes - 8));
    PageTable table;
    table.bytes = table_bytes;
    table.kind = static_cast<PageKind>(reader.fixed<std::uint8_t>());
    const std::uint64_t tensor = reader.varint();
    const std::uint64_t rows = reader.varint();
    table.columns.resize(reader.count(8));
    std::uint64_t offset = table_bytes;
    for (ColumnEntry& column : table.columns) {
        column.column = reader.fixed<std::uint8_t>();
        column.encoding = reader.fixed<std::uint8_t>();
        const std::uint64_t raw = reader.varint();
        const std::uint64_t stored = reader.varint();
        column.checksum = reader.fixed<std::uint32_t>();
        if (raw > UINT32_MAX || stored > kMostPayloadBytes || offset > kMostPayloadBytes)
            return damaged_segment("page");
        column.raw_bytes = static_cast<std::uint32_t>(raw);
        column.stored_bytes = static_cast<std::uint32_t>(stored);
        column.offset = static_cast<std::uint32_t>(offset);
        offset += stored;
    }
    if (!reader.ok() || tensor >= kMostTensors || rows > kMostPageRows || offset > kMostPayloadBytes)
        return damaged_segment("page");
    table.tensor = static_cast<TensorId>(tensor);
    table.rows = static_cast<std::uint32_t>(rows);
    return table;
}

void encode_histogram_rows(ByteWriter& out, std::span<const model::Histogram> rows) {
    constexpr std::size_t kUnused = SIZE_MAX;
    std::vector<std::size_t> places(model::kMostBins, kUnused);  // of each bin among those that occur
    const auto number_of = [](const model::HistogramBin& entry) {
        return static_cast<std::size_t>(entry.bin - model::kLeastBin);
    };
    for (const model::Histogram& row : rows)
        for (const model::HistogramBin& entry : row) places[number_of(entry)] = 0;
    const auto used = static_cast<std::size_t>(
        std::count_if(places.begin(), places.end(), [](std::size_t place) { return place != kUnused; }));
    out.varint(used);
    std::size_t expected = 0;
    std::size_t next = 0;
    for (std::size_t bin = 0; bin < places.size(); ++bin) {
        if (places[bin] == kUnused) continue;
        places[bin] = next++;
        out.varint(bin - expected);
        expected = bin + 1;
    }
    std::vector<std::uint64_t> counts(used * rows.size());
    for (std::size_t row = 0; row < rows.size(); ++row)
        for (const model::HistogramBin& entry : rows[row])
            counts[places[number_of(entry)] * rows.size() + row] = entry.count;
    for (std::size_t place = 0; place < used; ++place) {
        std::uint64_t before = 0;
        for (std::size_t row = 0; row < rows.size(); ++row) {
            const std::uint64_t count = counts[place * rows.size() + row];
            out.zigzag(static_cast<std::int64_t>(count - before));
            before = count;
        }
    }
}

Result<std::vector<model::Histogram>> decode_histogram_rows(ByteSpan bytes, std::size_t rows) {
    ByteReader reader(bytes);
    if (rows > kMostPageRows) return damaged_segment("page of histograms");
    const std::size_t bin_count = reader.count();
    if (bin_count > model::kMostBins) return damaged_segment("page of histograms");
    std::vector<std::size_t> bins(bin_count);
    std::size_t expected = 0;
    for (std::size_t& bin : bins) {
        const std::uint64_t distance = reader.varint();
        if (!reader.ok() || distance >= model::kMostBins - expected)
            return damaged_segment("page of histograms");
        bin = expected + static_cast<std::size_t>(distance);
        expected = bin + 1;
    }
    std::vector<model::Histogram> histograms(rows);
    for (const std::size_t bin : bins) {
        std::uint64_t count = 0;
        for (model::Histogram& row : histograms) {
            count += static_cast<std::uint64_t>(reader.zigzag());
            if (count == 0) continue;
            row.push_back({static_cast<std::int16_t>(static_cast<int>(bin) + model::kLeastBin), count});
        }
        if (!reader.ok()) return damaged_segment("page of histograms");
    }
    return histograms;
}

Status decode_index(ByteSpan payload, std::vector<PageEntry>& entries) {
    if (payload.size() % kPageEntryBytes != 0) return damaged_segment("page index");
    entries.reserve(entries.size() + payload.size() / kPageEntryBytes);
    ByteReader reader(payload);
    while (reader.remaining() != 0) {
        PageEntry entry;
        entry.kind = static_cast<PageKind>(reader.fixed<std::uint8_t>());
        static_cast<void>(reader.raw(3));
        entry.tensor = reader.fixed<std::uint32_t>();
        entry.first_row = reader.fixed<std::uint32_t>();
        entry.rows = reader.fixed<std::uint32_t>();
        entry.offset = reader.fixed<std::uint64_t>();
        entry.frame_bytes = reader.fixed<std::uint32_t>();
        entry.table_bytes = reader.fixed<std::uint32_t>();
        if (entry.tensor >= kMostTensors || entry.rows > kMostPageRows ||
            entry.frame_bytes > frame_bytes(kMostPayloadBytes) || entry.table_bytes > entry.frame_bytes)
            return damaged_segment("page index");
        entries.push_back(entry);
    }
    return Status::ok();
}

Result<SegmentFooter> decode_footer(ByteSpan payload) {
    ByteReader reader(payload);
    SegmentFooter footer;
    footer.schema_offset = reader.fixed<std::uint64_t>();
    footer.schema_bytes = reader.fixed<std::uint64_t>();
    footer.pages_offset = reader.fixed<std::uint64_t>();
    footer.index_offset = reader.fixed<std::uint64_t>();
    footer.index_bytes = reader.fixed<std::uint64_t>();
    footer.steps = reader.fixed<std::uint64_t>();
    footer.step_nanos = reader.fixed<std::uint64_t>();
    footer.capture_nanos = reader.fixed<std::uint64_t>();
    footer.tensors = reader.fixed<std::uint32_t>();
    footer.schema_checksum = reader.fixed<std::uint32_t>();
    footer.has_ended = (reader.fixed<std::uint64_t>() & 1) != 0;
    footer.steps_dropped = reader.fixed<std::uint64_t>();
    footer.raw_tensors_dropped = reader.fixed<std::uint64_t>();
    for (SegmentFooter::ModeRange& mode : footer.modes) {
        mode.steps = reader.fixed<std::uint64_t>();
        mode.least = reader.fixed<std::uint64_t>();
        mode.most = reader.fixed<std::uint64_t>();
    }
    if (!reader.ok()) return damaged_segment("segment's footer");
    return footer;
}

std::optional<SegmentFooter> find_footer(ByteSpan tail, std::uint64_t salt) {
    // A frame lies at a multiple of 8, and the file ends with one.
    for (std::size_t back = kFrameHeaderBytes; back <= tail.size(); back += kFrameAlignment) {
        const ParsedFrame parsed = parse_frame(tail.subspan(tail.size() - back), salt, false);
        if (parsed.outcome != ParseOutcome::kFrame || parsed.frame.bytes != back) continue;
        if (parsed.frame.type != FrameType::kFooter || parsed.frame.flags != 0) return std::nullopt;
        const Result<SegmentFooter> footer = decode_footer(parsed.frame.payload);
        if (!footer) return std::nullopt;
        return *footer;
    }
    return std::nullopt;
}

// ---------------------------------------------------------------------------------- building

struct SegmentBuilder::Impl {
    Impl(const FileHeader& of_log, std::uint64_t salt) : header(of_log), encoder(salt) {
        header.kind = FileKind::kSegment;
        header.salt = salt;
    }

    FileHeader header;
    ColumnEncoder encoder;
    model::TensorTable table;
    std::vector<std::uint64_t> element_counts;  // of `table`; empty when that has grown since
    ByteBuffer worker;
    std::vector<ByteBuffer> events;
    std::optional<TotalsRecord> totals;
    SegmentFooter footer;
    StepRows steps;
    // By id; a map, because a hostile id must not take memory for all below it.
    std::map<TensorId, StatisticsRows> statistics;
    std::map<TensorId, StatisticsRows>::iterator next_statistics = statistics.end();
    std::map<TensorId, ScalarRows> scalars;
    std::map<TensorId, OpaqueRows> classes;
    std::map<TensorId, OpaqueRows> raw;
    std::map<TensorId, HistogramRows> histograms;
    std::map<TensorId, OpaqueRows> channels;
    std::map<TensorId, OpaqueRows> digests;
    std::vector<Page> pages;
    StepRecord record;
    std::vector<RawPlace> places;
    ByteWriter scratch;
    std::vector<std::uint64_t> numbers;  // scratch as well
    std::vector<float> moments;

    Status add_step(ByteSpan payload) {
        if (element_counts.empty()) element_counts = format::element_counts(table);
        TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t skipped,
                                  decode_step(payload, table, record, &places, element_counts));
        if (skipped != 0) return {Code::kDataLoss, "a step has samples of tensors that were not described"};
        if (footer.steps >= kMostPartSteps) return {Code::kResourceExhausted, "a part has too many steps"};
        const std::uint64_t row = footer.steps++;
        const std::array<std::uint64_t, kStepColumns.size()> of_step = {
            static_cast<std::uint64_t>(record.mode),
            record.step,
            record.sequence,
            static_cast<std::uint64_t>(record.wall_nanos),
            static_cast<std::uint64_t>(record.monotonic_nanos),
            record.step_nanos,
            record.capture_nanos,
        };
        for (std::size_t i = 0; i < of_step.size(); ++i) steps.columns[i].push_back(of_step[i]);
        if (steps.columns[0].size() == kMostPageRows) end_steps();

        SegmentFooter::ModeRange& mode = footer.modes[static_cast<std::size_t>(record.mode) - 1];
        mode.least = mode.steps == 0 ? record.step : std::min(mode.least, record.step);
        mode.most = std::max(mode.most, record.step);
        ++mode.steps;
        if (record.mode == model::Mode::kTrain) {
            footer.step_nanos += record.step_nanos;
            footer.capture_nanos += record.capture_nanos;
        }

        for (const TensorSample& sample : record.tensors) add_statistics(row, sample);
        for (const model::ScalarSample& sample : record.scalars) {
            ScalarRows& rows = scalars[sample.tensor];
            // A tensor twice in a step: the rows of a page rise.
            if (!rows.rows.empty() && rows.rows.back() == row) return damaged_segment("step");
            rows.rows.push_back(row);
            rows.values.push_back(sample.value);
            if (rows.rows.size() == kMostPageRows) end_scalars(sample.tensor, rows);
        }
        for (const model::ClassSample& sample : record.classes) {
            scratch.clear();
            internal::encode_class_counts(scratch, sample.counts);
            TRAINDBG_RETURN_IF_ERROR(add_opaque(PageKind::kClasses, classes, sample.tensor, row));
        }
        for (model::HistogramSample& sample : record.histograms) {
            HistogramRows& rows = histograms[sample.tensor];
            if (!rows.rows.empty() && rows.rows.back() == row) return damaged_segment("step");
            rows.rows.push_back(row);
            rows.histograms.push_back(std::move(sample.bins));
            if (rows.rows.size() == kMostHistogramRows) end_histograms(sample.tensor, rows);
        }
        for (const model::ChannelSample& sample : record.channels) {
            scratch.clear();
            internal::encode_channels(scratch, sample.channels);
            TRAINDBG_RETURN_IF_ERROR(add_opaque(PageKind::kChannels, channels, sample.tensor, row));
        }
        for (const model::DigestSample& sample : record.digests) {
            scratch.clear();
            internal::encode_digest(scratch, sample.digest);
            TRAINDBG_RETURN_IF_ERROR(add_opaque(PageKind::kDigests, digests, sample.tensor, row));
        }
        for (const RawPlace& place : places) {
            scratch.clear();
            internal::encode_raw_place(scratch, place, table);
            TRAINDBG_RETURN_IF_ERROR(add_opaque(PageKind::kRaw, raw, place.tensor, row));
        }
        return twice ? damaged_segment("step") : Status::ok();
    }

    // Every step has the same tensors in the same order, mostly: the next one is tried first.
    StatisticsRows& statistics_of(TensorId tensor) {
        if (next_statistics == statistics.end() || next_statistics->first != tensor)
            next_statistics = statistics.try_emplace(tensor).first;
        return (next_statistics++)->second;
    }

    void add_statistics(std::uint64_t row, const TensorSample& sample) {
        StatisticsRows& rows = statistics_of(sample.tensor);
        if (!rows.rows.empty() && rows.rows.back().row == row) {
            twice = true;
            return;
        }
        const std::size_t before = rows.rows.size();
        StatisticsRow& added = rows.rows.emplace_back();
        added.row = static_cast<std::uint32_t>(row);
        for (std::size_t i = 0; i < kMomentColumns.size(); ++i)
            added.moments[i] = static_cast<float>(sample.statistics.*kMomentColumns[i].second);
        const auto counts = counts_of(sample);
        const std::uint64_t usual = element_counts[sample.tensor];
        const bool is_usual = counts[0] == usual && std::all_of(counts.begin() + 1, counts.end(),
                                                                [](std::uint64_t c) { return c == 0; });
        if (rows.has_counts || !is_usual) {
            rows.has_counts = true;
            for (std::size_t i = 0; i < counts.size(); ++i)
                rows.counts[i].add(counts[i], i == 0 ? usual : 0, before);
        }
        if (rows.rows.size() == kMostPageRows) end_statistics(sample.tensor, rows);
    }

    // `scratch` is the row.
    Status add_opaque(PageKind kind, std::map<TensorId, OpaqueRows>& all, TensorId tensor,
                      std::uint64_t row) {
        OpaqueRows& rows = all[tensor];
        if (!rows.rows.empty() && rows.rows.back() == row) return damaged_segment("step");
        rows.rows.push_back(row);
        rows.lengths.push_back(scratch.size());
        rows.bytes.append(scratch.bytes());
        if (rows.rows.size() == kMostPageRows || rows.bytes.size() >= kMostOpaqueBytes)
            end_opaque(kind, tensor, rows);
        return Status::ok();
    }

    void end_steps() {
        const auto rows = static_cast<std::uint32_t>(steps.columns[0].size());
        if (rows == 0) return;
        PageWriter page(encoder);
        numbers.resize(rows);
        for (std::uint32_t i = 0; i < rows; ++i) numbers[i] = steps.first_row + i;
        page.integers(Column::kRow, numbers);
        for (std::size_t i = 0; i < kStepColumns.size(); ++i) {
            page.integers(kStepColumns[i], steps.columns[i]);
            steps.columns[i].clear();
        }
        pages.push_back(page.finish({PageKind::kSteps, 0, steps.first_row, rows, 0, 0, 0}, header.salt));
        steps.first_row += rows;
    }

    static PageEntry entry_of(PageKind kind, TensorId tensor, const std::vector<std::uint64_t>& rows) {
        return {kind,
                tensor,
                static_cast<std::uint32_t>(rows.front()),
                static_cast<std::uint32_t>(rows.size()),
                0,
                0,
                0};
    }

    void end_statistics(TensorId tensor, StatisticsRows& rows) {
        if (rows.rows.empty()) return;
        PageWriter page(encoder);
        numbers.clear();
        for (const StatisticsRow& row : rows.rows) numbers.push_back(row.row);
        page.integers(Column::kRow, numbers);
        for (std::size_t i = 0; i < kMomentColumns.size(); ++i) {
            moments.clear();
            for (const StatisticsRow& row : rows.rows) moments.push_back(row.moments[i]);
            page.floats(kMomentColumns[i].first, moments);
        }
        for (std::size_t i = 0; i < kCountColumns.size(); ++i) {
            if (!rows.counts[i].values().empty()) page.integers(kCountColumns[i], rows.counts[i].values());
            rows.counts[i].clear();
        }
        pages.push_back(page.finish(entry_of(PageKind::kStatistics, tensor, numbers), header.salt));
        rows.rows.clear();
        rows.has_counts = false;
    }

    void end_scalars(TensorId tensor, ScalarRows& rows) {
        if (rows.rows.empty()) return;
        PageWriter page(encoder);
        page.integers(Column::kRow, rows.rows);
        page.doubles(Column::kValue, rows.values);
        pages.push_back(page.finish(entry_of(PageKind::kScalars, tensor, rows.rows), header.salt));
        rows.rows.clear();
        rows.values.clear();
    }

    void end_histograms(TensorId tensor, HistogramRows& rows) {
        if (rows.rows.empty()) return;
        PageWriter page(encoder);
        page.integers(Column::kRow, rows.rows);
        scratch.clear();
        encode_histogram_rows(scratch, rows.histograms);
        page.bytes(Column::kBins, scratch.bytes());
        pages.push_back(page.finish(entry_of(PageKind::kHistograms, tensor, rows.rows), header.salt));
        rows.rows.clear();
        rows.histograms.clear();
    }

    void end_opaque(PageKind kind, TensorId tensor, OpaqueRows& rows) {
        if (rows.rows.empty()) return;
        PageWriter page(encoder);
        page.integers(Column::kRow, rows.rows);
        page.integers(Column::kLengths, rows.lengths);
        page.bytes(Column::kBytes, rows.bytes.bytes());
        pages.push_back(page.finish(entry_of(kind, tensor, rows.rows), header.salt));
        rows.rows.clear();
        rows.lengths.clear();
        rows.bytes.clear();
    }

    bool twice = false;  // a step named a tensor twice
};

SegmentBuilder::SegmentBuilder(const FileHeader& header, std::uint64_t salt)
    : impl_(std::make_unique<Impl>(header, salt)) {}
SegmentBuilder::~SegmentBuilder() = default;

std::uint64_t SegmentBuilder::steps() const noexcept { return impl_->footer.steps; }

Status SegmentBuilder::add(const Frame& frame) {
    Impl& impl = *impl_;
    if (impl.header.minor > kFormatMinor || frame.flags != 0)
        return {Code::kUnsupported, "is of a newer format; a newer traindbg can seal it"};
    switch (frame.type) {
        case FrameType::kFileHeader: return Status::ok();
        case FrameType::kSchema: impl.element_counts.clear(); return decode_schema(frame.payload, impl.table);
        case FrameType::kWorker:
            impl.worker.assign(frame.payload.begin(), frame.payload.end());
            return Status::ok();
        case FrameType::kEvent:
            TRAINDBG_RETURN_IF_ERROR(decode_event(frame.payload).status());
            impl.events.emplace_back(frame.payload.begin(), frame.payload.end());
            return Status::ok();
        case FrameType::kDropped:
        case FrameType::kEnd: {
            TRAINDBG_ASSIGN_OR_RETURN(impl.totals, decode_totals(frame.payload));
            impl.footer.has_ended = impl.footer.has_ended || frame.type == FrameType::kEnd;
            impl.footer.steps_dropped = std::max(impl.footer.steps_dropped, impl.totals->steps_dropped);
            impl.footer.raw_tensors_dropped =
                std::max(impl.footer.raw_tensors_dropped, impl.totals->raw_tensors_dropped);
            return Status::ok();
        }
        case FrameType::kStep: return impl.add_step(frame.payload);
        default: break;
    }
    return {Code::kUnsupported, "holds records that this version does not know"};
}

Result<ByteBuffer> SegmentBuilder::finish() {
    Impl& impl = *impl_;
    impl.end_steps();
    for (auto& [tensor, rows] : impl.statistics) impl.end_statistics(tensor, rows);
    for (auto& [tensor, rows] : impl.scalars) impl.end_scalars(tensor, rows);
    for (auto& [tensor, rows] : impl.classes) impl.end_opaque(PageKind::kClasses, tensor, rows);
    for (auto& [tensor, rows] : impl.histograms) impl.end_histograms(tensor, rows);
    for (auto& [tensor, rows] : impl.channels) impl.end_opaque(PageKind::kChannels, tensor, rows);
    for (auto& [tensor, rows] : impl.digests) impl.end_opaque(PageKind::kDigests, tensor, rows);
    for (auto& [tensor, rows] : impl.raw) impl.end_opaque(PageKind::kRaw, tensor, rows);

    ByteWriter out;
    append_file_header(out, impl.header);
    std::uint64_t sequence = 2;
    const std::uint64_t salt = impl.header.salt;
    const auto add = [&](FrameType type, ByteSpan payload) {
        return append_frame(out, type, sequence++, payload, salt);
    };

    impl.footer.schema_offset = out.size();
    std::vector<model::TensorInfo> some;
    ByteWriter payload;
    const auto add_schema = [&]() -> Status {
        payload.clear();
        encode_schema(payload, some);
        impl.footer.schema_checksum = base::crc32c(payload.bytes(), impl.footer.schema_checksum);
        some.clear();
        return add(FrameType::kSchema, payload.bytes());
    };
    for (model::TensorInfo& info : impl.table) {
        if (info.name.empty()) continue;
        ++impl.footer.tensors;
        some.push_back(std::move(info));
        if (some.size() == kTensorsPerSchema) TRAINDBG_RETURN_IF_ERROR(add_schema());
    }
    if (!some.empty()) TRAINDBG_RETURN_IF_ERROR(add_schema());
    impl.footer.schema_bytes = out.size() - impl.footer.schema_offset;
    if (!impl.worker.empty()) TRAINDBG_RETURN_IF_ERROR(add(FrameType::kWorker, impl.worker));
    for (const ByteBuffer& event : impl.events) TRAINDBG_RETURN_IF_ERROR(add(FrameType::kEvent, event));
    if (impl.totals) {
        payload.clear();
        encode_totals(payload, *impl.totals);
        TRAINDBG_RETURN_IF_ERROR(
            add(impl.footer.has_ended ? FrameType::kEnd : FrameType::kDropped, payload.bytes()));
    }

    std::stable_sort(impl.pages.begin(), impl.pages.end(), [](const Page& a, const Page& b) {
        return std::tuple(a.entry.kind, a.entry.tensor, a.entry.first_row) <
               std::tuple(b.entry.kind, b.entry.tensor, b.entry.first_row);
    });
    impl.footer.pages_offset = out.size();
    for (Page& page : impl.pages) {
        page.entry.offset = out.size();
        TRAINDBG_RETURN_IF_ERROR(add(FrameType::kPage, page.payload));
        page.entry.frame_bytes = static_cast<std::uint32_t>(out.size() - page.entry.offset);
        ByteBuffer().swap(page.payload);
    }

    impl.footer.index_offset = out.size();
    payload.clear();
    constexpr std::size_t kEntriesPerFrame = kMostPayloadBytes / 16 / kPageEntryBytes;
    for (std::size_t i = 0; i < impl.pages.size(); ++i) {
        const PageEntry& entry = impl.pages[i].entry;
        payload.fixed(static_cast<std::uint8_t>(entry.kind));
        payload.fixed(std::uint8_t{0});
        payload.fixed(std::uint16_t{0});
        payload.fixed(entry.tensor);
        payload.fixed(entry.first_row);
        payload.fixed(entry.rows);
        payload.fixed(entry.offset);
        payload.fixed(entry.frame_bytes);
        payload.fixed(entry.table_bytes);
        if ((i + 1) % kEntriesPerFrame != 0 && i + 1 != impl.pages.size()) continue;
        TRAINDBG_RETURN_IF_ERROR(add(FrameType::kIndex, payload.bytes()));
        payload.clear();
    }
    impl.footer.index_bytes = out.size() - impl.footer.index_offset;
    payload.clear();
    encode_footer(payload, impl.footer);
    TRAINDBG_RETURN_IF_ERROR(add(FrameType::kFooter, payload.bytes()));
    impl_ = std::make_unique<Impl>(impl.header, salt);
    return out.take();
}

}  // namespace traindbg::format
