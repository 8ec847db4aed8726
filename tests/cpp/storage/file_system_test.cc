#include "traindbg/storage/file_system.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

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
    base::ByteBuffer memory(6, std::byte{'-'});
    EXPECT_EQ(*(*read)->read_into(6, memory), 5U);
    EXPECT_EQ(text(memory), "world-");
    EXPECT_EQ(*(*read)->read_into(11, memory), 0U);
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

TEST_P(FileSystemConformance, ADirectoryIsRemovedOnceItIsEmpty) {
    ASSERT_TRUE(files_->create_directories(at("a/b")).is_ok());
    ASSERT_TRUE(files_->create(at("a/b/c")).is_ok());
    ASSERT_TRUE(files_->create_directories(at("ab")).is_ok());
    EXPECT_FALSE(files_->remove(at("a")).is_ok());
    EXPECT_FALSE(files_->remove(at("a/b")).is_ok());
    EXPECT_TRUE(files_->exists(at("a/b/c")));
    ASSERT_TRUE(files_->remove(at("a/b/c")).is_ok());
    EXPECT_FALSE(files_->remove(at("a")).is_ok());
    EXPECT_TRUE(files_->remove(at("a/b")).is_ok());
    EXPECT_TRUE(files_->remove(at("a")).is_ok());
    EXPECT_FALSE(files_->exists(at("a")));
    EXPECT_TRUE(files_->exists(at("ab")));
    EXPECT_EQ(files_->remove(at("a")).code(), Code::kNotFound);
}

TEST_P(FileSystemConformance, ReadWholeRefusesAFileThatIsTooLarge) {
    ASSERT_TRUE(files_->put_atomic(at("a"), base::as_bytes("12345")).is_ok());
    EXPECT_EQ(text(*read_whole(*files_, at("a"), 5)), "12345");
    EXPECT_EQ(read_whole(*files_, at("a"), 4).status().code(), Code::kResourceExhausted);
}

TEST_P(FileSystemConformance, AMappingHoldsTheBytesAndOutlivesTheFile) {
    ASSERT_TRUE(files_->put_atomic(at("a"), base::as_bytes("0123456789")).is_ok());
    std::unique_ptr<Mapping> mapping;
    {
        auto file = files_->open(at("a"));
        ASSERT_TRUE(file.is_ok());
        auto mapped = (*file)->map(3, 4);
        ASSERT_TRUE(mapped.is_ok()) << mapped.status().to_string();
        mapping = std::move(mapped).value();
        EXPECT_EQ((*file)->map(3, 8).status().code(), Code::kDataLoss) << "one byte too many";
        EXPECT_TRUE((*file)->map(10, 0).value()->bytes().empty());
    }
    ASSERT_TRUE(files_->remove(at("a")).is_ok());
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(mapping->bytes().data()), mapping->bytes().size()),
              "3456");
}

TEST_P(FileSystemConformance, AMappingMayBeginAnywhere) {
    base::ByteBuffer bytes(20'000);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
    ASSERT_TRUE(files_->put_atomic(at("a"), bytes).is_ok());
    auto file = files_->open(at("a"));
    for (const std::uint64_t offset : {0U, 1U, 4095U, 4096U, 4097U, 12'345U}) {
        auto mapping = (*file)->map(offset, 5000);
        ASSERT_TRUE(mapping.is_ok());
        const base::ByteSpan expected = base::ByteSpan(bytes).subspan(offset, 5000);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), (*mapping)->bytes().begin(),
                               (*mapping)->bytes().end()))
            << offset;
    }
}

TEST_P(FileSystemConformance, OneAtATimeHoldsALock) {
    EXPECT_EQ(files_->try_lock(at("a"), LockFile::kMustExist).status().code(), Code::kNotFound);
    EXPECT_EQ(files_->try_lock(at("no/a"), LockFile::kIsMade).status().code(), Code::kNotFound);
    EXPECT_FALSE(files_->exists(at("a")));
    auto lock = files_->try_lock(at("a"), LockFile::kIsMade);
    ASSERT_TRUE(lock.is_ok()) << lock.status().to_string();
    for (const LockFile file : {LockFile::kMustExist, LockFile::kIsMade})
        EXPECT_EQ(files_->try_lock(at("a"), file).status().code(), Code::kUnavailable);
    lock->reset();
    EXPECT_TRUE(files_->exists(at("a")));
    EXPECT_TRUE(files_->try_lock(at("a"), LockFile::kMustExist).is_ok());
    EXPECT_TRUE(files_->try_lock(at("a"), LockFile::kIsMade).is_ok());
}

TEST_P(FileSystemConformance, BulkBytesAreReadBackWhateverTheirSizeAndPlace) {
    // Sizes and alignments around the blocks and the least stretch that goes past the page cache.
    auto file = files_->create_bulk(at("a"));
    ASSERT_TRUE(file.is_ok()) << file.status().to_string();
    alignas(kDirectAlignment) static std::array<std::byte, kLeastDirectBytes * 5> source;
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::byte>(i * 13 >> 3);
    base::ByteBuffer expected;
    const auto put = [&](std::size_t from, std::size_t size) {
        const base::ByteSpan piece = base::ByteSpan(source).subspan(from, size);
        ASSERT_TRUE((*file)->append(piece).is_ok());
        expected.insert(expected.end(), piece.begin(), piece.end());
        ASSERT_EQ((*file)->size(), expected.size());
    };
    put(0, 4096);
    put(4096, kLeastDirectBytes * 3);        // whole blocks in their place
    put(64, 100);                            // a little
    put(100, kLeastDirectBytes * 2 + 5000);  // lies as the file does: head, blocks, tail
    put(7, kLeastDirectBytes * 2);           // lies otherwise: no block of it can go directly
    put(expected.size() % kDirectAlignment, kLeastDirectBytes + 3 * kDirectAlignment);
    put(0, 0);
    ASSERT_TRUE((*file)->sync().is_ok());
    EXPECT_TRUE(*read_whole(*files_, at("a")) == expected);
}

TEST_P(FileSystemConformance, SettingRoomAsideChangesNoSize) {
    auto file = files_->create(at("a"));
    ASSERT_TRUE(file.is_ok());
    const base::Status status = (*file)->reserve(1 << 20);
    EXPECT_TRUE(status.is_ok() || status.code() == Code::kUnsupported) << status.to_string();
    EXPECT_EQ((*file)->size(), 0U);
    ASSERT_TRUE((*file)->append(base::as_bytes("x")).is_ok());
    EXPECT_EQ(text(*read_whole(*files_, at("a"))), "x");
    EXPECT_GT(*files_->free_bytes(root_), 0U);
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

TEST(PosixFileSystemTest, TheLockEndsWithTheProcessThatHoldsIt) {
    const TemporaryDirectory directory;
    const std::string path = directory.path() + "/a";
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        auto lock = posix_file_system().try_lock(path, LockFile::kIsMade);
        const char word = lock.is_ok() ? 'y' : 'n';
        if (::write(ready[1], &word, 1) != 1) ::_exit(1);
        while (true) ::pause();
    }
    char word = 0;
    ASSERT_EQ(::read(ready[0], &word, 1), 1);
    ASSERT_EQ(word, 'y');
    EXPECT_EQ(posix_file_system().try_lock(path, LockFile::kIsMade).status().code(), Code::kUnavailable);
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_TRUE(posix_file_system().try_lock(path, LockFile::kMustExist).is_ok());
    ::close(ready[0]);
    ::close(ready[1]);
}

// How many open files of this process lie below `directory`.
int count_open_below(const std::string& path) {
    const std::string directory = std::filesystem::canonical(path).string();
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        const std::string target = std::filesystem::read_symlink(entry.path(), error).string();
        count += target.starts_with(directory + "/") ? 1 : 0;
    }
    return count;
}

TEST(PosixFileSystemTest, AChildMadeByForkHasNothingOfWhatIsWritten) {
    const TemporaryDirectory directory;
    FileSystem& files = posix_file_system();
    auto file = files.create(directory.path() + "/a");
    auto bulk = files.create_bulk(directory.path() + "/b");
    auto lock = files.try_lock(directory.path() + "/lock", LockFile::kIsMade);
    ASSERT_TRUE(file.is_ok() && bulk.is_ok() && lock.is_ok());
    ASSERT_TRUE((*file)->append(base::as_bytes("parent")).is_ok());
    auto reading = files.open(directory.path() + "/a");
    ASSERT_TRUE(reading.is_ok());
    int begun[2];
    int done[2];
    ASSERT_EQ(::pipe(begun), 0);
    ASSERT_EQ(::pipe(done), 0);
    const pid_t child = ::fork();
    if (child == 0) {
        ::close(done[1]);
        // What is read goes on there, the rest is refused.
        int wrong = count_open_below(directory.path()) == 1 ? 0 : 1;
        if (!(*reading)->read_at(0, 6).is_ok() || (*reading)->read_at(0, 6)->size() != 6) wrong |= 2;
        if ((*file)->append(base::as_bytes("child")).is_ok() || (*file)->sync().is_ok()) wrong |= 4;
        if ((*bulk)->append(base::as_bytes("child")).is_ok()) wrong |= 8;
        // A file of the child's own has another number, and is not closed with those of the parent.
        auto own = files.create(directory.path() + "/c");
        file->reset();
        bulk->reset();
        lock->reset();
        if (!own.is_ok() || !(*own)->append(base::as_bytes("own")).is_ok()) wrong |= 16;
        if (files.try_lock(directory.path() + "/lock", LockFile::kIsMade).is_ok()) wrong |= 32;
        // Lives on until the parent has let the lock go and has had it again.
        char word = 0;
        if (::write(begun[1], &word, 1) != 1 || ::read(done[0], &word, 1) != 0) wrong |= 64;
        ::_exit(wrong);
    }
    char word = 0;
    ASSERT_EQ(::read(begun[0], &word, 1), 1);
    ASSERT_TRUE((*file)->append(base::as_bytes(" goes on")).is_ok());
    lock->reset();
    EXPECT_TRUE(files.try_lock(directory.path() + "/lock", LockFile::kMustExist).is_ok());
    for (const int end : {begun[0], begun[1], done[0], done[1]}) ::close(end);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(text(*read_whole(files, directory.path() + "/a")), "parent goes on");
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

std::atomic<std::uint64_t> signals_handled{0};

// A training's handlers may run in any of its threads, and a call that they interrupt is not begun anew.
constexpr unsigned kFewSignals = 100;

TEST(PosixFileSystemTest, SignalsAreNotNoticed) {
    struct sigaction action {};
    action.sa_handler = [](int) { signals_handled.fetch_add(1); };  // no SA_RESTART
    struct sigaction before {};
    ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
    const TemporaryDirectory directory;
    FileSystem& files = posix_file_system();
    constexpr std::size_t kPiece = std::size_t{64} << 10;
    constexpr std::size_t kBulk = std::size_t{3} << 20;
    base::ByteBuffer bytes(kBulk);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 4099);
    const auto work = [&] {
        // On a busy machine few signals come within twenty.
        const auto goes_on = [](int rounds) {
            return rounds < 20 || (signals_handled.load() <= kFewSignals && rounds < 500);
        };
        for (int round = 0; goes_on(round); ++round) {
            const std::string name = directory.path() + "/" + std::to_string(round);
            auto file = files.create(name);
            ASSERT_TRUE(file.is_ok()) << file.status().to_string();
            const base::Status reserved = (*file)->reserve(kBulk);
            EXPECT_TRUE(reserved.is_ok() || reserved.code() == Code::kUnsupported) << reserved.to_string();
            for (std::size_t at = 0; at < bytes.size(); at += kPiece)
                ASSERT_TRUE((*file)->append(base::ByteSpan(bytes).subspan(at, kPiece)).is_ok());
            EXPECT_TRUE((*file)->sync().is_ok());
            EXPECT_TRUE(!reserved.is_ok() || (*file)->reserve(0).is_ok());
            auto bulk = files.create_bulk(name + "b");
            ASSERT_TRUE(bulk.is_ok()) << bulk.status().to_string();
            ASSERT_TRUE((*bulk)->append(bytes).is_ok());
            EXPECT_TRUE((*bulk)->sync().is_ok());
            ASSERT_TRUE(files.put_atomic(name + "a", bytes).is_ok());
            EXPECT_TRUE(files.try_lock(name + "l", LockFile::kIsMade).is_ok());
            EXPECT_TRUE(files.list(directory.path()).is_ok());
            for (const char* const kind : {"", "b", "a"}) {
                const auto read = read_whole(files, name + kind);
                ASSERT_TRUE(read.is_ok()) << read.status().to_string();
                EXPECT_TRUE(*read == bytes) << name << kind;
                EXPECT_TRUE(files.remove(name + kind).is_ok());
            }
        }
    };
    std::atomic<bool> is_done{false};
    std::jthread working([&] {
        work();
        is_done = true;
    });
    const pthread_t thread = working.native_handle();
    while (!is_done) {
        const std::uint64_t handled = signals_handled.load();
        if (::pthread_kill(thread, SIGUSR1) != 0) break;
        // One after the other: else the thread does nothing but handle them.
        while (signals_handled.load() == handled && !is_done) std::this_thread::yield();
    }
    working.join();
    ASSERT_EQ(::sigaction(SIGUSR1, &before, nullptr), 0);
    EXPECT_GT(signals_handled.load(), kFewSignals);
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
            case UnsyncedBytes::kRandomPages: FAIL(); break;
        }
    }
}

TEST(MemoryFileSystemTest, NamesThatWereNotSyncedMayBeLostOrComeBack) {
    MemoryFileSystem files;
    ASSERT_TRUE(files.create_directories("/run").is_ok());
    ASSERT_TRUE(files.put_atomic("/run/RUN.json", base::as_bytes("{}")).is_ok());
    ASSERT_TRUE(files.create_directory("/run/w0000").is_ok());
    auto first = files.create("/run/w0000/0");
    ASSERT_TRUE((*first)->append(base::as_bytes("one")).is_ok());
    EXPECT_FALSE(files.after_power_loss({.names = UnsyncedNames::kLost})->exists("/run/w0000"))
        << "neither the file nor its directory was synced";
    ASSERT_TRUE((*first)->sync().is_ok());
    EXPECT_EQ(text(files.after_power_loss({.names = UnsyncedNames::kLost})->content("/run/w0000/0")), "one");
    auto second = files.create("/run/w0000/1");
    ASSERT_TRUE((*second)->append(base::as_bytes("two")).is_ok());
    ASSERT_TRUE(files.remove("/run/w0000/0").is_ok());
    const auto lost = files.after_power_loss({.names = UnsyncedNames::kLost});
    EXPECT_EQ(text(lost->content("/run/w0000/0")), "one") << "removed, and back";
    EXPECT_FALSE(lost->exists("/run/w0000/1"));
    const auto kept = files.after_power_loss({.names = UnsyncedNames::kKept});
    EXPECT_FALSE(kept->exists("/run/w0000/0"));
    EXPECT_TRUE(kept->exists("/run/w0000/1"));
    EXPECT_TRUE(kept->content("/run/w0000/1").empty()) << "its name is there, its bytes are not";
    ASSERT_TRUE((*second)->sync().is_ok());
    const auto after = files.after_power_loss({.names = UnsyncedNames::kLost});
    EXPECT_FALSE(after->exists("/run/w0000/0"));
    EXPECT_EQ(text(after->content("/run/w0000/1")), "two");
}

TEST(MemoryFileSystemTest, PagesAreMixedBySeedAndSyncedOnesNever) {
    MemoryFileSystem files;
    auto file = files.create("/a");
    const base::ByteBuffer synced(10'000, std::byte{1});
    const base::ByteBuffer unsynced(50'000, std::byte{2});
    ASSERT_TRUE((*file)->append(synced).is_ok());
    ASSERT_TRUE((*file)->sync().is_ok());
    ASSERT_TRUE((*file)->append(unsynced).is_ok());
    bool some_kept = false;
    bool some_zero = false;
    bool some_cut = false;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        const PowerLoss loss{UnsyncedBytes::kRandomPages, UnsyncedNames::kKept, seed};
        const base::ByteBuffer left = files.after_power_loss(loss)->content("/a");
        EXPECT_TRUE(left == files.after_power_loss(loss)->content("/a")) << "the same seed, the same loss";
        ASSERT_GE(left.size(), synced.size());
        EXPECT_TRUE(std::equal(synced.begin(), synced.end(), left.begin()));
        some_cut |= left.size() < synced.size() + unsynced.size();
        const auto tail = base::ByteSpan(left).subspan(synced.size());
        some_kept |= std::find(tail.begin(), tail.end(), std::byte{2}) != tail.end();
        some_zero |= std::find(tail.begin(), tail.end(), std::byte{0}) != tail.end();
    }
    EXPECT_TRUE(some_kept && some_zero && some_cut);
}

TEST(FaultFileSystemTest, AnAppendThatFailsMayHaveWrittenAPart) {
    MemoryFileSystem memory;
    FaultPlan plan;
    plan.fail_at_call = 1;
    plan.tear_append = true;
    FaultFileSystem files(memory, plan);
    auto file = files.create("/a");
    EXPECT_FALSE((*file)->append(base::as_bytes("123456")).is_ok());
    EXPECT_EQ((*file)->size(), 3U);
    EXPECT_EQ(text(memory.content("/a")), "123");
}

TEST(FaultFileSystemTest, ARemovedFileMakesRoom) {
    MemoryFileSystem memory;
    FaultPlan plan;
    plan.space_bytes = 10;
    FaultFileSystem files(memory, plan);
    auto aside = files.create("/aside");
    ASSERT_TRUE((*aside)->reserve(6).is_ok());
    EXPECT_EQ(*files.free_bytes("/"), 4U);
    EXPECT_EQ((*aside)->reserve(11).code(), Code::kResourceExhausted);
    auto file = files.create("/a");
    EXPECT_EQ((*file)->append(base::as_bytes("12345")).code(), Code::kResourceExhausted);
    ASSERT_TRUE(files.remove("/aside").is_ok());
    EXPECT_TRUE((*file)->append(base::as_bytes("5")).is_ok()) << "what is missing, once there is room";
    EXPECT_EQ(text(memory.content("/a")), "12345");
    files.add_space(3);
    EXPECT_EQ(*files.free_bytes("/"), 8U);
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
