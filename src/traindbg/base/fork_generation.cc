#include "traindbg/base/fork_generation.h"

#include <pthread.h>

#include <atomic>

namespace traindbg::base {
namespace {

std::atomic<std::uint32_t> generation{0};

void enter_child() { generation.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

std::uint32_t fork_generation() noexcept {
    // Registered by the first who asks: before that nobody remembers a number. It fails only for want
    // of memory, and then nothing can be recorded either.
    [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, &enter_child);
    return generation.load(std::memory_order_relaxed);
}

}  // namespace traindbg::base
