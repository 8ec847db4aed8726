#include "traindbg/storage/control_block.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "storage/temporary_directory.h"
#include "traindbg/base/clock.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::storage {
namespace {

using base::Code;
using testing::TemporaryDirectory;

class ControlBlockTest : public ::testing::Test {
  protected:
    void write(std::string content) {
        const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
        ASSERT_EQ(::write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
        ::close(file);
    }
    [[nodiscard]] std::string content() const {
        const auto bytes = read_whole(posix_file_system(), path_);
        return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
    }

    TemporaryDirectory directory_;
    std::string path_ = directory_.path() + "/control";
};

TEST_F(ControlBlockTest, ANewBlockIsAllZero) {
    auto block = ControlBlock::open(path_);
    ASSERT_TRUE(block.is_ok()) << block.status().to_string();
    EXPECT_FALSE((*block)->stop_requested());
    EXPECT_EQ((*block)->state(), TrainingState::kNotAttached);
    EXPECT_EQ((*block)->step(), 0U);
    EXPECT_EQ((*block)->pid(), 0);
    EXPECT_EQ((*block)->last_step_nanos(), 0);
    struct stat info {};
    ASSERT_EQ(::stat(path_.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777U, 0600U);
    EXPECT_EQ(info.st_size, 4096);
    EXPECT_EQ(posix_file_system().list(directory_.path())->size(), 1U) << "no temporary file stays";
}

TEST_F(ControlBlockTest, CorrectionsAreCountedAndSeenByTheOther) {
    auto supervisor = ControlBlock::open(path_);
    auto training = ControlBlock::open(path_);
    ASSERT_TRUE(supervisor.is_ok() && training.is_ok());
    EXPECT_EQ((*training)->corrections_asked(), CorrectionsAsked{});
    (*supervisor)->request_lower_lr();
    (*supervisor)->request_lower_lr();
    (*supervisor)->request_roll_back(1ULL << 40U);
    CorrectionsAsked expected{.lower_lr = 2, .roll_back = 1, .bad_since = 1ULL << 40U};
    EXPECT_EQ((*training)->corrections_asked(), expected);
    EXPECT_EQ(content().at(93), 1) << "docs/format/control.md: the sixth byte of 2^40";
    (*supervisor)->request_checkpoint(7);
    expected.bad_since = 7;
    expected.checkpoint = 1;
    EXPECT_EQ((*training)->corrections_asked(), expected);
    EXPECT_FALSE((*training)->stop_requested());
    const std::string page = content();
    EXPECT_EQ(page.at(76), 2) << "docs/format/control.md";
    EXPECT_EQ(page.at(80), 1);
    EXPECT_EQ(page.at(84), 1);
    EXPECT_EQ(page.at(88), 7);
    EXPECT_EQ(page.at(93), 0);
}

TEST_F(ControlBlockTest, TwoMappingsSeeEachOther) {
    auto supervisor = ControlBlock::open(path_);
    auto training = ControlBlock::open(path_);
    ASSERT_TRUE(supervisor.is_ok() && training.is_ok());
    const std::int64_t before = base::monotonic_nanos();
    (*training)->publish_pid(4711);
    (*training)->publish_state(TrainingState::kAttached);
    (*training)->publish_step(42);
    EXPECT_EQ((*supervisor)->pid(), 4711);
    EXPECT_EQ((*supervisor)->state(), TrainingState::kAttached);
    EXPECT_EQ((*supervisor)->step(), 42U);
    EXPECT_GE((*supervisor)->last_step_nanos(), before);
    (*supervisor)->request_stop();
    EXPECT_TRUE((*training)->stop_requested());
    EXPECT_EQ((*training)->flight_copies_requested(), 0U);
    EXPECT_EQ((*training)->plans_announced(), 0U);
    for (std::uint32_t i = 1; i < 3; ++i) {
        (*supervisor)->request_flight_copy();
        EXPECT_EQ((*training)->flight_copies_requested(), i);
    }
    (*supervisor)->announce_plan();
    EXPECT_EQ((*training)->plans_announced(), 1U);
}

TEST_F(ControlBlockTest, AnotherProcessSeesTheStop) {
    auto block = ControlBlock::open(path_);
    ASSERT_TRUE(block.is_ok());
    const pid_t child = ::fork();
    if (child == 0) {
        auto own = ControlBlock::open(path_);
        if (!own.is_ok()) ::_exit(1);
        (*own)->request_stop();
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_TRUE((*block)->stop_requested());
}

TEST_F(ControlBlockTest, ManyOpenersAtOnceShareOnePage) {
    constexpr int kOpeners = 8;
    std::vector<base::Result<std::unique_ptr<ControlBlock>>> blocks;
    for (int i = 0; i < kOpeners; ++i) blocks.emplace_back(base::Status(Code::kInternal, "not opened"));
    {
        std::vector<std::jthread> threads;
        for (int i = 0; i < kOpeners; ++i)
            threads.emplace_back([&, i] { blocks[static_cast<std::size_t>(i)] = ControlBlock::open(path_); });
    }
    ASSERT_TRUE(blocks[0].is_ok()) << blocks[0].status().to_string();
    (*blocks[0])->publish_step(7);
    for (auto& block : blocks) {
        ASSERT_TRUE(block.is_ok()) << block.status().to_string();
        EXPECT_EQ((*block)->step(), 7U);
    }
}

TEST_F(ControlBlockTest, LayoutIsThatOfTheDocument) {
    auto block = ControlBlock::open(path_);
    ASSERT_TRUE(block.is_ok());
    (*block)->request_stop();
    (*block)->publish_step(0x0102030405060708);
    (*block)->publish_pid(0x1112131415161718);
    (*block)->publish_state(TrainingState::kEnded);
    const std::string bytes = content();
    ASSERT_EQ(bytes.size(), 4096U);
    const auto u32 = [&](std::size_t offset) {
        std::uint32_t value = 0;
        std::memcpy(&value, bytes.data() + offset, sizeof(value));
        return value;
    };
    const auto u64 = [&](std::size_t offset) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data() + offset, sizeof(value));
        return value;
    };
    EXPECT_EQ(bytes.substr(0, 8), "TDBGCTL1");
    EXPECT_EQ(u32(8), 1U);
    EXPECT_EQ(u32(64), 1U);
    EXPECT_EQ(u64(128), 0x0102030405060708U);
    EXPECT_EQ(u64(136), static_cast<std::uint64_t>((*block)->last_step_nanos()));
    EXPECT_EQ(u64(144), 0x1112131415161718U);
    EXPECT_EQ(u32(152), 3U);
}

TEST_F(ControlBlockTest, AFileThatWasCutOffEndsNobody) {
    auto supervisor = ControlBlock::open(path_);
    auto training = ControlBlock::open(path_);
    ASSERT_TRUE(supervisor.is_ok() && training.is_ok());
    ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
    (*training)->publish_step(1);  // a store into the mapping would be a SIGBUS
    (*training)->publish_state(TrainingState::kEnded);
    EXPECT_FALSE((*training)->stop_requested());
    (*supervisor)->request_stop();
    EXPECT_TRUE((*training)->stop_requested());
    EXPECT_EQ((*supervisor)->state(), TrainingState::kEnded);
}

TEST_F(ControlBlockTest, OfFastStepsTheLastIsToldWithTheState) {
    auto supervisor = ControlBlock::open(path_);
    auto training = ControlBlock::open(path_);
    ASSERT_TRUE(supervisor.is_ok() && training.is_ok());
    for (std::uint64_t step = 1; step <= 10'000; ++step) (*training)->publish_step(step);
    EXPECT_GE((*supervisor)->step(), 1U);
    EXPECT_LE((*supervisor)->step(), 10'000U);
    (*training)->publish_state(TrainingState::kStopping);
    EXPECT_EQ((*supervisor)->step(), 10'000U);
}

TEST_F(ControlBlockTest, BlocksLeaveNoDescriptorBehind) {
    const auto open_descriptors = [] { return posix_file_system().list("/proc/self/fd")->size(); };
    ASSERT_TRUE(ControlBlock::open(path_).is_ok());
    const std::size_t before = open_descriptors();
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(ControlBlock::open(path_).is_ok());
    write("too short");
    for (int i = 0; i < 100; ++i) ASSERT_FALSE(ControlBlock::open(path_).is_ok());
    EXPECT_EQ(open_descriptors(), before);
}

TEST_F(ControlBlockTest, AShortFileIsRefused) {
    write("TDBGCTL1");
    EXPECT_EQ(ControlBlock::open(path_).status().code(), Code::kDataLoss);
    write("");
    EXPECT_EQ(ControlBlock::open(path_).status().code(), Code::kDataLoss);
}

TEST_F(ControlBlockTest, AForeignFileIsRefused) {
    write(std::string(4096, 'x'));
    const base::Status status = ControlBlock::open(path_).status();
    EXPECT_EQ(status.code(), Code::kDataLoss);
    EXPECT_NE(status.message().find("is not a control block"), std::string::npos);
    EXPECT_EQ(content(), std::string(4096, 'x')) << "and is left as it was";
}

TEST_F(ControlBlockTest, ANewerVersionIsRefused) {
    ASSERT_TRUE(ControlBlock::open(path_).is_ok());
    std::string bytes = content();
    bytes[8] = 2;
    write(bytes);
    EXPECT_EQ(ControlBlock::open(path_).status().code(), Code::kUnsupported);
}

TEST_F(ControlBlockTest, AStateOfANewerTrainingCountsAsAttached) {
    ASSERT_TRUE(ControlBlock::open(path_).is_ok());
    std::string bytes = content();
    bytes[152] = 99;
    write(bytes);
    EXPECT_EQ((*ControlBlock::open(path_))->state(), TrainingState::kAttached);
}

TEST_F(ControlBlockTest, ALinkAFifoAndADirectoryAreRefused) {
    ASSERT_EQ(::symlink("elsewhere", path_.c_str()), 0);
    EXPECT_EQ(ControlBlock::open(path_).status().code(), Code::kInvalidArgument);
    const std::string fifo = directory_.path() + "/fifo";
    ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_EQ(ControlBlock::open(fifo).status().code(), Code::kInvalidArgument);
    EXPECT_FALSE(ControlBlock::open(directory_.path()).is_ok());
    EXPECT_EQ(ControlBlock::open(directory_.path() + "/none/control").status().code(), Code::kNotFound);
}

TEST_F(ControlBlockTest, WhoLocksTheFileSupervisesAlsoOnceTheFileIsRemoved) {
    const auto training = ControlBlock::open(path_);
    ASSERT_TRUE(training.is_ok());
    EXPECT_FALSE((*training)->is_supervised());
    const int supervisor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_EQ(::flock(supervisor, LOCK_EX | LOCK_NB), 0) << "asking has locked nothing";
    ASSERT_EQ(::unlink(path_.c_str()), 0);
    EXPECT_TRUE((*training)->is_supervised());
    ::close(supervisor);
    EXPECT_FALSE((*training)->is_supervised());
}

}  // namespace
}  // namespace traindbg::storage
