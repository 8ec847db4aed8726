// traindbg._core: the table of contents of the extension.

#include <string>

#include "bindings.h"
#include "errors.h"
#include "traindbg/base/version.h"
#include "waiting.h"

NB_MODULE(_core, module) {
    module.doc() = "The native half of traindbg. Use the package `traindbg`; this may change.";
    module.attr("__version__") = std::string(traindbg::base::version()).c_str();
    // A session that is alive when the interpreter ends is no leak, and the terminal is the training's.
    nanobind::set_leak_warnings(false);
    traindbg::bindings::EndOfPython::expect(traindbg::bindings::main_thread());
    traindbg::bindings::bind_tensor_access(module);
    traindbg::bindings::bind_session(module);
    traindbg::bindings::bind_hot_path(module);
    traindbg::bindings::bind_forking(module);
    traindbg::bindings::bind_forward_path(module);
    traindbg::bindings::bind_listening(module);
    traindbg::bindings::bind_live_objects(module);
    traindbg::bindings::bind_reader(module);
    traindbg::bindings::bind_row_spread(module);
    traindbg::bindings::bind_rows(module);
    traindbg::bindings::bind_rules(module);
    traindbg::bindings::bind_settings(module);
    traindbg::bindings::bind_tables(module);
}
