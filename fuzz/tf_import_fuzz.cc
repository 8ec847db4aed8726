// The import of TensorBoard's event files, over any bytes, and over payloads that are given right checksums:
// [u16 length][payload]... What an import makes of them must be steps that can be stored.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "traindbg/exchange/import_tensorboard.h"
#include "traindbg/format/tfrecord.h"

using namespace traindbg;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    base::ByteSpan rest = std::as_bytes(std::span(data, size)).subspan(1);
    base::ByteWriter file;
    if (data[0] % 2 == 0) {
        file.append(rest);
    } else {
        while (rest.size() >= 2) {
            std::uint16_t length = 0;
            std::memcpy(&length, rest.data(), sizeof(length));
            rest = rest.subspan(2);
            const std::size_t taken = std::min<std::size_t>(length, rest.size());
            format::append_record(file, rest.first(taken));
            rest = rest.subspan(taken);
        }
    }
    const exchange::ImportResult result = exchange::scan_event_file(file.bytes());
    // Each value that was taken is in a step, unless a later one replaced it.
    require(result.replaced <= result.scalars + result.histograms);
    require(result.steps <= result.scalars + result.histograms);
    require((result.scalars + result.histograms == 0) == (result.steps == 0));
    require(result.problems.size() <= result.problems_in_all);
    return 0;
}
