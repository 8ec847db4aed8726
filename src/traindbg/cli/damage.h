// What of a run could not be read, as the verbs tell it: to people on standard error, and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "traindbg/cli/console.h"
#include "traindbg/read/run.h"

namespace traindbg::cli {

// Objects of `file`, `offset`, `bytes`, `what`, `tail` and `newer`.
[[nodiscard]] nlohmann::ordered_json damage_json(const std::vector<read::Damage>& damage);

// "w0000/000000.seg, byte 128: the checksum does not match; lost: …"
[[nodiscard]] std::string damage_line(const read::Damage& place);

// A warning for each place, the first ones at least. Not for the end of what a crash cut off or what is just
// being written: nothing that was recorded is lost with it.
void warn_of_damage(const Console& console, const std::string& run, const std::vector<read::Damage>& damage);

}  // namespace traindbg::cli
