// What happens at nearly every step of a training on the CPU, in native code. Where losses live on a
// device, the hooks in Python do it all.
//
// Most steps need nothing but the values of losses and the end of the step. Python code for that takes
// 3 µs when it is warm, but ten times as much after a convolution has emptied the caches. So the four
// moments of such a step are handled here. Each method answers whether it has; if not, nothing was
// done, and the hook written in Python does all of it.
//
// What runs at every step is cold: between two calls PyTorch has used more memory than the caches hold. So
// it costs by what it touches, and its functions, here and in the core, are [[gnu::hot]]: the linker puts
// those side by side, into few pages.
//
// The Python side (hooks/torch/recording/recording.py) says with `arm` what an ordinary step looks like, and
// shares the counters below. Threads: everything needs the GIL. Nothing is raised but what an attribute of
// the user's own raises that is no Exception, such as Ctrl-C; `arm` raises TypeError.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "session.h"
#include "traindbg/model/step_record.h"

namespace traindbg::bindings {

class HotPath {
  public:
    // `tensor_type` is the exact type of values that are looked at. `session` must outlive this.
    HotPath(Session& session, nanobind::type_object tensor_type);

    // From now on a step is ordinary when one of the models behind the weak references `models` is in
    // training mode, the optimizer behind `optimizer`, which drives, has as many parameter groups as `rates`,
    // each with that learning rate, and no evaluation is open, that is, `evaluations` is empty. Losses are
    // known by `losses` (name, or name#2 and so on of further calls in one pass, to tensor id); those in
    // `classifiers` are not ordinary while classes are due. `others` are the optimizers that step beside it,
    // each a tuple: a weak reference; its number of parameter groups, -1: any; what its losses are told apart
    // by; after so many of its steps in a row it drives, 0: never; a dictionary of the ids that its losses
    // have, by those of the plain losses.
    void arm(const nanobind::list& models, nanobind::object optimizer, std::vector<double> rates,
             nanobind::dict losses, nanobind::object classifiers, nanobind::set evaluations,
             const nanobind::list& others);
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
    void drop_held() noexcept;
    nanobind::list take_held();
    // What other optimizers took here since the last step of the one that drives: for each its name, the
    // passes of the step until then, and such pairs.
    nanobind::list take_others();

    // Whose losses are computed now, where several optimizers step one after the other, is guessed from the
    // step before, because what a loss function is given cannot wait for the optimizer's step.
    // Another optimizer than the one that drives has stepped in this step.
    void turn_ends(nanobind::handle whose);
    // The last of them stepped by the pass of the one that drives: it had no turn of its own.
    void take_back_turn() noexcept;
    // The name of the optimizer; empty: the one that drives.
    nanobind::object whose_turn();
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
    bool hears_next_loss = false;     // Python hears the training's next one: none is taken here until then
    bool has_deferred = false;        // something waits on a device for the end of the step
    bool has_others = false;          // the Python side has losses of others to record at the next step
    bool watches_mode = false;        // steps may be made in evaluation mode: their ends are looked at
    // Of several threads that train (hooks/torch/steps/threads.py), by their idents.
    unsigned long only_thread = 0;     // the one that is heard; 0: all
    unsigned long settled_thread = 0;  // whose backward passes are heard without a further look; 0: none's

  private:
    // A loss, whose value may still be on a device.
    struct Held {
        model::TensorId tensor;
        double value;
        LateValues::Ticket ticket;
    };
    // An optimizer that steps beside the one that drives; see `arm`.
    struct Other {
        nanobind::object optimizer;
        Py_ssize_t groups;
        nanobind::object name;
        std::uint64_t drives_after;
        nanobind::dict ids;
    };
    // What was held when another optimizer was about to step.
    struct Taken {
        nanobind::object name;
        nanobind::dict ids;
        std::uint64_t passes;
        std::vector<Held> held;
    };
    // A loss function that was met: its name, as the training's wrapper of it holds it, and the loss's id.
    struct Known {
        nanobind::object name;
        model::TensorId id;
        bool is_classifier;
    };

    bool has_model_in_training() const;
    bool is_driver(nanobind::handle optimizer) const noexcept;
    bool has_open_evaluation() const noexcept;
    bool settings_are_unchanged(nanobind::handle optimizer) const;
    [[nodiscard]] std::uint32_t calls_of(model::TensorId id) const noexcept;
    [[nodiscard]] const Other* find_other(nanobind::handle optimizer) const noexcept;
    // What is held is the loss of `other`, which is about to step. False: nothing was done.
    bool give_to(const Other& other);
    void record(const std::vector<Held>& held, const nanobind::dict* ids) noexcept;
    void record(const Held& held) noexcept;
    // Ids and values, for which it waits where they are on a device.
    nanobind::list pairs_of(const std::vector<Held>& held);
    void record_others() noexcept;
    [[nodiscard]] const Known* find_known(nanobind::handle name) noexcept;
    [[nodiscard]] model::TensorId id_of_further(nanobind::handle name, std::uint32_t number) const noexcept;
    // What is held is of the optimizer that drives: the session is told at the end of its step.
    void give_to_driver() noexcept;
    // Nobody wants to know losses, nor whose they are.
    [[nodiscard]] bool ignores_losses() const noexcept {
        return others_.empty() && session_.ignores_losses();
    }
    // What was held is gone: the next loss is a first one.
    void begin_losses() noexcept;
    void reach_turn() noexcept;

    struct Calls {
        model::TensorId id;
        std::uint32_t count;
    };

    Session& session_;
    nanobind::type_object tensor_type_;
    bool is_armed_ = false;
    std::vector<nanobind::object> models_;  // weak references
    nanobind::object optimizer_;            // a weak reference
    std::vector<Other> others_;
    std::vector<double> rates_;
    std::vector<Held> held_;
    std::vector<model::ScalarSample> of_host_;  // of a step that ends
    std::vector<Held> of_driver_;               // held when it was about to step: told at the step's end
    std::vector<Taken> taken_;
    std::vector<Known> known_;
    // The optimizers that stepped in the step `turns_of_`, beside the one that drives, and in the one before.
    std::uint64_t turns_of_ = 0;
    std::vector<nanobind::object> turns_;
    std::vector<nanobind::object> turns_before_;
    std::vector<Calls> calls_;  // of loss functions, since the last pass whose graph was not kept
    std::uint32_t passes_of_graph_ = 0;
    bool retains_ = false;  // the last pass kept its graph
    nanobind::dict losses_;
    nanobind::object classifiers_;
    nanobind::set evaluations_;
};

}  // namespace traindbg::bindings
