#include "traindbg/base/fork_generation.h"

#include <pthread.h>

#include <atomic>

namespace traindbg::base {
namespace {

std::atomic<std::uint32_t> generation{0};

void enter_child() { generation.fetch_add(1, std::memory_order_relaxed); }

// At load time, not by the first who asks: a thread that forks meanwhile would leave the child a static
// variable locked for ever. It fails only for want of memory, and then nothing can be recorded either.
[[maybe_unused]] const int kRegistered = pthread_atfork(nullptr, nullptr, &enter_child);

}  // namespace

[[gnu::hot]] std::uint32_t fork_generation() noexcept { return generation.load(std::memory_order_relaxed); }

}  // namespace traindbg::base
