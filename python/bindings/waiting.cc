#include "waiting.h"

#include <nanobind/nanobind.h>

namespace traindbg::bindings {

namespace nb = nanobind;

void EndOfPython::expect(unsigned long main_thread) {
    main_thread_.store(main_thread);
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] { begin(); }));
    // Of the parent's threads none is on its way in the child, whose main thread is the one that forked.
    nb::module_::import_("os").attr("register_at_fork")(nb::arg("after_in_child") = nb::cpp_function([] {
                                                            returning_.store(0);
                                                            main_thread_.store(PyThread_get_thread_ident());
                                                        }));
}

}  // namespace traindbg::bindings
