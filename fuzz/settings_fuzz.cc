// Settings files and hook configurations, over any text.
#include <cstdint>
#include <string_view>

#include "traindbg/settings/hook_json.h"
#include "traindbg/settings/settings.h"

using namespace traindbg;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
    switch (data[0] % 3) {
        case 0: static_cast<void>(settings::parse(text, "a", settings::Form::kTraindbg)); break;
        case 1: static_cast<void>(settings::parse(text, "a", settings::Form::kPyproject)); break;
        default: static_cast<void>(settings::parse_hook_json(text, "a")); break;
    }
    return 0;
}
