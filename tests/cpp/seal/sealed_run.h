// Logs and sealed parts for the tests of `seal`, made frame by frame.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "format/sample_records.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/frame_scanner.h"
#include "traindbg/format/records.h"
#include "traindbg/format/segment.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::testing {

inline constexpr std::uint64_t kLogSalt = 0x1234567;

inline format::FileHeader log_header(std::uint32_t part, std::uint32_t worker = 0) {
    format::FileHeader header;
    header.worker = worker;
    header.part = part;
    header.salt = kLogSalt;
    return header;
}

inline std::vector<format::RawPlace> places_of(std::uint64_t step) {
    if (step % 3 != 0) return {};
    format::RawPlace place;
    place.tensor = 0;
    place.dtype = tensor::DType::kFloat32;
    place.shape = {4, 3};
    place.offset = 4096 + step * 64;
    place.bytes = 48;
    place.checksum = static_cast<std::uint32_t>(step * 77);
    return {place};
}

// Calls `add` with the type and payload of each frame of a log that has steps [first, last).
inline void for_each_record(std::uint64_t first, std::uint64_t last, bool has_end,
                            const std::function<bool(std::uint64_t step)>& has_step,
                            const std::function<void(format::FrameType, base::ByteSpan)>& add) {
    const model::TensorTable table = sample_tensors();
    base::ByteWriter payload;
    format::encode_worker(payload, sample_meta());
    add(format::FrameType::kWorker, payload.bytes());
    payload.clear();
    format::encode_schema(payload, table);
    add(format::FrameType::kSchema, payload.bytes());
    payload.clear();
    format::encode_event(payload, {1, "note", R"({"text": "hello"})"});
    add(format::FrameType::kEvent, payload.bytes());
    for (std::uint64_t step = first; step < last; ++step) {
        if (!has_step(step)) continue;
        model::StepRecord record = sample_step(step);
        payload.clear();
        format::encode_step(payload, record, table, places_of(step));
        add(format::FrameType::kStep, payload.bytes());
    }
    if (!has_end) return;
    payload.clear();
    format::encode_totals(payload, {2, last, 7, 8});
    add(format::FrameType::kEnd, payload.bytes());
}

inline base::ByteBuffer make_log(const format::FileHeader& header, std::uint64_t first, std::uint64_t last,
                                 bool has_end = true) {
    base::ByteWriter out;
    format::append_file_header(out, header);
    std::uint64_t sequence = 2;
    for_each_record(
        first, last, has_end, [](std::uint64_t) { return true; },
        [&](format::FrameType type, base::ByteSpan payload) {
            format::append_frame(out, type, sequence++, payload, header.salt).ignore();
        });
    return out.take();
}

// What a builder makes of the same records.
inline base::ByteBuffer make_segment(const format::FileHeader& header, std::uint64_t salt,
                                     std::uint64_t first, std::uint64_t last, bool has_end,
                                     const std::function<bool(std::uint64_t step)>& has_step) {
    format::SegmentBuilder builder(header, salt);
    for_each_record(first, last, has_end, has_step, [&](format::FrameType type, base::ByteSpan payload) {
        format::Frame frame;
        frame.type = type;
        frame.payload = payload;
        builder.add(frame).ignore();
    });
    return std::move(builder.finish()).value();
}

inline void make_run(storage::FileSystem& files) {
    files.create_directories("/run").ignore();
    files.put_atomic("/run/RUN.json", base::as_bytes(kSampleRunJson)).ignore();
    files.create_directories("/run/w0000").ignore();
}

// The footer of a sealed part; nothing when it is none.
inline std::optional<format::SegmentFooter> footer_of(const base::ByteBuffer& bytes) {
    const auto header = format::find_file_header(bytes);
    if (!header || header->kind != format::FileKind::kSegment) return std::nullopt;
    return format::find_footer(bytes, header->salt);
}

}  // namespace traindbg::testing
