#include "traindbg/cli/supervisor.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <utility>

#include "traindbg/actions/action.h"
#include "traindbg/actions/action_journal.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/follower.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/status_line.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

using storage::TrainingState;

// The control page cannot wake us: how often it is looked at while something depends on it.
constexpr std::int64_t kControlNanosBetween = 500'000'000;
// What a training that stalls gets to leave by itself, where nobody said how long.
constexpr std::int64_t kStallGraceNanos = 30'000'000'000;
// Nothing should be missed between two notifications; a look now and then heals what is.
constexpr std::int64_t kLookNanos = 2'000'000'000;

class Supervisor {
  public:
    Supervisor(const SupervisorOptions& options, Console& console, storage::FileSystem& files,
               SignalGate& gate)
        : options_(options), console_(console), files_(files), gate_(gate) {}

    Supervised run() {
        observe();
        const std::int64_t started = base::monotonic_nanos();
        const Spawned spawned = spawn(options_.command, options_.environment, gate_.mask_before());
        if (spawned.pid < 0) {
            result_.spawn_error = spawned.error;
            return std::move(result_);
        }
        child_ = spawned.pid;
        if (options_.on_started) options_.on_started();
        // From here on the training goes first wherever the two compete.
        static_cast<void>(::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + 5));
        if (!options_.quiet && follower_) status_ = StatusLine::open(console_.error_colour());
        loop();
        result_.wall_nanos = base::monotonic_nanos() - started;
        conclude();
        return std::move(result_);
    }

  private:
    // Opens all that judging needs. What fails is said; the training starts all the same.
    void observe() {
        if (options_.run.empty()) return;
        auto control = storage::ControlBlock::open(storage::RunLayout{options_.run}.control());
        if (!control.is_ok()) {
            trouble(base::format("{}; the training cannot be stopped by a rule", control.status().message()));
        } else {
            control_ = std::move(control).value();
            lock_ = SupervisorLock::take(options_.run);
            action_ = actions::make_action(options_.act.action, *control_);
        }
        FollowerOptions follow;
        follow.run = options_.run;
        follow.choices = options_.choices;
        follow.spreading = options_.spreading;
        follow.action = action_.get();
        follow.act_for = options_.act.rules;
        follow.stalls = options_.act.stalls;
        follow.dry_run = options_.act.dry_run;
        follow.notifier = options_.notifier;
        follow.act_at = options_.act_at;
        follow.tells_full_disk = false;
        if (control_) follow.on_fires = [this] { control_->request_flight_copy(); };
        auto follower = Follower::open(std::move(follow), console_, files_);
        if (follower.is_ok()) follower_ = std::move(follower).value();
        else
            trouble(base::format("{}; this run is recorded but not judged while it runs",
                                 follower.status().message()));
    }

    void trouble(const std::string& what) {
        console_.warn(what);
        result_.troubles.push_back(what);
    }

    void loop() {
        bool more = true;  // the child may have ended before its signal could be waited for
        std::int64_t looked_nanos = 0;
        while (true) {
            const std::int64_t rest = looked_nanos + Follower::kBatchNanos - base::monotonic_nanos();
            if (!more && rest > 0) wait_for_something(millis(rest), /*steps_too=*/false);
            wait_for_something(more ? 0 : next_deadline(), /*steps_too=*/true);
            handle_signals();
            if (const auto status = try_wait(child_)) {
                result_.wait_status = *status;
                child_ = -1;
                handle_signals();  // those that came while it died are not meant for what follows
                return;
            }
            looked_nanos = base::monotonic_nanos();
            more = follower_ != nullptr && follower_->advance(Follower::kSlice);
            look_at_control();
            press_stop();
            tell_of_notifications();
            show_metrics(false);
            show_status(false);
            if (options_.on_look) options_.on_look();
        }
    }

    [[nodiscard]] static int millis(std::int64_t nanos) noexcept {
        return static_cast<int>((nanos + 999'999) / 1'000'000);
    }

    // Milliseconds for poll; -1: until something happens.
    [[nodiscard]] int next_deadline() const {
        std::int64_t nanos = options_.on_look ? kControlNanosBetween : INT64_MAX;
        if (follower_)
            nanos = std::min(nanos, follower_->wake_descriptor() < 0 ? std::int64_t{50'000'000} : kLookNanos);
        if (options_.metrics != nullptr) nanos = std::min(nanos, options_.metrics->due_in());
        if (status_) {
            nanos = std::min(nanos, kControlNanosBetween);
            if (const auto due = status_->due_in()) nanos = std::min(nanos, *due);
        }
        if (stop_asked_nanos_ != 0) {
            nanos = std::min(nanos, kControlNanosBetween);
            if (is_pressed())
                nanos = std::min(nanos, std::max<std::int64_t>(0, stop_deadline_ - base::monotonic_nanos()));
        }
        return nanos == INT64_MAX ? -1 : millis(nanos);
    }

    // A signal ends the wait in any case.
    void wait_for_something(int patience, bool steps_too) {
        std::array<pollfd, 2> waiting{{{gate_.descriptor(), POLLIN, 0}, {-1, POLLIN, 0}}};
        if (follower_ && steps_too) waiting[1].fd = follower_->wake_descriptor();  // -1 is passed over
        static_cast<void>(::poll(waiting.data(), waiting.size(), patience));
    }

    void handle_signals() {
        while (const auto signal = gate_.next()) {
            const int number = static_cast<int>(signal->ssi_signo);
            const bool from_terminal = came_from_terminal(*signal);
            switch (number) {
                case SIGCHLD: break;  // the loop asks after the child in any case
                case SIGWINCH:
                    if (status_) status_->resized();
                    break;
                case SIGCONT:
                    if (status_ && ::tcgetpgrp(STDERR_FILENO) == ::getpgrp()) status_->resume();
                    break;
                case SIGTSTP:
                    if (!from_terminal) pass_on(number);
                    if (status_) status_->suspend();
                    ::raise(
                        SIGSTOP);  // comes back when somebody continues us; SIGCONT then waits in the gate
                    break;
                case SIGINT:
                    result_.interrupted = result_.interrupted || from_terminal;
                    if (!from_terminal) pass_on(number);
                    break;
                default:
                    if (!from_terminal) pass_on(number);
                    break;
            }
        }
    }

    void pass_on(int signal) const {
        if (child_ > 0) static_cast<void>(::kill(child_, signal));
    }

    void tell_of_notifications() {
        if (options_.notifier == nullptr) return;
        for (const std::string& what : options_.notifier->take_troubles()) trouble(what);
    }

    // The terminal, or who manages us, wants us to leave.
    [[nodiscard]] bool is_asked_to_leave() {
        bool interrupted = false;
        while (const auto signal = gate_.next())
            interrupted = interrupted || signal->ssi_signo == SIGINT || signal->ssi_signo == SIGTERM ||
                          signal->ssi_signo == SIGHUP || signal->ssi_signo == SIGQUIT;
        return interrupted;
    }

    // The processes of one training agreed on a step to leave after, and came so far: one of them that was
    // seen to be leaving may have ended by now, and a launcher's exit code says nothing of it.
    [[nodiscard]] bool has_left_together() const {
        const std::uint64_t agreed = control_->stop_step();
        return control_->stop_requested() && agreed != 0 && control_->step() >= agreed;
    }

    void look_at_control() {
        if (!control_) return;
        const TrainingState state = control_->state();
        result_.attached = result_.attached || state != TrainingState::kNotAttached;
        if ((state == TrainingState::kStopping || has_left_together()) && !leaving_) {
            leaving_ = true;  // it obeys: its own clean-up gets the whole grace
            stop_deadline_ = base::monotonic_nanos() + grace();
        }
    }

    // Whether a training that was asked to stop and does not leave is ended.
    [[nodiscard]] bool is_pressed() const { return options_.stop_grace.has_value() || is_stalled_; }
    [[nodiscard]] std::int64_t grace() const {
        return options_.stop_grace ? options_.stop_grace->count() : is_stalled_ ? kStallGraceNanos : 0;
    }

    // After a stop request, where a grace was given: ask, then SIGTERM, then SIGKILL, a grace apart. To our
    // child alone; what it started is its own affair.
    void press_stop() {
        if (!follower_ || !follower_->acted_on()) return;
        const std::int64_t now = base::monotonic_nanos();
        if (!is_stalled_ && follower_->is_stalled()) {
            is_stalled_ = true;
            if (!options_.stop_grace) stop_deadline_ = now + grace();
            console_.error(base::format(
                "traindbg: the training stalls and may come to no step boundary: it gets SIGTERM in {}, and "
                "SIGKILL after as long again, unless it ends\n",
                base::human_duration(grace())));
        }
        if (stop_asked_nanos_ == 0) {
            stop_asked_nanos_ = now;
            stop_deadline_ = now + grace();
        }
        if (!is_pressed() || now < stop_deadline_ || pressed_ == SIGKILL) return;
        pressed_ = pressed_ == 0 ? SIGTERM : SIGKILL;
        const actions::JournalEntry entry{
            "stop",
            base::format("send {} to process {}, which was asked to stop {} before",
                         pressed_ == SIGTERM ? "SIGTERM" : "SIGKILL", child_,
                         base::human_duration(now - stop_asked_nanos_)),
            "done"};
        if (const auto kept = actions::write_down(options_.run, entry, *follower_->acted_on()); !kept.is_ok())
            trouble(kept.message());
        trouble(base::format("the training was asked to stop {} ago and has not ended; sending {}",
                             base::human_duration(now - stop_asked_nanos_),
                             pressed_ == SIGTERM ? "SIGTERM" : "SIGKILL"));
        pass_on(pressed_);
        stop_deadline_ = now + grace();
    }

    void show_status(bool force) {
        if (!status_) return;
        StatusFacts facts;
        facts.run_name = options_.run_name;
        if (control_) {
            facts.attached = result_.attached;
            facts.steps = control_->step();
        }
        follower_->describe(facts);
        if (stop_asked_nanos_ != 0) facts.note = leaving_ ? "stopping" : "stop requested";
        status_->show(facts, force);
    }

    void conclude() {
        look_at_control();
        if (follower_) {
            follower_->finish([this] { return is_asked_to_leave(); });
            result_.was_judged = true;
            result_.verdict = follower_->verdict();
            result_.is_gone = follower_->is_gone();
            if (follower_->verdict_status().code() == base::Code::kResourceExhausted)
                result_.verdict_kept = follower_->verdict_status();
            result_.steps_seen = follower_->steps_seen();
            result_.attached = result_.attached || result_.steps_seen > 0;
            result_.stop_cause = follower_->acted_on();
            const auto& troubles = follower_->troubles();
            result_.troubles.insert(result_.troubles.end(), troubles.begin(), troubles.end());
        }
        // A request that came too late to be seen stopped nothing.
        const int code = exit_code_of_wait_status(result_.wait_status);
        result_.stopped_by_rule =
            result_.stop_cause.has_value() && (leaving_ || pressed_ != 0 || code == kExitStoppedByRule);
        status_.reset();
        if (options_.notifier != nullptr) {
            options_.notifier->finish(options_.notify_timeout, [this] { return is_asked_to_leave(); });
            tell_of_notifications();
        }
        show_metrics(true);
    }

    void show_metrics(bool is_over) {
        if (options_.metrics == nullptr || !follower_ || (!is_over && options_.metrics->due_in() > 0)) return;
        actions::Metrics metrics;
        metrics.is_running = !is_over;
        follower_->describe(metrics);
        options_.metrics->publish(std::move(metrics));
        for (const std::string& what : options_.metrics->take_troubles()) trouble(what);
    }

    const SupervisorOptions& options_;
    Console& console_;
    storage::FileSystem& files_;
    SignalGate& gate_;
    std::unique_ptr<storage::ControlBlock> control_;
    std::optional<SupervisorLock> lock_;
    std::unique_ptr<actions::Action> action_;
    std::unique_ptr<Follower> follower_;
    std::unique_ptr<StatusLine> status_;
    pid_t child_ = -1;
    bool leaving_ = false;
    bool is_stalled_ = false;  // it was asked to stop as it stalls
    int pressed_ = 0;          // the strongest signal sent so far
    std::int64_t stop_asked_nanos_ = 0;
    std::int64_t stop_deadline_ = 0;
    Supervised result_;
};

}  // namespace

Supervised supervise(const SupervisorOptions& options, Console& console, storage::FileSystem& files) {
    auto gate = SignalGate::open();
    if (!gate.is_ok()) {
        Supervised failed;
        failed.spawn_error = EAGAIN;
        failed.troubles.push_back(gate.status().message());
        return failed;
    }
    Supervisor supervisor(options, console, files, *gate);
    return supervisor.run();
}

}  // namespace traindbg::cli
