#include "traindbg/storage/object_listing.h"

#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::storage::internal {

using base::ByteBuffer;
using base::Code;
using base::Result;
using base::Status;

Status may_go_on(const std::string& key, const Patience& patience) {
    TRAINDBG_RETURN_IF_ERROR(check_key(key));
    if (patience.is_over()) return {Code::kUnavailable, base::printable(key) + ": there was no time left"};
    return Status::ok();
}

Status no_such_object(const std::string& key) {
    return {Code::kNotFound, base::printable(key) + ": no such object"};
}

Status another_object(const std::string& key) {
    return {Code::kDataLoss, base::printable(key) + ": the object was replaced while it was read"};
}

Result<ByteBuffer> read_exactly(ReadFile& source, std::uint64_t offset, std::uint64_t size,
                                const std::string& name) {
    TRAINDBG_ASSIGN_OR_RETURN(ByteBuffer bytes, source.read_at(offset, static_cast<std::size_t>(size)));
    if (bytes.size() != size)
        return Status(Code::kDataLoss, base::format("{}: {} bytes at {} were to be read, there are {}",
                                                    base::printable(name), size, offset, bytes.size()));
    return bytes;
}

bool ListingPager::add(ObjectInfo object) {
    const std::string& key = object.key;
    if (key <= request_.after) return true;
    // A page begins behind the entry that the one before ended with; a directory ends with "/".
    const std::string& from = request_.page;
    const bool from_directory = request_.shallow && !from.empty() && from.back() == '/';
    if (!from.empty() && (key <= from || (from_directory && key.starts_with(from)))) return true;
    const std::size_t slash = request_.shallow ? key.find('/', request_.prefix.size()) : std::string::npos;
    if (slash != std::string::npos && !page_.directories.empty() &&
        key.compare(0, slash + 1, page_.directories.back()) == 0)
        return true;
    const std::size_t limit = std::clamp<std::size_t>(request_.limit, 1, 1000);
    if (page_.objects.size() + page_.directories.size() == limit) {
        page_.next = last_;
        return false;
    }
    if (slash != std::string::npos) {
        page_.directories.push_back(key.substr(0, slash + 1));
        last_ = page_.directories.back();
    } else {
        last_ = key;
        page_.objects.push_back(std::move(object));
    }
    return true;
}

ObjectPage ListingPager::take() { return std::move(page_); }

}  // namespace traindbg::storage::internal
