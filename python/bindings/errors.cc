#include "errors.h"

#include <nanobind/nanobind.h>

#include <optional>
#include <utility>

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

// Of the one thread that handles signals.
std::optional<nanobind::python_error> interrupt;

}  // namespace

bool was_interrupted() noexcept {
    // Who reads an Arrow stream does it without; to wait for it here could be for ever.
    if (PyGILState_Check() == 0) return false;
    if (!interrupt && PyErr_CheckSignals() != 0) interrupt.emplace();
    return interrupt.has_value();
}

void throw_interrupt() {
    if (!interrupt) return;
    nanobind::python_error kept = std::move(*interrupt);
    interrupt.reset();
    throw kept;
}

void raise(const base::Status& status) {
    const nanobind::object type =
        nanobind::module_::import_("traindbg.errors").attr(class_name(status.code()));
    const nanobind::object message = nanobind::steal(PyUnicode_DecodeUTF8(
        status.message().data(), static_cast<Py_ssize_t>(status.message().size()), "replace"));
    PyErr_SetObject(type.ptr(), message.ptr());
    throw nanobind::python_error();
}

}  // namespace traindbg::bindings
