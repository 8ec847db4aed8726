#include "traindbg/format/tfrecord.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace traindbg::format {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::ByteWriter;

std::string text_of(ByteSpan bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct SampleFile {
    ByteBuffer bytes;
    std::vector<std::size_t> starts;
};

SampleFile make_file(const std::vector<std::string>& payloads,
                     RecordFooter footer = RecordFooter::kChecksum) {
    SampleFile file;
    ByteWriter out;
    for (const std::string& payload : payloads) {
        file.starts.push_back(out.size());
        append_record(out, base::as_bytes(payload), footer);
    }
    file.bytes = out.take();
    return file;
}

struct Scanned {
    std::vector<std::string> payloads;
    std::vector<RecordItem> holes;
    std::uint64_t settled = 0;
    std::string tail;
    bool foreign = false;
};

// Reads `bytes` through windows of at most `window_bytes`, or as many as the scanner needs.
Scanned scan(ByteSpan bytes, std::size_t window_bytes, RecordScanner scanner) {
    Scanned out;
    std::size_t wanted = window_bytes;
    while (true) {
        const auto begin = std::min(static_cast<std::size_t>(scanner.position()), bytes.size());
        const ByteSpan window = bytes.subspan(begin, std::min(wanted, bytes.size() - begin));
        const bool at_end = begin + window.size() == bytes.size();
        const RecordItem item = scanner.next(window, at_end);
        wanted = window_bytes;
        if (item.kind == RecordItem::Kind::kRecord) {
            out.payloads.push_back(text_of(item.record.payload));
        } else if (item.kind == RecordItem::Kind::kHole) {
            out.holes.push_back(item);
        } else if (item.kind == RecordItem::Kind::kForeign) {
            out.foreign = true;
            break;
        } else if (at_end) {
            break;
        } else {
            wanted = std::max(window_bytes, item.bytes_needed);
        }
    }
    out.settled = scanner.settled();
    out.tail = scanner.tail_reason();
    return out;
}

Scanned scan(ByteSpan bytes, std::size_t window_bytes = SIZE_MAX,
             RecordCheck check = RecordCheck::kChecksum) {
    return scan(bytes, window_bytes, RecordScanner(check));
}

const std::vector<std::string> kPayloads = {"first", "second record", "", "the fourth one"};

TEST(TfRecordTest, BytesAreThoseOfTheFormat) {
    // The length's checksum of an empty record and the footer of no bytes, as every TensorFlow writes them.
    ByteWriter out;
    append_record(out, {});
    const std::vector<std::uint8_t> expected = {0,    0,    0,    0,    0,    0,    0,    0,
                                                0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2};
    ASSERT_EQ(out.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
        EXPECT_EQ(std::to_integer<std::uint8_t>(out.bytes()[i]), expected[i]) << i;
}

TEST(TfRecordTest, TheConstantFooterIsTheChecksumOfTenCharacters) {
    EXPECT_EQ(masked_crc32c(base::as_bytes("0x12345678")), kConstantFooter);
}

TEST(TfRecordTest, OneRecordIsParsedByItsExactBytesOnly) {
    const SampleFile file = make_file({"payload"});
    const auto record = parse_record(file.bytes, RecordCheck::kChecksum);
    ASSERT_TRUE(record.is_ok());
    EXPECT_EQ(text_of(record->payload), "payload");
    EXPECT_EQ(record->footer, RecordFooter::kChecksum);
    for (std::size_t size = 0; size < file.bytes.size(); ++size)
        EXPECT_EQ(parse_record(ByteSpan(file.bytes).first(size), RecordCheck::kChecksum).status().code(),
                  base::Code::kDataLoss);
    ByteBuffer longer = file.bytes;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(parse_record(longer, RecordCheck::kChecksum).is_ok());
}

TEST(TfRecordTest, TheConstantFooterIsTakenOnlyWhereItIsAskedFor) {
    const SampleFile file = make_file({"payload"}, RecordFooter::kConstant);
    EXPECT_FALSE(parse_record(file.bytes, RecordCheck::kChecksum).is_ok());
    const auto record = parse_record(file.bytes, RecordCheck::kChecksumOrConstant);
    ASSERT_TRUE(record.is_ok());
    EXPECT_EQ(record->footer, RecordFooter::kConstant);
    const SampleFile checked = make_file({"payload"});
    EXPECT_TRUE(parse_record(checked.bytes, RecordCheck::kChecksumOrConstant).is_ok());
}

TEST(TfRecordTest, ALengthBeyondEverythingIsDamage) {
    for (const std::uint64_t length : {UINT64_MAX, UINT64_MAX - 16, std::uint64_t{1} << 63}) {
        ByteWriter out;
        out.fixed(length);
        out.fixed(masked_crc32c(std::as_bytes(std::span(&length, 1))));
        out.fixed(std::uint64_t{0});
        EXPECT_FALSE(parse_record(out.bytes(), RecordCheck::kChecksum).is_ok());
        const Scanned scanned = scan(out.bytes());
        EXPECT_TRUE(scanned.payloads.empty());
        EXPECT_EQ(scanned.settled, 0U);
    }
}

TEST(RecordScannerTest, AllRecordsInOrder) {
    const SampleFile file = make_file(kPayloads);
    for (const std::size_t window : {std::size_t{1}, std::size_t{12}, std::size_t{20}, SIZE_MAX}) {
        const Scanned scanned = scan(file.bytes, window);
        EXPECT_EQ(scanned.payloads, kPayloads) << window;
        EXPECT_TRUE(scanned.holes.empty());
        EXPECT_EQ(scanned.settled, file.bytes.size());
        EXPECT_EQ(scanned.tail, "");
    }
}

TEST(RecordScannerTest, EveryTruncationGivesTheLongestWholePrefix) {
    const SampleFile file = make_file(kPayloads);
    for (std::size_t size = 0; size <= file.bytes.size(); ++size) {
        const Scanned scanned = scan(ByteSpan(file.bytes).first(size));
        std::size_t whole = 0;
        for (std::size_t i = 0; i < file.starts.size(); ++i)
            if ((i + 1 < file.starts.size() ? file.starts[i + 1] : file.bytes.size()) <= size) ++whole;
        EXPECT_EQ(scanned.payloads,
                  std::vector<std::string>(kPayloads.begin(),
                                           kPayloads.begin() + static_cast<std::ptrdiff_t>(whole)));
        EXPECT_TRUE(scanned.holes.empty()) << size;
        const std::size_t settled = whole == file.starts.size() ? file.bytes.size() : file.starts[whole];
        EXPECT_EQ(scanned.settled, settled) << size;
        EXPECT_EQ(scanned.tail, settled == size ? "" : "the file ends inside a record") << size;
    }
}

TEST(RecordScannerTest, EveryFlippedBitLosesItsRecordAlone) {
    const SampleFile file = make_file(kPayloads);
    for (std::size_t bit = 0; bit < file.bytes.size() * 8; ++bit) {
        ByteBuffer bytes = file.bytes;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        const auto hit = static_cast<std::size_t>(
            std::upper_bound(file.starts.begin(), file.starts.end(), bit / 8) - file.starts.begin() - 1);
        std::vector<std::string> expected = kPayloads;
        expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(hit));
        for (const std::size_t window : {std::size_t{13}, SIZE_MAX}) {
            const Scanned scanned = scan(bytes, window);
            EXPECT_EQ(scanned.payloads, expected) << "bit " << bit;
            const bool is_last = hit + 1 == file.starts.size();
            const bool is_header = bit / 8 - file.starts[hit] < kRecordHeaderBytes;
            if (is_last && is_header) {
                EXPECT_EQ(scanned.settled, file.starts[hit]) << "bit " << bit;
                EXPECT_EQ(scanned.tail, "the checksum of a record's length does not match");
            } else {
                ASSERT_EQ(scanned.holes.size(), 1U) << "bit " << bit;
                EXPECT_EQ(scanned.holes[0].offset, file.starts[hit]);
                EXPECT_EQ(scanned.settled, bytes.size());
            }
        }
    }
}

TEST(RecordScannerTest, DamagedPayloadsPassUnderTheConstantFooter) {
    SampleFile file = make_file({"abc"}, RecordFooter::kConstant);
    file.bytes[kRecordHeaderBytes] = std::byte{'x'};
    const Scanned scanned = scan(file.bytes, SIZE_MAX, RecordCheck::kChecksumOrConstant);
    EXPECT_EQ(scanned.payloads, std::vector<std::string>{"xbc"});  // the format cannot tell
}

TEST(RecordScannerTest, AGrowingFileIsTakenUpWhereItWasLeft) {
    const SampleFile file = make_file(kPayloads);
    RecordScanner scanner(RecordCheck::kChecksum);
    std::vector<std::string> payloads;
    for (std::size_t size = 0; size <= file.bytes.size(); ++size) {
        while (true) {
            const auto begin = static_cast<std::size_t>(scanner.position());
            const RecordItem item = scanner.next(ByteSpan(file.bytes).subspan(begin, size - begin), true);
            if (item.kind != RecordItem::Kind::kRecord) break;
            payloads.push_back(text_of(item.record.payload));
        }
    }
    EXPECT_EQ(payloads, kPayloads);
}

TEST(RecordScannerTest, ATailThatWasZerosFirstIsReadOnceItIsThere) {
    const SampleFile file = make_file({"one", "two"});
    ByteBuffer early = file.bytes;
    std::fill(early.begin() + static_cast<std::ptrdiff_t>(file.starts[1]), early.end(), std::byte{0});
    RecordScanner scanner(RecordCheck::kChecksum);
    EXPECT_EQ(scanner.next(early, true).kind, RecordItem::Kind::kRecord);
    const auto rest = [&](const ByteBuffer& bytes) { return ByteSpan(bytes).subspan(scanner.position()); };
    EXPECT_EQ(scanner.next(rest(early), true).kind, RecordItem::Kind::kNeedMore);
    EXPECT_EQ(scanner.tail_reason(), "the checksum of a record's length does not match");
    const RecordItem item = scanner.next(rest(file.bytes), true);
    ASSERT_EQ(item.kind, RecordItem::Kind::kRecord);
    EXPECT_EQ(text_of(item.record.payload), "two");
}

TEST(RecordScannerTest, WhatLiesInATornRecordIsNotSearched) {
    const SampleFile inner = make_file({"not of this file"});
    ByteWriter out;
    append_record(out, inner.bytes);
    const Scanned scanned = scan(ByteSpan(out.bytes()).first(out.size() - 1));
    EXPECT_TRUE(scanned.payloads.empty());
    EXPECT_EQ(scanned.tail, "the file ends inside a record");
}

TEST(RecordScannerTest, ALargeRecordIsSkippedNotHeld) {
    const SampleFile file = make_file({"a", std::string(1000, 'x'), "b"});
    const Scanned scanned = scan(file.bytes, 64, RecordScanner(RecordCheck::kChecksum, 0, 100));
    EXPECT_EQ(scanned.payloads, (std::vector<std::string>{"a", "b"}));
    ASSERT_EQ(scanned.holes.size(), 1U);
    EXPECT_EQ(scanned.holes[0].bytes, record_bytes(1000));
    EXPECT_EQ(scanned.holes[0].what, "a record of 1000 bytes, more than the 100 that are read");
}

TEST(RecordScannerTest, AFileOfSomethingElseIsGivenUp) {
    const ByteBuffer zeros(std::size_t{1} << 20);
    const Scanned scanned = scan(zeros);
    EXPECT_TRUE(scanned.payloads.empty());
    EXPECT_EQ(scanned.settled, 0U);
    EXPECT_EQ(scanned.tail, "the checksum of a record's length does not match");
    // More than 64 MiB of it, one window again and again: nothing is searched for ever.
    RecordScanner scanner(RecordCheck::kChecksum);
    std::uint64_t windows = 0;
    while (scanner.next(zeros, false).kind == RecordItem::Kind::kNeedMore) ASSERT_LT(++windows, 70U);
    EXPECT_GE(windows, 63U);
    EXPECT_EQ(scanner.next(zeros, false).kind, RecordItem::Kind::kForeign);
}

}  // namespace
}  // namespace traindbg::format
