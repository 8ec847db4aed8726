#include "traindbg/cli/damage.h"

#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/json.h"

namespace traindbg::cli {
namespace {

constexpr std::size_t kMostWarnings = 10;

}  // namespace

model::Json damage_json(const std::vector<read::Damage>& damage) {
    model::Json places = model::Json::array();
    for (const read::Damage& place : damage)
        places.push_back({{"file", base::printable(place.file)},
                          {"offset", place.offset},
                          {"bytes", place.bytes},
                          {"what", base::printable(place.what)},
                          {"tail", place.tail},
                          {"newer", place.newer}});
    return places;
}

std::string damage_line(const read::Damage& place) {
    return base::format("{}, byte {}: {}{}", base::printable(place.file), place.offset,
                        base::printable(place.what),
                        place.tail ? " (at the end: what a crash leaves behind)" : "");
}

void warn_of_damage(const Console& console, const std::string& run, const std::vector<read::Damage>& damage) {
    std::size_t told = 0;
    std::size_t left = 0;
    for (const read::Damage& place : damage) {
        if (place.tail) continue;
        if (told == kMostWarnings) {
            ++left;
            continue;
        }
        ++told;
        console.warn(damage_line(place));
    }
    if (left != 0)
        console.warn(base::format("{}: {} more place{} damaged; traindbg verify names all of them",
                                  base::printable(run), left, left == 1 ? " is" : "s are"));
}

}  // namespace traindbg::cli
