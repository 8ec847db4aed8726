// Small things that native hooks do with Python objects. They need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "traindbg/base/clock.h"

namespace traindbg::bindings {

// What a weak reference refers to, as a new reference; null when it is gone.
[[nodiscard]] inline nanobind::object alive(const nanobind::object& weak) noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    PyObject* strong = nullptr;
    if (PyWeakref_GetRef(weak.ptr(), &strong) < 0) PyErr_Clear();
    return nanobind::steal(strong);
#else
    PyObject* borrowed = PyWeakref_GetObject(weak.ptr());
    if (borrowed == nullptr) PyErr_Clear();
    return borrowed == nullptr || borrowed == Py_None ? nanobind::object() : nanobind::borrow(borrowed);
#endif
}

// Forgets the error that is set. Ctrl-C and the like are the training's: those go on.
inline void forget_error() {
    if (PyErr_ExceptionMatches(PyExc_Exception) == 0) throw nanobind::python_error();
    PyErr_Clear();
}

// Null when there is none.
[[nodiscard]] inline nanobind::object attribute(nanobind::handle object, PyObject* name) {
    PyObject* value = PyObject_GetAttr(object.ptr(), name);  // may be a property, written in Python
    if (value == nullptr) forget_error();
    return nanobind::steal(value);
}

// Adds the time until the end of the scope.
class Timed {
  public:
    explicit Timed(std::uint64_t& nanos) noexcept : nanos_(nanos) {}
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    ~Timed() { nanos_ += static_cast<std::uint64_t>(base::monotonic_nanos() - begin_); }

  private:
    std::uint64_t& nanos_;
    const std::int64_t begin_ = base::monotonic_nanos();
};

}  // namespace traindbg::bindings
