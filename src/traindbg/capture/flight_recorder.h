// The last steps of a training in detail, of which those before something went wrong are kept.
//
// A run of its own, `<run>/flight`, written as a ring: it holds at least the last `steps` TRAIN steps (fewer
// where their whole tensors are too large), in files that are neither synced nor kept for long, so that most
// of them never leave memory. They outlive the process, however it ends: after a crash or a kill the ring is
// there, with nothing done in a signal handler. `keep` makes its content stay; a training that ends well
// without it leaves nothing behind.
//
// Threads and failures: as for the session, which is the only one to use this. What cannot be written is
// counted and said by the writer; the run itself does not depend on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/capture/capture_plan.h"
#include "traindbg/capture/step_under_way.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::capture {

class FlightRecorder {
  public:
    // Begins `<run>/flight` for a run that exists. `config.flight` says what is recorded.
    [[nodiscard]] static base::Result<std::unique_ptr<FlightRecorder>> open(
        storage::FileSystem& files, const storage::RunLayout& of_run, const model::CaptureConfig& config,
        model::WorkerId worker);
    FlightRecorder(const FlightRecorder&) = delete;
    FlightRecorder& operator=(const FlightRecorder&) = delete;
    ~FlightRecorder();

    // As the session's, with the same ids.
    void add_tensor(const model::TensorInfo& info);
    // Whether the output of a module with others inside is wanted.
    [[nodiscard]] bool note_block(std::string_view name) { return plan_.note_block(name); }
    void describe(const model::WorkerMeta& meta) noexcept;

    void note_forward_pass(RoleMask due) noexcept { plan_.note_forward_pass(due); }

    // What is due at every TRAIN step.
    [[nodiscard]] RoleMask due_roles() const noexcept;
    [[nodiscard]] model::What due(model::TensorId tensor) const noexcept;
    // The TRAIN step under way, and its writer.
    [[nodiscard]] StepUnderWay& current() noexcept { return current_; }
    [[nodiscard]] write::RunWriter& writer() noexcept { return *writer_; }
    // `head`: the step's number and times.
    void end_step(const model::StepRecord& head) noexcept;

    // Something went wrong at TRAIN step `step`: what the ring holds is kept, with the next few steps. False:
    // it is being kept already, or was often enough.
    [[nodiscard]] bool keep(std::string_view reason, model::StepIndex step) noexcept;

    // Writes what is queued. Without a `keep` before, all of it is removed.
    void close(std::chrono::nanoseconds patience) noexcept;
    void abandon() noexcept;

  private:
    FlightRecorder(storage::FileSystem& files, storage::RunLayout layout, CapturePlan plan,
                   std::unique_ptr<write::RunWriter> writer);

    storage::FileSystem& files_;
    const storage::RunLayout layout_;  // of `flight` itself
    CapturePlan plan_;
    std::unique_ptr<write::RunWriter> writer_;
    StepUnderWay current_;
    std::uint64_t steps_to_come_ = 0;  // until what was asked to be kept is whole; 0: nothing was
    std::uint32_t kept_ = 0;
    bool is_closed_ = false;
};

}  // namespace traindbg::capture
