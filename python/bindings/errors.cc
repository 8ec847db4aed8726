#include "errors.h"

#include <nanobind/nanobind.h>

namespace traindbg::bindings {
namespace {

const char* class_name(base::Code code) {
    switch (code) {
        case base::Code::kInvalidArgument: return "InvalidArgument";
        case base::Code::kNotFound: return "NotFound";
        case base::Code::kAlreadyExists: return "AlreadyExists";
        case base::Code::kPermissionDenied: return "PermissionDenied";
        case base::Code::kResourceExhausted: return "ResourceExhausted";
        case base::Code::kDataLoss: return "DataLoss";
        case base::Code::kUnavailable: return "Unavailable";
        case base::Code::kUnsupported: return "Unsupported";
        case base::Code::kOk:
        case base::Code::kInternal: break;
    }
    return "TraindbgError";
}

}  // namespace

unsigned long main_thread() {
    const nanobind::object thread = nanobind::module_::import_("threading").attr("main_thread")();
    return nanobind::cast<unsigned long>(thread.attr("ident"));
}

bool was_interrupted(unsigned long main_thread) noexcept {
    if (PyThread_get_thread_ident() != main_thread) return false;
    const nanobind::gil_scoped_acquire to_ask;
    if (PyOS_InterruptOccurred() == 0) return false;
    PyErr_SetInterrupt();  // the question took it away
    return true;
}

void raise(const base::Status& status) {
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();  // that is why it failed
    const nanobind::object type =
        nanobind::module_::import_("traindbg.errors").attr(class_name(status.code()));
    const nanobind::object message = nanobind::steal(PyUnicode_DecodeUTF8(
        status.message().data(), static_cast<Py_ssize_t>(status.message().size()), "replace"));
    PyErr_SetObject(type.ptr(), message.ptr());
    throw nanobind::python_error();
}

}  // namespace traindbg::bindings
