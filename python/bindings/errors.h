// The one place where a Status becomes a Python exception (classes in traindbg/errors.py).
#pragma once

#include <utility>

#include "traindbg/base/status.h"

namespace traindbg::bindings {

// Throws the exception class of `status.code()` with `status.message()`. Needs the GIL.
[[noreturn]] void raise(const base::Status& status);

// Runs the handlers of signals that came while we wait for something. True: one of them raised (Ctrl-C); the
// exception is kept for the next of the functions below, which the waiting call ends in. Without the GIL:
// false.
[[nodiscard]] bool was_interrupted() noexcept;
// Throws what `was_interrupted` has kept.
void throw_interrupt();

inline void raise_if_error(const base::Status& status) {
    throw_interrupt();
    if (!status.is_ok()) raise(status);
}
template <typename T>
[[nodiscard]] T value_or_raise(base::Result<T> result) {
    throw_interrupt();
    if (!result.is_ok()) raise(result.status());
    return std::move(result).value();
}

}  // namespace traindbg::bindings
