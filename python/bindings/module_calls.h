// The short way of a module's call to its `forward`, while one forward pass is looked at.
//
// As soon as there is a global hook in the process, PyTorch calls each module through code that asks for
// all kinds of hooks; that takes several times as long as our hooks do. So, during the one pass that is
// looked at, `torch.nn.Module._call_impl` is a method of ours. Of a module of the watched model that has no
// hooks of its own it does what our hooks would, and calls `forward`; any other call goes to PyTorch's own
// method, and through it to our hooks. Only the class is changed, and only until the pass is over (after
// Ctrl-C: until the root is called again, or nobody watches), so that nothing of it is copied or pickled with
// a module.
//
// It is not taken: where Python would slow down for it (from 3.13 on, after some hundred passes); where
// somebody else put something into the place of that method, or has global hooks;
// while two passes are looked at at once; while something is traced. While a compiler is in use it is not
// to be asked for.
//
// Threads: everything needs the GIL. Nothing is raised but what `forward` and the hooks of the user raise.
#pragma once

#include <nanobind/nanobind.h>

namespace traindbg::bindings {

class ForwardPath;

namespace module_calls {

// A path that may be asked for its root, from its construction to its end.
void add(ForwardPath& path);
void remove(ForwardPath& path) noexcept;
// The pass of `path`, which has begun, takes the short way if it is the only one. `mode`: the function mode
// that is on during the pass and hears of nothing inside of PyTorch's own leaves, whose calls run without
// it; or None. Whether it is taken.
bool shorten(ForwardPath& path, nanobind::handle mode);
// Puts PyTorch's method back, unless somebody else has put another one there.
void restore() noexcept;

}  // namespace module_calls
}  // namespace traindbg::bindings
