#include "traindbg/format/records.h"

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>

#include "format/sample_records.h"

namespace traindbg::format {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::ByteWriter;
using base::Code;
using model::StepRecord;
using model::TensorTable;
using testing::sample_step;
using testing::sample_tensors;

StepRecord round_trip(const StepRecord& record, const TensorTable& table) {
    ByteWriter out;
    EXPECT_EQ(encode_step(out, record, table, {}), 0U);
    StepRecord back = sample_step(99, true);  // what was in it must not show through
    const auto skipped = decode_step(out.bytes(), table, back);
    EXPECT_TRUE(skipped.is_ok()) << skipped.status().to_string();
    EXPECT_EQ(*skipped, 0U);
    return back;
}

TEST(RecordsTest, AStepComesBack) {
    for (std::uint64_t step = 0; step < 6; ++step)
        EXPECT_EQ(round_trip(sample_step(step), sample_tensors()), sample_step(step));
    EXPECT_EQ(round_trip(StepRecord{}, {}), StepRecord{});
}

TEST(RecordsTest, AStepKeepsTheOrderOfItsSamples) {
    StepRecord record = sample_step(3);
    std::swap(record.tensors[0], record.tensors[1]);
    record.scalars = {{3, 1.0}, {0, 2.0}, {2, 3.0}};
    EXPECT_EQ(round_trip(record, sample_tensors()), record);
}

TEST(RecordsTest, ExtremesOfEveryField) {
    StepRecord record = sample_step(0);
    record.mode = model::Mode::kGlobal;
    record.step = record.sequence = record.step_nanos = record.capture_nanos = UINT64_MAX;
    record.wall_nanos = INT64_MIN;
    record.monotonic_nanos = INT64_MAX;
    model::Statistics& statistics = record.tensors[0].statistics;
    statistics.count = UINT64_MAX;
    statistics.nan = UINT64_MAX / 2;
    statistics.negative_infinite = UINT64_MAX / 4;
    record.tensors[1].units = {UINT32_MAX, UINT32_MAX, UINT64_MAX, UINT64_MAX};
    record.scalars[0].value = std::numeric_limits<double>::denorm_min();
    EXPECT_EQ(round_trip(record, sample_tensors()), record);
}

TEST(RecordsTest, ScalarsAreExactAndMayBeNotFinite) {
    StepRecord record;
    record.scalars = {{2, std::nan("")}, {2, -std::numeric_limits<double>::infinity()}, {2, 0.1}};
    const StepRecord back = round_trip(record, sample_tensors());
    ASSERT_EQ(back.scalars.size(), 3U);
    EXPECT_TRUE(std::isnan(back.scalars[0].value));
    EXPECT_EQ(back.scalars[1].value, -std::numeric_limits<double>::infinity());
    EXPECT_EQ(back.scalars[2].value, 0.1);
}

TEST(RecordsTest, AFiniteMomentStaysFiniteAndNotZero) {
    StepRecord record = sample_step(0);
    model::Statistics& statistics = record.tensors[0].statistics;
    statistics.max = 1e300;
    statistics.min = -1e300;
    statistics.mean = 1e-300;
    statistics.std = 0;
    statistics.l1 = std::numeric_limits<double>::infinity();
    statistics.l2 = 0.1;
    const model::Statistics back = round_trip(record, sample_tensors()).tensors[0].statistics;
    EXPECT_EQ(back.max, static_cast<double>(FLT_MAX));
    EXPECT_EQ(back.min, -static_cast<double>(FLT_MAX));
    EXPECT_EQ(back.mean, static_cast<double>(FLT_TRUE_MIN));
    EXPECT_EQ(back.std, 0);
    EXPECT_TRUE(std::isinf(back.l1));
    EXPECT_EQ(back.l2, static_cast<double>(0.1F));
}

TEST(RecordsTest, ClassesAreStoredSparselyWhereMostAreZero) {
    StepRecord record;
    model::ClassSample sample;
    sample.tensor = 3;
    sample.counts.labels.resize(50'000);
    sample.counts.predictions.resize(50'000);
    sample.counts.hits.resize(50'000);
    sample.counts.labels[0] = 1;
    sample.counts.labels[49'999] = UINT32_MAX;
    sample.counts.hits[20'000] = 3;
    record.classes = {sample};
    EXPECT_EQ(round_trip(record, sample_tensors()), record);
    ByteWriter out;
    EXPECT_EQ(encode_step(out, record, sample_tensors(), {}), 0U);
    EXPECT_LT(out.size(), 100U);
}

TEST(RecordsTest, MoreClassesThanAllowedAreLeftOut) {
    StepRecord record;
    model::ClassSample sample;
    sample.tensor = 3;
    sample.counts.labels.resize(kMostClasses + 1);
    record.classes = {sample};
    ByteWriter out;
    EXPECT_EQ(encode_step(out, record, sample_tensors(), {}), 1U);
    StepRecord back;
    ASSERT_TRUE(decode_step(out.bytes(), sample_tensors(), back).is_ok());
    EXPECT_TRUE(back.classes.empty());
}

TEST(RecordsTest, SamplesOfUnknownTensorsAreSkippedAndCounted) {
    ByteWriter out;
    encode_step(out, sample_step(1), sample_tensors(), {});
    TensorTable table = sample_tensors();
    table[1].name.clear();  // its description was lost
    table.pop_back();       // and the last one's
    StepRecord back;
    const auto skipped = decode_step(out.bytes(), table, back);
    ASSERT_TRUE(skipped.is_ok());
    EXPECT_EQ(*skipped, 3U);
    EXPECT_EQ(back.tensors, std::vector<model::TensorSample>{sample_step(1).tensors[0]});
    EXPECT_EQ(back.scalars, sample_step(1).scalars);
    EXPECT_TRUE(back.classes.empty());
    EXPECT_EQ(back.histograms, std::vector<model::HistogramSample>{sample_step(1).histograms[0]});
}

TEST(RecordsTest, ThePrefixIsThatOfTheStep) {
    ByteWriter out;
    const std::vector<RawPlace> raw = {{0, tensor::DType::kFloat32, {4, 3}, 2, 4096, 48, 0xABCD},
                                       {1, tensor::DType::kBFloat16, {0, 4}, 2, 4160, 0, 7}};
    encode_step(out, sample_step(9), sample_tensors(), raw);
    const auto prefix = decode_step_prefix(out.bytes());
    ASSERT_TRUE(prefix.is_ok());
    EXPECT_EQ(prefix->mode, model::Mode::kEval);
    EXPECT_EQ(prefix->step, 9U);
    EXPECT_EQ(prefix->sequence, 9U);
    EXPECT_EQ(prefix->step_nanos, 1'000'009U);
    EXPECT_EQ(prefix->capture_nanos, 1009U);
    EXPECT_EQ(prefix->raw_tensors, 2U);
    StepRecord record;
    std::vector<RawPlace> again;
    ASSERT_TRUE(decode_step(out.bytes(), sample_tensors(), record, &again).is_ok());
    EXPECT_EQ(again, raw);
}

TEST(RecordsTest, AWholeTensorOfAnotherShapeThanDescribedKeepsIt) {
    ByteWriter out;
    const std::vector<RawPlace> raw = {
        {1, tensor::DType::kFloat16, {7, 1, 3}, 4'000'000'000, std::uint64_t{1} << 49, 42, 0xFFFFFFFF}};
    encode_step(out, StepRecord{}, sample_tensors(), raw);
    StepRecord record;
    std::vector<RawPlace> again;
    ASSERT_TRUE(decode_step(out.bytes(), sample_tensors(), record, &again).is_ok());
    EXPECT_EQ(again, raw);
}

TEST(RecordsTest, AStepCutAnywhereIsRefused) {
    ByteWriter out;
    encode_step(out, sample_step(1), sample_tensors(), {});
    const ByteSpan bytes(out.bytes());
    std::size_t accepted = 0;
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        StepRecord back;
        const auto result = decode_step(bytes.first(size), sample_tensors(), back);
        if (result.is_ok()) ++accepted;
        else EXPECT_EQ(result.status().code(), Code::kDataLoss);
    }
    // Cut between two sections, what is left is a whole step with fewer sections: the frame's
    // checksum is what tells. There are five sections, so five such places.
    EXPECT_EQ(accepted, 5U);
}

TEST(RecordsTest, UnknownSectionsAndTrailingBytesAreIgnored) {
    ByteWriter out;
    encode_step(out, sample_step(1), sample_tensors(), {});
    out.varint(77);  // a section of a newer version
    out.text("whatever");
    StepRecord back;
    ASSERT_TRUE(decode_step(out.bytes(), sample_tensors(), back).is_ok());
    EXPECT_EQ(back, sample_step(1));
}

TEST(RecordsTest, ARepeatedSectionIsRefused) {
    ByteWriter out;
    encode_step(out, sample_step(1), sample_tensors(), {});
    out.varint(3);
    out.varint(1);
    out.varint(0);
    StepRecord back;
    EXPECT_EQ(decode_step(out.bytes(), sample_tensors(), back).status().code(), Code::kDataLoss);
}

TEST(RecordsTest, CountsThatDoNotAddUpAreRefused) {
    StepRecord record = sample_step(1);
    record.tensors[0].statistics.nan = record.tensors[0].statistics.count + 1;
    ByteWriter out;
    encode_step(out, record, sample_tensors(), {});
    StepRecord back;
    EXPECT_EQ(decode_step(out.bytes(), sample_tensors(), back).status().code(), Code::kDataLoss);
}

TEST(RecordsTest, AStepOfAnUnknownModeIsUnsupported) {
    ByteWriter out;
    encode_step(out, sample_step(1), sample_tensors(), {});
    ByteBuffer bytes = out.take();
    bytes[0] = std::byte{9};
    StepRecord back;
    EXPECT_EQ(decode_step(bytes, sample_tensors(), back).status().code(), Code::kUnsupported);
    EXPECT_EQ(decode_step_prefix(bytes).status().code(), Code::kUnsupported);
}

TEST(RecordsTest, AHugeCountInASmallPayloadIsRefused) {
    // Each claims 2^60 entries and holds none.
    for (const std::uint64_t section : {1U, 2U, 3U, 4U}) {
        ByteWriter content;
        content.varint(std::uint64_t{1} << 60);
        ByteWriter out;
        encode_step(out, StepRecord{}, {}, {});
        out.varint(section);
        out.varint(content.size());
        out.append(content.bytes());
        StepRecord back;
        EXPECT_EQ(decode_step(out.bytes(), {}, back).status().code(), Code::kDataLoss) << section;
    }
}

TEST(RecordsTest, ManyClassesInASmallPayloadAreRefused) {
    // 1000 samples of 2^20 classes, all zero, would be 12 GB.
    ByteWriter content;
    content.varint(1000);
    for (int i = 0; i < 1000; ++i) {
        content.zigzag(i == 0 ? 0 : -1);
        content.varint(kMostClasses);
        for (int column = 0; column < 3; ++column) {
            content.fixed(std::uint8_t{1});
            content.varint(0);
        }
    }
    ByteWriter out;
    encode_step(out, StepRecord{}, {}, {});
    out.varint(4);
    out.varint(content.size());
    out.append(content.bytes());
    StepRecord back;
    EXPECT_EQ(decode_step(out.bytes(), {}, back).status().code(), Code::kDataLoss);
}

TEST(RecordsTest, ASchemaComesBack) {
    ByteWriter out;
    encode_schema(out, sample_tensors());
    TensorTable table;
    ASSERT_TRUE(decode_schema(out.bytes(), table).is_ok());
    EXPECT_EQ(table, sample_tensors());
}

TEST(RecordsTest, APartOfADistributedTensorComesBack) {
    std::vector<model::TensorInfo> tensors = sample_tensors();
    tensors[1].shard = model::ShardInfo{.whole_shape = {5, 4}, .offset = {3, 0}, .placement = "shard(0)"};
    tensors[2].shard =
        model::ShardInfo{.whole_shape = {7}, .offset = {}, .placement = "replicate,partial(sum)"};
    ByteWriter out;
    encode_schema(out, tensors);
    TensorTable table;
    ASSERT_TRUE(decode_schema(out.bytes(), table).is_ok());
    EXPECT_EQ(table, tensors);
    EXPECT_FALSE(table[1].shard->is_partial());
    EXPECT_TRUE(table[2].shard->is_partial());
}

TEST(RecordsTest, TheFirstDescriptionOfATensorStays) {
    TensorTable table = sample_tensors();
    std::vector<model::TensorInfo> again = {table[0]};
    again[0].name = "another";
    ByteWriter out;
    encode_schema(out, again);
    ASSERT_TRUE(decode_schema(out.bytes(), table).is_ok());
    EXPECT_EQ(table, sample_tensors());
}

TEST(RecordsTest, ALostDescriptionLeavesAGap) {
    ByteWriter out;
    encode_schema(out, {sample_tensors()[2]});
    TensorTable table;
    ASSERT_TRUE(decode_schema(out.bytes(), table).is_ok());
    ASSERT_EQ(table.size(), 3U);
    EXPECT_FALSE(is_known(table, 0));
    EXPECT_TRUE(is_known(table, 2));
    EXPECT_FALSE(is_known(table, 3));
}

TEST(RecordsTest, AnImplausibleIdIsRefused) {
    model::TensorInfo info = sample_tensors()[0];
    info.id = UINT32_MAX;
    ByteWriter out;
    encode_schema(out, {info});
    TensorTable table;
    EXPECT_EQ(decode_schema(out.bytes(), table).code(), Code::kDataLoss);
    EXPECT_TRUE(table.empty()) << "and no memory was taken for the ids below";
}

TEST(RecordsTest, WordsOfANewerVersionBecomeOther) {
    model::TensorInfo info = sample_tensors()[0];
    info.role = static_cast<model::Role>(200);
    info.activation = static_cast<model::ActivationKind>(200);
    info.dtype = static_cast<tensor::DType>(200);
    ByteWriter out;
    encode_schema(out, {info});
    TensorTable table;
    ASSERT_TRUE(decode_schema(out.bytes(), table).is_ok());
    EXPECT_EQ(table[0].role, model::Role::kOther);
    EXPECT_EQ(table[0].activation, model::ActivationKind::kNone);
    EXPECT_EQ(table[0].dtype, tensor::DType::kUnknown);
}

TEST(RecordsTest, EventsTotalsAndWorkersComeBack) {
    ByteWriter out;
    const EventRecord event{-5, "loss_not_finite", R"({"step":3})"};
    encode_event(out, event);
    EXPECT_EQ(*decode_event(out.bytes()), event);
    out.clear();
    const TotalsRecord totals{7, 1, UINT64_MAX, 300};
    encode_totals(out, totals);
    EXPECT_EQ(*decode_totals(out.bytes()), totals);
    out.clear();
    encode_worker(out, testing::sample_meta());
    EXPECT_EQ(*decode_worker(out.bytes()), testing::sample_meta());
    EXPECT_FALSE(decode_worker(base::as_bytes("not json")).is_ok());
}

TEST(RecordsTest, ElementCounts) {
    EXPECT_EQ(element_count({}), 1U);
    EXPECT_EQ(element_count({4, 3}), 12U);
    EXPECT_EQ(element_count({4, 0}), 0U);
    EXPECT_EQ(element_count({-1}), 0U);
    EXPECT_EQ(element_count({INT64_MAX, INT64_MAX}), 0U) << "more than can be counted";
}

}  // namespace
}  // namespace traindbg::format
