// Which plan of a run holds: plan.json, or the newest of those that took its place while the training ran.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::storage {

// 12 for "plan-000012.json"; nothing for any other name, and none has the number 0.
[[nodiscard]] std::optional<std::uint32_t> parse_plan_change(std::string_view name);
// The number of the newest change; 0: there is none, plan.json holds. Lists the run's directory.
[[nodiscard]] base::Result<std::uint32_t> newest_plan_change(FileSystem& files, const RunLayout& layout);

}  // namespace traindbg::storage
