#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::write {
namespace {

using model::StepIndex;
using model::StepRecord;
using storage::MemoryFileSystem;
using testing::sample_step;
using namespace std::chrono_literals;

constexpr auto kLong = 240s;  // longer than any test may take
constexpr std::uint64_t kRingSteps = 10;

class RingTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(files_.create_directories("/run").is_ok());
        ASSERT_TRUE(files_.put_atomic("/run/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
    }

    std::unique_ptr<RunWriter> open(model::Retention retention = {}) {
        auto writer = RunWriter::open(files_, {.run_directory = "/run",
                                               .sync_interval = 0ms,
                                               .reserve_bytes = 0,
                                               .retention = retention,
                                               .ring_steps = kRingSteps});
        EXPECT_TRUE(writer.is_ok()) << writer.status().to_string();
        for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
        return std::move(writer).value();
    }

    // One at a time, so that each is in the file before the next one comes.
    static void append(RunWriter& writer, StepIndex first, StepIndex end) {
        for (StepIndex step = first; step < end; ++step) {
            writer.append(sample_step(step, true));
            ASSERT_TRUE(writer.flush(kLong));
        }
    }

    // The steps that are there; each is whole, and nothing counts as lost.
    std::vector<StepIndex> steps() {
        std::vector<StepIndex> found;
        auto run = read::Run::open("/run", files_);
        EXPECT_TRUE(run.is_ok()) << run.status().to_string();
        if (!run.is_ok()) return found;
        const base::Status status = (*run)->for_each_step(
            [&](const model::StepView& view) {
                EXPECT_EQ(*view.record, sample_step(view.record->step, true)) << view.record->step;
                found.push_back(view.record->step);
                return true;
            },
            true);
        EXPECT_TRUE(status.is_ok()) << status.to_string();
        for (const read::Damage& damage : (*run)->damage())
            ADD_FAILURE() << damage.file << ": " << damage.what;
        return found;
    }

    std::size_t count_files() {
        const auto entries = files_.list("/run/w0000");
        return entries.is_ok() ? entries->size() : 0;
    }

    MemoryFileSystem files_;
};

std::vector<StepIndex> range(StepIndex first, StepIndex end) {
    std::vector<StepIndex> out;
    for (StepIndex step = first; step < end; ++step) out.push_back(step);
    return out;
}

TEST_F(RingTest, HoldsTheLastStepsAndNoMoreThanTwiceAsMany) {
    auto writer = open();
    append(*writer, 0, 5);
    EXPECT_EQ(steps(), range(0, 5));
    append(*writer, 5, 95);
    EXPECT_EQ(steps(), range(80, 95));
    const std::size_t files = count_files();
    append(*writer, 95, 100);
    append(*writer, 100, 995);
    EXPECT_EQ(steps(), range(980, 995));
    EXPECT_EQ(count_files(), files) << "older ones are removed, whole tensors, too";
}

TEST_F(RingTest, WhatIsKeptStaysWhileTheRingGoesOn) {
    auto writer = open();
    append(*writer, 0, 33);
    writer->keep_ring();
    ASSERT_TRUE(writer->flush(kLong));
    append(*writer, 33, 100);
    std::vector<StepIndex> expected = range(20, 33);
    for (const StepIndex step : range(83, 100)) expected.push_back(step);
    EXPECT_EQ(steps(), expected);
    writer->keep_ring();
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(steps(), expected);
    EXPECT_TRUE((*read::Run::open("/run", files_))->is_complete());
}

TEST_F(RingTest, KeptTwiceAtTheSamePlaceIsKeptOnce) {
    auto writer = open();
    append(*writer, 0, 20);
    for (int i = 0; i < 3; ++i) {
        writer->keep_ring();
        ASSERT_TRUE(writer->flush(kLong));
    }
    append(*writer, 20, 60);
    const std::vector<StepIndex> found = steps();
    EXPECT_EQ(std::vector<StepIndex>(found.begin(), found.begin() + 10), range(10, 20));
    EXPECT_EQ(found.back(), 59U);
    EXPECT_LE(found.size(), 10 + 2 * kRingSteps);
}

TEST_F(RingTest, ACleanEndLeavesNothingBehind) {
    auto writer = open();
    append(*writer, 0, 42);
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_FALSE(files_.exists("/run/w0000"));
}

TEST_F(RingTest, AnEndLeavesWhatWasAskedForAtTheVeryLast) {
    auto writer = open();
    append(*writer, 0, 42);
    writer->keep_ring();
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(steps(), range(30, 42));
}

TEST_F(RingTest, WhereTheQuotaIsTooSmallForItTheLatestStepsAreThereWithTheirTensors) {
    auto writer = open({.quota_bytes = 8U << 10});  // a part of ten steps takes more than half of it
    for (StepIndex step = 0; step < 300; ++step) {
        append(*writer, step, step + 1);
        EXPECT_FALSE(writer->counts().is_paused) << step;
    }
    EXPECT_EQ(writer->counts().raw_tensors_dropped, 0U);
    const std::vector<StepIndex> found = steps();
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found, range(300 - found.size(), 300));
    EXPECT_LT(found.size(), kRingSteps);
}

TEST_F(RingTest, KeepsNoMoreThanTheQuotaAgain) {
    auto writer = open({.quota_bytes = 64U << 10});
    for (StepIndex step = 0; step < 300; step += 10) {
        append(*writer, step, step + 10);
        writer->keep_ring();
        ASSERT_TRUE(writer->flush(kLong));
    }
    const std::vector<StepIndex> found = steps();
    EXPECT_EQ(found.front(), 0U);
    EXPECT_LT(found.size(), 250U);
    EXPECT_EQ(found.back(), 299U) << "the ring itself goes on";
}

TEST_F(RingTest, WhatIsQueuedWhenItIsAskedForIsKept) {
    auto writer = open();
    for (StepIndex step = 0; step < 200; ++step) writer->append(sample_step(step, true));
    writer->keep_ring();
    for (StepIndex step = 200; step < 400; ++step) writer->append(sample_step(step, true));
    ASSERT_TRUE(writer->flush(kLong));
    append(*writer, 400, 440);
    const std::vector<StepIndex> found = steps();
    for (const StepIndex step : range(190, 200))
        EXPECT_NE(std::find(found.begin(), found.end(), step), found.end()) << step;
}

TEST_F(RingTest, TheQuotaCountsWhatIsThere) {
    auto writer = open({.quota_bytes = 256U << 10});
    append(*writer, 0, 2000);
    const WriterCounts counts = writer->counts();
    EXPECT_GT(counts.bytes_written, 256U << 10);
    EXPECT_EQ(counts.steps_written, 2000U);
    EXPECT_EQ(counts.raw_tensors_dropped, 0U);
    EXPECT_EQ(steps(), range(1990, 2000));
}

}  // namespace
}  // namespace traindbg::write
