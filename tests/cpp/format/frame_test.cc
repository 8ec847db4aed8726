#include "traindbg/format/frame.h"

#include <gtest/gtest.h>

#include <string>

namespace traindbg::format {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::ByteWriter;
using base::Code;

constexpr std::uint64_t kFrameSalt = 0x1122334455667788;

ByteBuffer frame(std::string_view payload, FrameType type = FrameType::kEvent,
                 std::uint64_t salt = kFrameSalt) {
    ByteWriter out;
    EXPECT_TRUE(append_frame(out, type, 7, base::as_bytes(payload), salt).is_ok());
    return out.take();
}

std::string text(ByteSpan bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

TEST(FrameTest, PayloadsOfEveryLengthComeBack) {
    for (std::size_t size = 0; size < 40; ++size) {
        const std::string payload(size, 'p');
        const ByteBuffer bytes = frame(payload);
        EXPECT_EQ(bytes.size(), frame_bytes(size));
        EXPECT_EQ(bytes.size() % kFrameAlignment, 0U);
        const ParsedFrame parsed = parse_frame(bytes, kFrameSalt, false);
        ASSERT_EQ(parsed.outcome, ParseOutcome::kFrame) << size;
        EXPECT_EQ(text(parsed.frame.payload), payload);
        EXPECT_EQ(parsed.frame.sequence, 7U);
        EXPECT_EQ(parsed.frame.type, FrameType::kEvent);
        EXPECT_EQ(parsed.frame.bytes, bytes.size());
    }
}

TEST(FrameTest, EveryPrefixIsIncomplete) {
    const ByteBuffer bytes = frame("some payload");
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        const ParsedFrame parsed = parse_frame(ByteSpan(bytes).first(size), kFrameSalt, false);
        EXPECT_EQ(parsed.outcome, ParseOutcome::kIncomplete) << size;
        EXPECT_EQ(parsed.bytes_needed, size < kFrameHeaderBytes ? kFrameHeaderBytes : bytes.size());
    }
}

TEST(FrameTest, NoFlippedBitPasses) {
    const ByteBuffer good = frame("thirteen byte");  // with three bytes of padding
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
        ByteBuffer bytes = good;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        EXPECT_NE(parse_frame(bytes, kFrameSalt, false).outcome, ParseOutcome::kFrame) << bit;
        EXPECT_NE(parse_frame(bytes, kFrameSalt, true).outcome, ParseOutcome::kFrame) << bit;
    }
}

TEST(FrameTest, AFrameOfAnotherFileDoesNotPass) {
    const ByteBuffer bytes = frame("payload", FrameType::kStep, kFrameSalt + 1);
    EXPECT_EQ(parse_frame(bytes, kFrameSalt, false).outcome, ParseOutcome::kBad);
    EXPECT_EQ(parse_frame(bytes, kFrameSalt + 1, false).outcome, ParseOutcome::kFrame);
}

TEST(FrameTest, ALargePayloadIsRefusedOnBothSides) {
    ByteWriter out;
    const ByteBuffer payload(kMostPayloadBytes + 1);
    EXPECT_EQ(append_frame(out, FrameType::kEvent, 0, payload, kFrameSalt).code(), Code::kResourceExhausted);
    EXPECT_EQ(out.size(), 0U);
    ByteBuffer bytes = frame("x");
    const auto length = static_cast<std::uint32_t>(kMostPayloadBytes + 1);
    std::memcpy(bytes.data() + 4, &length, sizeof(length));
    EXPECT_EQ(parse_frame(bytes, kFrameSalt, false).outcome, ParseOutcome::kBad) << "not: wait for 16 MiB";
}

TEST(FrameTest, TheLargestPayloadPasses) {
    ByteWriter out;
    const ByteBuffer payload(kMostPayloadBytes);
    ASSERT_TRUE(append_frame(out, FrameType::kEvent, 0, payload, kFrameSalt).is_ok());
    EXPECT_EQ(parse_frame(out.bytes(), kFrameSalt, false).outcome, ParseOutcome::kFrame);
}

TEST(FrameTest, TheFileHeaderStandsTwice) {
    FileHeader header;
    header.kind = FileKind::kBlob;
    header.worker = 3;
    header.part = 12;
    header.salt = kFrameSalt;
    header.run_uuid[0] = std::byte{0xAB};
    ByteWriter out;
    append_file_header(out, header);
    ASSERT_EQ(out.size(), 128U);
    for (std::uint64_t copy = 0; copy < 2; ++copy) {
        const ParsedFrame parsed = parse_frame(ByteSpan(out.bytes()).subspan(copy * 64), std::nullopt, true);
        ASSERT_EQ(parsed.outcome, ParseOutcome::kFrame);
        EXPECT_EQ(parsed.frame.sequence, copy);
        EXPECT_EQ(*decode_file_header(parsed.frame.payload), header);
    }
}

TEST(FrameTest, AHeaderCountsInTheHeaderZoneOnly) {
    ByteWriter out;
    append_file_header(out, FileHeader{});
    EXPECT_EQ(parse_frame(out.bytes(), kFrameSalt, false).outcome, ParseOutcome::kBad);
}

TEST(FrameTest, WithoutASaltNoOtherFramePasses) {
    EXPECT_EQ(parse_frame(frame("x", FrameType::kStep, 0), std::nullopt, true).outcome, ParseOutcome::kBad);
}

TEST(FrameTest, ANewerMajorVersionIsRefusedWithAnExplanation) {
    FileHeader header;
    header.major = kFormatMajor + 1;
    const base::Status status = check_version(header);
    EXPECT_EQ(status.code(), Code::kUnsupported);
    EXPECT_NE(status.message().find("use a newer traindbg"), std::string::npos);
    header.major = kFormatMajor;
    header.minor = 99;
    EXPECT_TRUE(check_version(header).is_ok());
}

TEST(FrameTest, AHeaderOfANewerMinorVersionMayBeLonger) {
    FileHeader header;
    header.salt = kFrameSalt;
    ByteWriter out;
    append_file_header(out, header);
    ByteBuffer payload(out.bytes().begin() + kFrameHeaderBytes, out.bytes().begin() + 64);
    payload.resize(payload.size() + 100);
    EXPECT_EQ(*decode_file_header(payload), header);
    payload.resize(39);
    EXPECT_EQ(decode_file_header(payload).status().code(), Code::kDataLoss);
}

}  // namespace
}  // namespace traindbg::format
