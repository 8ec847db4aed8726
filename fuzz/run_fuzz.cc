// A whole run whose log consists of frames with right checksums and any content: what a hostile
// program could write. The input is a list of frames: type, two bytes of length, payload.
#include "traindbg/format/frame.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/memory_file_system.h"

using namespace traindbg;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    base::ByteReader input(std::as_bytes(std::span(data, size)));
    constexpr std::uint64_t kSalt = 42;
    base::ByteWriter log;
    base::ByteWriter blob;
    format::FileHeader header;
    header.salt = kSalt;
    format::append_file_header(log, header);
    header.kind = format::FileKind::kBlob;
    format::append_file_header(blob, header);
    blob.pad_to(format::kBlobHeaderBytes);
    std::uint64_t sequence = 2;
    while (input.ok() && input.remaining() >= 3) {
        const auto type = static_cast<format::FrameType>(input.fixed<std::uint8_t>() % 13);
        const auto length = input.fixed<std::uint16_t>();
        const base::ByteSpan payload = input.raw(std::min<std::size_t>(length, input.remaining()));
        format::append_frame(log, type, sequence++, payload, kSalt).ignore();
    }
    storage::MemoryFileSystem files;
    files.create_directories("/run/w0000").ignore();
    files.set_content("/run/RUN.json", {std::byte{'{'}, std::byte{'}'}});
    files.set_content("/run/w0000/000000.log", log.take());
    files.set_content("/run/w0000/000000.blob", blob.take());
    const auto run = read::Run::open("/run", files);
    if (!run) return 0;
    (*run)->for_each_step([](const model::StepView&) { return true; }, true).ignore();
    static_cast<void>((*run)->refresh());
    for (const std::string& name : (*run)->tensor_names()) {
        static_cast<void>((*run)->series(0, name, "value"));
        static_cast<void>((*run)->series(0, name, "mean"));
    }
    static_cast<void>((*run)->totals());
    return 0;
}
