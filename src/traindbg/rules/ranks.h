// The ranks of one training side by side: what each recorded of the same step.
//
// For rules that see all workers. A training has ranks where WORLD_SIZE, as the processes recorded it, is
// above one; each rank is a worker. Workers' steps come in any order between them; a step is complete when
// every rank has told it. Of steps that wait for a rank, the first few are kept, where most is recorded, and
// the newest: a rank that is gone costs a bounded memory.
//
// Thread-safety: one thread. Cost: linear in a step's weights, gradients and inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/statistics.h"
#include "traindbg/model/step_source.h"

namespace traindbg::rules {

// How far apart two tensors are, by their statistics: 0 for those of equal tensors; the largest difference of
// extremes, mean and l2, in units of the root mean square. Moments are recorded in float32: below 1e-6 they
// are equal, as far as can be told.
[[nodiscard]] double distance_between(const model::Statistics& a, const model::Statistics& b) noexcept;
inline constexpr double kEqualWithin = 1e-6;

// What one rank recorded of a TRAIN step, as far as ranks can be compared by it. Names are those of the
// `Ranks` that it comes from, and live as long.
struct RankStep {
    struct Tensor {
        std::vector<std::int64_t> shape;
        model::Statistics statistics;
    };
    std::map<std::string_view, Tensor> weights;    // of distributed ones, which are in parts, nothing
    std::map<std::string_view, Tensor> gradients;  // likewise, and only where there are weights
    std::uint64_t inputs = 0;                      // fingerprint of all inputs of the model; 0: not recorded
    bool has_loss = false;
};

class Ranks {
  public:
    // Of one step all ranks, by worker.
    using Together = std::map<model::WorkerId, RankStep>;

    explicit Ranks(bool with_gradients) : with_gradients_(with_gradients) {}

    // The step, when with this record all ranks have told it; borrowed until the next call.
    [[nodiscard]] const Together* observe(const model::StepView& step);

    [[nodiscard]] std::uint64_t world() const noexcept { return world_; }  // 0: no ranks
    // Parameters of which a rank holds a part were seen (FSDP, tensor parallel).
    [[nodiscard]] bool has_parts() const noexcept { return has_parts_; }
    // The ranks' optimizers have other settings: trainings of their own, that are compared by somebody.
    [[nodiscard]] bool are_of_one_training() const noexcept { return is_one_; }
    // DistributedDataParallel, which keeps its ranks alike, was put around the model.
    [[nodiscard]] bool is_data_parallel() const noexcept { return is_data_parallel_; }
    // Why nothing was ever compared.
    [[nodiscard]] std::string why_not() const;

  private:
    using Waiting = std::map<model::StepIndex, Together>;

    void describe(const model::WorkerMeta& meta);
    void make_room();
    Waiting::iterator forget(Waiting::iterator step);

    const bool with_gradients_;
    std::uint64_t world_ = 0;
    bool has_parts_ = false, is_one_ = true, is_data_parallel_ = false, completed_ = false, lost_ = false;
    std::set<model::WorkerId> described_;
    std::optional<std::vector<model::OptimizerInfo>> optimizers_;
    std::set<std::string, std::less<>> names_;
    Waiting waiting_;
    std::size_t tensors_ = 0;  // that wait
    Together complete_;
};

// Experts of a mixture may be one to a rank.
[[nodiscard]] bool is_of_expert(std::string_view name) noexcept;
// Whether each rank recorded the same weights, by name, but for experts. One that is missing was not recorded
// at this step, or is not there at all: which of both cannot be told.
[[nodiscard]] bool have_same_names(const Ranks::Together& together);

}  // namespace traindbg::rules
