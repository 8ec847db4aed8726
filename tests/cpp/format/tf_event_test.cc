#include "traindbg/format/tf_event.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "traindbg/format/tfrecord.h"

namespace traindbg::format {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::ByteWriter;
using tensor::DType;

ByteBuffer from_hex(std::string_view text) {
    ByteBuffer bytes;
    const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
    std::string digits;
    for (const char c : text)
        if (c != ' ') digits += c;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(digit(digits[i]) << 4 | digit(digits[i + 1])));
    return bytes;
}

// Two records as the SageMaker Debugger client wrote them: step 3, mode TRAIN, mode step 2, wall time
// 1700000000: "a" = float32 [[1.5, -2.0]] and "s" = ["x", "yz"].
constexpr std::string_view kArray =
    "51000000 00000000 9ca1d9bc 09000000 40fc54d9 4110032a 440a420a 01614220 08011212 12070801 1203615f "
    "31120708 02120361 5f322208 0000c03f 000000c0 4a1b0a0e 0a096d6f 64655f73 74657012 01320a09 0a046d6f "
    "64651201 31b3c02d 06";
constexpr std::string_view kText =
    "43000000 00000000 b18525a0 09000000 40fc54d9 4110032a 360a340a 01734212 12091207 08021203 735f3242 "
    "01784202 797a4a1b 0a0e0a09 6d6f6465 5f737465 7012 01320a09 0a046d6f 64651201 31b3c02d 06";

const TfMetadata kMode = {{{"mode_step", "2"}, {"mode", "1"}}, {}, {}, TfDataClass::kUnknown};

TEST(TfEventTest, TheOriginalsRecordIsReadToTheByte) {
    const ByteBuffer bytes = from_hex(kArray);
    const auto record = parse_record(bytes, RecordCheck::kChecksumOrConstant);
    ASSERT_TRUE(record.is_ok()) << record.status().message();
    EXPECT_EQ(record->footer, RecordFooter::kConstant);
    const auto event = decode_tf_event(record->payload);
    ASSERT_TRUE(event.is_ok()) << event.status().message();
    EXPECT_EQ(event->wall_time, 1700000000.0);
    EXPECT_EQ(event->step, 3);
    ASSERT_EQ(event->values.size(), 1U);
    const TfSummaryValue& value = event->values[0];
    EXPECT_EQ(value.tag, "a");
    EXPECT_EQ(value.metadata, kMode);
    EXPECT_EQ(value.metadata->plugin("mode_step"), "2");
    EXPECT_EQ(value.metadata->plugin("nothing"), std::nullopt);
    ASSERT_TRUE(value.tensor.has_value());
    EXPECT_EQ(dtype_of_tf(value.tensor->dtype), DType::kFloat32);
    EXPECT_EQ(value.tensor->shape, (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(value.tensor->dimension_names, (std::vector<std::string_view>{"a_1", "a_2"}));
    ByteBuffer own;
    const auto values = tensor_values(*value.tensor, own);
    ASSERT_TRUE(values.is_ok());
    ByteWriter expected;
    expected.fixed(1.5F);
    expected.fixed(-2.0F);
    EXPECT_EQ(ByteBuffer(values->begin(), values->end()), expected.bytes());
}

TEST(TfEventTest, TheOriginalsRecordsAreWrittenToTheByte) {
    ByteWriter content;
    content.fixed(1.5F);
    content.fixed(-2.0F);
    TfEvent event;
    event.wall_time = 1700000000.0;
    event.step = 3;
    TfSummaryValue& value = event.values.emplace_back();
    value.tag = "a";
    value.metadata = kMode;
    value.tensor = TfTensor{1, {1, 2}, {"a_1", "a_2"}, content.bytes(), {}, {}, {}};
    ByteWriter payload;
    encode_tf_event(payload, event);
    ByteWriter out;
    append_record(out, payload.bytes(), RecordFooter::kConstant);
    EXPECT_EQ(out.bytes(), from_hex(kArray));

    value.tag = "s";
    value.tensor = TfTensor{kTfUnknown, {2}, {"s_2"}, {}, {"x", "yz"}, {}, {}};
    payload.clear();
    encode_tf_event(payload, event);
    out.clear();
    append_record(out, payload.bytes(), RecordFooter::kConstant);
    EXPECT_EQ(out.bytes(), from_hex(kText));
}

TfEvent sample_event() {
    static const ByteBuffer content = from_hex("000102030405060708090a0b");
    TfEvent event;
    event.wall_time = 12.5;
    event.step = -1;
    event.file_version = "brain.Event:2";
    event.values.resize(5);
    event.values[0].tag = "loss";
    event.values[0].simple_value = 0.0F;  // written although it is the default: it says which kind this is
    event.values[1].tag = "weights";
    event.values[1].histogram = TfHistogram{-1, 2, 3, 4, 5.5, {0, 1, 1e308}, {1, 2, 0}};
    event.values[2].tag = "raw";
    event.values[2].node_name = "node";
    event.values[2].tensor = TfTensor{3, {3}, {}, content, {}, {}, {}};
    event.values[2].metadata = TfMetadata{{{"scalars", ""}}, "shown", "text", TfDataClass::kScalar};
    event.values[3].tensor = TfTensor{9, {2}, {}, {}, {}, {}, {-1, INT64_MIN}};
    event.values[4].tensor = TfTensor{18, {}, {}, {}, {}, {1.5, -0.0}, {}};
    return event;
}

TEST(TfEventTest, EverythingSurvivesARoundTrip) {
    const TfEvent event = sample_event();
    ByteWriter out;
    encode_tf_event(out, event);
    const auto again = decode_tf_event(out.bytes());
    ASSERT_TRUE(again.is_ok()) << again.status().message();
    EXPECT_EQ(*again, event);
}

TEST(TfEventTest, NoTruncationIsTakenForMoreThanItIs) {
    ByteWriter out;
    encode_tf_event(out, sample_event());
    const TfEvent whole = sample_event();
    for (std::size_t size = 0; size < out.size(); ++size) {
        const auto event = decode_tf_event(ByteSpan(out.bytes()).first(size));
        if (event) {
            EXPECT_NE(*event, whole) << size;  // a cut between two fields is a valid message
        } else {
            EXPECT_EQ(event.status().code(), base::Code::kDataLoss);
        }
    }
}

TEST(TfEventTest, HostileMessagesAreRefusedOrSkipped) {
    const std::vector<std::pair<std::string, bool>> cases = {
        {"", true},
        {"00", false},                             // field 0
        {"ffffffffffffffffffffff", false},         // a varint that never ends
        {"2affffffffffffffffff01", false},         // a summary of 2^63 bytes
        {"2a02 0aff", false},                      // a value longer than its summary
        {"10", false},                             // a step without its number
        {"0a00", true},                            // wall_time of another wire type: skipped
        {"2a04 0a02 4200", true},                  // an empty tensor
        {"2a06 0a04 4202 2a03", false},            // a list of floats that is cut
        {"2a08 0a06 4204 2a02 0000", false},       // half a float
        {"0b", false},                             // a group: nobody writes them
        {"2a0a 0a08 4206 1204 1202 0880", false},  // a dimension that never ends
    };
    for (const auto& [hex, is_fine] : cases) {
        const ByteBuffer bytes = from_hex(hex);
        const auto event = decode_tf_event(bytes);
        EXPECT_EQ(event.is_ok(), is_fine) << hex;
    }
}

TEST(TfEventTest, CountsOfSmallThingsAreBounded) {
    ByteWriter values;
    for (std::size_t i = 0; i <= kMostSummaryValues; ++i) values.fixed(std::uint16_t{0x000A});
    ByteWriter event;
    event.varint(5 << 3 | 2);
    event.varint(values.size());
    event.append(values.bytes());
    EXPECT_EQ(decode_tf_event(event.bytes()).status().code(), base::Code::kDataLoss);

    TfEvent wide;
    wide.values.emplace_back().tensor =
        TfTensor{1, std::vector<std::int64_t>(kMostTfRank, 1), {}, {}, {}, {1}, {}};
    ByteWriter out;
    encode_tf_event(out, wide);
    EXPECT_TRUE(decode_tf_event(out.bytes()).is_ok());
    wide.values[0].tensor->shape.push_back(1);
    out.clear();
    encode_tf_event(out, wide);
    EXPECT_FALSE(decode_tf_event(out.bytes()).is_ok());
}

TEST(TfEventTest, UnpackedListsAreReadAsPackedOnes) {
    // int_val 1 and 2 each in a field of its own, float_val likewise, as old writers did.
    const ByteBuffer bytes = from_hex("2a14 0a12 4210 0803 3801 3802 2d0000803f 2d00000040");
    const auto event = decode_tf_event(bytes);
    ASSERT_TRUE(event.is_ok()) << event.status().message();
    EXPECT_EQ(event->values.at(0).tensor->integers, (std::vector<std::int64_t>{1, 2}));
    EXPECT_EQ(event->values.at(0).tensor->reals, (std::vector<double>{1, 2}));
}

template <typename T>
std::vector<T> values_of(const TfTensor& tensor) {
    ByteBuffer own;
    const auto bytes = tensor_values(tensor, own);
    EXPECT_TRUE(bytes.is_ok()) << bytes.status().message();
    if (!bytes) return {};
    std::vector<T> out(bytes->size() / sizeof(T));
    if (!out.empty()) std::memcpy(out.data(), bytes->data(), bytes->size());
    return out;
}

TfTensor listed(std::int32_t dtype, std::vector<std::int64_t> shape, std::vector<double> reals,
                std::vector<std::int64_t> integers) {
    return {dtype, std::move(shape), {}, {}, {}, std::move(reals), std::move(integers)};
}

TEST(TensorValuesTest, ListsAreWrittenOutInTheirType) {
    EXPECT_EQ(values_of<float>(listed(1, {2}, {1.5, -2}, {})), (std::vector<float>{1.5F, -2}));
    EXPECT_EQ(values_of<double>(listed(2, {2}, {0.1, -2}, {})), (std::vector<double>{0.1, -2}));
    EXPECT_EQ(values_of<std::int8_t>(listed(6, {2}, {}, {-1, 127})), (std::vector<std::int8_t>{-1, 127}));
    EXPECT_EQ(values_of<std::uint64_t>(listed(23, {1}, {}, {-1})), (std::vector<std::uint64_t>{UINT64_MAX}));
    EXPECT_EQ(values_of<std::uint16_t>(listed(19, {1}, {}, {0x3C00})), (std::vector<std::uint16_t>{0x3C00}));
    EXPECT_EQ(values_of<std::uint8_t>(listed(10, {2}, {}, {1, 0})), (std::vector<std::uint8_t>{1, 0}));
    EXPECT_EQ(values_of<float>(listed(8, {2}, {1, 2, 3, 4}, {})), (std::vector<float>{1, 2, 3, 4}));
}

TEST(TensorValuesTest, AShortListIsFilledWithItsLast) {
    EXPECT_EQ(values_of<float>(listed(1, {2, 2}, {1, 7}, {})), (std::vector<float>{1, 7, 7, 7}));
    EXPECT_EQ(values_of<std::int32_t>(listed(3, {3}, {}, {5})), (std::vector<std::int32_t>{5, 5, 5}));
    EXPECT_EQ(values_of<std::int32_t>(listed(3, {3}, {}, {})), (std::vector<std::int32_t>{0, 0, 0}));
}

TEST(TensorValuesTest, WhatDoesNotFitIsNamed) {
    ByteBuffer own;
    const auto code = [&](const TfTensor& tensor) { return tensor_values(tensor, own).status().code(); };
    EXPECT_EQ(code(listed(7, {1}, {}, {})), base::Code::kUnsupported);
    EXPECT_EQ(code(listed(99, {1}, {}, {})), base::Code::kUnsupported);
    EXPECT_EQ(code(listed(1, {-1}, {}, {})), base::Code::kDataLoss);
    EXPECT_EQ(code(listed(1, {1}, {1, 2}, {})), base::Code::kDataLoss);
    EXPECT_EQ(code(listed(1, {INT64_MAX, INT64_MAX}, {1}, {})), base::Code::kDataLoss);
    EXPECT_EQ(code(listed(1, {std::int64_t{1} << 40}, {1}, {})), base::Code::kResourceExhausted);
    const ByteBuffer content = from_hex("000000");
    EXPECT_EQ(code(TfTensor{1, {1}, {}, content, {}, {}, {}}), base::Code::kDataLoss);
    EXPECT_EQ(code(TfTensor{1, {0}, {}, {}, {}, {}, {}}), base::Code::kOk);
}

TEST(TensorValuesTest, TypesHaveANumberAndComeBackFromIt) {
    for (int number = 1; number <= static_cast<int>(DType::kComplex128); ++number) {
        const auto dtype = static_cast<DType>(number);
        EXPECT_EQ(dtype_of_tf(tf_of_dtype(dtype)), dtype) << tensor::to_string(dtype);
    }
    EXPECT_EQ(tf_of_dtype(DType::kUnknown), kTfUnknown);
    EXPECT_EQ(dtype_of_tf(12), DType::kUInt8);  // quint8
}

}  // namespace
}  // namespace traindbg::format
