// What was removed from a worker's record on purpose, to save space: the content of <worker>/removed.json.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"

namespace traindbg::format {

// Added up over all times that something was removed.
struct Removals {
    std::uint64_t bytes = 0;
    std::uint64_t steps = 0;
    std::string last;  // why, the last time: "whole tensors of steps before 4000"

    friend bool operator==(const Removals&, const Removals&) = default;
};

[[nodiscard]] std::string to_json(const Removals& removals);
// Lenient: what is missing or no number counts as nothing. kDataLoss: no JSON object.
[[nodiscard]] base::Result<Removals> removals_from_json(std::string_view text);

}  // namespace traindbg::format
