// A file descriptor of this process alone: a child made by `fork` has no part in what it opens. Private to
// the posix parts of the store.
//
// A child inherits the files that are open, and with them the locks (flock belongs to what was opened, not to
// who opened it) and the space of files that are removed meanwhile; the workers of a data loader would keep
// both for as long as they live. So in the child all these numbers stand for something that refuses every
// call. They stay taken: who still holds one there closes nothing of somebody else.
//
// Not noticed are `vfork` and `clone`, after which only `exec` is allowed, and that closes what is open here.
// A fork between the opening and the constructor, or one with more than some thousand of these open, leaves
// the child its share: then what was said above happens, and nothing worse. Thread-safety: as an int.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "traindbg/base/file_descriptor.h"

namespace traindbg::storage::internal {

class UnsharedDescriptor {
  public:
    UnsharedDescriptor() noexcept = default;
    explicit UnsharedDescriptor(base::FileDescriptor descriptor) noexcept;
    UnsharedDescriptor(UnsharedDescriptor&& other) noexcept
        : descriptor_(std::move(other.descriptor_)), slot_(std::exchange(other.slot_, kNoSlot)) {}
    UnsharedDescriptor& operator=(UnsharedDescriptor&& other) noexcept {
        if (this == &other) return *this;
        reset();
        descriptor_ = std::move(other.descriptor_);
        slot_ = std::exchange(other.slot_, kNoSlot);
        return *this;
    }
    ~UnsharedDescriptor() { reset(); }

    [[nodiscard]] bool is_open() const noexcept { return descriptor_.is_open(); }
    [[nodiscard]] int get() const noexcept { return descriptor_.get(); }
    void reset() noexcept;

  private:
    static constexpr std::size_t kNoSlot = SIZE_MAX;

    base::FileDescriptor descriptor_;
    std::size_t slot_ = kNoSlot;
};

}  // namespace traindbg::storage::internal
