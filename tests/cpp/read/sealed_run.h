// Sealing a part by hand, as the writer's thread does it.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "traindbg/format/frame_scanner.h"
#include "traindbg/format/segment.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::testing {

// The segment of a log, which must be whole.
inline base::ByteBuffer segment_of(base::ByteSpan log, std::uint64_t salt = 0x5EA1) {
    format::FrameScanner scanner;
    std::optional<format::SegmentBuilder> builder;
    while (true) {
        const format::ScanItem item =
            scanner.next(log.subspan(static_cast<std::size_t>(scanner.position())), true);
        if (item.kind != format::ScanItem::Kind::kFrame) break;
        if (!builder) builder.emplace(*scanner.header(), salt);
        const base::Status status = builder->add(item.frame);
        EXPECT_TRUE(status.is_ok()) << status.to_string();
    }
    EXPECT_EQ(scanner.position(), log.size());
    auto bytes = builder->finish();
    EXPECT_TRUE(bytes.is_ok()) << bytes.status().to_string();
    return std::move(bytes).value();
}

// Puts the segment in the log's place.
inline void seal(storage::MemoryFileSystem& files, const std::string& run, std::uint32_t worker = 0,
                 std::uint32_t part = 0) {
    const storage::RunLayout layout{run};
    files.set_content(layout.segment(worker, part), segment_of(files.content(layout.log(worker, part))));
    ASSERT_TRUE(files.remove(layout.log(worker, part)).is_ok());
}

}  // namespace traindbg::testing
