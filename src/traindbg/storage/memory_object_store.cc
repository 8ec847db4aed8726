#include <algorithm>
#include <map>
#include <mutex>

#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/storage/object_listing.h"
#include "traindbg/storage/object_store.h"

namespace traindbg::storage {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;

class MemoryObjectStore final : public ObjectStore {
  public:
    Status put(const std::string& key, ByteSpan bytes, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(internal::may_go_on(key, patience));
        const std::lock_guard lock(mutex_);
        place(key, bytes);
        return Status::ok();
    }

    Status put_if_absent(const std::string& key, ByteSpan bytes, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(internal::may_go_on(key, patience));
        const std::lock_guard lock(mutex_);
        const auto it = objects_.find(key);
        if (it == objects_.end()) {
            place(key, bytes);
            return Status::ok();
        }
        const ByteBuffer& there = it->second.bytes;
        if (std::equal(there.begin(), there.end(), bytes.begin(), bytes.end())) return Status::ok();
        return {Code::kAlreadyExists, base::printable(key) + ": there is another object of that key"};
    }

    Status put_file(const std::string& key, ReadFile& source, std::uint64_t size,
                    const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(internal::may_go_on(key, patience));
        TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer bytes, internal::read_exactly(source, 0, size, key));
        return put(key, bytes, patience);
    }

    Result<ByteBuffer> get_range(const std::string& key, std::uint64_t offset, std::size_t size,
                                 const std::string& etag, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(internal::may_go_on(key, patience));
        const std::lock_guard lock(mutex_);
        const auto it = objects_.find(key);
        if (it == objects_.end()) return internal::no_such_object(key);
        if (!etag.empty() && etag != it->second.etag) return internal::another_object(key);
        const ByteBuffer& bytes = it->second.bytes;
        if (offset >= bytes.size()) return ByteBuffer();
        const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(offset);
        const std::size_t count =
            std::min<std::size_t>(size, bytes.size() - static_cast<std::size_t>(offset));
        return ByteBuffer(begin, begin + static_cast<std::ptrdiff_t>(count));
    }

    Result<ObjectInfo> head(const std::string& key, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(internal::may_go_on(key, patience));
        const std::lock_guard lock(mutex_);
        const auto it = objects_.find(key);
        if (it == objects_.end()) return internal::no_such_object(key);
        return ObjectInfo{key, it->second.bytes.size(), it->second.etag};
    }

    Result<ObjectPage> list(const ListRequest& request, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(internal::may_go_on("list", patience));
        const std::lock_guard lock(mutex_);
        internal::ListingPager pager(request);
        for (auto it = objects_.lower_bound(request.prefix); it != objects_.end(); ++it) {
            if (!it->first.starts_with(request.prefix)) break;
            if (!pager.add({it->first, it->second.bytes.size(), it->second.etag})) break;
        }
        return pager.take();
    }

    Status remove(const std::string& key, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(internal::may_go_on(key, patience));
        const std::lock_guard lock(mutex_);
        objects_.erase(key);
        return Status::ok();
    }

  private:
    struct Object {
        ByteBuffer bytes;
        std::string etag;
    };

    void place(const std::string& key, ByteSpan bytes) {
        Object& object = objects_[key];
        object.bytes.assign(bytes.begin(), bytes.end());
        object.etag = base::format("\"{:08x}-{}\"", base::crc32c(bytes), bytes.size());
    }

    std::mutex mutex_;
    std::map<std::string, Object> objects_;
};

}  // namespace

std::unique_ptr<ObjectStore> make_memory_object_store() { return std::make_unique<MemoryObjectStore>(); }

}  // namespace traindbg::storage
