#include "traindbg/tables/selection.h"

#include <algorithm>

namespace traindbg::tables {

bool Selection::wants(const model::TensorInfo& info) const {
    if (info.name.empty()) return false;
    if (!collections.empty()) {
        const auto is_wanted = [this](std::string_view collection) {
            return std::find(collections.begin(), collections.end(), collection) != collections.end();
        };
        if (!is_wanted(model::collection_of(info.role)) &&
            std::none_of(info.collections.begin(), info.collections.end(), is_wanted))
            return false;
    }
    return !name || name(info.name);
}

bool TensorFilter::wants(model::WorkerId worker, const model::TensorInfo& info) {
    auto known = std::find_if(known_.begin(), known_.end(),
                              [worker](const Known& entry) { return entry.worker == worker; });
    if (known == known_.end()) known = known_.insert(known_.end(), {worker, {}});
    if (known->wanted.size() <= info.id) known->wanted.resize(std::size_t{info.id} + 1, -1);
    std::int8_t& wanted = known->wanted[info.id];
    if (wanted < 0) wanted = selection_->wants(info) ? 1 : 0;
    return wanted == 1;
}

}  // namespace traindbg::tables
