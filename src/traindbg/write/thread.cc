#include "traindbg/write/thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <utility>

#include "traindbg/base/format.h"

namespace traindbg::write {
namespace {

// No signal reaches this thread as long as one of these lives, however its scope is left.
class SignalsHeld {
  public:
    SignalsHeld() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    SignalsHeld(const SignalsHeld&) = delete;
    SignalsHeld& operator=(const SignalsHeld&) = delete;
    ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  private:
    sigset_t before_{};
};

}  // namespace

base::Result<std::jthread> start_thread(const ThreadTraits& traits, std::function<void()> work) {
    const SignalsHeld held;  // a new thread begins with the mask of its maker
    try {
        return std::jthread([traits, work = std::move(work)] {
            pthread_setname_np(pthread_self(), traits.name);
            // Politeness only: a thread of its own nice value is a Linux speciality.
            if (traits.is_batch) {
                const sched_param none{};
                pthread_setschedparam(pthread_self(), SCHED_BATCH, &none);
            }
            setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)), traits.nice);
            work();
        });
    } catch (const std::exception& error) {
        return base::Status(base::Code::kResourceExhausted,
                            base::format("cannot start the thread '{}': {}", traits.name, error.what()));
    }
}

}  // namespace traindbg::write
