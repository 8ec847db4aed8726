// The JSON files and the names of files in runs of the SageMaker Debugger client, over any text.
#include <cstdlib>
#include <string_view>

#include "traindbg/format/smdebug_collections.h"
#include "traindbg/format/smdebug_index.h"

using namespace traindbg::format;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 3) {
        case 0: {
            const auto index = decode_smdebug_index(text);
            if (!index) break;
            require(index->event_file.find("..") == std::string::npos ||
                    ("/" + index->event_file + "/").find("/../") == std::string::npos);
            require(!index->event_file.starts_with('/'));
            const auto again = decode_smdebug_index(encode_smdebug_index(*index));
            require(again.is_ok() && *again == *index);
            break;
        }
        case 1: {
            const auto collections = decode_smdebug_collections(text);
            if (!collections) break;
            const auto again = decode_smdebug_collections(encode_smdebug_collections(*collections));
            require(again.is_ok() && again->workers == collections->workers &&
                    again->collections.size() == collections->collections.size());
            break;
        }
        default:
            if (const auto name = parse_smdebug_index_name(text)) require(!name->worker.empty());
            static_cast<void>(parse_smdebug_collections_name(text));
            if (const auto reduction = parse_smdebug_reduction(text))
                require(smdebug_reduction_name(reduction->reduction, reduction->tensor) == text);
    }
    return 0;
}
