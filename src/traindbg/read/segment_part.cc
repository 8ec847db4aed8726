#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/format/record_parts.h"
#include "traindbg/read/part.h"

namespace traindbg::read::internal {
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
using format::PageEntry;
using format::PageKind;
using format::PageTable;
using model::StepRecord;
using model::TensorId;
using model::TensorTable;

constexpr std::size_t kMostSegmentDamage = 1000;
// Segments are put as a whole and are some MB; one that claims more is not ours.
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{32} << 20;
// Descriptions, events and all else before the pages.
constexpr std::uint64_t kMostHeadBytes = std::uint64_t{64} << 20;
// Decoded pages that are kept while steps are gone through: far more than a part of ours has.
constexpr std::uint64_t kMostDecodedBytes = std::uint64_t{256} << 20;
// A page up to this size is fetched at once: a second call costs more than the bytes.
constexpr std::uint32_t kSmallPageBytes = 16 << 10;
constexpr std::size_t kRowColumnBytes = 64;  // what a column of rows mostly takes

constexpr std::array kMomentColumns = {Column::kMin, Column::kMax, Column::kMean,
                                       Column::kStd, Column::kL1,  Column::kL2};
constexpr std::array kCountColumns = {
    Column::kCount, Column::kNan,   Column::kPositiveInfinite, Column::kNegativeInfinite,
    Column::kZero,  Column::kUnits, Column::kInactiveUnits,    Column::kLow,
    Column::kHigh};
constexpr std::array kStepColumns = {Column::kMode,        Column::kStep,           Column::kSequence,
                                     Column::kWallNanos,   Column::kMonotonicNanos, Column::kStepNanos,
                                     Column::kCaptureNanos};
constexpr std::size_t kStepKeys = 3;  // of these: which step it is

Status damaged(const char* what) { return {Code::kDataLoss, what}; }

bool is_segment_damage(const Status& status) {
    return status.code() == Code::kDataLoss || status.code() == Code::kUnsupported;
}

ByteSpan column_bytes(ByteSpan payload, const ColumnEntry& entry) {
    if (entry.offset > payload.size() || entry.stored_bytes > payload.size() - entry.offset) return {};
    return payload.subspan(entry.offset, entry.stored_bytes);
}

auto place_of(const PageEntry& entry) { return std::tuple(entry.kind, entry.tensor, entry.first_row); }

// Others are of a newer version, and nothing that is asked for here.
bool is_known(PageKind kind) { return kind <= PageKind::kDigests; }

bool is_mode(std::uint64_t number) { return number >= 1 && number < model::kModeCount; }

// Rows of a page rise; else nothing could be looked up in it.
bool rise(const std::vector<std::uint64_t>& rows) {
    return std::adjacent_find(rows.begin(), rows.end(), std::greater_equal<>()) == rows.end();
}

const char* words_of(PageKind kind) {
    switch (kind) {
        case PageKind::kSteps: return "the times and numbers";
        case PageKind::kStatistics: return "the statistics of a tensor";
        case PageKind::kScalars: return "the values";
        case PageKind::kClasses: return "the class counts";
        case PageKind::kRaw: return "the places of whole tensors";
        case PageKind::kHistograms: return "the histograms";
        case PageKind::kChannels: return "the channels' extremes";
        case PageKind::kDigests: return "the digests";
    }
    return "a page";
}

}  // namespace

// ---------------------------------------------------------------------------------- opening

Result<SegmentPart::Opened> SegmentPart::open(std::unique_ptr<storage::ReadFile> file, std::string name,
                                              std::uint32_t number, format::ColumnDecoder& decoder) {
    Opened opened;
    opened.part =
        std::unique_ptr<SegmentPart>(new SegmentPart(std::move(file), std::move(name), number, decoder));
    SegmentPart& part = *opened.part;
    TRAINDBG_ASSIGN_OR_RETURN(part.bytes_, part.file_->size());
    // The two copies are in the first 128 bytes; further ones would be a newer version's.
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer begin, part.file_->read_at(0, 256));
    opened.refused = part.take_header(begin);
    if (opened.refused.is_ok()) {
        const std::uint64_t at = part.bytes_ - std::min<std::uint64_t>(part.bytes_, format::kFooterZoneBytes);
        const Result<ByteBuffer> tail = part.file_->read_at(at, format::kFooterZoneBytes);
        if (!tail && tail.status().code() != Code::kDataLoss) return tail.status();
        if (!tail || !part.take_footer(*tail)) {
            TRAINDBG_RETURN_IF_ERROR(part.rebuild());
            if (part.footer_.steps == 0 && part.footer_.schema_offset == 0)
                opened.refused = {Code::kDataLoss, part.name_ + ": nothing in it can be read"};
        }
    }
    if (!opened.refused.is_ok()) opened.part.reset();
    return opened;
}

Status SegmentPart::take_header(ByteSpan begin) {
    const std::optional<format::FileHeader> header = format::find_file_header(begin);
    if (!header)
        return {Code::kDataLoss, name() + ": is not a segment of traindbg, or its header is destroyed"};
    if (Status status = format::check_version(*header); !status.is_ok())
        return {status.code(), name() + ": " + status.message()};
    if (header->kind != format::FileKind::kSegment) return {Code::kDataLoss, name() + ": is not a segment"};
    salt_ = header->salt;
    return Status::ok();
}

bool SegmentPart::take_footer(ByteSpan tail) {
    const std::optional<format::SegmentFooter> footer = format::find_footer(tail, salt_);
    if (!footer) return false;
    const auto lies_inside = [this](std::uint64_t offset, std::uint64_t size) {
        return offset <= bytes_ && size <= bytes_ - offset;
    };
    if (!lies_inside(footer->schema_offset, footer->schema_bytes) ||
        !lies_inside(footer->index_offset, footer->index_bytes) || footer->index_bytes > kMostIndexBytes ||
        footer->pages_offset > footer->index_offset || footer->steps > format::kMostPartSteps ||
        footer->schema_offset + footer->schema_bytes > footer->pages_offset ||
        footer->pages_offset - footer->schema_offset > kMostHeadBytes)
        return false;
    footer_ = *footer;
    return true;
}

Status SegmentPart::scan(const FrameVisitor& visit) {
    constexpr std::size_t kScanBytes = std::size_t{1} << 20;
    format::FrameScanner scanner;
    std::size_t wanted = kScanBytes;
    while (true) {
        const std::uint64_t begin = scanner.position();
        TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer window, file_->read_at(begin, wanted));
        const bool at_end = window.size() < wanted || begin + window.size() >= bytes_;
        while (true) {
            const auto used = static_cast<std::size_t>(scanner.position() - begin);
            const format::ScanItem item =
                scanner.next(ByteSpan(window).subspan(std::min(used, window.size())), at_end);
            if (item.kind == format::ScanItem::Kind::kFrame) {
                visit(item.offset, item.frame);
            } else if (item.kind == format::ScanItem::Kind::kHole) {
                note(item.offset, item.bytes, item.what);
            } else if (item.kind == format::ScanItem::Kind::kForeign) {
                note(item.offset, bytes_ - std::min(bytes_, item.offset), item.what);
                return Status::ok();
            } else if (!at_end) {
                wanted = std::max(kScanBytes, item.bytes_needed);
                break;
            } else {
                if (scanner.settled() < bytes_)
                    note(scanner.settled(), bytes_ - scanner.settled(), scanner.tail_reason());
                return Status::ok();
            }
        }
    }
}

Status SegmentPart::rebuild() {
    format::SegmentFooter footer;
    std::vector<PageEntry> index;
    std::vector<std::uint64_t> numbers;
    TRAINDBG_RETURN_IF_ERROR(scan([&](std::uint64_t offset, const format::Frame& frame) {
        if (frame.flags != 0) return;
        if (frame.type == FrameType::kSchema || frame.type == FrameType::kWorker ||
            frame.type == FrameType::kEvent || frame.type == FrameType::kDropped ||
            frame.type == FrameType::kEnd) {
            if (footer.schema_offset == 0) footer.schema_offset = offset;
            footer.pages_offset = offset + frame.bytes;
            if (frame.type == FrameType::kEnd) footer.has_ended = true;
        }
        if (frame.type != FrameType::kPage) return;
        const Result<PageTable> table = format::decode_page_table(frame.payload, salt_);
        if (!table) return note(offset, frame.bytes, table.status().message());
        footer.index_offset = offset + frame.bytes;
        if (!is_known(table->kind)) return;
        const auto column_of = [&](Column column) {
            const ColumnEntry* found = table->find(column);
            numbers.clear();
            if (found == nullptr ||
                !decoder_.integers(*found, column_bytes(frame.payload, *found), salt_, table->rows, numbers)
                     .is_ok())
                numbers.assign(table->rows, 0);
            return numbers;
        };
        const ColumnEntry* const row_column = table->find(Column::kRow);
        if (table->rows == 0 || row_column == nullptr)
            return note(offset, frame.bytes, "a page without its rows");
        std::vector<std::uint64_t> rows;
        if (const Status status = decoder_.integers(*row_column, column_bytes(frame.payload, *row_column),
                                                    salt_, table->rows, rows);
            !status.is_ok())
            return note(offset, frame.bytes, base::format("{}: {}", words_of(table->kind), status.message()),
                        status.code() == Code::kUnsupported);
        if (rows.back() >= format::kMostPartSteps || rows.front() > rows.back())
            return note(offset, frame.bytes, "a page of steps that there cannot be");
        index.push_back({table->kind, table->tensor, static_cast<std::uint32_t>(rows.front()), table->rows,
                         offset, static_cast<std::uint32_t>(frame.bytes),
                         static_cast<std::uint32_t>(table->bytes)});
        if (table->kind != PageKind::kSteps) return;
        footer.steps = std::max(footer.steps, rows.back() + 1);
        const std::vector<std::uint64_t> modes = column_of(Column::kMode);
        const std::vector<std::uint64_t> steps = column_of(Column::kStep);
        const std::vector<std::uint64_t> times = column_of(Column::kStepNanos);
        const std::vector<std::uint64_t> costs = column_of(Column::kCaptureNanos);
        for (std::size_t i = 0; i < modes.size(); ++i) {
            if (!is_mode(modes[i])) continue;
            auto& range = footer.modes[modes[i] - 1];
            range.least = range.steps == 0 ? steps[i] : std::min(range.least, steps[i]);
            range.most = std::max(range.most, steps[i]);
            ++range.steps;
            if (modes[i] != static_cast<std::uint64_t>(model::Mode::kTrain)) continue;
            footer.step_nanos += times[i];
            footer.capture_nanos += costs[i];
        }
    }));
    std::sort(index.begin(), index.end(),
              [](const PageEntry& a, const PageEntry& b) { return place_of(a) < place_of(b); });
    footer_ = footer;
    index_ = std::move(index);
    has_index_ = true;
    note(bytes_, 0, "the footer or the index is destroyed; it was rebuilt, and nothing is lost with it");
    return Status::ok();
}

Status SegmentPart::visit_frames(bool with_schema, const FrameVisitor& visit) {
    const std::uint64_t begin =
        with_schema ? footer_.schema_offset : footer_.schema_offset + footer_.schema_bytes;
    if (footer_.pages_offset <= begin) return Status::ok();
    const std::uint64_t size = footer_.pages_offset - begin;
    const Result<ByteBuffer> read = file_->read_at(begin, static_cast<std::size_t>(size));
    if (read.status().code() == Code::kDataLoss) {
        note(begin, size, read.status().message());
        return Status::ok();
    }
    TRAINDBG_RETURN_IF_ERROR(read.status());
    const ByteBuffer& bytes = *read;
    format::FileHeader header;
    header.salt = salt_;
    format::FrameScanner scanner(begin, header);
    while (true) {
        const auto used = static_cast<std::size_t>(scanner.position() - begin);
        const format::ScanItem item =
            scanner.next(ByteSpan(bytes).subspan(std::min(used, bytes.size())), true);
        if (item.kind == format::ScanItem::Kind::kFrame) {
            if (item.frame.flags == 0 && item.frame.type != FrameType::kFileHeader)
                visit(item.offset, item.frame);
        } else if (item.kind == format::ScanItem::Kind::kHole) {
            note(item.offset, item.bytes, item.what);
        } else {
            break;
        }
    }
    if (scanner.settled() < begin + bytes.size())
        note(scanner.settled(), begin + bytes.size() - scanner.settled(), "the checksum does not match");
    return Status::ok();
}

Status SegmentPart::need_index() {
    if (has_index_) return Status::ok();
    Result<ByteBuffer> read =
        file_->read_at(footer_.index_offset, static_cast<std::size_t>(footer_.index_bytes));
    Status status = read.status();
    if (!read && status.code() != Code::kDataLoss) return status;
    const ByteBuffer bytes = read ? std::move(read).value() : ByteBuffer();
    std::vector<PageEntry> entries;
    ByteSpan rest(bytes);
    while (!rest.empty() && status.is_ok()) {
        const format::ParsedFrame parsed = format::parse_frame(rest, salt_, false);
        if (parsed.outcome != format::ParseOutcome::kFrame) {
            status = damaged("the index is destroyed");
        } else {
            if (parsed.frame.type == FrameType::kIndex && parsed.frame.flags == 0)
                status = format::decode_index(parsed.frame.payload, entries);
            rest = rest.subspan(parsed.frame.bytes);
        }
    }
    const bool fits =
        std::is_sorted(entries.begin(), entries.end(),
                       [](const PageEntry& a, const PageEntry& b) { return place_of(a) < place_of(b); });
    if (!status.is_ok() || !fits || bytes.size() != footer_.index_bytes) {
        const format::SegmentFooter footer = footer_;  // which is whole
        TRAINDBG_RETURN_IF_ERROR(rebuild());
        footer_ = footer;
        return Status::ok();
    }
    index_ = std::move(entries);
    has_index_ = true;
    return Status::ok();
}

// ---------------------------------------------------------------------------------- pages

void SegmentPart::note(std::uint64_t offset, std::uint64_t bytes, std::string what, bool newer) {
    if (damage_.size() < kMostSegmentDamage && told_.emplace(offset, newer).second)
        damage_.push_back({name(), offset, bytes, std::move(what), false, newer});
}

void SegmentPart::note_page(const PageEntry& entry, const Status& status) {
    const bool newer = status.code() == Code::kUnsupported;
    const std::string tensor =
        entry.kind == PageKind::kSteps ? std::string() : base::format(" (tensor {})", entry.tensor);
    note(entry.offset, entry.frame_bytes,
         base::format("{}; {}: {}{} at {} step{} of this part, from its step {} on{}", status.message(),
                      newer ? "not read" : "lost", words_of(entry.kind), tensor, entry.rows,
                      entry.rows == 1 ? "" : "s", entry.first_row, newer ? "; use a newer traindbg" : ""),
         newer);
}

void SegmentPart::note_row(std::uint64_t row, const std::string& what) {
    // Mostly the page of its numbers was told already.
    if (damage_.empty()) note(0, 0, base::format("step {} of this part: {}", row, what));
}

void SegmentPart::append_damage(std::vector<Damage>& out) const {
    out.insert(out.end(), damage_.begin(), damage_.end());
}

Result<ByteBuffer> SegmentPart::read_page(const PageEntry& entry) {
    TRAINDBG_ASSIGN_OR_RETURN(ByteBuffer frame, file_->read_at(entry.offset, entry.frame_bytes));
    const format::ParsedFrame parsed = format::parse_frame(frame, salt_, false);
    if (parsed.outcome != format::ParseOutcome::kFrame || parsed.frame.type != FrameType::kPage)
        return Status(Code::kDataLoss, "the checksum does not match");
    frame.resize(format::kFrameHeaderBytes + parsed.frame.payload.size());
    frame.erase(frame.begin(), frame.begin() + format::kFrameHeaderBytes);
    return frame;
}

Status SegmentPart::read_columns(const PageEntry& entry, std::span<const Column> wanted, PageTable& table,
                                 std::vector<ByteBuffer>& columns) {
    storage::ReadFile& file = *file_;
    const std::uint64_t begin = entry.offset + format::kFrameHeaderBytes;
    if (entry.frame_bytes < format::kFrameHeaderBytes + entry.table_bytes)
        return damaged("a page is too short");
    const std::size_t payload = entry.frame_bytes - format::kFrameHeaderBytes;
    const std::size_t first = payload <= kSmallPageBytes
                                  ? payload
                                  : std::min(payload, std::size_t{entry.table_bytes} + kRowColumnBytes);
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer head, file.read_at(begin, first));
    TRAINDBG_ASSIGN_OR_RETURN(table, format::decode_page_table(head, salt_));
    if (table.kind != entry.kind || table.tensor != entry.tensor || table.rows != entry.rows)
        return damaged("a page is not the one that the index says");
    columns.clear();
    for (const Column column : wanted) {
        columns.emplace_back();
        const ColumnEntry* found = table.find(column);
        if (found == nullptr) continue;
        if (std::uint64_t{found->offset} + found->stored_bytes > payload)
            return damaged("a page is too short");
        if (found->offset + found->stored_bytes <= head.size()) {
            const ByteSpan there = column_bytes(head, *found);
            columns.back().assign(there.begin(), there.end());
            continue;
        }
        TRAINDBG_ASSIGN_OR_RETURN(columns.back(), file.read_at(begin + found->offset, found->stored_bytes));
    }
    return Status::ok();
}

std::pair<std::size_t, std::size_t> SegmentPart::pages_of(PageKind kind, TensorId tensor) const {
    const auto begin =
        std::lower_bound(index_.begin(), index_.end(), std::tuple(kind, tensor, 0U),
                         [](const PageEntry& entry, const auto& key) { return place_of(entry) < key; });
    auto end = begin;
    while (end != index_.end() && end->kind == kind && end->tensor == tensor) ++end;
    return {static_cast<std::size_t>(begin - index_.begin()), static_cast<std::size_t>(end - index_.begin())};
}

Status SegmentPart::decode_page(const PageEntry& entry, Page& page) {
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer payload, read_page(entry));
    TRAINDBG_ASSIGN_OR_RETURN(const PageTable table, format::decode_page_table(payload, salt_));
    if (table.kind != entry.kind || table.tensor != entry.tensor || table.rows != entry.rows)
        return damaged("a page is not the one that the index says");
    if (!is_known(entry.kind)) {
        page.rows.clear();
        return Status::ok();
    }
    const std::size_t rows = table.rows;
    const auto integers = [&](Column column, std::vector<std::uint64_t>& out) -> Status {
        out.clear();
        const ColumnEntry* found = table.find(column);
        if (found == nullptr) return Status::ok();
        return decoder_.integers(*found, column_bytes(payload, *found), salt_, rows, out);
    };
    if (entry.kind == PageKind::kSteps) {
        for (std::size_t i = 0; i < kStepColumns.size(); ++i) {
            const Status status = integers(kStepColumns[i], page.steps[i]);
            // A step is one without its times, but not without its number.
            if (i >= kStepKeys && status.code() == Code::kUnsupported) {
                note_page(entry, status);
                page.steps[i].clear();
            } else {
                TRAINDBG_RETURN_IF_ERROR(status);
            }
            page.steps[i].resize(rows);  // one that is left out is 0
        }
        page.rows.resize(rows);
        for (std::size_t i = 0; i < rows; ++i) page.rows[i] = entry.first_row + i;
        return Status::ok();
    }
    TRAINDBG_RETURN_IF_ERROR(integers(Column::kRow, page.rows));
    if (page.rows.size() != rows || !rise(page.rows)) return damaged("the rows of a page do not rise");
    if (entry.kind == PageKind::kStatistics) {
        for (std::size_t i = 0; i < kMomentColumns.size(); ++i) {
            page.moments[i].assign(rows, 0);
            if (const ColumnEntry* found = table.find(kMomentColumns[i]); found != nullptr)
                TRAINDBG_RETURN_IF_ERROR(
                    decoder_.floats(*found, column_bytes(payload, *found), salt_, rows, page.moments[i]));
        }
        for (std::size_t i = 0; i < kCountColumns.size(); ++i)
            TRAINDBG_RETURN_IF_ERROR(integers(kCountColumns[i], page.counts[i]));
    } else if (entry.kind == PageKind::kScalars) {
        const ColumnEntry* found = table.find(Column::kValue);
        if (found == nullptr) return damaged("a page of values has none");
        TRAINDBG_RETURN_IF_ERROR(
            decoder_.doubles(*found, column_bytes(payload, *found), salt_, rows, page.values));
    } else if (entry.kind == PageKind::kHistograms) {
        const ColumnEntry* found = table.find(Column::kBins);
        if (found == nullptr) return damaged("a page of histograms has none");
        TRAINDBG_ASSIGN_OR_RETURN(const ByteSpan bytes,
                                  decoder_.bytes(*found, column_bytes(payload, *found), salt_));
        TRAINDBG_ASSIGN_OR_RETURN(page.histograms, format::decode_histogram_rows(bytes, rows));
    } else {
        TRAINDBG_RETURN_IF_ERROR(integers(Column::kLengths, page.ends));
        const ColumnEntry* found = table.find(Column::kBytes);
        if (found == nullptr || page.ends.size() != rows) return damaged("a page of records has none");
        TRAINDBG_ASSIGN_OR_RETURN(const ByteSpan bytes,
                                  decoder_.bytes(*found, column_bytes(payload, *found), salt_));
        page.bytes.assign(bytes.begin(), bytes.end());
        std::uint64_t end = 0;
        for (std::uint64_t& each : page.ends) {
            if (each > page.bytes.size() - end) return damaged("the records of a page lie beyond it");
            each = end += each;
        }
    }
    return Status::ok();
}

Result<const SegmentPart::Page*> SegmentPart::page_for(Chain& chain, std::uint64_t row) {
    const auto first = index_.begin() + static_cast<std::ptrdiff_t>(chain.begin);
    const auto last = index_.begin() + static_cast<std::ptrdiff_t>(chain.end);
    const bool is_here = chain.loaded && index_[*chain.loaded].first_row <= row &&
                         (*chain.loaded + 1 == chain.end || row < index_[*chain.loaded + 1].first_row);
    if (!is_here) {
        const auto after = std::upper_bound(
            first, last, row,
            [](std::uint64_t wanted, const PageEntry& entry) { return wanted < entry.first_row; });
        if (after == first) return nullptr;
        const auto found = static_cast<std::size_t>(after - index_.begin()) - 1;
        chain.loaded = found;
        chain.cursor = 0;
        decoded_bytes_ -= chain.page ? chain.page->memory() : 0;
        chain.page = std::make_unique<Page>();
        const Status status = decode_page(index_[found], *chain.page);
        decoded_bytes_ += chain.page->memory();
        if (decoded_bytes_ > kMostDecodedBytes) {
            // A damaged or hostile part may unfold without end: then little is kept and much done again.
            for (Chain& other : chains_) {
                if (&other == &chain) continue;
                other.page.reset();
                other.loaded.reset();
            }
            decoded_bytes_ = chain.page->memory();
        }
        if (is_segment_damage(status)) {
            note_page(index_[found], status);
            decoded_bytes_ -= chain.page->memory();
            chain.page.reset();
        } else if (!status.is_ok()) {
            chain.loaded.reset();
            return status;
        }
    }
    if (!chain.page) return nullptr;
    const std::vector<std::uint64_t>& rows = chain.page->rows;
    if (chain.cursor >= rows.size() || rows[chain.cursor] > row) {
        // Mostly the next row of all; else it is looked for.
        chain.cursor =
            static_cast<std::size_t>(std::lower_bound(rows.begin(), rows.end(), row) - rows.begin());
    } else {
        while (chain.cursor < rows.size() && rows[chain.cursor] < row) ++chain.cursor;
    }
    if (chain.cursor >= rows.size() || rows[chain.cursor] != row) return nullptr;
    return chain.page.get();
}

// ---------------------------------------------------------------------------------- steps

Status SegmentPart::need_keys() {
    if (has_keys_) return Status::ok();
    TRAINDBG_RETURN_IF_ERROR(need_index());
    const auto rows = static_cast<std::size_t>(footer_.steps);
    const auto [begin, end] = pages_of(PageKind::kSteps, 0);
    modes_.assign(rows, 0);
    steps_.assign(rows, 0);
    sequences_.assign(rows, 0);
    constexpr std::array kWanted = {Column::kMode, Column::kStep, Column::kSequence};
    PageTable table;
    std::vector<ByteBuffer> columns;
    std::array<std::vector<std::uint64_t>, 3> numbers;
    for (std::size_t i = begin; i < end; ++i) {
        const PageEntry& entry = index_[i];
        Status status = read_columns(entry, kWanted, table, columns);
        for (std::size_t k = 0; k < kWanted.size() && status.is_ok(); ++k) {
            const ColumnEntry* found = table.find(kWanted[k]);
            if (found == nullptr) numbers[k].assign(entry.rows, 0);
            else status = decoder_.integers(*found, columns[k], salt_, entry.rows, numbers[k]);
        }
        if (is_segment_damage(status)) {
            note_page(entry, status);
            continue;
        }
        TRAINDBG_RETURN_IF_ERROR(status);
        for (std::size_t k = 0; k < entry.rows; ++k) {
            const std::size_t row = std::size_t{entry.first_row} + k;
            if (row >= rows) break;
            modes_[row] = is_mode(numbers[0][k]) ? static_cast<std::uint8_t>(numbers[0][k]) : std::uint8_t{0};
            steps_[row] = numbers[1][k];
            sequences_[row] = numbers[2][k];
        }
    }
    has_keys_ = true;
    return Status::ok();
}

Result<std::optional<StepKey>> SegmentPart::key(std::uint64_t row) {
    TRAINDBG_RETURN_IF_ERROR(need_keys());
    if (modes_[row] == 0) return std::optional<StepKey>();
    return std::optional(StepKey{static_cast<model::Mode>(modes_[row]), steps_[row], sequences_[row]});
}

Result<std::optional<std::uint64_t>> SegmentPart::find(model::Mode mode, model::StepIndex step) {
    const auto& range = footer_.modes[static_cast<std::size_t>(mode) - 1];
    if (range.steps == 0 || step < range.least || step > range.most) return std::optional<std::uint64_t>();
    TRAINDBG_RETURN_IF_ERROR(need_keys());
    for (std::size_t row = 0; row < steps_.size(); ++row)
        if (steps_[row] == step && modes_[row] == static_cast<std::uint8_t>(mode))
            return std::optional(static_cast<std::uint64_t>(row));
    return std::optional<std::uint64_t>();
}

Status SegmentPart::steps(model::Mode mode, std::vector<model::StepIndex>& out) {
    if (footer_.modes[static_cast<std::size_t>(mode) - 1].steps == 0) return Status::ok();
    TRAINDBG_RETURN_IF_ERROR(need_keys());
    for (std::size_t row = 0; row < steps_.size(); ++row)
        if (modes_[row] == static_cast<std::uint8_t>(mode)) out.push_back(steps_[row]);
    return Status::ok();
}

Status SegmentPart::load(std::uint64_t row, const TensorTable& table, StepRecord& record,
                         std::vector<format::RawPlace>* places, std::uint64_t& skipped) {
    TRAINDBG_RETURN_IF_ERROR(need_index());
    if (chains_.empty()) {
        for (std::size_t i = 0; i < index_.size();) {
            Chain& chain = chains_.emplace_back();
            chain.begin = i;
            const PageEntry& first = index_[i];
            while (i < index_.size() && index_[i].kind == first.kind && index_[i].tensor == first.tensor) ++i;
            chain.end = i;
        }
    }
    record.tensors.clear();
    record.scalars.clear();
    record.classes.clear();
    record.histograms.clear();
    record.channels.clear();
    record.digests.clear();
    record.raw.clear();
    if (places != nullptr) places->clear();
    bool has_step = false;
    std::uint64_t classes_left = format::kMostClasses;  // of the step
    std::uint64_t channels_left = format::kMostStepChannels;
    for (Chain& chain : chains_) {
        const PageEntry& entry = index_[chain.begin];
        if (!is_known(entry.kind) || (entry.kind == PageKind::kRaw && places == nullptr)) continue;
        TRAINDBG_ASSIGN_OR_RETURN(const Page* const page, page_for(chain, row));
        if (page == nullptr) continue;
        const std::size_t at = chain.cursor;
        if (entry.kind != PageKind::kSteps && !format::is_known(table, entry.tensor)) {
            ++skipped;
            continue;
        }
        const ByteSpan opaque =
            page->ends.empty()
                ? ByteSpan()
                : ByteSpan(page->bytes)
                      .subspan(static_cast<std::size_t>(at == 0 ? 0 : page->ends[at - 1]),
                               static_cast<std::size_t>(page->ends[at] - (at == 0 ? 0 : page->ends[at - 1])));
        switch (entry.kind) {
            case PageKind::kSteps: {
                if (!is_mode(page->steps[0][at])) break;
                has_step = true;
                record.mode = static_cast<model::Mode>(page->steps[0][at]);
                record.step = page->steps[1][at];
                record.sequence = page->steps[2][at];
                record.wall_nanos = static_cast<std::int64_t>(page->steps[3][at]);
                record.monotonic_nanos = static_cast<std::int64_t>(page->steps[4][at]);
                record.step_nanos = page->steps[5][at];
                record.capture_nanos = page->steps[6][at];
                break;
            }
            case PageKind::kStatistics: {
                model::TensorSample& sample = record.tensors.emplace_back();
                sample.tensor = entry.tensor;
                model::Statistics& s = sample.statistics;
                const auto count = [&](std::size_t i, std::uint64_t usual) {
                    return page->counts[i].empty() ? usual : page->counts[i][at];
                };
                const auto moment = [&](std::size_t i) { return static_cast<double>(page->moments[i][at]); };
                s.min = moment(0);
                s.max = moment(1);
                s.mean = moment(2);
                s.std = moment(3);
                s.l1 = moment(4);
                s.l2 = moment(5);
                s.count = page->counts[0].empty() ? format::element_count(table[entry.tensor].shape)
                                                  : page->counts[0][at];
                s.nan = count(1, 0);
                s.positive_infinite = count(2, 0);
                s.negative_infinite = count(3, 0);
                s.zero = count(4, 0);
                sample.units.units = static_cast<std::uint32_t>(count(5, 0));
                sample.units.inactive_units = static_cast<std::uint32_t>(count(6, 0));
                sample.units.low = count(7, 0);
                sample.units.high = count(8, 0);
                break;
            }
            case PageKind::kScalars: record.scalars.push_back({entry.tensor, page->values[at]}); break;
            case PageKind::kHistograms:
                record.histograms.push_back({entry.tensor, page->histograms[at]});
                break;
            case PageKind::kClasses: {
                ByteReader reader(opaque);
                model::ClassSample sample;
                sample.tensor = entry.tensor;
                format::internal::decode_class_counts(reader, classes_left, sample.counts);
                if (reader.ok()) record.classes.push_back(std::move(sample));
                else note_page(index_[*chain.loaded], damaged("a record of class counts is damaged"));
                break;
            }
            case PageKind::kChannels: {
                ByteReader reader(opaque);
                model::ChannelSample sample;
                sample.tensor = entry.tensor;
                format::internal::decode_channels(reader, channels_left, sample.channels);
                if (reader.ok()) record.channels.push_back(std::move(sample));
                else note_page(index_[*chain.loaded], damaged("a record of channels is damaged"));
                break;
            }
            case PageKind::kDigests: {
                ByteReader reader(opaque);
                const model::Digest digest = format::internal::decode_digest(reader);
                if (reader.ok()) record.digests.push_back({entry.tensor, digest});
                else note_page(index_[*chain.loaded], damaged("a digest is damaged"));
                break;
            }
            case PageKind::kRaw: {
                ByteReader reader(opaque);
                format::RawPlace place;
                place.tensor = entry.tensor;
                format::internal::decode_raw_place(reader, table, place);
                if (reader.ok()) places->push_back(std::move(place));
                else note_page(index_[*chain.loaded], damaged("the place of a whole tensor is damaged"));
                break;
            }
        }
    }
    if (!has_step) return damaged("the step's own numbers are damaged");
    return Status::ok();
}

Status SegmentPart::series(TensorId tensor, const Statistic& statistic, const TensorTable& table,
                           std::vector<SeriesPoint>& out) {
    TRAINDBG_RETURN_IF_ERROR(need_index());
    const bool is_value = statistic.kind == StatisticKind::kValue;
    const auto [begin, end] = pages_of(is_value ? PageKind::kScalars : PageKind::kStatistics, tensor);
    if (begin == end) return Status::ok();
    TRAINDBG_RETURN_IF_ERROR(need_keys());
    const bool has_two = statistic.columns[0] != statistic.columns[1];
    const std::array wanted = {
        Column::kRow, statistic.columns[0],
        statistic.kind == StatisticKind::kUnits ? Column::kUnits : statistic.columns[1]};
    const std::size_t columns_wanted = has_two || statistic.kind == StatisticKind::kUnits ? 3 : 2;
    PageTable page;
    std::vector<ByteBuffer> columns;
    std::vector<std::uint64_t> rows;
    std::vector<std::uint64_t> first;
    std::vector<std::uint64_t> second;
    std::vector<float> floats;
    std::vector<double> values;
    for (std::size_t i = begin; i < end; ++i) {
        const PageEntry& entry = index_[i];
        const auto read = [&]() -> Status {
            TRAINDBG_RETURN_IF_ERROR(
                read_columns(entry, std::span(wanted).first(columns_wanted), page, columns));
            const ColumnEntry* row_column = page.find(Column::kRow);
            if (row_column == nullptr) return damaged("a page without its rows");
            TRAINDBG_RETURN_IF_ERROR(decoder_.integers(*row_column, columns[0], salt_, entry.rows, rows));
            const ColumnEntry* found = page.find(statistic.columns[0]);
            values.assign(entry.rows, 0);
            if (is_value) {
                if (found == nullptr) return damaged("a page of values has none");
                return decoder_.doubles(*found, columns[1], salt_, entry.rows, values);
            }
            if (statistic.kind == StatisticKind::kMoment) {
                if (found == nullptr) return Status::ok();
                TRAINDBG_RETURN_IF_ERROR(decoder_.floats(*found, columns[1], salt_, entry.rows, floats));
                std::copy(floats.begin(), floats.end(), values.begin());
                return Status::ok();
            }
            const std::uint64_t usual = statistic.columns[0] == Column::kCount
                                            ? format::element_count(table[tensor].shape)
                                            : std::uint64_t{0};
            first.assign(entry.rows, usual);
            if (found != nullptr)
                TRAINDBG_RETURN_IF_ERROR(decoder_.integers(*found, columns[1], salt_, entry.rows, first));
            second.assign(entry.rows, 0);
            if (columns_wanted == 3) {
                if (const ColumnEntry* other = page.find(wanted[2]); other != nullptr)
                    TRAINDBG_RETURN_IF_ERROR(
                        decoder_.integers(*other, columns[2], salt_, entry.rows, second));
            }
            for (std::size_t k = 0; k < values.size(); ++k)
                values[k] = static_cast<double>(first[k] + (has_two ? second[k] : 0));
            return Status::ok();
        };
        const Status status = read();
        if (is_segment_damage(status)) {
            note_page(entry, status);
            continue;
        }
        TRAINDBG_RETURN_IF_ERROR(status);
        for (std::size_t k = 0; k < rows.size(); ++k) {
            if (rows[k] >= modes_.size() || modes_[rows[k]] == 0) continue;
            if (statistic.kind == StatisticKind::kUnits && second[k] == 0) continue;
            out.push_back({static_cast<model::Mode>(modes_[rows[k]]), steps_[rows[k]], values[k]});
        }
    }
    return Status::ok();
}

Status SegmentPart::each_opaque_row(PageKind kind, TensorId tensor,
                                    const std::function<void(const StepKey&, ByteReader&)>& visit) {
    TRAINDBG_RETURN_IF_ERROR(need_index());
    const auto [begin, end] = pages_of(kind, tensor);
    if (begin == end) return Status::ok();
    TRAINDBG_RETURN_IF_ERROR(need_keys());
    Page page;
    for (std::size_t i = begin; i < end; ++i) {
        const Status status = decode_page(index_[i], page);
        if (is_segment_damage(status)) {
            note_page(index_[i], status);
            continue;
        }
        TRAINDBG_RETURN_IF_ERROR(status);
        std::uint64_t at = 0;
        for (std::size_t k = 0; k < page.rows.size(); ++k) {
            const ByteSpan bytes =
                ByteSpan(page.bytes)
                    .subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(page.ends[k] - at));
            at = page.ends[k];
            const std::uint64_t row = page.rows[k];
            if (row >= modes_.size() || modes_[row] == 0) continue;
            ByteReader reader(bytes);
            visit({static_cast<model::Mode>(modes_[row]), steps_[row], sequences_[row]}, reader);
        }
    }
    return Status::ok();
}

Status SegmentPart::places(TensorId tensor, const TensorTable& table, std::vector<PlacedTensor>& out) {
    return each_opaque_row(PageKind::kRaw, tensor, [&](const StepKey& key, ByteReader& reader) {
        PlacedTensor placed;
        placed.key = key;
        placed.place.tensor = tensor;
        format::internal::decode_raw_place(reader, table, placed.place);
        if (reader.ok()) out.push_back(std::move(placed));
    });
}

Status SegmentPart::digests(TensorId tensor, const TensorTable& /*table*/, std::vector<DigestPoint>& out) {
    return each_opaque_row(PageKind::kDigests, tensor, [&](const StepKey& key, ByteReader& reader) {
        const model::Digest digest = format::internal::decode_digest(reader);
        if (reader.ok()) out.push_back({key.mode, key.step, digest});
    });
}

void SegmentPart::release() noexcept {
    std::vector<Chain>().swap(chains_);
    decoded_bytes_ = 0;
}

Status SegmentPart::verify() {
    TRAINDBG_RETURN_IF_ERROR(need_index());
    TRAINDBG_RETURN_IF_ERROR(scan([](std::uint64_t, const format::Frame&) {}));
    Page page;
    for (const PageEntry& entry : index_) {
        const Status status = decode_page(entry, page);
        if (is_segment_damage(status)) note_page(entry, status);
        else TRAINDBG_RETURN_IF_ERROR(status);
    }
    return Status::ok();
}

std::uint64_t SegmentPart::Page::memory() const noexcept {
    std::uint64_t sum = rows.size() * 8 + values.size() * 8 + ends.size() * 8 + bytes.size();
    for (const auto& column : moments) sum += column.size() * sizeof(float);
    for (const auto& column : counts) sum += column.size() * 8;
    for (const auto& column : steps) sum += column.size() * 8;
    for (const model::Histogram& histogram : histograms)
        sum += sizeof(model::Histogram) + histogram.size() * sizeof(model::HistogramBin);
    return sum;
}

}  // namespace traindbg::read::internal
