#include "traindbg/read/log_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "traindbg/format/frame.h"

namespace traindbg::read::internal {
namespace {

using base::ByteBuffer;
using base::Result;
using format::FrameType;

// A file that is appended to while it is read: when it is asked for its size, the last frame is not there
// yet.
class GrowingFile final : public storage::ReadFile {
  public:
    GrowingFile(ByteBuffer bytes, std::uint64_t size_at_first)
        : bytes_(std::move(bytes)), size_(size_at_first) {}
    Result<ByteBuffer> read_at(std::uint64_t offset, std::size_t size) override {
        const std::size_t begin = std::min<std::size_t>(offset, bytes_.size());
        const std::size_t end = std::min(begin + size, bytes_.size());
        return ByteBuffer(bytes_.begin() + static_cast<std::ptrdiff_t>(begin),
                          bytes_.begin() + static_cast<std::ptrdiff_t>(end));
    }
    Result<std::uint64_t> size() override { return size_; }

  private:
    ByteBuffer bytes_;
    std::uint64_t size_;
};

TEST(LogReader, AFrameThatCameDuringTheLookIsWhole) {
    format::FileHeader header;
    header.salt = 7;
    base::ByteWriter out;
    format::append_file_header(out, header);
    std::uint64_t sequence = 2;
    const ByteBuffer payload(500, std::byte{3});
    std::uint64_t before_the_last = 0;
    for (int i = 0; i < 10; ++i) {
        before_the_last = out.size();
        ASSERT_TRUE(format::append_frame(out, FrameType::kEvent, sequence++, payload, header.salt).is_ok());
    }
    LogReader reader(std::make_unique<GrowingFile>(out.take(), before_the_last), "000000.log");
    std::vector<std::pair<std::uint64_t, std::size_t>> found;
    ASSERT_TRUE(reader
                    .poll([&](std::uint64_t offset, const format::Frame& frame) {
                        if (frame.type == FrameType::kEvent) found.emplace_back(offset, frame.bytes);
                    })
                    .is_ok());
    ASSERT_GE(found.size(), 9U);
    for (const auto& [offset, bytes] : found) {
        const Result<format::Frame> frame = reader.frame_at(offset, bytes);
        ASSERT_TRUE(frame.is_ok()) << offset << ": " << frame.status().message();
        EXPECT_EQ(frame->payload.size(), payload.size());
    }
}

}  // namespace
}  // namespace traindbg::read::internal
