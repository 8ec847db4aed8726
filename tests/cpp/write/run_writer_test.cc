#include "traindbg/write/run_writer.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "format/sample_records.h"
#include "storage/temporary_directory.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/read/run.h"
#include "traindbg/seal/sealer.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/seal_thread.h"
#include "traindbg/write/shared.h"

namespace traindbg::write {
namespace {

using base::Code;
using model::StepRecord;
using storage::FaultFileSystem;
using storage::FaultPlan;
using storage::FileCall;
using storage::MemoryFileSystem;
using testing::sample_step;
using namespace std::chrono_literals;

constexpr auto kLong = 240s;  // longer than any test may take: a deadline that is not part of the test

// Waits until it is so; false: it never was.
template <typename Condition>
bool becomes_true(const Condition& is_so) {
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    while (!is_so()) {
        if (std::chrono::steady_clock::now() >= deadline) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// Returns once no thread of a writer uses `files` any more, one that was left behind included: the worker's
// lock is the last thing that each lets go.
void wait_until_let_go(storage::FileSystem& files) {
    ASSERT_TRUE(becomes_true([&] { return seal::lock_worker(files, {"/run"}, 0).is_ok(); }));
}

void make_run(storage::FileSystem& files, const std::string& path = "/run") {
    ASSERT_TRUE(files.create_directories(path).is_ok());
    ASSERT_TRUE(files.put_atomic(path + "/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
}

// The sealer has no low priority: on a busy machine it would outlive the deadline of `close`, and `files`.
std::unique_ptr<RunWriter> open_writer(storage::FileSystem& files, WriterOptions options = {}) {
    options.sealer_nice = 0;
    if (options.run_directory.empty()) options.run_directory = "/run";
    auto writer = RunWriter::open(files, std::move(options));
    EXPECT_TRUE(writer.is_ok()) << writer.status().to_string();
    return std::move(writer).value();
}

void add_tensors(RunWriter& writer) {
    for (const model::TensorInfo& info : testing::sample_tensors()) writer.add_tensor(info);
}

// All steps that a reader finds, with whole tensors.
std::vector<StepRecord> read_steps(storage::FileSystem& files, const std::string& path = "/run") {
    auto run = read::Run::open(path, files);
    EXPECT_TRUE(run.is_ok()) << run.status().to_string();
    std::vector<StepRecord> records;
    if (!run.is_ok()) return records;
    const base::Status status = (*run)->for_each_step(
        [&](const model::StepView& view) {
            records.push_back(*view.record);
            return true;
        },
        true);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return records;
}

// A disk that stands still until it is let go.
class Gate {
  public:
    // Stops the next calls of this kind.
    void shut() {
        const std::lock_guard lock(mutex_);
        is_shut_ = true;
    }
    void open() {
        {
            const std::lock_guard lock(mutex_);
            is_shut_ = false;
        }
        changed_.notify_all();
    }
    // By the writer's thread.
    void pass() {
        std::unique_lock lock(mutex_);
        if (!is_shut_) return;
        ++waiting_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return !is_shut_; });
        --waiting_;
    }
    // Returns once the writer's thread stands before the gate.
    void wait_for_somebody() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return waiting_ > 0; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_shut_ = false;
    int waiting_ = 0;
};

// A writer whose disk stands still with one step in hand and an empty queue.
class StalledWriterTest : public ::testing::Test {
  protected:
    void start(OverflowPolicy policy, std::chrono::milliseconds block_for, std::size_t queue_bytes) {
        make_run(memory_);
        FaultPlan plan;
        plan.before = [this](FileCall call, const std::string&) {
            if (call == FileCall::kAppend) gate_.pass();
        };
        files_ = std::make_unique<FaultFileSystem>(memory_, plan);
        WriterOptions options;
        options.overflow = policy;
        options.block_for = block_for;
        options.queue_bytes = queue_bytes;
        options.sync_interval = 0ms;
        writer_ = open_writer(*files_, options);
        add_tensors(*writer_);
        ASSERT_TRUE(writer_->flush(kLong));
        gate_.shut();
        writer_->append(sample_step(0));
        gate_.wait_for_somebody();  // the queue is empty now, and nobody takes from it
    }
    void finish() {
        gate_.open();
        ASSERT_TRUE(writer_->close(kLong).is_ok());
    }

    MemoryFileSystem memory_;
    Gate gate_;
    std::unique_ptr<FaultFileSystem> files_;
    std::unique_ptr<RunWriter> writer_;
};

// An item larger than the quota is taken when the queue is empty, and then it is full: so a quota of
// one byte holds exactly one step.
constexpr std::size_t kOneStep = 1;

TEST_F(StalledWriterTest, DropNewestDropsWhatDoesNotFitAndCountsIt) {
    start(OverflowPolicy::kDropNewest, kLong, kOneStep);
    for (std::uint64_t step = 1; step <= 4; ++step) writer_->append(sample_step(step, true));
    EXPECT_EQ(writer_->counts().steps_dropped, 3U);
    EXPECT_EQ(writer_->counts().raw_tensors_dropped, 6U);
    finish();
    EXPECT_EQ(writer_->counts().steps_written, 2U);
    EXPECT_EQ(read_steps(memory_), (std::vector<StepRecord>{sample_step(0), sample_step(1, true)}));
    auto run = read::Run::open("/run", memory_);
    EXPECT_EQ((*run)->totals().steps_dropped, 3U) << "what was dropped stands in the run";
    EXPECT_EQ((*run)->totals().raw_tensors_dropped, 6U);
}

TEST_F(StalledWriterTest, BlockForDropsAfterTheDeadline) {
    start(OverflowPolicy::kBlockFor, 1ms, kOneStep);
    writer_->append(sample_step(1));
    writer_->append(sample_step(2));  // waits for a millisecond in vain
    EXPECT_EQ(writer_->counts().steps_dropped, 1U);
    finish();
    EXPECT_EQ(read_steps(memory_), (std::vector<StepRecord>{sample_step(0), sample_step(1)}));
}

TEST_F(StalledWriterTest, ADiskThatStandsStillIsWaitedForOnceAndNotAtEachStep) {
    constexpr std::uint64_t kSteps = 300;
    start(OverflowPolicy::kBlockFor, 200ms, kOneStep);
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t step = 1; step <= kSteps; ++step) writer_->append(sample_step(step));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, kSteps * 200ms / 2);
    EXPECT_EQ(writer_->counts().steps_dropped, kSteps - 1);
    gate_.open();
    ASSERT_TRUE(writer_->flush(kLong));
    writer_->append(sample_step(kSteps + 1));
    finish();
    EXPECT_EQ(read_steps(memory_),
              (std::vector<StepRecord>{sample_step(0), sample_step(1), sample_step(kSteps + 1)}));
}

TEST_F(StalledWriterTest, PatienceForEverIsNoPatienceThatIsOver) {
    start(OverflowPolicy::kDropNewest, 0ms, std::size_t{1} << 20);
    {
        std::jthread opener([this] {
            std::this_thread::sleep_for(20ms);
            gate_.open();
        });
        EXPECT_TRUE(writer_->flush(std::chrono::nanoseconds::max()));
    }
    gate_.shut();
    writer_->append(sample_step(1));
    gate_.wait_for_somebody();
    std::jthread opener([this] {
        std::this_thread::sleep_for(20ms);
        gate_.open();
    });
    EXPECT_TRUE(writer_->close(std::chrono::nanoseconds::max()).is_ok());
    EXPECT_EQ(writer_->counts().steps_written, 2U);
}

TEST_F(StalledWriterTest, BlockForWaitsForRoom) {
    start(OverflowPolicy::kBlockFor, kLong, kOneStep);
    writer_->append(sample_step(1));
    std::jthread opener([this] { gate_.open(); });
    writer_->append(sample_step(2));
    opener.join();
    finish();
    EXPECT_EQ(writer_->counts().steps_dropped, 0U);
    EXPECT_EQ(read_steps(memory_).size(), 3U);
}

TEST_F(StalledWriterTest, KeepReductionsDropsTheWholeTensorsFirst) {
    // Room for some steps, not for a large whole tensor beside them.
    start(OverflowPolicy::kKeepReductionsOnly, 1ms, std::size_t{64} << 10);
    writer_->append(sample_step(1));
    StepRecord large = sample_step(2, true);
    large.raw[0].bytes.resize(std::size_t{64} << 10);
    writer_->append(std::move(large));
    EXPECT_EQ(writer_->counts().raw_tensors_dropped, 2U);
    EXPECT_EQ(writer_->counts().steps_dropped, 0U);
    finish();
    EXPECT_EQ(read_steps(memory_), (std::vector<StepRecord>{sample_step(0), sample_step(1), sample_step(2)}));
}

TEST_F(StalledWriterTest, KeepReductionsDropsTheStepWhenEvenThatDoesNotFit) {
    start(OverflowPolicy::kKeepReductionsOnly, 1ms, kOneStep);
    writer_->append(sample_step(1, true));  // taken whole: the queue is empty
    writer_->append(sample_step(2, true));
    EXPECT_EQ(writer_->counts().raw_tensors_dropped, 2U);
    EXPECT_EQ(writer_->counts().steps_dropped, 1U);
    finish();
    EXPECT_EQ(read_steps(memory_), (std::vector<StepRecord>{sample_step(0), sample_step(1, true)}));
}

TEST_F(StalledWriterTest, FlushGivesUpAfterItsPatience) {
    start(OverflowPolicy::kDropNewest, 0ms, std::size_t{1} << 20);
    EXPECT_FALSE(writer_->flush(1ms));
    gate_.open();
    EXPECT_TRUE(writer_->flush(kLong));
    EXPECT_EQ(writer_->counts().steps_written, 1U);
    finish();
}

TEST_F(StalledWriterTest, AThreadThatDoesNotAnswerIsLeftBehind) {
    start(OverflowPolicy::kDropNewest, 0ms, std::size_t{1} << 20);
    for (std::uint64_t step = 1; step <= 3; ++step) writer_->append(sample_step(step));
    const base::Status status = writer_->close(1ms);
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_EQ(writer_->close(kLong).code(), Code::kUnavailable) << "told again, not waited for again";
    writer_->append(sample_step(4));
    EXPECT_EQ(writer_->counts().steps_dropped, 4U) << "what was queued, and a step after the end";
    // The disk comes back: the thread finishes what it had in hand and ends, touching nothing else.
    gate_.open();
    EXPECT_TRUE(
        becomes_true([&] { return writer_->counts().steps_written + writer_->counts().steps_dropped >= 5; }));
    EXPECT_EQ(writer_->counts().steps_written, 1U);
    writer_.reset();
    wait_until_let_go(memory_);
    auto run = read::Run::open("/run", memory_);
    ASSERT_TRUE(run.is_ok());
    EXPECT_FALSE((*run)->is_complete());
    EXPECT_TRUE((*run)->damage().empty());
    EXPECT_EQ(read_steps(memory_), std::vector<StepRecord>{sample_step(0)});
}

TEST(RunWriterTest, StepsSurviveTheTrip) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options;
    options.seals_parts = false;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    std::vector<StepRecord> expected;
    for (std::uint64_t step = 0; step < 300; ++step) {
        expected.push_back(sample_step(step, step % 7 == 0));
        writer->append(sample_step(step, step % 7 == 0));
    }
    ASSERT_TRUE(writer->close(kLong).is_ok());
    const WriterCounts counts = writer->counts();
    EXPECT_EQ(counts.steps_written, 300U);
    EXPECT_EQ(counts.steps_dropped, 0U);
    EXPECT_FALSE(counts.failed);
    const storage::RunLayout layout{"/run"};
    EXPECT_EQ(counts.bytes_written,
              files.content(layout.log(0, 0)).size() + files.content(layout.blob(0, 0)).size());
    EXPECT_EQ(read_steps(files), expected);
}

TEST(RunWriterTest, AWholeTensorOfManyChunksSurvivesTheTrip) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    add_tensors(*writer);
    StepRecord record = sample_step(0, true);
    record.raw[0].bytes.resize((std::size_t{17} << 20) + 3);
    for (std::size_t i = 0; i < record.raw[0].bytes.size(); i += 1000)
        record.raw[0].bytes[i] = static_cast<std::byte>(i);
    writer->append(StepRecord(record));
    ASSERT_TRUE(writer->close(kLong).is_ok());
    const std::vector<StepRecord> back = read_steps(files);
    ASSERT_EQ(back.size(), 1U);
    EXPECT_TRUE(back[0] == record);
}

TEST(RunWriterTest, TensorsAddedBetweenStepsAreKnownToTheStepsAfter) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    const model::TensorTable tensors = testing::sample_tensors();
    for (std::uint64_t step = 0; step < tensors.size(); ++step) {
        writer->add_tensor(tensors[step]);
        StepRecord record;
        record.step = record.sequence = step;
        record.scalars = {{static_cast<model::TensorId>(step), 1.0}};
        writer->append(std::move(record));
    }
    ASSERT_TRUE(writer->close(kLong).is_ok());
    for (const StepRecord& record : read_steps(files)) EXPECT_EQ(record.scalars.size(), 1U);
}

TEST(RunWriterTest, AFlushedStepIsInTheFile) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    add_tensors(*writer);
    for (std::uint64_t step = 0; step < 20; ++step) {
        writer->append(sample_step(step));
        ASSERT_TRUE(writer->flush(kLong));
        EXPECT_EQ(read_steps(files).size(), step + 1);
    }
}

TEST(RunWriterTest, TheNextFreeWorkerDirectoryIsTaken) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options;
    options.worker = 2;
    auto first = open_writer(files, options);
    auto second = open_writer(files, options);
    EXPECT_EQ(first->worker(), 2U);
    EXPECT_EQ(second->worker(), 3U);
    ASSERT_TRUE(first->close(kLong).is_ok());
    first.reset();
    EXPECT_EQ(open_writer(files, options)->worker(), 4U) << "one that has ended is not written to again";
}

TEST(RunWriterTest, AWorkerWhoseDirectoryReadersWouldPassOverIsRefused) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options;
    options.run_directory = "/run";
    options.worker = 999'999'999;
    EXPECT_EQ(open_writer(files, options)->worker(), 999'999'999U);
    EXPECT_EQ(read::Run::open("/run", files).value()->workers(), std::vector<model::WorkerId>{999'999'999});
    EXPECT_EQ(RunWriter::open(files, options).status().code(), Code::kResourceExhausted);
    options.worker = 1'000'000'000;
    EXPECT_EQ(RunWriter::open(files, options).status().code(), Code::kInvalidArgument);
    options.worker = UINT32_MAX;
    EXPECT_EQ(RunWriter::open(files, options).status().code(), Code::kInvalidArgument);
}

TEST(RunWriterTest, ScalarsComeBackBitForBit) {
    using Limits = std::numeric_limits<double>;
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    add_tensors(*writer);
    const std::vector<double> values = {
        1e200, 1e308, Limits::max(),      -Limits::max(),      Limits::min(),       Limits::denorm_min(), 0.1,
        0.0,   -0.0,  Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN(), -Limits::quiet_NaN()};
    for (std::size_t i = 0; i < values.size(); ++i) {
        StepRecord record;
        record.step = record.sequence = i;
        record.scalars = {{2, values[i]}};
        writer->append(std::move(record));
    }
    ASSERT_TRUE(writer->close(kLong).is_ok());
    const std::vector<StepRecord> back = read_steps(files);
    ASSERT_EQ(back.size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_EQ(std::bit_cast<std::uint64_t>(back[i].scalars.at(0).value),
                  std::bit_cast<std::uint64_t>(values[i]))
            << values[i];
}

TEST(RunWriterTest, ATensorThatWasLostDoesNotMoveTheOthers) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    std::vector<model::TensorInfo> tensors(4);
    for (std::uint32_t id = 0; id < tensors.size(); ++id) {
        tensors[id].id = id;
        tensors[id].name = "weight/" + std::to_string(id);
        tensors[id].shape = {std::int64_t{10} + id};
        if (id != 1) writer->add_tensor(tensors[id]);  // for 1 there was no memory
    }
    // A last batch that has by chance as many elements as the tensor after it has.
    StepRecord record;
    record.tensors = {{2, {13, 0, 0, 0, 0, 1, 1, 1, 0, 13, 1}, {}}};
    writer->append(StepRecord(record));
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(read_steps(files), std::vector<StepRecord>{record});
}

TEST(RunWriterTest, AMissingRunDirectoryIsNotFound) {
    MemoryFileSystem files;
    WriterOptions options;
    options.run_directory = "/none";
    EXPECT_EQ(RunWriter::open(files, options).status().code(), Code::kNotFound);
}

TEST(RunWriterTest, CloseIsIdempotentAndFlushAfterItIsTrue) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    EXPECT_TRUE(writer->close(kLong).is_ok());
    EXPECT_TRUE(writer->close(kLong).is_ok());
    EXPECT_TRUE(writer->flush(0ns));
}

TEST(RunWriterTest, AStepLargerThanAFrameIsDroppedAlone) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    add_tensors(*writer);
    writer->append(sample_step(0));
    StepRecord large = sample_step(1, true);
    large.scalars.assign(2'000'000, {2, 1.0});  // 18 MB encoded
    writer->append(std::move(large));
    writer->append(sample_step(2));
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(writer->counts().steps_written, 2U);
    EXPECT_EQ(writer->counts().steps_dropped, 1U);
    EXPECT_EQ(writer->counts().raw_tensors_dropped, 2U);
    EXPECT_EQ(read_steps(files), (std::vector<StepRecord>{sample_step(0), sample_step(2)}));
}

// ------------------------------------------------------------------ parts

constexpr std::uint64_t kManySteps = 2000;

WriterOptions small_parts() {
    WriterOptions options;
    options.run_directory = "/run";
    options.part_bytes = 20'000;  // some 80 steps
    options.blob_bytes = 20'000;
    options.sync_interval = 1ms;
    return options;
}

std::vector<StepRecord> many_steps() {
    std::vector<StepRecord> steps;
    for (std::uint64_t step = 0; step < kManySteps; ++step) steps.push_back(sample_step(step, step % 4 == 0));
    return steps;
}

std::size_t count_files(const MemoryFileSystem& files, std::string_view suffix) {
    std::size_t count = 0;
    for (const std::string& path : files.paths()) count += path.ends_with(suffix) ? 1 : 0;
    return count;
}

TEST(PartsTest, FullPartsAreSealedWhileTheRecordGoesOn) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files, small_parts());
    writer->describe(testing::sample_meta());
    add_tensors(*writer);
    for (const StepRecord& step : many_steps()) {
        writer->append(StepRecord(step));
        if (step.step % 50 == 0) {
            ASSERT_TRUE(writer->flush(kLong));
        }
    }
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_GT(writer->counts().parts_sealed, 5U);
    EXPECT_EQ(count_files(files, ".seg"), writer->counts().parts_sealed);
    EXPECT_EQ(count_files(files, ".log"), 0U) << "close had all the time it wanted";
    EXPECT_GT(count_files(files, ".blob"), 1U);
    EXPECT_EQ(count_files(files, "reserve"), 0U);
    EXPECT_TRUE(read_steps(files) == many_steps());
    auto run = read::Run::open("/run", files);
    EXPECT_TRUE((*run)->is_complete());
    EXPECT_TRUE((*run)->damage().empty());
    EXPECT_EQ((*run)->worker_meta(0).host, "node1");
}

TEST(PartsTest, EachPartCanBeReadWithoutTheOthers) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options = small_parts();
    options.seals_parts = false;
    auto writer = open_writer(files, options);
    writer->describe(testing::sample_meta());
    add_tensors(*writer);
    for (const StepRecord& step : many_steps()) {
        writer->append(StepRecord(step));
        if (step.step % 50 == 0) {
            ASSERT_TRUE(writer->flush(kLong));
        }
    }
    ASSERT_TRUE(writer->close(kLong).is_ok());
    const std::size_t parts = count_files(files, ".log");
    ASSERT_GT(parts, 5U);
    const storage::RunLayout layout{"/run"};
    std::vector<StepRecord> together;
    for (std::uint32_t part = 0; part < parts; ++part) {
        MemoryFileSystem alone;
        make_run(alone);
        for (const std::string& path : files.paths())
            if (!path.ends_with(".log") || path == layout.log(0, part))
                alone.set_content(path, files.content(path));
        for (StepRecord& step : read_steps(alone)) together.push_back(std::move(step));
        auto run = read::Run::open("/run", alone);
        EXPECT_EQ((*run)->worker_meta(0).host, "node1") << part;
        EXPECT_EQ((*run)->tensors(0).size(), 4U) << part;
    }
    EXPECT_TRUE(together == many_steps());
}

TEST(PartsTest, WhatCannotBeSealedStaysALog) {
    MemoryFileSystem memory;
    make_run(memory);
    FaultPlan plan;
    plan.fails = [](FileCall call, const std::string& path) {
        return call == FileCall::kPutAtomic && path.ends_with(".seg");
    };
    FaultFileSystem files(memory, plan);
    auto writer = open_writer(files, small_parts());
    add_tensors(*writer);
    for (const StepRecord& step : many_steps()) {
        writer->append(StepRecord(step));
        if (step.step % 50 == 0) {
            ASSERT_TRUE(writer->flush(kLong));
        }
    }
    EXPECT_TRUE(writer->close(kLong).is_ok()) << "the record is whole all the same";
    EXPECT_EQ(writer->counts().parts_sealed, 0U);
    EXPECT_EQ(count_files(memory, ".seg"), 0U);
    EXPECT_TRUE(read_steps(memory) == many_steps());
}

TEST(PartsTest, ASlowSealerNeitherDelaysTheRecordNorTheEnd) {
    MemoryFileSystem memory;
    Gate gate;
    make_run(memory);
    gate.shut();
    FaultPlan plan;
    plan.before = [&gate](FileCall call, const std::string& path) {
        if (call == FileCall::kPutAtomic && path.ends_with(".seg")) gate.pass();
    };
    FaultFileSystem files(memory, plan);
    auto writer = open_writer(files, small_parts());
    add_tensors(*writer);
    for (const StepRecord& step : many_steps()) {
        writer->append(StepRecord(step));
        if (step.step % 50 == 0) {
            EXPECT_TRUE(writer->flush(kLong));
        }
    }
    gate.wait_for_somebody();
    EXPECT_TRUE(writer->flush(kLong));
    // It comes back although the sealer does not. On a busy machine the end itself may come too late.
    const base::Status closed = writer->close(100ms);
    if (closed.is_ok()) {
        EXPECT_TRUE((*read::Run::open("/run", memory))->is_complete());
    }
    EXPECT_EQ(writer->counts().steps_written, kManySteps);
    EXPECT_EQ(writer->counts().steps_dropped, 0U);
    EXPECT_EQ(count_files(memory, ".seg"), 0U);
    EXPECT_GT(count_files(memory, ".log"), 5U);
    EXPECT_TRUE(read_steps(memory) == many_steps());
    gate.open();
    wait_until_let_go(memory);
    EXPECT_GT(count_files(memory, ".seg"), 0U) << "what it had in hand";
}

TEST(PartsTest, OldStepsAreThinnedWhileTheRecordGoesOn) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options = small_parts();
    options.retention.keep_last = 300;
    options.retention.thin = 10;
    options.retention.keep_tensors = 300;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    for (const StepRecord& step : many_steps()) {
        writer->append(StepRecord(step));
        if (step.step % 50 == 0) {
            ASSERT_TRUE(writer->flush(kLong));
        }
    }
    ASSERT_TRUE(writer->close(kLong).is_ok());
    std::uint64_t old_train = 0;
    std::uint64_t young = 0;
    for (const StepRecord& step : read_steps(files)) {
        if (step.step >= kManySteps - 300) {
            EXPECT_TRUE(step == sample_step(step.step, step.step % 4 == 0)) << step.step;
            ++young;
        } else if (step.mode == model::Mode::kTrain && step.step < kManySteps - 1000) {
            EXPECT_EQ(step.step % 10, 0U);
            ++old_train;
        }
    }
    EXPECT_EQ(young, 300U);
    EXPECT_EQ(old_train, 100U);
    EXPECT_FALSE(files.exists(storage::RunLayout{"/run"}.blob(0, 0)));
    // A reader says so, and says nothing of damage.
    const auto run = read::Run::open("/run", files);
    ASSERT_TRUE(run.is_ok());
    const std::optional<format::Removals> removals = (*run)->removals();
    ASSERT_TRUE(removals.has_value());
    EXPECT_EQ(removals->steps, kManySteps - (*run)->totals().steps);
    EXPECT_GT(removals->bytes, 0U);
    EXPECT_FALSE(removals->last.empty());
    EXPECT_TRUE((*run)->damage().empty());
    // Spoilt, it hides no more than the numbers.
    files.set_content("/run/w0000/removed.json", base::ByteBuffer(3));
    EXPECT_EQ((*run)->removals(), format::Removals());
}

TEST(PartsTest, NothingRemovedIsNothingSaid) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_FALSE((*read::Run::open("/run", files))->removals().has_value());
}

// ------------------------------------------------------------------ what is lost is counted

// A writer that is left behind while its disk stands still with the first step's whole tensors, and `queued`
// steps behind it.
void expect_all_counted_when_left_behind(std::uint64_t queued) {
    MemoryFileSystem memory;
    Gate gate;
    make_run(memory);
    FaultPlan plan;
    plan.before = [&gate](FileCall call, const std::string& path) {
        if (call == FileCall::kAppend && path.ends_with(".blob")) gate.pass();
    };
    FaultFileSystem files(memory, plan);
    WriterOptions options;
    options.seals_parts = false;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    gate.shut();
    writer->append(sample_step(0, true));
    gate.wait_for_somebody();
    for (std::uint64_t step = 1; step <= queued; ++step) writer->append(sample_step(step, true));
    EXPECT_EQ(writer->close(1ms).code(), Code::kUnavailable);
    EXPECT_EQ(writer->counts().steps_dropped, queued) << "at once, whatever becomes of the thread";
    EXPECT_EQ(writer->counts().raw_tensors_dropped, 2 * queued);
    gate.open();
    EXPECT_TRUE(becomes_true([&] {
        const WriterCounts counts = writer->counts();
        return counts.steps_written + counts.steps_dropped >= queued + 1;
    })) << "steps are neither written nor counted";
    EXPECT_EQ(writer->counts().steps_dropped, queued + 1);
    EXPECT_EQ(writer->counts().raw_tensors_dropped, 2 * (queued + 1));
    wait_until_let_go(memory);
}

TEST(CountsTest, AWriterThatIsLeftBehindCountsWhatItHasInHand) { expect_all_counted_when_left_behind(0); }

TEST(CountsTest, AWriterThatIsLeftBehindCountsWhatIsQueued) { expect_all_counted_when_left_behind(20); }

TEST(CountsTest, WhatCannotBeOpenedForWantOfMemoryIsToldAndNotThrown) {
    int failing = 0;
    for (bool was_opened = false; !was_opened; ++failing) {
        MemoryFileSystem memory;
        make_run(memory);
        std::atomic<int> calls{0};
        FaultPlan plan;
        plan.before = [&](FileCall, const std::string&) {
            if (calls++ == failing) throw std::bad_alloc();
        };
        FaultFileSystem files(memory, plan);
        WriterOptions options;
        options.run_directory = "/run";
        options.sealer_nice = 0;
        const auto writer = RunWriter::open(files, options);
        was_opened = writer.is_ok();
        if (!was_opened) {
            EXPECT_EQ(writer.status().code(), Code::kResourceExhausted) << failing;
        }
    }
    EXPECT_GT(failing, 3) << "the directory, the lock, the log";
}

TEST(CountsTest, AStepThatFailsForWantOfMemoryIsCounted) {
    for (const int call : {0, 1}) {  // the blob's header, the tensors
        MemoryFileSystem memory;
        make_run(memory);
        std::atomic<int> calls{0};
        FaultPlan plan;
        plan.before = [&](FileCall kind, const std::string& path) {
            if (kind == FileCall::kAppend && path.ends_with(".blob") && calls++ == call)
                throw std::bad_alloc();
        };
        FaultFileSystem files(memory, plan);
        auto writer = open_writer(files);
        add_tensors(*writer);
        writer->append(sample_step(0));
        ASSERT_TRUE(writer->flush(kLong));
        for (std::uint64_t step = 1; step < 4; ++step) writer->append(sample_step(step, true));
        EXPECT_EQ(writer->close(kLong).code(), Code::kUnavailable);
        EXPECT_EQ(writer->counts().steps_written, 1U);
        EXPECT_EQ(writer->counts().steps_dropped, 3U);
        EXPECT_EQ(writer->counts().raw_tensors_dropped, 6U);
    }
}

// ------------------------------------------------------------------ errors that pass

// Some systems tell only at a sync that there was no room for what they took before.
TEST(FullDiskTest, ADiskThatIsFullOnlyAtASyncStopsWholeTensorsUntilThereIsRoom) {
    MemoryFileSystem memory;
    make_run(memory);
    std::atomic<bool> is_full{true};
    FaultPlan plan;
    plan.error = ENOSPC;
    plan.fails = [&](FileCall call, const std::string& path) {
        return is_full && call == FileCall::kSync && path.ends_with(".blob");
    };
    FaultFileSystem files(memory, plan);
    WriterOptions options;
    options.sync_interval = 1ms;
    options.probe_interval = 1ms;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    std::uint64_t step = 0;
    const auto deadline = std::chrono::steady_clock::now() + kLong;
    // Whether the whole tensors of one more step were taken.
    const auto takes_tensors = [&] {
        const std::uint64_t before = writer->counts().raw_tensors_dropped;
        writer->append(sample_step(step++, true));
        EXPECT_TRUE(writer->flush(kLong));
        return writer->counts().raw_tensors_dropped == before;
    };
    while (takes_tensors() && std::chrono::steady_clock::now() < deadline) continue;
    is_full = false;
    while (!takes_tensors() && std::chrono::steady_clock::now() < deadline) continue;
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    ASSERT_TRUE(writer->close(kLong).is_ok());
    const std::vector<StepRecord> steps = read_steps(memory);
    EXPECT_EQ(steps.size(), step) << "statistics were recorded all the time";
    EXPECT_TRUE(steps.back() == sample_step(step - 1, true));
}

TEST(FullDiskTest, ALogThatIsFullOnlyAtASyncGoesOnInWhatWasSetAside) {
    for (const std::chrono::milliseconds sync_interval :
         {1ms, 3'600'000ms}) {  // the second: none before the end
        MemoryFileSystem memory;
        make_run(memory);
        const storage::RunLayout layout{"/run"};
        std::atomic<bool> has_failed{false};
        FaultPlan plan;
        plan.error = ENOSPC;
        plan.fails = [&](FileCall call, const std::string& path) {
            // For as long as the reserve takes the room.
            const bool fails =
                call == FileCall::kSync && path.ends_with(".log") && memory.exists("/run/w0000/reserve");
            if (fails) has_failed = true;
            return fails;
        };
        FaultFileSystem files(memory, plan);
        WriterOptions options;
        options.sync_interval = sync_interval;
        options.probe_interval = kLong;
        options.seals_parts = false;
        auto writer = open_writer(files, options);
        add_tensors(*writer);
        std::uint64_t step = 0;
        EXPECT_TRUE(becomes_true([&] {
            writer->append(sample_step(step++));
            EXPECT_TRUE(writer->flush(kLong));
            return has_failed || sync_interval > 1s;
        }));
        for (int i = 0; i < 3; ++i) {
            writer->append(sample_step(step++));
            EXPECT_TRUE(writer->flush(kLong));
        }
        EXPECT_TRUE(writer->close(kLong).is_ok());
        EXPECT_TRUE(has_failed);
        EXPECT_EQ(writer->counts().steps_written, step);
        EXPECT_EQ(writer->counts().steps_dropped, 0U);
        EXPECT_FALSE(writer->counts().failure.empty()) << "it was said";
        EXPECT_EQ(writer->counts().bytes_written,
                  memory.content(layout.log(0, 0)).size() + memory.content(layout.log(0, 1)).size());
        EXPECT_EQ(memory.synced_bytes(layout.log(0, 1)), memory.content(layout.log(0, 1)).size());
        EXPECT_EQ(read_steps(memory).size(), step);
        EXPECT_TRUE((*read::Run::open("/run", memory))->is_complete());
        EXPECT_FALSE(memory.exists("/run/w0000/reserve"));
    }
}

TEST(PartsTest, APartThatCannotBeBegunIsTriedAgain) {
    MemoryFileSystem memory;
    make_run(memory);
    std::atomic<bool> is_refused{true};
    std::atomic<int> tries{0};
    FaultPlan plan;
    plan.fails = [&](FileCall call, const std::string& path) {
        if (call != FileCall::kCreate || !path.ends_with("000001.log")) return false;
        ++tries;
        return is_refused.load();
    };
    FaultFileSystem files(memory, plan);
    auto writer = open_writer(files, small_parts());
    add_tensors(*writer);
    ::testing::internal::CaptureStderr();
    std::uint64_t next = 0;
    const auto record = [&](std::uint64_t last) {
        for (; next < last; ++next) {
            writer->append(sample_step(next, next % 4 == 0));
            if (next % 10 == 0) {
                ASSERT_TRUE(writer->flush(kLong));
            }
        }
    };
    record(kManySteps / 2);
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_GT(tries, 5) << "with every quarter of a part that it grows";
    EXPECT_NE(told.find("000001.log"), std::string::npos) << told;
    EXPECT_EQ(told.find("000001.log"), told.rfind("000001.log")) << "said once: " << told;
    is_refused = false;
    record(kManySteps);
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_GT(count_files(memory, ".seg"), 5U);
    EXPECT_TRUE(read_steps(memory) == many_steps());
}

// Others remove and make files in it meanwhile.
void remove_while_it_is_written(const std::string& directory) {
    std::error_code error;
    ASSERT_TRUE(becomes_true([&] {
        std::filesystem::remove_all(directory, error);
        return !std::filesystem::exists(directory);
    }));
}

// What is said while a run is recorded whose directory is removed in the middle.
std::string told_of_a_run_that_is_removed(bool somebody_tells, const char* what = "") {
    const testing::TemporaryDirectory directory;
    const std::string run = directory.path() + "/run";
    storage::FileSystem& files = storage::posix_file_system();
    make_run(files, run);
    WriterOptions options = small_parts();
    options.run_directory = run;
    options.is_loss_told = [=] { return somebody_tells; };
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    ::testing::internal::CaptureStderr();
    for (std::uint64_t next = 0; next < kManySteps; ++next) {
        if (next == kManySteps / 2) {
            EXPECT_TRUE(writer->flush(kLong));
            remove_while_it_is_written(run + what);
        }
        writer->append(sample_step(next, next % 4 == 0));
        if (next % 10 == 0) static_cast<void>(writer->flush(kLong));
    }
    writer->close(kLong).ignore();
    EXPECT_TRUE(writer->counts().failed);
    return ::testing::internal::GetCapturedStderr();
}

TEST(PartsTest, ADirectoryThatIsRemovedIsSaidOnceAndNothingElseIs) {
    const std::string told = told_of_a_run_that_is_removed(false);
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
    EXPECT_NE(told.find("/run: the directory is gone: what was recorded in it is lost"), std::string::npos)
        << told;
}

TEST(PartsTest, ASupervisorTellsOfARunThatIsRemovedAndNotOfOneWorkers) {
    EXPECT_EQ(told_of_a_run_that_is_removed(true), "");
    const std::string told = told_of_a_run_that_is_removed(true, "/w0000");
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
    EXPECT_NE(told.find("/run/w0000: the directory is gone"), std::string::npos) << told;
}

// Nothing failed before: files that are open are written also where they have no name any more.
TEST(PartsTest, ARemovedDirectoryThatOnlyTheSealerMeetsIsNoPartThatStays) {
    const testing::TemporaryDirectory directory;
    const std::string run = directory.path() + "/run";
    storage::FileSystem& files = storage::posix_file_system();
    make_run(files, run);
    WriterOptions options;
    options.run_directory = run;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    writer->append(sample_step(0));
    ASSERT_TRUE(writer->flush(kLong));
    remove_while_it_is_written(run);
    ::testing::internal::CaptureStderr();
    writer->close(kLong).ignore();
    const std::string told = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
    EXPECT_EQ(told.find("nothing is lost"), std::string::npos) << told;
    EXPECT_NE(told.find("is gone"), std::string::npos) << told;
}

// The training has opened as many files as it may.
TEST(PartsTest, WithoutDescriptorsTheRecordGoesOnOrPausesAndResumes) {
#if defined(TRAINDBG_ADDRESS_SANITIZER)
    GTEST_SKIP() << "the sanitizer needs a pipe to look at an object's type";
#endif
    for (const auto sync_interval : {0ms, 1ms}) {
        const testing::TemporaryDirectory directory;
        storage::FileSystem& files = storage::posix_file_system();
        make_run(files, directory.path());
        WriterOptions options = small_parts();
        options.run_directory = directory.path();
        options.sync_interval = sync_interval;
        options.probe_interval = 1ms;
        options.reserve_bytes = 0;
        auto writer = open_writer(files, options);
        add_tensors(*writer);
        std::uint64_t next = 0;
        const auto record = [&](std::uint64_t last) {
            for (; next < last; ++next) {
                writer->append(sample_step(next, next % 4 == 0));
                if (next % 10 == 0) static_cast<void>(writer->flush(kLong));
            }
        };
        record(11);  // its log and its file of whole tensors are open
        ::testing::internal::CaptureStderr();
        rlimit limit{};
        ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
        const rlimit none{0, limit.rlim_max};
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
        record(kManySteps / 2);
        const base::Status refused = RunWriter::open(files, options).status();
        ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
        EXPECT_TRUE(becomes_true([&] { return !writer->counts().is_paused; }));
        record(kManySteps);
        ASSERT_TRUE(writer->close(kLong).is_ok());
        static_cast<void>(::testing::internal::GetCapturedStderr());  // each thing is said once only
        EXPECT_EQ(refused.code(), Code::kResourceExhausted) << refused.to_string();
        const WriterCounts counts = writer->counts();
        EXPECT_FALSE(counts.failed) << counts.failure;
        EXPECT_EQ(counts.steps_written + counts.steps_dropped, kManySteps);
        if (sync_interval == 0ms) {
            EXPECT_EQ(counts.steps_dropped, 0U) << "the log is open, only full";
        } else if (counts.steps_dropped != 0) {
            // A new file is not safe before its name is, and for that its directory is opened.
            EXPECT_NE(counts.failure.find("Too many open files"), std::string::npos) << counts.failure;
        }
        std::uint64_t raw_missing = 0;
        const std::vector<StepRecord> steps = read_steps(files, directory.path());
        EXPECT_EQ(steps.size(), counts.steps_written);
        for (const StepRecord& step : steps) {
            StepRecord expected = sample_step(step.step, step.step % 4 == 0);
            if (step.raw.empty()) raw_missing += std::exchange(expected.raw, {}).size();
            EXPECT_TRUE(step == expected) << step.step;
        }
        EXPECT_LE(raw_missing, counts.raw_tensors_dropped);
        ASSERT_FALSE(steps.empty());
        EXPECT_EQ(steps.back().step, kManySteps - 1) << "it goes on once there are some again";
    }
}

// ------------------------------------------------------------------ clocks

// Wall time is set back by a day and forward by hours while a training runs: it is recorded as it was, and
// nothing else depends on it.
TEST(ClockTest, AWallClockThatJumpsMovesNoStep) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options = small_parts();
    options.retention.keep_last = 300;
    options.retention.thin = 10;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    constexpr std::int64_t kHour = 3'600'000'000'000;
    const auto step_at = [](std::uint64_t number) {
        StepRecord record = sample_step(number);
        const std::int64_t jumps[] = {0, -24 * kHour, kHour, -record.wall_nanos, 200 * kHour};
        record.wall_nanos += jumps[number / 7 % std::size(jumps)];
        return record;
    };
    for (std::uint64_t number = 0; number < kManySteps; ++number) {
        writer->append(step_at(number));
        if (number % 50 == 0) {
            ASSERT_TRUE(writer->flush(kLong));
        }
    }
    ASSERT_TRUE(writer->close(kLong).is_ok());
    const auto tail = read::RunTail::open("/run", files);
    ASSERT_TRUE(tail.is_ok()) << tail.status().to_string();
    (*tail)->finish_when_idle();
    std::vector<std::uint64_t> steps;
    while (true) {
        const auto view = (*tail)->next(0ns);
        ASSERT_TRUE(view.is_ok()) << view.status().to_string();
        if (!view->has_value()) break;
        const StepRecord& record = *(**view).record;
        EXPECT_TRUE(record == step_at(record.step)) << record.step;
        EXPECT_TRUE(steps.empty() || steps.back() < record.step);
        steps.push_back(record.step);
    }
    for (std::uint64_t young = kManySteps - 300; young < kManySteps; ++young)
        EXPECT_TRUE(std::binary_search(steps.begin(), steps.end(), young)) << young;
    EXPECT_LT(steps.size(), kManySteps) << "the oldest by number were thinned";
    EXPECT_TRUE((*tail)->damage().empty());
}

// ------------------------------------------------------------------ the lock of the worker's directory

TEST(DirectoryLockTest, NobodyElseTouchesTheDirectoryFromItsFirstFileToTheLastCall) {
    MemoryFileSystem memory;
    make_run(memory);
    const storage::RunLayout layout{"/run"};
    const auto has_files = [&] {
        for (const std::string& path : memory.paths())
            if (path.starts_with(layout.worker_directory(0)) && path != layout.lock(0)) return true;
        return false;
    };
    std::atomic<int> looked{0};
    FaultPlan plan;
    plan.before = [&](FileCall, const std::string&) {
        if (!has_files()) return;
        const auto report = seal::compact_run(memory, "/run");
        ASSERT_TRUE(report.is_ok());
        EXPECT_EQ(report->workers_alive, std::vector<model::WorkerId>{0});
        ++looked;
    };
    FaultFileSystem files(memory, plan);
    WriterOptions options = small_parts();
    options.retention.keep_last = 300;
    options.retention.thin = 10;
    options.retention.keep_tensors = 300;
    {
        auto writer = open_writer(files, options);
        add_tensors(*writer);
        for (const StepRecord& step : many_steps()) {
            writer->append(StepRecord(step));
            if (step.step % 50 == 0) {
                ASSERT_TRUE(writer->flush(kLong));
            }
        }
        ASSERT_TRUE(writer->close(kLong).is_ok());
        EXPECT_GT(looked, 100);
        // Closed is closed, whoever still has the object.
        const auto report = seal::compact_run(memory, "/run");
        ASSERT_TRUE(report.is_ok());
        EXPECT_TRUE(report->workers_alive.empty());
        EXPECT_EQ(report->parts_sealed + report->logs_removed + report->leftovers_removed, 0U);
    }
}

TEST(DirectoryLockTest, ItIsLetGoAfterAFailureToo) {
    for (const bool seals_parts : {true, false}) {
        MemoryFileSystem memory;
        make_run(memory);
        FaultPlan plan;
        plan.fail_sync = true;
        FaultFileSystem files(memory, plan);
        WriterOptions options = small_parts();
        options.seals_parts = seals_parts;
        auto writer = open_writer(files, options);
        add_tensors(*writer);
        writer->append(sample_step(0));
        EXPECT_FALSE(writer->close(kLong).is_ok());
        EXPECT_TRUE(seal::lock_worker(memory, {"/run"}, 0).is_ok());
    }
}

// A file system as there are some on the network.
class FileSystemWithoutLocks final : public storage::FileSystem {
  public:
    explicit FileSystemWithoutLocks(storage::FileSystem& files) : files_(files) {}
    base::Result<std::unique_ptr<storage::AppendFile>> create(const std::string& path) override {
        return files_.create(path);
    }
    base::Result<std::unique_ptr<storage::ReadFile>> open(const std::string& path) override {
        return files_.open(path);
    }
    base::Status put_atomic(const std::string& path, base::ByteSpan bytes) override {
        return files_.put_atomic(path, bytes);
    }
    base::Status create_directories(const std::string& path) override {
        return files_.create_directories(path);
    }
    base::Status create_directory(const std::string& path) override { return files_.create_directory(path); }
    base::Result<std::vector<storage::DirectoryEntry>> list(const std::string& path) override {
        return files_.list(path);
    }
    base::Status remove(const std::string& path) override { return files_.remove(path); }
    bool exists(const std::string& path) override { return files_.exists(path); }

  private:
    storage::FileSystem& files_;
};

TEST(DirectoryLockTest, ARunIsWrittenAndReadWhereThereAreNoLocksAndLeftAlone) {
    MemoryFileSystem memory;
    make_run(memory);
    FileSystemWithoutLocks files(memory);
    WriterOptions options;
    options.seals_parts = false;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    writer->append(sample_step(0));
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(read_steps(files).size(), 1U);
    const auto report = seal::compact_run(files, "/run");
    ASSERT_TRUE(report.is_ok());
    EXPECT_EQ(report->parts_sealed, 0U);
    ASSERT_EQ(report->problems.size(), 1U);
    EXPECT_NE(report->problems[0].find("has no locks"), std::string::npos) << report->problems[0];
}

// ------------------------------------------------------------------ whole tensors from the arena

// A tensor of floats that count up from `first`, as capture hands it over.
std::optional<WholeTensor> floats_in_arena(RunWriter& writer, std::size_t count, float first) {
    std::optional<ArenaBlock> room = writer.take_room(count * sizeof(float));
    if (!room) return std::nullopt;
    auto* values = reinterpret_cast<float*>(room->bytes().data());
    for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<float>(i);
    return WholeTensor{0, tensor::DType::kFloat32, {static_cast<std::int64_t>(count)}, std::move(*room), {}};
}

void expect_floats(const model::RawTensor& raw, std::size_t count, float first) {
    ASSERT_EQ(raw.bytes.size(), count * sizeof(float));
    const auto* values = reinterpret_cast<const float*>(raw.bytes.data());
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(values[i], first + static_cast<float>(i)) << i;
}

// Whether the process has a mapping of just this place and size: not what others may have put there since.
bool is_mapped(const std::byte* place, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(place);
    std::ostringstream range;
    range << std::hex << begin << '-' << begin + bytes << ' ';
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);)
        if (line.starts_with(range.str())) return true;
    return false;
}

TEST(WholeTensorsTest, AClosedWriterGivesTheirMemoryBackOnceNoBlockIsInUse) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options;
    options.arena_bytes = 17 << 20;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    std::optional<ArenaBlock> block = writer->take_room(1000);
    ASSERT_TRUE(block.has_value());
    const std::byte* const place = block->bytes().data();
    ASSERT_TRUE(writer->close(kLong).is_ok());
    block->bytes()[0] = std::byte{1};  // it is there for whoever still has a part of it
    EXPECT_TRUE(is_mapped(place, options.arena_bytes));
    EXPECT_FALSE(writer->take_room(1000).has_value()) << "and made for nobody again";
    block.reset();
    EXPECT_FALSE(is_mapped(place, options.arena_bytes));
}

TEST(WholeTensorsTest, WhereNothingIsSyncedAFullFileIsClosed) {
    const testing::TemporaryDirectory directory;
    const std::string path = std::filesystem::canonical(directory.path()).string() + "/run";
    make_run(storage::posix_file_system(), path);
    WriterOptions options;
    options.run_directory = path;
    options.blob_bytes = 1;  // a blob per step
    options.sync_interval = 0ms;
    options.seals_parts = false;
    auto writer = open_writer(storage::posix_file_system(), options);
    add_tensors(*writer);
    for (std::uint64_t step = 0; step < 20; ++step) writer->append(sample_step(step, true));
    ASSERT_TRUE(writer->flush(kLong));
    const storage::RunLayout layout{path};
    EXPECT_TRUE(std::filesystem::exists(layout.blob(0, 19)));
    std::size_t open_files = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
        if (!file.starts_with(path) || !file.ends_with(".blob")) continue;
        EXPECT_EQ(file, layout.blob(0, 19));
        ++open_files;
    }
    EXPECT_GT(open_files, 0U);
    EXPECT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(read_steps(storage::posix_file_system(), path).size(), 20U);
}

TEST(WholeTensorsTest, AStepLargerThanTheArenaKeepsItsStatisticsAndDoesNotWaitForItself) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options;
    options.arena_bytes = 1 << 20;
    options.overflow = OverflowPolicy::kBlockFor;
    options.block_for = std::chrono::hours(1);  // the test would not end
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    constexpr std::size_t kThird = (std::size_t{1} << 20) / sizeof(float) / 3;
    for (std::uint64_t step = 0; step < 2; ++step) {
        StepRecord record;
        record.step = record.sequence = step;
        record.scalars = {{2, 1.0}};
        std::vector<WholeTensor> taken;
        std::uint64_t left_out = 0;
        for (int i = 0; i < 5; ++i) {
            if (auto tensor = floats_in_arena(*writer, kThird, 0)) taken.push_back(std::move(*tensor));
            else ++left_out;
        }
        EXPECT_GE(left_out, 2U);
        writer->append(std::move(record), std::move(taken), left_out);
        ASSERT_TRUE(writer->flush(kLong));
    }
    EXPECT_EQ(writer->counts().steps_written, 2U);
    EXPECT_EQ(writer->counts().steps_dropped, 0U);
    EXPECT_GE(writer->counts().raw_tensors_dropped, 4U);
}

TEST(WholeTensorsTest, TensorsOfAllSizesGoToTheDiskFromWhereTheyLie) {
    const testing::TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    make_run(files, directory.path());
    WriterOptions options;
    options.run_directory = directory.path();
    options.arena_bytes = 8 << 20;  // goes round some times
    options.overflow = OverflowPolicy::kBlockFor;
    options.block_for = kLong;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    const std::vector<std::size_t> sizes = {1, 15, 16, 17, 1000, 100'000, 300'001, 70'000};
    constexpr std::uint64_t kTurns = 20;
    for (std::uint64_t step = 0; step < kTurns; ++step) {
        StepRecord record;
        record.step = record.sequence = step;
        std::vector<WholeTensor> tensors;
        for (const std::size_t size : sizes) {
            auto tensor = floats_in_arena(*writer, size, static_cast<float>(step));
            ASSERT_TRUE(tensor.has_value());
            tensors.push_back(std::move(*tensor));
        }
        writer->append(std::move(record), std::move(tensors));
    }
    ASSERT_TRUE(writer->close(kLong).is_ok());
    const std::vector<StepRecord> back = read_steps(files, directory.path());
    ASSERT_EQ(back.size(), kTurns);
    for (const StepRecord& step : back) {
        ASSERT_EQ(step.raw.size(), sizes.size());
        for (std::size_t i = 0; i < sizes.size(); ++i)
            expect_floats(step.raw[i], sizes[i], static_cast<float>(step.step));
    }
}

TEST(WholeTensorsTest, AFullArenaTakesTheTensorOrTheStepAsThePolicySays) {
    for (const OverflowPolicy policy :
         {OverflowPolicy::kKeepReductionsOnly, OverflowPolicy::kDropNewest, OverflowPolicy::kBlockFor}) {
        MemoryFileSystem memory;
        make_run(memory);
        Gate gate;
        FaultPlan plan;
        plan.before = [&gate](FileCall call, const std::string&) {
            if (call == FileCall::kAppend) gate.pass();
        };
        FaultFileSystem files(memory, plan);
        WriterOptions options;
        options.overflow = policy;
        options.block_for = 1ms;
        options.arena_bytes = 1 << 20;
        auto writer = open_writer(files, options);
        add_tensors(*writer);
        ASSERT_TRUE(writer->flush(kLong));
        gate.shut();
        constexpr std::size_t kHalf = (std::size_t{1} << 20) / sizeof(float) / 2;
        const auto append = [&](std::uint64_t step, std::uint64_t tensors) {
            StepRecord record;
            record.step = record.sequence = step;
            record.scalars = {{2, 1.0}};
            std::vector<WholeTensor> taken;
            std::uint64_t left_out = 0;
            for (std::uint64_t i = 0; i < tensors; ++i) {
                if (auto tensor = floats_in_arena(*writer, kHalf, 0)) taken.push_back(std::move(*tensor));
                else ++left_out;
            }
            writer->append(std::move(record), std::move(taken), left_out);
        };
        append(0, 2);  // the arena is full
        append(1, 1);
        append(2, 0);
        const bool keeps = policy == OverflowPolicy::kKeepReductionsOnly;
        EXPECT_EQ(writer->counts().raw_tensors_dropped, 1U);
        EXPECT_EQ(writer->counts().steps_dropped, keeps ? 0U : 1U);
        EXPECT_FALSE(writer->take_room(2 << 20).has_value()) << "larger than all of it";
        gate.open();
        ASSERT_TRUE(writer->flush(kLong));
        append(3, 1);
        EXPECT_TRUE(writer->close(kLong).is_ok());
        const std::vector<StepRecord> back = read_steps(memory);
        ASSERT_EQ(back.size(), keeps ? 4U : 3U);
        EXPECT_EQ(back.front().raw.size(), 2U);
        EXPECT_EQ(back.back().raw.size(), 1U) << "the memory came back";
    }
}

TEST(WholeTensorsTest, AnErrorInTheMiddleKeepsThoseThatAreWhole) {
    MemoryFileSystem memory;
    make_run(memory);
    FaultPlan plan;
    std::atomic<int> appends{0};
    plan.tear_append = true;
    plan.fails = [&](FileCall call, const std::string& path) {
        // The header, then stretches of 8 MiB: the third append is torn.
        return call == FileCall::kAppend && path.ends_with(".blob") && ++appends == 3;
    };
    FaultFileSystem files(memory, plan);
    WriterOptions options;
    options.arena_bytes = 32 << 20;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    StepRecord record;
    std::vector<WholeTensor> tensors;
    for (int i = 0; i < 20; ++i) tensors.push_back(*floats_in_arena(*writer, 250'000, static_cast<float>(i)));
    writer->append(std::move(record), std::move(tensors));
    writer->append(sample_step(1, true));
    EXPECT_TRUE(writer->close(kLong).is_ok());
    const std::vector<StepRecord> back = read_steps(memory);
    ASSERT_EQ(back.size(), 2U);
    EXPECT_GT(back[0].raw.size(), 9U) << "the first stretch and half of the second";
    EXPECT_LT(back[0].raw.size(), 20U);
    for (std::size_t i = 0; i < back[0].raw.size(); ++i)
        expect_floats(back[0].raw[i], 250'000, static_cast<float>(i));
    EXPECT_TRUE(back[1].raw.empty()) << "whole tensors ended";
    EXPECT_EQ(writer->counts().raw_tensors_dropped, 20 - back[0].raw.size() + 2);
}

// ------------------------------------------------------------------ a disk that gets full

TEST(FullDiskTest, TensorsStopFirstThenTheReserveIsUsedThenStepsAreCounted) {
    MemoryFileSystem memory;
    make_run(memory);
    FaultPlan plan;
    plan.space_bytes = 100'000;
    FaultFileSystem files(memory, plan);
    WriterOptions options;
    options.sync_interval = 1ms;
    options.reserve_bytes = 40'000;
    options.probe_interval = 1ms;
    options.seals_parts = false;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    std::uint64_t step = 0;
    const auto append = [&] {
        StepRecord record = sample_step(step, true);
        record.raw[0].bytes.resize(4800);
        record.raw[0].shape = {1200};
        writer->append(std::move(record));
        static_cast<void>(writer->flush(kLong));
        ++step;
    };
    while (writer->counts().raw_tensors_dropped == 0) append();
    EXPECT_EQ(writer->counts().steps_dropped, 0U);
    const std::uint64_t tensors_stopped_at = step;
    while (writer->counts().steps_dropped == 0) append();
    EXPECT_GT(step, tensors_stopped_at + 50) << "the reserve held for some more";
    EXPECT_TRUE(writer->counts().is_paused);
    EXPECT_FALSE(writer->counts().failed);
    for (int i = 0; i < 10; ++i) append();
    // Somebody removes a large file.
    files.add_space(1'000'000);
    while (writer->counts().is_paused) append();
    const std::uint64_t resumed_at = step;
    for (int i = 0; i < 10; ++i) append();
    EXPECT_TRUE(writer->close(kLong).is_ok());
    const WriterCounts counts = writer->counts();
    EXPECT_EQ(counts.steps_written + counts.steps_dropped, step);
    const std::vector<StepRecord> back = read_steps(memory);
    EXPECT_EQ(back.size(), counts.steps_written);
    EXPECT_EQ(back.back().step, step - 1);
    EXPECT_EQ(back.back().raw.size(), 2U) << "whole tensors are back as well";
    EXPECT_GE(back.back().step, resumed_at);
    auto run = read::Run::open("/run", memory);
    EXPECT_TRUE((*run)->is_complete());
    EXPECT_EQ((*run)->totals().steps_dropped, counts.steps_dropped) << "what is missing stands in the run";
    EXPECT_EQ((*run)->totals().raw_tensors_dropped, counts.raw_tensors_dropped);
    EXPECT_FALSE(memory.exists("/run/w0000/reserve"));
}

TEST(FullDiskTest, IsSaidInOneLineWithTensorsAndWithoutAndAlsoWhereNothingCanBeSealed) {
    for (const bool with_tensors : {true, false}) {
        MemoryFileSystem memory;
        make_run(memory);
        FaultPlan plan;
        plan.space_bytes = 100'000;
        FaultFileSystem files(memory, plan);
        WriterOptions options = small_parts();
        options.reserve_bytes = 20'000;
        options.part_bytes = 30'000;
        auto writer = open_writer(files, options);
        add_tensors(*writer);
        ::testing::internal::CaptureStderr();
        for (std::uint64_t step = 0; writer->counts().steps_dropped < 5; ++step) {
            writer->append(sample_step(step, with_tensors));
            static_cast<void>(writer->flush(kLong));
        }
        writer->close(kLong).ignore();
        const std::string told = ::testing::internal::GetCapturedStderr();
        EXPECT_EQ(std::count(told.begin(), told.end(), '\n'), 1) << told;
        EXPECT_NE(told.find("No space left"), std::string::npos) << told;
        EXPECT_NE(told.find(with_tensors ? "is full: whole tensors are not"
                                         : "is full: recording goes on in the room"),
                  std::string::npos)
            << told;
    }
}

TEST(FullDiskTest, AtTheQuotaTensorsStopBeforeStatistics) {
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options;
    options.retention.quota_bytes = 100'000;
    options.probe_interval = 1ms;
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    std::uint64_t step = 0;
    while (!writer->counts().is_paused) {
        StepRecord record = sample_step(step++, true);
        record.raw[0].bytes.resize(4800);
        record.raw[0].shape = {1200};
        writer->append(std::move(record));
        static_cast<void>(writer->flush(kLong));
        ASSERT_LT(step, 10'000U);
    }
    for (int i = 0; i < 5; ++i) writer->append(sample_step(step++));
    EXPECT_EQ(writer->close(kLong).code(), Code::kUnavailable);
    const WriterCounts counts = writer->counts();
    EXPECT_NE(counts.failure.find("quota"), std::string::npos) << counts.failure;
    EXPECT_GT(counts.raw_tensors_dropped, 20U) << "whole tensors stopped long before";
    EXPECT_GE(counts.steps_dropped, 5U);
    std::uint64_t bytes = 0;
    for (const std::string& path : files.paths()) bytes += files.content(path).size();
    EXPECT_LT(bytes, 110'000U);
    auto run = read::Run::open("/run", files);
    EXPECT_TRUE((*run)->is_complete()) << "the end is written all the same";
    EXPECT_EQ((*run)->totals().steps_dropped, counts.steps_dropped);
}

// ------------------------------------------------------------------ file systems that fail

constexpr std::uint64_t kSteps = 12;

// Records a small run and returns what became of it; nothing when the writer did not even open.
std::optional<WriterCounts> record_small_run(storage::FileSystem& files) {
    WriterOptions options;
    options.run_directory = "/run";
    options.sync_interval = 1ms;
    auto writer = RunWriter::open(files, options);
    if (!writer.is_ok()) return std::nullopt;
    add_tensors(**writer);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
        (*writer)->append(sample_step(step, step % 3 == 0));
        static_cast<void>((*writer)->flush(kLong));
    }
    (*writer)->close(kLong).ignore();
    return (*writer)->counts();
}

TEST(FailingDiskTest, AnErrorAtAnyCallIsSurvivedAndCounted) {
    std::uint64_t calls = 0;
    {
        MemoryFileSystem memory;
        make_run(memory);
        FaultFileSystem files(memory, FaultPlan{});
        ASSERT_TRUE(record_small_run(files).has_value());
        calls = files.calls();
    }
    for (const bool keep_failing : {true, false}) {
        // Syncs come by the clock, so the number of calls differs a little from run to run.
        for (std::uint64_t call = 0; call < calls; ++call) {
            MemoryFileSystem memory;
            make_run(memory);
            FaultPlan plan;
            plan.fail_at_call = call;
            plan.keep_failing = keep_failing;
            FaultFileSystem files(memory, plan);
            const std::optional<WriterCounts> counts = record_small_run(files);
            if (!counts) continue;
            EXPECT_EQ(counts->steps_written + counts->steps_dropped, kSteps) << call;
            const std::vector<StepRecord> back = read_steps(memory);
            EXPECT_EQ(back.size(), counts->steps_written) << call;
            for (const StepRecord& record : back) {
                // With its whole tensors or, where their file failed, with those before: never with
                // wrong ones.
                StepRecord expected = sample_step(record.step, record.step % 3 == 0);
                ASSERT_LE(record.raw.size(), expected.raw.size());
                expected.raw.resize(record.raw.size());
                EXPECT_TRUE(record == expected) << call;
            }
            if (counts->steps_dropped != 0) {
                EXPECT_EQ(counts->failed, keep_failing) << "after one error a new part is begun";
                EXPECT_NE(counts->failure.find("injected"), std::string::npos);
            }
        }
    }
}

TEST(FailingDiskTest, AFullDiskKeepsWhatFits) {
    MemoryFileSystem whole;
    make_run(whole);
    ASSERT_TRUE(record_small_run(whole).has_value());
    std::uint64_t bytes = 0;
    for (const std::string& path : whole.paths()) bytes += whole.content(path).size();
    for (std::uint64_t space = 0; space < bytes; space += 37) {
        MemoryFileSystem memory;
        make_run(memory);
        FaultPlan plan;
        plan.space_bytes = space;
        FaultFileSystem files(memory, plan);
        const std::optional<WriterCounts> counts = record_small_run(files);
        if (!counts) continue;
        EXPECT_EQ(counts->steps_written + counts->steps_dropped, kSteps) << space;
        EXPECT_EQ(read_steps(memory).size(), counts->steps_written) << space;
    }
}

TEST(FailingDiskTest, AfterOneErrorTheRecordGoesOnInANewPart) {
    for (const FileCall failing : {FileCall::kAppend, FileCall::kSync}) {
        MemoryFileSystem memory;
        make_run(memory);
        FaultPlan plan;
        std::atomic<bool> fails_next{false};
        plan.tear_append = true;
        plan.fails = [&](FileCall call, const std::string& path) {
            return call == failing && path.ends_with(".log") && fails_next.exchange(false);
        };
        FaultFileSystem files(memory, plan);
        WriterOptions options;
        options.sync_interval = 1ms;
        auto writer = open_writer(files, options);
        add_tensors(*writer);
        for (std::uint64_t step = 0; step < 3; ++step) writer->append(sample_step(step));
        ASSERT_TRUE(writer->flush(kLong));
        fails_next = true;
        for (std::uint64_t step = 3; fails_next; ++step) {
            writer->append(sample_step(step));
            static_cast<void>(writer->flush(kLong));
            ASSERT_LT(step, 10'000U);
        }
        writer->append(sample_step(20'000));
        EXPECT_TRUE(writer->close(kLong).is_ok());
        const WriterCounts counts = writer->counts();
        EXPECT_FALSE(counts.failed);
        EXPECT_NE(counts.failure.find("injected"), std::string::npos) << "it was said";
        const std::vector<StepRecord> back = read_steps(memory);
        EXPECT_EQ(back.size(), counts.steps_written);
        ASSERT_FALSE(back.empty());
        EXPECT_TRUE(back.back() == sample_step(20'000)) << "in the second part, which describes its tensors";
        EXPECT_TRUE(memory.exists(storage::RunLayout{"/run"}.segment(0, 1)));
        auto run = read::Run::open("/run", memory);
        EXPECT_TRUE((*run)->is_complete());
        EXPECT_EQ((*run)->totals().steps_dropped, counts.steps_dropped);
    }
}

TEST(FailingDiskTest, AFailedSyncEndsTheRecording) {
    MemoryFileSystem memory;
    make_run(memory);
    FaultPlan plan;
    plan.fail_sync = true;
    FaultFileSystem files(memory, plan);
    auto writer = open_writer(files);
    add_tensors(*writer);
    writer->append(sample_step(0));
    EXPECT_EQ(writer->close(kLong).code(), Code::kUnavailable);
    EXPECT_TRUE(writer->counts().failed);
    EXPECT_EQ(read_steps(memory).size(), 1U);
}

TEST(FailingDiskTest, AFailedSyncOfOneFileOfTensorsLeavesTheOthersTheirs) {
    for (const int error : {EIO, ENOSPC}) {
        MemoryFileSystem memory;
        make_run(memory);
        FaultPlan plan;
        plan.error = error;
        plan.fails = [](FileCall call, const std::string& path) {
            return call == FileCall::kSync && path.ends_with("000000.blob");
        };
        FaultFileSystem files(memory, plan);
        WriterOptions options;
        options.blob_bytes = 1;  // a blob per step
        options.sync_interval = std::chrono::hours(1);
        options.seals_parts = false;
        auto writer = open_writer(files, options);
        add_tensors(*writer);
        for (std::uint64_t step = 0; step < 4; ++step) writer->append(sample_step(step, true));
        EXPECT_TRUE(writer->close(kLong).is_ok());
        const storage::RunLayout layout{"/run"};
        EXPECT_EQ(memory.synced_bytes(layout.blob(0, 0)), 0U);
        for (std::uint32_t blob = 1; blob < 4; ++blob)
            EXPECT_EQ(memory.synced_bytes(layout.blob(0, blob)), memory.content(layout.blob(0, blob)).size())
                << "the log names its tensors: blob " << blob;
        EXPECT_GT(memory.synced_bytes(layout.log(0, 0)), 0U);
    }
}

TEST(FailingDiskTest, WithoutRoomForWholeTensorsTheStatisticsGoOn) {
    MemoryFileSystem memory;
    make_run(memory);
    struct RawRefused final : storage::FileSystem {
        explicit RawRefused(storage::FileSystem& inner) : inner_(inner) {}
        base::Result<std::unique_ptr<storage::AppendFile>> create(const std::string& path) override {
            if (path.ends_with(".blob")) return base::Status::from_errno(path, ENOSPC);
            return inner_.create(path);
        }
        base::Result<std::unique_ptr<storage::ReadFile>> open(const std::string& path) override {
            return inner_.open(path);
        }
        base::Status put_atomic(const std::string& path, base::ByteSpan bytes) override {
            return inner_.put_atomic(path, bytes);
        }
        base::Status create_directories(const std::string& path) override {
            return inner_.create_directories(path);
        }
        base::Status create_directory(const std::string& path) override {
            return inner_.create_directory(path);
        }
        base::Result<std::vector<storage::DirectoryEntry>> list(const std::string& path) override {
            return inner_.list(path);
        }
        base::Status remove(const std::string& path) override { return inner_.remove(path); }
        bool exists(const std::string& path) override { return inner_.exists(path); }
        storage::FileSystem& inner_;
    } files(memory);
    const std::optional<WriterCounts> counts = record_small_run(files);
    ASSERT_TRUE(counts.has_value());
    EXPECT_FALSE(counts->failed);
    EXPECT_EQ(counts->steps_written, kSteps);
    EXPECT_EQ(counts->raw_tensors_dropped, 8U);
    EXPECT_FALSE(counts->failure.empty());
    EXPECT_EQ(read_steps(memory).size(), kSteps);
}

TEST(FailingDiskTest, AfterAPowerLossSyncedStepsAreThereAndNoWrongOnes) {
    for (const auto unsynced :
         {storage::UnsyncedBytes::kLost, storage::UnsyncedBytes::kHalf, storage::UnsyncedBytes::kZeroed}) {
        MemoryFileSystem memory;
        make_run(memory);
        WriterOptions options;
        options.sync_interval = 1ms;
        auto writer = open_writer(memory, options);
        add_tensors(*writer);
        for (std::uint64_t step = 0; step < kSteps / 2; ++step) writer->append(sample_step(step, true));
        ASSERT_TRUE(writer->flush(kLong));
        const std::string log = storage::RunLayout{"/run"}.log(0, 0);
        while (memory.synced_bytes(log) < memory.content(log).size()) std::this_thread::sleep_for(1ms);
        for (std::uint64_t step = kSteps / 2; step < kSteps; ++step) writer->append(sample_step(step, true));
        ASSERT_TRUE(writer->flush(kLong));
        memory.lose_power(unsynced);
        std::uint64_t next = 0;
        for (const StepRecord& record : read_steps(memory)) {
            EXPECT_TRUE(record == sample_step(next, true)) << next;
            ++next;
        }
        EXPECT_GE(next, kSteps / 2);
    }
}

// ------------------------------------------------------------------ processes and threads

// Nobody has asked for the number before, where this test runs alone: it is counted from the start, so that
// no thread has to begin with that while another one forks.
TEST(ForkTest, AChildIsAnotherGenerationWhoeverAsksFirst) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(base::fork_generation() == 0 ? 1 : 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

TEST(ForkTest, AWriterDoesNothingInTheChild) {
    const testing::TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    make_run(files, directory.path());
    WriterOptions options;
    options.run_directory = directory.path();
    auto writer = open_writer(files, options);
    add_tensors(*writer);
    writer->append(sample_step(0));
    const pid_t child = ::fork();
    if (child == 0) {
        writer->append(sample_step(1));
        writer->event("child", "{}");
        const bool nothing = !writer->flush(0ns) && writer->counts().steps_written == 0;
        const bool closes = writer->close(kLong).is_ok();
        writer.reset();
        ::_exit(nothing && closes ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    writer->append(sample_step(2));
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(read_steps(files, directory.path()), (std::vector<StepRecord>{sample_step(0), sample_step(2)}));
}

TEST(ForkTest, TheChildMayOpenAWriterOfItsOwn) {
#if defined(TRAINDBG_THREAD_SANITIZER)
    GTEST_SKIP() << "ThreadSanitizer does not let the child of a threaded process start a thread";
#endif
    const testing::TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    make_run(files, directory.path());
    WriterOptions options;
    options.run_directory = directory.path();
    auto writer = open_writer(files, options);
#if defined(TRAINDBG_ADDRESS_SANITIZER)
    // A fork does not free the locks of its allocator, and a thread that is just starting holds one.
    ASSERT_TRUE(writer->flush(kLong));
#endif
    const pid_t child = ::fork();
    if (child == 0) {
        auto own = RunWriter::open(files, options);
        if (!own.is_ok()) ::_exit(1);
        for (const model::TensorInfo& info : testing::sample_tensors()) (*own)->add_tensor(info);
        (*own)->append(sample_step(5));
        ::_exit((*own)->close(kLong).is_ok() && (*own)->worker() == 1 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(read_steps(files, directory.path()), std::vector<StepRecord>{sample_step(5)});
}

// A training that is killed while the workers of its data loader live on for a while.
TEST(ForkTest, AChildThatOutlivesTheTrainingDoesNotHoldItsDirectory) {
#if defined(TRAINDBG_THREAD_SANITIZER)
    GTEST_SKIP() << "ThreadSanitizer does not let the child of a threaded process start a thread";
#endif
    const testing::TemporaryDirectory directory;
    storage::FileSystem& files = storage::posix_file_system();
    make_run(files, directory.path());
    int begun[2];
    int done[2];
    ASSERT_EQ(::pipe(begun), 0);
    ASSERT_EQ(::pipe(done), 0);
    const pid_t training = ::fork();
    if (training == 0) {
        ::close(done[1]);
        WriterOptions options;
        options.run_directory = directory.path();
        auto writer = RunWriter::open(files, options);
        if (!writer.is_ok()) ::_exit(1);
        for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
        (*writer)->append(sample_step(0));
        if (!(*writer)->flush(kLong)) ::_exit(2);
        char word = 0;
        const pid_t loader = ::fork();
        if (loader == 0) {
            if (::write(begun[1], &word, 1) != 1 || ::read(done[0], &word, 1) != 0) ::_exit(1);
            ::_exit(0);
        }
        while (true) ::pause();
    }
    char word = 0;
    ASSERT_EQ(::read(begun[0], &word, 1), 1) << "the loader's process runs";
    EXPECT_EQ(seal::compact_run(files, directory.path())->workers_alive, std::vector<model::WorkerId>{0});
    ASSERT_EQ(::kill(training, SIGKILL), 0);
    ASSERT_EQ(::waitpid(training, nullptr, 0), training);
    const auto report = seal::compact_run(files, directory.path());
    ASSERT_TRUE(report.is_ok());
    EXPECT_TRUE(report->workers_alive.empty());
    EXPECT_EQ(report->parts_sealed, 1U);
    EXPECT_EQ(read_steps(files, directory.path()), std::vector<StepRecord>{sample_step(0)});
    for (const int end : {begun[0], begun[1], done[0], done[1]}) ::close(end);
}

// Its lock may be held by a thread that the child does not have.
TEST(ForkTest, ASealersLockIsNotTouchedInTheChild) {
#if defined(TRAINDBG_THREAD_SANITIZER)
    GTEST_SKIP() << "the sanitizer forbids forks of programs with threads";
#endif
    MemoryFileSystem files;
    make_run(files);
    WriterOptions options;
    auto sealer = std::make_unique<SealThread>(files, storage::RunLayout{"/run"}, 0, options.retention, 0,
                                               std::make_shared<Shared>(options), nullptr);
    std::atomic<bool> enough{false};
    std::jthread holder([&] {
        while (!enough) static_cast<void>(sealer->kept());
    });
    for (int i = 0; i < 60; ++i) {
        const pid_t child = ::fork();
        if (child == 0) {
            ::alarm(10);  // ends it where it waits for ever
            sealer.reset();
            ::_exit(0);
        }
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status << " at fork " << i;
    }
    enough = true;
}

TEST(ForkTest, AnAbandonedWriterDoesNothing) {
    MemoryFileSystem files;
    make_run(files);
    // In real use its thread stayed in another process; here it has ended before.
    auto writer = open_writer(files);
    add_tensors(*writer);
    writer->append(sample_step(0));
    ASSERT_TRUE(writer->close(kLong).is_ok());
    writer->abandon();
    writer->append(sample_step(1));
    EXPECT_FALSE(writer->flush(0ns));
    EXPECT_EQ(writer->counts().steps_written, 0U);
    EXPECT_EQ(read_steps(files).size(), 1U);
}

// The names and blocked signals of all threads of this process, from the kernel.
TEST(ThreadTest, TheWritersThreadIsNamedAndTakesNoSignals) {
    MemoryFileSystem files;
    make_run(files);
    sigset_t before;
    pthread_sigmask(SIG_SETMASK, nullptr, &before);
    auto writer = open_writer(files);
    ASSERT_TRUE(writer->flush(kLong));  // it runs: its name is set
    sigset_t after;
    pthread_sigmask(SIG_SETMASK, nullptr, &after);
    EXPECT_EQ(sigismember(&before, SIGINT), sigismember(&after, SIGINT)) << "the caller's mask is as it was";
    bool found = false;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream comm(task.path() / "comm");
        std::string name;
        std::getline(comm, name);
        if (name != "traindbg-writer") continue;
        found = true;
        std::ifstream status(task.path() / "status");
        for (std::string line; std::getline(status, line);) {
            if (!line.starts_with("SigBlk:")) continue;
            const std::uint64_t blocked = std::stoull(line.substr(7), nullptr, 16);
            for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD})
                EXPECT_NE(blocked >> (signal - 1) & 1, 0U) << signal;
        }
    }
    EXPECT_TRUE(found);
}

TEST(ThreadTest, CountsAndFlushFromAnotherThread) {
    MemoryFileSystem files;
    make_run(files);
    auto writer = open_writer(files);
    add_tensors(*writer);
    std::atomic<bool> stop{false};
    std::jthread watcher([&] {
        while (!stop) {
            EXPECT_TRUE(writer->flush(kLong));
            EXPECT_LE(writer->counts().steps_written, 200U);
        }
    });
    for (std::uint64_t step = 0; step < 200; ++step) writer->append(sample_step(step));
    stop = true;
    watcher.join();
    ASSERT_TRUE(writer->close(kLong).is_ok());
    EXPECT_EQ(writer->counts().steps_written, 200U);
}

}  // namespace
}  // namespace traindbg::write
