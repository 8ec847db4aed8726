// What happens at nearly every step of a training on the CPU, in native code. Where losses live on a
// device, the hooks in Python do it all.
//
// Most steps need nothing but the values of losses and the end of the step. Python code for that takes
// 3 µs when it is warm, but ten times as much after a convolution has emptied the caches. So the four
// moments of such a step are handled here. Each method answers whether it has; if not, nothing was
// done, and the hook written in Python does all of it.
//
// The Python side (hooks/torch_recording.py) says with `arm` what an ordinary step looks like, and shares the
// counters below. Threads: everything needs the GIL. Nothing is raised but what an attribute of the
// user's own raises that is no Exception, such as Ctrl-C; `arm` raises TypeError.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "session.h"

namespace traindbg::bindings {

class HotPath {
  public:
    // `tensor_type` is the exact type of values that are looked at; `is_grad_enabled()` tells training
    // from evaluation. `session` must outlive this.
    HotPath(Session& session, nanobind::type_object tensor_type, nanobind::callable is_grad_enabled);

    // From now on a step is ordinary when the model behind the weak reference `model` is in training
    // mode, the optimizer behind `optimizer` has as many parameter groups as `rates`, each with that
    // learning rate, and no evaluation is open, that is, `evaluations` is empty. Losses are known by
    // `losses` (name to tensor id); those in `classifiers` are not ordinary while classes are due.
    void arm(nanobind::object model, nanobind::object optimizer, std::vector<double> rates,
             nanobind::dict losses, nanobind::object classifiers, nanobind::set evaluations);
    // Nothing is ordinary any more.
    void disarm() noexcept;

    bool loss_computed(nanobind::handle name, nanobind::handle value);
    // `retains`: the graph is kept, so that a further pass of the step is about another loss of it.
    bool backward_begins(nanobind::handle root, bool retains) noexcept;
    bool optimizer_will_step(nanobind::handle optimizer);
    // The answer of Session::end_step where the Python side has something to do then: it attaches to
    // or leaves the forward pass, follows another plan, or ends the training. kNothingToDo, or kNotHandled.
    std::int64_t optimizer_stepped(nanobind::handle optimizer) noexcept;
    static constexpr std::int64_t kNothingToDo = -1;
    static constexpr std::int64_t kNotHandled = -2;
    // A step of more backward passes than these is no ordinary one: it may be that steps are left out.
    static constexpr std::uint64_t kOrdinaryPasses = 15;

    // Ends the step of the session and begins to count the next one. What is held goes to the session.
    capture::RoleMask end_step() noexcept;

    // Losses of the training are held until an optimizer is about to step, because only then it is known
    // whose they are. False: the value lives on a device.
    bool hold(model::TensorId id, nanobind::handle value) noexcept;
    // To the session, as the losses of the optimizer that drives.
    void release() noexcept;
    // Pairs of ids and values that were held: they are another optimizer's. Its next loss is a first one.
    nanobind::list take_held();
    // A loss function is called: how many calls of it were in this pass, with this one.
    std::uint32_t count_call(model::TensorId id) noexcept;
    // Further calls of one function in one pass are not looked at.
    static constexpr std::uint32_t kMostCalls = 8;
    // A backward pass begins: how many were about the same graph, with this one.
    std::uint32_t count_pass(bool retains) noexcept;

    // Shared with the Python side.
    capture::RoleMask due = 0;        // what this step wants
    std::uint64_t steps = 0;          // ended so far
    std::uint64_t nanos = 0;          // spent in hooks since the last step
    std::uint64_t foreign_steps = 0;  // of other optimizers since the last one of this
    std::uint64_t passes = 0;         // backward passes in this step
    std::int64_t root_loss = -1;      // the id of what `backward` was called on; -1: not known yet
    bool first_backward = true;       // none was in this step
    bool forward_seen = false;        // a forward pass of this step was looked at
    bool has_scaler = false;          // losses are scaled before `backward`
    bool has_deferred = false;        // something waits on a device for the end of the step
    bool has_others = false;          // losses of other optimizers are to be recorded at the next step
    bool watches_mode = false;        // steps may be made in evaluation mode: their ends are looked at

  private:
    bool is_training() const;
    bool is_driver(nanobind::handle optimizer) const noexcept;
    bool has_open_evaluation() const noexcept;
    bool settings_are_unchanged(nanobind::handle optimizer) const;
    [[nodiscard]] std::uint32_t calls_of(model::TensorId id) const noexcept;

    struct Held {
        model::TensorId id;
        double value;
    };
    struct Calls {
        model::TensorId id;
        std::uint32_t count;
    };

    Session& session_;
    nanobind::type_object tensor_type_;
    nanobind::callable is_grad_enabled_;
    bool is_armed_ = false;
    nanobind::object model_;      // a weak reference
    nanobind::object optimizer_;  // a weak reference
    std::vector<double> rates_;
    std::vector<Held> held_;
    std::vector<Calls> calls_;  // of loss functions, since the last pass whose graph was not kept
    std::uint32_t passes_of_graph_ = 0;
    bool retains_ = false;  // the last pass kept its graph
    nanobind::dict losses_;
    nanobind::object classifiers_;
    nanobind::set evaluations_;
};

}  // namespace traindbg::bindings
