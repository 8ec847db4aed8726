#include <algorithm>
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

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// Objects are replaced whole, so what distinguishes two of one key is their content: the tag is of the
// content, and costs a reading of it. This driver is for directories that stand in for a bucket, where
// that is cheap; it is not a way to store runs.
class FileObjectStore final : public ObjectStore {
  public:
    FileObjectStore(FileSystem& files, std::string root) : files_(files), root_(std::move(root)) {}

    Status put(const std::string& key, ByteSpan bytes, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(ready(key, patience));
        const std::string path = path_of(key);
        TRAINDBG_RETURN_IF_ERROR(files_.create_directories(path.substr(0, path.rfind('/'))));
        return files_.put_atomic(path, bytes);
    }

    Status put_if_absent(const std::string& key, ByteSpan bytes, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(ready(key, patience));
        // Held while files are read and written, which is what makes it one act: for users of this object;
        // other processes are on their own.
        const std::lock_guard lock(mutex_);
        if (!files_.exists(path_of(key))) return put(key, bytes, patience);
        TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer there,
                                  get_range(key, 0, bytes.size() + 1, std::string(), patience));
        if (std::equal(there.begin(), there.end(), bytes.begin(), bytes.end())) return Status::ok();
        return {Code::kAlreadyExists, base::printable(key) + ": there is another object of that key"};
    }

    Status put_file(const std::string& key, ReadFile& source, std::uint64_t size,
                    const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(ready(key, patience));
        const std::string path = path_of(key);
        TRAINDBG_RETURN_IF_ERROR(files_.create_directories(path.substr(0, path.rfind('/'))));
        TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer bytes, internal::read_exactly(source, 0, size, key));
        return files_.put_atomic(path, bytes);
    }

    Result<ByteBuffer> get_range(const std::string& key, std::uint64_t offset, std::size_t size,
                                 const std::string& etag, const Patience& patience) override {
        TRAINDBG_ASSIGN_OR_RETURN(const auto file, open(key, patience));
        if (!etag.empty()) {
            TRAINDBG_ASSIGN_OR_RETURN(const ObjectInfo info, describe(key, *file));
            if (info.etag != etag) return internal::another_object(key);
        }
        return file->read_at(offset, size);
    }

    Result<ObjectInfo> head(const std::string& key, const Patience& patience) override {
        TRAINDBG_ASSIGN_OR_RETURN(const auto file, open(key, patience));
        return describe(key, *file);
    }

    Result<ObjectPage> list(const ListRequest& request, const Patience& patience) override {
        if (patience.is_over()) return Status(Code::kUnavailable, root_ + ": there was no time left");
        std::vector<std::string> keys;
        TRAINDBG_RETURN_IF_ERROR(collect(std::string(), request.prefix, keys, 0));
        std::sort(keys.begin(), keys.end());
        internal::ListingPager pager(request);
        for (const std::string& key : keys) {
            const auto info = head(key, patience);
            if (!info.is_ok()) {
                if (info.status().code() == Code::kNotFound) continue;  // removed meanwhile
                return info.status();
            }
            if (!pager.add(*info)) break;
        }
        return pager.take();
    }

    Status remove(const std::string& key, const Patience& patience) override {
        TRAINDBG_RETURN_IF_ERROR(ready(key, patience));
        const Status removed = files_.remove(path_of(key));
        return removed.code() == Code::kNotFound ? Status::ok() : removed;
    }

  private:
    [[nodiscard]] std::string path_of(const std::string& key) const { return root_ + "/" + key; }

    static Status ready(const std::string& key, const Patience& patience) {
        TRAINDBG_RETURN_IF_ERROR(internal::may_go_on(key, patience));
        std::size_t begin = 0;
        while (begin <= key.size()) {
            const std::size_t end = std::min(key.find('/', begin), key.size());
            if (end == begin || key[begin] == '.')
                return {Code::kInvalidArgument, base::printable(key) + ": cannot be a file's path"};
            begin = end + 1;
        }
        return Status::ok();
    }

    Result<std::unique_ptr<ReadFile>> open(const std::string& key, const Patience& patience) {
        TRAINDBG_RETURN_IF_ERROR(ready(key, patience));
        auto file = files_.open(path_of(key));
        const Code code = file.status().code();
        if (code == Code::kNotFound || code == Code::kInvalidArgument) return internal::no_such_object(key);
        return file;
    }

    static Result<ObjectInfo> describe(const std::string& key, ReadFile& file) {
        ObjectInfo info;
        info.key = key;
        std::uint32_t crc = 0;
        while (true) {
            TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer piece, file.read_at(info.size, kPieceBytes));
            if (piece.empty()) break;
            crc = base::crc32c(piece, crc);
            info.size += piece.size();
        }
        info.etag = base::format("\"{:08x}-{}\"", crc, info.size);
        return info;
    }

    // The keys of all files below `directory` ("" or "a/b/") that begin with `prefix`.
    Status collect(const std::string& directory, const std::string& prefix, std::vector<std::string>& keys,
                   int depth) {
        constexpr int kMostDepth = 32;
        if (depth == kMostDepth) return Status::ok();
        const auto entries = files_.list(root_ + "/" + directory);
        if (!entries.is_ok())
            return entries.status().code() == Code::kNotFound ? Status::ok() : entries.status();
        for (const DirectoryEntry& entry : *entries) {
            if (entry.name.starts_with('.')) continue;  // files that are being put
            const std::string key = directory + entry.name;
            if (entry.is_regular && key.starts_with(prefix)) keys.push_back(key);
            if (!entry.is_directory) continue;
            const std::string below = key + "/";
            if (below.starts_with(prefix) || prefix.starts_with(below))
                TRAINDBG_RETURN_IF_ERROR(collect(below, prefix, keys, depth + 1));
        }
        return Status::ok();
    }

    FileSystem& files_;
    const std::string root_;
    std::mutex mutex_;
};

}  // namespace

std::unique_ptr<ObjectStore> make_file_object_store(FileSystem& files, std::string root) {
    return std::make_unique<FileObjectStore>(files, std::move(root));
}

}  // namespace traindbg::storage
