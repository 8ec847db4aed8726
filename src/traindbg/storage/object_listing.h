// What the object stores that keep their objects here have in common. Private to `storage`.
#pragma once

#include <string>

#include "traindbg/storage/object_store.h"

namespace traindbg::storage::internal {

// An error when the key is none or nobody waits any more.
[[nodiscard]] base::Status may_go_on(const std::string& key, const Patience& patience);
[[nodiscard]] base::Status no_such_object(const std::string& key);
[[nodiscard]] base::Status another_object(const std::string& key);
// kDataLoss when the file has fewer.
[[nodiscard]] base::Result<base::ByteBuffer> read_exactly(ReadFile& source, std::uint64_t offset,
                                                          std::uint64_t size, const std::string& name);

// Makes one page of a list out of objects that come in the order of their keys.
class ListingPager {
  public:
    explicit ListingPager(const ListRequest& request) : request_(request) {}
    // False: the page is full.
    [[nodiscard]] bool add(ObjectInfo object);
    [[nodiscard]] ObjectPage take();

  private:
    const ListRequest& request_;
    ObjectPage page_;
    std::string last_;  // the key, or the directory, that was added last
};

}  // namespace traindbg::storage::internal
