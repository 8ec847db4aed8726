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
#include <thread>

#include "errors.h"
#include "traindbg/base/fork_generation.h"

namespace traindbg::bindings {

// Before Python 3.13 a daemon thread that asks for the GIL while the interpreter ends is unwound by Python,
// which ends a C++ process. So such a thread asks only before the end has begun, comes in here only before
// that, and stands still after it.
class EndOfPython {
  public:
    // At import, with the GIL; `main_thread` is Python's number of it.
    static void expect(unsigned long main_thread);
    // By who comes in, with the GIL.
    static void enter() {
        if (is_main_thread()) return;
        has_others_.store(true);
        if (!has_begun_.load()) return;
        PyEval_SaveThread();
        while (true) ::pause();
    }
    // Takes the GIL back for a thread that gave it away.
    static void restore(PyThreadState* state) {
        if (is_main_thread()) return PyEval_RestoreThread(state);
        ++returning_;
        if (has_begun_.load()) {
            --returning_;
            while (true) ::pause();
        }
        PyEval_RestoreThread(state);
        --returning_;
    }

  private:
    static bool is_main_thread() noexcept { return PyThread_get_thread_ident() == main_thread_.load(); }
    // Of the main thread, by `atexit`: gives the GIL to those that are on their way back or in here.
    static void begin() {
        has_begun_.store(true);
        if (!has_others_.load()) return;
        const nanobind::gil_scoped_release to_them;
        constexpr int kLeastMillis = 20;  // some of Python's turns
        constexpr int kMostMillis = 2000;
        for (int i = 0; i < kLeastMillis || (i < kMostMillis && returning_.load() != 0); ++i)
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }

    static inline std::atomic<unsigned long> main_thread_{0};
    static inline std::atomic<int> returning_{0};
    static inline std::atomic<bool> has_others_{false};
    static inline std::atomic<bool> has_begun_{false};
};

// Gives the GIL back as long as it lives. Also for destructors and for calls out of other libraries, which
// come with it or without it: changes nothing where this thread does not hold it, or where nobody else will
// run.
class OthersMayRun {
  public:
    OthersMayRun() noexcept : state_(holds_gil() && !is_python_ending() ? PyEval_SaveThread() : nullptr) {}
    OthersMayRun(const OthersMayRun&) = delete;
    OthersMayRun& operator=(const OthersMayRun&) = delete;
    ~OthersMayRun() {
        if (state_ != nullptr) EndOfPython::restore(state_);
    }

  private:
    // With a subinterpreter in the process `PyGILState_Check` says yes of every thread.
    static bool holds_gil() noexcept {
        return PyGILState_GetThisThreadState() != nullptr && PyGILState_Check() != 0;
    }
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
        explicit Turn(Turns& turns) : lock_(turns.mutex_, std::defer_lock) {
            EndOfPython::enter();
            lock_.try_lock();
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
