#include "traindbg/storage/plan_files.h"

#include <algorithm>
#include <vector>

namespace traindbg::storage {

std::optional<std::uint32_t> parse_plan_change(std::string_view name) {
    constexpr std::string_view kPrefix = "plan-";
    if (!name.starts_with(kPrefix)) return std::nullopt;
    const std::optional<std::uint32_t> number = parse_part(name.substr(kPrefix.size()), ".json");
    return number == 0U ? std::nullopt : number;
}

base::Result<std::uint32_t> newest_plan_change(FileSystem& files, const RunLayout& layout) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, files.list(layout.root));
    std::uint32_t newest = 0;
    for (const DirectoryEntry& entry : entries)
        if (entry.is_regular) newest = std::max(newest, parse_plan_change(entry.name).value_or(0));
    return newest;
}

}  // namespace traindbg::storage
