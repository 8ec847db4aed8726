#include "traindbg/cli/judge_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>
#include <vector>

#include "traindbg/base/clock.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/cli/custom_rules.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/follower.h"
#include "traindbg/cli/judge_protocol.h"
#include "traindbg/cli/other_runs.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/verb.h"

namespace traindbg::cli {
namespace {

using base::FileDescriptor;
using base::Status;

constexpr std::int64_t kOutcomeNanos = 500'000'000;  // between two words about what became of the rules
constexpr std::int64_t kWordNanos = 500'000'000;     // between two signs of life
constexpr int kNicer = 5;                            // the training goes first

// What the judge says.
class Orders {
  public:
    explicit Orders(FileDescriptor in) : in_(std::move(in)) {}

    [[nodiscard]] int descriptor() const noexcept { return in_.get(); }
    [[nodiscard]] bool finishes() const noexcept { return finishes_; }
    [[nodiscard]] bool leaves() const noexcept { return leaves_; }
    [[nodiscard]] bool is_over() const noexcept { return is_over_; }  // the judge has gone

    // The next line; nothing: the judge has gone.
    [[nodiscard]] std::optional<std::string> line() {
        while (!is_over_) {
            if (const std::size_t end = text_.find('\n'); end != std::string::npos) {
                std::string line = text_.substr(0, end);
                text_.erase(0, end + 1);
                return line;
            }
            read_some();
        }
        return std::nullopt;
    }
    // What has come, without waiting.
    void look() {
        pollfd waiting{in_.get(), POLLIN, 0};
        while (!is_over_ && ::poll(&waiting, 1, 0) > 0) read_some();
        for (std::size_t end = text_.find('\n'); end != std::string::npos; end = text_.find('\n')) {
            const std::string_view word = std::string_view(text_).substr(0, end);
            finishes_ = finishes_ || word == kFinishLine;
            leaves_ = leaves_ || word == kLeaveLine;
            text_.erase(0, end + 1);
        }
    }

  private:
    void read_some() {
        std::array<char, 4096> buffer;
        const ssize_t size = ::read(in_.get(), buffer.data(), buffer.size());
        if (size < 0 && errno == EINTR) return;
        if (size <= 0) is_over_ = true;
        else text_.append(buffer.data(), static_cast<std::size_t>(size));
    }

    FileDescriptor in_;
    std::string text_;
    bool finishes_ = false;
    bool leaves_ = false;
    bool is_over_ = false;
};

// Says what an engine found, as far as it has not been said.
class Reporter {
  public:
    Reporter(FileDescriptor out, std::vector<std::uint64_t> places)
        : out_(std::move(out)), places_(std::move(places)) {}

    void say(const JudgeLine& line) {
        if (!write_all(out_.get(), to_line(line))) is_gone_ = true;
        said_nanos_ = base::monotonic_nanos();
    }
    [[nodiscard]] bool is_gone() const noexcept { return is_gone_; }  // nobody listens

    // The engine tells its listener of this finding of its own.
    void on_finding(const engine::Engine& engine, const model::Finding& finding) {
        const std::vector<model::Finding>& findings = engine.findings();
        const auto place = std::find_if(findings.begin(), findings.end(),
                                        [&](const model::Finding& each) { return &each == &finding; });
        if (place == findings.end()) return;
        say_finding(engine, static_cast<std::size_t>(place - findings.begin()), event_of(finding.state));
    }

    // All that has changed, and a sign of life. `newest`: the last step of worker 0.
    void report(const engine::Engine& engine, std::optional<model::StepIndex> newest, bool all) {
        for (std::size_t i = 0; i < engine.findings().size(); ++i)
            if (i >= said_.size() || said_[i] != engine.traces()[i].changes)
                say_finding(engine, i, FindingSaid::Event::kNone);
        const std::int64_t now = base::monotonic_nanos();
        if (all || now - outcomes_nanos_ >= kOutcomeNanos) {
            outcomes_nanos_ = now;
            const std::vector<model::RuleOutcome> outcomes = engine.outcomes();
            outcomes_.resize(outcomes.size());
            for (std::size_t i = 0; i < outcomes.size(); ++i)
                if (!(outcomes[i] == outcomes_[i])) say(OutcomeSaid{places_[i], outcomes[i]});
            outcomes_ = outcomes;
            if (!meta_ || !(*meta_ == engine.meta())) say(MetaSaid{*(meta_ = engine.meta())});
        }
        if (newest != newest_ || now - said_nanos_ >= kWordNanos) say(ProgressSaid{newest_ = newest});
    }
    // Whether a report is due while much is done.
    [[nodiscard]] bool is_due() const { return base::monotonic_nanos() - said_nanos_ >= kWordNanos; }

  private:
    static FindingSaid::Event event_of(model::FindingState state) {
        switch (state) {
            case model::FindingState::kPending: return FindingSaid::Event::kPending;
            case model::FindingState::kFiring: return FindingSaid::Event::kFires;
            case model::FindingState::kResolved: break;
        }
        return FindingSaid::Event::kResolved;
    }

    void say_finding(const engine::Engine& engine, std::size_t number, FindingSaid::Event event) {
        const engine::Engine::Trace& trace = engine.traces()[number];
        FindingSaid said{number, trace.moment, event, engine.findings()[number]};
        said.moment.rule = places_[said.moment.rule];
        say(said);
        if (said_.size() <= number) said_.resize(number + 1, 0);
        said_[number] = trace.changes;
    }

    FileDescriptor out_;
    std::vector<std::uint64_t> places_;
    std::vector<std::uint64_t> said_;  // by finding: how often it had changed
    std::vector<model::RuleOutcome> outcomes_;
    std::optional<model::WorkerMeta> meta_;
    std::optional<model::StepIndex> newest_;
    std::int64_t outcomes_nanos_ = 0;
    std::int64_t said_nanos_ = 0;
    bool is_gone_ = false;
};

Status judge_stored_run(const std::string& run, const JudgeTask& task, storage::FileSystem& files,
                        Reporter& reporter) {
    TRAINDBG_ASSIGN_OR_RETURN(const auto engine, engine::Engine::make(task.choices));
    Unseen unseen;
    TRAINDBG_RETURN_IF_ERROR(judge_stored(run, *engine, rules::want_raw(task.choices), files, &unseen, [&] {
        if (reporter.is_due()) reporter.report(*engine, std::nullopt, /*all=*/false);
    }));
    reporter.report(*engine, std::nullopt, /*all=*/true);
    reporter.say(DoneSaid{std::move(unseen)});
    return Status::ok();
}

Status judge_live_run(const std::string& run, const JudgeTask& task, storage::FileSystem& files,
                      Console& console, Orders& orders, Reporter& reporter) {
    static_cast<void>(::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + kNicer));
    const engine::Engine* engine = nullptr;
    FollowerOptions options;
    options.run = run;
    options.choices = task.choices;
    options.keeps_verdict = false;
    options.prints_findings = false;
    options.on_change = [&](const model::Finding& finding) { reporter.on_finding(*engine, finding); };
    options.on_trouble = [&](const std::string& what) { reporter.say(TroubleSaid{what}); };
    TRAINDBG_ASSIGN_OR_RETURN(const auto follower, Follower::open(std::move(options), console, files));
    engine = follower->engine();
    bool more = true;
    std::int64_t looked_nanos = 0;
    while (!orders.finishes() && !orders.leaves()) {
        if (orders.is_over() || reporter.is_gone()) return Status::ok();
        const auto wait = [&](std::int64_t nanos, bool steps_too) {
            std::array<pollfd, 2> waiting{{{orders.descriptor(), POLLIN, 0},
                                           {steps_too ? follower->wake_descriptor() : -1, POLLIN, 0}}};
            static_cast<void>(
                ::poll(waiting.data(), waiting.size(), static_cast<int>((nanos + 999'999) / 1'000'000)));
        };
        const std::int64_t rest = looked_nanos + Follower::kBatchNanos - base::monotonic_nanos();
        if (!more && rest > 0) wait(rest, /*steps_too=*/false);
        if (!more) wait(follower->wake_descriptor() < 0 ? 50'000'000 : kWordNanos, /*steps_too=*/true);
        orders.look();
        looked_nanos = base::monotonic_nanos();
        more = follower->advance(Follower::kSlice);
        reporter.report(*engine, follower->newest_step(), /*all=*/false);
    }
    follower->finish([&] {
        orders.look();
        reporter.report(*engine, follower->newest_step(), /*all=*/false);
        return orders.leaves() || orders.is_over() || reporter.is_gone();
    });
    reporter.report(*engine, follower->newest_step(), /*all=*/true);
    reporter.say(DoneSaid{});
    return Status::ok();
}

Status judge_for(const std::string& run, const JudgeTask& task, Console& console, Orders& orders,
                 Reporter& reporter) {
    TRAINDBG_ASSIGN_OR_RETURN(const RunLocation location, RunLocation::of(run, std::string()));
    open_other_runs_below(task.runs);
    TRAINDBG_RETURN_IF_ERROR(load_custom_rules(task.custom));
    if (!task.is_live) return judge_stored_run(run, task, location.files(), reporter);
    return judge_live_run(run, task, location.files(), console, orders, reporter);
}

}  // namespace

int serve_judging(const std::string& run, Console& console) {
    // However our judge ends, we do.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    // The pipes are ours alone: a plugin may print.
    Orders orders(FileDescriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)));
    FileDescriptor out(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
    if (const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC); nothing >= 0) {
        ::dup2(nothing, STDIN_FILENO);
        ::close(nothing);
    }
    ::dup2(STDERR_FILENO, STDOUT_FILENO);

    const std::optional<std::string> line = orders.line();
    if (!line) return kExitUsage;
    const auto task = judge_task_of(*line);
    if (!task.is_ok()) return fail(console, task.status());
    Reporter reporter(std::move(out), task->places);
    reporter.say(ProgressSaid{});
    const Status done = judge_for(run, *task, console, orders, reporter);
    if (!done.is_ok()) reporter.say(FailureSaid{done});
    return done.is_ok() ? kExitClean : exit_code_of(done);
}

}  // namespace traindbg::cli
