// The functions of PyTorch that are listened to at every step, in native code as far as a step is ordinary.
//
// A wrapper written in Python packs a call's arguments into a tuple and a dictionary and takes them out
// again, and asks half a dozen things by name; that took as long as all that is done with what was heard.
// Here a call goes through as it came. What is not ordinary is left to the wrappers in Python
// (hooks/torch/steps/patches.py), which do all of it.
//
// Threads: everything needs the GIL. Exceptions of what the training calls, and of the code written in
// Python, pass through; nothing else is raised.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "hot_path.h"

namespace traindbg::bindings {

// Who listens in this process. Shared with the Python side, which says it. Only one thread may be heard
// (hooks/torch/steps/threads.py): in all others nobody listens then.
class Listening {
  public:
    // `is_tracing`: whether torch.jit traces.
    explicit Listening(nanobind::callable is_tracing);

    // From now on `listener` is told of what `hot`, a HotPath, leaves over; None: nobody is. `threads` knows
    // which backward passes are heard (`hears_backward(root)`), where `hot` does not.
    void listen(nanobind::object listener, nanobind::object hot, nanobind::object threads);
    [[nodiscard]] nanobind::object listener() const { return is_on() ? listener_ : nanobind::none(); }
    [[nodiscard]] nanobind::object hot() const { return is_on() ? hot_ : nanobind::none(); }
    [[nodiscard]] nanobind::object threads() const { return threads_; }
    // Whether somebody listens to this thread.
    [[nodiscard]] bool is_on() const;

    // Whether the hot path has handled what a loss function returned.
    bool loss_computed(nanobind::handle name, nanobind::handle value);
    // Whether nobody has to hear of a backward pass that begins, or the hot path has handled it and nobody
    // wants to hear of its end.
    bool backward_begins(nanobind::handle root, bool retains);
    // Whether there is nothing more to do before a step of an optimizer.
    bool optimizer_will_step(nanobind::handle optimizer);
    // What HotPath::optimizer_stepped answers; kNotHandled also where steps are corrected.
    std::int64_t optimizer_stepped(nanobind::handle optimizer);

    // Whether a loss function runs in this thread: one that calls another one counts once.
    [[nodiscard]] static bool is_inside_loss() noexcept;
    static void set_inside_loss(bool inside) noexcept;

    nanobind::object corrections = nanobind::none();  // of optimizer steps; where somebody wants any
    bool is_scripting = false;                        // torch.jit.script is at work

    // For Python's garbage collector.
    static int traverse(PyObject* self, visitproc visit, void* arg) noexcept;
    static int clear(PyObject* self) noexcept;

  private:
    nanobind::object is_tracing_;
    nanobind::object listener_ = nanobind::none();
    nanobind::object hot_ = nanobind::none();
    nanobind::object threads_ = nanobind::none();
    HotPath* path_ = nullptr;  // what `hot_` is
};

}  // namespace traindbg::bindings
