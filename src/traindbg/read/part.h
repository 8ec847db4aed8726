// A part of a worker's record: some of its steps, in the order in which they were recorded, in a log
// that may grow or in a sealed segment. Private to `read`.
//
// Both answer the same questions, so that nobody above needs to know which it is. Rows count the
// steps of a part from 0 and are the same in a log and in the segment that is made of it.
//
// Damage: what cannot be read is noted in `damage` and left out, the rest is still read. An error of
// the file system itself comes back as a status.
//
// Thread-safety: one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/format/records.h"
#include "traindbg/format/segment.h"
#include "traindbg/model/step_source.h"
#include "traindbg/read/log_reader.h"
#include "traindbg/read/run.h"
#include "traindbg/read/statistic.h"

namespace traindbg::read::internal {

struct StepKey {
    model::Mode mode = model::Mode::kTrain;
    model::StepIndex step = 0;
    std::uint64_t sequence = 0;
};

struct PlacedTensor {
    StepKey key;
    format::RawPlace place;
};

// Takes frames that are about the worker, not about one step.
using FrameVisitor = std::function<void(std::uint64_t offset, const format::Frame&)>;

class Part {
  public:
    Part() = default;
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    virtual ~Part() = default;

    [[nodiscard]] virtual std::uint32_t number() const noexcept = 0;
    [[nodiscard]] virtual const std::string& name() const noexcept = 0;  // of the file, with its path
    [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t rows() const noexcept = 0;
    // More is there than could be read: an error came before the end.
    [[nodiscard]] virtual bool is_behind() const noexcept = 0;

    // Nothing for a row that is damaged.
    [[nodiscard]] virtual base::Result<std::optional<StepKey>> key(std::uint64_t row) = 0;
    [[nodiscard]] virtual base::Result<std::optional<std::uint64_t>> find(model::Mode mode,
                                                                          model::StepIndex step) = 0;
    // Appends the numbers of all steps of this mode.
    [[nodiscard]] virtual base::Status steps(model::Mode mode, std::vector<model::StepIndex>& out) = 0;
    // Decodes one step; what it holds of whole tensors goes into `places`, where somebody asks. Adds to
    // `skipped` the samples whose tensor nobody described.
    [[nodiscard]] virtual base::Status load(std::uint64_t row, const model::TensorTable& table,
                                            model::StepRecord& record, std::vector<format::RawPlace>* places,
                                            std::uint64_t& skipped) = 0;
    // Appends one number of one tensor over all rows.
    [[nodiscard]] virtual base::Status series(model::TensorId tensor, const Statistic& statistic,
                                              const model::TensorTable& table,
                                              std::vector<SeriesPoint>& out) = 0;
    // Appends the tensor's digests over all rows.
    [[nodiscard]] virtual base::Status digests(model::TensorId tensor, const model::TensorTable& table,
                                               std::vector<DigestPoint>& out) = 0;
    // Appends where the tensor lies as a whole, over all rows.
    [[nodiscard]] virtual base::Status places(model::TensorId tensor, const model::TensorTable& table,
                                              std::vector<PlacedTensor>& out) = 0;
    // Gives back what `load` keeps so that the next step of the part comes quickly.
    virtual void release() noexcept = 0;
    // TRAIN steps: their time, and what of it was spent in traindbg.
    [[nodiscard]] virtual std::uint64_t step_nanos() const noexcept = 0;
    [[nodiscard]] virtual std::uint64_t capture_nanos() const noexcept = 0;
    // Notes that a step could not be read; what was lost is told once.
    virtual void note_row(std::uint64_t row, const std::string& what) = 0;
    virtual void append_damage(std::vector<Damage>& out) const = 0;
};

// A log, of which an index of frames is kept: 40 bytes a step.
class LogPart final : public Part {
  public:
    LogPart(std::unique_ptr<storage::ReadFile> file, std::string name, std::uint32_t number)
        : reader_(std::move(file), std::move(name)), number_(number) {}

    // Reads what was appended. True: there was something. Frames that are not of steps go to `visit`.
    [[nodiscard]] base::Result<bool> poll(const FrameVisitor& visit);
    [[nodiscard]] bool has_header() const noexcept { return reader_.header().has_value(); }
    // Notes that the frame at `offset` could not be understood.
    void note(std::uint64_t offset, std::uint64_t bytes, std::string what);

    [[nodiscard]] std::uint32_t number() const noexcept override { return number_; }
    [[nodiscard]] const std::string& name() const noexcept override { return reader_.name(); }
    [[nodiscard]] std::uint64_t bytes() const noexcept override { return reader_.size(); }
    [[nodiscard]] std::uint64_t rows() const noexcept override { return steps_.size(); }
    [[nodiscard]] bool is_behind() const noexcept override { return reader_.is_behind(); }
    [[nodiscard]] base::Result<std::optional<StepKey>> key(std::uint64_t row) override;
    [[nodiscard]] base::Result<std::optional<std::uint64_t>> find(model::Mode mode,
                                                                  model::StepIndex step) override;
    [[nodiscard]] base::Status steps(model::Mode mode, std::vector<model::StepIndex>& out) override;
    [[nodiscard]] base::Status load(std::uint64_t row, const model::TensorTable& table,
                                    model::StepRecord& record, std::vector<format::RawPlace>* places,
                                    std::uint64_t& skipped) override;
    [[nodiscard]] base::Status series(model::TensorId tensor, const Statistic& statistic,
                                      const model::TensorTable& table,
                                      std::vector<SeriesPoint>& out) override;
    [[nodiscard]] base::Status digests(model::TensorId tensor, const model::TensorTable& table,
                                       std::vector<DigestPoint>& out) override;
    [[nodiscard]] base::Status places(model::TensorId tensor, const model::TensorTable& table,
                                      std::vector<PlacedTensor>& out) override;
    void release() noexcept override { reader_.release_window(); }
    [[nodiscard]] std::uint64_t step_nanos() const noexcept override { return step_nanos_; }
    [[nodiscard]] std::uint64_t capture_nanos() const noexcept override { return capture_nanos_; }
    void note_row(std::uint64_t row, const std::string& what) override;
    void append_damage(std::vector<Damage>& out) const override;

  private:
    struct Entry {
        std::uint64_t offset = 0;
        StepKey key;
        std::uint32_t bytes = 0;
        bool has_raw = false;
    };
    LogReader reader_;
    std::uint32_t number_;
    std::vector<Entry> steps_;
    std::uint64_t step_nanos_ = 0;
    std::uint64_t capture_nanos_ = 0;
    std::vector<Damage> damage_;
    std::set<std::uint64_t> damaged_offsets_;
};

// A sealed segment. Only its footer is read on opening; index and columns come when they are needed.
class SegmentPart final : public Part {
  public:
    struct Opened {
        std::unique_ptr<SegmentPart> part;  // null where the file holds nothing for us, for ever:
        base::Status refused;  // kDataLoss: nothing in it can be read; kUnsupported: of a newer format
    };
    // An error of the file system is a status: the next try may go well. `decoder` must outlive the part; all
    // parts of a run share one, which has memory that a run of thousands of parts would not have for each.
    [[nodiscard]] static base::Result<Opened> open(std::unique_ptr<storage::ReadFile> file, std::string name,
                                                   std::uint32_t number, format::ColumnDecoder& decoder);

    [[nodiscard]] const format::SegmentFooter& footer() const noexcept { return footer_; }
    // SCHEMA (unless the caller has the same already), WORKER, EVENT, DROPPED and END.
    [[nodiscard]] base::Status visit_frames(bool with_schema, const FrameVisitor& visit);
    // Reads and verifies every byte; what is found goes into the damage.
    [[nodiscard]] base::Status verify();
    // `newer`: what is there is whole, and of a newer version.
    void note(std::uint64_t offset, std::uint64_t bytes, std::string what, bool newer = false);

    [[nodiscard]] std::uint32_t number() const noexcept override { return number_; }
    [[nodiscard]] const std::string& name() const noexcept override { return name_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept override { return bytes_; }
    [[nodiscard]] std::uint64_t rows() const noexcept override { return footer_.steps; }
    [[nodiscard]] bool is_behind() const noexcept override { return false; }
    [[nodiscard]] base::Result<std::optional<StepKey>> key(std::uint64_t row) override;
    [[nodiscard]] base::Result<std::optional<std::uint64_t>> find(model::Mode mode,
                                                                  model::StepIndex step) override;
    [[nodiscard]] base::Status steps(model::Mode mode, std::vector<model::StepIndex>& out) override;
    [[nodiscard]] base::Status load(std::uint64_t row, const model::TensorTable& table,
                                    model::StepRecord& record, std::vector<format::RawPlace>* places,
                                    std::uint64_t& skipped) override;
    [[nodiscard]] base::Status series(model::TensorId tensor, const Statistic& statistic,
                                      const model::TensorTable& table,
                                      std::vector<SeriesPoint>& out) override;
    [[nodiscard]] base::Status digests(model::TensorId tensor, const model::TensorTable& table,
                                       std::vector<DigestPoint>& out) override;
    [[nodiscard]] base::Status places(model::TensorId tensor, const model::TensorTable& table,
                                      std::vector<PlacedTensor>& out) override;
    void release() noexcept override;
    [[nodiscard]] std::uint64_t step_nanos() const noexcept override { return footer_.step_nanos; }
    [[nodiscard]] std::uint64_t capture_nanos() const noexcept override { return footer_.capture_nanos; }
    void note_row(std::uint64_t row, const std::string& what) override;
    void append_damage(std::vector<Damage>& out) const override;

  private:
    // A page in memory, in columns; those that were left out are empty.
    struct Page {
        std::vector<std::uint64_t> rows;
        std::array<std::vector<float>, 6> moments;
        std::array<std::vector<std::uint64_t>, 9> counts;
        std::vector<double> values;
        std::vector<std::uint64_t> ends;  // of opaque rows, in `bytes`
        base::ByteBuffer bytes;
        std::vector<model::Histogram> histograms;
        std::array<std::vector<std::uint64_t>, 7> steps;

        [[nodiscard]] std::uint64_t memory() const noexcept;
    };
    // All pages of one tensor and kind: entries of the index, and the one that was decoded last.
    struct Chain {
        std::size_t begin = 0;
        std::size_t end = 0;
        std::optional<std::size_t> loaded;  // index of the entry in `page`
        std::size_t cursor = 0;             // row of `page` that is looked at next
        std::unique_ptr<Page> page;         // null: damaged
    };

    SegmentPart(std::unique_ptr<storage::ReadFile> file, std::string name, std::uint32_t number,
                format::ColumnDecoder& decoder)
        : file_(std::move(file)), name_(std::move(name)), number_(number), decoder_(decoder) {}

    [[nodiscard]] base::Status take_header(base::ByteSpan begin);
    // False: it is destroyed, or does not fit the file.
    [[nodiscard]] bool take_footer(base::ByteSpan tail);
    // Goes through all frames of the file; bytes that belong to none are noted.
    [[nodiscard]] base::Status scan(const FrameVisitor& visit);
    // Footer and index anew, from the frames themselves.
    [[nodiscard]] base::Status rebuild();
    [[nodiscard]] base::Status need_index();
    [[nodiscard]] base::Status need_keys();
    // The payload of a page, verified as a frame.
    [[nodiscard]] base::Result<base::ByteBuffer> read_page(const format::PageEntry& entry);
    // Only the table and the named columns, each verified by itself; true: they are in `columns`.
    [[nodiscard]] base::Status read_columns(const format::PageEntry& entry,
                                            std::span<const format::Column> wanted, format::PageTable& table,
                                            std::vector<base::ByteBuffer>& columns);
    [[nodiscard]] base::Status decode_page(const format::PageEntry& entry, Page& page);
    // Calls `visit` with the step and the bytes of each of the tensor's rows of a kind that is not columns.
    [[nodiscard]] base::Status each_opaque_row(
        format::PageKind kind, model::TensorId tensor,
        const std::function<void(const StepKey& key, base::ByteReader& reader)>& visit);
    // The page of `chain` that covers `row`; null where none does, or where it is damaged.
    [[nodiscard]] base::Result<const Page*> page_for(Chain& chain, std::uint64_t row);
    void note_page(const format::PageEntry& entry, const base::Status& status);
    [[nodiscard]] std::pair<std::size_t, std::size_t> pages_of(format::PageKind kind,
                                                               model::TensorId tensor) const;

    std::unique_ptr<storage::ReadFile> file_;
    std::string name_;
    std::uint32_t number_;
    format::ColumnDecoder& decoder_;
    std::uint64_t bytes_ = 0;
    std::uint64_t salt_ = 0;
    format::SegmentFooter footer_;
    bool has_index_ = false;
    std::vector<format::PageEntry> index_;  // sorted by kind, tensor, first row
    bool has_keys_ = false;
    std::vector<std::uint8_t> modes_;  // 0: the row is damaged
    std::vector<std::uint64_t> steps_;
    std::vector<std::uint64_t> sequences_;
    std::vector<Chain> chains_;
    std::uint64_t decoded_bytes_ = 0;  // of the chains' pages
    std::vector<Damage> damage_;
    std::set<std::pair<std::uint64_t, bool>> told_;  // of `damage_`: offset and newer
};

}  // namespace traindbg::read::internal
