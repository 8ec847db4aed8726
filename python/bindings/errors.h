// The one place where a Status becomes a Python exception (classes in traindbg/errors.py).
#pragma once

#include <utility>

#include "traindbg/base/status.h"

namespace traindbg::bindings {

// Throws the exception class of `status.code()` with `status.message()`. Needs the GIL.
[[noreturn]] void raise(const base::Status& status);

// The thread that hears a Ctrl-C, as Python numbers it. Needs the GIL.
[[nodiscard]] unsigned long main_thread();

// Ctrl-C was pressed while we wait for something. Its handler does not run yet: it may call us. Python runs
// it when the waiting call has come back; where that failed for it, the functions below run it first. False
// in any thread but the main one, which asks Python, with the GIL or without it.
[[nodiscard]] bool was_interrupted(unsigned long main_thread) noexcept;

inline void raise_if_error(const base::Status& status) {
    if (!status.is_ok()) raise(status);
}
template <typename T>
[[nodiscard]] T value_or_raise(base::Result<T> result) {
    if (!result.is_ok()) raise(result.status());
    return std::move(result).value();
}

}  // namespace traindbg::bindings
