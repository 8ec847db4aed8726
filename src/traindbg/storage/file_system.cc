#include "traindbg/storage/file_system.h"

#include <algorithm>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::storage {
namespace {

class OwnedMapping final : public Mapping {
  public:
    explicit OwnedMapping(base::ByteBuffer bytes) : bytes_(std::move(bytes)) {}
    [[nodiscard]] base::ByteSpan bytes() const noexcept override { return bytes_; }

  private:
    const base::ByteBuffer bytes_;
};

}  // namespace

// What a file system without the feature does.

base::Status AppendFile::reserve(std::uint64_t /*bytes*/) {
    return {base::Code::kUnsupported, "this file system cannot set room aside"};
}

base::Result<std::size_t> ReadFile::read_into(std::uint64_t offset, std::span<std::byte> out) {
    TRAINDBG_ASSIGN_OR_RETURN(const base::ByteBuffer bytes, read_at(offset, out.size()));
    std::copy(bytes.begin(), bytes.end(), out.begin());
    return bytes.size();
}

base::Result<std::unique_ptr<Mapping>> ReadFile::map(std::uint64_t offset, std::size_t size) {
    TRAINDBG_ASSIGN_OR_RETURN(base::ByteBuffer bytes, read_at(offset, size));
    if (bytes.size() != size)
        return base::Status(base::Code::kDataLoss,
                            base::format("the file ends {} bytes early", size - bytes.size()));
    return std::unique_ptr<Mapping>(std::make_unique<OwnedMapping>(std::move(bytes)));
}

base::Result<std::unique_ptr<AppendFile>> FileSystem::create_bulk(const std::string& path) {
    return create(path);
}

base::Result<std::unique_ptr<FileLock>> FileSystem::try_lock(const std::string& path, LockFile /*file*/) {
    return base::Status(base::Code::kUnsupported, path + ": this file system has no locks");
}

base::Result<std::uint64_t> FileSystem::free_bytes(const std::string& /*path*/) { return UINT64_MAX; }

base::Result<base::ByteBuffer> read_whole(FileSystem& files, const std::string& path,
                                          std::uint64_t most_bytes) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<ReadFile> file, files.open(path));
    TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t size, file->size());
    if (size > most_bytes)
        return base::Status(base::Code::kResourceExhausted,
                            base::format("{}: is {} large; at most {} are expected here", path,
                                         base::human_bytes(size), base::human_bytes(most_bytes)));
    return file->read_at(0, static_cast<std::size_t>(size));
}

}  // namespace traindbg::storage
