// CaptureSession for the hooks.
//
// Everything on the way of a training step (observe*, end_step, ...) neither throws nor waits: what
// cannot be read is skipped and counted. `Session` adds three things to the core's class: it reads
// tensors out of Python objects, it lets other Python threads run while a big batch is reduced (and
// keeps them out of the session meanwhile), and it knows how much of a hook's time was spent inside.
//
// Threads: every call needs the GIL; several may be under way, because a big batch gives it up.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "late_values.h"
#include "tensor_access.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/capture/capture_session.h"
#include "traindbg/capture/tensor_copies.h"
#include "traindbg/model/step_record.h"

namespace traindbg::bindings {

// In what `end_step` returns, beside the mask of roles.
inline constexpr capture::RoleMask kStopRequested = capture::RoleMask{1} << 31;
inline constexpr capture::RoleMask kPlanChanged = capture::RoleMask{1} << 30;
inline constexpr capture::RoleMask kCorrectionAsked = capture::RoleMask{1} << 29;
// Those that are no roles.
inline constexpr capture::RoleMask kAsked = kStopRequested | kPlanChanged | kCorrectionAsked;
static_assert((capture::kAllRoles & kAsked) == 0);

// What the tensors of a list held when they were copied.
struct CopiedTensors {
    capture::TensorCopies copies;
    std::vector<std::size_t> on_device;  // positions of those that live on a device: not copied
};

class Session {
  public:
    Session(const std::string& run_directory, const std::string& config_json, model::WorkerId worker);

    model::TensorId register_tensor(std::string name, const std::string& role, const std::string& activation,
                                    std::string module, std::string module_type, std::int32_t layer,
                                    const std::string& dtype, std::vector<std::int64_t> shape,
                                    std::optional<std::vector<std::int64_t>> whole_shape,
                                    std::vector<std::int64_t> offset, std::string placement, bool always);
    void describe(const std::string& json);
    void event(const std::string& kind, const std::string& json);
    void ask_for(const std::string& config_json);

    capture::RoleMask due(int mode) noexcept;
    capture::RoleMask asked(int mode) noexcept;
    capture::RoleMask eager(int mode) noexcept;
    void forward_passed() noexcept;
    bool note_block(const std::string& name) noexcept;
    std::uint64_t step(int mode) noexcept;

    // False: it lives on a device and was not read.
    bool observe(int mode, model::TensorId id, nanobind::handle tensor) noexcept;
    // The positions of tensors that live on a device.
    std::vector<std::size_t> observe_batch(int mode, const nanobind::list& ids,
                                           const nanobind::list& tensors) noexcept;
    CopiedTensors copy(const nanobind::list& tensors) noexcept;
    // What became of `tensors` since they were copied. Those that were not are left out.
    void observe_updates(int mode, const std::vector<model::TensorId>& updates,
                         const std::vector<model::TensorId>& ratios, const CopiedTensors& before,
                         const nanobind::list& tensors) noexcept;
    void observe_scalar(int mode, model::TensorId id, double value) noexcept;
    void observe_scalars(int mode, std::span<const model::ScalarSample> scalars) noexcept;
    // Takes the value of a tensor with one element. False when it lives on a device.
    bool observe_scalar_tensor(int mode, model::TensorId id, nanobind::handle tensor) noexcept;
    // Tensors on a device; or, for tests, in host memory. Raises what is missing.
    void reduce_on_cuda(const std::vector<std::string>& compilers);
    void reduce_on_host(unsigned behind);
    // Begins to take what is due of a tensor on a device; what is done with it afterwards may change it.
    // False: it must be taken otherwise.
    bool observe_later(int mode, model::TensorId id, nanobind::handle tensor, bool without_channels) noexcept;
    // Channels that were taken elsewhere: [min, max, share of zeros] behind each other.
    void observe_channels(int mode, model::TensorId id, nanobind::handle extremes) noexcept;
    std::size_t channel_dimension(model::TensorId id, std::size_t rank) noexcept;
    // The same of some of many; the positions of those that must be taken otherwise.
    std::vector<std::size_t> observe_batch_later(int mode, const nanobind::list& ids,
                                                 const nanobind::list& tensors,
                                                 const std::vector<std::size_t>& positions) noexcept;
    bool observe_scalar_later(int mode, model::TensorId id, nanobind::handle tensor) noexcept;
    bool observe_update_later(int mode, model::TensorId update, model::TensorId ratio,
                              nanobind::handle before, nanobind::handle after) noexcept;
    // Of a tensor with one element on a device: begins to fetch its value. kNone: it cannot.
    LateValues::Ticket begin_value(nanobind::handle tensor) noexcept;
    // The same of one that was read and found to be on a GPU.
    LateValues::Ticket begin_value(const tensor::TensorView& view, const LateValues::Place& place) noexcept;
    // One of these ends it. To take it is to wait for all that was begun, without the GIL.
    double take_value(LateValues::Ticket ticket) noexcept;
    void drop_value(LateValues::Ticket ticket) noexcept;
    // Its value is observed when it is there.
    void observe_value_later(int mode, model::TensorId id, LateValues::Ticket ticket) noexcept;

    bool observe_classes(int mode, model::TensorId id, nanobind::handle logits,
                         nanobind::handle labels) noexcept;
    // A set of model::What.
    int wanted(int mode, model::TensorId id) noexcept;
    std::string activation(model::TensorId id);
    void observe_statistics(int mode, model::TensorId id, const model::Statistics& statistics,
                            const model::UnitStatistics& units) noexcept;
    void skip(std::uint64_t tensors) noexcept { unreadable_ += tensors; }
    // Counts it, and where something of it is due the run is told why, once.
    void cannot_take(int mode, model::TensorId id, const std::string& why) noexcept;
    void capture_everything_for(std::uint64_t steps) noexcept;
    void keep_flight(const std::string& reason) noexcept;
    void begin_training(bool of_another_model) noexcept;

    // Of `nanos` that hooks took in all, what was not spent in here goes to the step's account: the core
    // counts its own time. `losses`: of the step that ends, which nobody was told of yet.
    capture::RoleMask end_step(std::uint64_t nanos, std::span<const model::ScalarSample> losses) noexcept;
    // Losses of the TRAIN step under way need not be observed. Guarded by the GIL.
    [[nodiscard]] bool ignores_losses() const noexcept { return ignores_losses_; }
    void end_eval_step() noexcept;
    // (lower_lr, roll_back, bad_since): how often each was asked for since the last call.
    nanobind::tuple take_corrections();
    std::optional<std::uint64_t> checkpoint_asked() noexcept;
    // The JSON of the plan that holds now; empty where there is none any more.
    std::string plan();

    bool flush(double patience_seconds) noexcept;
    void close(double patience_seconds) noexcept;
    // In the child of a fork: takes no lock, because nobody is left there to release it.
    void abandon() noexcept;
    [[nodiscard]] bool is_open() const noexcept {
        return !abandoned_.load(std::memory_order_relaxed) && session_->is_open();
    }
    [[nodiscard]] const std::string& run_directory() const noexcept { return session_->run_directory(); }
    [[nodiscard]] model::WorkerId worker() const noexcept { return session_->worker(); }
    [[nodiscard]] nanobind::dict counts();

  private:
    // A call into the core: one at a time, none after a fork, its time taken.
    class Inside {
      public:
        explicit Inside(Session& session, bool timed = true) noexcept : session_(session), timed_(timed) {
            if (session.abandoned_.load(std::memory_order_relaxed)) return;
            // A fork that Python was not told of calls nobody to abandon the session: the lock may be held
            // by a thread of the parent.
            if (base::fork_generation() != session.generation_) return;
            session.mutex_.lock();
            entered_ = true;
            if (timed_) begin_ = base::monotonic_nanos();
        }
        Inside(const Inside&) = delete;
        Inside& operator=(const Inside&) = delete;
        ~Inside() {
            if (!entered_) return;
            if (timed_)
                session_.inside_nanos_.fetch_add(static_cast<std::uint64_t>(base::monotonic_nanos() - begin_),
                                                 std::memory_order_relaxed);
            session_.mutex_.unlock();
        }
        explicit operator bool() const noexcept { return entered_; }

      private:
        Session& session_;
        bool timed_;
        bool entered_ = false;
        std::int64_t begin_ = 0;
    };

    std::unique_ptr<capture::CaptureSession> session_;
    std::mutex mutex_;
    std::atomic<bool> abandoned_{false};
    const std::uint32_t generation_ = base::fork_generation();
    std::atomic<std::uint64_t> inside_nanos_{0};
    // The same of one that was read in vain. Calls Python, the first time.
    void cannot_read(int mode, model::TensorId id, PyObject* object) noexcept;

    std::uint64_t unreadable_ = 0;        // guarded by the GIL
    std::vector<bool> unreadable_named_;  // by ids: why was asked; guarded by the GIL
    bool ignores_losses_ = false;
    std::vector<tensor::TensorView> views_;
    std::vector<model::TensorId> view_ids_;

    // Waits for what a device is still at, for at most so long, and takes it.
    void complete_late(std::chrono::nanoseconds patience) noexcept;
    std::optional<LateValues::Place> read_for_device(PyObject* tensor, TensorReader& reader,
                                                     tensor::TensorView& view) noexcept;
    LateValues late_;  // guarded by the mutex, but for what any thread may ask
};

}  // namespace traindbg::bindings
