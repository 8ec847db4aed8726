// What a plan captures of tensors that are known, when, for whom, and what that costs: what `traindbg
// explain-plan` tells.
//
// Bytes are those of the native format's log, taken from its encoder; of whole tensors their elements. Times
// are estimates: bytes by what this machine was measured to read and copy, and a fixed time for each tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "traindbg/capture/capture_plan.h"
#include "traindbg/model/step_record.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::cli {

// Bytes of tensors per second, on one core.
struct Speeds {
    double statistics = 0;
    double histogram = 0;
    double channels = 0;
    double digest = 0;  // beside the statistics
    double copy = 0;    // with the statistics
    // For each tensor that is looked at, whatever its size: for finding and naming it.
    double nanos_per_tensor = 100;
    double nanos_per_number = 1000;  // for each loss or metric: most steps have nothing else, and no hooks
    double nanos_per_loop_number = 1000;  // for each number that looking at the loop gives
    double nanos_of_first_step = 0;       // what step 0 takes beside that
};
// Takes some 20 ms.
[[nodiscard]] Speeds measure_speeds();

struct Cost {
    double bytes = 0;  // on the disk
    double nanos = 0;

    Cost& operator+=(const Cost& other) noexcept {
        bytes += other.bytes;
        nanos += other.nanos;
        return *this;
    }
};

// The names of those who ask for it: rules, "user"; "?" where nobody is named.
[[nodiscard]] std::vector<std::string> askers(const model::Requirement& requirement);

// Tensors of one role of which the same is captured at the same steps for the same reason.
struct PlanRow {
    std::string collection;  // of the role
    std::vector<model::TensorId> tensors;
    model::What what = model::What::kNothing;
    model::Mode mode = model::Mode::kTrain;
    std::string when;                   // in words
    std::vector<std::string> asked_by;  // rules' names, "user"
    Cost cost;                          // of a step at which it is due
};

struct PlanSummary {
    std::uint64_t steps = 0;             // TRAIN steps 0 to this, that one not among them
    std::uint64_t captured = 0;          // of these, steps at which more than losses and metrics is due
    Cost all;                            // of all of them
    Cost most;                           // of the one that costs most
    std::vector<model::StepIndex> idle;  // of the first 100, those that are not captured
};

class PlanCosts {
  public:
    // `tensors` by id. `seen`: what was recorded of them; it tells how large records are whose size depends
    // on values. `step_nanos`: how long a step of the training takes, for what is due by time.
    PlanCosts(capture::CapturePlan plan, std::vector<model::TensorInfo> tensors,
              std::span<const model::StepRecord> seen, const Speeds& speeds, double step_nanos);

    [[nodiscard]] const std::vector<model::TensorInfo>& tensors() const noexcept { return tensors_; }
    [[nodiscard]] const capture::CapturePlan& plan() const noexcept { return plan_; }
    // Of taking `what` of one tensor once.
    [[nodiscard]] Cost cost(model::TensorId id, model::What what) const;
    // In the order of the collections; a tensor is in one row for each thing that is taken of it.
    [[nodiscard]] std::vector<PlanRow> rows() const;
    // The requirements that touch no tensor: indexes into the plan's.
    [[nodiscard]] std::vector<std::size_t> without_tensors() const;
    [[nodiscard]] PlanSummary summary(std::uint64_t steps) const;

  private:
    // How many bytes of a log each kind of record takes.
    struct Sizes {
        double statistics = 0;
        double units = 0;
        double classes = 0;
        double histogram = 0;
        double channels = 0;
        double digest = 0;
        double place = 0;  // of a whole tensor
    };
    void measure_sizes(std::span<const model::StepRecord> seen);
    // Tensors of one role that the same requirements touch.
    struct Group {
        model::Role role = model::Role::kOther;
        std::vector<std::size_t> requirements;
        std::vector<model::TensorId> tensors;
    };

    capture::CapturePlan plan_;
    std::vector<model::TensorInfo> tensors_;
    Speeds speeds_;
    double step_nanos_;
    std::vector<Sizes> sizes_;  // by tensor
    std::vector<Group> groups_;
};

}  // namespace traindbg::cli
