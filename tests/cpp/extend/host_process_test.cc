// Processes are started with real programs: the shell, and Python for what a shell cannot do.
#include "traindbg/extend/host_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "traindbg/base/clock.h"
#include "traindbg/extend/protocol.h"

namespace traindbg::extend {
namespace {

using namespace std::chrono_literals;

base::Result<std::string> ask(const std::vector<std::string>& command, std::chrono::nanoseconds limit = 30s,
                              std::uint64_t memory = 0) {
    auto process = HostProcess::start({.command = command, .memory = memory});
    if (!process.is_ok()) return process.status();
    return (*process)->ask(frame("{}"), limit);
}

std::string failure_of(const std::string& script, std::chrono::nanoseconds limit = 30s) {
    const auto answer = ask({"sh", "-c", script}, limit);
    return answer.is_ok() ? "answered " + *answer : answer.status().message();
}

TEST(HostProcessTest, AnswersOverItsOwnSocket) {
    // Ten bytes are asked (a head and "{}"), ten are answered.
    const auto answer = ask({"sh", "-c", "echo to nobody; head -c 10 <&3 >&3; sleep 100"});
    ASSERT_TRUE(answer.is_ok()) << answer.status().message();
    EXPECT_EQ(*answer, "{}");
}

TEST(HostProcessTest, OneThatHangsIsEndedWithItsChildren) {
    EXPECT_EQ(failure_of("sleep 1000 & sleep 1000", 200ms), "took longer than 0.2 s and was ended");
    EXPECT_EQ(failure_of("while :; do echo busy; done", 200ms).substr(0, 50),
              "took longer than 0.2 s and was ended; it printed: ");
}

TEST(HostProcessTest, OneThatDiesIsToldWithWhatItPrinted) {
    EXPECT_EQ(failure_of("echo the last words >&2; exit 3"),
              "its process ended with code 3; it printed: the last words");
    EXPECT_NE(failure_of("kill -SEGV $$").find("signal 11 (SIGSEGV)"), std::string::npos);
}

TEST(HostProcessTest, GarbageIsNoAnswer) {
    EXPECT_NE(failure_of("head -c 10 <&3 >/dev/null; echo some garbage >&3; sleep 100").find("no answer"),
              std::string::npos);
}

TEST(HostProcessTest, AProgramThatIsNotThereIsNamed) {
    const auto answer = ask({"/nowhere/python3"});
    ASSERT_FALSE(answer.is_ok());
    EXPECT_NE(answer.status().message().find("/nowhere/python3: cannot be started: No such file"),
              std::string::npos)
        << answer.status().message();
}

#if !defined(TRAINDBG_ADDRESS_SANITIZER) && !defined(TRAINDBG_THREAD_SANITIZER)
TEST(HostProcessTest, MemoryIsLimited) {
    const auto answer =
        ask({"python3", "-c", "x = bytearray(400 << 20); import time; time.sleep(1000)"}, 30s, 200ULL << 20);
    ASSERT_FALSE(answer.is_ok());
    EXPECT_NE(answer.status().message().find("MemoryError"), std::string::npos) << answer.status().message();
}
#endif

TEST(HostProcessTest, PrintsMoreThanAPipeHoldsAndStillAnswers) {
    const auto answer =
        ask({"sh", "-c", "head -c 1000000 /dev/zero | tr '\\0' 'x'; head -c 10 <&3 >&3; sleep 100"});
    EXPECT_TRUE(answer.is_ok()) << answer.status().message();
}

TEST(HostProcessTest, EndsWithItsOwner) {
    pid_t pid = -1;
    {
        auto process = HostProcess::start({.command = {"sh", "-c",
                                                       "head -c 10 <&3 >/dev/null; p=$(printf '%08d' $$); "
                                                       "printf '\\010\\0\\0\\0\\0\\0\\0\\0%s' $p >&3; "
                                                       "sleep 1000"}});
        ASSERT_TRUE(process.is_ok());
        const auto answer = (*process)->ask(frame("{}"), 30s);
        ASSERT_TRUE(answer.is_ok()) << answer.status().message();
        pid = std::stoi(*answer);
        EXPECT_EQ(::kill(pid, 0), 0);
    }
    EXPECT_NE(::kill(pid, 0), 0);
}

}  // namespace
}  // namespace traindbg::extend
