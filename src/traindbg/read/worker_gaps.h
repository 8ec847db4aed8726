// Of which workers a run holds less than of the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traindbg/model/step.h"

namespace traindbg::read {

// It will record no more, and others got farther.
struct StoppedWorker {
    model::WorkerId worker = 0;
    std::optional<model::StepIndex> last_step;  // of TRAIN; nothing: it recorded none
    model::StepIndex last_step_of_others = 0;
    bool has_closed = false;  // it closed its record: it left by itself, nothing of it is lost
};

struct WorkerGaps {
    std::vector<model::WorkerId> missing;  // the others expect them (their WORLD_SIZE): they recorded nothing
    std::vector<StoppedWorker> stopped;

    [[nodiscard]] bool empty() const noexcept { return missing.empty() && stopped.empty(); }
    // "workers 2 and 5 to 7 have recorded nothing, though others expect them": a line for each fate that
    // workers share.
    [[nodiscard]] std::vector<std::string> in_words() const;
};

}  // namespace traindbg::read
