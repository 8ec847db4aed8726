#include "traindbg/storage/block_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "traindbg/base/crc32c.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/sha256.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::storage {
namespace {

constexpr std::uint32_t kCacheMagic = 0x42434454;  // "TDCB"
constexpr std::uint64_t kMostBlockBytes = std::uint64_t{32} << 20;

// Whole or not at all, as `put_atomic`, but without a sync: after a loss of power the checksum tells.
void place(const std::string& path, base::ByteSpan bytes) {
    static std::atomic<std::uint64_t> next{0};
    const std::string temporary =
        path + "." + std::to_string(::getpid()) + "." + std::to_string(next++) + ".tmp";
    base::FileDescriptor file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.is_open()) return;
    bool is_whole = true;
    while (is_whole && !bytes.empty()) {
        const ssize_t count = ::write(file.get(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        is_whole = count > 0;
        if (is_whole) bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    file.reset();
    if (!is_whole || ::rename(temporary.c_str(), path.c_str()) != 0) ::unlink(temporary.c_str());
}

}  // namespace

BlockCache::BlockCache(std::string directory, std::uint64_t most_bytes)
    : directory_(std::move(directory)), most_bytes_(most_bytes), put_since_look_(0) {}

// Two letters of the name make a folder, so that no directory becomes large.
std::string BlockCache::path_of(const std::string& name) const {
    const std::string hash = base::hex(base::sha256(base::as_bytes(name)));
    return directory_ + "/" + hash.substr(0, 2) + "/" + hash.substr(2);
}

std::optional<base::ByteBuffer> BlockCache::get(const std::string& name) {
    auto found = [&]() -> std::optional<base::ByteBuffer> {
        if (directory_.empty()) return std::nullopt;
        const std::string path = path_of(name);
        const auto bytes = read_whole(posix_file_system(), path, kMostBlockBytes);
        if (!bytes.is_ok()) return std::nullopt;
        base::ByteReader reader(*bytes);
        const auto magic = reader.fixed<std::uint32_t>();
        const auto checksum = reader.fixed<std::uint32_t>();
        const std::size_t covered = reader.offset();
        const std::string_view text = reader.text();
        if (!reader.ok() || magic != kCacheMagic || text != name) return std::nullopt;
        if (base::crc32c(base::ByteSpan(*bytes).subspan(covered)) != checksum) return std::nullopt;
        const auto begin = bytes->begin() + static_cast<std::ptrdiff_t>(reader.offset());
        // Used now: among the last to go.
        static_cast<void>(::utimensat(AT_FDCWD, path.c_str(), nullptr, 0));
        return base::ByteBuffer(begin, bytes->end());
    }();
    ++(found ? hits_ : misses_);
    return found;
}

void BlockCache::put(const std::string& name, base::ByteSpan bytes) {
    if (directory_.empty() || bytes.size() > std::min(most_bytes_ / 4, kMostBlockBytes / 2)) return;
    base::ByteWriter body;
    body.text(name);
    body.append(bytes);
    base::ByteWriter file;
    file.fixed(kCacheMagic);
    file.fixed(base::crc32c(body.bytes()));
    file.append(body.bytes());
    if (put_since_look_.fetch_add(file.size()) + file.size() > may_put_.load()) shrink();
    FileSystem& files = posix_file_system();
    const std::string path = path_of(name);
    if (!files.create_directories(path.substr(0, path.rfind('/'))).is_ok()) return;
    place(path, file.bytes());
}

void BlockCache::shrink() {
    const std::unique_lock lock(shrinking_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    struct File {
        timespec used;
        std::uint64_t bytes;
        std::string path;
    };
    std::vector<File> all;
    std::uint64_t sum = 0;
    FileSystem& files = posix_file_system();
    const auto folders = files.list(directory_);
    if (folders.is_ok())
        for (const DirectoryEntry& folder : *folders) {
            if (!folder.is_directory || folder.name.size() != 2) continue;
            const std::string below = directory_ + "/" + folder.name;
            const auto entries = files.list(below);
            if (!entries.is_ok()) continue;
            for (const DirectoryEntry& entry : *entries) {
                struct stat info {};
                const std::string path = below + "/" + entry.name;
                if (!entry.is_regular || ::lstat(path.c_str(), &info) != 0) continue;
                sum += static_cast<std::uint64_t>(info.st_size);
                all.push_back({info.st_mtim, static_cast<std::uint64_t>(info.st_size), path});
            }
        }
    const std::uint64_t wanted = most_bytes_ / 10 * 8;
    if (sum > wanted) {
        std::sort(all.begin(), all.end(), [](const File& a, const File& b) {
            return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                                  : a.used.tv_nsec < b.used.tv_nsec;
        });
        for (const File& file : all) {
            if (sum <= wanted) break;
            // Another process may have removed it: it is gone all the same.
            files.remove(file.path).ignore();
            sum -= file.bytes;
        }
    }
    may_put_ = most_bytes_ - std::min(most_bytes_, sum);
    put_since_look_ = 0;
}

std::string default_cache_directory() {
    const char* cache = std::getenv("XDG_CACHE_HOME");
    if (cache != nullptr && *cache == '/') return std::string(cache) + "/traindbg/blocks";
    const char* home = std::getenv("HOME");
    if (home != nullptr && *home == '/') return std::string(home) + "/.cache/traindbg/blocks";
    return {};
}

}  // namespace traindbg::storage
