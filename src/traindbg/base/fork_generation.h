// Which process this is, as one load instead of a system call.
//
// The number grows in the child of every `fork`: an object that remembers the number of its maker
// knows by comparing whether it still lives in the process that made it. What a child must not touch
// is what other threads of the parent may have held at that moment: their locks, and what they guard.
//
// Thread-safety: any thread. Errors: none. `vfork` and `clone` are not noticed; after those nothing but
// `exec` is allowed anyway.
#pragma once

#include <cstdint>

namespace traindbg::base {

[[nodiscard]] std::uint32_t fork_generation() noexcept;

}  // namespace traindbg::base
