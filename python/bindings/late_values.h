// Values of tensors that a device is still at when they are asked for: what was begun on the device, for
// which tensor of which step, until they are there and given to the capture session.
//
// Nothing waits in a step. When a TRAIN step ends whose values are not all there, it is held back, with those
// after it; each is completed when the device has passed it, at most kMostHeldBack steps later.
//
// Owns the reducer. Threads: as the session that owns it, one at a time; what takes Python objects needs the
// GIL, what waits is better called without it. Nothing throws; what is lost is counted.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "tensor_access.h"
#include "traindbg/capture/capture_session.h"
#include "traindbg/reduce/device/device_reducer.h"

namespace traindbg::bindings {

class LateValues {
  public:
    using Ticket = reduce::DeviceReducer::Ticket;
    static constexpr Ticket kNone = reduce::DeviceReducer::kNone;
    // A training is rarely further ahead of its device.
    static constexpr std::size_t kMostHeldBack = 3;

    void serve(capture::CaptureSession& session) noexcept { session_ = &session; }
    // From now on. `on_host`: of tensors in host memory that are handed over as if they were on a device.
    void reduce_by(std::unique_ptr<reduce::DeviceReducer> reducer, bool on_host) noexcept;

    // Begins to take what is due of a tensor, but for what is taken `apart`. False: it must be taken
    // otherwise.
    bool observe(model::Mode mode, model::TensorId id, nanobind::handle tensor,
                 model::What apart = model::What::kNothing) noexcept;
    // The same of those at `positions`; the positions of those that must be taken otherwise.
    std::vector<std::size_t> observe_batch(model::Mode mode, const nanobind::list& ids,
                                           const nanobind::list& tensors,
                                           const std::vector<std::size_t>& positions) noexcept;
    bool observe_update(model::Mode mode, model::TensorId update, model::TensorId ratio,
                        nanobind::handle before, nanobind::handle after) noexcept;
    // Of a tensor with one element: begins to fetch its value, for a tensor that is named later. kNone: it
    // cannot.
    Ticket begin_value(nanobind::handle tensor) noexcept;
    void observe_value(model::Mode mode, model::TensorId id, Ticket ticket) noexcept;
    // Waits for the value instead; the ticket is void afterwards.
    double take_value(Ticket ticket) noexcept;

    // Nothing is awaited and no step held back.
    [[nodiscard]] bool empty() const noexcept { return late_.empty() && held_.empty(); }
    // Ends the TRAIN step, held back where that is needed, and completes the steps that the device has
    // passed.
    capture::StepDirective end_step() noexcept;
    [[nodiscard]] bool must_wait() const noexcept { return held_.size() > kMostHeldBack; }
    // Waits for the oldest of the steps that are held back, if there is one.
    void complete_oldest() noexcept;
    // The same for all, and for what is late of the steps under way.
    void complete_all() noexcept;

    // Values that could not be fetched.
    [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

  private:
    struct Late {
        enum class Kind : std::uint8_t { kStatistics, kScalar, kUpdate };
        Kind kind;
        capture::LateSample sample;
        capture::LateSample ratio;  // of an update
        Ticket ticket;
    };
    struct Held {
        reduce::DeviceReducer::Mark mark = 0;
        std::vector<Late> late;
    };
    // What is due of a tensor now.
    struct Due {
        bool is_any;
        bool has_units;
        bool fits;  // statistics, and at most counts of units, are all
    };

    [[nodiscard]] Due due(model::Mode mode, model::TensorId id,
                          model::What apart = model::What::kNothing) const noexcept;
    // Where the tensor lies, if the reducer can read it there.
    bool read(nanobind::handle tensor, TensorReader& reader, tensor::TensorView& view,
              reduce::DeviceReducer::Place& place) const noexcept;
    void make_room(std::size_t more);
    void take(const Late& late) noexcept;
    void take_all(const std::vector<Late>& late, const base::Status& arrived) noexcept;

    capture::CaptureSession* session_ = nullptr;
    std::unique_ptr<reduce::DeviceReducer> reducer_;
    bool on_host_ = false;
    std::vector<Late> late_;  // of the steps under way
    std::deque<Held> held_;   // TRAIN steps, the oldest first
    std::uint64_t lost_ = 0;
};

}  // namespace traindbg::bindings
