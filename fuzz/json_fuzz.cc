// Every JSON document that traindbg reads, over any text.
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "traindbg/format/removals.h"
#include "traindbg/model/json.h"

using namespace traindbg;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 7) {
        case 0:
            // A plan that was accepted must be accepted again as we write it.
            if (const auto config = model::capture_config_from_json(text))
                if (!model::capture_config_from_json(model::to_json(*config).dump())) std::abort();
            break;
        case 1: static_cast<void>(model::run_meta_from_json(text)); break;
        case 2: static_cast<void>(model::run_end_from_json(text)); break;
        case 3: static_cast<void>(model::worker_meta_from_json(text)); break;
        case 4:
            if (const auto verdict = model::verdict_from_json(text))
                if (!model::verdict_from_json(model::to_json(*verdict).dump())) std::abort();
            break;
        case 5: static_cast<void>(model::finding_from_json(text)); break;
        default:
            if (const auto removals = format::removals_from_json(text))
                if (*format::removals_from_json(format::to_json(*removals)) != *removals) std::abort();
            break;
    }
    return 0;
}
