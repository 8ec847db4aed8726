// Pages of a few KB that unfold to many MB, with right checksums: what a hostile program could write.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/base/crc32c.h"
#include "traindbg/format/column.h"
#include "traindbg/format/compression.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/format/segment.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/memory_file_system.h"

namespace traindbg::read {
namespace {

using base::ByteBuffer;
using base::ByteWriter;
using format::Column;
using format::ColumnEntry;
using format::PageKind;
using storage::MemoryFileSystem;

constexpr std::uint64_t kSalt = 0xB0B;
constexpr std::uint32_t kUnfolded = std::uint32_t{64} << 20;  // the most that a reader unfolds at once
constexpr const char* kSegment = "/run/w0000/000000.seg";

// A page whose columns are given by their entries and bytes.
class PageMaker {
  public:
    void integers(Column column, std::vector<std::uint64_t> values) {
        ColumnEntry entry = encoder_.integers(values, columns_);
        entry.column = static_cast<std::uint8_t>(column);
        entries_.push_back(entry);
    }
    // `stored` unfolds to something; the page says that it is `claimed` bytes.
    void folded(Column column, format::Encoding encoding, base::ByteSpan stored, std::uint32_t claimed) {
        ColumnEntry entry;
        entry.column = static_cast<std::uint8_t>(column);
        entry.encoding = static_cast<std::uint8_t>(encoding) | format::kCompressed;
        entry.raw_bytes = claimed;
        entry.stored_bytes = static_cast<std::uint32_t>(stored.size());
        entry.checksum = base::crc32c(stored, format::checksum_seed(kSalt));
        columns_.append(stored);
        entries_.push_back(entry);
    }
    [[nodiscard]] ByteBuffer take(PageKind kind, model::TensorId tensor, std::uint32_t rows) {
        ByteWriter out;
        out.fixed(std::uint32_t{0});
        out.fixed(std::uint32_t{0});
        out.fixed(static_cast<std::uint8_t>(kind));
        out.varint(tensor);
        out.varint(rows);
        out.varint(entries_.size());
        for (const ColumnEntry& entry : entries_) {
            out.fixed(entry.column);
            out.fixed(entry.encoding);
            out.varint(entry.raw_bytes);
            out.varint(entry.stored_bytes);
            out.fixed(entry.checksum);
        }
        out.patch(4, static_cast<std::uint32_t>(out.size()));
        out.patch(0, base::crc32c(base::ByteSpan(out.bytes()).subspan(4), format::checksum_seed(kSalt)));
        out.append(columns_.bytes());
        return out.take();
    }

  private:
    format::ColumnEncoder encoder_{kSalt};
    ByteWriter columns_;
    std::vector<ColumnEntry> entries_;
};

// A sealed part of one step, with these pages; its index is rebuilt by whoever reads it.
class UnfoldingPageTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(files_.create_directories("/run/w0000").is_ok());
        ASSERT_TRUE(files_.put_atomic("/run/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
        const ByteBuffer zeros(kUnfolded);
        format::Compressor compressor;
        const base::ByteSpan folded = compressor.compress(zeros);
        folded_.assign(folded.begin(), folded.end());
        ASSERT_LT(folded_.size(), 64U << 10);
    }
    void put(const model::TensorTable& table, const std::vector<ByteBuffer>& pages) {
        ByteWriter out;
        format::FileHeader header;
        header.kind = format::FileKind::kSegment;
        header.salt = kSalt;
        format::append_file_header(out, header);
        std::uint64_t sequence = 2;
        ByteWriter schema;
        format::encode_schema(schema, table);
        ASSERT_TRUE(
            format::append_frame(out, format::FrameType::kSchema, sequence++, schema.bytes(), kSalt).is_ok());
        PageMaker steps;
        steps.integers(Column::kRow, {0});
        steps.integers(Column::kMode, {static_cast<std::uint64_t>(model::Mode::kTrain)});
        steps.integers(Column::kStep, {7});
        ASSERT_TRUE(format::append_frame(out, format::FrameType::kPage, sequence++,
                                         steps.take(PageKind::kSteps, 0, 1), kSalt)
                        .is_ok());
        for (const ByteBuffer& page : pages)
            ASSERT_TRUE(format::append_frame(out, format::FrameType::kPage, sequence++, page, kSalt).is_ok());
        files_.set_content(kSegment, out.take());
    }
    // All that can be asked of it; gives what was damaged.
    std::vector<std::string> read_all() {
        std::vector<std::string> damage;
        auto run = Run::open("/run", files_);
        EXPECT_TRUE(run.is_ok()) << run.status().to_string();
        if (!run.is_ok()) return damage;
        std::uint64_t steps = 0;
        EXPECT_TRUE((*run)
                        ->for_each_step(
                            [&](const model::StepView& view) {
                                EXPECT_EQ(view.step(), 7U);
                                EXPECT_TRUE(view.record->tensors.empty() && view.record->scalars.empty());
                                EXPECT_TRUE(view.record->raw.empty());
                                ++steps;
                                return true;
                            },
                            true)
                        .is_ok());
        EXPECT_EQ(steps, 1U) << "the step itself is whole";
        for (const std::string& name : (*run)->tensor_names())
            for (const char* const statistic : {"value", "min"}) {
                const auto points = (*run)->series(0, name, statistic);
                EXPECT_TRUE(!points.is_ok() || points->empty());
            }
        EXPECT_TRUE((*run)->verify().is_ok());
        for (const Damage& place : (*run)->damage()) damage.push_back(place.what);
        return damage;
    }

    MemoryFileSystem files_;
    ByteBuffer folded_;
};

TEST_F(UnfoldingPageTest, MoreThanItSaysIsDamage) {
    for (const std::uint32_t claimed :
         {0U, 1U, 4U, 30U, 1U << 20, kUnfolded - 1, kUnfolded + 1, UINT32_MAX}) {
        PageMaker rows;  // the rows themselves
        rows.folded(Column::kRow, format::Encoding::kDeltas, folded_, claimed);
        PageMaker moments;
        moments.integers(Column::kRow, {0});
        moments.folded(Column::kMin, format::Encoding::kPlanes, folded_, claimed);
        PageMaker values;
        values.integers(Column::kRow, {0});
        values.folded(Column::kValue, format::Encoding::kPlanes, folded_, claimed);
        PageMaker classes;
        classes.integers(Column::kRow, {0});
        classes.integers(Column::kLengths, {claimed});
        classes.folded(Column::kBytes, format::Encoding::kBytes, folded_, claimed);
        PageMaker histograms;
        histograms.integers(Column::kRow, {0});
        histograms.folded(Column::kBins, format::Encoding::kBytes, folded_, claimed);
        PageMaker places;
        places.integers(Column::kRow, {0});
        places.integers(Column::kLengths, {claimed});
        places.folded(Column::kBytes, format::Encoding::kBytes, folded_, claimed);
        put(testing::sample_tensors(),
            {rows.take(PageKind::kStatistics, 1, 1), moments.take(PageKind::kStatistics, 0, 1),
             values.take(PageKind::kScalars, 2, 1), classes.take(PageKind::kClasses, 3, 1),
             histograms.take(PageKind::kHistograms, 0, 1), places.take(PageKind::kRaw, 0, 1)});
        const std::vector<std::string> damage = read_all();
        // Each page once, and the index that was rebuilt.
        EXPECT_EQ(damage.size(), 7U) << claimed << ": " << (damage.empty() ? "" : damage.front());
    }
}

// In a child, whose peak is its own. 0: the step was read with no more memory than that.
int read_in(storage::FileSystem& files, std::uint64_t most_bytes) {
    rusage before{};
    ::getrusage(RUSAGE_SELF, &before);
    auto run = Run::open("/run", files);
    if (!run.is_ok()) return 2;
    std::uint64_t steps = 0;
    const auto count = [&](const model::StepView&) { return ++steps != 0; };
    if (!(*run)->for_each_step(count, true).is_ok() || steps != 1) return 3;
    rusage after{};
    ::getrusage(RUSAGE_SELF, &after);
    const auto used = static_cast<std::uint64_t>(after.ru_maxrss - before.ru_maxrss) << 10;
    return used <= most_bytes ? 0 : 1;
}

TEST_F(UnfoldingPageTest, ManyThatAreWhatTheySayAreNotInMemoryAtOnce) {
    model::TensorTable table(16);
    std::vector<ByteBuffer> pages;
    for (model::TensorId id = 0; id < table.size(); ++id) {
        table[id].id = id;
        table[id].name = "classes/" + std::to_string(id);
        table[id].role = model::Role::kClasses;
        PageMaker page;
        page.integers(Column::kRow, {0});
        page.integers(Column::kLengths, {kUnfolded});
        page.folded(Column::kBytes, format::Encoding::kBytes, folded_, kUnfolded);
        pages.push_back(page.take(PageKind::kClasses, id, 1));
    }
    put(table, pages);
#if defined(TRAINDBG_ADDRESS_SANITIZER) || defined(TRAINDBG_THREAD_SANITIZER)
    GTEST_SKIP() << "a sanitizer's own memory is in the figure";
#endif
    EXPECT_LT(files_.content(kSegment).size(), 1U << 20) << "a gigabyte in less than a megabyte";
    EXPECT_EXIT(::_exit(read_in(files_, std::uint64_t{512} << 20)), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace traindbg::read
