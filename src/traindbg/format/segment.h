// A sealed part: the steps of a finished log, turned so that what one tensor did over many steps lies
// together. docs/format/native.md describes it to the byte.
//
//   FILE_HEADER x2 | SCHEMA ... WORKER EVENT ... DROPPED END | PAGE ... | INDEX ... | FOOTER
//
// A PAGE holds at most 4096 rows of one tensor's samples of one kind (or of the steps themselves), a
// column for each number. A row's number is that of its step in the part. The INDEX names all pages,
// sorted; the FOOTER, the last frame, says where the rest lies and answers what opening a run asks.
// Every page is a frame of its own: where index or footer are destroyed, a scan finds the pages.
//
// Ownership: what is decoded owns its values; columns are borrowed bytes until they are decoded.
// Errors: values, kDataLoss. Thread-safety: one thread per object. Cost: some 0.24 µs of
// CPU for each tensor of each step; all of the part's numbers are in memory meanwhile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/format/column.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/model/histogram.h"
#include "traindbg/model/step.h"

namespace traindbg::format {

// No part has more steps; a writer ends one long before.
inline constexpr std::uint64_t kMostPartSteps = std::uint64_t{1} << 20;

// What a page is about. The numbers are written into files: never change one, only add.
enum class PageKind : std::uint8_t {
    kSteps = 0,  // the steps themselves, `tensor` is 0
    kStatistics = 1,
    kScalars = 2,
    kClasses = 3,
    kRaw = 4,  // where whole tensors lie
    kHistograms = 5,
    kChannels = 6,
    kDigests = 7,
};

// What a column holds. The numbers are written into files: never change one, only add. A column that
// would hold zeros alone is left out (kCount: where each is the usual count).
enum class Column : std::uint8_t {
    kRow = 0,  // of all pages: integers that rise
    // Of statistics: floats, then integers.
    kMin = 1,
    kMax = 2,
    kMean = 3,
    kStd = 4,
    kL1 = 5,
    kL2 = 6,
    kCount = 16,
    kNan = 17,
    kPositiveInfinite = 18,
    kNegativeInfinite = 19,
    kZero = 20,
    kUnits = 21,
    kInactiveUnits = 22,
    kLow = 23,
    kHigh = 24,
    kValue = 32,  // of scalars: doubles
    // Of classes, places, channels and digests: the bytes of each row as in a step's section, without the id.
    kLengths = 40,
    kBytes = 41,
    kBins = 42,  // of histograms: all rows together, see encode_histogram_rows
    // Of steps: integers.
    kMode = 48,
    kStep = 49,
    kSequence = 50,
    kWallNanos = 51,
    kMonotonicNanos = 52,
    kStepNanos = 53,
    kCaptureNanos = 54,
};

// The table at the beginning of a page's payload.
struct PageTable {
    PageKind kind = PageKind::kSteps;  // may be one that this version does not know
    model::TensorId tensor = 0;
    std::uint32_t rows = 0;
    std::size_t bytes = 0;             // of the table itself; the columns follow
    std::vector<ColumnEntry> columns;  // `offset` from the payload's beginning

    // Nothing when the column was left out.
    [[nodiscard]] const ColumnEntry* find(Column column) const noexcept;
};
// `payload` may be its beginning only, of at least the table's bytes as the index tells them.
[[nodiscard]] base::Result<PageTable> decode_page_table(base::ByteSpan payload, std::uint64_t salt);

// The histograms of a page's rows: the bins that occur at all, and for each of them its counts from
// row to row as differences, because what a tensor looks like changes little from step to step.
void encode_histogram_rows(base::ByteWriter& out, std::span<const model::Histogram> rows);
[[nodiscard]] base::Result<std::vector<model::Histogram>> decode_histogram_rows(base::ByteSpan bytes,
                                                                                std::size_t rows);

// An entry of the INDEX.
struct PageEntry {
    PageKind kind = PageKind::kSteps;
    model::TensorId tensor = 0;
    std::uint32_t first_row = 0;
    std::uint32_t rows = 0;
    std::uint64_t offset = 0;       // of the frame in the file
    std::uint32_t frame_bytes = 0;  // of all of it
    std::uint32_t table_bytes = 0;

    friend bool operator==(const PageEntry&, const PageEntry&) = default;
};
inline constexpr std::size_t kPageEntryBytes = 32;
// Appends the entries of one INDEX to `entries`.
[[nodiscard]] base::Status decode_index(base::ByteSpan payload, std::vector<PageEntry>& entries);

// The FOOTER: always the last frame.
struct SegmentFooter {
    std::uint64_t schema_offset = 0;  // SCHEMA frames, then the others up to the pages
    std::uint64_t schema_bytes = 0;
    std::uint64_t pages_offset = 0;
    std::uint64_t index_offset = 0;  // INDEX frames, up to the footer
    std::uint64_t index_bytes = 0;
    std::uint64_t steps = 0;
    std::uint64_t step_nanos = 0;     // of TRAIN steps
    std::uint64_t capture_nanos = 0;  // of these, spent in traindbg
    std::uint32_t tensors = 0;        // described in SCHEMA
    std::uint32_t schema_checksum =
        0;                            // crc32c of the SCHEMA payloads: the same in parts of the same tensors
    bool has_ended = false;           // the worker's END is in it
    std::uint64_t steps_dropped = 0;  // since the beginning of the worker
    std::uint64_t raw_tensors_dropped = 0;
    struct ModeRange {
        std::uint64_t steps = 0;
        std::uint64_t least = 0;  // step numbers of this mode
        std::uint64_t most = 0;

        friend bool operator==(const ModeRange&, const ModeRange&) = default;
    };
    std::array<ModeRange, 4> modes{};  // train, eval, predict, global

    friend bool operator==(const SegmentFooter&, const SegmentFooter&) = default;
};
[[nodiscard]] base::Result<SegmentFooter> decode_footer(base::ByteSpan payload);
// The footer at the end of `tail`, the last bytes of a file; nothing when it is not whole.
[[nodiscard]] std::optional<SegmentFooter> find_footer(base::ByteSpan tail, std::uint64_t salt);
// A reader that fetches this much of a file's end has the footer.
inline constexpr std::size_t kFooterZoneBytes = 512;

// Makes a sealed part from the frames of a log, which is handed over frame by frame, in order.
class SegmentBuilder {
  public:
    // `header`: of the log. `salt`: of the new file, random.
    SegmentBuilder(const FileHeader& header, std::uint64_t salt);
    SegmentBuilder(const SegmentBuilder&) = delete;
    SegmentBuilder& operator=(const SegmentBuilder&) = delete;
    ~SegmentBuilder();

    // kDataLoss for a frame that cannot be decoded: such a log is better kept as it is. Frames of
    // types and flags that this version does not know are refused with kUnsupported for that reason.
    [[nodiscard]] base::Status add(const Frame& frame);
    [[nodiscard]] std::uint64_t steps() const noexcept;
    // The file. The builder is empty afterwards.
    [[nodiscard]] base::Result<base::ByteBuffer> finish();

  private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::format
