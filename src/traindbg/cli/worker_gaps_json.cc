#include "traindbg/cli/worker_gaps_json.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace traindbg::cli {

void put_worker_gaps(model::Json& json, const read::WorkerGaps& gaps) {
    json["missing_workers"] = gaps.missing;
    model::Json stopped = model::Json::array();
    for (const read::StoppedWorker& worker : gaps.stopped)
        stopped.push_back({{"worker", worker.worker},
                           {"last_step", worker.last_step ? model::Json(*worker.last_step) : model::Json()},
                           {"last_step_of_others", worker.last_step_of_others},
                           {"closed", worker.has_closed}});
    json["stopped_workers"] = std::move(stopped);
}

}  // namespace traindbg::cli
