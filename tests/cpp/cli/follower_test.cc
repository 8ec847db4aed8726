#include "traindbg/cli/follower.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "format/sample_records.h"
#include "traindbg/storage/fault_file_system.h"
#include "traindbg/storage/memory_file_system.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::cli {
namespace {

using namespace std::chrono_literals;
using storage::FaultFileSystem;
using storage::FaultPlan;
using storage::FileCall;
using storage::MemoryFileSystem;

constexpr std::uint64_t kSteps = 20;

class FollowerTest : public ::testing::Test {
  protected:
    explicit FollowerTest(int error = ETIMEDOUT) : error_(error) {}

    void SetUp() override {
        ASSERT_TRUE(memory_.create_directories("/run").is_ok());
        ASSERT_TRUE(
            memory_.put_atomic("/run/RUN.json", base::as_bytes(traindbg::testing::kSampleRunJson)).is_ok());
        record();
    }

    // What one worker more records.
    void record() {
        write::WriterOptions options;
        options.run_directory = "/run";
        options.seals_parts = false;
        auto writer = write::RunWriter::open(memory_, options);
        ASSERT_TRUE(writer.is_ok()) << writer.status().to_string();
        for (const model::TensorInfo& info : traindbg::testing::sample_tensors()) (*writer)->add_tensor(info);
        for (std::uint64_t i = 0; i < kSteps; ++i) (*writer)->append(traindbg::testing::sample_step(i));
        ASSERT_TRUE((*writer)->close(60s).is_ok());
    }

    std::unique_ptr<Follower> follow() {
        FollowerOptions options;
        options.run = "/run";
        options.keeps_verdict = false;
        options.retry_after = 1ms;
        options.give_up_after = give_up_after_;
        options.give_up_at_end_after = give_up_at_end_after_;
        auto follower = Follower::open(std::move(options), console_, files_);
        EXPECT_TRUE(follower.is_ok()) << follower.status().to_string();
        return std::move(follower).value();
    }

    // The network between us and the run.
    std::atomic<bool> is_away_ = false;
    std::string only_below_ = "/run";
    int error_;
    std::chrono::nanoseconds give_up_after_ = 60s;
    std::chrono::nanoseconds give_up_at_end_after_ = 60s;
    MemoryFileSystem memory_;
    FaultFileSystem files_{memory_, plan()};
    Console console_;

  private:
    FaultPlan plan() {
        FaultPlan plan;
        plan.error = error_;
        plan.fails = [this](FileCall call, const std::string& path) {
            return is_away_ && path.starts_with(only_below_) &&
                   (call == FileCall::kList || call == FileCall::kRead || call == FileCall::kOpen);
        };
        return plan;
    }
};

TEST_F(FollowerTest, ARunThatWasAwayIsJudgedFromWhereItLeftOff) {
    const auto follower = follow();
    is_away_ = true;
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(follower->advance(1s));
        std::this_thread::sleep_for(2ms);
    }
    ASSERT_EQ(follower->troubles().size(), 1U) << "said once";
    EXPECT_NE(follower->troubles()[0].find("looking again"), std::string::npos) << follower->troubles()[0];
    is_away_ = false;
    std::this_thread::sleep_for(2ms);
    follower->finish([] { return false; });
    EXPECT_EQ(follower->steps_seen(), kSteps);
    ASSERT_EQ(follower->troubles().size(), 2U);
    EXPECT_NE(follower->troubles()[1].find("can be read again"), std::string::npos)
        << follower->troubles()[1];
}

TEST_F(FollowerTest, OneWorkerThatIsAwayAtTheEndIsNotTakenForOneThatHasEnded) {
    const auto follower = follow();
    EXPECT_FALSE(follower->advance(1s));
    EXPECT_EQ(follower->steps_seen(), kSteps);
    only_below_ = "/run/w0001";
    is_away_ = true;
    record();
    std::thread coming_back([this] {
        std::this_thread::sleep_for(20ms);
        is_away_ = false;
    });
    follower->finish([] { return false; });
    coming_back.join();
    EXPECT_EQ(follower->steps_seen(), 2 * kSteps);
}

TEST_F(FollowerTest, ARunThatStaysAwayIsGivenUp) {
    give_up_after_ = 20ms;
    const auto follower = follow();
    is_away_ = true;
    while (follower->troubles().size() < 2) {
        follower->advance(1s);
        std::this_thread::sleep_for(1ms);
    }
    EXPECT_NE(follower->troubles()[1].find("no longer judged"), std::string::npos) << follower->troubles()[1];
    is_away_ = false;
    follower->finish([] { return false; });
}

// Of a directory that is not there, rather than a network.
class RunThatIsGoneTest : public FollowerTest {
  protected:
    RunThatIsGoneTest() : FollowerTest(ENOENT) {}
};

TEST_F(RunThatIsGoneTest, IsSaidOnceAndNotWaitedForAtTheEnd) {
    const auto follower = follow();
    is_away_ = true;
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(follower->advance(1s));
        std::this_thread::sleep_for(2ms);
    }
    follower->finish([] { return false; });  // at once: it would be given a minute else
    ASSERT_EQ(follower->troubles().size(), 1U) << follower->troubles()[1];
    EXPECT_EQ(follower->troubles()[0],
              "/run: the run's directory is gone: what was recorded in it is lost, unless it was moved; the "
              "training goes on");
    EXPECT_TRUE(follower->is_gone());
}

TEST_F(RunThatIsGoneTest, IsJudgedToItsEndWhereItIsBack) {
    const auto follower = follow();
    EXPECT_FALSE(follower->advance(1s));
    is_away_ = true;
    EXPECT_FALSE(follower->advance(1s));
    EXPECT_TRUE(follower->is_gone());
    is_away_ = false;
    record();
    std::this_thread::sleep_for(2ms);
    follower->finish([] { return false; });
    EXPECT_EQ(follower->steps_seen(), 2 * kSteps);
    EXPECT_FALSE(follower->is_gone());
}

TEST_F(FollowerTest, TheEndDoesNotWaitForEver) {
    give_up_at_end_after_ = 50ms;
    const auto follower = follow();
    is_away_ = true;
    follower->finish([] { return false; });
    ASSERT_EQ(follower->troubles().size(), 2U);
    EXPECT_NE(follower->troubles()[1].find("no longer judged"), std::string::npos) << follower->troubles()[1];
}

}  // namespace
}  // namespace traindbg::cli
