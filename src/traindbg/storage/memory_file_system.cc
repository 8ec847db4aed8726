#include "traindbg/storage/memory_file_system.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <random>
#include <set>

namespace traindbg::storage {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;

struct MemoryFileSystem::File {
    std::mutex mutex;
    ByteBuffer bytes;
    std::size_t synced = 0;
    bool is_locked = false;
};

namespace {

using File = MemoryFileSystem::File;
using Names = std::map<std::string, std::shared_ptr<File>>;

// "" of "/c" and of "c": the root, which is always there.
std::string directory_above(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

struct MemoryFileSystem::Disk {
    mutable std::mutex mutex;
    Names files;
    std::set<std::string> directories{""};
    // What of this a loss of power leaves.
    Names synced_files;
    std::set<std::string> synced_directories{""};

    [[nodiscard]] Status check_parent(const std::string& path) const {
        if (directories.contains(directory_above(path))) return Status::ok();
        return Status::from_errno(path, ENOENT);
    }
    void sync_names_in(const std::string& directory) {
        const auto lies_here = [&](const std::string& path) {
            return !path.empty() && directory_above(path) == directory;
        };
        std::erase_if(synced_files, [&](const auto& entry) { return lies_here(entry.first); });
        for (const auto& [path, file] : files)
            if (lies_here(path)) synced_files[path] = file;
        for (const std::string& path : directories)
            if (lies_here(path)) synced_directories.insert(path);
    }
};

namespace {

using Disk = MemoryFileSystem::Disk;

class MemoryAppendFile final : public AppendFile {
  public:
    MemoryAppendFile(std::shared_ptr<Disk> disk, std::string path, std::shared_ptr<File> file)
        : disk_(std::move(disk)), path_(std::move(path)), file_(std::move(file)) {}

    Status append(ByteSpan bytes) override {
        const std::lock_guard lock(file_->mutex);
        file_->bytes.insert(file_->bytes.end(), bytes.begin(), bytes.end());
        size_ += bytes.size();
        return Status::ok();
    }
    Status sync() override {
        {
            const std::lock_guard lock(file_->mutex);
            file_->synced = file_->bytes.size();
        }
        if (name_is_synced_) return Status::ok();
        const std::lock_guard lock(disk_->mutex);
        disk_->sync_names_in(directory_above(path_));
        disk_->sync_names_in(directory_above(directory_above(path_)));
        name_is_synced_ = true;
        return Status::ok();
    }
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    Status reserve(std::uint64_t /*bytes*/) override { return Status::ok(); }

  private:
    std::shared_ptr<Disk> disk_;
    std::string path_;
    std::shared_ptr<File> file_;
    std::uint64_t size_ = 0;
    bool name_is_synced_ = false;
};

class MemoryReadFile final : public ReadFile {
  public:
    explicit MemoryReadFile(std::shared_ptr<File> file) : file_(std::move(file)) {}

    Result<ByteBuffer> read_at(std::uint64_t offset, std::size_t size) override {
        const std::lock_guard lock(file_->mutex);
        const ByteSpan all(file_->bytes);
        if (offset >= all.size()) return ByteBuffer();
        const ByteSpan part = all.subspan(static_cast<std::size_t>(offset));
        const ByteSpan wanted = part.first(std::min(size, part.size()));
        return ByteBuffer(wanted.begin(), wanted.end());
    }
    Result<std::uint64_t> size() override {
        const std::lock_guard lock(file_->mutex);
        return static_cast<std::uint64_t>(file_->bytes.size());
    }

  private:
    std::shared_ptr<File> file_;
};

class MemoryLock final : public FileLock {
  public:
    explicit MemoryLock(std::shared_ptr<File> file) : file_(std::move(file)) {}
    MemoryLock(const MemoryLock&) = delete;
    MemoryLock& operator=(const MemoryLock&) = delete;
    ~MemoryLock() override {
        const std::lock_guard lock(file_->mutex);
        file_->is_locked = false;
    }

  private:
    std::shared_ptr<File> file_;
};

using Random = std::mt19937_64;

constexpr std::size_t kDiskPageBytes = 4096;
constexpr std::size_t kSectorBytes = 512;  // what a disk writes whole or not at all

// Of the bytes from `synced` on: pages in any state, and an end anywhere.
void mix_pages(ByteBuffer& bytes, std::size_t synced, Random& random) {
    if (random() % 2 == 0) bytes.resize(synced + random() % (bytes.size() - synced + 1));
    for (std::size_t page = synced / kDiskPageBytes * kDiskPageBytes; page < bytes.size();
         page += kDiskPageBytes) {
        std::size_t kept = kDiskPageBytes;  // of this page, from its beginning
        switch (random() % 3) {
            case 0: kept = 0; break;
            case 1: kept = random() % (kDiskPageBytes / kSectorBytes) * kSectorBytes; break;
            default: continue;
        }
        const std::size_t begin = std::min(bytes.size(), std::max(synced, page + kept));
        const std::size_t end = std::max(begin, std::min(bytes.size(), page + kDiskPageBytes));
        std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(begin),
                  bytes.begin() + static_cast<std::ptrdiff_t>(end), std::byte{0});
    }
}

// What of a file is found afterwards.
std::shared_ptr<File> remains_of(File& file, UnsyncedBytes unsynced, Random& random) {
    auto left = std::make_shared<File>();
    const std::lock_guard lock(file.mutex);
    left->bytes = file.bytes;
    const std::size_t synced = std::min(file.synced, file.bytes.size());
    const std::size_t lost = file.bytes.size() - synced;
    switch (unsynced) {
        case UnsyncedBytes::kLost: left->bytes.resize(synced); break;
        case UnsyncedBytes::kHalf: left->bytes.resize(synced + lost / 2); break;
        case UnsyncedBytes::kZeroed:
            std::fill(left->bytes.begin() + static_cast<std::ptrdiff_t>(synced), left->bytes.end(),
                      std::byte{0});
            break;
        case UnsyncedBytes::kRandomPages: mix_pages(left->bytes, synced, random); break;
    }
    left->synced = left->bytes.size();
    return left;
}

}  // namespace

MemoryFileSystem::MemoryFileSystem() : disk_(std::make_shared<Disk>()) {}
MemoryFileSystem::~MemoryFileSystem() = default;

Result<std::unique_ptr<AppendFile>> MemoryFileSystem::create(const std::string& path) {
    const std::lock_guard lock(disk_->mutex);
    TRAINDBG_RETURN_IF_ERROR(disk_->check_parent(path));
    if (disk_->files.contains(path) || disk_->directories.contains(path))
        return Status::from_errno(path + ": create", EEXIST);
    auto file = std::make_shared<File>();
    disk_->files.emplace(path, file);
    return std::unique_ptr<AppendFile>(std::make_unique<MemoryAppendFile>(disk_, path, std::move(file)));
}

Result<std::unique_ptr<ReadFile>> MemoryFileSystem::open(const std::string& path) {
    const std::lock_guard lock(disk_->mutex);
    const auto it = disk_->files.find(path);
    if (it == disk_->files.end()) return Status::from_errno(path + ": open", ENOENT);
    return std::unique_ptr<ReadFile>(std::make_unique<MemoryReadFile>(it->second));
}

Status MemoryFileSystem::put_atomic(const std::string& path, ByteSpan bytes) {
    const std::lock_guard lock(disk_->mutex);
    TRAINDBG_RETURN_IF_ERROR(disk_->check_parent(path));
    auto file = std::make_shared<File>();  // those who have the old one open keep it
    file->bytes.assign(bytes.begin(), bytes.end());
    file->synced = bytes.size();
    disk_->files[path] = std::move(file);
    disk_->sync_names_in(directory_above(path));
    return Status::ok();
}

Status MemoryFileSystem::create_directories(const std::string& path) {
    const std::lock_guard lock(disk_->mutex);
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (disk_->files.contains(part)) return Status::from_errno(part + ": create directory", ENOTDIR);
        if (disk_->directories.insert(part).second) disk_->synced_directories.insert(part);
        if (end == std::string::npos) return Status::ok();
    }
}

Status MemoryFileSystem::create_directory(const std::string& path) {
    const std::lock_guard lock(disk_->mutex);
    TRAINDBG_RETURN_IF_ERROR(disk_->check_parent(path));
    if (disk_->files.contains(path) || !disk_->directories.insert(path).second)
        return Status::from_errno(path + ": create directory", EEXIST);
    return Status::ok();
}

Result<std::vector<DirectoryEntry>> MemoryFileSystem::list(const std::string& path) {
    const std::lock_guard lock(disk_->mutex);
    if (!disk_->directories.contains(path)) return Status::from_errno(path + ": list", ENOENT);
    std::vector<DirectoryEntry> entries;
    const auto add = [&](const std::string& candidate, bool is_directory) {
        if (candidate.size() > path.size() && directory_above(candidate) == path)
            entries.push_back({candidate.substr(path.size() + 1), is_directory, !is_directory});
    };
    for (const std::string& directory : disk_->directories) add(directory, true);
    for (const auto& [name, file] : disk_->files) add(name, false);
    std::sort(entries.begin(), entries.end(),
              [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
    return entries;
}

Status MemoryFileSystem::remove(const std::string& path) {
    const std::lock_guard lock(disk_->mutex);
    if (disk_->files.erase(path) != 0) return Status::ok();
    if (!disk_->directories.contains(path)) return Status::from_errno(path + ": remove", ENOENT);
    const auto lies_within = [inside = path + "/"](const auto& entries) {
        return std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
            if constexpr (requires { entry.first; }) return entry.first.starts_with(inside);
            else return entry.starts_with(inside);
        });
    };
    if (lies_within(disk_->files) || lies_within(disk_->directories))
        return Status::from_errno(path + ": remove", ENOTEMPTY);
    disk_->directories.erase(path);
    return Status::ok();
}

bool MemoryFileSystem::exists(const std::string& path) {
    const std::lock_guard lock(disk_->mutex);
    return disk_->files.contains(path) || disk_->directories.contains(path);
}

Result<std::unique_ptr<FileLock>> MemoryFileSystem::try_lock(const std::string& path, LockFile file) {
    const std::lock_guard lock(disk_->mutex);
    TRAINDBG_RETURN_IF_ERROR(disk_->check_parent(path));
    auto it = disk_->files.find(path);
    if (it == disk_->files.end()) {
        if (file == LockFile::kMustExist) return Status::from_errno(path + ": open", ENOENT);
        it = disk_->files.emplace(path, std::make_shared<File>()).first;
    }
    const std::lock_guard file_lock(it->second->mutex);
    if (it->second->is_locked) return Status(Code::kUnavailable, path + ": a living process holds it");
    it->second->is_locked = true;
    return std::unique_ptr<FileLock>(std::make_unique<MemoryLock>(it->second));
}

ByteBuffer MemoryFileSystem::content(const std::string& path) const {
    const std::lock_guard lock(disk_->mutex);
    const auto it = disk_->files.find(path);
    if (it == disk_->files.end()) return {};
    const std::lock_guard file_lock(it->second->mutex);
    return it->second->bytes;
}

std::uint64_t MemoryFileSystem::synced_bytes(const std::string& path) const {
    const std::lock_guard lock(disk_->mutex);
    const auto it = disk_->files.find(path);
    if (it == disk_->files.end()) return 0;
    const std::lock_guard file_lock(it->second->mutex);
    return it->second->synced;
}

void MemoryFileSystem::set_content(const std::string& path, ByteBuffer bytes) {
    create_directories(directory_above(path)).ignore();
    const std::lock_guard lock(disk_->mutex);
    std::shared_ptr<File>& file = disk_->files[path];
    if (!file) file = std::make_shared<File>();
    {
        const std::lock_guard file_lock(file->mutex);
        file->bytes = std::move(bytes);
        file->synced = file->bytes.size();
    }
    for (std::string name = path; !name.empty(); name = directory_above(name))
        disk_->sync_names_in(directory_above(name));
}

std::vector<std::string> MemoryFileSystem::paths() const {
    const std::lock_guard lock(disk_->mutex);
    std::vector<std::string> all;
    for (const auto& [path, file] : disk_->files) all.push_back(path);
    return all;
}

std::unique_ptr<MemoryFileSystem> MemoryFileSystem::after_power_loss(const PowerLoss& loss) const {
    Random random(loss.seed);
    auto left = std::make_unique<MemoryFileSystem>();
    Disk& found = *left->disk_;
    const std::lock_guard lock(disk_->mutex);
    const auto comes_back = [&] {
        return loss.names == UnsyncedNames::kLost ||
               (loss.names == UnsyncedNames::kRandom && random() % 2 == 0);
    };
    for (const std::string& path : disk_->directories)
        if (found.directories.contains(directory_above(path)) &&
            (disk_->synced_directories.contains(path) || !comes_back()))
            found.directories.insert(path);
    Names names = disk_->files;
    for (const auto& [path, file] : disk_->synced_files) names.emplace(path, nullptr);  // removed since
    for (const auto& [path, now] : names) {
        const auto it = disk_->synced_files.find(path);
        const std::shared_ptr<File> before = it == disk_->synced_files.end() ? nullptr : it->second;
        const std::shared_ptr<File>& file = now != before && comes_back() ? before : now;
        if (file && found.directories.contains(directory_above(path)))
            found.files[path] = remains_of(*file, loss.bytes, random);
    }
    found.synced_files = found.files;
    found.synced_directories = found.directories;
    return left;
}

void MemoryFileSystem::lose_power(const PowerLoss& loss) {
    const std::unique_ptr<MemoryFileSystem> left = after_power_loss(loss);
    const std::lock_guard lock(disk_->mutex);
    disk_->files = left->disk_->files;
    disk_->directories = left->disk_->directories;
    disk_->synced_files = left->disk_->synced_files;
    disk_->synced_directories = left->disk_->synced_directories;
}

}  // namespace traindbg::storage
