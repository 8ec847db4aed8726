#include "traindbg/seal/sealer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <string>

#include "format/newer_segment.h"
#include "format/page_maker.h"
#include "seal/sealed_run.h"
#include "storage/temporary_directory.h"
#include "traindbg/seal/thin.h"
#include "traindbg/storage/fault_file_system.h"

namespace traindbg::seal {
namespace {

using base::Code;
using storage::FaultFileSystem;
using storage::FaultPlan;
using storage::FileCall;
using storage::MemoryFileSystem;
using storage::RunLayout;
using testing::footer_of;
using testing::log_header;
using testing::make_log;
using testing::make_run;

const RunLayout kSealedLayout{"/run"};

TEST(SealPart, TheSealedPartReplacesTheLog) {
    MemoryFileSystem files;
    make_run(files);
    const base::ByteBuffer log = make_log(log_header(3), 0, 100);
    files.set_content(kSealedLayout.log(0, 3), log);
    const auto sealed = seal_part(files, kSealedLayout, 0, 3);
    ASSERT_TRUE(sealed.is_ok()) << sealed.status().to_string();
    EXPECT_EQ(sealed->steps, 100U);
    EXPECT_EQ(sealed->log_bytes, log.size());
    EXPECT_EQ(sealed->tail_bytes, 0U);
    EXPECT_FALSE(files.exists(kSealedLayout.log(0, 3)));
    const base::ByteBuffer segment = files.content(kSealedLayout.segment(0, 3));
    EXPECT_EQ(sealed->segment_bytes, segment.size());
    const auto footer = footer_of(segment);
    ASSERT_TRUE(footer.has_value());
    EXPECT_EQ(footer->steps, 100U);
    EXPECT_TRUE(footer->has_ended);
    EXPECT_EQ(footer->steps_dropped, 7U);
    // Byte for byte what the builder makes of the same records.
    const std::uint64_t salt = format::find_file_header(segment)->salt;
    EXPECT_TRUE(segment ==
                testing::make_segment(log_header(3), salt, 0, 100, true, [](std::uint64_t) { return true; }));
}

TEST(SealPart, ALogThatWasCutOffAnywhereIsSealedAsFarAsItIsWhole) {
    const base::ByteBuffer log = make_log(log_header(0), 0, 6);
    for (std::size_t size = 0; size < log.size(); ++size) {
        MemoryFileSystem files;
        make_run(files);
        files.set_content(kSealedLayout.log(0, 0),
                          base::ByteBuffer(log.begin(), log.begin() + static_cast<long>(size)));
        const auto sealed = seal_part(files, kSealedLayout, 0, 0);
        if (!sealed) {
            EXPECT_EQ(sealed.status().code(), Code::kDataLoss) << size;
            EXPECT_LT(size, 128U) << "only a log without a header is refused";
            EXPECT_TRUE(files.exists(kSealedLayout.log(0, 0)));
            continue;
        }
        const auto footer = footer_of(files.content(kSealedLayout.segment(0, 0)));
        ASSERT_TRUE(footer.has_value()) << size;
        EXPECT_EQ(footer->steps, sealed->steps);
        EXPECT_LE(sealed->tail_bytes, size);
        EXPECT_FALSE(footer->has_ended);
    }
}

TEST(SealPart, ADamagedLogStaysAsItIs) {
    const base::ByteBuffer whole = make_log(log_header(0), 0, 20);
    for (std::size_t at = 200; at < whole.size() - 100; at += 97) {
        MemoryFileSystem files;
        make_run(files);
        base::ByteBuffer log = whole;
        log[at] ^= std::byte{4};
        files.set_content(kSealedLayout.log(0, 0), log);
        const auto sealed = seal_part(files, kSealedLayout, 0, 0);
        ASSERT_FALSE(sealed.is_ok()) << at;
        EXPECT_EQ(sealed.status().code(), Code::kDataLoss) << at;
        EXPECT_TRUE(files.content(kSealedLayout.log(0, 0)) == log);
        EXPECT_FALSE(files.exists(kSealedLayout.segment(0, 0)));
    }
}

TEST(SealPart, AFileOfAnotherPlaceOrANewerFormatIsRefused) {
    MemoryFileSystem files;
    make_run(files);
    files.set_content(kSealedLayout.log(0, 1), make_log(log_header(2), 0, 3));
    EXPECT_EQ(seal_part(files, kSealedLayout, 0, 1).status().code(), Code::kDataLoss);
    format::FileHeader newer = log_header(2);
    newer.major = format::kFormatMajor + 1;
    files.set_content(kSealedLayout.log(0, 2), make_log(newer, 0, 3));
    EXPECT_EQ(seal_part(files, kSealedLayout, 0, 2).status().code(), Code::kUnsupported);
    EXPECT_EQ(seal_part(files, kSealedLayout, 0, 9).status().code(), Code::kNotFound);
    files.set_content(kSealedLayout.log(0, 3), {});
    EXPECT_EQ(seal_part(files, kSealedLayout, 0, 3).status().code(), Code::kDataLoss);
}

TEST(SealPart, AnErrorAtAnyCallLosesNothing) {
    const base::ByteBuffer log = make_log(log_header(0), 0, 50);
    for (std::uint64_t call = 0;; ++call) {
        MemoryFileSystem memory;
        make_run(memory);
        memory.set_content(kSealedLayout.log(0, 0), log);
        FaultPlan plan;
        plan.fail_at_call = call;
        FaultFileSystem files(memory, plan);
        const auto sealed = seal_part(files, kSealedLayout, 0, 0);
        const auto footer = footer_of(memory.content(kSealedLayout.segment(0, 0)));
        const bool log_is_there = memory.content(kSealedLayout.log(0, 0)) == log;
        EXPECT_TRUE(log_is_there || (footer && footer->steps == 50)) << call;
        if (sealed) {
            EXPECT_FALSE(log_is_there);
            ASSERT_GT(call, 3U);
            break;
        }
    }
}

TEST(SealPart, APowerLossAtAnyCallLosesNothing) {
    const base::ByteBuffer log = make_log(log_header(0), 0, 50);
    MemoryFileSystem memory;
    make_run(memory);
    memory.set_content(kSealedLayout.log(0, 0), log);
    int looked = 0;
    const auto check = [&] {
        for (const auto names : {storage::UnsyncedNames::kKept, storage::UnsyncedNames::kLost}) {
            const auto left = memory.after_power_loss({storage::UnsyncedBytes::kRandomPages, names, 1});
            const auto footer = footer_of(left->content(kSealedLayout.segment(0, 0)));
            EXPECT_TRUE(left->content(kSealedLayout.log(0, 0)) == log || (footer && footer->steps == 50));
            ++looked;
        }
    };
    FaultPlan plan;
    plan.before = [&](FileCall, const std::string&) { check(); };
    FaultFileSystem files(memory, plan);
    ASSERT_TRUE(seal_part(files, kSealedLayout, 0, 0).is_ok());
    check();
    EXPECT_GT(looked, 8);
}

TEST(CompactRun, SealsWhatIsLeftAndCleansUp) {
    MemoryFileSystem files;
    make_run(files);
    files.set_content(kSealedLayout.log(0, 0), make_log(log_header(0), 0, 10));
    files.set_content(kSealedLayout.log(0, 1), make_log(log_header(1), 10, 20, false));
    // A crash between the sealed part and the removal of its log.
    files.set_content(kSealedLayout.segment(0, 1), testing::make_segment(log_header(1), 5, 10, 20, false,
                                                                         [](std::uint64_t) { return true; }));
    files.set_content("/run/w0000/.000002.seg.17.0.tmp", base::ByteBuffer(10));
    files.set_content("/run/w0000/reserve", {});
    files.set_content("/run/w0000/notes.txt", base::ByteBuffer(1));
    std::vector<std::uint64_t> done;
    const auto report = compact_run(files, "/run", [&](std::uint64_t part, std::uint64_t all) {
        EXPECT_EQ(all, 2U);
        done.push_back(part);
        return true;
    });
    ASSERT_TRUE(report.is_ok());
    EXPECT_EQ(report->parts_sealed, 1U);
    EXPECT_EQ(report->steps, 10U);
    EXPECT_EQ(report->logs_removed, 1U);
    EXPECT_EQ(report->leftovers_removed, 2U);
    EXPECT_TRUE(report->problems.empty());
    EXPECT_EQ(done, (std::vector<std::uint64_t>{1, 2}));
    const std::vector<std::string> expected = {"/run/RUN.json", "/run/w0000/000000.seg",
                                               "/run/w0000/000001.seg", "/run/w0000/lock",
                                               "/run/w0000/notes.txt"};
    EXPECT_EQ(files.paths(), expected) << "nothing else was touched";
}

TEST(CompactRun, ADamagedSealedPartIsMadeAnewFromItsLog) {
    MemoryFileSystem files;
    make_run(files);
    files.set_content(kSealedLayout.log(0, 0), make_log(log_header(0), 0, 10));
    files.set_content(kSealedLayout.segment(0, 0), base::ByteBuffer(1000));
    const auto report = compact_run(files, "/run");
    ASSERT_TRUE(report.is_ok());
    EXPECT_EQ(report->parts_sealed, 1U);
    EXPECT_EQ(footer_of(files.content(kSealedLayout.segment(0, 0)))->steps, 10U);
}

TEST(CompactRun, APartThatWasOnlyJustBegunGoes) {
    const base::ByteBuffer log = make_log(log_header(1), 0, 1);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{127}}) {
        MemoryFileSystem files;
        make_run(files);
        files.set_content(kSealedLayout.log(0, 0), make_log(log_header(0), 0, 10));
        files.set_content(kSealedLayout.log(0, 1),
                          base::ByteBuffer(log.begin(), log.begin() + static_cast<long>(size)));
        const auto report = compact_run(files, "/run");
        ASSERT_TRUE(report.is_ok());
        EXPECT_TRUE(report->problems.empty()) << size << ": " << report->problems.at(0);
        EXPECT_FALSE(files.exists(kSealedLayout.log(0, 1))) << size;
        EXPECT_EQ(footer_of(files.content(kSealedLayout.segment(0, 0)))->steps, 10U);
    }
}

TEST(CompactRun, AWorkerWhoseProcessLivesIsLeftAlone) {
    MemoryFileSystem files;
    make_run(files);
    files.set_content(kSealedLayout.log(0, 0), make_log(log_header(0), 0, 10));
    files.set_content("/run/w0000/reserve", {});
    auto writing = files.try_lock(kSealedLayout.lock(0), storage::LockFile::kIsMade);
    ASSERT_TRUE(writing.is_ok());
    const std::vector<std::string> before = files.paths();
    auto report = compact_run(files, "/run");
    ASSERT_TRUE(report.is_ok());
    EXPECT_EQ(report->workers_alive, std::vector<model::WorkerId>{0});
    EXPECT_EQ(files.paths(), before);
    writing->reset();
    report = compact_run(files, "/run");
    EXPECT_EQ(report->parts_sealed, 1U);
}

TEST(CompactRun, ADirectoryThatAWriterHasJustMadeIsLeftToIt) {
    MemoryFileSystem files;
    make_run(files);
    EXPECT_TRUE(compact_run(files, "/run")->problems.empty());
    EXPECT_FALSE(files.exists(kSealedLayout.lock(0))) << "the writer would find it taken";
    // The next moment: the lock's file is there, and not locked yet.
    files.set_content(kSealedLayout.lock(0), {});
    EXPECT_EQ(lock_worker(files, kSealedLayout, 0).status().code(), base::Code::kNotFound);
}

TEST(CompactRun, WithoutTheLockNothingIsTouched) {
    MemoryFileSystem memory;
    make_run(memory);
    memory.set_content(kSealedLayout.log(0, 0), make_log(log_header(0), 0, 10));
    FaultPlan plan;
    plan.fails = [](storage::FileCall call, const std::string&) { return call == storage::FileCall::kLock; };
    FaultFileSystem files(memory, plan);
    const auto report = compact_run(files, "/run");
    ASSERT_TRUE(report.is_ok());
    EXPECT_EQ(report->problems.size(), 1U);
    EXPECT_TRUE(memory.exists(kSealedLayout.log(0, 0)));
    EXPECT_EQ(report->parts_sealed, 0U);
}

TEST(CompactRun, ADirectoryThatIsNoRunIsRefused) {
    MemoryFileSystem files;
    ASSERT_TRUE(files.create_directories("/else/w0000").is_ok());
    files.set_content("/else/w0000/000000.log", make_log(log_header(0), 0, 3));
    EXPECT_EQ(compact_run(files, "/else").status().code(), Code::kNotFound);
    EXPECT_TRUE(files.exists("/else/w0000/000000.log"));
}

TEST(ThinSegment, WhatStaysIsAsIfTheRestHadNeverBeen) {
    const auto all = [](std::uint64_t) { return true; };
    const auto even = [](std::uint64_t step) { return step % 2 == 0; };
    for (const bool has_end : {true, false}) {
        const base::ByteBuffer whole = testing::make_segment(log_header(4), 1001, 0, 5000, has_end, all);
        std::uint64_t removed = 0;
        const auto thinned = thin_segment(
            whole, [&](model::Mode, model::StepIndex step) { return even(step); }, &removed);
        ASSERT_TRUE(thinned.is_ok()) << thinned.status().to_string();
        EXPECT_EQ(removed, 2500U);
        const std::uint64_t salt = format::find_file_header(*thinned)->salt;
        EXPECT_TRUE(*thinned == testing::make_segment(log_header(4), salt, 0, 5000, has_end, even));
    }
}

TEST(ThinSegment, NothingMayStay) {
    const base::ByteBuffer whole =
        testing::make_segment(log_header(4), 1001, 0, 50, true, [](std::uint64_t) { return true; });
    const auto thinned = thin_segment(
        whole, [](model::Mode, model::StepIndex) { return false; }, nullptr);
    ASSERT_TRUE(thinned.is_ok());
    const auto footer = footer_of(*thinned);
    ASSERT_TRUE(footer.has_value());
    EXPECT_EQ(footer->steps, 0U);
    EXPECT_EQ(footer->tensors, 4U) << "descriptions and totals stay";
    EXPECT_EQ(footer->steps_dropped, 7U);
}

TEST(ThinSegment, WhatANewerVersionWroteIsNotTakenAway) {
    const auto all = [](std::uint64_t) { return true; };
    const base::ByteBuffer whole = testing::make_segment(log_header(4), 1001, 0, 30, true, all);
    const auto code_of = [](const base::ByteBuffer& segment) {
        return thin_segment(
                   segment, [](model::Mode, model::StepIndex step) { return step % 2 == 0; }, nullptr)
            .status()
            .code();
    };
    ASSERT_EQ(code_of(whole), base::Code::kOk);
    std::size_t columns = 0;
    testing::for_each_column(whole, [&](const format::PageTable& table, const format::ColumnEntry& column,
                                        const testing::Recoded& recoded) {
        EXPECT_EQ(code_of(recoded(99, column.encoding)), base::Code::kUnsupported) << unsigned{column.column};
        ++columns;
        // Which rows a page of steps has is no question: all.
        if (table.kind == format::PageKind::kSteps && column.column == 0) return;
        EXPECT_EQ(code_of(recoded(column.column, 9)), base::Code::kUnsupported) << unsigned{column.column};
    });
    EXPECT_GT(columns, 10U);
}

TEST(ThinSegment, DamageAnywhereIsRefused) {
    const base::ByteBuffer whole =
        testing::make_segment(log_header(4), 1001, 0, 30, true, [](std::uint64_t) { return true; });
    const auto keep_all = [](model::Mode, model::StepIndex) { return true; };
    ASSERT_TRUE(thin_segment(whole, keep_all, nullptr).is_ok());
    for (std::size_t at = 0; at < whole.size(); at += 5) {
        base::ByteBuffer damaged = whole;
        damaged[at] ^= std::byte{16};
        const auto thinned = thin_segment(damaged, keep_all, nullptr);
        // One of the two file headers may be lost without a loss.
        if (thinned.is_ok()) {
            EXPECT_LT(at, 128U) << at;
        }
    }
    for (std::size_t size = 0; size < whole.size(); size += 11)
        EXPECT_FALSE(thin_segment(base::ByteSpan(whole).first(size), keep_all, nullptr).is_ok()) << size;
}

// In a child, whose peak is its own. 0: it was refused with no more memory than that.
int refuse_in(const base::ByteBuffer& segment, std::uint64_t most_bytes) {
    rusage before{};
    ::getrusage(RUSAGE_SELF, &before);
    const auto thinned = thin_segment(
        segment, [](model::Mode, model::StepIndex) { return true; }, nullptr);
    rusage after{};
    ::getrusage(RUSAGE_SELF, &after);
    if (thinned.status().code() != Code::kDataLoss) return 2;
    const auto used = static_cast<std::uint64_t>(after.ru_maxrss - before.ru_maxrss) << 10;
    return used <= most_bytes ? 0 : 1;
}

TEST(ThinSegment, ChannelsBeyondTheMostOfAStepAreRefusedBeforeTheyFillTheMemory) {
    const testing::HostileChannels hostile(1000);
    const base::ByteBuffer segment = testing::made_segment(hostile.table, 0, hostile.pages, true);
    EXPECT_LT(segment.size(), 512U << 10) << "786 MB in less than half a megabyte";
#if defined(TRAINDBG_ADDRESS_SANITIZER) || defined(TRAINDBG_THREAD_SANITIZER)
    GTEST_SKIP() << "a sanitizer's own memory is in the figure";
#endif
    EXPECT_EXIT(::_exit(refuse_in(segment, std::uint64_t{256} << 20)), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace traindbg::seal
