// A run whose part is a sealed segment. The first byte says how: the bytes as they are; or frames, pages and
// columns with right checksums around any content, which is what a hostile program could write.
#include <cstdint>
#include <vector>

#include "traindbg/base/crc32c.h"
#include "traindbg/format/column.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/segment.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/memory_file_system.h"

using namespace traindbg;

namespace {

constexpr std::uint64_t kSalt = 42;

// A page of columns, each a number, an encoding, sizes and bytes of the input.
base::ByteBuffer make_page(base::ByteReader& input) {
    base::ByteWriter columns;
    base::ByteWriter table;
    table.fixed(std::uint32_t{0});
    table.fixed(std::uint32_t{0});
    table.fixed(static_cast<std::uint8_t>(input.fixed<std::uint8_t>() % 7));
    table.varint(input.fixed<std::uint8_t>() % 4);
    table.varint(input.fixed<std::uint16_t>() % 5000);
    const std::uint8_t count = input.fixed<std::uint8_t>() % 14;
    table.varint(count);
    for (std::uint8_t k = 0; k < count && input.ok(); ++k) {
        table.fixed(static_cast<std::uint8_t>(input.fixed<std::uint8_t>() % 60));
        table.fixed(static_cast<std::uint8_t>(input.fixed<std::uint8_t>() & 0x87));
        const auto raw_bytes = input.fixed<std::uint16_t>();
        const auto stored = input.fixed<std::uint8_t>();
        const base::ByteSpan bytes = input.raw(std::min<std::size_t>(stored, input.remaining()));
        table.varint(raw_bytes);
        table.varint(bytes.size());
        table.fixed(base::crc32c(bytes, format::checksum_seed(kSalt)));
        columns.append(bytes);
    }
    table.patch(4, static_cast<std::uint32_t>(table.size()));
    table.patch(0, base::crc32c(base::ByteSpan(table.bytes()).subspan(4), format::checksum_seed(kSalt)));
    table.append(columns.bytes());
    return table.take();
}

base::ByteBuffer make_segment(base::ByteReader& input) {
    base::ByteWriter out;
    format::FileHeader header;
    header.kind = format::FileKind::kSegment;
    header.salt = kSalt;
    format::append_file_header(out, header);
    std::uint64_t sequence = 2;
    while (input.ok() && input.remaining() >= 2) {
        const auto type = static_cast<format::FrameType>(input.fixed<std::uint8_t>() % 13);
        if (type == format::FrameType::kPage) {
            format::append_frame(out, type, sequence++, make_page(input), kSalt).ignore();
            continue;
        }
        const auto length = input.fixed<std::uint8_t>();
        const base::ByteSpan payload = input.raw(std::min<std::size_t>(length, input.remaining()));
        format::append_frame(out, type, sequence++, payload, kSalt).ignore();
    }
    return out.take();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const base::ByteSpan content = std::as_bytes(std::span(data, size)).subspan(1);
    storage::MemoryFileSystem files;
    files.create_directories("/run/w0000").ignore();
    files.set_content("/run/RUN.json", {std::byte{'{'}, std::byte{'}'}});
    if (data[0] % 2 == 0) {
        files.set_content("/run/w0000/000000.seg", {content.begin(), content.end()});
    } else {
        base::ByteReader input(content);
        files.set_content("/run/w0000/000000.seg", make_segment(input));
    }
    const auto run = read::Run::open("/run", files);
    if (!run) return 0;
    static_cast<void>((*run)->totals());
    static_cast<void>((*run)->steps(model::Mode::kTrain));
    for (const std::string& name : (*run)->tensor_names())
        for (const char* const statistic : {"value", "mean", "inf", "count", "units"})
            static_cast<void>((*run)->series(0, name, statistic));
    for (const std::string& name : (*run)->tensor_names())
        static_cast<void>((*run)->raw_series(0, name, model::Mode::kTrain));
    (*run)->for_each_step([](const model::StepView&) { return true; }, true).ignore();
    (*run)->verify().ignore();
    static_cast<void>((*run)->damage());
    return 0;
}
