// Values of tensors that a device is still at when they are asked for: what was begun on the device, for
// which tensor of which step, until they are there and given to the capture session.
//
// What is begun does not wait. When a TRAIN step ends whose values are not all there, it is held back, with
// those after it; each is completed when the device has passed it, at most kMostHeldBack steps later, for
// which the end of a step waits if need be. Where steps cannot be held back (a flight recorder) and where an
// evaluation's step ends, everything is waited for. No wait is longer than its patience: what has not come by
// then is lost.
//
// Owns the reducer. Threads: one at a time, under the mutex of the session that owns it; `empty` and
// `must_wait` from any. No Python is called, so that nobody who holds the mutex waits for the GIL. Nothing
// throws; what is lost is counted, and said once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "traindbg/capture/capture_session.h"
#include "traindbg/reduce/device/device_reducer.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg::bindings {

class LateValues {
  public:
    using Place = reduce::DeviceReducer::Place;
    using Ticket = reduce::DeviceReducer::Ticket;
    static constexpr Ticket kNone = reduce::DeviceReducer::kNone;
    // A training is rarely further ahead of its device.
    static constexpr std::size_t kMostHeldBack = 3;
    // For a step; a device that takes longer is stuck, with the training.
    static constexpr std::chrono::seconds kPatience{30};

    // What is due of a tensor now.
    struct Due {
        bool is_any = false;
        bool has_units = false;
        bool fits = false;  // statistics, and at most counts of units, are all
    };
    // A tensor that was read; see TensorReader.
    struct Read {
        model::TensorId id;
        tensor::TensorView view;
        Place place;
        bool has_units;
    };

    void serve(capture::CaptureSession& session) noexcept { session_ = &session; }
    // From now on. `takes_host`: of tensors in host memory, and of no others.
    void reduce_by(std::unique_ptr<reduce::DeviceReducer> reducer, bool takes_host) noexcept;
    [[nodiscard]] bool is_ready() const noexcept { return reducer_ != nullptr; }
    [[nodiscard]] bool takes_host() const noexcept { return takes_host_; }

    // But for what is taken `apart`.
    [[nodiscard]] Due due(model::Mode mode, model::TensorId id,
                          model::What apart = model::What::kNothing) const noexcept;
    // Begins to take what is due of tensors. Of each whether it was begun; else it must be taken otherwise.
    void begin(model::Mode mode, std::span<const Read> tensors, std::vector<bool>& begun) noexcept;
    // The same of `after - before`, and of the ratio of their norms.
    bool begin_update(model::Mode mode, const Read& update, model::TensorId ratio,
                      const tensor::TensorView& before) noexcept;
    // Of a tensor with one element: begins to fetch its value, for a tensor that is named later, by one of
    // the three that follow. kNone: it cannot.
    Ticket begin_value(const tensor::TensorView& view, const Place& place) noexcept;
    void observe_value(model::Mode mode, model::TensorId id, Ticket ticket) noexcept;
    void drop_value(Ticket ticket) noexcept;
    // Waits for it, as for all that was begun. NaN: it did not come.
    double take_value(Ticket ticket) noexcept;

    // Nothing is awaited and no step held back.
    [[nodiscard]] bool empty() const noexcept { return outstanding_.load(std::memory_order_acquire) == 0; }
    // Ends the TRAIN step, held back where that is needed, and completes the steps that the device has
    // passed.
    capture::StepDirective end_step() noexcept;
    [[nodiscard]] bool must_wait() const noexcept {
        return steps_held_.load(std::memory_order_acquire) > kMostHeldBack;
    }
    // Waits for the oldest of the steps that are held back, if there is one.
    void complete_oldest(std::chrono::nanoseconds patience) noexcept;
    // The same for all, and for what is late of the steps under way.
    void complete_all(std::chrono::nanoseconds patience) noexcept;

    // Values that could not be fetched.
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

  private:
    struct Late {
        enum class Kind : std::uint8_t { kStatistics, kScalar, kUpdate, kDropped };
        Kind kind;
        capture::LateSample sample;
        capture::LateSample ratio;  // of an update
        Ticket ticket;
    };
    struct Held {
        model::StepIndex step = 0;
        reduce::DeviceReducer::Mark mark = 0;
        std::vector<Late> late;
    };
    class Cost;

    void make_room(std::size_t more);
    void complete(const base::Status& arrived) noexcept;
    void take(const Late& late) noexcept;
    void take_all(const std::vector<Late>& late, const base::Status& arrived) noexcept;
    void say_failure() noexcept;
    void publish() noexcept;

    capture::CaptureSession* session_ = nullptr;
    std::unique_ptr<reduce::DeviceReducer> reducer_;
    bool takes_host_ = false;
    bool has_said_failure_ = false;
    std::vector<Late> late_;  // of the steps under way
    std::deque<Held> held_;   // TRAIN steps, the oldest first
    std::atomic<std::size_t> outstanding_{0};
    std::atomic<std::size_t> steps_held_{0};
    std::atomic<std::uint64_t> lost_{0};
};

}  // namespace traindbg::bindings
