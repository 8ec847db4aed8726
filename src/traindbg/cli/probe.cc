#include "traindbg/cli/probe.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {

using base::Result;

namespace {

constexpr int kLookMillis = 20;
constexpr std::int64_t kPatienceAfterTerm = 10'000'000'000;

}  // namespace

model::CaptureConfig probing_plan(const model::CaptureConfig& config) {
    model::CaptureConfig out = config;
    for (model::Requirement& each : out.requirements) {
        each.schedule = {.every = 1};
        // The last step tells what tensors alone take.
        if (each.collection == model::collection_of(model::Role::kLoop)) each.schedule.end = kProbedSteps - 1;
        each.steps.clear();
        each.every_ms = 0;
        if (!model::has(each.what, model::What::kRaw)) continue;
        each.what = static_cast<model::What>(static_cast<unsigned>(each.what) &
                                             ~static_cast<unsigned>(model::What::kRaw)) |
                    model::What::kStatistics;
    }
    out.retention = {};
    out.budget = 0;
    out.flight = {};
    out.probe = false;
    return out;
}

Result<Probed> run_probe(const ProbeOptions& options) {
    Probed out;
    TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ControlBlock> control,
                              storage::ControlBlock::open(storage::RunLayout{options.run}.control()));
    TRAINDBG_ASSIGN_OR_RETURN(SignalGate gate, SignalGate::open());
    const Spawned child = spawn(options.command, options.environment, gate.mask_before(), STDERR_FILENO);
    if (child.error != 0) {
        out.spawn_error = child.error;
        return out;
    }
    std::int64_t deadline = base::monotonic_nanos() + options.within.count();
    std::uint64_t last_step = 0;
    enum class Stage { kWaits, kAsked, kTerm, kKill } stage = Stage::kWaits;
    while (true) {
        // Its last step is known once it has ended.
        const std::optional<int> status = try_wait(child.pid);
        out.steps = control->step();
        if (status) {
            out.wait_status = *status;
            return out;
        }
        const std::int64_t now = base::monotonic_nanos();
        if (stage == Stage::kWaits && out.steps > last_step) {
            last_step = out.steps;
            deadline = now + options.within.count();
        }
        // One that takes too long for its next step has shown its tensors all the same.
        if (stage == Stage::kWaits && (out.steps >= options.steps || (out.steps > 0 && now >= deadline))) {
            control->request_stop();
            out.was_asked = true;
            stage = Stage::kAsked;
            deadline = now + options.grace.count();
        } else if (now >= deadline && stage != Stage::kKill) {
            out.was_too_slow = out.was_too_slow || stage == Stage::kWaits;
            ::kill(child.pid, stage == Stage::kTerm ? SIGKILL : SIGTERM);
            stage = stage == Stage::kTerm ? Stage::kKill : Stage::kTerm;
            deadline = now + kPatienceAfterTerm;
        }
        pollfd waiting{gate.descriptor(), POLLIN, 0};
        ::poll(&waiting, 1, kLookMillis);
        while (const auto signal = gate.next()) {
            const int number = static_cast<int>(signal->ssi_signo);
            if (number == SIGTSTP) {
                const std::int64_t stopped = base::monotonic_nanos();
                if (!came_from_terminal(*signal)) ::kill(child.pid, SIGTSTP);
                ::raise(SIGSTOP);  // comes back when somebody continues us
                deadline += base::monotonic_nanos() - stopped;
                continue;
            }
            if (number != SIGINT && number != SIGTERM && number != SIGHUP && number != SIGQUIT) continue;
            // Who asks twice does not want to wait.
            if (std::exchange(out.was_interrupted, true)) ::kill(child.pid, SIGKILL);
            if (stage < Stage::kTerm) {
                stage = Stage::kTerm;
                deadline = base::monotonic_nanos() + kPatienceAfterTerm;
            }
            // What the terminal sent has reached it already.
            if (!came_from_terminal(*signal)) ::kill(child.pid, number);
        }
    }
}

}  // namespace traindbg::cli
