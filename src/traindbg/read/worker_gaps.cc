#include "traindbg/read/worker_gaps.h"

#include <cstddef>
#include <map>
#include <utility>

#include "traindbg/base/format.h"

namespace traindbg::read {
namespace {

using model::WorkerId;

// "worker 3", "workers 2 and 5 to 7". In order of their numbers.
std::string names_of(const std::vector<WorkerId>& workers) {
    std::vector<std::string> ranges;
    for (std::size_t begin = 0; begin < workers.size();) {
        std::size_t end = begin + 1;
        while (end < workers.size() && workers[end] == workers[end - 1] + 1) ++end;
        if (end - begin > 2) {
            ranges.push_back(base::format("{} to {}", workers[begin], workers[end - 1]));
            begin = end;
        } else {
            ranges.push_back(base::format("{}", workers[begin++]));
        }
    }
    std::string text = workers.size() == 1 ? "worker " : "workers ";
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        if (i != 0) text += i + 1 == ranges.size() ? " and " : ", ";
        text += ranges[i];
    }
    return text;
}

}  // namespace

std::vector<std::string> WorkerGaps::in_words() const {
    std::vector<std::string> lines;
    if (!missing.empty())
        lines.push_back(base::format("{} recorded nothing, though others expect {}",
                                     names_of(missing) + (missing.size() == 1 ? " has" : " have"),
                                     missing.size() == 1 ? "it" : "them"));
    // Those of a machine that went down stopped together.
    std::map<std::pair<bool, std::optional<model::StepIndex>>, std::vector<WorkerId>> fates;
    for (const StoppedWorker& worker : stopped)
        fates[{worker.has_closed, worker.last_step}].push_back(worker.worker);
    for (const auto& [fate, workers] : fates) {
        const auto& [has_closed, last_step] = fate;
        std::string text = names_of(workers);
        if (last_step) text += base::format(" stopped at step {}", *last_step);
        else text += " stopped before a training step";
        if (!has_closed)
            text += workers.size() == 1 ? ", its record not closed" : ", their records not closed";
        lines.push_back(text +
                        base::format("; others went on to step {}", stopped.front().last_step_of_others));
    }
    return lines;
}

}  // namespace traindbg::read
