// How a binding waits for a disk, a bucket or another thread: without the lock of the interpreter (GIL), so
// that the other Python threads of the process, which may be training, go on.
//
// Nobody waits for a lock of ours, or for the process that reads from a bucket, while it holds the GIL: who
// has one of these may have to take the GIL for a moment (`was_interrupted`), and both would wait for ever.
#pragma once

#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>

#include "errors.h"
#include "traindbg/base/fork_generation.h"

namespace traindbg::bindings {

// Gives the GIL back as long as it lives. Also for destructors and for calls out of other libraries, which
// come with it or without it: changes nothing where this thread does not hold it, or where nobody else will
// run.
class OthersMayRun {
  public:
    OthersMayRun() noexcept
        : state_(PyGILState_Check() != 0 && !is_python_ending() ? PyEval_SaveThread() : nullptr) {}
    OthersMayRun(const OthersMayRun&) = delete;
    OthersMayRun& operator=(const OthersMayRun&) = delete;
    ~OthersMayRun() {
        if (state_ == nullptr) return;
        // Python unwinds the stack of a daemon thread that comes back too late, which ends a C++ process.
        // Newer versions let it stand still until the process is gone, and so do we.
        while (is_python_ending()) ::pause();
        PyEval_RestoreThread(state_);
    }

  private:
    static bool is_python_ending() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
        return Py_IsFinalizing() != 0;
#else
        return _Py_IsFinalizing() != 0;
#endif
    }

    PyThreadState* state_;
};

// Lets one Python thread at a time into a core object, which is made for one. The others wait without the
// GIL, and hear a Ctrl-C. In the child of a `fork` that happened while a thread was inside, the object is in
// an unknown state and nobody will ever leave it: there every call raises Unavailable.
class Turns {
  public:
    // `work` without the GIL. It must not touch Python.
    template <typename Work>
    auto wait_for(const Work& work) {
        const Turn turn(*this);
        const OthersMayRun while_it_waits;
        return work();
    }
    // `work` that waits for nothing: keeps the GIL, because to get it back can take a while. It must not
    // run any code of Python's all the same, which could come back in here.
    template <typename Work>
    auto look(const Work& work) {
        const Turn turn(*this);
        return work();
    }

  private:
    class Turn {
      public:
        explicit Turn(Turns& turns) : lock_(turns.mutex_, std::try_to_lock) {
            while (!lock_.owns_lock()) {
                {
                    const OthersMayRun while_it_waits;
                    if (lock_.try_lock_for(std::chrono::milliseconds(100))) break;
                }
                if (turns.generation_.load() != base::fork_generation())
                    raise({base::Code::kUnavailable,
                           "a thread was reading this run when the process was forked; open it again here"});
                if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
            }
            turns.generation_.store(base::fork_generation());
        }

      private:
        std::unique_lock<std::timed_mutex> lock_;
    };

    std::timed_mutex mutex_;
    std::atomic<std::uint32_t> generation_{base::fork_generation()};  // of the process that was inside last
};

}  // namespace traindbg::bindings
