#include "traindbg/format/frame_scanner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace traindbg::format {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::ByteWriter;

constexpr std::uint64_t kSalt = 0xABCDEF0123456789;

// A file with a header and one event frame per payload.
struct SampleFile {
    ByteBuffer bytes;
    std::vector<std::size_t> starts;  // of each frame, the header's two among them
};

SampleFile make_file(const std::vector<std::string>& payloads, std::uint64_t salt = kSalt) {
    SampleFile file;
    ByteWriter out;
    FileHeader header;
    header.salt = salt;
    append_file_header(out, header);
    file.starts = {0, 64};
    std::uint64_t sequence = 2;
    for (const std::string& payload : payloads) {
        file.starts.push_back(out.size());
        EXPECT_TRUE(append_frame(out, FrameType::kEvent, sequence++, base::as_bytes(payload), salt).is_ok());
    }
    file.bytes = out.take();
    return file;
}

struct Scanned {
    std::vector<std::string> payloads;  // without headers
    std::vector<ScanItem> holes;
    std::uint64_t settled = 0;
    std::string tail;
    bool foreign = false;
};

// Reads `bytes` through windows of at most `window_bytes`, or as many as the scanner needs.
Scanned scan(ByteSpan bytes, std::size_t window_bytes = SIZE_MAX) {
    Scanned out;
    FrameScanner scanner;
    std::size_t wanted = window_bytes;
    while (true) {
        const auto begin = std::min(static_cast<std::size_t>(scanner.position()), bytes.size());
        const ByteSpan window = bytes.subspan(begin, std::min(wanted, bytes.size() - begin));
        const bool at_end = begin + window.size() == bytes.size();
        const ScanItem item = scanner.next(window, at_end);
        wanted = window_bytes;
        if (item.kind == ScanItem::Kind::kFrame) {
            if (item.frame.type != FrameType::kFileHeader)
                out.payloads.emplace_back(reinterpret_cast<const char*>(item.frame.payload.data()),
                                          item.frame.payload.size());
        } else if (item.kind == ScanItem::Kind::kHole) {
            out.holes.push_back(item);
        } else if (item.kind == ScanItem::Kind::kForeign) {
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

const std::vector<std::string> kPayloads = {"first", "second frame", "", "the fourth one"};

TEST(FrameScannerTest, AllFramesInOrder) {
    const SampleFile file = make_file(kPayloads);
    for (const std::size_t window : {std::size_t{24}, std::size_t{64}, std::size_t{100}, SIZE_MAX}) {
        const Scanned scanned = scan(file.bytes, window);
        EXPECT_EQ(scanned.payloads, kPayloads) << window;
        EXPECT_TRUE(scanned.holes.empty());
        EXPECT_EQ(scanned.settled, file.bytes.size());
    }
}

TEST(FrameScannerTest, AnEmptyFileIsWaitedFor) {
    const Scanned scanned = scan({});
    EXPECT_FALSE(scanned.foreign);
    EXPECT_EQ(scanned.settled, 0U);
}

TEST(FrameScannerTest, EveryTruncationGivesTheLongestWholePrefix) {
    const SampleFile file = make_file(kPayloads);
    for (std::size_t size = 0; size <= file.bytes.size(); ++size) {
        const Scanned scanned = scan(ByteSpan(file.bytes).first(size));
        std::size_t whole = 0;  // frames that end within `size`
        for (std::size_t i = 0; i < file.starts.size(); ++i) {
            const std::size_t end = i + 1 < file.starts.size() ? file.starts[i + 1] : file.bytes.size();
            if (end <= size) ++whole;
        }
        const std::size_t events = whole > 2 ? whole - 2 : 0;
        EXPECT_EQ(scanned.payloads,
                  std::vector<std::string>(kPayloads.begin(),
                                           kPayloads.begin() + static_cast<std::ptrdiff_t>(events)));
        EXPECT_TRUE(scanned.holes.empty()) << size;
        const std::size_t settled = whole == file.starts.size() ? file.bytes.size() : file.starts[whole];
        EXPECT_EQ(scanned.settled, settled) << size;
        EXPECT_EQ(scanned.tail, settled == size ? "" : "the file ends inside a frame") << size;
    }
}

TEST(FrameScannerTest, EveryFlippedBitLosesItsFrameAlone) {
    const SampleFile file = make_file(kPayloads);
    for (std::size_t bit = 0; bit < file.bytes.size() * 8; ++bit) {
        ByteBuffer bytes = file.bytes;
        bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
        const auto hit = static_cast<std::size_t>(
            std::upper_bound(file.starts.begin(), file.starts.end(), bit / 8) - file.starts.begin() - 1);
        std::vector<std::string> expected = kPayloads;
        if (hit >= 2) expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(hit - 2));
        for (const std::size_t window : {std::size_t{32}, SIZE_MAX}) {
            const Scanned scanned = scan(bytes, window);
            EXPECT_EQ(scanned.payloads, expected) << "bit " << bit;
            if (hit + 1 == file.starts.size()) {
                EXPECT_EQ(scanned.settled, file.starts[hit]) << "bit " << bit;
                EXPECT_FALSE(scanned.tail.empty());
            } else {
                ASSERT_EQ(scanned.holes.size(), 1U) << "bit " << bit;
                EXPECT_EQ(scanned.holes[0].offset, file.starts[hit]);
                EXPECT_EQ(scanned.holes[0].bytes, file.starts[hit + 1] - file.starts[hit]);
                EXPECT_NE(scanned.holes[0].what.find("(1 frame lost)"), std::string::npos);
            }
        }
    }
}

TEST(FrameScannerTest, AFrameOfAnotherLogInsideAPayloadIsNoFrame) {
    const SampleFile inner = make_file({"inner"}, kSalt + 1);
    const std::string inner_bytes(reinterpret_cast<const char*>(inner.bytes.data()), inner.bytes.size());
    // Behind the header zone, so that the inner file's header has no say either.
    SampleFile outer = make_file({std::string(kHeaderZoneBytes, 'x'), inner_bytes, "last"});
    outer.bytes[outer.starts[3] + 4] ^= std::byte{0x01};  // the length: the payload is searched
    const Scanned scanned = scan(outer.bytes);
    EXPECT_EQ(scanned.payloads, (std::vector<std::string>{std::string(kHeaderZoneBytes, 'x'), "last"}));
    ASSERT_EQ(scanned.holes.size(), 1U);
    EXPECT_EQ(scanned.holes[0].bytes, outer.starts[4] - outer.starts[3]);
}

TEST(FrameScannerTest, AMissingFrameIsToldByTheSequence) {
    SampleFile file = make_file(kPayloads);
    file.bytes.erase(file.bytes.begin() + static_cast<std::ptrdiff_t>(file.starts[3]),
                     file.bytes.begin() + static_cast<std::ptrdiff_t>(file.starts[5]));
    const Scanned scanned = scan(file.bytes);
    EXPECT_EQ(scanned.payloads, (std::vector<std::string>{"first", "the fourth one"}));
    ASSERT_EQ(scanned.holes.size(), 1U);
    EXPECT_EQ(scanned.holes[0].bytes, 0U);
    EXPECT_NE(scanned.holes[0].what.find("2 frames are missing"), std::string::npos);
}

TEST(FrameScannerTest, ARepeatedFrameIsNotReadTwice) {
    SampleFile file = make_file(kPayloads);
    const ByteBuffer again(file.bytes.begin() + static_cast<std::ptrdiff_t>(file.starts[2]),
                           file.bytes.begin() + static_cast<std::ptrdiff_t>(file.starts[4]));
    file.bytes.insert(file.bytes.end(), again.begin(), again.end());
    const Scanned scanned = scan(file.bytes);
    EXPECT_EQ(scanned.payloads, kPayloads);
    EXPECT_EQ(scanned.holes.size(), 2U);
}

TEST(FrameScannerTest, AForeignFileIsToldAfterTheHeaderZone) {
    EXPECT_TRUE(scan(ByteBuffer(2 * kHeaderZoneBytes, std::byte{'x'})).foreign);
    EXPECT_TRUE(scan(ByteBuffer(2 * kHeaderZoneBytes, std::byte{'x'}), 100).foreign);
}

TEST(FrameScannerTest, ATornTailIsReadOnceItIsWhole) {
    const SampleFile file = make_file(kPayloads);
    FrameScanner scanner;
    std::size_t frames = 0;
    for (std::size_t size = 0; size <= file.bytes.size(); ++size) {
        while (true) {
            const auto begin = static_cast<std::size_t>(scanner.position());
            const ScanItem item = scanner.next(ByteSpan(file.bytes).subspan(begin, size - begin), true);
            if (item.kind != ScanItem::Kind::kFrame) {
                ASSERT_EQ(item.kind, ScanItem::Kind::kNeedMore);
                break;
            }
            ++frames;
        }
    }
    EXPECT_EQ(frames, file.starts.size());
}

TEST(FrameScannerTest, AZeroedTailIsReadOnceItIsFilledIn) {
    const SampleFile file = make_file(kPayloads);
    ByteBuffer zeroed = file.bytes;
    std::fill(zeroed.begin() + static_cast<std::ptrdiff_t>(file.starts[4]), zeroed.end(), std::byte{0});
    FrameScanner scanner;
    std::size_t frames = 0;
    for (const ByteBuffer& bytes : {zeroed, file.bytes}) {
        while (true) {
            const ScanItem item =
                scanner.next(ByteSpan(bytes).subspan(static_cast<std::size_t>(scanner.position())), true);
            if (item.kind != ScanItem::Kind::kFrame) break;
            ++frames;
        }
    }
    EXPECT_EQ(frames, file.starts.size());
}

TEST(FrameScannerTest, BytesMadeToLookLikeFramesEndTheSearch) {
    // 8 MiB of candidates that each claim most of the rest: checking them all would take minutes.
    SampleFile file = make_file({});
    ByteWriter out;
    out.append(file.bytes);
    constexpr std::size_t kBytes = std::size_t{8} << 20;
    for (std::size_t at = 0; at < kBytes; at += 8) {
        out.fixed(kFrameMagic);
        out.fixed(static_cast<std::uint32_t>((kBytes - at) / 2));
    }
    EXPECT_TRUE(scan(out.bytes()).foreign);
}

TEST(FrameScannerTest, CandidatesThatEachNeedALargerWindowEndTheSearchToo) {
    // As above, but every candidate ends just behind the window that the one before asked for.
    SampleFile file = make_file({});
    ByteWriter out;
    out.append(file.bytes);
    for (std::size_t at = 0; at < std::size_t{8} << 20; at += 8) {
        out.fixed(kFrameMagic);
        out.fixed(std::uint32_t{2} << 20);
    }
    EXPECT_TRUE(scan(out.bytes(), std::size_t{64} << 10).foreign);
}

}  // namespace
}  // namespace traindbg::format
