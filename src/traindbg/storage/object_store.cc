#include "traindbg/storage/object_store.h"

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::storage {

using base::Code;
using base::Result;
using base::Status;

Status check_key(std::string_view key) {
    constexpr std::size_t kMostKeyBytes = 1024;
    if (key.empty()) return {Code::kInvalidArgument, "an object's key must not be empty"};
    if (key.size() > kMostKeyBytes)
        return {Code::kInvalidArgument,
                base::format("{}...: a key of {} bytes; {} are allowed", base::printable(key.substr(0, 60)),
                             key.size(), kMostKeyBytes)};
    if (key.find('\0') != std::string_view::npos)
        return {Code::kInvalidArgument, base::printable(key) + ": a key must not hold a NUL"};
    return Status::ok();
}

Result<std::vector<ObjectInfo>> list_all(ObjectStore& store, const std::string& prefix, std::size_t most,
                                         const Patience& patience) {
    std::vector<ObjectInfo> all;
    ListRequest request;
    request.prefix = prefix;
    while (true) {
        TRAINDBG_ASSIGN_OR_RETURN(ObjectPage page, store.list(request, patience));
        if (page.objects.size() > most - all.size())
            return Status(Code::kResourceExhausted,
                          base::format("{}: more than {} objects", base::printable(prefix), most));
        for (ObjectInfo& object : page.objects) all.push_back(std::move(object));
        if (page.next.empty()) return all;
        request.page = std::move(page.next);
    }
}

}  // namespace traindbg::storage
