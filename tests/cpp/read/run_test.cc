#include "traindbg/read/run.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "format/sample_records.h"
#include "read/every_nth.h"
#include "storage/temporary_directory.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::read {
namespace {

using base::Code;
using model::Mode;
using model::StepRecord;
using storage::MemoryFileSystem;
using testing::sample_step;
using namespace std::chrono_literals;

void make_run(MemoryFileSystem& files, const std::string& path = "/run") {
    ASSERT_TRUE(files.create_directories(path).is_ok());
    ASSERT_TRUE(files.put_atomic(path + "/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
}

// A whole run of one worker with `steps` steps; raw tensors at even ones.
void write_run(MemoryFileSystem& files, std::uint64_t steps, model::WorkerId worker = 0) {
    write::WriterOptions options;
    options.run_directory = "/run";
    options.worker = worker;
    options.seals_parts = false;  // sealed parts have tests of their own
    auto writer = write::RunWriter::open(files, options);
    ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
    for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
    (*writer)->describe(testing::sample_meta());
    (*writer)->event("began", R"({"why":"test"})");
    for (std::uint64_t step = 0; step < steps; ++step) (*writer)->append(sample_step(step, step % 2 == 0));
    ASSERT_TRUE((*writer)->close(30s).is_ok());
}

TEST(RunTest, WhatWasWrittenComesBack) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 10);
    auto run = Run::open("/run/", files);
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    EXPECT_EQ((*run)->path(), "/run");
    EXPECT_EQ((*run)->meta().run_id, "sample");
    EXPECT_TRUE((*run)->is_complete());
    EXPECT_TRUE((*run)->damage().empty());
    EXPECT_EQ((*run)->workers(), std::vector<model::WorkerId>{0});
    EXPECT_EQ((*run)->tensors(0), testing::sample_tensors());
    model::WorkerMeta meta = testing::sample_meta();
    EXPECT_EQ((*run)->worker_meta(0), meta);
    ASSERT_EQ((*run)->events().size(), 2U) << "the writer's own says where its blob begins";
    EXPECT_EQ((*run)->events()[0].kind, "began");
    EXPECT_EQ((*run)->events()[0].json, R"({"why":"test"})");

    std::vector<StepRecord> records;
    ASSERT_TRUE((*run)
                    ->for_each_step(
                        [&](const model::StepView& view) {
                            EXPECT_EQ(view.worker, 0U);
                            records.push_back(*view.record);
                            return true;
                        },
                        true)
                    .is_ok());
    ASSERT_EQ(records.size(), 10U);
    for (std::uint64_t step = 0; step < 10; ++step)
        EXPECT_EQ(records[step], sample_step(step, step % 2 == 0));
}

TEST(RunTest, TailOfAFinishedRunGivesAllStepsAndEnds) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 10);
    auto tail = RunTail::open("/run", files);
    ASSERT_TRUE(tail.is_ok());
    (*tail)->finish_when_idle();
    for (std::uint64_t step = 0; step < 10; ++step) {
        auto view = (*tail)->next(0ns);
        ASSERT_TRUE(view.is_ok() && view->has_value());
        EXPECT_EQ(*(**view).record, sample_step(step));
        EXPECT_FALSE((*tail)->ended());
    }
    auto view = (*tail)->next(0ns);
    ASSERT_TRUE(view.is_ok());
    EXPECT_FALSE(view->has_value());
    EXPECT_TRUE((*tail)->ended());
}

TEST(RunTest, ADirectoryWithoutRunJsonIsNoRun) {
    MemoryFileSystem files;
    ASSERT_TRUE(files.create_directories("/some/where").is_ok());
    const base::Status status = Run::open("/some/where", files).status();
    EXPECT_EQ(status.code(), Code::kNotFound);
    EXPECT_EQ(status.message(), "/some/where is not a traindbg run (no RUN.json)");
    EXPECT_EQ(RunTail::open("/none", files).status().code(), Code::kNotFound);
}

TEST(RunTest, AnUnreadableDescriptionIsDamageNotAnEnd) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 3);
    ASSERT_TRUE(files.put_atomic("/run/RUN.json", base::as_bytes("{")).is_ok());
    auto run = Run::open("/run", files);
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    EXPECT_EQ((*run)->totals().steps, 3U);
    ASSERT_EQ((*run)->damage().size(), 1U);
    EXPECT_EQ((*run)->damage()[0].file, "/run/RUN.json");
}

TEST(RunTest, ARunWithoutWorkersIsEmptyAndNotComplete) {
    MemoryFileSystem files;
    make_run(files);
    auto run = Run::open("/run", files);
    ASSERT_TRUE(run.is_ok());
    EXPECT_FALSE((*run)->is_complete());
    EXPECT_TRUE((*run)->workers().empty());
    EXPECT_TRUE((*run)->tensor_names().empty());
    EXPECT_FALSE((*run)->end().has_value());
    EXPECT_TRUE((*run)->tensors(7).empty());
    EXPECT_EQ((*run)->worker_meta(7).pid, 0);
}

TEST(RunTest, TheEndIsReadWhenItIsThere) {
    MemoryFileSystem files;
    make_run(files);
    ASSERT_TRUE(
        files.put_atomic("/run/END.json", base::as_bytes(R"({"exit_code":90,"stopped_by_rule":true})"))
            .is_ok());
    auto run = Run::open("/run", files);
    ASSERT_TRUE((*run)->end().has_value());
    EXPECT_EQ((*run)->end()->exit_code, 90);
    EXPECT_TRUE((*run)->end()->stopped_by_rule);
}

TEST(RunTest, StepsAndTotalsPerMode) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 10);
    auto run = Run::open("/run", files);
    EXPECT_EQ((*run)->steps(Mode::kTrain), (std::vector<model::StepIndex>{0, 1, 2, 3, 5, 6, 7, 8}));
    EXPECT_EQ((*run)->steps(Mode::kEval), (std::vector<model::StepIndex>{4, 9}));
    EXPECT_TRUE((*run)->steps(Mode::kPredict).empty());
    const RunTotals totals = (*run)->totals();
    EXPECT_EQ(totals.steps, 10U);
    EXPECT_EQ(totals.step_nanos, 7'000'032U);
    EXPECT_EQ(totals.capture_nanos, 8032U);
    EXPECT_EQ(totals.bytes,
              files.content("/run/w0000/000000.log").size() + files.content("/run/w0000/000000.blob").size());
}

TEST(RunTest, OneStep) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 6);
    auto run = Run::open("/run", files);
    auto with = (*run)->step(0, Mode::kTrain, 2, true);
    ASSERT_TRUE(with.is_ok() && with->has_value());
    EXPECT_EQ(**with, sample_step(2, true));
    auto without = (*run)->step(0, Mode::kTrain, 2);
    EXPECT_EQ(**without, sample_step(2));
    EXPECT_FALSE((*run)->step(0, Mode::kTrain, 4)->has_value()) << "step 4 is of EVAL";
    EXPECT_FALSE((*run)->step(1, Mode::kTrain, 2)->has_value());
}

TEST(RunTest, SeriesOfEveryStatistic) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 3);
    auto run = Run::open("/run", files);
    const auto last = [&](const std::string& tensor, std::string_view statistic) {
        auto points = (*run)->series(0, tensor, statistic);
        EXPECT_TRUE(points.is_ok()) << points.status().to_string();
        EXPECT_EQ(points->size(), 3U) << statistic;
        EXPECT_EQ(points->back().step, 2U);
        return points->back().value;
    };
    EXPECT_EQ(last("loss", "value"), 1.0 / 3);
    const std::vector<std::pair<const char*, double>> expected = {{"min", 0},
                                                                  {"max", 3},
                                                                  {"mean", 0.5},
                                                                  {"std", 0.5},
                                                                  {"l1", 2},
                                                                  {"l2", 1.25},
                                                                  {"count", 6},
                                                                  {"nan", 1},
                                                                  {"inf", 2},
                                                                  {"zero", 2},
                                                                  {"units", 4},
                                                                  {"inactive_units", 1},
                                                                  {"low", 0},
                                                                  {"high", 2},
                                                                  {"variance", 0.25},
                                                                  {"sum", 1.5},
                                                                  {"mean_abs", 2.0 / 3},
                                                                  {"rms", 1.25 / std::sqrt(3.0)}};
    for (const auto& [statistic, value] : expected)
        EXPECT_EQ(last("activation/relu", statistic), value) << statistic;
    EXPECT_EQ(expected.size() + 2, Run::statistic_names().size()) << "value and product are of other samples";
    EXPECT_TRUE((*run)->series(0, "weight/fc1.weight", "units")->empty()) << "not taken of a weight";
}

TEST(RunTest, WhatFollowsFromNoFiniteElementIsZero) {
    MemoryFileSystem files;
    make_run(files);
    write::WriterOptions options;
    options.run_directory = "/run";
    auto writer = write::RunWriter::open(files, options);
    ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
    for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
    model::StepRecord record = sample_step(0);
    record.tensors.resize(1);
    record.tensors[0].statistics = {.count = 12, .nan = 7, .positive_infinite = 3, .negative_infinite = 2};
    const model::TensorSample sample = record.tensors[0];
    const std::string name = testing::sample_tensors()[sample.tensor].name;
    (*writer)->append(std::move(record));
    ASSERT_TRUE((*writer)->close(std::chrono::seconds(60)).is_ok());
    auto run = Run::open("/run", files);
    for (const std::string_view statistic : {"variance", "sum", "mean_abs", "rms"}) {
        const auto points = (*run)->series(0, name, statistic);
        ASSERT_TRUE(points.is_ok() && points->size() == 1) << statistic;
        EXPECT_EQ((*points)[0].value, 0) << statistic;
        EXPECT_EQ(Run::statistic_of(sample, statistic), 0) << statistic;
    }
}

TEST(RunTest, SeriesNamesTheNearestOfWhatDoesNotExist) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 1);
    auto run = Run::open("/run", files);
    const base::Status tensor = (*run)->series(0, "weight/fc1.weigth", "mean").status();
    EXPECT_EQ(tensor.code(), Code::kNotFound);
    EXPECT_NE(tensor.message().find("did you mean 'weight/fc1.weight'"), std::string::npos)
        << tensor.message();
    const base::Status statistic = (*run)->series(0, "loss", "meann").status();
    EXPECT_EQ(statistic.code(), Code::kInvalidArgument);
    EXPECT_NE(statistic.message().find("did you mean 'mean'"), std::string::npos) << statistic.message();
}

TEST(RunTest, WorkersAreKeptApart) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 2, 0);
    write_run(files, 3, 5);
    auto run = Run::open("/run", files);
    EXPECT_EQ((*run)->workers(), (std::vector<model::WorkerId>{0, 5}));
    EXPECT_EQ((*run)->totals().steps, 5U);
    EXPECT_EQ((*run)->tensor_names().size(), 4U) << "each name once";
    std::vector<model::WorkerId> order;
    ASSERT_TRUE((*run)
                    ->for_each_step([&](const model::StepView& view) {
                        order.push_back(view.worker);
                        return order.size() < 4;
                    })
                    .is_ok());
    EXPECT_EQ(order, (std::vector<model::WorkerId>{0, 0, 5, 5})) << "and the visitor may stop";
}

TEST(RunTest, AnErrorOfOneReadCostsNoWorkerAndIsMadeGood) {
    MemoryFileSystem memory;
    make_run(memory);
    write_run(memory, 3, 0);
    write_run(memory, 3, 1);
    std::uint64_t refused = 0;
    for (std::uint64_t call = 0;; ++call) {
        storage::FaultPlan plan;
        plan.fail_at_call = call;
        plan.keep_failing = false;
        std::uint64_t calls = 0;
        plan.before = [&](storage::FileCall, const std::string&) { ++calls; };
        storage::FaultFileSystem files(memory, plan);
        auto run = Run::open("/run", files);
        if (calls <= call) break;  // all that opening does went well
        if (!run.is_ok()) {
            ++refused;
            continue;
        }
        ASSERT_TRUE((*run)->refresh().is_ok()) << call;
        EXPECT_EQ((*run)->workers().size(), 2U) << call;
        EXPECT_EQ((*run)->totals().steps, 6U) << call;
        EXPECT_TRUE((*run)->damage().empty()) << call;
    }
    EXPECT_LE(refused, 4U) << "RUN.json and the list of workers are needed, nothing else";
}

// ------------------------------------------------------------------ workers that are missing

enum class Record { kClosed, kOpen };

// A worker of a training of `world` (0: it does not say) that recorded `steps` training steps.
void write_worker(MemoryFileSystem& files, model::WorkerId worker, std::uint64_t steps, Record record,
                  std::uint64_t world = 3) {
    base::ByteWriter log;
    format::FileHeader header;
    header.worker = worker;
    header.salt = 0xA110C + worker;
    format::append_file_header(log, header);
    std::uint64_t sequence = 2;
    base::ByteWriter payload;
    const auto add = [&](format::FrameType type) {
        ASSERT_TRUE(format::append_frame(log, type, sequence++, payload.bytes(), header.salt).is_ok());
        payload = base::ByteWriter();
    };
    model::WorkerMeta meta = testing::sample_meta();
    if (world != 0) meta.environment = {{"WORLD_SIZE", std::to_string(world)}};
    format::encode_worker(payload, meta);
    add(format::FrameType::kWorker);
    for (std::uint64_t step = 0; step < steps; ++step) {
        StepRecord empty;
        empty.step = step;
        empty.sequence = step;
        EXPECT_EQ(format::encode_step(payload, empty, {}, {}), 0U);
        add(format::FrameType::kStep);
    }
    if (record == Record::kClosed) {
        format::encode_totals(payload, {1, steps, 0, 0});
        add(format::FrameType::kEnd);
    }
    const storage::RunLayout layout{"/run"};
    ASSERT_TRUE(files.create_directories(layout.worker_directory(worker)).is_ok());
    files.set_content(layout.log(worker, 0), log.take());
}

void put_end(MemoryFileSystem& files, const char* json) {
    ASSERT_TRUE(files.put_atomic("/run/END.json", base::as_bytes(json)).is_ok());
}

std::vector<std::string> gaps_of(MemoryFileSystem& files) {
    auto run = Run::open("/run", files);
    auto tail = RunTail::open("/run", files);
    EXPECT_TRUE(run.is_ok() && tail.is_ok());
    EXPECT_EQ((*tail)->worker_gaps().in_words(), (*run)->worker_gaps().in_words());
    EXPECT_EQ((*run)->worker_gaps().empty(), (*run)->worker_gaps().in_words().empty());
    return (*run)->worker_gaps().in_words();
}

using Lines = std::vector<std::string>;

TEST(WorkerGapsTest, WorkersThatRecordedAlikeLeaveNone) {
    MemoryFileSystem files;
    make_run(files);
    EXPECT_EQ(gaps_of(files), Lines());
    for (model::WorkerId worker = 0; worker < 3; ++worker) write_worker(files, worker, 4, Record::kClosed);
    EXPECT_EQ(gaps_of(files), Lines());
}

TEST(WorkerGapsTest, OneThatNeverStartedIsNamed) {
    MemoryFileSystem files;
    make_run(files);
    write_worker(files, 0, 4, Record::kClosed);
    write_worker(files, 2, 4, Record::kClosed);
    EXPECT_EQ(gaps_of(files), (Lines{"worker 1 has recorded nothing, though others expect it"}));
    auto run = Run::open("/run", files);
    EXPECT_EQ((*run)->missing_workers(), (std::vector<model::WorkerId>{1}));
}

TEST(WorkerGapsTest, ManyAreToldInALine) {
    MemoryFileSystem files;
    make_run(files);
    for (const model::WorkerId worker : {0U, 1U, 3U, 6U, 8U, 9U})
        write_worker(files, worker, worker < 6 ? 9 : 5, worker < 6 ? Record::kClosed : Record::kOpen, 12);
    EXPECT_EQ(gaps_of(files),
              (Lines{"workers 2, 4, 5, 7, 10 and 11 have recorded nothing, though others expect them",
                     "workers 6, 8 and 9 stopped at step 4, their records not closed; others went on to "
                     "step 8"}));
    write_worker(files, 4, 9, Record::kClosed, 4000);
    EXPECT_EQ(gaps_of(files)[0],
              "workers 2, 5, 7 and 10 to 3999 have recorded nothing, though others expect them");
}

TEST(WorkerGapsTest, OneThatWasCutOffIsNamedOnceItCannotBeSlowAnyMore) {
    MemoryFileSystem files;
    make_run(files);
    write_worker(files, 0, 9, Record::kOpen);
    write_worker(files, 1, 5, Record::kOpen);
    write_worker(files, 2, 0, Record::kOpen);
    EXPECT_EQ(gaps_of(files), Lines()) << "it is recorded, and one is slower than the other";
    const Lines expected = {
        "worker 2 stopped before a training step, its record not closed; others went on "
        "to step 8",
        "worker 1 stopped at step 4, its record not closed; others went on to step 8"};
    write_worker(files, 0, 9, Record::kClosed);
    EXPECT_EQ(gaps_of(files), expected) << "another came to its end";
    write_worker(files, 0, 9, Record::kOpen);
    put_end(files, R"({"exit_code":1})");
    EXPECT_EQ(gaps_of(files), expected) << "the training is over";
}

TEST(WorkerGapsTest, OneThatLeftEarlyByItselfIsNamedWhereAllTrainTogether) {
    MemoryFileSystem files;
    make_run(files);
    write_worker(files, 0, 9, Record::kOpen, 2);
    write_worker(files, 1, 5, Record::kClosed, 2);
    EXPECT_EQ(gaps_of(files), (Lines{"worker 1 stopped at step 4; others went on to step 8"}));
    put_end(files, R"({"exit_code":90,"stopped_by_rule":true})");
    EXPECT_EQ(gaps_of(files), Lines()) << "each leaves at the next end of a step";
    ASSERT_TRUE(files.remove("/run/END.json").is_ok());
    write_worker(files, 0, 9, Record::kClosed, 0);
    write_worker(files, 1, 5, Record::kClosed, 0);
    EXPECT_EQ(gaps_of(files), Lines()) << "two trainings in a directory need not be equally long";
}

TEST(RunTest, RefreshFindsNewStepsAndNewWorkers) {
    MemoryFileSystem files;
    make_run(files);
    auto run = Run::open("/run", files);
    EXPECT_FALSE(*(*run)->refresh());
    write_run(files, 2, 0);
    EXPECT_TRUE(*(*run)->refresh());
    EXPECT_FALSE(*(*run)->refresh());
    write_run(files, 1, 1);
    EXPECT_TRUE(*(*run)->refresh());
    EXPECT_EQ((*run)->totals().steps, 3U);
    EXPECT_TRUE((*run)->is_complete());
}

// ------------------------------------------------------------------ damage

class DamagedRunTest : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kSteps = 6;
    void SetUp() override {
        make_run(files_);
        write_run(files_, kSteps);
        log_ = files_.content(kLog);
        raw_ = files_.content(kRaw);
    }
    // Every step that is read must be one that was written, in order, each at most once.
    std::vector<std::uint64_t> read_steps(bool with_raw = false) {
        auto run = Run::open("/run", files_);
        EXPECT_TRUE(run.is_ok()) << run.status().to_string();
        std::vector<std::uint64_t> steps;
        const base::Status status = (*run)->for_each_step(
            [&](const model::StepView& view) {
                const StepRecord whole = sample_step(view.step(), with_raw && !view.record->raw.empty());
                if (skipped_allowed_) {
                    // A lost description takes its tensors' samples with it and changes no other.
                    for (const auto& sample : view.record->tensors)
                        EXPECT_EQ(std::count(whole.tensors.begin(), whole.tensors.end(), sample), 1);
                    for (const auto& sample : view.record->scalars)
                        EXPECT_EQ(std::count(whole.scalars.begin(), whole.scalars.end(), sample), 1);
                    for (const auto& sample : view.record->classes)
                        EXPECT_EQ(std::count(whole.classes.begin(), whole.classes.end(), sample), 1);
                } else {
                    // A damaged whole tensor is left out; all others are there.
                    for (const auto& raw : view.record->raw)
                        EXPECT_EQ(std::count(whole.raw.begin(), whole.raw.end(), raw), 1);
                    StepRecord read = *view.record;
                    read.raw = whole.raw;
                    EXPECT_EQ(read, whole);
                }
                EXPECT_TRUE(steps.empty() || steps.back() < view.step());
                steps.push_back(view.step());
                return true;
            },
            with_raw);
        EXPECT_TRUE(status.is_ok()) << status.to_string();
        damage_ = (*run)->damage();
        complete_ = (*run)->is_complete();
        return steps;
    }

    static constexpr const char* kLog = "/run/w0000/000000.log";
    static constexpr const char* kRaw = "/run/w0000/000000.blob";
    MemoryFileSystem files_;
    base::ByteBuffer log_;
    base::ByteBuffer raw_;
    std::vector<Damage> damage_;
    bool complete_ = false;
    bool skipped_allowed_ = false;
};

TEST_F(DamagedRunTest, EveryTruncationGivesAPrefix) {
    std::size_t before = 0;
    for (std::size_t size = 0; size <= log_.size(); ++size) {
        files_.set_content(kLog, {log_.begin(), log_.begin() + static_cast<std::ptrdiff_t>(size)});
        const std::vector<std::uint64_t> steps = read_steps();
        EXPECT_TRUE(steps.size() == before || steps.size() == before + 1) << size;
        before = steps.size();
        EXPECT_EQ(complete_, size == log_.size());
        EXPECT_LE(damage_.size(), 1U);
        for (const Damage& damage : damage_) EXPECT_TRUE(damage.tail) << size;
    }
    EXPECT_EQ(before, kSteps);
}

TEST_F(DamagedRunTest, EveryFlippedBitIsToldAndCostsOneFrame) {
    skipped_allowed_ = true;
    for (std::size_t bit = 0; bit < log_.size() * 8; bit += testing::kEveryNthBit) {
        base::ByteBuffer bytes = log_;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        files_.set_content(kLog, std::move(bytes));
        EXPECT_GE(read_steps().size(), kSteps - 1) << bit;
        ASSERT_EQ(damage_.size(), 1U) << bit;
        EXPECT_EQ(damage_[0].file, kLog);
        EXPECT_LE(damage_[0].offset, bit / 8);
        EXPECT_GT(damage_[0].offset + damage_[0].bytes, bit / 8);
    }
}

TEST_F(DamagedRunTest, EveryFlippedBitOfAWholeTensorIsTold) {
    for (std::size_t bit = 0; bit < raw_.size() * 8; bit += testing::kEveryNthBit) {
        constexpr std::size_t kHeaderEnd = (format::kBlobHeaderBytes - 1) * 8;
        if (bit >= 1024 && bit < kHeaderEnd) bit = kHeaderEnd;  // the rest of the header's zeros
        base::ByteBuffer bytes = raw_;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        files_.set_content(kRaw, std::move(bytes));
        // The steps are all there; at most one without its whole tensors, and none with wrong ones.
        EXPECT_EQ(read_steps(true).size(), kSteps) << bit;
        // A header of two copies, and gaps between the tensors of 48 bytes, hold nothing.
        const std::size_t byte = bit / 8;
        const bool is_in_tensor = byte >= format::kBlobHeaderBytes && byte % format::kBlobAlignment < 48;
        EXPECT_EQ(damage_.size(), is_in_tensor ? 1U : 0U) << bit;
    }
}

TEST_F(DamagedRunTest, AMissingRawFileLeavesTheSteps) {
    ASSERT_TRUE(files_.remove(kRaw).is_ok());
    EXPECT_EQ(read_steps(true).size(), kSteps);
    EXPECT_EQ(damage_.size(), 1U) << "told once";
    auto run = Run::open("/run", files_);
    EXPECT_FALSE((*run)->step(0, Mode::kTrain, 0, true).is_ok()) << "asked for alone, it is an error";
    EXPECT_TRUE((*run)->step(0, Mode::kTrain, 0, false).is_ok());
}

TEST_F(DamagedRunTest, ARunOfZerosOrNoiseIsToldNotRead) {
    files_.set_content(kLog, base::ByteBuffer(100'000));
    EXPECT_TRUE(read_steps().empty());
    ASSERT_EQ(damage_.size(), 1U);
    EXPECT_EQ(damage_[0].bytes, 100'000U);
    EXPECT_FALSE(damage_[0].tail);
}

TEST_F(DamagedRunTest, ANewerMajorVersionIsRefused) {
    base::ByteWriter out;
    format::FileHeader header;
    header.major = 2;
    format::append_file_header(out, header);
    files_.set_content(kLog, out.take());
    const base::Status status = Run::open("/run", files_).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_NE(status.message().find("use a newer traindbg"), std::string::npos) << status.message();
}

TEST_F(DamagedRunTest, FramesOfANewerMinorVersionAreSkipped) {
    base::ByteWriter out;
    format::FileHeader header;
    header.minor = 9;
    header.salt = 5;
    format::append_file_header(out, header);
    ASSERT_TRUE(
        format::append_frame(out, static_cast<format::FrameType>(500), 2, base::as_bytes("new"), 5).is_ok());
    base::ByteWriter payload;
    format::encode_event(payload, {1, "known", "{}"});
    ASSERT_TRUE(format::append_frame(out, format::FrameType::kEvent, 3, payload.bytes(), 5).is_ok());
    files_.set_content(kLog, out.take());
    auto run = Run::open("/run", files_);
    ASSERT_TRUE(run.is_ok());
    EXPECT_TRUE((*run)->damage().empty());
    ASSERT_EQ((*run)->events().size(), 1U);
}

// ------------------------------------------------------------------ files that grow

TEST(GrowingRunTest, RefreshAtEveryByteOfGrowth) {
    MemoryFileSystem source;
    make_run(source);
    write_run(source, 5);
    const base::ByteBuffer log = source.content("/run/w0000/000000.log");
    MemoryFileSystem files;
    make_run(files);
    ASSERT_TRUE(files.create_directory("/run/w0000").is_ok());
    auto file = files.create("/run/w0000/000000.log");
    auto tail = RunTail::open("/run", files);
    ASSERT_TRUE(tail.is_ok());
    std::uint64_t next = 0;
    for (const std::byte& byte : log) {
        ASSERT_TRUE((*file)->append({&byte, 1}).is_ok());
        auto view = (*tail)->next(0ns);
        ASSERT_TRUE(view.is_ok()) << view.status().to_string();
        if (!view->has_value()) continue;
        EXPECT_EQ(*(**view).record, sample_step(next));
        ++next;
    }
    EXPECT_EQ(next, 5U);
    EXPECT_FALSE((*tail)->ended()) << "nobody said that it is over";
    (*tail)->finish_when_idle();
    EXPECT_FALSE((*tail)->next(0ns)->has_value());
    EXPECT_TRUE((*tail)->ended());
}

TEST(GrowingRunTest, TheTailOfAWritersThreadGetsEveryStep) {
    const testing::TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    ASSERT_TRUE(
        files.put_atomic(directory.path() + "/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
    auto tail = RunTail::open(directory.path());
    ASSERT_TRUE(tail.is_ok());
    constexpr std::uint64_t kSteps = 500;
    std::jthread training([&] {
        write::WriterOptions options;
        options.run_directory = directory.path();
        options.overflow = write::OverflowPolicy::kBlockFor;
        options.block_for = 60s;
        auto writer = write::RunWriter::open(files, options);
        ASSERT_TRUE(writer.is_ok());
        for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
        for (std::uint64_t step = 0; step < kSteps; ++step) {
            (*writer)->append(sample_step(step, step % 50 == 0));
            if (step % 20 == 0) std::this_thread::yield();
        }
        EXPECT_TRUE((*writer)->close(240s).is_ok());
    });
    for (std::uint64_t step = 0; step < kSteps; ++step) {
        auto view = (*tail)->next(60s);
        ASSERT_TRUE(view.is_ok()) << view.status().to_string();
        ASSERT_TRUE(view->has_value()) << step;
        ASSERT_EQ(*(**view).record, sample_step(step));
    }
    training.join();
    (*tail)->finish_when_idle();
    EXPECT_FALSE((*tail)->next(60s)->has_value());
    EXPECT_TRUE((*tail)->ended());
}

TEST(GrowingRunTest, TheWakeDescriptorTellsOfANewWorkerAndOfNewSteps) {
    const testing::TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    ASSERT_TRUE(
        files.put_atomic(directory.path() + "/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
    auto tail = RunTail::open(directory.path());
    ASSERT_TRUE(tail.is_ok());
    if ((*tail)->wake_descriptor() < 0) GTEST_SKIP() << "no inotify here";
    const auto is_readable = [&](int patience_millis) {
        pollfd events{(*tail)->wake_descriptor(), POLLIN, 0};
        return ::poll(&events, 1, patience_millis) == 1;
    };
    EXPECT_FALSE((*tail)->next(0ns)->has_value());
    EXPECT_FALSE(is_readable(0));
    write::WriterOptions options;
    options.run_directory = directory.path();
    auto writer = write::RunWriter::open(files, options);
    ASSERT_TRUE(writer.is_ok());
    EXPECT_TRUE(is_readable(60'000)) << "a worker came";
    EXPECT_FALSE((*tail)->next(0ns)->has_value());
    (*writer)->append(sample_step(0));
    EXPECT_TRUE(is_readable(60'000)) << "a step came";
    EXPECT_TRUE((*tail)->next(60s)->has_value());
}

TEST(GrowingRunTest, WorkersAreJoinedByTheirProgress) {
    MemoryFileSystem files;
    make_run(files);
    write_run(files, 2, 0);
    write_run(files, 3, 1);
    auto tail = RunTail::open("/run", files);
    (*tail)->finish_when_idle();
    std::vector<std::pair<model::WorkerId, model::StepIndex>> order;
    while (true) {
        auto view = (*tail)->next(0ns);
        ASSERT_TRUE(view.is_ok());
        if (!view->has_value()) break;
        order.emplace_back((**view).worker, (**view).step());
    }
    EXPECT_EQ(order, (std::vector<std::pair<model::WorkerId, model::StepIndex>>{
                         {0, 0}, {1, 0}, {0, 1}, {1, 1}, {1, 2}}));
}

TEST(GrowingRunTest, AWorkerThatEvaluatesIsNoFartherThanTheOthers) {
    MemoryFileSystem files;
    make_run(files);
    // Rank 0 evaluates before the training and after each of its steps.
    const auto train = [](model::StepIndex step) { return std::pair(model::Mode::kTrain, step); };
    const auto eval = [](model::StepIndex step) { return std::pair(model::Mode::kEval, step); };
    const std::vector<std::vector<std::pair<model::Mode, model::StepIndex>>> steps = {
        {eval(0), eval(1), eval(2), train(0), eval(3), eval(4), train(1)}, {train(0), train(1)}};
    for (model::WorkerId worker = 0; worker < 2; ++worker) {
        write::WriterOptions options;
        options.run_directory = "/run";
        options.worker = worker;
        options.seals_parts = false;
        auto writer = write::RunWriter::open(files, options);
        ASSERT_TRUE(writer.is_ok());
        model::StepRecord record;
        for (const auto& [mode, step] : steps[worker]) {
            record.mode = mode;
            record.step = step;
            (*writer)->append(model::StepRecord(record));
            ++record.sequence;
        }
        ASSERT_TRUE((*writer)->close(30s).is_ok());
    }
    auto tail = RunTail::open("/run", files);
    (*tail)->finish_when_idle();
    std::string order;
    while (true) {
        auto view = (*tail)->next(0ns);
        ASSERT_TRUE(view.is_ok());
        if (!view->has_value()) break;
        order += std::to_string((**view).worker) + ((**view).mode() == model::Mode::kTrain ? "t" : "e") +
                 std::to_string((**view).step()) + " ";
    }
    EXPECT_EQ(order, "0e0 0e1 0e2 0t0 0e3 0e4 1t0 0t1 1t1 ");
}

// A child records until it is killed, at a different moment each time. It says through a pipe which
// step it knows to be in the file.
TEST(KilledTrainingTest, AcknowledgedStepsAreThereAndNoneIsWrong) {
    constexpr int kKills = 100;
    for (int kill_number = 0; kill_number < kKills; ++kill_number) {
        const testing::TemporaryDirectory directory;
        storage::FileSystem& files = storage::posix_file_system();
        ASSERT_TRUE(files.put_atomic(directory.path() + "/RUN.json", base::as_bytes(testing::kSampleRunJson))
                        .is_ok());
        int ends[2];
        ASSERT_EQ(::pipe(ends), 0);
        const pid_t child = ::fork();
        if (child == 0) {
            write::WriterOptions options;
            options.run_directory = directory.path();
            options.sync_interval = 0ms;
            auto writer = write::RunWriter::open(files, options);
            if (!writer.is_ok()) ::_exit(1);
            for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
            for (std::uint64_t step = 0;; ++step) {
                (*writer)->append(sample_step(step, step % 3 == 0));
                if (step % 8 != 7) continue;
                if (!(*writer)->flush(60s)) ::_exit(1);
                if (::write(ends[1], &step, sizeof(step)) != sizeof(step)) ::_exit(1);
            }
        }
        ::close(ends[1]);
        std::uint64_t acknowledged = 0;
        const std::uint64_t enough = 7 + 8 * static_cast<std::uint64_t>(kill_number % 10);
        while (acknowledged < enough)
            ASSERT_EQ(::read(ends[0], &acknowledged, sizeof(acknowledged)),
                      static_cast<ssize_t>(sizeof(acknowledged)));
        ::kill(child, SIGKILL);
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFSIGNALED(status));
        while (::read(ends[0], &acknowledged, sizeof(acknowledged)) > 0)
            continue;  // what was still on its way
        ::close(ends[0]);

        auto run = Run::open(directory.path());
        ASSERT_TRUE(run.is_ok()) << run.status().to_string();
        std::uint64_t next = 0;
        ASSERT_TRUE((*run)
                        ->for_each_step(
                            [&](const model::StepView& view) {
                                EXPECT_TRUE(*view.record == sample_step(next, next % 3 == 0)) << next;
                                ++next;
                                return true;
                            },
                            true)
                        .is_ok());
        EXPECT_GT(next, acknowledged);
        EXPECT_FALSE((*run)->is_complete());
        for (const Damage& damage : (*run)->damage()) EXPECT_TRUE(damage.tail) << damage.what;
    }
}

}  // namespace
}  // namespace traindbg::read
