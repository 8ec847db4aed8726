// Threads of ours in somebody else's process: they take no signals, have a name, and stand back. For `write`
// and `capture`.
#pragma once

#include <functional>
#include <thread>

#include "traindbg/base/status.h"

namespace traindbg::write {

struct ThreadTraits {
    const char* name;  // at most 15 characters
    int nice = 0;
    bool is_batch = false;  // for the scheduler: it computes, nobody waits for it
};

// kResourceExhausted: the system gives no further thread.
[[nodiscard]] base::Result<std::jthread> start_thread(const ThreadTraits& traits, std::function<void()> work);

}  // namespace traindbg::write
