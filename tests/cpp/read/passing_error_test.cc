// A disk or a network that fails one read: whatever is asked of a sealed run, no number is wrong, the error
// is told, and the next try has everything.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "format/sample_records.h"
#include "traindbg/base/format.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::read {
namespace {

using base::Status;
using model::Mode;
using storage::MemoryFileSystem;
using namespace std::chrono_literals;

constexpr const char* kWhole = "weight/fc1.weight";

// All that an operation gave: what it is, and its value.
using Answer = std::map<std::string, std::string>;

std::string text_of(base::ByteSpan bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void take_record(const model::StepRecord& record, Answer& out) {
    const std::string place = base::format("{} {} ", model::to_string(record.mode), record.step);
    out[place] = base::format("{} {}", record.sequence, record.wall_nanos);
    for (const auto& sample : record.tensors)
        for (const std::string& statistic : Run::statistic_names())
            if (const auto value = Run::statistic_of(sample, statistic))
                out[base::format("{}{} {}", place, sample.tensor, statistic)] = base::format("{}", *value);
    for (const auto& scalar : record.scalars)
        out[base::format("{}scalar {}", place, scalar.tensor)] = base::format("{}", scalar.value);
    for (const auto& sample : record.classes)
        out[base::format("{}classes {}", place, sample.tensor)] = base::join(sample.counts.labels, " ");
    for (const auto& sample : record.histograms)
        out[base::format("{}histogram {}", place, sample.tensor)] = base::format("{}", sample.bins.size());
    for (const auto& raw : record.raw) out[base::format("{}raw {}", place, raw.tensor)] = text_of(raw.bytes);
}

struct Operation {
    std::string name;
    std::function<Status(Run&, Answer&)> run;
};

Status all_records(Run& run, Answer& out, bool with_raw) {
    return run.for_each_step(
        [&](const model::StepView& view) {
            take_record(*view.record, out);
            return true;
        },
        with_raw);
}

Status all_series(Run& run, Answer& out) {
    for (const std::string& tensor : run.tensor_names())
        for (const std::string_view statistic : {"value", "mean", "zero", "high", "rms"}) {
            TRAINDBG_ASSIGN_OR_RETURN(const auto points, run.series(0, tensor, statistic));
            for (const SeriesPoint& point : points)
                out[base::format("{} {} {} {}", tensor, statistic, model::to_string(point.mode),
                                 point.step)] = base::format("{}", point.value);
        }
    return Status::ok();
}

Status all_raw(Run& run, Answer& out) {
    TRAINDBG_ASSIGN_OR_RETURN(const RawSeries series, run.raw_series(0, kWhole, Mode::kTrain));
    const std::string bytes = text_of(series.bytes);
    const std::size_t size = series.steps.empty() ? 0 : bytes.size() / series.steps.size();
    for (std::size_t i = 0; i < series.steps.size(); ++i)
        out[base::format("{}", series.steps[i])] = bytes.substr(i * size, size);
    return Status::ok();
}

Status all_mapped(Run& run, Answer& out) {
    TRAINDBG_ASSIGN_OR_RETURN(const auto steps, run.raw_steps(0, kWhole, Mode::kTrain));
    for (const model::StepIndex step : steps) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto mapped, run.map_raw(0, Mode::kTrain, step, kWhole));
        if (mapped) out[base::format("{}", step)] = text_of(mapped->mapping->bytes());
    }
    return Status::ok();
}

Status each_step(Run& run, Answer& out) {
    for (model::StepIndex step = 0; step < 12; ++step) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto record, run.step(0, Mode::kTrain, step, true));
        if (record) take_record(*record, out);
    }
    return Status::ok();
}

Status list_of_steps(Run& run, Answer& out) {
    for (const Mode mode : {Mode::kTrain, Mode::kEval})
        for (const model::StepIndex step : run.steps(mode))
            out[base::format("{} {}", model::to_string(mode), step)] = "";
    return Status::ok();
}

const std::vector<Operation> kOperations = {
    {"for_each_step", [](Run& run, Answer& out) { return all_records(run, out, false); }},
    {"for_each_step with whole tensors", [](Run& run, Answer& out) { return all_records(run, out, true); }},
    {"series", all_series},
    {"raw_series", all_raw},
    {"map_raw", all_mapped},
    {"step", each_step},
    {"steps", list_of_steps},
};

void expect_part_of(const Answer& some, const Answer& all, const std::string& where) {
    for (const auto& [key, value] : some) {
        const auto found = all.find(key);
        ASSERT_NE(found, all.end()) << where << ": " << key;
        EXPECT_EQ(value, found->second) << where << ": " << key;
    }
}

class PassingErrorTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_TRUE(memory_.create_directories("/run").is_ok());
        ASSERT_TRUE(memory_.put_atomic("/run/RUN.json", base::as_bytes(testing::kSampleRunJson)).is_ok());
        write::WriterOptions options;
        options.run_directory = "/run";
        options.part_bytes = 2 << 10;
        options.sealer_nice = 0;
        auto writer = write::RunWriter::open(memory_, options);
        ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
        for (const model::TensorInfo& info : testing::sample_tensors()) (*writer)->add_tensor(info);
        (*writer)->describe(testing::sample_meta());
        for (std::uint64_t step = 0; step < 12; ++step)
            (*writer)->append(testing::sample_step(step, step % 2 == 0));
        ASSERT_TRUE((*writer)->close(240s).is_ok());
        ASSERT_GT((*writer)->counts().parts_sealed, 1U);
        ASSERT_FALSE(memory_.exists("/run/w0000/000000.log"));
    }
    // A file system whose call `failing_`, counted from `begin_counting`, fails with `error`.
    std::unique_ptr<storage::FaultFileSystem> files(int error) {
        is_counting_ = false;
        storage::FaultPlan plan;
        plan.error = error;
        plan.fails = [this](storage::FileCall, const std::string&) {
            return is_counting_ && calls_++ == failing_;
        };
        return std::make_unique<storage::FaultFileSystem>(memory_, plan);
    }
    void begin_counting(std::uint64_t failing) {
        calls_ = 0;
        failing_ = failing;
        is_counting_ = true;
    }
    [[nodiscard]] bool has_failed() const { return calls_ > failing_; }

    MemoryFileSystem memory_;
    std::uint64_t calls_ = 0;
    std::uint64_t failing_ = 0;
    bool is_counting_ = false;
};

TEST_F(PassingErrorTest, WhateverIsAskedTheErrorIsToldAndTheNextTryHasAll) {
    for (const Operation& operation : kOperations) {
        Answer expected;
        auto whole = Run::open("/run", memory_);
        ASSERT_TRUE(whole.is_ok());
        ASSERT_TRUE(operation.run(**whole, expected).is_ok());
        ASSERT_FALSE(expected.empty()) << operation.name;
        for (std::uint64_t failing = 0;; ++failing) {
            const std::string where = base::format("{}, call {}", operation.name, failing);
            const auto files = this->files(ETIMEDOUT);
            auto run = Run::open("/run", *files);
            ASSERT_TRUE(run.is_ok());
            begin_counting(failing);
            Answer answer;
            const Status status = operation.run(**run, answer);
            if (!has_failed()) {
                EXPECT_GT(failing, 1U) << where << ": it reads";
                break;
            }
            EXPECT_TRUE(!status.is_ok() || !(*run)->damage().empty()) << where;
            expect_part_of(answer, expected, where);
            Answer again;
            const Status retried = operation.run(**run, again);
            EXPECT_TRUE(retried.is_ok()) << where << ": " << retried.to_string();
            EXPECT_EQ(again, expected) << where;
            EXPECT_TRUE((*run)->refresh().is_ok()) << where;
            EXPECT_TRUE((*run)->damage().empty()) << where;
            if (HasFailure()) return;
        }
    }
}

// What the disk says it has lost is damage of the file, for this reader; another one asks the disk again.
TEST_F(PassingErrorTest, WhatTheDiskCannotReadIsToldAsDamageAndNothingIsWrong) {
    for (const Operation& operation : kOperations) {
        Answer expected;
        auto whole = Run::open("/run", memory_);
        ASSERT_TRUE(operation.run(**whole, expected).is_ok());
        for (std::uint64_t failing = 0;; ++failing) {
            const std::string where = base::format("{}, call {}", operation.name, failing);
            const auto files = this->files(EIO);
            auto run = Run::open("/run", *files);
            ASSERT_TRUE(run.is_ok());
            begin_counting(failing);
            Answer answer;
            const Status status = operation.run(**run, answer);
            if (!has_failed()) break;
            // Most calls are made again, block by block, and that goes well.
            EXPECT_TRUE(answer == expected || !status.is_ok() || !(*run)->damage().empty()) << where;
            expect_part_of(answer, expected, where);
            auto other = Run::open("/run", *files);
            ASSERT_TRUE(other.is_ok());
            Answer again;
            EXPECT_TRUE(operation.run(**other, again).is_ok()) << where;
            EXPECT_EQ(again, expected) << where;
            if (HasFailure()) return;
        }
    }
}

TEST_F(PassingErrorTest, AFollowerGoesOnWhereItLeftOff) {
    Answer expected;
    auto whole = Run::open("/run", memory_);
    ASSERT_TRUE(all_records(**whole, expected, false).is_ok());
    for (const int error : {ETIMEDOUT, EIO}) {
        for (std::uint64_t failing = 0;; ++failing) {
            const std::string where = base::format("error {}, call {}", error, failing);
            const auto files = this->files(error);
            begin_counting(failing);
            auto tail = RunTail::open("/run", *files);
            if (!tail.is_ok()) {
                tail = RunTail::open("/run", *files);
                ASSERT_TRUE(tail.is_ok()) << where << ": " << tail.status().to_string();
                continue;
            }
            (*tail)->finish_when_idle();
            Answer answer;
            std::uint64_t records = 0;
            std::uint64_t errors = 0;
            std::vector<std::uint64_t> order;
            while (!(*tail)->ended()) {
                const auto view = (*tail)->next(0ns);
                if (!view.is_ok()) {
                    ASSERT_EQ(++errors, 1U) << where << ": one call fails";
                    continue;
                }
                if (!view->has_value()) continue;
                EXPECT_TRUE(order.empty() || order.back() < (**view).record->sequence) << where;
                order.push_back((**view).record->sequence);
                take_record(*(**view).record, answer);
                ++records;
            }
            if (!has_failed()) {
                EXPECT_GT(failing, 10U);
                break;
            }
            expect_part_of(answer, expected, where);
            if (error == ETIMEDOUT) {
                EXPECT_EQ(records, 12U) << where;
                EXPECT_EQ(answer, expected) << where;
            } else {
                EXPECT_TRUE(answer == expected || errors == 1 || !(*tail)->damage().empty()) << where;
            }
            if (HasFailure()) return;
        }
    }
}

}  // namespace
}  // namespace traindbg::read
