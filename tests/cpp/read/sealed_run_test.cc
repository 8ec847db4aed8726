// Sealed parts: the same steps, the same numbers, whatever happens to the file.
#include "read/sealed_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "format/newer_segment.h"
#include "format/sample_records.h"
#include "read/every_nth.h"
#include "traindbg/base/format.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/format/removals.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::read {
namespace {

using base::ByteBuffer;
using base::ByteWriter;
using model::Mode;
using model::StepRecord;
using storage::MemoryFileSystem;
using testing::sample_step;
using testing::seal;
using namespace std::chrono_literals;

constexpr const char* kLog = "/run/w0000/000000.log";
constexpr const char* kSegment = "/run/w0000/000000.seg";

// A log, frame by frame, with whatever steps one likes.
class LogWriter {
  public:
    explicit LogWriter(std::uint32_t part = 0) {
        header_.salt = 0xA110C + part;
        header_.part = part;
        format::append_file_header(out_, header_);
    }
    void schema(const model::TensorTable& table) {
        table_ = table;
        for (std::size_t begin = 0; begin < table.size(); begin += 1000) {
            ByteWriter payload;
            const std::size_t end = std::min(table.size(), begin + 1000);
            format::encode_schema(payload, {table.begin() + static_cast<std::ptrdiff_t>(begin),
                                            table.begin() + static_cast<std::ptrdiff_t>(end)});
            add(format::FrameType::kSchema, payload);
        }
    }
    void step(const StepRecord& record, std::span<const format::RawPlace> places = {}) {
        ByteWriter payload;
        EXPECT_EQ(format::encode_step(payload, record, table_, places), 0U);
        add(format::FrameType::kStep, payload);
    }
    void end(std::uint64_t steps) {
        ByteWriter payload;
        format::encode_totals(payload, {1, steps, 0, 0});
        add(format::FrameType::kEnd, payload);
    }
    void event(const std::string& kind) {
        ByteWriter payload;
        format::encode_event(payload, {7, kind, "{}"});
        add(format::FrameType::kEvent, payload);
    }
    [[nodiscard]] ByteBuffer take() { return out_.take(); }

  private:
    void add(format::FrameType type, const ByteWriter& payload) {
        ASSERT_TRUE(format::append_frame(out_, type, sequence_++, payload.bytes(), header_.salt).is_ok());
    }

    format::FileHeader header_;
    std::uint64_t sequence_ = 2;
    ByteWriter out_;
    model::TensorTable table_;
};

void make_run(MemoryFileSystem& files) {
    ASSERT_TRUE(files.create_directories("/run/w0000").is_ok());
    ASSERT_TRUE(files.put_atomic("/run/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
}

void write_sample(MemoryFileSystem& files, std::uint64_t steps) {
    ASSERT_TRUE(files.create_directories("/run").is_ok());
    ASSERT_TRUE(files.put_atomic("/run/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
    write::WriterOptions options;
    options.run_directory = "/run";
    options.seals_parts = false;  // done by hand here
    auto writer = write::RunWriter::open(files, options);
    ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
    for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
    (*writer)->describe(testing::sample_meta());
    (*writer)->event("began", R"({"why":"test"})");
    for (std::uint64_t step = 0; step < steps; ++step) (*writer)->append(sample_step(step, step % 2 == 0));
    ASSERT_TRUE((*writer)->close(30s).is_ok());
}

std::vector<StepRecord> all_steps(Run& run, bool with_raw = true) {
    std::vector<StepRecord> records;
    const base::Status status = run.for_each_step(
        [&](const model::StepView& view) {
            records.push_back(*view.record);
            return true;
        },
        with_raw);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return records;
}

bool same(const std::vector<SeriesPoint>& a, const std::vector<SeriesPoint>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SeriesPoint& x, const SeriesPoint& y) {
        return x.mode == y.mode && x.step == y.step &&
               (x.value == y.value || (x.value != x.value && y.value != y.value));
    });
}

TEST(SealedRunTest, WhatWasWrittenComesBack) {
    MemoryFileSystem files;
    write_sample(files, 10);
    seal(files, "/run");
    auto run = Run::open("/run", files);
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    EXPECT_TRUE((*run)->is_complete());
    EXPECT_EQ((*run)->tensors(0), testing::sample_tensors());
    EXPECT_EQ((*run)->worker_meta(0), testing::sample_meta());
    ASSERT_EQ((*run)->events().size(), 2U) << "the writer's own says where its blob begins";
    EXPECT_EQ((*run)->events()[0].kind, "began");
    EXPECT_EQ((*run)->steps(Mode::kEval), (std::vector<model::StepIndex>{4, 9}));
    const std::vector<StepRecord> records = all_steps(**run);
    ASSERT_EQ(records.size(), 10U);
    for (std::uint64_t step = 0; step < 10; ++step)
        EXPECT_EQ(records[step], sample_step(step, step % 2 == 0));
    const RunTotals totals = (*run)->totals();
    EXPECT_EQ(totals.steps, 10U);
    EXPECT_EQ(totals.step_nanos, 7'000'032U);
    EXPECT_EQ(totals.capture_nanos, 8032U);
    EXPECT_TRUE((*run)->verify().is_ok());
    EXPECT_TRUE((*run)->damage().empty());
}

TEST(SealedRunTest, EverySeriesIsThatOfTheLog) {
    MemoryFileSystem files;
    write_sample(files, 30);
    auto of_log = Run::open("/run", files);
    std::vector<std::vector<SeriesPoint>> before;
    for (const std::string& tensor : (*of_log)->tensor_names())
        for (const std::string& statistic : Run::statistic_names())
            before.push_back(*(*of_log)->series(0, tensor, statistic));
    const auto raw_before = (*of_log)->raw_series(0, "weight/fc1.weight", Mode::kTrain);
    seal(files, "/run");
    auto run = Run::open("/run", files);
    std::size_t at = 0;
    for (const std::string& tensor : (*run)->tensor_names())
        for (const std::string& statistic : Run::statistic_names()) {
            EXPECT_TRUE(same(*(*run)->series(0, tensor, statistic), before[at]))
                << tensor << " " << statistic;
            ++at;
        }
    const auto raw = (*run)->raw_series(0, "weight/fc1.weight", Mode::kTrain);
    ASSERT_TRUE(raw.is_ok() && raw_before.is_ok());
    EXPECT_EQ(raw->steps, raw_before->steps);
    EXPECT_EQ(raw->bytes, raw_before->bytes);
    EXPECT_EQ(raw->shape, (std::vector<std::int64_t>{4, 3}));
    EXPECT_EQ(*(*run)->raw_steps(0, "weight/fc1.weight", Mode::kTrain), raw->steps);
    const auto mapped = (*run)->map_raw(0, Mode::kTrain, 2, "weight/fc1.weight");
    ASSERT_TRUE(mapped.is_ok() && mapped->has_value());
    EXPECT_EQ((*mapped)->mapping->bytes().size(), 48U);
    EXPECT_FALSE((*run)->map_raw(0, Mode::kTrain, 3, "weight/fc1.weight")->has_value()) << "not kept there";
}

// Random numbers of every kind in many more rows than a page holds, at rows that differ by tensor.
TEST(SealedRunTest, RandomRecordsComeBackBitByBit) {
    std::mt19937_64 random(7);
    model::TensorTable table(12);
    for (std::uint32_t id = 0; id < table.size(); ++id) {
        table[id].id = id;
        table[id].name = "t" + std::to_string(id);
        table[id].dtype = tensor::DType::kFloat32;
        table[id].shape = {static_cast<std::int64_t>(id), 3};
    }
    const auto any_float = [&]() -> double {
        switch (random() % 6) {
            case 0: return 0;
            case 1: return -0.0;
            case 2: return static_cast<double>(std::numeric_limits<float>::denorm_min());
            case 3: return static_cast<double>(std::numeric_limits<float>::max());
            default:
                return static_cast<double>(std::ldexp(static_cast<float>(random() % 4096) - 2048.0F,
                                                      static_cast<int>(random() % 60) - 30));
        }
    };
    std::vector<StepRecord> written;
    LogWriter log;
    log.schema(table);
    constexpr std::uint64_t kSteps = 9000;
    for (std::uint64_t step = 0; step < kSteps; ++step) {
        StepRecord record;
        record.mode = static_cast<Mode>(1 + random() % 4);
        record.step = random() % 100'000;
        record.sequence = step * 3;
        record.wall_nanos = static_cast<std::int64_t>(random());
        record.monotonic_nanos = static_cast<std::int64_t>(step * 1000 + random() % 1000);
        record.step_nanos = random() % 1'000'000;
        record.capture_nanos = random() % 1000;
        for (std::uint32_t id = 0; id < 10; ++id) {
            if (step % (id + 1) != 0 || random() % 50 == 0) continue;
            model::TensorSample sample;
            sample.tensor = id;
            sample.statistics = {id * 3,      0,           0,           0,           0,          any_float(),
                                 any_float(), any_float(), any_float(), any_float(), any_float()};
            if (id == 4) {
                sample.statistics.count = random() % 1000 + 100;
                sample.statistics.nan = random() % 5 == 0 ? random() % 10 : 0;
                sample.statistics.positive_infinite = random() % 3;
                sample.statistics.zero = random() % 20;
            }
            if (id == 5 && step % 10 == 0)
                sample.units = {static_cast<std::uint32_t>(random() % 64 + 1), 0, random() % 1000,
                                random() % 1000};
            record.tensors.push_back(sample);
            if (id == 6) {
                model::HistogramSample histogram;
                histogram.tensor = id;
                for (int bin = model::kLeastBin; bin <= model::kNanBin;
                     bin += 1 + static_cast<int>(random() % 40))
                    histogram.bins.push_back({static_cast<std::int16_t>(bin), random() % 10'000 + 1});
                record.histograms.push_back(histogram);
            }
        }
        if (random() % 10 != 0)
            record.scalars.push_back({10, random() % 5 == 0 ? std::nan("") : any_float()});
        if (step % 7 == 0) {
            model::ClassSample classes;
            classes.tensor = 11;
            classes.counts.labels = {static_cast<std::uint32_t>(random() % 9), 1, 0};
            classes.counts.predictions = {0, 0, static_cast<std::uint32_t>(random())};
            classes.counts.hits = {0, 0, 0};
            record.classes.push_back(classes);
        }
        log.step(record);
        written.push_back(record);
    }
    log.end(kSteps);
    MemoryFileSystem files;
    make_run(files);
    files.set_content(kLog, log.take());
    seal(files, "/run");
    auto run = Run::open("/run", files);
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    const std::vector<StepRecord> read = all_steps(**run);
    ASSERT_EQ(read.size(), written.size());
    const auto bits = [](const StepRecord& record) {
        ByteWriter out;
        format::encode_step(out, record, {}, {});
        return out.take();
    };
    for (std::size_t i = 0; i < read.size(); ++i) ASSERT_EQ(bits(read[i]), bits(written[i])) << i;
    // Out of order, too: pages are found and left again.
    for (int k = 0; k < 200; ++k) {
        const StepRecord& wanted = written[random() % written.size()];
        auto step = (*run)->step(0, wanted.mode, wanted.step);
        ASSERT_TRUE(step.is_ok() && step->has_value());
        EXPECT_EQ((**step).step, wanted.step);
    }
    EXPECT_TRUE((*run)->verify().is_ok());
    EXPECT_TRUE((*run)->damage().empty());
}

TEST(SealedRunTest, SevenHundredTensorsTakeAtMostTwentyTwoBytesEach) {
    std::mt19937 random(1);
    std::normal_distribution<float> noise(0, 0.05F);
    model::TensorTable table(700);
    for (std::uint32_t id = 0; id < table.size(); ++id) {
        table[id].id = id;
        table[id].name = "gradient/layer" + std::to_string(id);
        table[id].shape = {64, 64};
    }
    LogWriter log;
    log.schema(table);
    std::vector<float> level(table.size());
    for (float& each : level) each = std::exp(noise(random) * 40);
    for (std::uint64_t step = 0; step < 500; ++step) {
        StepRecord record;
        record.step = record.sequence = step;
        for (std::uint32_t id = 0; id < table.size(); ++id) {
            level[id] *= std::exp(noise(random));
            const auto about = [&](float factor) {
                return static_cast<double>(level[id] * factor * (1 + noise(random)));
            };
            model::TensorSample sample;
            sample.tensor = id;
            sample.statistics = {4096,         0,        0,           0,        0, -about(3), about(3),
                                 about(0.01F), about(1), about(2048), about(64)};
            record.tensors.push_back(sample);
        }
        log.step(record);
    }
    const ByteBuffer segment = testing::segment_of(log.take());
    EXPECT_LT(static_cast<double>(segment.size()) / (700 * 500), 22.0);
}

TEST(SealedRunTest, PartsFollowEachOtherSealedOrNot) {
    MemoryFileSystem files;
    make_run(files);
    std::uint64_t step = 0;
    for (std::uint32_t part = 0; part < 4; ++part) {
        LogWriter log(part);
        log.schema(testing::sample_tensors());
        for (int k = 0; k < 5; ++k) log.step(sample_step(step++));
        if (part == 3) log.end(step);
        files.set_content(storage::RunLayout{"/run"}.log(0, part), log.take());
        if (part % 2 == 0) seal(files, "/run", 0, part);
    }
    auto run = Run::open("/run", files);
    ASSERT_TRUE(run.is_ok());
    EXPECT_TRUE((*run)->is_complete());
    const std::vector<StepRecord> records = all_steps(**run);
    ASSERT_EQ(records.size(), 20U);
    for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(records[i], sample_step(i));
    EXPECT_EQ((*run)->series(0, "loss", "value")->size(), 20U);
    EXPECT_TRUE((*run)->damage().empty());
    EXPECT_EQ((**(*run)->step(0, Mode::kTrain, 17)).step, 17U);

    ASSERT_TRUE(files.remove("/run/w0000/000001.log").is_ok());
    auto without = Run::open("/run", files);
    EXPECT_EQ(all_steps(**without).size(), 15U);
    ASSERT_EQ((*without)->damage().size(), 1U);
    EXPECT_EQ((*without)->damage()[0].what, "part 1 is missing");

    // What was removed on purpose was the oldest: that excuses a gap at the beginning, and no other.
    ASSERT_TRUE(files
                    .put_atomic("/run/w0000/removed.json",
                                base::as_bytes(format::to_json(format::Removals{17, 4, "the quota"})))
                    .is_ok());
    auto removed = Run::open("/run", files);
    ASSERT_EQ((*removed)->damage().size(), 1U);
    EXPECT_EQ((*removed)->damage()[0].what, "part 1 is missing");
    ASSERT_TRUE(files.remove("/run/w0000/000000.seg").is_ok());
    EXPECT_TRUE((*Run::open("/run", files))->damage().empty());
}

TEST(SealedRunTest, AScanKeepsThePagesOfOnePartAlone) {
    MemoryFileSystem files;
    make_run(files);
    for (std::uint32_t part = 0; part < 3; ++part) {
        LogWriter log(part);
        log.schema(testing::sample_tensors());
        for (std::uint64_t k = 0; k < 5; ++k) log.step(sample_step(part * 5 + k));
        files.set_content(storage::RunLayout{"/run"}.log(0, part), log.take());
        if (part != 2) seal(files, "/run", 0, part);
    }
    std::map<std::string, int> reads;
    storage::FaultPlan plan;
    plan.before = [&](storage::FileCall call, const std::string& path) {
        if (call == storage::FileCall::kRead) ++reads[path];
    };
    storage::FaultFileSystem counting(files, plan);
    const auto run = Run::open("/run", counting);
    ASSERT_TRUE(run.is_ok());
    const auto reads_for = [&](std::uint64_t step) {
        reads.clear();
        const StepRecord expected = sample_step(step);
        EXPECT_EQ(**(*run)->step(0, expected.mode, expected.step), expected);
        int sum = 0;
        for (const auto& [path, count] : reads) sum += count;
        return sum;
    };
    EXPECT_GT(reads_for(2), 0);
    EXPECT_EQ(reads_for(3), 0) << "its pages are there";
    EXPECT_GT(reads_for(9), 0);
    EXPECT_EQ(reads_for(8), 0);
    EXPECT_GT(reads_for(4), 0) << "were given back";
    EXPECT_GT(reads_for(11), 0);
    EXPECT_EQ(reads_for(13), 0);
    EXPECT_GT(reads_for(0), 0);
    EXPECT_GT(reads_for(12), 0);
    EXPECT_EQ(all_steps(**run).size(), 15U);
}

TEST(SealedRunTest, ASegmentWinsOverItsLogAndTheLogOverADamagedSegment) {
    MemoryFileSystem files;
    write_sample(files, 6);
    files.set_content(kSegment, testing::segment_of(files.content(kLog)));
    auto run = Run::open("/run", files);
    EXPECT_EQ(all_steps(**run).size(), 6U) << "each step once";
    files.set_content(kSegment, ByteBuffer(5000));
    auto damaged = Run::open("/run", files);
    ASSERT_TRUE(damaged.is_ok());
    EXPECT_EQ(all_steps(**damaged).size(), 6U);
    ASSERT_EQ((*damaged)->damage().size(), 1U);
    EXPECT_NE((*damaged)->damage()[0].what.find("its log is read instead"), std::string::npos);
}

TEST(SealedRunTest, AFollowerGoesOnWhereTheLogBecomesASegment) {
    MemoryFileSystem files;
    make_run(files);
    const auto content = [](std::uint64_t begin, std::uint64_t end, std::uint32_t part) {
        LogWriter log(part);
        log.schema(testing::sample_tensors());
        for (std::uint64_t step = begin; step < end; ++step) log.step(sample_step(step));
        return log.take();
    };
    files.set_content(kLog, content(0, 4, 0));
    auto tail = RunTail::open("/run", files);
    ASSERT_TRUE(tail.is_ok());
    const auto expect_step = [&](std::uint64_t step) {
        auto view = (*tail)->next(0ns);
        ASSERT_TRUE(view.is_ok() && view->has_value()) << step;
        EXPECT_EQ(*(**view).record, sample_step(step));
    };
    expect_step(0);
    expect_step(1);
    // The rest of the part is written, sealed and removed before the follower looks again.
    files.set_content(kLog, content(0, 7, 0));
    seal(files, "/run");
    files.set_content("/run/w0000/000001.log", content(7, 9, 1));
    for (std::uint64_t step = 2; step < 9; ++step) expect_step(step);
    EXPECT_FALSE((*tail)->next(0ns)->has_value());
}

// A directory whose list was begun before a log was sealed and ended after it was removed: it shows neither.
class StaleListing final : public storage::FileSystem {
  public:
    explicit StaleListing(MemoryFileSystem& files) : files_(files) {}
    // The next list of a worker's directory does not show it.
    void hide(std::string name) { hidden_ = std::move(name); }

    base::Result<std::vector<storage::DirectoryEntry>> list(const std::string& path) override {
        auto entries = files_.list(path);
        if (!entries.is_ok() || !path.ends_with("w0000")) return entries;
        std::erase_if(*entries, [&](const auto& entry) { return entry.name == hidden_; });
        hidden_.clear();
        return entries;
    }
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
    base::Status remove(const std::string& path) override { return files_.remove(path); }
    bool exists(const std::string& path) override { return files_.exists(path); }

  private:
    MemoryFileSystem& files_;
    std::string hidden_;
};

TEST(SealedRunTest, APartThatAListMissesIsNotPassedOver) {
    const auto content = [](std::uint64_t begin, std::uint64_t end, std::uint32_t part) {
        LogWriter log(part);
        log.schema(testing::sample_tensors());
        for (std::uint64_t step = begin; step < end; ++step) log.step(sample_step(step));
        return log.take();
    };
    const auto expect_steps = [](RunTail& tail, std::uint64_t begin, std::uint64_t end) {
        for (std::uint64_t step = begin; step < end; ++step) {
            auto view = tail.next(0ns);
            ASSERT_TRUE(view.is_ok() && view->has_value()) << step;
            EXPECT_EQ(*(**view).record, sample_step(step));
        }
        EXPECT_FALSE(tail.next(0ns)->has_value());
    };
    // It had begun to read the log; it had not seen that part yet; retention has taken the part meanwhile.
    for (const bool is_taken : {false, true}) {
        for (const std::uint64_t seen : {2U, 4U}) {
            MemoryFileSystem memory;
            make_run(memory);
            StaleListing files(memory);
            memory.set_content(kLog, content(0, seen, 0));
            auto tail = RunTail::open("/run", files);
            ASSERT_TRUE(tail.is_ok());
            expect_steps(**tail, 0, seen);
            memory.set_content(kLog, content(0, 4, 0));
            memory.set_content("/run/w0000/000001.log", content(4, 7, 1));
            seal(memory, "/run", 0, 0);
            seal(memory, "/run", 0, 1);
            memory.set_content("/run/w0000/000002.log", content(7, 9, 2));
            if (is_taken) {
                ASSERT_TRUE(memory.remove(kSegment).is_ok());
            } else {
                files.hide(seen == 4 ? "000001.seg" : "000000.seg");
            }
            expect_steps(**tail, seen, 9);
        }
    }
}

TEST(SealedRunTest, WhoBeginsWithAListThatMissesTheFirstPartLooksAgain) {
    for (const bool was_removed : {false, true}) {
        MemoryFileSystem memory;
        make_run(memory);
        StaleListing files(memory);
        for (std::uint32_t part = 0; part < 2; ++part) {
            LogWriter log(part);
            log.schema(testing::sample_tensors());
            for (std::uint64_t k = 0; k < 3; ++k) log.step(sample_step(3 * part + k));
            memory.set_content(storage::RunLayout{"/run"}.log(0, part), log.take());
        }
        if (was_removed) {
            ASSERT_TRUE(memory.remove(kLog).is_ok());
        } else {
            files.hide("000000.log");
        }
        auto tail = RunTail::open("/run", files);
        ASSERT_TRUE(tail.is_ok());
        for (std::uint64_t step = was_removed ? 3 : 0; step < 6; ++step) {
            auto view = (*tail)->next(0ns);
            ASSERT_TRUE(view.is_ok() && view->has_value()) << step;
            EXPECT_EQ(*(**view).record, sample_step(step));
        }
        EXPECT_FALSE((*tail)->next(0ns)->has_value());
    }
}

// Between two looks a log gets tensors, steps, an event and its end, becomes a segment and is gone.
TEST(SealedRunTest, WhatALogHeldBeforeItWasSealedIsNotMissed) {
    for (const bool has_begun : {false, true}) {
        MemoryFileSystem files;
        make_run(files);
        LogWriter begun;
        if (has_begun) {
            begun.schema({testing::sample_tensors()[0]});
            begun.event("early");
        }
        files.set_content(kLog, begun.take());
        auto run = Run::open("/run", files);
        auto tail = RunTail::open("/run", files);
        ASSERT_TRUE(run.is_ok() && tail.is_ok());
        LogWriter whole;
        if (has_begun) {
            whole.schema({testing::sample_tensors()[0]});
            whole.event("early");
        }
        whole.schema(testing::sample_tensors());
        whole.event("late");
        for (std::uint64_t step = 0; step < 5; ++step) whole.step(sample_step(step));
        whole.end(5);
        files.set_content(kLog, whole.take());
        seal(files, "/run");

        EXPECT_TRUE(*(*run)->refresh());
        EXPECT_TRUE((*run)->is_complete());
        EXPECT_EQ((*run)->tensors(0), testing::sample_tensors());
        EXPECT_EQ((*run)->events().size(), has_begun ? 2U : 1U) << "each once";
        EXPECT_EQ((*run)->totals().steps, 5U);
        EXPECT_FALSE(*(*run)->refresh());
        (*tail)->finish_when_idle();
        for (std::uint64_t step = 0; step < 5; ++step) {
            auto view = (*tail)->next(0ns);
            ASSERT_TRUE(view.is_ok() && view->has_value()) << step;
            EXPECT_EQ(*(**view).record, sample_step(step));
        }
        EXPECT_FALSE((*tail)->next(0ns)->has_value());
        EXPECT_TRUE((*tail)->ended());
    }
}

// ------------------------------------------------------------------ damage

class DamagedSegmentTest : public ::testing::Test {
  protected:
    static constexpr std::uint64_t kSteps = 6;
    void SetUp() override {
        write_sample(files_, kSteps);
        seal(files_, "/run");
        segment_ = files_.content(kSegment);
    }
    // What is read must be what was written, or be missing and told.
    void expect_nothing_wrong(const std::string& where) {
        auto run = Run::open("/run", files_);
        if (!run.is_ok()) return;  // refused with a message
        std::uint64_t numbers = 0;
        const base::Status status = (*run)->for_each_step(
            [&](const model::StepView& view) {
                EXPECT_LT(view.record->sequence, kSteps) << where;
                const StepRecord whole = sample_step(view.record->sequence, view.record->sequence % 2 == 0);
                EXPECT_EQ(view.record->step, whole.step) << where;
                EXPECT_EQ(view.record->mode, whole.mode) << where;
                const auto among = [&](const auto& some, const auto& all) {
                    for (const auto& each : some)
                        EXPECT_EQ(std::count(all.begin(), all.end(), each), 1) << where;
                    numbers += some.size();
                };
                among(view.record->tensors, whole.tensors);
                among(view.record->scalars, whole.scalars);
                among(view.record->classes, whole.classes);
                among(view.record->raw, whole.raw);
                among(view.record->channels, whole.channels);
                among(view.record->digests, whole.digests);
                return true;
            },
            true);
        EXPECT_TRUE(status.is_ok()) << where << ": " << status.to_string();
        for (const std::string_view statistic : {"value", "mean", "zero", "high", "sum"}) {
            for (const model::TensorInfo& info : testing::sample_tensors()) {
                const auto points = (*run)->series(0, info.name, statistic);
                if (!points.is_ok()) continue;  // its description is gone
                for (const SeriesPoint& point : *points) {
                    const StepRecord whole = sample_step(point.step);
                    bool is_right = false;
                    for (const auto& s : whole.scalars)
                        is_right = is_right || (s.tensor == info.id && s.value == point.value);
                    for (const auto& s : whole.tensors)
                        is_right = is_right ||
                                   (s.tensor == info.id && Run::statistic_of(s, statistic) == point.value);
                    EXPECT_TRUE(is_right) << where << " " << info.name << " " << statistic;
                }
            }
        }
        EXPECT_TRUE((*run)->verify().is_ok()) << where;
        numbers_ = numbers;
        damage_ = (*run)->damage();
    }

    MemoryFileSystem files_;
    ByteBuffer segment_;
    std::uint64_t numbers_ = 0;
    std::vector<Damage> damage_;
};

TEST_F(DamagedSegmentTest, EveryFlippedBitIsToldAndNothingIsMisread) {
    expect_nothing_wrong("whole");
    const std::uint64_t all = numbers_;
    ASSERT_EQ(all, 36U);
    for (std::size_t bit = 0; bit < segment_.size() * 8; bit += testing::kEveryNthBit) {
        ByteBuffer bytes = segment_;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        files_.set_content(kSegment, std::move(bytes));
        damage_.clear();
        numbers_ = 0;
        expect_nothing_wrong("bit " + std::to_string(bit));
        EXPECT_FALSE(damage_.empty()) << bit;
        // At most one page is lost: one number of each step, or the schema, or the steps themselves.
        if (HasFailure()) return;
    }
}

TEST_F(DamagedSegmentTest, EveryTruncationIsToldAndNothingIsMisread) {
    for (std::size_t size = 0; size < segment_.size(); size += testing::kEveryNthByte) {
        files_.set_content(kSegment,
                           {segment_.begin(), segment_.begin() + static_cast<std::ptrdiff_t>(size)});
        damage_.clear();
        expect_nothing_wrong("size " + std::to_string(size));
        auto run = Run::open("/run", files_);
        EXPECT_TRUE(!run.is_ok() || !damage_.empty()) << size;
        if (HasFailure()) return;
    }
}

TEST_F(DamagedSegmentTest, AColumnInAnEncodingOfANewerVersionIsToldAsThatAndIsNoDamage) {
    const auto footer = format::find_footer(base::ByteSpan(segment_).last(512), 0x5EA1);
    ASSERT_TRUE(footer.has_value());
    std::size_t columns = 0;
    testing::for_each_column(segment_, [&](const format::PageTable& table, const format::ColumnEntry& column,
                                           const testing::Recoded& recoded) {
        const std::string where =
            base::format("column {} of kind {}", unsigned{column.column}, static_cast<unsigned>(table.kind));
        const bool is_row = column.column == static_cast<std::uint8_t>(format::Column::kRow);
        ByteBuffer bytes =
            recoded(column.column, static_cast<std::uint8_t>((column.encoding & format::kCompressed) | 9));
        files_.set_content(kSegment, bytes);
        expect_nothing_wrong(where);
        // The rows of the steps themselves are needed by nobody who has the index.
        EXPECT_EQ(damage_.size(), is_row && table.kind == format::PageKind::kSteps ? 0U : 1U) << where;
        for (const Damage& place : damage_) {
            EXPECT_TRUE(place.newer) << where;
            EXPECT_NE(place.what.find("newer version"), std::string::npos) << place.what;
            EXPECT_EQ(place.what.find("lost"), std::string::npos) << place.what;
        }
        // Also where the index has to be made anew.
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(footer->index_offset), bytes.end(),
                  std::byte{});
        files_.set_content(kSegment, bytes);
        expect_nothing_wrong(where + ", without index");
        EXPECT_EQ(std::count_if(damage_.begin(), damage_.end(), [](const Damage& d) { return d.newer; }), 1)
            << where;
        ++columns;
    });
    EXPECT_GT(columns, 30U);
}

TEST_F(DamagedSegmentTest, DamageIsToldBesideWhatIsOfANewerVersion) {
    ByteBuffer bytes;
    testing::for_each_column(segment_, [&](const format::PageTable& table, const format::ColumnEntry& column,
                                           const testing::Recoded& recoded) {
        if (table.kind != format::PageKind::kStatistics || table.tensor != 0) return;
        if (column.column == static_cast<std::uint8_t>(format::Column::kMax))
            bytes = recoded(column.column, 9);
        if (bytes.empty() || column.column != static_cast<std::uint8_t>(format::Column::kStd)) return;
        const auto changed = static_cast<std::size_t>(
            std::mismatch(bytes.begin(), bytes.end(), segment_.begin()).first - bytes.begin());
        const std::size_t frame = (changed - 16) / 8 * 8;  // its checksum is the first that differs
        bytes[frame + format::kFrameHeaderBytes + column.offset] ^= std::byte{1};
    });
    files_.set_content(kSegment, bytes);
    auto run = Run::open("/run", files_);
    ASSERT_TRUE(run.is_ok());
    const std::string name = testing::sample_tensors()[0].name;
    EXPECT_TRUE((*run)->series(0, name, "max")->empty());
    EXPECT_EQ((*run)->series(0, name, "l2")->size(), kSteps);
    ASSERT_EQ((*run)->damage().size(), 1U);
    EXPECT_TRUE((*run)->damage()[0].newer);
    ASSERT_TRUE((*run)->verify().is_ok());
    ASSERT_EQ((*run)->damage().size(), 2U);
    EXPECT_FALSE((*run)->damage()[1].newer);
}

TEST_F(DamagedSegmentTest, WithoutFooterAndIndexEverythingIsStillThere) {
    const auto footer = format::find_footer(base::ByteSpan(segment_).last(512), 0x5EA1);
    ASSERT_TRUE(footer.has_value());
    ByteBuffer bytes = segment_;
    for (auto at = static_cast<std::size_t>(footer->index_offset); at < bytes.size(); ++at)
        bytes[at] = std::byte{0xEE};
    files_.set_content(kSegment, bytes);
    auto run = Run::open("/run", files_);
    ASSERT_TRUE(run.is_ok());
    const std::vector<StepRecord> records = all_steps(**run);
    ASSERT_EQ(records.size(), kSteps);
    for (std::uint64_t step = 0; step < kSteps; ++step)
        EXPECT_EQ(records[step], sample_step(step, step % 2 == 0));
    EXPECT_EQ((*run)->totals().step_nanos, 4'000'011U);
    EXPECT_TRUE((*run)->is_complete());
    EXPECT_FALSE((*run)->damage().empty());
}

}  // namespace
}  // namespace traindbg::read
