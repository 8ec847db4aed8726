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

void raise(const base::Status& status) {
    const nanobind::object type =
        nanobind::module_::import_("traindbg.errors").attr(class_name(status.code()));
    const nanobind::object message = nanobind::steal(PyUnicode_DecodeUTF8(
        status.message().data(), static_cast<Py_ssize_t>(status.message().size()), "replace"));
    PyErr_SetObject(type.ptr(), message.ptr());
    throw nanobind::python_error();
}

}  // namespace traindbg::bindings
