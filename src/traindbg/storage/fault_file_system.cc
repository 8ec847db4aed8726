#include "traindbg/storage/fault_file_system.h"

#include <algorithm>
#include <mutex>

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
        const std::uint64_t number = calls_.fetch_add(1);
        const bool fails = plan_.keep_failing ? number >= plan_.fail_at_call : number == plan_.fail_at_call;
        if (fails) return Status::from_errno(path + ": injected", plan_.error);
        if (call == FileCall::kSync && plan_.fail_sync) return Status::from_errno(path + ": injected", EIO);
        return Status::ok();
    }
    // How many of `bytes` still fit; they are used up.
    std::size_t take_space(std::size_t bytes) {
        const std::lock_guard lock(mutex_);
        const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, space_left_));
        if (plan_.space_bytes != UINT64_MAX) space_left_ -= taken;
        return taken;
    }
    [[nodiscard]] std::uint64_t calls() const noexcept { return calls_.load(); }

  private:
    const FaultPlan plan_;
    std::atomic<std::uint64_t> calls_{0};
    std::mutex mutex_;
    std::uint64_t space_left_;
};

namespace {

class FaultAppendFile final : public AppendFile {
  public:
    FaultAppendFile(std::unique_ptr<AppendFile> file, std::shared_ptr<FaultFileSystem::Faults> faults,
                    std::string path)
        : file_(std::move(file)), faults_(std::move(faults)), path_(std::move(path)) {}

    Status append(ByteSpan bytes) override {
        TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kAppend, path_));
        const std::size_t fits = faults_->take_space(bytes.size());
        TRAINDBG_RETURN_IF_ERROR(file_->append(bytes.first(fits)));
        if (fits < bytes.size()) return Status::from_errno(path_ + ": write", ENOSPC);
        return Status::ok();
    }
    Status sync() override {
        TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kSync, path_));
        return file_->sync();
    }
    [[nodiscard]] std::uint64_t size() const override { return file_->size(); }

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
        return file_->read_at(offset, size);
    }
    Result<std::uint64_t> size() override {
        TRAINDBG_RETURN_IF_ERROR(faults_->check(FileCall::kSize, path_));
        return file_->size();
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
    return files_.put_atomic(path, bytes);
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
    return files_.remove(path);
}

bool FaultFileSystem::exists(const std::string& path) { return files_.exists(path); }

std::uint64_t FaultFileSystem::calls() const noexcept { return faults_->calls(); }

}  // namespace traindbg::storage
