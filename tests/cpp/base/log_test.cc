#include "traindbg/base/log.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace traindbg::base {
namespace {

// What `work` writes to standard error.
template <typename Work>
std::string said_by(const Work& work) {
    ::testing::internal::CaptureStderr();
    work();
    return ::testing::internal::GetCapturedStderr();
}

TEST(Log, NamesTheLevelOfWhatIsWrong) {
    EXPECT_EQ(said_by([] { log(LogLevel::kInfo, "a"); }), "traindbg: a\n");
    EXPECT_EQ(said_by([] { log(LogLevel::kWarning, "b"); }), "traindbg: warning: b\n");
    EXPECT_EQ(said_by([] { log(LogLevel::kError, "c"); }), "traindbg: error: c\n");
    EXPECT_EQ(said_by([] { log(LogLevel::kDebug, "d"); }), "");
}

TEST(Log, SaysAKeyOnce) {
    const std::string said = said_by([] {
        log_once(LogLevel::kInfo, "test.once", "first");
        log_once(LogLevel::kInfo, "test.once", "second");
        log_once(LogLevel::kInfo, "test.other", "third");
    });
    EXPECT_EQ(said, "traindbg: first\ntraindbg: third\n");
}

TEST(Log, ManyThreadsSayAKeyOnceTogether) {
    const std::string said = said_by([] {
        std::vector<std::jthread> threads;
        for (int i = 0; i < 8; ++i)
            threads.emplace_back([] { log_once(LogLevel::kInfo, "test.threads", "one line"); });
    });
    EXPECT_EQ(said, "traindbg: one line\n");
}

TEST(Log, AChildForkedWhileAnotherThreadSpeaksCanSpeakItself) {
#if defined(TRAINDBG_THREAD_SANITIZER)
    GTEST_SKIP() << "the sanitizer forbids forks of programs with threads";
#endif
    std::atomic<bool> enough{false};
    std::thread speaker([&] {
        while (!enough.load()) log_once(LogLevel::kDebug, "test.fork", "never printed");
    });
    int hanging = 0;
    for (int i = 0; i < 300; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            alarm(5);  // ends a child that waits for a lock that nobody will ever release
            log_once(LogLevel::kDebug, "test.fork.child", "never printed");
            _exit(0);
        }
        int status = 0;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status)) {
            ++hanging;
            break;
        }
    }
    enough.store(true);
    speaker.join();
    EXPECT_EQ(hanging, 0);
}

}  // namespace
}  // namespace traindbg::base
