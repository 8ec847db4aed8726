#include "traindbg/base/fork_generation.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace traindbg::base {
namespace {

// What `work` gives as the exit status of a child process.
int in_child(const std::function<int()>& work) {
    const pid_t child = fork();
    if (child == 0) _exit(work());
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ForkGeneration, AllThreadsOfAProcessSeeTheSame) {
    const std::uint32_t here = fork_generation();
    std::uint32_t there = here + 1;
    std::thread([&] { there = fork_generation(); }).join();
    EXPECT_EQ(there, here);
}

TEST(ForkGeneration, GrowsInTheChildAndNotInTheParent) {
    const std::uint32_t parent = fork_generation();
    EXPECT_EQ(in_child([&] { return fork_generation() == parent + 1 ? 0 : 1; }), 0);
    EXPECT_EQ(fork_generation(), parent);
}

TEST(ForkGeneration, GrowsAgainInTheChildOfAChild) {
    const std::uint32_t parent = fork_generation();
    EXPECT_EQ(in_child([&] { return in_child([&] { return fork_generation() == parent + 2 ? 0 : 1; }); }), 0);
}

}  // namespace
}  // namespace traindbg::base
