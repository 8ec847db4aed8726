#include "traindbg/exchange/import_tensorboard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "storage/temporary_directory.h"
#include "traindbg/exchange/export_format.h"
#include "traindbg/format/tf_event.h"
#include "traindbg/format/tfrecord.h"
#include "traindbg/model/histogram.h"
#include "traindbg/read/run.h"

namespace traindbg::exchange {
namespace {

using base::ByteBuffer;
using base::ByteWriter;
using base::Code;
using model::Mode;

// The bytes of an event file under construction.
class EventLog {
  public:
    EventLog() {
        format::TfEvent first;
        first.file_version = "brain.Event:2";
        add(first);
    }
    EventLog& scalar(std::int64_t step, std::string_view tag, double value, double wall = 0) {
        format::TfEvent event = at(step, wall);
        event.values.push_back({});
        event.values[0].tag = tag;
        event.values[0].simple_value = static_cast<float>(value);
        return add(event);
    }
    EventLog& tensor_scalar(std::int64_t step, std::string_view tag, float value, bool with_metadata) {
        format::TfEvent event = at(step, 0);
        event.values.push_back({});
        event.values[0].tag = tag;
        if (with_metadata) event.values[0].metadata = plugin("scalars");
        format::TfTensor tensor;
        tensor.dtype = format::tf_of_dtype(tensor::DType::kFloat32);
        tensor.content = std::as_bytes(std::span(&value, 1));
        event.values[0].tensor = tensor;
        return add(event);
    }
    EventLog& histogram(std::int64_t step, std::string_view tag, const format::TfHistogram& proto) {
        format::TfEvent event = at(step, 0);
        event.values.push_back({});
        event.values[0].tag = tag;
        event.values[0].histogram = proto;
        return add(event);
    }
    EventLog& tensor_histogram(std::int64_t step, std::string_view tag, const std::vector<double>& table) {
        format::TfEvent event = at(step, 0);
        event.values.push_back({});
        event.values[0].tag = tag;
        event.values[0].metadata = plugin("histograms");
        format::TfTensor tensor;
        tensor.dtype = format::tf_of_dtype(tensor::DType::kFloat64);
        tensor.shape = {static_cast<std::int64_t>(table.size() / 3), 3};
        tensor.content = std::as_bytes(std::span(table));
        event.values[0].tensor = tensor;
        return add(event);
    }
    EventLog& text(std::int64_t step, std::string_view tag) {
        format::TfEvent event = at(step, 0);
        event.values.push_back({});
        event.values[0].tag = tag;
        event.values[0].metadata = plugin("text");
        format::TfTensor tensor;
        tensor.dtype = format::kTfString;
        tensor.strings = {"hello"};
        event.values[0].tensor = tensor;
        return add(event);
    }
    [[nodiscard]] const ByteBuffer& bytes() const { return out_.bytes(); }

  private:
    static format::TfEvent at(std::int64_t step, double wall) {
        format::TfEvent event;
        event.step = step;
        event.wall_time = wall == 0 ? 1000.0 + static_cast<double>(step) : wall;
        return event;
    }
    static format::TfMetadata plugin(std::string_view name) {
        format::TfMetadata metadata;
        metadata.plugins.push_back({name, {}});
        return metadata;
    }
    EventLog& add(const format::TfEvent& event) {
        ByteWriter payload;
        format::encode_tf_event(payload, event);
        format::append_record(out_, payload.bytes());
        return *this;
    }
    ByteWriter out_;
};

class ImportTest : public ::testing::Test {
  protected:
    void put(const std::string& relative, const ByteBuffer& bytes) {
        const std::filesystem::path path = std::filesystem::path(directory_.path()) / "logs" / relative;
        std::filesystem::create_directories(path.parent_path());
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    base::Result<ImportResult> import(RoleChooser role = {}) {
        return import_tensorboard(
            {.from = directory_.path() + "/logs", .to = run_path(), .role = std::move(role)});
    }
    [[nodiscard]] std::string run_path() const { return directory_.path() + "/run"; }
    std::unique_ptr<read::Run> open() {
        auto run = read::Run::open(run_path());
        EXPECT_TRUE(run.is_ok()) << run.status().message();
        return std::move(run).value();
    }
    std::vector<std::pair<std::uint64_t, double>> series(read::Run& run, const std::string& name,
                                                         std::string_view statistic, Mode mode,
                                                         model::WorkerId worker = 0) {
        std::vector<std::pair<std::uint64_t, double>> out;
        const auto points = run.series(worker, name, statistic);
        EXPECT_TRUE(points.is_ok()) << points.status().message();
        if (points.is_ok())
            for (const read::SeriesPoint& point : *points)
                if (point.mode == mode) out.emplace_back(point.step, point.value);
        return out;
    }
    using Points = std::vector<std::pair<std::uint64_t, double>>;

    testing::TemporaryDirectory directory_;
};

TEST_F(ImportTest, ScalarsOfBothFormsAndOfSubRuns) {
    EventLog train;
    train.scalar(0, "loss", 3)
        .scalar(1, "loss", 2)
        .tensor_scalar(0, "acc", 0.5F, true)
        .tensor_scalar(1, "acc", 0.75F, false);
    EventLog eval;
    eval.scalar(1, "loss", 2.5);
    put("train/events.out.tfevents.1.a", train.bytes());
    put("w1/validation/events.out.tfevents.2.a", eval.bytes());
    const auto result = import();
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    EXPECT_EQ(result->scalars, 5U);
    EXPECT_EQ(result->files, 2U);
    EXPECT_EQ(result->workers, 2U);
    EXPECT_EQ(result->problems_in_all, 0U);
    const auto run = open();
    EXPECT_TRUE(run->is_complete());
    EXPECT_EQ(series(*run, "loss", "value", Mode::kTrain), (Points{{0, 3}, {1, 2}}));
    EXPECT_EQ(series(*run, "metric/acc", "value", Mode::kTrain), (Points{{0, 0.5}, {1, 0.75}}));
    EXPECT_EQ(series(*run, "loss", "value", Mode::kEval, 1), (Points{{1, 2.5}}));
    EXPECT_EQ(run->meta().run_id, "run");
}

TEST_F(ImportTest, StepsOutOfOrderAndARestart) {
    EventLog first;
    first.scalar(2, "loss", 20).scalar(0, "loss", 0).scalar(1, "loss", 10).scalar(3, "loss", 30);
    EventLog second;  // began again at step 2
    second.scalar(2, "loss", 21, 5000).scalar(3, "loss", 31, 5001).scalar(4, "loss", 41, 5002);
    put("events.out.tfevents.1", first.bytes());
    put("events.out.tfevents.2", second.bytes());
    const auto result = import();
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    EXPECT_EQ(result->replaced, 2U);
    EXPECT_EQ(result->steps, 5U);
    const auto run = open();
    EXPECT_EQ(series(*run, "loss", "value", Mode::kTrain),
              (Points{{0, 0}, {1, 10}, {2, 21}, {3, 31}, {4, 41}}));
}

TEST_F(ImportTest, AHistogramBecomesStatistics) {
    format::TfHistogram proto;  // -1, 0, 1, 1, 3
    proto.min = -1;
    proto.max = 3;
    proto.num = 5;
    proto.sum = 4;
    proto.sum_squares = 12;
    proto.bucket_limit = {-0.5, 0.5, 2, std::numeric_limits<double>::max()};
    proto.bucket = {1, 1, 2, 1};
    EventLog log;
    log.histogram(0, "fc1.weight.grad", proto);
    log.tensor_histogram(0, "fc1.weight", {0, 1, 4, 1, 2, 4});
    put("events.out.tfevents.1", log.bytes());
    const auto result = import();
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    EXPECT_EQ(result->histograms, 2U);
    const auto run = open();
    const auto record = run->step(0, Mode::kTrain, 0);
    ASSERT_TRUE(record.is_ok() && record->has_value());
    ASSERT_EQ((*record)->tensors.size(), 2U);
    const model::Statistics& gradient = (*record)->tensors[0].statistics;
    EXPECT_EQ(gradient.count, 5U);
    EXPECT_EQ(gradient.min, -1);
    EXPECT_EQ(gradient.max, 3);
    EXPECT_NEAR(gradient.mean, 0.8, 1e-6);
    EXPECT_NEAR(gradient.std, std::sqrt(12.0 / 5 - 0.64), 1e-6);
    EXPECT_NEAR(gradient.l2, std::sqrt(12.0), 1e-6);
    EXPECT_EQ(run->tensors(0)[0].role, model::Role::kGradient);
    const model::Statistics& weight = (*record)->tensors[1].statistics;
    EXPECT_EQ(weight.count, 8U);
    EXPECT_EQ(weight.min, 0);
    EXPECT_EQ(weight.max, 2);
    EXPECT_NEAR(weight.mean, 1, 1e-6);
    EXPECT_NEAR(weight.l1, 8, 1e-6);
    ASSERT_EQ((*record)->histograms.size(), 2U);
    EXPECT_EQ(model::element_count((*record)->histograms[0].bins), 5U);
    EXPECT_EQ(model::element_count((*record)->histograms[1].bins), 8U);
}

TEST_F(ImportTest, AHistogramWithANanIsOneWithANan) {
    format::TfHistogram proto;
    proto.min = proto.max = proto.sum = proto.sum_squares = std::numeric_limits<double>::quiet_NaN();
    proto.num = 4;
    proto.bucket_limit = {1, 2};
    proto.bucket = {1, 2};
    EventLog log;
    log.histogram(0, "w", proto);
    put("events.out.tfevents.1", log.bytes());
    ASSERT_TRUE(import().is_ok());
    const auto record = open()->step(0, Mode::kTrain, 0);
    ASSERT_TRUE(record.is_ok() && record->has_value());
    EXPECT_EQ((*record)->tensors[0].statistics.nan, 1U);
    EXPECT_EQ((*record)->tensors[0].statistics.count, 4U);
}

TEST_F(ImportTest, DamageIsNamedAndTheRestIsTaken) {
    EventLog log;
    for (int step = 0; step < 10; ++step) log.scalar(step, "loss", step);
    ByteBuffer bytes = log.bytes();
    const std::size_t one = (bytes.size() - 40) / 10;
    bytes[bytes.size() - 5 * one] ^= std::byte{0x40};  // inside a payload or a checksum in the middle
    bytes.resize(bytes.size() - 3);                    // and the last record is cut off
    put("events.out.tfevents.1", bytes);
    const auto result = import();
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    EXPECT_EQ(result->scalars, 8U);
    ASSERT_EQ(result->problems.size(), 2U);
    EXPECT_FALSE(result->problems[0].tail);
    EXPECT_GT(result->problems[0].offset, 0U);
    EXPECT_TRUE(result->problems[0].file.ends_with("events.out.tfevents.1"));
    EXPECT_TRUE(result->problems[1].tail);
    EXPECT_LT(result->problems[1].offset, bytes.size());
}

TEST_F(ImportTest, WhatIsNoNumberIsCountedAndLeftOut) {
    EventLog log;
    log.scalar(0, "loss", 1).text(0, "notes").scalar(0, "debug/x", 5);
    put("events.out.tfevents.1", log.bytes());
    const auto result = import([](std::string_view tag) -> std::optional<RoleChoice> {
        if (tag.starts_with("debug/")) return RoleChoice{.ignore = true};
        return std::nullopt;
    });
    ASSERT_TRUE(result.is_ok()) << result.status().message();
    EXPECT_EQ(result->skipped, 2U);
    EXPECT_EQ(open()->tensor_names(), std::vector<std::string>{"loss"});
}

TEST_F(ImportTest, AChosenRoleIsTaken) {
    EventLog log;
    log.scalar(0, "cost", 1);
    put("events.out.tfevents.1", log.bytes());
    ASSERT_TRUE(import([](std::string_view) { return RoleChoice{.role = model::Role::kLoss}; }).is_ok());
    EXPECT_EQ(open()->tensors(0)[0].role, model::Role::kLoss);
}

TEST_F(ImportTest, NothingToImportLeavesNothing) {
    EXPECT_EQ(import().status().code(), Code::kNotFound);
    put("readme.txt", {});
    EXPECT_EQ(import().status().code(), Code::kNotFound);
    put("events.out.tfevents.1", EventLog().bytes());
    EXPECT_EQ(import().status().code(), Code::kNotFound);
    EXPECT_FALSE(std::filesystem::exists(run_path()));
    std::filesystem::remove_all(directory_.path() + "/logs");
    EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));  // no partial directory either
}

TEST_F(ImportTest, ARunThatIsThereIsLeftAlone) {
    EventLog log;
    log.scalar(0, "loss", 1);
    put("events.out.tfevents.1", log.bytes());
    ASSERT_TRUE(import().is_ok());
    EXPECT_EQ(import().status().code(), Code::kAlreadyExists);
}

TEST_F(ImportTest, SeveralRunsKeepTheirNames) {
    EventLog log;
    log.scalar(0, "loss", 1);
    put("a/events.out.tfevents.1", log.bytes());
    put("b/events.out.tfevents.1", log.bytes());
    const auto result = import();
    ASSERT_TRUE(result.is_ok());
    ASSERT_EQ(result->notes.size(), 1U);
    EXPECT_EQ(open()->tensor_names(), (std::vector<std::string>{"a/loss", "b/loss"}));
}

TEST_F(ImportTest, EveryPrefixOfALogIsRead) {
    EventLog log;
    log.scalar(0, "loss", 1).tensor_histogram(1, "w", {0, 1, 4}).scalar(2, "loss", 2);
    for (std::size_t size = 0; size <= log.bytes().size(); ++size) {
        const ImportResult result = scan_event_file(base::ByteSpan(log.bytes()).first(size));
        EXPECT_LE(result.scalars, 2U);
        EXPECT_LE(result.problems_in_all, 1U);
    }
    EXPECT_EQ(scan_event_file(log.bytes()).scalars, 2U);
    EXPECT_EQ(scan_event_file(log.bytes()).histograms, 1U);
}

TEST_F(ImportTest, WhatIsExportedComesBack) {
    EventLog log;
    log.scalar(0, "loss", 1.5)
        .scalar(1, "loss", 0.5)
        .tensor_histogram(1, "gradient/fc1.weight", {-1, 0, 4, 0, 1, 8});
    put("train/events.out.tfevents.1", log.bytes());
    ASSERT_TRUE(import().is_ok());
    const auto exported = export_run("tensorboard", {.run = run_path(), .to = directory_.path() + "/again"});
    ASSERT_TRUE(exported.is_ok()) << exported.status().message();
    const auto again =
        import_tensorboard({.from = directory_.path() + "/again", .to = directory_.path() + "/run2"});
    ASSERT_TRUE(again.is_ok()) << again.status().message();
    const auto run = read::Run::open(directory_.path() + "/run2");
    ASSERT_TRUE(run.is_ok());
    EXPECT_EQ(series(**run, "loss", "value", Mode::kTrain), (Points{{0, 1.5}, {1, 0.5}}));
    const auto before = open()->step(0, Mode::kTrain, 1);
    const auto after = (*run)->step(0, Mode::kTrain, 1);
    ASSERT_EQ((*after)->histograms.size(), 1U);
    EXPECT_EQ(model::element_count((*after)->histograms[0].bins),
              model::element_count((*before)->histograms[0].bins));
    EXPECT_NEAR((*after)->tensors[0].statistics.l2, (*before)->tensors[0].statistics.l2, 1e-5);
    EXPECT_EQ((*after)->tensors[0].statistics.min, -1);
}

}  // namespace
}  // namespace traindbg::exchange
