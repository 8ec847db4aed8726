// What happens at every module of a forward pass that is looked at, in native code.
//
// PyTorch calls two hooks for each module. Written in Python each of these takes 1 to 3 µs, so a pass
// over a model of many small modules took several times as long. Here they take a tenth of that. Only
// the common case is handled: a module of the watched model whose output is one plain tensor that was
// named in an earlier pass. Everything else goes to the functions written in Python
// (hooks/torch/recording/forward.py), which do all of it.
//
// Threads: everything needs the GIL. Exceptions of the functions written in Python, and of what the
// training calls, pass through; nothing else is raised.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hot_path.h"
#include "session.h"

namespace traindbg::bindings {

// The state of one forward pass of one root module, and the hooks of its modules. What other threads
// call while it is under way is none of it.
class ForwardPath {
  public:
    // What the names and kinds of the modules inside of the root follow from, as it was looked at last. It
    // is compared at every pass, so nothing is made for that. Names are compared by their addresses: who
    // puts in an equal one has all looked at anew.
    class Structure {
      public:
        // Whether it is what it was; else what it is now is taken. Raises what `_modules` raises.
        bool is_same(nanobind::handle root);
        int traverse(visitproc visit, void* arg) const noexcept;
        void clear() noexcept;

      private:
        struct Part {
            nanobind::object name;
            PyObject* module;  // to be compared only; also None
            nanobind::object type;
        };
        struct Module {
            PyObject* module;  // to be compared only, until it was found in its parent
            std::size_t parts;
        };
        bool is_as_taken(nanobind::handle root) const;
        void take(nanobind::handle root);

        std::vector<Module> modules_;  // breadth first
        std::vector<Part> parts_;      // of each of them, one after the other
    };

    // `tensor_type`: the exact type of tensors that are read here. `transforms`: called without arguments
    // it returns None unless values are wrapped (torch.func); None where there is nothing of the kind.
    // `session` and `hot` must outlive this.
    ForwardPath(Session& session, HotPath& hot, nanobind::type_object tensor_type,
                nanobind::object transforms);
    ForwardPath(const ForwardPath&) = delete;
    ForwardPath& operator=(const ForwardPath&) = delete;
    ~ForwardPath();

    // `root` is a weak reference. `before(module, args)` and `after(module, args, *rest)` are the hooks
    // written in Python, `leaf_called(place, output, number)` takes the output of a module that was left
    // already. `number`: of its call in the pass, from 1 on.
    void attach(nanobind::object root, nanobind::callable before, nanobind::callable after,
                nanobind::callable leaf_called);

    // The hooks. `after` has another form for modules that raised, which have no output.
    nanobind::object before(nanobind::handle module, nanobind::handle args);
    nanobind::object after(nanobind::handle module, nanobind::handle args, nanobind::handle kwargs,
                           nanobind::handle output);
    nanobind::object after_raise(nanobind::handle module, nanobind::handle args, nanobind::handle output);

    // Whether a pass is under way that another thread began, or is to begin.
    [[nodiscard]] bool is_of_another_thread() const noexcept {
        return (observing || inputs_only) && thread != PyThread_get_thread_ident();
    }

    // A module of the pass, which has a place: its forward begins, is left, has returned. What the code
    // written in Python raises passes through.
    void part_begins(nanobind::handle place) noexcept;
    void part_left(nanobind::handle place) noexcept;
    void part_returned(nanobind::handle place, nanobind::handle output);
    // A module has returned once more in the pass: how often it has now.
    unsigned count_call(nanobind::handle place) { return ++calls_[place.ptr()]; }
    void forget_calls() noexcept { calls_.clear(); }
    // Whether the output of a function was taken: a plain tensor, where outputs are taken here.
    bool function_returned(nanobind::handle id, nanobind::handle output) noexcept;
    // Whether the root has the modules inside that it had at the last call.
    bool has_same_structure(nanobind::handle root) { return structure_.is_same(root); }
    // The place of a module, or nothing.
    [[nodiscard]] nanobind::object place_of(nanobind::handle module) const noexcept;
    // Whether a module may be the root. It is not, where that is gone and something else lies there.
    [[nodiscard]] bool may_be_root(const PyObject* module) const noexcept { return root_at_ == module; }

    // Shared with the Python side.
    bool armed = false;         // the hooks are registered
    unsigned long thread = 0;   // whose pass it is
    bool observing = false;     // modules are looked at
    bool inputs_only = false;   // the root's inputs alone are
    bool without_root = false;  // the training calls the parts of the root, never the root
    int mode = 0;               // of the pass; 0: outputs are not taken here
    bool takes_calls = false;   // also of a module that is called again, which is not done here
    std::uint64_t outputs = 0;  // of modules inside, seen so far
    nanobind::dict known;       // places of modules by their ids (addresses)
    nanobind::list running;     // places whose forward runs, innermost last

    // For Python's garbage collector: the functions refer to who owns this.
    static int traverse(PyObject* self, visitproc visit, void* arg) noexcept;
    static int clear(PyObject* self) noexcept;

  private:
    bool is_root(nanobind::handle module) const noexcept;
    // Whether the output of a module was taken: a tensor, or a tuple of tensors and Nones.
    bool take(nanobind::handle place, nanobind::handle output) noexcept;
    bool take_as(nanobind::handle id, nanobind::handle tensor) noexcept;
    [[nodiscard]] bool is_wrapping() const noexcept;

    Session& session_;
    HotPath& hot_;
    nanobind::type_object tensor_type_;
    nanobind::object transforms_;
    nanobind::object root_;
    const PyObject* root_at_ = nullptr;                    // to be compared only
    std::unordered_map<const PyObject*, unsigned> calls_;  // of the places in `known`, in the pass
    nanobind::object before_;
    nanobind::object after_;
    nanobind::object leaf_called_;
    Structure structure_;
};

}  // namespace traindbg::bindings
