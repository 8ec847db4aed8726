// Pages of a few KB that unfold to many MB, with right checksums: what a hostile program could write.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "format/page_maker.h"
#include "format/sample_records.h"
#include "traindbg/format/column.h"
#include "traindbg/format/compression.h"
#include "traindbg/format/records.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/memory_file_system.h"

namespace traindbg::read {
namespace {

using base::ByteBuffer;
using format::Column;
using format::PageKind;
using storage::MemoryFileSystem;
using testing::PageMaker;

constexpr std::uint32_t kUnfolded = std::uint32_t{64} << 20;  // the most that a reader unfolds at once
constexpr std::uint64_t kStep = 7;
constexpr const char* kSegmentFile = "/run/w0000/000000.seg";

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
        files_.set_content(kSegmentFile, testing::made_segment(table, kStep, pages));
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
                                EXPECT_EQ(view.step(), kStep);
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
        PageMaker channels;
        channels.integers(Column::kRow, {0});
        channels.integers(Column::kLengths, {claimed});
        channels.folded(Column::kBytes, format::Encoding::kBytes, folded_, claimed);
        PageMaker digests;
        digests.integers(Column::kRow, {0});
        digests.integers(Column::kLengths, {claimed});
        digests.folded(Column::kBytes, format::Encoding::kBytes, folded_, claimed);
        put(testing::sample_tensors(),
            {rows.take(PageKind::kStatistics, 1, 1), moments.take(PageKind::kStatistics, 0, 1),
             values.take(PageKind::kScalars, 2, 1), classes.take(PageKind::kClasses, 3, 1),
             histograms.take(PageKind::kHistograms, 0, 1), places.take(PageKind::kRaw, 0, 1),
             channels.take(PageKind::kChannels, 0, 1), digests.take(PageKind::kDigests, 0, 1)});
        const std::vector<std::string> damage = read_all();
        // Each page once, and the index that was rebuilt.
        EXPECT_EQ(damage.size(), 9U) << claimed << ": " << (damage.empty() ? "" : damage.front());
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
    EXPECT_LT(files_.content(kSegmentFile).size(), 1U << 20) << "a gigabyte in less than a megabyte";
    EXPECT_EXIT(::_exit(read_in(files_, std::uint64_t{512} << 20)), ::testing::ExitedWithCode(0), "");
}

TEST_F(UnfoldingPageTest, ChannelsBeyondTheMostOfAStepAreDamage) {
    constexpr std::uint32_t kTensors = 20;
    constexpr std::uint32_t kFit = format::kMostStepChannels / model::kMostChannels;
    static_assert(kFit < kTensors);
    const testing::HostileChannels hostile(kTensors);
    put(hostile.table, hostile.pages);
    EXPECT_LT(files_.content(kSegmentFile).size(), 8U << 10) << "16 MB in less than 8 KB";
    auto run = Run::open("/run", files_);
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    const auto record = (*run)->step(0, model::Mode::kTrain, kStep);
    ASSERT_TRUE(record.is_ok() && record->has_value()) << record.status().to_string();
    EXPECT_EQ((*record)->channels.size(), kFit);
    const std::vector<Damage>& damage = (*run)->damage();
    EXPECT_EQ(std::count_if(damage.begin(), damage.end(),
                            [](const Damage& place) {
                                return place.what.find("a record of channels") != std::string::npos;
                            }),
              kTensors - kFit);
}

}  // namespace
}  // namespace traindbg::read
