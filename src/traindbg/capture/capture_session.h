// The object behind every hook: one per training process.
//
// The hooks, in whatever language, find tensors and name them; this decides, reduces, and hands the
// step to the writer. No function here throws, waits without a deadline, or touches the training's
// data other than by reading it. When something fails, the session degrades, counts, and says so
// once; the training goes on.
//
// The life of a step:
//   due()                          which roles this step needs (0: attach nothing)
//   observe*(...)                  as tensors are met
//   end_step()                     hands the record over; gives the next step's needs
// EVAL steps lie between two TRAIN steps: `end_eval_step` records one without ending the TRAIN step.
// Where somebody put another plan into the run (plan_changes.h), it holds from the end of a TRAIN step on.
//
// Thread-safety: one thread at a time (in Python, the GIL sees to it); `counts` from any. After a
// `fork` the child's session is dead: every call does nothing.
// Cost: `observe` of a small tensor ~0.1 µs plus one pass over its memory; an idle end_step < 1 µs.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_record.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/tensor/tensor_view.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::capture {

struct SessionOptions {
    std::string run_directory;  // made, with a RUN.json, if it is not there
    model::CaptureConfig config;
    model::WorkerId worker = 0;
    std::vector<std::string> command = {};  // of the training, redacted; for a RUN.json that is made here
};

// What `register_tensor` gives when it could not; observing it does nothing.
inline constexpr model::TensorId kNoTensor = UINT32_MAX;

struct SessionCounts {
    write::WriterCounts writer;
    // Of all steps, each tensor once at a step: something that was due could not be taken of it (complex,
    // unknown type, too many channels, ...).
    std::uint64_t tensors_skipped = 0;
    std::uint64_t capture_nanos = 0;
};

// A tensor of which something is due that is known later, when a device is done with it.
struct LateSample {
    model::Mode mode = model::Mode::kTrain;
    model::StepIndex step = 0;
    model::TensorId tensor = kNoTensor;
    model::What run = model::What::kNothing;
    model::What flight = model::What::kNothing;
};

// What the hook does next.
struct StepDirective {
    RoleMask due = 0;             // of the TRAIN step that begins now
    bool stop_requested = false;  // the supervisor asks the training to end at this step boundary
    bool plan_changed =
        false;  // `plan` is another one from now on: what was derived of it is to be asked again
    bool correction_asked = false;  // `take_corrections` has something to do
    bool is_held_back = false;      // the step that ended is
    // Losses are of no use at the next step: nobody asks for anything, so that nothing follows from one that
    // is not finite.
    bool ignores_losses = false;
};

class CaptureSession {
  public:
    [[nodiscard]] static base::Result<std::unique_ptr<CaptureSession>> open(
        SessionOptions options, storage::FileSystem& files = storage::posix_file_system());
    CaptureSession(const CaptureSession&) = delete;
    CaptureSession& operator=(const CaptureSession&) = delete;
    ~CaptureSession();  // close(1 s)

    // Gives the tensor its id (info.id is ignored) and tells the run about it. The same name again
    // gives the same id. kNoTensor: the session is closed or out of memory, or the tensor cannot be
    // described (no name, a text of more than 4096 bytes, more than 64 dimensions).
    [[nodiscard]] model::TensorId register_tensor(model::TensorInfo info) noexcept;
    // From now on its statistics are taken whenever it is observed, due or not: for what a user hands over.
    void keep_always(model::TensorId tensor) noexcept;
    void describe(model::WorkerMeta meta) noexcept;
    void event(std::string_view kind, std::string_view json) noexcept;

    // Captures from now on also what `config` asks for beyond the plan in force, and puts it into the run as
    // `traindbg set` would. Of `config` only collections and requirements count. Waits for the run's files.
    // A collection of a name that is known stays what it is. kInvalidArgument: a pattern that cannot be
    // compiled.
    [[nodiscard]] base::Status ask_for(const model::CaptureConfig& config);

    // Another training begins in this process with the TRAIN step under way: what rules look at where
    // trainings begin is due again, in the first ten of them and in later ones where enough steps have
    // passed. `of_another_model`: the next step to end, of each mode, says so in the number
    // `loop/new_training`, which is 2 for the second one.
    void begin_training(bool of_another_model) noexcept;

    // Roles due at the TRAIN step under way, or at the next EVAL step.
    [[nodiscard]] RoleMask due(model::Mode mode) noexcept;
    // Those of them that are due for what the user asked for.
    [[nodiscard]] RoleMask asked(model::Mode mode) const noexcept;
    // Those for which a compiled model is to run uncompiled at that step (CapturePlan::eager_roles).
    [[nodiscard]] RoleMask eager(model::Mode mode) const noexcept;
    // A whole forward pass of a model was looked at.
    void forward_passed() noexcept;
    // A model has a module with others inside, whose output would have this name. Whether it is asked for.
    [[nodiscard]] bool note_block(std::string_view name) noexcept;
    [[nodiscard]] model::StepIndex step(model::Mode mode) const noexcept;

    // Takes what the plan asks of this tensor at the step under way; nothing when it is not due. A
    // tensor observed twice in a step (a module called twice) keeps the first sample.
    void observe(model::Mode mode, model::TensorId tensor, const tensor::TensorView& view) noexcept;
    // The same for many; `tensors[i]` belongs to `views[i]`; a view without data is skipped.
    void observe_batch(model::Mode mode, std::span<const model::TensorId> tensors,
                       std::span<const tensor::TensorView> views) noexcept;
    // Something is due of the tensor that the caller cannot read. It is counted, and `why` is told once in
    // the run, of the first hundred tensors by name.
    void cannot_take(model::Mode mode, model::TensorId tensor, std::string_view why) noexcept;
    // A number. Those of role METRIC are always kept: the user handed them over for that.
    void observe_scalar(model::Mode mode, model::TensorId tensor, double value) noexcept;
    // The same for many.
    void observe_scalars(model::Mode mode, std::span<const model::ScalarSample> scalars) noexcept;
    void observe_classes(model::Mode mode, model::TensorId tensor, const tensor::TensorView& logits,
                         const tensor::TensorView& labels) noexcept;
    // What an optimizer's step did to a tensor: of `after - before` what is due of the tensor `update`, and
    // as the number `ratio` the l2 norm of that beside the one of `before`. The ratio is left out where it
    // is not finite, or an element is not. Whole differences, histograms and the like are taken of float32,
    // or of float64 where a float32 does not hold the element type.
    void observe_update(model::Mode mode, model::TensorId update, model::TensorId ratio,
                        const tensor::TensorView& before, const tensor::TensorView& after) noexcept;
    // What `observe` would take of the tensor now: nothing where it is not due, or was taken at this step.
    [[nodiscard]] model::What wanted(model::Mode mode, model::TensorId tensor) const noexcept;
    // The kind of activation that the tensor was registered with.
    [[nodiscard]] model::ActivationKind activation(model::TensorId tensor) const noexcept;
    // Statistics that were taken elsewhere (on a device), and what the units did, where that was taken.
    void observe_statistics(model::Mode mode, model::TensorId tensor, const model::Statistics& statistics,
                            const model::UnitStatistics& units = {}) noexcept;
    // For the rest of this step and the `steps` after it, everything is due: something went wrong and
    // the neighbourhood is worth keeping. Asked for by the session itself when a loss is not finite.
    void capture_everything_for(std::uint64_t steps) noexcept;
    // What the flight recorder holds is kept, with the next few steps; `reason` is put into the run. Asked
    // for by the session itself when a loss or a weight is not finite, and when the supervisor wants it.
    void keep_flight(std::string_view reason) noexcept;
    // Time spent on capture outside of this class (attaching hooks), for the step's account.
    void add_cost(std::uint64_t nanos) noexcept;

    [[nodiscard]] StepDirective end_step() noexcept;  // TRAIN

    // Values that come after they were asked for. A tensor counts as taken from `begin_late` on; what is due
    // of it then is kept of the value whenever that comes, up to the end of the step, or up to `release_step`
    // where the step is held back.
    [[nodiscard]] LateSample begin_late(model::Mode mode, model::TensorId tensor) noexcept;
    void observe_late(const LateSample& sample, const model::Statistics& statistics,
                      const model::UnitStatistics& units) noexcept;
    void observe_late(const LateSample& sample, double value) noexcept;
    // Whether steps can be held back: a flight recorder takes each as it ends.
    [[nodiscard]] bool can_hold_back() const noexcept;
    // Channels of a tensor that were taken elsewhere, at this step; what else of it is due, is taken by
    // itself.
    void observe_channels(model::Mode mode, model::TensorId tensor,
                          model::ChannelStatistics channels) noexcept;
    // Of which dimension of a tensor of this rank, which is not 0, they are indexes.
    [[nodiscard]] std::size_t channel_dimension(model::TensorId tensor, std::size_t rank) const noexcept;
    // As `end_step`, but if anything was taken of the step, or `is_awaited`, it is handed over by
    // `release_step` only, with all that are held back and older. An EVAL step, the end of one that is not
    // held back, `flush` and `close` release all.
    [[nodiscard]] StepDirective end_step_held_back(bool is_awaited) noexcept;
    void release_step(model::StepIndex step) noexcept;
    void end_eval_step() noexcept;
    // The changes of the training that were asked for since the last call: how often each. Whoever calls it
    // makes them.
    [[nodiscard]] storage::CorrectionsAsked take_corrections() noexcept;
    // Where a checkpoint is to be written before a stop that was asked for: the first step of the fault.
    [[nodiscard]] std::optional<std::uint64_t> checkpoint_asked() const noexcept;

    // Waits until all steps that ended are where a reader finds them. False: not within `patience`, or
    // they could not be written.
    [[nodiscard]] bool flush(std::chrono::nanoseconds patience) noexcept;
    // Flushes and ends the run's record of this worker. Idempotent.
    void close(std::chrono::nanoseconds patience) noexcept;
    // In the child of a fork.
    void abandon() noexcept;
    [[nodiscard]] bool is_open() const noexcept;
    [[nodiscard]] SessionCounts counts() const;
    [[nodiscard]] const std::string& run_directory() const noexcept;
    [[nodiscard]] model::WorkerId worker() const noexcept;
    [[nodiscard]] const CapturePlan& plan() const noexcept;

  private:
    class Impl;
    explicit CaptureSession(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::capture
