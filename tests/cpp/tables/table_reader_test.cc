#include "traindbg/tables/table_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "format/sample_records.h"
#include "traindbg/model/histogram.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/tables/arrow_stream.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::tables {
namespace {

using base::Code;
using testing::sample_step;
using testing::sample_tensors;
using namespace std::chrono_literals;

class TableReaderTest : public ::testing::Test {
  protected:
    // Two workers with eight steps each, of which 4 is one of EVAL.
    void SetUp() override {
        ASSERT_TRUE(files_.create_directories("/run").is_ok());
        ASSERT_TRUE(files_.put_atomic("/run/RUN.json", base::as_bytes("{}")).is_ok());
        for (const model::WorkerId worker : {0U, 1U}) {
            auto writer = write::RunWriter::open(
                files_, {.run_directory = "/run", .worker = worker, .block_for = 60s, .seals_parts = false});
            ASSERT_TRUE(writer.is_ok()) << writer.status().message();
            for (const model::TensorInfo& info : sample_tensors()) (*writer)->add_tensor(info);
            for (std::uint64_t step = 0; step < 8; ++step) {
                model::StepRecord record = sample_step(step);
                record.histograms = {{0, {{-5, 2}, {0, 1}, {17, 9}}}};
                records_.push_back(record);
                (*writer)->append(std::move(record));
            }
            (*writer)->event("note", R"({"text": "hello"})");
            ASSERT_TRUE((*writer)->close(60s).is_ok());
        }
    }

    std::unique_ptr<TableReader> open(TableKind kind, Selection selection = {},
                                      std::size_t rows = kBatchRows) {
        auto reader = TableReader::open("/run", kind, std::move(selection), files_, rows);
        EXPECT_TRUE(reader.is_ok()) << reader.status().message();
        return std::move(reader).value();
    }

    static std::size_t column_of(const TableReader& reader, std::string_view name) {
        for (std::size_t i = 0; i < reader.fields().size(); ++i)
            if (reader.fields()[i].name == name) return i;
        ADD_FAILURE() << "no column " << name;
        return 0;
    }

    static std::size_t count_rows(TableReader& reader) {
        std::size_t rows = 0;
        while (true) {
            auto batch = reader.next();
            EXPECT_TRUE(batch.is_ok());
            if (!batch->has_value()) return rows;
            EXPECT_GT((*batch)->rows, 0U);
            for (const Column& column : (*batch)->columns) EXPECT_EQ(column.rows, (*batch)->rows);
            rows += (*batch)->rows;
        }
    }

    storage::MemoryFileSystem files_;
    std::vector<model::StepRecord> records_;  // of worker 0, then of worker 1
};

TEST_F(TableReaderTest, ScalarsAreThoseThatWereRecorded) {
    const auto reader = open(TableKind::kScalars, {.worker = 1});
    std::vector<std::tuple<std::string, std::uint64_t, std::string, double>> got;
    const auto batch = reader->next();
    ASSERT_TRUE(batch.is_ok() && batch->has_value());
    const auto& columns = (*batch)->columns;
    for (std::size_t row = 0; row < (*batch)->rows; ++row) {
        EXPECT_EQ(columns[0].at<std::uint32_t>(row), 1U);
        got.emplace_back(columns[1].text_at(row), columns[2].at<std::uint64_t>(row), columns[4].text_at(row),
                         columns[5].at<double>(row));
    }
    decltype(got) want;
    for (std::size_t i = 8; i < 16; ++i)
        for (const model::ScalarSample& sample : records_[i].scalars)
            want.emplace_back(model::to_string(records_[i].mode), records_[i].step,
                              sample_tensors()[sample.tensor].name, sample.value);
    EXPECT_EQ(got, want);
    EXPECT_FALSE(reader->next()->has_value());
    EXPECT_FALSE(reader->next()->has_value());
    EXPECT_EQ(reader->steps_read(), 16U);
}

TEST_F(TableReaderTest, EveryBatchSizeGivesTheSameRows) {
    for (const TableInfo& table : all_tables()) {
        const std::size_t all = count_rows(*open(table.kind));
        EXPECT_EQ(all == 0, table.kind == TableKind::kFindings) << table.name;
        for (const std::size_t rows : {1U, 2U, 3U, 7U})
            EXPECT_EQ(count_rows(*open(table.kind, {}, rows)), all) << table.name << " by " << rows;
    }
}

TEST_F(TableReaderTest, ChannelRowsCrossBatches) {
    const auto reader = open(TableKind::kChannels, {.worker = 0}, 3);
    std::vector<std::tuple<std::uint64_t, std::uint32_t, double, double, double>> got;
    while (true) {
        const auto batch = reader->next();
        ASSERT_TRUE(batch.is_ok());
        if (!batch->has_value()) break;
        EXPECT_LE((*batch)->rows, 3U);
        const auto& columns = (*batch)->columns;
        for (std::size_t row = 0; row < (*batch)->rows; ++row)
            got.emplace_back(columns[2].at<std::uint64_t>(row), columns[5].at<std::uint32_t>(row),
                             columns[6].at<double>(row), columns[7].at<double>(row),
                             columns[8].at<double>(row));
    }
    std::size_t at = 0;
    for (std::size_t step = 0; step < 8; ++step)
        for (const model::ChannelSample& sample : records_[step].channels)
            for (std::uint32_t channel = 0; channel < sample.channels.channels(); ++channel) {
                ASSERT_LT(at, got.size());
                EXPECT_EQ(got[at++], std::tuple(records_[step].step, channel,
                                                static_cast<double>(sample.channels.min[channel]),
                                                static_cast<double>(sample.channels.max[channel]),
                                                static_cast<double>(sample.channels.zero[channel])));
            }
    EXPECT_EQ(at, got.size());
    EXPECT_EQ(at, 8U);
}

TEST_F(TableReaderTest, FingerprintsAreSixteenDigits) {
    const auto reader = open(TableKind::kDigests, {.worker = 0});
    const auto batch = reader->next();
    ASSERT_TRUE(batch.is_ok() && batch->has_value());
    ASSERT_EQ((*batch)->rows, 3U);
    EXPECT_EQ((*batch)->columns[5].text_at(0), "0123456789abcdf1");  // of step 2
    EXPECT_EQ((*batch)->columns[6].at<double>(0), -1);
    EXPECT_EQ((*batch)->columns[5].text_at(1), "fffffffffffffffd");
}

TEST_F(TableReaderTest, HistogramRowsCrossBatches) {
    const auto reader = open(TableKind::kHistograms, {.worker = 0}, 2);
    std::vector<std::pair<int, std::uint64_t>> got;
    while (true) {
        const auto batch = reader->next();
        ASSERT_TRUE(batch.is_ok());
        if (!batch->has_value()) break;
        EXPECT_LE((*batch)->rows, 2U);
        for (std::size_t row = 0; row < (*batch)->rows; ++row)
            got.emplace_back((*batch)->columns[5].at<std::int32_t>(row),
                             (*batch)->columns[8].at<std::uint64_t>(row));
    }
    ASSERT_EQ(got.size(), 24U);
    for (std::size_t i = 0; i < got.size(); i += 3) {
        EXPECT_EQ(got[i], (std::pair<int, std::uint64_t>{-5, 2}));
        EXPECT_EQ(got[i + 1], (std::pair<int, std::uint64_t>{0, 1}));
        EXPECT_EQ(got[i + 2], (std::pair<int, std::uint64_t>{17, 9}));
    }
}

TEST_F(TableReaderTest, ASelectionIsWhatComes) {
    const auto named = [](std::string_view part) {
        return [part](std::string_view name) { return name.find(part) != std::string_view::npos; };
    };
    const std::size_t all = count_rows(*open(TableKind::kStatistics));
    EXPECT_EQ(all, 2U * 8 * 2);
    EXPECT_EQ(count_rows(*open(TableKind::kStatistics, {.name = named("fc1")})), all / 2);
    EXPECT_EQ(count_rows(*open(TableKind::kStatistics, {.collections = {"activations"}})), all / 2);
    EXPECT_EQ(count_rows(*open(TableKind::kStatistics, {.collections = {"mine"}})), all / 2);
    EXPECT_EQ(count_rows(*open(TableKind::kStatistics, {.mode = model::Mode::kEval})), 2U * 2);
    EXPECT_EQ(count_rows(*open(TableKind::kStatistics, {.first_step = 2, .end_step = 5})), 2U * 3 * 2);
    EXPECT_EQ(count_rows(*open(TableKind::kStatistics, {.worker = 1})), all / 2);
    EXPECT_EQ(count_rows(*open(TableKind::kStatistics, {.worker = 7})), 0U);
}

TEST_F(TableReaderTest, StatisticsAreColumnsAndUnitsThatWereNotTakenAreNull) {
    const auto reader = open(TableKind::kStatistics, {.worker = 0, .statistics = {"units", "l2", "inf"}});
    ASSERT_EQ(reader->fields().size(), 8U);
    const std::size_t l2 = column_of(*reader, "l2");
    const std::size_t inf = column_of(*reader, "inf");
    const std::size_t units = column_of(*reader, "units");
    const auto batch = reader->next();
    ASSERT_TRUE(batch.is_ok() && batch->has_value());
    std::size_t row = 0;
    for (std::size_t i = 0; i < 8; ++i)
        for (const model::TensorSample& sample : records_[i].tensors) {
            EXPECT_EQ((*batch)->columns[l2].at<double>(row), sample.statistics.l2);
            EXPECT_EQ((*batch)->columns[inf].at<std::uint64_t>(row), sample.statistics.infinite());
            EXPECT_EQ((*batch)->columns[units].is_null(row), sample.units.units == 0);
            if (sample.units.units != 0) {
                EXPECT_EQ((*batch)->columns[units].at<std::uint64_t>(row), sample.units.units);
            }
            ++row;
        }
    EXPECT_EQ(row, (*batch)->rows);
}

TEST_F(TableReaderTest, WhatFollowsFromTheStatisticsIsAColumnWhereItIsNamed) {
    const auto reader = open(TableKind::kStatistics, {.worker = 0, .statistics = {"variance", "sum"}});
    ASSERT_EQ(reader->fields().size(), 7U);
    const std::size_t variance = column_of(*reader, "variance");
    const std::size_t sum = column_of(*reader, "sum");
    const auto batch = reader->next();
    ASSERT_TRUE(batch.is_ok() && batch->has_value());
    ASSERT_NE((*batch)->rows, 0U);
    for (std::size_t i = 0, row = 0; i < 8; ++i)
        for (const model::TensorSample& sample : records_[i].tensors) {
            const model::Statistics& s = sample.statistics;
            EXPECT_EQ((*batch)->columns[variance].at<double>(row), s.std * s.std);
            EXPECT_EQ((*batch)->columns[sum].at<double>(row), s.mean * static_cast<double>(s.finite()));
            ++row;
        }
    const auto of_all = open(TableKind::kStatistics, {});
    for (const Field& field : of_all->fields()) EXPECT_NE(std::string(field.name), "variance");
}

TEST_F(TableReaderTest, MistakesNameTheNearest) {
    const auto statistic =
        TableReader::open("/run", TableKind::kStatistics, {.statistics = {"maen"}}, files_);
    EXPECT_EQ(statistic.status().code(), Code::kInvalidArgument);
    EXPECT_NE(statistic.status().message().find("mean"), std::string::npos);
    const auto collection =
        TableReader::open("/run", TableKind::kScalars, {.collections = {"lossess"}}, files_);
    EXPECT_EQ(collection.status().code(), Code::kInvalidArgument);
    EXPECT_NE(collection.status().message().find("losses"), std::string::npos);
    EXPECT_EQ(TableReader::open("/nothing", TableKind::kScalars, {}, files_).status().code(),
              Code::kNotFound);
    EXPECT_NE(parse_table("statistic").status().message().find("'statistics'"), std::string::npos);
    for (const TableInfo& table : all_tables()) EXPECT_EQ(*parse_table(table.name), table.kind);
}

TEST_F(TableReaderTest, FindingsAreThoseOfTheVerdict) {
    EXPECT_EQ(count_rows(*open(TableKind::kFindings)), 0U);
    ASSERT_TRUE(files_
                    .put_atomic("/run/verdict.json",
                                base::as_bytes(R"({"findings": [{"rule": "overfit", "message": "m",
        "severity": "error", "mode": "train", "worker": 0, "first_step": 3, "step": 4, "last_step": 5,
        "times": 2, "tensor": "loss", "evidence": [{"name": "gap", "value": "nan"}],
        "sources": [{"what": "loop", "file": "train.py", "line": 7}]}]})"))
                    .is_ok());
    const auto reader = open(TableKind::kFindings);
    const auto batch = reader->next();
    ASSERT_TRUE(batch.is_ok() && batch->has_value());
    ASSERT_EQ((*batch)->rows, 1U);
    EXPECT_EQ((*batch)->columns[column_of(*reader, "rule")].text_at(0), "overfit");
    EXPECT_EQ((*batch)->columns[column_of(*reader, "severity")].text_at(0), "error");
    EXPECT_EQ((*batch)->columns[column_of(*reader, "first_step")].at<std::uint64_t>(0), 3U);
    EXPECT_EQ((*batch)->columns[column_of(*reader, "times")].at<std::uint64_t>(0), 2U);
    EXPECT_EQ((*batch)->columns[column_of(*reader, "sources")].text_at(0),
              R"([{"what":"loop","file":"train.py","line":7}])");
    ASSERT_TRUE(files_.put_atomic("/run/verdict.json", base::as_bytes("{")).is_ok());
    EXPECT_FALSE(TableReader::open("/run", TableKind::kFindings, {}, files_).is_ok());
}

TEST(TableTexts, WhatIsNoUtf8IsReplaced) {
    for (const char* good : {"", "plain", "Größe", "\xE2\x82\xAC", "\xF0\x9F\x98\x80"}) {
        Texts texts;
        texts.add(good);
        EXPECT_EQ(texts.at(0), good);
    }
    for (const std::string bad :
         {"\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\xFF"}) {
        Texts texts;
        texts.add("a" + bad + "b");
        EXPECT_EQ(texts.at(0).front(), 'a');
        EXPECT_EQ(texts.at(0).back(), 'b');
        EXPECT_EQ(texts.at(0).substr(1, 3), "\xEF\xBF\xBD");
        EXPECT_EQ(texts.at(0).find(bad), std::string_view::npos);
    }
}

TEST(TableColumn, NullsInAnyPlace) {
    Column column(Type::kUInt64);
    for (std::uint64_t i = 0; i < 40; ++i) {
        if (i % 3 == 1) column.add_null();
        else column.add(i);
    }
    EXPECT_EQ(column.nulls, 13U);
    for (std::uint64_t i = 0; i < 40; ++i) {
        EXPECT_EQ(column.is_null(i), i % 3 == 1);
        if (i % 3 != 1) {
            EXPECT_EQ(column.at<std::uint64_t>(i), i);
        }
    }
}

// ---- the stream, by hand, as a consumer in C uses it ----

class ArrowStreamTest : public TableReaderTest {
  protected:
    ArrowArrayStream stream(TableKind kind, std::size_t rows = kBatchRows) {
        ArrowArrayStream out;
        EXPECT_TRUE(to_arrow_stream(open(kind, {}, rows), &out));
        return out;
    }
};

TEST_F(ArrowStreamTest, SchemaAndArraysFitEachOther) {
    for (const TableInfo& table : all_tables()) {
        ArrowArrayStream in = stream(table.kind, 5);
        ArrowSchema schema;
        ASSERT_EQ(in.get_schema(&in, &schema), 0);
        EXPECT_STREQ(schema.format, "+s");
        while (true) {
            ArrowArray array;
            ASSERT_EQ(in.get_next(&in, &array), 0);
            if (array.release == nullptr) break;
            ASSERT_EQ(array.n_children, schema.n_children);
            for (std::int64_t i = 0; i < array.n_children; ++i) {
                EXPECT_EQ(array.children[i]->length, array.length);
                EXPECT_EQ(array.children[i]->dictionary != nullptr,
                          schema.children[i]->dictionary != nullptr);
                EXPECT_EQ(array.children[i]->n_children, schema.children[i]->n_children);
                const bool is_text = std::string_view(schema.children[i]->format) == "u";
                EXPECT_EQ(array.children[i]->n_buffers, is_text ? 3 : 2) << schema.children[i]->name;
            }
            array.release(&array);
            EXPECT_EQ(array.release, nullptr);
        }
        schema.release(&schema);
        EXPECT_EQ(in.get_last_error(&in), nullptr);
        in.release(&in);
        EXPECT_EQ(in.release, nullptr);
    }
}

TEST_F(ArrowStreamTest, ArraysOutliveTheStreamAndColumnsTheArray) {
    ArrowArrayStream in = stream(TableKind::kScalars);
    ArrowArray array;
    ASSERT_EQ(in.get_next(&in, &array), 0);
    in.release(&in);
    const std::int64_t rows = array.length;
    ArrowArray column = *array.children[5];  // moved out, as the specification allows
    array.children[5]->release = nullptr;
    array.release(&array);
    ASSERT_EQ(column.length, rows);
    const auto* const values = static_cast<const double*>(column.buffers[1]);
    EXPECT_EQ(values[0], records_[0].scalars[0].value);
    column.release(&column);
}

TEST_F(ArrowStreamTest, ADictionaryMayOutliveItsColumn) {
    ArrowArrayStream in = stream(TableKind::kScalars);
    ArrowArray array;
    ASSERT_EQ(in.get_next(&in, &array), 0);
    ArrowArray words = *array.children[4]->dictionary;
    array.children[4]->dictionary->release = nullptr;
    array.release(&array);
    in.release(&in);
    const auto* const offsets = static_cast<const std::int32_t*>(words.buffers[1]);
    const auto* const bytes = static_cast<const char*>(words.buffers[2]);
    EXPECT_EQ(std::string_view(bytes, static_cast<std::size_t>(offsets[1])), "loss");
    words.release(&words);
}

TEST_F(ArrowStreamTest, ReleasedInTheMiddleNothingIsLeft) {
    ArrowArrayStream in = stream(TableKind::kStatistics, 3);
    ArrowArray array;
    ASSERT_EQ(in.get_next(&in, &array), 0);
    ASSERT_NE(array.release, nullptr);
    in.release(&in);
    array.release(&array);
    ArrowArrayStream unused = stream(TableKind::kStatistics);
    unused.release(&unused);
}

// A table that fails after its first batch.
class FailingReader final : public TableReader {
  public:
    const std::vector<Field>& fields() const noexcept override { return fields_; }
    base::Result<std::optional<Batch>> next() override {
        if (given_) return base::Status(Code::kDataLoss, "/run/w0000: cannot be read");
        given_ = true;
        Batch batch;
        batch.rows = 1;
        batch.columns.emplace_back(Type::kDouble);
        batch.columns[0].add(1.5);
        return std::optional(std::move(batch));
    }
    std::uint64_t steps_read() const noexcept override { return 0; }
    const std::vector<read::Damage>& damage() const override { return damage_; }

  private:
    std::vector<read::Damage> damage_;
    std::vector<Field> fields_ = {{"value", Type::kDouble}};
    bool given_ = false;
};

TEST(ArrowStream, AnErrorIsToldAndStays) {
    ArrowArrayStream in;
    ASSERT_TRUE(to_arrow_stream(std::make_unique<FailingReader>(), &in));
    ArrowArray array;
    ASSERT_EQ(in.get_next(&in, &array), 0);
    array.release(&array);
    for (int again = 0; again < 2; ++again) {
        EXPECT_EQ(in.get_next(&in, &array), EIO);
        EXPECT_EQ(array.release, nullptr);
        EXPECT_STREQ(in.get_last_error(&in), "/run/w0000: cannot be read");
    }
    ArrowSchema schema;
    EXPECT_EQ(in.get_schema(&in, &schema), 0);
    schema.release(&schema);
    in.release(&in);
}

}  // namespace
}  // namespace traindbg::tables
