#include "traindbg/storage/file_system.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <string>

#include "storage/temporary_directory.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/memory_file_system.h"

namespace traindbg::storage {
namespace {

using base::Code;
using testing::TemporaryDirectory;

std::string text(const base::ByteBuffer& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What every file system must do. A driver passes when all of these pass.
class FileSystemConformance : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        if (std::string(GetParam()) == "memory") {
            files_ = &memory_;
            root_ = "/root";
            ASSERT_TRUE(files_->create_directories(root_).is_ok());
        } else if (std::string(GetParam()) == "fault") {
            files_ = &faultless_;
            root_ = directory_.path();
        } else {
            files_ = &posix_file_system();
            root_ = directory_.path();
        }
    }
    [[nodiscard]] std::string at(const std::string& name) const { return root_ + "/" + name; }

    TemporaryDirectory directory_;
    MemoryFileSystem memory_;
    FaultFileSystem faultless_{posix_file_system(), FaultPlan{}};
    FileSystem* files_ = nullptr;
    std::string root_;
};

TEST_P(FileSystemConformance, AppendedBytesAreReadBack) {
    auto file = files_->create(at("a"));
    ASSERT_TRUE(file.is_ok()) << file.status().to_string();
    EXPECT_EQ((*file)->size(), 0U);
    ASSERT_TRUE((*file)->append(base::as_bytes("hello ")).is_ok());
    ASSERT_TRUE((*file)->append(base::as_bytes("")).is_ok());
    ASSERT_TRUE((*file)->append(base::as_bytes("world")).is_ok());
    ASSERT_TRUE((*file)->sync().is_ok());
    EXPECT_EQ((*file)->size(), 11U);
    auto read = files_->open(at("a"));
    ASSERT_TRUE(read.is_ok());
    EXPECT_EQ(*(*read)->size(), 11U);
    EXPECT_EQ(text(*(*read)->read_at(0, 100)), "hello world");
    EXPECT_EQ(text(*(*read)->read_at(6, 3)), "wor");
    EXPECT_EQ(text(*(*read)->read_at(10, 5)), "d");
    EXPECT_TRUE((*read)->read_at(11, 5)->empty());
    EXPECT_TRUE((*read)->read_at(UINT64_MAX / 4, 5)->empty());
}

TEST_P(FileSystemConformance, AnOpenFileSeesWhatIsAppendedLater) {
    auto file = files_->create(at("a"));
    ASSERT_TRUE(file.is_ok());
    auto read = files_->open(at("a"));
    ASSERT_TRUE(read.is_ok());
    EXPECT_EQ(*(*read)->size(), 0U);
    ASSERT_TRUE((*file)->append(base::as_bytes("x")).is_ok());
    EXPECT_EQ(*(*read)->size(), 1U);
    EXPECT_EQ(text(*(*read)->read_at(0, 9)), "x");
}

TEST_P(FileSystemConformance, CreateRefusesWhatIsThere) {
    ASSERT_TRUE(files_->create(at("a")).is_ok());
    EXPECT_EQ(files_->create(at("a")).status().code(), Code::kAlreadyExists);
    ASSERT_TRUE(files_->create_directory(at("d")).is_ok());
    EXPECT_EQ(files_->create(at("d")).status().code(), Code::kAlreadyExists);
}

TEST_P(FileSystemConformance, AMissingFileOrParentIsNotFound) {
    EXPECT_EQ(files_->open(at("none")).status().code(), Code::kNotFound);
    EXPECT_EQ(files_->create(at("none/a")).status().code(), Code::kNotFound);
    EXPECT_EQ(files_->create_directory(at("none/d")).code(), Code::kNotFound);
    EXPECT_EQ(files_->put_atomic(at("none/a"), {}).code(), Code::kNotFound);
    EXPECT_EQ(files_->list(at("none")).status().code(), Code::kNotFound);
    EXPECT_EQ(files_->remove(at("none")).code(), Code::kNotFound);
    EXPECT_FALSE(files_->exists(at("none")));
}

TEST_P(FileSystemConformance, PutAtomicReplacesAndLeavesNothingElse) {
    ASSERT_TRUE(files_->put_atomic(at("a"), base::as_bytes("one")).is_ok());
    auto old = files_->open(at("a"));
    ASSERT_TRUE(old.is_ok());
    ASSERT_TRUE(files_->put_atomic(at("a"), base::as_bytes("two!")).is_ok());
    EXPECT_EQ(text(*(*old)->read_at(0, 9)), "one") << "who has the old file open keeps it, whole";
    EXPECT_EQ(text(*read_whole(*files_, at("a"))), "two!");
    EXPECT_EQ(files_->list(root_)->size(), 1U);
}

TEST_P(FileSystemConformance, OneDirectoryIsMadeOnce) {
    ASSERT_TRUE(files_->create_directory(at("w0000")).is_ok());
    EXPECT_EQ(files_->create_directory(at("w0000")).code(), Code::kAlreadyExists);
    EXPECT_TRUE(files_->exists(at("w0000")));
}

TEST_P(FileSystemConformance, DirectoriesAreMadeWithTheirParents) {
    ASSERT_TRUE(files_->create_directories(at("a/b/c")).is_ok());
    ASSERT_TRUE(files_->create_directories(at("a/b/c")).is_ok());
    EXPECT_TRUE(files_->create(at("a/b/c/file")).is_ok());
    EXPECT_FALSE(files_->create_directories(at("a/b/c/file/d")).is_ok());
}

TEST_P(FileSystemConformance, ListIsSortedAndTellsKindsApart) {
    ASSERT_TRUE(files_->create(at("b")).is_ok());
    ASSERT_TRUE(files_->create(at("a")).is_ok());
    ASSERT_TRUE(files_->create_directory(at("c")).is_ok());
    ASSERT_TRUE(files_->create(at("c/inner")).is_ok());
    const auto entries = files_->list(root_);
    ASSERT_TRUE(entries.is_ok());
    ASSERT_EQ(entries->size(), 3U);
    EXPECT_EQ((*entries)[0].name, "a");
    EXPECT_EQ((*entries)[1].name, "b");
    EXPECT_EQ((*entries)[2].name, "c");
    EXPECT_TRUE((*entries)[0].is_regular && !(*entries)[0].is_directory);
    EXPECT_TRUE((*entries)[2].is_directory && !(*entries)[2].is_regular);
}

TEST_P(FileSystemConformance, ARemovedFileIsGone) {
    ASSERT_TRUE(files_->create(at("a")).is_ok());
    ASSERT_TRUE(files_->remove(at("a")).is_ok());
    EXPECT_FALSE(files_->exists(at("a")));
}

TEST_P(FileSystemConformance, ReadWholeRefusesAFileThatIsTooLarge) {
    ASSERT_TRUE(files_->put_atomic(at("a"), base::as_bytes("12345")).is_ok());
    EXPECT_EQ(text(*read_whole(*files_, at("a"), 5)), "12345");
    EXPECT_EQ(read_whole(*files_, at("a"), 4).status().code(), Code::kResourceExhausted);
}

INSTANTIATE_TEST_SUITE_P(Drivers, FileSystemConformance, ::testing::Values("posix", "memory", "fault"),
                         [](const auto& driver) { return std::string(driver.param); });

// ------------------------------------------------------------------ what only real files can do

TEST(PosixFileSystemTest, FilesAndDirectoriesAreTheUsersAlone) {
    const TemporaryDirectory directory;
    FileSystem& files = posix_file_system();
    ASSERT_TRUE(files.create(directory.path() + "/a").is_ok());
    ASSERT_TRUE(files.put_atomic(directory.path() + "/b", {}).is_ok());
    ASSERT_TRUE(files.create_directories(directory.path() + "/c/d").is_ok());
    struct stat info {};
    for (const auto& [name, mode] : {std::pair{"/a", 0600U}, {"/b", 0600U}, {"/c", 0700U}, {"/c/d", 0700U}}) {
        ASSERT_EQ(::stat((directory.path() + name).c_str(), &info), 0);
        EXPECT_EQ(info.st_mode & 0777U, mode) << name;
    }
}

TEST(PosixFileSystemTest, AFifoIsRefusedAtOnce) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/fifo";
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    EXPECT_EQ(posix_file_system().open(path).status().code(), Code::kInvalidArgument);
}

TEST(PosixFileSystemTest, ASymbolicLinkIsRefused) {
    const TemporaryDirectory directory;
    ASSERT_TRUE(posix_file_system().create(directory.path() + "/real").is_ok());
    const std::string link = directory.path() + "/link";
    ASSERT_EQ(::symlink("real", link.c_str()), 0);
    EXPECT_EQ(posix_file_system().open(link).status().code(), Code::kInvalidArgument);
    const auto entries = posix_file_system().list(directory.path());
    ASSERT_EQ(entries->size(), 2U);
    EXPECT_FALSE((*entries)[0].is_regular || (*entries)[0].is_directory) << "a link is neither";
}

TEST(PosixFileSystemTest, ADirectoryAndADeviceAreRefused) {
    const TemporaryDirectory directory;
    EXPECT_EQ(posix_file_system().open(directory.path()).status().code(), Code::kInvalidArgument);
    EXPECT_EQ(posix_file_system().open("/dev/zero").status().code(), Code::kInvalidArgument);
}

// Runs in a child, whose limits are its own. 0: all was as expected.
int append_beyond_the_limit(const std::string& path) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {100, 100};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    auto file = posix_file_system().create(path);
    if (!file.is_ok()) return 2;
    const std::string bytes(150, 'x');
    const base::Status status = (*file)->append(base::as_bytes(bytes));
    return status.code() == Code::kResourceExhausted && (*file)->size() == 100 ? 0 : 1;
}

TEST(PosixFileSystemTest, AShortWriteIsContinuedAndItsErrorTold) {
    // The size limit of a process stands in for a full disk: the first write is short, the next fails.
    const TemporaryDirectory directory;
    EXPECT_EXIT(::_exit(append_beyond_the_limit(directory.path() + "/a")), ::testing::ExitedWithCode(0), "");
}

// ------------------------------------------------------------------ the doubles themselves

TEST(MemoryFileSystemTest, APowerLossTakesWhatWasNotSynced) {
    for (const UnsyncedBytes unsynced :
         {UnsyncedBytes::kLost, UnsyncedBytes::kHalf, UnsyncedBytes::kZeroed}) {
        MemoryFileSystem files;
        auto file = files.create("/a");
        ASSERT_TRUE(file.is_ok());
        ASSERT_TRUE((*file)->append(base::as_bytes("synced")).is_ok());
        ASSERT_TRUE((*file)->sync().is_ok());
        ASSERT_TRUE((*file)->append(base::as_bytes("lost")).is_ok());
        files.lose_power(unsynced);
        const std::string left = text(files.content("/a"));
        switch (unsynced) {
            case UnsyncedBytes::kLost: EXPECT_EQ(left, "synced"); break;
            case UnsyncedBytes::kHalf: EXPECT_EQ(left, "syncedlo"); break;
            case UnsyncedBytes::kZeroed: EXPECT_EQ(left, std::string("synced\0\0\0\0", 10)); break;
        }
    }
}

TEST(FaultFileSystemTest, FailsFromTheChosenCallOn) {
    MemoryFileSystem memory;
    FaultPlan plan;
    plan.fail_at_call = 2;
    plan.error = ENOSPC;
    FaultFileSystem files(memory, plan);
    auto file = files.create("/a");                               // 0
    ASSERT_TRUE((*file)->append(base::as_bytes("one")).is_ok());  // 1
    EXPECT_EQ((*file)->append(base::as_bytes("two")).code(), Code::kResourceExhausted);
    EXPECT_FALSE((*file)->sync().is_ok());
    EXPECT_EQ(files.calls(), 4U);
    EXPECT_EQ(text(memory.content("/a")), "one");
}

TEST(FaultFileSystemTest, FailsOneCallAlone) {
    MemoryFileSystem memory;
    FaultPlan plan;
    plan.fail_at_call = 1;
    plan.keep_failing = false;
    FaultFileSystem files(memory, plan);
    auto file = files.create("/a");
    EXPECT_EQ((*file)->append(base::as_bytes("one")).code(), Code::kDataLoss);
    EXPECT_TRUE((*file)->append(base::as_bytes("two")).is_ok());
}

TEST(FaultFileSystemTest, AFullDiskTakesWhatFits) {
    MemoryFileSystem memory;
    FaultPlan plan;
    plan.space_bytes = 5;
    FaultFileSystem files(memory, plan);
    auto file = files.create("/a");
    EXPECT_TRUE((*file)->append(base::as_bytes("123")).is_ok());
    EXPECT_EQ((*file)->append(base::as_bytes("456")).code(), Code::kResourceExhausted);
    EXPECT_EQ((*file)->size(), 5U);
    EXPECT_EQ(text(memory.content("/a")), "12345");
}

}  // namespace
}  // namespace traindbg::storage
