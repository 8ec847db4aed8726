#include "traindbg/cli/spread_judge.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/bootstrap.h"
#include "traindbg/cli/judge_protocol.h"
#include "traindbg/cli/process.h"
#include "traindbg/engine/engine.h"
#include "traindbg/engine/merged_verdict.h"

namespace traindbg::cli {
namespace {

using base::FileDescriptor;
using base::Result;
using base::Status;
using std::chrono::nanoseconds;

constexpr std::size_t kMostLineBytes = 64 << 20;
constexpr std::int64_t kStartNanos = 10'000'000'000;  // to take its task
constexpr std::int64_t kDyingNanos = 2'000'000'000;   // to end after its last word
constexpr std::size_t kMostNamed = 5;                 // rules in a message
constexpr auto kSignals = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP, SIGUSR1, SIGUSR2, SIGPIPE};

struct Process {
    pid_t pid = -1;
    FileDescriptor in;   // what we say
    FileDescriptor out;  // what it says
    std::string heard;   // up to the next line end
    std::int64_t heard_nanos = 0;
    std::int64_t patience_nanos = 0;
    std::vector<std::uint64_t> rules;  // their places
    std::optional<model::StepIndex> newest_step;
    bool is_done = false;  // has said all, or has ended
    Status failure;        // what it could not go on for
};

// What the processes get as arguments, but for the run.
std::vector<std::string> command_of(const Spreading& spreading) {
    if (!spreading.program.empty()) return spreading.program;
    // By the link the program is found even when its file was replaced meanwhile.
    return {"/proc/self/exe", "--judge"};
}

// Sources of rules that one of these needs.
options::CustomRuleOptions custom_of(const options::CustomRuleOptions& all,
                                     const std::vector<rules::RuleChoice>& choices) {
    options::CustomRuleOptions custom = all;
    const auto is_needless = [&](const std::string& source) {
        return std::none_of(choices.begin(), choices.end(), [&](const rules::RuleChoice& choice) {
            const auto entry = rules::find_rule(choice.name);
            return entry.is_ok() && (*entry)->origin == source;
        });
    };
    std::erase_if(custom.plugins, is_needless);
    std::erase_if(custom.python, is_needless);
    return custom;
}

std::string how_it_ended(int status) {
    if (WIFSIGNALED(status))
        return base::format("the process that judged it ended (signal {})", WTERMSIG(status));
    return base::format("the process that judged it ended (code {})", WEXITSTATUS(status));
}

}  // namespace

class SpreadJudge::Impl {
  public:
    Impl(const std::vector<rules::RuleChoice>& choices, const Spreading& spreading)
        : spreading_(spreading), merged_(names_of(choices)) {
        for (const rules::RuleChoice& choice : choices) names_.push_back(choice.name);
    }

    Status start(const std::string& run, const std::vector<rules::RuleChoice>& choices, bool is_live) {
        ::signal(SIGCHLD, SIG_DFL);  // who ignores it never hears how a child ended
        is_live_ = is_live;
        waker_ = FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
        if (!waker_.is_open()) return Status::from_errno("epoll", errno);
        const std::size_t count = std::min<std::size_t>(spreading_.processes, choices.size());
        processes_.resize(count);
        for (std::size_t i = 0; i < count; ++i) {
            JudgeTask task;
            task.is_live = is_live;
            task.runs = spreading_.runs;
            // Dealt out one by one: neighbours in the table are of all kinds, and so are their costs.
            for (std::size_t rule = i; rule < choices.size(); rule += count) {
                task.choices.push_back(choices[rule]);
                task.places.push_back(rule);
            }
            task.custom = custom_of(spreading_.custom, task.choices);
            Process& process = processes_[i];
            process.rules = task.places;
            process.patience_nanos = patience_of(task);
            if (const Status started = start_one(process, i, run, task); !started.is_ok())
                give_up(i, "the process to judge it could not be started: " + started.message());
        }
        return Status::ok();
    }

    ~Impl() {
        for (Process& process : processes_) {
            if (process.pid <= 0) continue;
            ::kill(process.pid, SIGKILL);
            static_cast<void>(reap(process, kDyingNanos));
        }
    }

    void set_listener(Listener listener) { listener_ = std::move(listener); }
    void set_trouble_listener(std::function<void(const std::string&)> listener) {
        trouble_listener_ = std::move(listener);
        for (const std::string& what : std::exchange(troubles_, {})) trouble_listener_(what);
    }

    void attend() {
        for (std::size_t i = 0; i < processes_.size(); ++i)
            if (!processes_[i].is_done) listen(i);
        tell_failures();
    }

    void attend(nanoseconds patience) {
        pollfd waiting{waker_.get(), POLLIN, 0};
        static_cast<void>(::poll(&waiting, 1, static_cast<int>(patience.count() / 1'000'000)));
        attend();
    }

    // To all that are left. A process that takes no more lines is about to be found dead or silent.
    void say(std::string_view word) {
        const std::string line = std::string(word) + "\n";
        for (Process& process : processes_)
            if (!process.is_done && process.in.is_open())
                static_cast<void>(::send(process.in.get(), line.data(), line.size(), MSG_NOSIGNAL));
    }

    [[nodiscard]] bool is_done() const noexcept {
        return std::all_of(processes_.begin(), processes_.end(),
                           [](const Process& process) { return process.is_done; });
    }

    [[nodiscard]] Status status() const {
        for (const Process& process : processes_)
            if (process.failure.is_ok()) return Status::ok();
        return processes_.empty() ? Status::ok() : processes_.front().failure;
    }

    [[nodiscard]] std::optional<model::StepIndex> newest_step() const {
        std::optional<model::StepIndex> newest;
        for (const Process& process : processes_) {
            if (process.is_done) continue;
            if (!process.newest_step) return std::nullopt;
            newest = std::min(newest.value_or(*process.newest_step), *process.newest_step);
        }
        return newest;
    }

    [[nodiscard]] const Unseen& unseen() const noexcept { return unseen_; }
    [[nodiscard]] model::Verdict verdict() const { return merged_.verdict(); }
    [[nodiscard]] int wake_descriptor() const noexcept { return waker_.get(); }

  private:
    static std::vector<std::string> names_of(const std::vector<rules::RuleChoice>& choices) {
        std::vector<std::string> names;
        for (const rules::RuleChoice& choice : choices) names.push_back(choice.name);
        return names;
    }

    // A rule in Python may take its time, each of them.
    [[nodiscard]] std::int64_t patience_of(const JudgeTask& task) const {
        const auto slow =
            std::count_if(task.choices.begin(), task.choices.end(), [](const rules::RuleChoice& choice) {
                const auto entry = rules::find_rule(choice.name);
                return entry.is_ok() && !(*entry)->origin.empty();
            });
        return spreading_.patience.count() +
               static_cast<std::int64_t>(task.custom.timeout * 1e9 * static_cast<double>(slow));
    }

    Status start_one(Process& process, std::size_t number, const std::string& run, const JudgeTask& task) {
        std::array<int, 2> pair{};
        // Unlike a pipe, a socket can be written to without SIGPIPE when its reader is gone.
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
            return Status::from_errno("socketpair", errno);
        const FileDescriptor its_in(pair[0]);
        process.in = FileDescriptor(pair[1]);
        if (::pipe2(pair.data(), O_CLOEXEC) != 0) return Status::from_errno("pipe", errno);
        process.out = FileDescriptor(pair[0]);
        const FileDescriptor its_out(pair[1]);
        for (const int descriptor : {process.in.get(), process.out.get()})
            ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);

        std::vector<std::string> command = command_of(spreading_);
        command.push_back(run);
        sigset_t mask;  // what a terminal sends is for the training and for us; they end with us
        sigemptyset(&mask);
        for (const int signal : kSignals) sigaddset(&mask, signal);
        const Spawned spawned = spawn(command, {}, mask, its_out.get(), its_in.get());
        if (spawned.pid < 0) return {base::Code::kUnavailable, std::strerror(spawned.error)};
        process.pid = spawned.pid;
        process.heard_nanos = base::monotonic_nanos();
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = number;
        ::epoll_ctl(waker_.get(), EPOLL_CTL_ADD, process.out.get(), &event);
        return hand_over(process, to_line(task));
    }

    static Status hand_over(Process& process, std::string_view text) {
        const std::int64_t until = base::monotonic_nanos() + kStartNanos;
        while (!text.empty()) {
            const ssize_t size = ::send(process.in.get(), text.data(), text.size(), MSG_NOSIGNAL);
            if (size > 0) {
                text.remove_prefix(static_cast<std::size_t>(size));
                continue;
            }
            if (size < 0 && errno != EAGAIN && errno != EINTR)
                return Status::ok();  // it has ended: told later
            const std::int64_t left = until - base::monotonic_nanos();
            if (left <= 0) return {base::Code::kUnavailable, "it does not take its task"};
            pollfd waiting{process.in.get(), POLLOUT, 0};
            static_cast<void>(::poll(&waiting, 1, static_cast<int>(left / 1'000'000 + 1)));
        }
        return Status::ok();
    }

    void listen(std::size_t number) {
        Process& process = processes_[number];
        std::array<char, 65536> buffer;
        while (!process.is_done) {
            const ssize_t size = ::read(process.out.get(), buffer.data(), buffer.size());
            if (size < 0 && errno == EINTR) continue;
            if (size < 0 && errno == EAGAIN) break;
            if (size <= 0) return ended(number);
            process.heard_nanos = base::monotonic_nanos();
            process.heard.append(buffer.data(), static_cast<std::size_t>(size));
            take_lines(number);
        }
        if (process.is_done) return;
        if (base::monotonic_nanos() - process.heard_nanos < process.patience_nanos) return;
        give_up(number, base::format("the process that judged it said nothing for {} and was ended",
                                     base::human_duration(process.patience_nanos)));
    }

    void take_lines(std::size_t number) {
        Process& process = processes_[number];
        std::size_t begin = 0;
        while (!process.is_done) {
            const std::size_t end = process.heard.find('\n', begin);
            if (end == std::string::npos) break;
            auto line =
                judge_line_of(std::string_view(process.heard).substr(begin, end - begin), names_.size());
            begin = end + 1;
            if (!line.is_ok())
                return give_up(number, "the process that judged it said something that cannot be read");
            std::visit([&](auto& said) { take(number, said); }, *line);
        }
        process.heard.erase(0, begin);
        if (process.heard.size() > kMostLineBytes)
            give_up(number, "the process that judged it said something that cannot be read");
    }

    void take(std::size_t number, FindingSaid& said) {
        merged_.put(number, said.number, said.moment, said.finding);
        if (said.event != FindingSaid::Event::kNone && listener_) listener_(said.finding);
    }
    void take(std::size_t, OutcomeSaid& said) { merged_.put(said.rule, std::move(said.outcome)); }
    void take(std::size_t, MetaSaid& said) { merged_.set_meta(std::move(said.meta)); }
    void take(std::size_t, const TroubleSaid& said) { trouble(said.what); }
    void take(std::size_t number, const ProgressSaid& said) {
        processes_[number].newest_step = said.newest_step;
    }
    void take(std::size_t number, DoneSaid& said) {
        // One that is shown whole tensors sees damage in them, too.
        if (said.unseen.damaged_places >= unseen_.damaged_places) unseen_ = std::move(said.unseen);
        let_go(number);
    }
    void take(std::size_t number, const FailureSaid& said) {
        processes_[number].failure = said.status;
        for (const std::uint64_t rule : processes_[number].rules)
            merged_.give_up(rule, said.status.message());
        let_go(number);
        failed_.push_back(number);
    }

    // Of a stored run that none of them can read, that is told once, by whoever asks for `status`.
    void tell_failures() {
        if (!is_live_ && (!is_done() || !status().is_ok())) return;
        for (const std::size_t number : std::exchange(failed_, {}))
            tell_lost(number, processes_[number].failure.message());
    }

    void ended(std::size_t number) {
        const std::optional<int> status = reap(processes_[number], kDyingNanos);
        give_up(number, status ? how_it_ended(*status) : "the process that judged it closed its connection");
    }

    void give_up(std::size_t number, const std::string& why) {
        for (const std::uint64_t rule : processes_[number].rules) merged_.give_up(rule, why);
        let_go(number);
        tell_lost(number, why);
    }

    // Nothing more is heard of it: the word is its own, or ours.
    void let_go(std::size_t number) {
        Process& process = processes_[number];
        process.is_done = true;
        process.in.reset();
        if (process.out.is_open()) ::epoll_ctl(waker_.get(), EPOLL_CTL_DEL, process.out.get(), nullptr);
        process.out.reset();
        if (process.pid <= 0) return;
        ::kill(process.pid, SIGKILL);
        static_cast<void>(reap(process, kDyingNanos));
    }

    // Its wait status; nothing: it does not end in time.
    static std::optional<int> reap(Process& process, std::int64_t patience) {
        const std::int64_t until = base::monotonic_nanos() + patience;
        while (process.pid > 0) {
            if (const auto status = try_wait(process.pid)) {
                process.pid = -1;
                return status;
            }
            if (base::monotonic_nanos() > until) return std::nullopt;
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return std::nullopt;
    }

    void tell_lost(std::size_t number, const std::string& why) {
        const std::vector<std::uint64_t>& rules = processes_[number].rules;
        std::vector<std::string> named;
        for (std::size_t i = 0; i < std::min(rules.size(), kMostNamed); ++i)
            named.push_back(names_[rules[i]]);
        std::string list = base::join(named, ", ");
        if (rules.size() > kMostNamed) list += base::format(" and {} more", rules.size() - kMostNamed);
        trouble(base::format("process {} of {}, for rule{} {}: {}; the other rules go on", number + 1,
                             processes_.size(), rules.size() == 1 ? "" : "s", list, why));
    }

    void trouble(const std::string& what) {
        if (trouble_listener_) trouble_listener_(what);
        else troubles_.push_back(what);
    }

    const Spreading spreading_;
    Listener listener_;
    std::function<void(const std::string&)> trouble_listener_;
    std::vector<std::string> names_;
    engine::MergedVerdict merged_;
    std::vector<Process> processes_;
    FileDescriptor waker_;
    bool is_live_ = false;
    Unseen unseen_;
    std::vector<std::size_t> failed_;    // not told yet
    std::vector<std::string> troubles_;  // of the time before somebody listens
};

Result<std::unique_ptr<SpreadJudge>> SpreadJudge::start(const std::string& run,
                                                        const std::vector<rules::RuleChoice>& choices,
                                                        const Spreading& spreading, bool is_live) {
    // What is wrong with a rule is told before anything starts.
    TRAINDBG_RETURN_IF_ERROR(engine::Engine::make(choices).status());
    auto impl = std::make_unique<Impl>(choices, spreading);
    TRAINDBG_RETURN_IF_ERROR(impl->start(run, choices, is_live));
    return std::unique_ptr<SpreadJudge>(new SpreadJudge(std::move(impl)));
}

SpreadJudge::SpreadJudge(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
SpreadJudge::~SpreadJudge() = default;

void SpreadJudge::set_listener(Listener listener) { impl_->set_listener(std::move(listener)); }
void SpreadJudge::set_failure_listener(FailureListener) {}
void SpreadJudge::set_trouble_listener(std::function<void(const std::string& what)> listener) {
    impl_->set_trouble_listener(std::move(listener));
}
void SpreadJudge::on_step(const model::StepView&) {}
void SpreadJudge::on_time(std::int64_t) {}
void SpreadJudge::on_end() {}
model::Verdict SpreadJudge::verdict() const { return impl_->verdict(); }
int SpreadJudge::wake_descriptor() const noexcept { return impl_->wake_descriptor(); }
void SpreadJudge::attend() { impl_->attend(); }
void SpreadJudge::attend(nanoseconds patience) { impl_->attend(patience); }
void SpreadJudge::finish() { impl_->say(kFinishLine); }
void SpreadJudge::leave() { impl_->say(kLeaveLine); }
bool SpreadJudge::is_done() const noexcept { return impl_->is_done(); }
Status SpreadJudge::status() const { return impl_->status(); }
std::optional<model::StepIndex> SpreadJudge::newest_step() const { return impl_->newest_step(); }
const Unseen& SpreadJudge::unseen() const noexcept { return impl_->unseen(); }

}  // namespace traindbg::cli
