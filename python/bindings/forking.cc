// A fork as `os.fork` makes it, without a word.
//
// From Python 3.12 on `os.fork` warns of processes with threads, which under `-W error` is an exception, and
// one more entry in the user's registries of warnings. PyTorch always has threads.
#include <Python.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <cerrno>

#include "bindings.h"

namespace traindbg::bindings {

namespace nb = nanobind;

namespace {

// With the GIL. Errors: OSError.
int fork_silently() {
    PyOS_BeforeFork();
    const pid_t pid = ::fork();
    const int error = errno;
    if (pid == 0) PyOS_AfterFork_Child();
    else PyOS_AfterFork_Parent();
    if (pid < 0) {
        errno = error;
        PyErr_SetFromErrno(PyExc_OSError);
        throw nb::python_error();
    }
    return static_cast<int>(pid);
}

}  // namespace

void bind_forking(nb::module_& module) {
    module.def("fork_silently", &fork_silently,
               "os.fork() without its warning: 0 in the child, the child's id in the parent. OSError.");
}

}  // namespace traindbg::bindings
