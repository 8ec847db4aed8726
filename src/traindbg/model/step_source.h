// Complete steps, in the order in which each worker recorded them: what rules are fed from, whether
// the run is live, stored, or a table of numbers in a test.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_record.h"

namespace traindbg::model {

// The tensors of one worker, by id. Ids are dense and start at 0; entries are only ever added.
using TensorTable = std::vector<TensorInfo>;

// One step of one worker, with the table that explains its ids. Borrowed: valid until the source is
// asked for the next one.
struct StepView {
    WorkerId worker = 0;
    const StepRecord* record = nullptr;
    const TensorTable* tensors = nullptr;
    const WorkerMeta* meta = nullptr;  // never null; empty until the worker described itself
    // Steps are counted from this one, the first one (of this mode) of the training that the step belongs to:
    // a process may train several models, one after the other. 0 where nobody tells trainings apart.
    StepIndex began = 0;

    [[nodiscard]] Mode mode() const noexcept { return record->mode; }
    [[nodiscard]] StepIndex step() const noexcept { return record->step - began; }
    [[nodiscard]] StepIndex step_of_run() const noexcept { return record->step; }
    [[nodiscard]] const TensorInfo& info(TensorId id) const noexcept { return (*tensors)[id]; }
};

class StepSource {
  public:
    StepSource() = default;
    StepSource(const StepSource&) = delete;
    StepSource& operator=(const StepSource&) = delete;
    virtual ~StepSource() = default;

    // The next step, waiting up to `patience` for one (zero: do not wait). Nothing: none came in
    // time, or `ended()`. Records refer to known tensors only: a source skips and counts a sample
    // whose id its table does not hold.
    [[nodiscard]] virtual base::Result<std::optional<StepView>> next(std::chrono::nanoseconds patience) = 0;
    // No further step will ever come.
    [[nodiscard]] virtual bool ended() const = 0;
};

}  // namespace traindbg::model
