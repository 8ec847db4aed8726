#include "traindbg/storage/fault_object_store.h"

#include "traindbg/base/text.h"

namespace traindbg::storage {

using base::ByteBuffer;
using base::ByteSpan;
using base::Result;
using base::Status;

bool FaultObjectStore::fails(ObjectCall call, const std::string& key) {
    if (plan_.before) plan_.before(call, key);
    of_kind_[static_cast<std::size_t>(call)].fetch_add(1);
    const std::uint64_t number = calls_.fetch_add(1);
    return plan_.keep_failing ? number >= plan_.fail_at_call : number == plan_.fail_at_call;
}

Status FaultObjectStore::injected(const std::string& key) const {
    return {plan_.error, base::printable(key) + ": injected"};
}

Status FaultObjectStore::put(const std::string& key, ByteSpan bytes, const Patience& patience) {
    if (!fails(ObjectCall::kPut, key)) return store_.put(key, bytes, patience);
    if (plan_.is_carried_out) store_.put(key, bytes, patience).ignore();
    return injected(key);
}

Status FaultObjectStore::put_if_absent(const std::string& key, ByteSpan bytes, const Patience& patience) {
    if (!fails(ObjectCall::kPutIfAbsent, key)) return store_.put_if_absent(key, bytes, patience);
    if (plan_.is_carried_out) store_.put_if_absent(key, bytes, patience).ignore();
    return injected(key);
}

Status FaultObjectStore::put_file(const std::string& key, ReadFile& source, std::uint64_t size,
                                  const Patience& patience) {
    if (!fails(ObjectCall::kPutFile, key)) return store_.put_file(key, source, size, patience);
    if (plan_.is_carried_out) store_.put_file(key, source, size, patience).ignore();
    return injected(key);
}

Result<ByteBuffer> FaultObjectStore::get_range(const std::string& key, std::uint64_t offset, std::size_t size,
                                               const std::string& etag, const Patience& patience) {
    if (fails(ObjectCall::kGet, key)) return injected(key);
    return store_.get_range(key, offset, size, etag, patience);
}

Result<ObjectInfo> FaultObjectStore::head(const std::string& key, const Patience& patience) {
    if (fails(ObjectCall::kHead, key)) return injected(key);
    Result<ObjectInfo> info = store_.head(key, patience);
    if (plan_.hides_etags && info.is_ok()) info->etag.clear();
    return info;
}

Result<ObjectPage> FaultObjectStore::list(const ListRequest& request, const Patience& patience) {
    if (fails(ObjectCall::kList, request.prefix)) return injected(request.prefix);
    Result<ObjectPage> page = store_.list(request, patience);
    if (plan_.hides_etags && page.is_ok())
        for (ObjectInfo& object : page->objects) object.etag.clear();
    return page;
}

Status FaultObjectStore::remove(const std::string& key, const Patience& patience) {
    if (!fails(ObjectCall::kRemove, key)) return store_.remove(key, patience);
    if (plan_.is_carried_out) store_.remove(key, patience).ignore();
    return injected(key);
}

}  // namespace traindbg::storage
