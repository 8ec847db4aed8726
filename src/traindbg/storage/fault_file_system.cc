#include "traindbg/storage/fault_file_system.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace traindbg::storage {

using base::ByteBuffer;
using base::ByteSpan;
using base::Result;
using base::Status;

// Counts calls and space; shared by the file system and its files.
class FaultFileSystem::Faults {
  public:
    explicit Faults(FaultPlan plan) : plan_(std::move(plan)), space_left_(plan_.space_bytes) {}

    // An error when this call is to fail.
    Status check(FileCall call, const std::string& path) {
        if (plan_.before) plan_.before(call, path);
        if (plan_.latency > std::chrono::nanoseconds::zero() &&
            (call == FileCall::kAppend || call == FileCall::kSync))
            std::this_thread::sleep_for(plan_.latency);
        const std::uint64_t number = calls_.fetch_add(1);
        const bool fails =
            (plan_.keep_failing ? number >= plan_.fail_at_call : number == plan_.fail_at_call) ||
            (plan_.fails && plan_.fails(call, path));
        if (fails) return Status::from_errno(path + ": injected", plan_.error);
        if (call == FileCall::kSync && plan_.fail_sync) return Status::from_errno(path + ": injected", EIO);
        return Status::ok();
    }
    [[nodiscard]] Status check_sector(const std::string& path, std::uint64_t offset, std::size_t size) const {
        const BadSector& bad = plan_.bad_sector;
        if (path != bad.path || offset >= bad.offset + bad.bytes || offset + size <= bad.offset)
            return Status::ok();
        return Status::from_errno(path + ": injected", EIO);
    }
    // How many of `bytes` more, for the file at `path`, still fit; they are used up. What was set aside for
    // the file is used first.
    std::size_t take_space(const std::string& path, std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        if (plan_.space_bytes == UINT64_MAX) return bytes;
        Use& use = uses_[path];
        const auto aside = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, use.reserved));
        const auto fresh = static_cast<std::size_t>(std::min<std::uint64_t>(bytes - aside, space_left_));
        use.reserved -= aside;
        use.written += aside + fresh;
        space_left_ -= fresh;
        return aside + fresh;
    }
    // False: that much is not there.
    bool set_aside(const std::string& path, std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        if (plan_.space_bytes == UINT64_MAX) return true;
        Use& use = uses_[path];
        const std::uint64_t more = bytes - std::min(bytes, use.reserved);
        if (more > space_left_) return false;
        use.reserved += more;
        space_left_ -= more;
        return true;
    }
    void give_back(const std::string& path) {
        const std::lock_guard lock(mutex_);
        const auto it = uses_.find(path);
        if (it == uses_.end()) return;
        space_left_ += it->second.written + it->second.reserved;
        uses_.erase(it);
    }
    void add_space(std::uint64_t bytes) {
        const std::lock_guard lock(mutex_);
        space_left_ += bytes;
    }
    [[nodiscard]] std::optional<std::uint64_t> space_left() {
        const std::lock_guard lock(mutex_);
        if (plan_.space_bytes == UINT64_MAX) return std::nullopt;
        return space_left_;
    }
    [[nodiscard]] bool tears() const noexcept { return plan_.tear_append; }
    [[nodiscard]] std::uint64_t calls() const noexcept { return calls_.load(); }

  private:
    const FaultPlan plan_;
    std::atomic<std::uint64_t> calls_{0};
    struct Use {
        std::uint64_t written = 0;
        std::uint64_t reserved = 0;  // and not written yet
    };

    std::mutex mutex_;
    std::uint64_t space_left_;
    std::map<std::string, Use> uses_;  // by path
};

namespace {

class FaultAppendFile final : public AppendFile {
  public:
    FaultAppendFile(std::unique_ptr<AppendFile> file, std::shared_ptr<FaultFileSystem::Faults> faults,
                    std::string path)
        : file_(std::move(file)), faults_(std::move(faults)), path_(std::move(path)) {}

    Status append(ByteSpan bytes) override {
        if (Status status = faults_->check(FileCall::kAppend, path_); !status.is_ok()) {
            if (faults_->tears()) file_->append(bytes.first(bytes.size() / 2)).ignore();
            return status;
        }
        const std::size_t fits = faults_->take_space(path_, bytes.size());
        TRAINDBG_RETURN_IF_ERROR(file_->append(bytes.first(fits)));
        if (fits < bytes.size()) return Status::from_errno(path_ + ": write", ENOSPC);
        return Status::ok();
    }
    Status sync() override {
        TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kSync, path_));
        return file_->sync();
    }
    [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
    Status reserve(std::uint64_t bytes) override {
        TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kReserve, path_));
        if (!faults_->set_aside(path_, bytes)) return Status::from_errno(path_ + ": reserve", ENOSPC);
        return file_->reserve(bytes);
    }

  private:
    std::unique_ptr<AppendFile> file_;
    std::shared_ptr<FaultFileSystem::Faults> faults_;
    std::string path_;
};

class FaultReadFile final : public ReadFile {
  public:
    FaultReadFile(std::unique_ptr<ReadFile> file, std::shared_ptr<FaultFileSystem::Faults> faults,
                  std::string path)
        : file_(std::move(file)), faults_(std::move(faults)), path_(std::move(path)) {}

    Result<ByteBuffer> read_at(std::uint64_t offset, std::size_t size) override {
        TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kRead, path_));
        TRAINDBG_RETURN_IF_ERROR(faults_->check_sector(path_, offset, size));
        return file_->read_at(offset, size);
    }
    Result<std::uint64_t> size() override {
        TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kSize, path_));
        return file_->size();
    }
    Result<std::unique_ptr<Mapping>> map(std::uint64_t offset, std::size_t size) override {
        TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kMap, path_));
        return file_->map(offset, size);
    }

  private:
    std::unique_ptr<ReadFile> file_;
    std::shared_ptr<FaultFileSystem::Faults> faults_;
    std::string path_;
};

}  // namespace

FaultFileSystem::FaultFileSystem(FileSystem& files, FaultPlan plan)
    : files_(files), faults_(std::make_shared<Faults>(std::move(plan))) {}
FaultFileSystem::~FaultFileSystem() = default;

Result<std::unique_ptr<AppendFile>> FaultFileSystem::create(const std::string& path) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kCreate, path));
    TRAINDBG_ASSIGN_OR_RETURN(auto file, files_.create(path));
    return std::unique_ptr<AppendFile>(std::make_unique<FaultAppendFile>(std::move(file), faults_, path));
}

Result<std::unique_ptr<ReadFile>> FaultFileSystem::open(const std::string& path) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kOpen, path));
    TRAINDBG_ASSIGN_OR_RETURN(auto file, files_.open(path));
    return std::unique_ptr<ReadFile>(std::make_unique<FaultReadFile>(std::move(file), faults_, path));
}

Status FaultFileSystem::put_atomic(const std::string& path, ByteSpan bytes) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kPutAtomic, path));
    // The old and the new content are both there for a moment.
    const std::string temporary = path + ".tmp";
    if (faults_->take_space(temporary, bytes.size()) < bytes.size()) {
        faults_->give_back(temporary);
        return Status::from_errno(path + ": write", ENOSPC);
    }
    Status status = files_.put_atomic(path, bytes);
    faults_->give_back(temporary);
    if (!status.is_ok()) return status;
    faults_->give_back(path);
    static_cast<void>(faults_->take_space(path, bytes.size()));
    return Status::ok();
}

Status FaultFileSystem::create_directories(const std::string& path) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kCreateDirectory, path));
    return files_.create_directories(path);
}

Status FaultFileSystem::create_directory(const std::string& path) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kCreateDirectory, path));
    return files_.create_directory(path);
}

Result<std::vector<DirectoryEntry>> FaultFileSystem::list(const std::string& path) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kList, path));
    return files_.list(path);
}

Status FaultFileSystem::remove(const std::string& path) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kRemove, path));
    TRAINDBG_RETURN_IF_ERROR(files_.remove(path));
    faults_->give_back(path);
    return Status::ok();
}

Result<std::unique_ptr<AppendFile>> FaultFileSystem::create_bulk(const std::string& path) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kCreate, path));
    TRAINDBG_ASSIGN_OR_RETURN(auto file, files_.create_bulk(path));
    return std::unique_ptr<AppendFile>(std::make_unique<FaultAppendFile>(std::move(file), faults_, path));
}

Result<std::unique_ptr<FileLock>> FaultFileSystem::try_lock(const std::string& path, LockFile file) {
    TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kLock, path));
    return files_.try_lock(path, file);
}

Result<std::uint64_t> FaultFileSystem::free_bytes(const std::string& path) {
    if (const std::optional<std::uint64_t> left = faults_->space_left()) return *left;
    return files_.free_bytes(path);
}

void FaultFileSystem::add_space(std::uint64_t bytes) { faults_->add_space(bytes); }

bool FaultFileSystem::exists(const std::string& path) { return files_.exists(path); }

std::uint64_t FaultFileSystem::calls() const noexcept { return faults_->calls(); }

}  // namespace traindbg::storage
