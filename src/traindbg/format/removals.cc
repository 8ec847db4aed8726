#include "traindbg/format/removals.h"

#include <nlohmann/json.hpp>

#include "traindbg/model/checked_json.h"

namespace traindbg::format {

using nlohmann::json;

std::string to_json(const Removals& removals) {
    return model::to_checked_text({{"schema_version", 1},
                                   {"bytes", removals.bytes},
                                   {"steps", removals.steps},
                                   {"last", removals.last}});
}

base::Result<Removals> removals_from_json(std::string_view text) {
    const json value = json::parse(text, nullptr, false);
    if (!value.is_object()) return base::Status(base::Code::kDataLoss, "is no JSON object");
    Removals removals;
    const auto number = [&](const char* key, std::uint64_t& out) {
        if (const auto found = value.find(key); found != value.end() && found->is_number_unsigned())
            out = found->get<std::uint64_t>();
    };
    number("bytes", removals.bytes);
    number("steps", removals.steps);
    if (const auto last = value.find("last"); last != value.end() && last->is_string())
        removals.last = last->get<std::string>();
    return removals;
}

}  // namespace traindbg::format
