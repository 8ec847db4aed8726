// A hostile run of the SageMaker Debugger client, read in full: the input is an index, a zero byte, a
// collections file, a zero byte, and the payload of one event. The payload is framed with right checksums
// and stands where the first worker's event file is.
#include <cstdlib>
#include <string>
#include <string_view>

#include "traindbg/compat/smdebug_source.h"
#include "traindbg/format/smdebug_index.h"
#include "traindbg/format/tfrecord.h"
#include "traindbg/storage/memory_file_system.h"

using namespace traindbg;

namespace {

std::string_view until_zero(std::string_view& text) {
    const std::size_t end = std::min(text.find('\0'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return part;
}

base::ByteBuffer bytes_of(std::string_view text) {
    const base::ByteSpan bytes = base::as_bytes(text);
    return {bytes.begin(), bytes.end()};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string_view index = until_zero(text);
    const std::string_view collections = until_zero(text);
    base::ByteWriter events;
    format::append_record(events, base::as_bytes(text), format::RecordFooter::kConstant);

    storage::MemoryFileSystem files;
    const auto put = [&](const std::string& path, base::ByteBuffer bytes) {
        if (!files.create_directories("/run/" + path.substr(0, path.rfind('/'))).is_ok()) std::abort();
        files.set_content("/run/" + path, std::move(bytes));
    };
    for (const char* worker : {"worker_0", "/job:a"}) {
        put(format::smdebug_index_file(3, worker), bytes_of(index));
        put(format::smdebug_collections_file(worker), bytes_of(collections));
        put(format::smdebug_event_file(3, worker), events.bytes());
    }
    put("events/e", events.bytes());

    const auto source = compat::SmdebugSource::open("/run", files, true);
    if (!source) return 0;
    (*source)->finish_when_idle();
    std::size_t steps = 0;
    while (true) {
        const auto view = (*source)->next(std::chrono::nanoseconds(0));
        if (!view || !*view) break;
        if (++steps > 2) std::abort();
        for (const auto& sample : (*view)->record->tensors)
            if (sample.tensor >= (*view)->tensors->size()) std::abort();
    }
    for (const auto& collection : (*source)->run().collections())
        static_cast<void>((*source)->run().names_of(collection));
    return 0;
}
