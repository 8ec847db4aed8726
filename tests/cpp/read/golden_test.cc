// Runs of every format version that was ever released are read to the same values for ever.
#include <gtest/gtest.h>

#include <vector>

#include "format/sample_records.h"
#include "traindbg/read/run.h"

namespace traindbg::read {
namespace {

TEST(GoldenTest, NativeVersion1) {
    auto run = Run::open(TRAINDBG_SOURCE_DIR "/tests/data/golden/native_v1");
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    EXPECT_TRUE((*run)->damage().empty());
    EXPECT_TRUE((*run)->is_complete());
    EXPECT_EQ((*run)->meta().uuid, "00112233-4455-6677-8899-aabbccddeeff");
    EXPECT_EQ((*run)->tensors(0), testing::sample_tensors());
    EXPECT_EQ((*run)->worker_meta(0), testing::sample_meta());
    ASSERT_EQ((*run)->events().size(), 3U);  // of steps 0 and 4 in the segment, of step 8 in the log
    EXPECT_EQ((*run)->events()[0].kind, "sample");
    EXPECT_EQ((*run)->events()[0].json, R"({"step":0})");
    EXPECT_EQ((*run)->events()[2].json, R"({"step":8})");
    EXPECT_EQ((*run)->totals().steps_dropped, 1U);
    EXPECT_EQ((*run)->totals().raw_tensors_dropped, 2U);
    std::uint64_t step = 0;
    ASSERT_TRUE((*run)
                    ->for_each_step(
                        [&](const model::StepView& view) {
                            EXPECT_EQ(*view.record, testing::golden_step(step)) << step;
                            ++step;
                            return true;
                        },
                        true)
                    .is_ok());
    EXPECT_EQ(step, testing::kGoldenSteps);
    ASSERT_TRUE((*run)->verify().is_ok());
    EXPECT_TRUE((*run)->damage().empty());
}

}  // namespace
}  // namespace traindbg::read
