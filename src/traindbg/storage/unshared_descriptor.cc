#include "traindbg/storage/unshared_descriptor.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace traindbg::storage::internal {
namespace {

// The numbers plus one; 0: the slot is free. No lock: another thread might hold it at the moment of a fork.
std::array<std::atomic<int>, 1024> slots{};

// Between `fork` and all else in the child: only what a signal handler may call, too.
void leave_to_parent() {
    int stand_in = -1;
    for (std::atomic<int>& slot : slots) {
        const int descriptor = slot.exchange(0, std::memory_order_relaxed) - 1;
        if (descriptor < 0) continue;
        if (stand_in < 0) stand_in = ::open("/", O_PATH | O_CLOEXEC);
        // Without a number for the stand-in (EMFILE) what is held goes all the same: that matters more.
        if (stand_in < 0 || ::dup3(stand_in, descriptor, O_CLOEXEC) < 0) ::close(descriptor);
    }
    if (stand_in >= 0) ::close(stand_in);
}

// At load time, not by the first who needs it: a thread that forks meanwhile would leave the child a static
// variable locked for ever. It fails only for want of memory, and then children hold more than they need to.
[[maybe_unused]] const int kRegistered = ::pthread_atfork(nullptr, nullptr, &leave_to_parent);

}  // namespace

UnsharedDescriptor::UnsharedDescriptor(base::FileDescriptor descriptor) noexcept
    : descriptor_(std::move(descriptor)) {
    if (!descriptor_.is_open()) return;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        int free = 0;
        if (!slots[i].compare_exchange_strong(free, descriptor_.get() + 1)) continue;
        slot_ = i;
        return;
    }
}

void UnsharedDescriptor::reset() noexcept {
    // In a child the slot may be that of another by now, but not with this number.
    int ours = descriptor_.get() + 1;
    if (slot_ != kNoSlot) slots[slot_].compare_exchange_strong(ours, 0);
    slot_ = kNoSlot;
    descriptor_.reset();
}

}  // namespace traindbg::storage::internal
