// What every call of libcurl needs, whatever it transfers. Private to `http`.
#pragma once

#include <pthread.h>

#include <chrono>
#include <csignal>
#include <ctime>

#include "traindbg/http/libcurl.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::http::internal {

// A server that closes a connection must not end the process: TLS libraries write without MSG_NOSIGNAL.
class NoBrokenPipe {
  public:
    NoBrokenPipe() {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    NoBrokenPipe(const NoBrokenPipe&) = delete;
    NoBrokenPipe& operator=(const NoBrokenPipe&) = delete;
    ~NoBrokenPipe() {
        const timespec at_once{};
        if (!was_pending_) sigtimedwait(&pipe_, nullptr, &at_once);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

  private:
    sigset_t pipe_{};
    sigset_t before_{};
    bool was_pending_ = false;
};

// How long a call may take; libcurl asks while it waits.
struct CurlDeadline {
    const storage::Patience& patience;
    bool is_over = false;
};
// Sets all timeouts, and that no signals are used for them. `deadline` must outlive the call.
void keep_deadline(const Curl& curl, CurlHandle* handle, CurlDeadline& deadline,
                   std::chrono::milliseconds connect_timeout, std::chrono::milliseconds stall_timeout);

}  // namespace traindbg::http::internal
