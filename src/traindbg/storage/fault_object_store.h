// An object store that fails on purpose: it passes every call on to another one, until a plan says
// that this call is to fail, before or after it was carried out. `FaultFileSystem`'s counterpart.
//
// Ownership: borrows the other store, which must outlive it. Thread-safety: all members from any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "traindbg/storage/object_store.h"

namespace traindbg::storage {

enum class ObjectCall : std::uint8_t { kPut, kPutIfAbsent, kPutFile, kGet, kHead, kList, kRemove };

struct ObjectFaultPlan {
    std::uint64_t fail_at_call = UINT64_MAX;  // the call with this number (from 0) and ...
    bool keep_failing = true;                 // ... all after it, or this one alone
    // Carried out all the same: the answer was lost on the way.
    bool is_carried_out = false;
    base::Code error = base::Code::kUnavailable;
    bool hides_etags = false;  // as a server that has none
    // Called before every call goes on, in the thread that makes it.
    std::function<void(ObjectCall, const std::string& key)> before;
};

class FaultObjectStore final : public ObjectStore {
  public:
    FaultObjectStore(ObjectStore& store, ObjectFaultPlan plan) : store_(store), plan_(std::move(plan)) {}

    base::Status put(const std::string& key, base::ByteSpan bytes, const Patience& patience) override;
    base::Status put_if_absent(const std::string& key, base::ByteSpan bytes,
                               const Patience& patience) override;
    base::Status put_file(const std::string& key, ReadFile& source, std::uint64_t size,
                          const Patience& patience) override;
    base::Result<base::ByteBuffer> get_range(const std::string& key, std::uint64_t offset, std::size_t size,
                                             const std::string& etag, const Patience& patience) override;
    base::Result<ObjectInfo> head(const std::string& key, const Patience& patience) override;
    base::Result<ObjectPage> list(const ListRequest& request, const Patience& patience) override;
    base::Status remove(const std::string& key, const Patience& patience) override;

    // Calls so far, with those that failed.
    [[nodiscard]] std::uint64_t calls() const noexcept { return calls_.load(); }
    // Of one kind.
    [[nodiscard]] std::uint64_t calls(ObjectCall call) const noexcept {
        return of_kind_[static_cast<std::size_t>(call)].load();
    }

  private:
    // Whether this call is to fail.
    [[nodiscard]] bool fails(ObjectCall call, const std::string& key);
    [[nodiscard]] base::Status injected(const std::string& key) const;

    ObjectStore& store_;
    const ObjectFaultPlan plan_;
    std::atomic<std::uint64_t> calls_{0};
    std::array<std::atomic<std::uint64_t>, 7> of_kind_{};
};

}  // namespace traindbg::storage
