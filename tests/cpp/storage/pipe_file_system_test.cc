#include "traindbg/storage/pipe_file_system.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <thread>
#include <utility>

#include "traindbg/base/bytes.h"
#include "traindbg/storage/memory_file_system.h"

namespace traindbg::storage {
namespace {

using base::Code;

// Whatever the other process is, its bytes end in an error.
TEST(PipeFileSystem, AnythingElseThanTheProgramIsAnError) {
    for (const char* script :
         {"exit 0", "exit 1", "printf '\\377\\377\\377\\377'; sleep 0.1",
          "printf '\\000\\000\\000\\000'; sleep 0.1", "printf '\\001\\000\\000\\000\\143'; sleep 0.1",
          "printf '\\011\\000\\000\\000\\000'", "printf 'ab'",
          // ok, and a list of 2^63 entries
          "printf '\\013\\000\\000\\000\\000\\377\\377\\377\\377\\377\\377\\377\\377\\177'; sleep 0.1"}) {
        const auto files = PipeFileSystem::start({"/bin/sh", "-c", script});
        ASSERT_TRUE(files.is_ok());
        EXPECT_EQ((*files)->list("/x").status().code(), Code::kUnavailable) << script;
        EXPECT_FALSE((*files)->exists("/x"));
        EXPECT_FALSE((*files)->open("/x").is_ok());
    }
}

TEST(PipeFileSystem, AProgramThatIsNotThereIsAnError) {
    const auto files = PipeFileSystem::start({"/nonexistent/traindbg", "--serve-files", "s3://b"});
    EXPECT_EQ(files.status().code(), Code::kNotFound);
    EXPECT_FALSE(PipeFileSystem::start({}).is_ok());
}

TEST(PipeFileSystem, WhatTheOtherSaysMayBeAnError) {
    // cat gives the request back: its first byte, 1, is a code.
    const auto files = PipeFileSystem::start({"/bin/cat"});
    ASSERT_TRUE(files.is_ok());
    const auto status = (*files)->list("/x").status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("/x"), std::string::npos);
}

TEST(PipeFileSystem, AForkedChildIsRefused) {
    const auto files = PipeFileSystem::start({"/bin/cat"});
    ASSERT_TRUE(files.is_ok());
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit((*files)->list("/x").status().code() == Code::kUnavailable ? 0 : 1);
    int status = 0;
    ::waitpid(pid, &status, 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ((*files)->list("/x").status().code(), Code::kInvalidArgument) << "the parent goes on";
}

// The other side.
class Serving : public ::testing::Test {
  protected:
    void SetUp() override {
        const base::ByteSpan bytes = base::as_bytes("hello world");
        files_.set_content("/d/a", {bytes.begin(), bytes.end()});
        std::array<int, 2> pair{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()), 0);
        ours_ = pair[0];
        server_ = std::thread([this, theirs = pair[1]] {
            result_ = serve_files(files_, theirs, theirs);
            ::close(theirs);
        });
    }
    void TearDown() override { end(); }
    void end() {
        if (ours_ >= 0) ::close(std::exchange(ours_, -1));
        if (server_.joinable()) server_.join();
    }
    void send(std::string_view body, std::uint32_t length) {
        std::string message(reinterpret_cast<const char*>(&length), 4);
        message += body;
        ASSERT_EQ(::write(ours_, message.data(), message.size()), static_cast<ssize_t>(message.size()));
    }
    // The answer to a request, with its code; empty: the other side ended.
    std::string ask(std::string_view body) {
        send(body, static_cast<std::uint32_t>(body.size()));
        std::uint32_t size = 0;
        if (::read(ours_, &size, 4) != 4) return {};
        std::string answer(size, '\0');
        EXPECT_EQ(::recv(ours_, answer.data(), size, MSG_WAITALL), static_cast<ssize_t>(size));
        return answer;
    }

    MemoryFileSystem files_;
    int ours_ = -1;
    std::thread server_;
    base::Status result_;
};

TEST_F(Serving, RequestsAreAnswered) {
    using namespace std::string_literals;
    EXPECT_EQ(ask("\1\2/d"s), "\0\1\1a\2"s);
    EXPECT_EQ(ask("\5\4/d/a"s), "\0\1"s);
    EXPECT_EQ(ask("\5\4/d/b"s), "\0\0"s);
    EXPECT_EQ(ask("\2\4/d/a"s), "\0\1"s);
    EXPECT_EQ(ask("\4\1"s), "\0\13"s);
    EXPECT_EQ(ask("\3\1\6\3"s), "\0wor"s);
    EXPECT_EQ(ask("\3\1\13\3"s), "\0"s);
    EXPECT_EQ(ask("\6\1"s), "\0"s);
    EXPECT_EQ(ask("\4\1"s).front(), static_cast<char>(Code::kInvalidArgument)) << "closed";
    EXPECT_EQ(ask("\2\4/d/b"s).front(), static_cast<char>(Code::kNotFound));
    end();
    EXPECT_TRUE(result_.is_ok());
}

TEST_F(Serving, WhatIsNoRequestIsRefused) {
    using namespace std::string_literals;
    ASSERT_EQ(ask("\2\4/d/a"s), "\0\1"s);
    for (const std::string& bad :
         {"\0"s, "\1"s, "\1\377"s, "\7\1"s, "\3\1"s, "\3\1\0"s, "\3\2\0\1"s, "\3\1\0\377\377\377\177"s, "\4"s,
          "\4\377\377\377\377\377\377\377\377\377\377\377"s})
        EXPECT_EQ(ask(bad).front(), static_cast<char>(Code::kInvalidArgument));
    EXPECT_EQ(ask("\3\1\0\5"s), "\0hello"s) << "and it goes on";
}

TEST_F(Serving, ALengthOutOfBoundsEndsIt) {
    send("x", 0xFFFFFFFF);
    server_.join();
    EXPECT_EQ(result_.code(), Code::kDataLoss);
}

TEST_F(Serving, HalfARequestEndsIt) {
    send("x", 10);
    end();
    EXPECT_EQ(result_.code(), Code::kDataLoss);
}

}  // namespace
}  // namespace traindbg::storage
