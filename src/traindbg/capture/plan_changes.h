// How a training is told, while it runs, what to capture from now on.
//
// `traindbg set` puts a whole plan into the run (plan-000001.json, ...) and counts it in the control page.
// The session looks at that count when a training step ends. Where it has changed, a thread that is made for
// this one change reads the newest plan, compiles its patterns and asks them of every tensor that is known;
// the session takes the result at a later step's end. The training waits for none of this.
//
// Thread-safety: one thread at a time. A child made by `fork` has no part in it: nothing may be called there
// but the destructor, which leaves the parent's thread and its locks alone. Cost without a change: nothing is
// called.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::capture {

// The plan of a run that holds now: the newest change, or plan.json (number 0). kNotFound: there is none;
// kDataLoss: its checksum does not match; kInvalidArgument: it is no plan. Messages begin with the file.
struct PlanInForce {
    model::CaptureConfig config;
    std::uint32_t number = 0;
};
[[nodiscard]] base::Result<PlanInForce> read_plan_in_force(storage::FileSystem& files,
                                                           const storage::RunLayout& layout);
// Puts what `config` asks for beyond the plan in force into the run, as a change, so that whoever changes the
// plan later knows of it: a script under `traindbg run` may ask for more than its supervisor wrote down. Not
// what an earlier plan of the run held: somebody has taken that out, and it stays so. Gives the plan that
// holds then.
[[nodiscard]] base::Result<PlanInForce> publish_wishes(storage::FileSystem& files,
                                                       const storage::RunLayout& layout,
                                                       const model::CaptureConfig& config);

// What a plan has to know of tensors, in id order. In few pieces of memory: a million of them are copied in
// milliseconds.
class TensorNames {
  public:
    void add(std::string_view name, model::Role role, std::span<const std::string> collections);
    [[nodiscard]] std::size_t size() const noexcept { return tensors_.size(); }
    [[nodiscard]] std::string_view name(std::size_t i) const noexcept;
    [[nodiscard]] model::Role role(std::size_t i) const noexcept { return tensors_[i].role; }
    [[nodiscard]] std::span<const std::string> collections(std::size_t i) const noexcept;

  private:
    struct Tensor {
        std::size_t end = 0;  // of its name in text_
        model::Role role = model::Role::kOther;
    };
    std::string text_;
    std::vector<Tensor> tensors_;
    std::vector<std::pair<std::size_t, std::vector<std::string>>> collections_;  // of those that have any
};

// What came of looking for a change.
struct PlanChange {
    std::uint32_t number = 0;         // 0: none that is newer was found
    std::optional<CapturePlan> plan;  // has noted the tensors that were given
    base::Status problem;             // why there is no plan; ok: there was nothing to find
};

class PlanChanges {
  public:
    // `in_force`: the number of the plan that holds now. `files` must live as long as the process if a thread
    // is left behind.
    PlanChanges(storage::FileSystem& files, storage::RunLayout layout, std::uint32_t in_force);
    PlanChanges(const PlanChanges&) = delete;
    PlanChanges& operator=(const PlanChanges&) = delete;
    ~PlanChanges();  // finish(0)

    // Plan `number` was taken on without this: only newer ones are of interest.
    void note_in_force(std::uint32_t number) noexcept { in_force_ = std::max(in_force_, number); }
    [[nodiscard]] std::uint32_t in_force() const noexcept { return in_force_; }
    // Starts the thread. Not while it `is_looking`.
    void look(TensorNames tensors);
    // From `look` until `take` gave something.
    [[nodiscard]] bool is_looking() const noexcept { return state_ != nullptr; }
    // What came of it, once; nothing as long as the thread is at work.
    [[nodiscard]] std::optional<PlanChange> take() noexcept;
    // Nobody asks any more. False: the thread did not end within `patience` and is left behind; it touches
    // nothing of the session.
    bool finish(std::chrono::nanoseconds patience) noexcept;

  private:
    struct State;

    storage::FileSystem& files_;
    const storage::RunLayout layout_;
    std::uint32_t in_force_;
    // Shared with the thread, and behind a pointer that can be let go without a touch: in a child.
    std::unique_ptr<std::shared_ptr<State>> state_;
    const std::uint32_t generation_;
};

}  // namespace traindbg::capture
