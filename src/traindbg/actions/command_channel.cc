// Runs a command for each finding, which gets it on its standard input.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "traindbg/actions/channel.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX wants it declared by its user

namespace traindbg::actions {
namespace {

using base::Code;
using base::FileDescriptor;
using base::Status;

constexpr auto kBetweenLooks = std::chrono::milliseconds(10);
constexpr std::size_t kMostSaidBytes = 400;

// Attributes and file actions of posix_spawn, freed in every case.
struct SpawnSettings {
    SpawnSettings() {
        ::posix_spawnattr_init(&attributes);
        ::posix_spawn_file_actions_init(&files);
    }
    SpawnSettings(const SpawnSettings&) = delete;
    SpawnSettings& operator=(const SpawnSettings&) = delete;
    ~SpawnSettings() {
        ::posix_spawn_file_actions_destroy(&files);
        ::posix_spawnattr_destroy(&attributes);
    }
    posix_spawnattr_t attributes{};
    posix_spawn_file_actions_t files{};
};

class CommandChannel final : public Channel {
  public:
    explicit CommandChannel(std::string command) : command_(std::move(command)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "command"; }
    // Its first word: what stands behind it may be secret.
    [[nodiscard]] std::string intention() const override {
        const std::size_t begin = command_.find_first_not_of(" \t\n");
        return "run " +
               base::printable(command_.substr(begin, command_.find_first_of(" \t\n", begin) - begin));
    }

    // A command that failed is not run again: what it did until then is not known.
    [[nodiscard]] Status deliver(const Notification& notification,
                                 const storage::Patience& patience) override {
        const std::string json =
            to_json(notification).dump(-1, ' ', false, model::Json::error_handler_t::replace) + "\n";
        const FileDescriptor input(::memfd_create("finding", MFD_CLOEXEC));
        const FileDescriptor output(::memfd_create("said", MFD_CLOEXEC));
        if (input.get() < 0 || output.get() < 0) return Status::from_errno(intention(), errno);
        if (::write(input.get(), json.data(), json.size()) != static_cast<ssize_t>(json.size()) ||
            ::lseek(input.get(), 0, SEEK_SET) != 0)
            return Status::from_errno(intention(), errno);

        pid_t child = -1;
        if (const int error = spawn(notification, input.get(), output.get(), child); error != 0)
            return Status::from_errno(intention(), error);
        int status = 0;
        while (::waitpid(child, &status, WNOHANG) == 0) {
            if (!patience.is_over()) {
                std::this_thread::sleep_for(kBetweenLooks);
                continue;
            }
            ::kill(-child, SIGKILL);
            ::waitpid(child, &status, 0);
            return {Code::kResourceExhausted, intention() + ": took too long and was ended"};
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return Status::ok();
        const std::string how = WIFEXITED(status) ? base::format("ended with code {}", WEXITSTATUS(status))
                                                  : base::format("was ended by signal {}", WTERMSIG(status));
        const std::string said = last_words(output.get());
        return {Code::kInvalidArgument,
                base::format("{}: {}{}", intention(), how, said.empty() ? "" : ": " + said)};
    }

  private:
    // The number of an error. The command is the first of a group of its own, so that all of it can be ended;
    // signals are as a new process has them.
    [[nodiscard]] int spawn(const Notification& notification, int input, int output, pid_t& child) const {
        const model::Finding& finding = notification.finding;
        std::vector<std::string> words = {
            "TRAINDBG_FINDING_ID=" + notification.id,
            "TRAINDBG_RUN=" + notification.directory,
            "TRAINDBG_RULE=" + finding.rule,
            "TRAINDBG_SEVERITY=" + std::string(model::to_string(finding.severity)),
            base::format("TRAINDBG_STEP={}", finding.step),
            "TRAINDBG_PLACE=" + base::printable(finding.layer.empty() ? finding.tensor : finding.layer),
            "TRAINDBG_MESSAGE=" + base::printable(finding.message),
        };
        std::vector<char*> environment;
        for (char** entry = environ; *entry != nullptr; ++entry) {
            const std::string_view known(*entry);
            bool is_ours = false;
            for (const std::string& word : words)
                is_ours = is_ours || known.starts_with(std::string_view(word).substr(0, word.find('=') + 1));
            if (!is_ours) environment.push_back(*entry);
        }
        for (std::string& word : words) environment.push_back(word.data());
        environment.push_back(nullptr);

        SpawnSettings settings;
        sigset_t none;
        sigset_t usual;
        sigemptyset(&none);
        sigfillset(&usual);
        ::posix_spawnattr_setsigmask(&settings.attributes, &none);
        ::posix_spawnattr_setsigdefault(&settings.attributes, &usual);
        ::posix_spawnattr_setpgroup(&settings.attributes, 0);
        ::posix_spawnattr_setflags(&settings.attributes,
                                   POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
        ::posix_spawn_file_actions_adddup2(&settings.files, input, STDIN_FILENO);
        ::posix_spawn_file_actions_adddup2(&settings.files, output, STDOUT_FILENO);
        ::posix_spawn_file_actions_adddup2(&settings.files, output, STDERR_FILENO);
        std::string shell = "/bin/sh";
        std::string option = "-c";
        std::string command = command_;
        const std::array<char*, 4> arguments = {shell.data(), option.data(), command.data(), nullptr};
        return ::posix_spawn(&child, shell.c_str(), &settings.files, &settings.attributes, arguments.data(),
                             environment.data());
    }

    // The end of what it printed.
    static std::string last_words(int output) {
        const off_t size = ::lseek(output, 0, SEEK_END);
        const off_t begin = std::max<off_t>(0, size - static_cast<off_t>(kMostSaidBytes));
        std::string said(kMostSaidBytes, '\0');
        const ssize_t got = ::pread(output, said.data(), said.size(), begin);
        said.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        while (!said.empty() && static_cast<unsigned char>(said.back()) <= ' ') said.pop_back();
        return base::printable(said);
    }

    std::string command_;
};

}  // namespace

std::unique_ptr<Channel> make_command_channel(std::string command) {
    return std::make_unique<CommandChannel>(std::move(command));
}

}  // namespace traindbg::actions
