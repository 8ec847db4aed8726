#include "traindbg/seal/retention.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "seal/sealed_run.h"
#include "traindbg/base/format.h"
#include "traindbg/format/removals.h"
#include "traindbg/storage/fault_file_system.h"

namespace traindbg::seal {
namespace {

using base::Code;
using model::Retention;
using storage::MemoryFileSystem;
using storage::RunLayout;
using testing::footer_of;
using testing::log_header;

const RunLayout kLayout{"/run"};
constexpr std::uint64_t kStepsPerPart = 100;
constexpr std::size_t kBlobBytes = 10'000;

// Parts of 100 steps each, steps 0 to 100 * parts - 1 (every fifth is one of EVAL); a blob begins with each.
class RetentionTest : public ::testing::Test {
  protected:
    void SetUp() override {
        testing::make_run(files_);
        for (std::uint32_t part = 0; part < kParts; ++part) {
            format::SegmentBuilder builder(log_header(part), 99 + 2 * part);
            const auto add = [&](format::FrameType type, base::ByteSpan payload) {
                format::Frame frame;
                frame.type = type;
                frame.payload = payload;
                ASSERT_TRUE(builder.add(frame).is_ok());
            };
            base::ByteWriter event;
            format::encode_event(event, {1, "blob",
                                         base::format(R"({{"blob": {}, "mode": "train", "step": {}}})", part,
                                                      part * kStepsPerPart)});
            testing::for_each_record(
                part * kStepsPerPart, (part + 1) * kStepsPerPart, part + 1 == kParts,
                [](std::uint64_t) { return true; }, add);
            add(format::FrameType::kEvent, event.bytes());
            files_.set_content(kLayout.segment(0, part), std::move(builder.finish()).value());
            files_.set_content(kLayout.blob(0, part), base::ByteBuffer(kBlobBytes));
        }
    }
    RetentionReport apply(const Retention& retention, const RetentionLimits& limits = {}) {
        auto report = apply_retention(files_, kLayout, 0, retention, limits);
        EXPECT_TRUE(report.is_ok()) << report.status().to_string();
        EXPECT_TRUE(report->problems.empty()) << report->problems.at(0);
        std::uint64_t left = 0;
        for (const std::string& path : files_.paths())
            if (!path.ends_with(".json")) left += files_.content(path).size();
        if (!limits.is_dry_run) {
            EXPECT_EQ(report->bytes_left, left);
        }
        return std::move(report).value();
    }
    [[nodiscard]] std::vector<bool> blobs_left() const {
        std::vector<bool> left;
        for (std::uint32_t part = 0; part < kParts; ++part)
            left.push_back(!files_.content(kLayout.blob(0, part)).empty());
        return left;
    }
    [[nodiscard]] std::vector<std::uint64_t> steps_left() const {
        std::vector<std::uint64_t> left;
        for (std::uint32_t part = 0; part < kParts; ++part) {
            const auto footer = footer_of(files_.content(kLayout.segment(0, part)));
            left.push_back(footer ? footer->steps : 0);
        }
        return left;
    }

    static constexpr std::uint32_t kParts = 5;
    MemoryFileSystem files_;
};

using Bools = std::vector<bool>;
using Counts = std::vector<std::uint64_t>;

TEST_F(RetentionTest, KeepAllRemovesNothing) {
    EXPECT_TRUE(apply({.quota_bytes = 1}).removals.empty())
        << "a quota alone stops the recording, it does not remove";
    EXPECT_TRUE(apply({.quota_bytes = 0}).removals.empty());
    EXPECT_EQ(steps_left(), (Counts{100, 100, 100, 100, 100}));
}

TEST_F(RetentionTest, WholeTensorsOfOldStepsGo) {
    // The newest TRAIN step is 498; of the last 250 the first is 249, so blobs 0 and 1 hold nothing of them.
    const RetentionReport report = apply({.keep_tensors = 250});
    EXPECT_EQ(blobs_left(), (Bools{false, false, true, true, true}));
    EXPECT_EQ(report.bytes_freed, 2 * kBlobBytes);
    EXPECT_EQ(report.removals.size(), 2U);
    EXPECT_EQ(steps_left(), (Counts{100, 100, 100, 100, 100})) << "their statistics stay";
    EXPECT_TRUE(files_.exists("/run/w0000/removed.json"));
    EXPECT_TRUE(apply({.keep_tensors = 250}).removals.empty()) << "a second time there is nothing left to do";
}

TEST_F(RetentionTest, WhatWasRemovedIsAddedUpInTheRun) {
    const auto stored = [this] {
        const base::ByteBuffer bytes = files_.content(kLayout.removed_json(0));
        return *format::removals_from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    };
    const RetentionReport first = apply({.keep_tensors = 250});
    EXPECT_EQ(stored(), (format::Removals{first.bytes_freed, 0, first.removals.back().why}));
    const RetentionReport second = apply({.keep_last = 250, .thin = 10});
    ASSERT_GT(second.steps_removed, 0U);
    const format::Removals both = {first.bytes_freed + second.bytes_freed, second.steps_removed,
                                   second.removals.back().why};
    EXPECT_EQ(stored(), both);
    // Spoilt, it costs the numbers and nothing else.
    files_.set_content(kLayout.removed_json(0), base::ByteBuffer(3));
    EXPECT_TRUE(apply({.keep_tensors = 50}).problems.empty());
    EXPECT_EQ(stored().steps, 0U) << "counted from here on";
}

TEST_F(RetentionTest, ABlobWhoseEndIsNotKnownStays) {
    const RetentionReport report = apply({.keep_tensors = 1});
    EXPECT_EQ(blobs_left(), (Bools{false, false, false, false, true}))
        << "the newest may hold the newest step";
    EXPECT_EQ(report.removals.size(), 4U);
}

TEST_F(RetentionTest, OldStepsAreThinned) {
    // The last 250 TRAIN steps begin with 249: parts 0 and 1 are old as a whole. Of theirs every tenth stays,
    // and all of EVAL.
    const RetentionReport report = apply({.keep_last = 250, .thin = 10});
    EXPECT_EQ(steps_left(), (Counts{30, 30, 100, 100, 100}));
    EXPECT_EQ(report.steps_removed, 140U);
    EXPECT_GT(report.bytes_freed, 0U);
    const auto footer = footer_of(files_.content(kLayout.segment(0, 1)));
    EXPECT_EQ(footer->modes[0].steps, 10U);
    EXPECT_EQ(footer->modes[0].least, 100U);
    EXPECT_EQ(footer->modes[0].most, 190U);
    EXPECT_EQ(footer->modes[1].steps, 20U);
    const auto before = files_.content(kLayout.segment(0, 0));
    EXPECT_TRUE(apply({.keep_last = 250, .thin = 10}).removals.empty());
    EXPECT_TRUE(files_.content(kLayout.segment(0, 0)) == before) << "nothing is written anew for nothing";
}

TEST_F(RetentionTest, WhoAsksForItGetsThePartThinnedThatHasYoungStepsToo) {
    // Part 2 begins with 200, and 249 is the first young step: of the 40 TRAIN steps before, 200, 210, ...
    // 240 stay.
    const RetentionReport report = apply({.keep_last = 250, .thin = 10}, {.splits_parts = true});
    EXPECT_EQ(steps_left(), (Counts{30, 30, 65, 100, 100}));
    EXPECT_EQ(report.steps_removed, 175U);
    EXPECT_TRUE(apply({.keep_last = 250, .thin = 10}, {.splits_parts = true}).removals.empty());
}

TEST_F(RetentionTest, WithoutThinningNoOldTrainStepStays) {
    apply({.keep_last = 1});
    EXPECT_EQ(steps_left(), (Counts{20, 20, 20, 20, 100}))
        << "EVAL steps stay; the last part is not old as a whole";
}

TEST_F(RetentionTest, ADryRunTellsAndTouchesNothing) {
    const std::vector<std::string> before = files_.paths();
    const RetentionReport report =
        apply({.keep_last = 250, .thin = 10, .keep_tensors = 250}, {.is_dry_run = true});
    EXPECT_EQ(report.removals.size(), 4U);
    EXPECT_EQ(report.steps_removed, 140U);
    EXPECT_EQ(files_.paths(), before);
    EXPECT_EQ(steps_left(), (Counts{100, 100, 100, 100, 100}));
    const std::uint64_t freed = report.bytes_freed;
    EXPECT_EQ(apply({.keep_last = 250, .thin = 10, .keep_tensors = 250}).bytes_freed, freed);
}

TEST_F(RetentionTest, TheQuotaTakesTheOldestFilesFirst) {
    std::uint64_t all = 0;
    for (std::uint32_t part = 0; part < kParts; ++part)
        all += files_.content(kLayout.segment(0, part)).size() + kBlobBytes;
    RetentionReport report = apply({.quota_bytes = all - 1}, {.quota_removes = true});
    EXPECT_EQ(blobs_left(), (Bools{false, true, true, true, true}));
    report = apply({.quota_bytes = all - 5 * kBlobBytes - 1}, {.quota_removes = true});
    EXPECT_EQ(blobs_left(), (Bools{false, false, false, false, false}));
    EXPECT_EQ(steps_left(), (Counts{0, 100, 100, 100, 100}));
    report = apply({.quota_bytes = 1}, {.quota_removes = true});
    EXPECT_EQ(steps_left(), (Counts{0, 0, 0, 0, 100})) << "the newest part stays";
    EXPECT_GT(report.bytes_left, 1U);
}

TEST_F(RetentionTest, WhatIsBeingWrittenIsNotTouched) {
    apply({.quota_bytes = 1, .keep_last = 1, .keep_tensors = 1},
          {.first_live_part = 2, .first_live_blob = 1});
    EXPECT_EQ(blobs_left(), (Bools{false, true, true, true, true}));
    const Counts steps = steps_left();
    EXPECT_EQ(Counts(steps.begin() + 2, steps.end()), (Counts{100, 100, 100}));
}

TEST_F(RetentionTest, ADamagedPartStaysAndIsNamed) {
    base::ByteBuffer bytes = files_.content(kLayout.segment(0, 0));
    bytes[bytes.size() / 2] ^= std::byte{1};
    files_.set_content(kLayout.segment(0, 0), bytes);
    const auto report = apply_retention(files_, kLayout, 0, {.keep_last = 1}, {});
    ASSERT_TRUE(report.is_ok());
    ASSERT_EQ(report->problems.size(), 1U);
    EXPECT_NE(report->problems[0].find("000000.seg"), std::string::npos) << report->problems[0];
    EXPECT_TRUE(files_.content(kLayout.segment(0, 0)) == bytes);
}

TEST_F(RetentionTest, TheRunSaysSoBeforeTheFirstFileGoes) {
    int removed = 0;
    storage::FaultPlan plan;
    plan.before = [&](storage::FileCall call, const std::string&) {
        if (call != storage::FileCall::kRemove) return;
        ++removed;
        EXPECT_TRUE(files_.exists(kLayout.removed_json(0)));
    };
    storage::FaultFileSystem watched(files_, plan);
    const auto report = apply_retention(watched, kLayout, 0, {.keep_tensors = 50}, {});
    ASSERT_TRUE(report.is_ok());
    EXPECT_GT(removed, 0);
}

TEST_F(RetentionTest, AFullDiskIsMadeRoomOnAllTheSame) {
    storage::FaultPlan plan;
    bool is_full = true;
    plan.fails = [&](storage::FileCall call, const std::string&) {
        is_full = is_full && call != storage::FileCall::kRemove;
        return call == storage::FileCall::kPutAtomic && is_full;
    };
    storage::FaultFileSystem full(files_, plan);
    const auto report = apply_retention(full, kLayout, 0, {.keep_tensors = 50}, {});
    ASSERT_TRUE(report.is_ok());
    EXPECT_FALSE(report->removals.empty());
    EXPECT_TRUE(report->problems.empty());
    EXPECT_TRUE(files_.exists(kLayout.removed_json(0)));
}

TEST_F(RetentionTest, AnErrorAtAnyCallRemovesNothingElse) {
    for (std::uint64_t call = 0; call < 60; ++call) {
        storage::FaultPlan plan;
        plan.fail_at_call = call;
        plan.keep_failing = false;
        storage::FaultFileSystem faulty(files_, plan);
        static_cast<void>(
            apply_retention(faulty, kLayout, 0, {.keep_last = 250, .thin = 10, .keep_tensors = 250}, {}));
        const Bools blobs = blobs_left();
        EXPECT_TRUE(blobs[2] && blobs[3] && blobs[4]) << call;
        const Counts steps = steps_left();
        for (const std::size_t part : {std::size_t{0}, std::size_t{1}})
            EXPECT_TRUE(steps[part] == 100 || steps[part] == 30) << call;
        EXPECT_EQ(Counts(steps.begin() + 2, steps.end()), (Counts{100, 100, 100}));
    }
}

TEST_F(RetentionTest, ARunIsCollectedUnlessItsProcessLives) {
    auto writing = files_.try_lock(kLayout.lock(0), storage::LockFile::kIsMade);
    ASSERT_TRUE(writing.is_ok());
    auto report = collect_run(files_, "/run", {.keep_last = 250, .thin = 10}, false);
    ASSERT_TRUE(report.is_ok());
    EXPECT_EQ(report->workers_alive, std::vector<model::WorkerId>{0});
    EXPECT_EQ(steps_left(), (Counts{100, 100, 100, 100, 100}));
    writing->reset();
    report = collect_run(files_, "/run", {.keep_last = 250, .thin = 10}, false);
    ASSERT_TRUE(report.is_ok());
    EXPECT_TRUE(report->workers_alive.empty());
    EXPECT_EQ(report->steps_removed, 175U);
    EXPECT_EQ(collect_run(files_, "/else", {}, false).status().code(), Code::kNotFound);
}

TEST_F(RetentionTest, ADryRunNeedsNoLockAndMakesNoFile) {
    const std::vector<std::string> before = files_.paths();
    const auto report = collect_run(files_, "/run", {.keep_last = 250, .thin = 10}, true);
    ASSERT_TRUE(report.is_ok());
    EXPECT_EQ(report->steps_removed, 175U);
    EXPECT_EQ(files_.paths(), before);
}

}  // namespace
}  // namespace traindbg::seal
