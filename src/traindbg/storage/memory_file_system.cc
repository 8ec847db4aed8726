#include "traindbg/storage/memory_file_system.h"

#include <algorithm>
#include <cerrno>

namespace traindbg::storage {

using base::ByteBuffer;
using base::ByteSpan;
using base::Result;
using base::Status;

struct MemoryFileSystem::File {
    std::mutex mutex;
    ByteBuffer bytes;
    std::size_t synced = 0;
};

namespace {

class MemoryAppendFile final : public AppendFile {
  public:
    explicit MemoryAppendFile(std::shared_ptr<MemoryFileSystem::File> file) : file_(std::move(file)) {}

    Status append(ByteSpan bytes) override {
        const std::lock_guard lock(file_->mutex);
        file_->bytes.insert(file_->bytes.end(), bytes.begin(), bytes.end());
        size_ += bytes.size();
        return Status::ok();
    }
    Status sync() override {
        const std::lock_guard lock(file_->mutex);
        file_->synced = file_->bytes.size();
        return Status::ok();
    }
    [[nodiscard]] std::uint64_t size() const override { return size_; }

  private:
    std::shared_ptr<MemoryFileSystem::File> file_;
    std::uint64_t size_ = 0;
};

class MemoryReadFile final : public ReadFile {
  public:
    explicit MemoryReadFile(std::shared_ptr<MemoryFileSystem::File> file) : file_(std::move(file)) {}

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
    std::shared_ptr<MemoryFileSystem::File> file_;
};

// "" of "/c" and of "c": the root, which is always there.
std::string parent_of(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? "" : path.substr(0, slash);
}

}  // namespace

MemoryFileSystem::MemoryFileSystem() : directories_{""} {}
MemoryFileSystem::~MemoryFileSystem() = default;

Status MemoryFileSystem::check_parent(const std::string& path) const {
    if (directories_.contains(parent_of(path))) return Status::ok();
    return Status::from_errno(path, ENOENT);
}

Result<std::unique_ptr<AppendFile>> MemoryFileSystem::create(const std::string& path) {
    const std::lock_guard lock(mutex_);
    TRAINDBG_RETURN_IF_ERROR(check_parent(path));
    if (files_.contains(path) || directories_.contains(path))
        return Status::from_errno(path + ": create", EEXIST);
    auto file = std::make_shared<File>();
    files_.emplace(path, file);
    return std::unique_ptr<AppendFile>(std::make_unique<MemoryAppendFile>(std::move(file)));
}

Result<std::unique_ptr<ReadFile>> MemoryFileSystem::open(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const auto it = files_.find(path);
    if (it == files_.end()) return Status::from_errno(path + ": open", ENOENT);
    return std::unique_ptr<ReadFile>(std::make_unique<MemoryReadFile>(it->second));
}

Status MemoryFileSystem::put_atomic(const std::string& path, ByteSpan bytes) {
    const std::lock_guard lock(mutex_);
    TRAINDBG_RETURN_IF_ERROR(check_parent(path));
    auto file = std::make_shared<File>();  // those who have the old one open keep it
    file->bytes.assign(bytes.begin(), bytes.end());
    file->synced = bytes.size();
    files_[path] = std::move(file);
    return Status::ok();
}

Status MemoryFileSystem::create_directories(const std::string& path) {
    const std::lock_guard lock(mutex_);
    for (std::size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
        const std::string part = path.substr(0, end);
        if (files_.contains(part)) return Status::from_errno(part + ": create directory", ENOTDIR);
        directories_.insert(part);
        if (end == std::string::npos) return Status::ok();
    }
}

Status MemoryFileSystem::create_directory(const std::string& path) {
    const std::lock_guard lock(mutex_);
    TRAINDBG_RETURN_IF_ERROR(check_parent(path));
    if (files_.contains(path) || !directories_.insert(path).second)
        return Status::from_errno(path + ": create directory", EEXIST);
    return Status::ok();
}

Result<std::vector<DirectoryEntry>> MemoryFileSystem::list(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (!directories_.contains(path)) return Status::from_errno(path + ": list", ENOENT);
    std::vector<DirectoryEntry> entries;
    const auto add = [&](const std::string& candidate, bool is_directory) {
        if (candidate.size() > path.size() && parent_of(candidate) == path)
            entries.push_back({candidate.substr(path.size() + 1), is_directory, !is_directory});
    };
    for (const std::string& directory : directories_) add(directory, true);
    for (const auto& [name, file] : files_) add(name, false);
    std::sort(entries.begin(), entries.end(),
              [](const DirectoryEntry& a, const DirectoryEntry& b) { return a.name < b.name; });
    return entries;
}

Status MemoryFileSystem::remove(const std::string& path) {
    const std::lock_guard lock(mutex_);
    if (files_.erase(path) == 0) return Status::from_errno(path + ": remove", ENOENT);
    return Status::ok();
}

bool MemoryFileSystem::exists(const std::string& path) {
    const std::lock_guard lock(mutex_);
    return files_.contains(path) || directories_.contains(path);
}

ByteBuffer MemoryFileSystem::content(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto it = files_.find(path);
    if (it == files_.end()) return {};
    const std::lock_guard file_lock(it->second->mutex);
    return it->second->bytes;
}

std::uint64_t MemoryFileSystem::synced_bytes(const std::string& path) const {
    const std::lock_guard lock(mutex_);
    const auto it = files_.find(path);
    if (it == files_.end()) return 0;
    const std::lock_guard file_lock(it->second->mutex);
    return it->second->synced;
}

void MemoryFileSystem::set_content(const std::string& path, ByteBuffer bytes) {
    create_directories(parent_of(path)).ignore();
    const std::lock_guard lock(mutex_);
    std::shared_ptr<File>& file = files_[path];
    if (!file) file = std::make_shared<File>();
    const std::lock_guard file_lock(file->mutex);
    file->bytes = std::move(bytes);
    file->synced = file->bytes.size();
}

std::vector<std::string> MemoryFileSystem::paths() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> all;
    for (const auto& [path, file] : files_) all.push_back(path);
    return all;
}

void MemoryFileSystem::lose_power(UnsyncedBytes unsynced) {
    const std::lock_guard lock(mutex_);
    for (const auto& [path, file] : files_) {
        const std::lock_guard file_lock(file->mutex);
        const std::size_t lost = file->bytes.size() - file->synced;
        switch (unsynced) {
            case UnsyncedBytes::kLost: file->bytes.resize(file->synced); break;
            case UnsyncedBytes::kHalf: file->bytes.resize(file->synced + lost / 2); break;
            case UnsyncedBytes::kZeroed:
                std::fill(file->bytes.begin() + static_cast<std::ptrdiff_t>(file->synced), file->bytes.end(),
                          std::byte{0});
                break;
        }
    }
}

}  // namespace traindbg::storage
