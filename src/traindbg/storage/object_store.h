// Objects: whole values under keys, as S3 and its relatives keep them. The second seam of the store,
// beside `FileSystem`: the uploader writes through it, `ObjectFileSystem` reads through it, and tests
// put faults into it.
//
// What is visible when: an object appears whole, when the call that puts it returns ok; nobody ever
// sees half of one. After an error nothing is known: the object may be there or not, and the same call
// may be made again. What was put is seen by every `head`, `get_range` and `list` that begins
// afterwards.
//
// Keys are UTF-8, 1 to 1024 bytes, without a NUL; "/" is a letter like any other but for `shallow`
// listings. Lists are in the order of the keys' bytes.
//
// Thread-safety: all members may be called from any thread. Ownership: nothing that is handed over is
// kept. Errors: kNotFound (no such object), kAlreadyExists, kPermissionDenied (the credentials are wrong,
// missing or expired), kUnavailable (asked long enough; may work later), kDataLoss (it changed, or came
// back short), kInvalidArgument (the key; a bucket that does not exist).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/status.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::storage {

// How long a caller will wait. A call ends soon (within a second or so) after the deadline has passed
// or the flag was set, with kUnavailable.
struct Patience {
    std::int64_t deadline_nanos = INT64_MAX;          // monotonic
    const std::atomic<bool>* is_cancelled = nullptr;  // must outlive the call

    [[nodiscard]] bool is_over() const noexcept {
        return (is_cancelled != nullptr && is_cancelled->load(std::memory_order_relaxed)) ||
               base::monotonic_nanos() >= deadline_nanos;
    }
};

struct ObjectInfo {
    std::string key;
    std::uint64_t size = 0;
    std::string etag;  // changes when the content does; means nothing else
};

struct ListRequest {
    std::string prefix;
    std::string after;         // only keys behind this one
    std::size_t limit = 1000;  // entries in one page, 1 to 1000
    bool shallow = false;      // what lies behind the next "/" after the prefix is one directory
    std::string page;          // `ObjectPage::next` of the page before
};

struct ObjectPage {
    std::vector<ObjectInfo> objects;
    std::vector<std::string> directories;  // of a shallow list: prefixes, each with its "/" at the end
    std::string next;                      // empty: there is no more
};

class ObjectStore {
  public:
    ObjectStore() = default;
    ObjectStore(const ObjectStore&) = delete;
    ObjectStore& operator=(const ObjectStore&) = delete;
    virtual ~ObjectStore() = default;

    // Puts `bytes` at `key`, whatever was there.
    [[nodiscard]] virtual base::Status put(const std::string& key, base::ByteSpan bytes,
                                           const Patience& patience) = 0;
    // kAlreadyExists when there is an object with other content; ok when it has this content (an
    // attempt whose answer was lost).
    [[nodiscard]] virtual base::Status put_if_absent(const std::string& key, base::ByteSpan bytes,
                                                     const Patience& patience) = 0;
    // The first `size` bytes of `source`, read piece by piece: 16 MiB of memory, whatever the size.
    [[nodiscard]] virtual base::Status put_file(const std::string& key, ReadFile& source, std::uint64_t size,
                                                const Patience& patience) = 0;
    // Up to `size` bytes from `offset`, fewer at the object's end, none behind it. With an `etag` that
    // is not empty: kDataLoss when the object is another one by now.
    [[nodiscard]] virtual base::Result<base::ByteBuffer> get_range(const std::string& key,
                                                                   std::uint64_t offset, std::size_t size,
                                                                   const std::string& etag,
                                                                   const Patience& patience) = 0;
    [[nodiscard]] virtual base::Result<ObjectInfo> head(const std::string& key, const Patience& patience) = 0;
    [[nodiscard]] virtual base::Result<ObjectPage> list(const ListRequest& request,
                                                        const Patience& patience) = 0;
    // Ok when there was none.
    [[nodiscard]] virtual base::Status remove(const std::string& key, const Patience& patience) = 0;
};

// kInvalidArgument for what cannot be a key.
[[nodiscard]] base::Status check_key(std::string_view key);

// All objects under `prefix`, or kResourceExhausted when there are more than `most`.
[[nodiscard]] base::Result<std::vector<ObjectInfo>> list_all(ObjectStore& store, const std::string& prefix,
                                                             std::size_t most, const Patience& patience);

// In memory, for tests.
[[nodiscard]] std::unique_ptr<ObjectStore> make_memory_object_store();
// A directory of `files` as a bucket: objects are files, put in place whole. Keys with a part that is
// empty, "." or "..", or begins with ".", are refused. `files` must outlive it.
[[nodiscard]] std::unique_ptr<ObjectStore> make_file_object_store(FileSystem& files, std::string root);

}  // namespace traindbg::storage
