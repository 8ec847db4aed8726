#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <nlohmann/json.hpp>

#include "traindbg/actions/action.h"
#include "traindbg/aws/credentials.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/custom_rules.h"
#include "traindbg/cli/exit_code.h"
#include "traindbg/cli/follower.h"
#include "traindbg/cli/notifying.h"
#include "traindbg/cli/other_runs.h"
#include "traindbg/cli/process.h"
#include "traindbg/cli/report_file.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/cli/run_location.h"
#include "traindbg/cli/run_names.h"
#include "traindbg/cli/status_line.h"
#include "traindbg/cli/verb.h"
#include "traindbg/model/json.h"
#include "traindbg/options/rule_options.h"
#include "traindbg/options/run_options.h"
#include "traindbg/report/report.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::cli {
namespace {

// How often it is asked whether the training still lives.
constexpr int kMillisBetweenLooks = 500;
// A run in a bucket that nobody supervised is opened to see whether its workers have ended.
constexpr std::int64_t kNanosBetweenOpens = 10'000'000'000;

class WatchVerb final : public Verb {
  public:
    void declare(OptionSet& options) override {
        declare_run(options, run_);
        options.flag(
            {.names = "--until-end",
             .help = "Be the run's supervisor: keep verdict.json and write report.html, unless another "
                     "process does. traindbg.watch() starts this."},
            until_end_);
        options.text({.names = "--on-finding",
                      .placeholder = "ACTION",
                      .help = options::kOnFindingHelp,
                      .choices = options::on_finding_words()},
                     on_finding_);
        options.flag({.names = "--dry-run", .help = options::kDryRunHelp}, dry_run_);
        options.text({.names = "--act-at",
                      .placeholder = "SEVERITY",
                      .help = "The least severity to act on (default warning).",
                      .choices = {"info", "warning", "error"}},
                     act_at_);
        options.text({.names = "--fail-on",
                      .placeholder = "SEVERITY",
                      .help = "Exit with 1 when a rule fired at this severity or above (default never).",
                      .choices = options::fail_on_words()},
                     fail_on_);
        notify_.declare(options);
        options.flag({.names = "--notify-again",
                      .help = "Tell findings again that were told before, as the run's actions.jsonl says."},
                     notify_again_);
        options.flag(
            {.names = "-q,--quiet", .help = "No status line and no summary; findings are still printed."},
            quiet_);
        options.flag({.names = "--json", .help = "Print the verdict as JSON at the end."}, json_);
        declare_runs(options, runs_);
        rules_.declare(options);
    }

    int run(Console& console) override {
        const auto location = RunLocation::of(run_, runs_root(runs_));
        if (!location.is_ok()) return fail(console, location.status());
        storage::FileSystem& files = location->files();
        open_other_runs_below(runs_);
        const auto fail_on = parse_fail_on(fail_on_);
        if (!fail_on.is_ok()) return fail(console, fail_on.status());
        if (const base::Status status = load_custom_rules(rules_.custom); !status.is_ok())
            return fail(console, status);
        auto choices = rules_.choices();
        if (!choices.is_ok()) return fail(console, choices.status());
        for (const std::string& text : rules_.set_aside()) console.warn(text);
        const auto path = resolve_run(run_, runs_root(runs_), files);
        if (!path.is_ok()) return fail(console, path.status());
        // A run in a bucket has none: it is looked at only.
        std::unique_ptr<storage::ControlBlock> control;
        if (!is_remote(*path)) {
            auto opened = storage::ControlBlock::open(storage::RunLayout{*path}.control());
            if (!opened.is_ok()) return fail(console, opened.status());
            control = std::move(opened).value();
        } else if (on_finding_ != "none" || until_end_) {
            return fail(console,
                        {base::Code::kUnsupported, base::printable(*path) +
                                                       ": is a copy in a bucket; the training can be stopped "
                                                       "and supervised on its own machine only"});
        }

        auto requested = requested_actions(notify_, rules_);
        if (!requested.is_ok()) return fail(console, requested.status());
        if (const base::Status status = check_targets(notify_, *requested); !status.is_ok())
            return fail(console, status);
        for (RuleAction& action : actions_of_parameters(*choices)) requested->push_back(std::move(action));
        const std::string run_name = base_name(*path);
        const Acting acting =
            what_to_do(on_finding_, *requested, run_name, aws::process_environment("TRAINING_JOB_NAME"));
        for (const std::string& note : acting.notes) console.warn(note);
        for (const std::string& rule : acting.stalls)
            console.warn(
                base::format("{}.stop_training_on_fire: watch asks the training to stop, and does not end "
                             "one that comes to no step; traindbg run does",
                             rule));
        if (is_remote(*path) && (tells_somebody(notify_, *requested) || acting.action != "none"))
            return fail(console, {base::Code::kUnsupported,
                                  base::printable(*path) +
                                      ": is a copy in a bucket; who is to be told is asked of the training's "
                                      "own machine, where the journal is"});
        actions::PastActions past;
        if (control) past = actions::PastActions::read(*path);
        if (!past.trouble().empty()) console.warn(past.trouble());
        auto notifier = open_notifier(notify_, *requested, *path, files, dry_run_,
                                      notify_again_ ? actions::PastActions() : past);
        if (!notifier.is_ok()) return fail(console, notifier.status());
        const auto metrics = open_metrics(notify_, *path, files, console);

        // A second follower only looks on.
        std::optional<SupervisorLock> lock;
        if (until_end_) lock = SupervisorLock::take(*path);
        std::unique_ptr<actions::Action> action;
        if (control) action = actions::make_action(acting.action, *control);
        FollowerOptions options;
        options.run = *path;
        options.choices = *choices;
        options.spreading = Spreading::of(rules_, runs_);
        options.keeps_verdict = lock.has_value();
        if (lock) options.on_fires = [&control] { control->request_flight_copy(); };
        options.action = action.get();
        options.act_for = acting.rules;
        options.past = std::move(past);
        options.dry_run = dry_run_;
        options.notifier = notifier->get();
        options.act_at = model::parse_severity(act_at_).value_or(model::Severity::kWarning);
        auto gate = SignalGate::open();
        if (!gate.is_ok()) return fail(console, gate.status());
        auto follower = Follower::open(std::move(options), console, files);
        if (!follower.is_ok()) return fail(console, follower.status());
        static_cast<void>(::setpriority(PRIO_PROCESS, 0, ::getpriority(PRIO_PROCESS, 0) + 5));

        const bool ended =
            follow(**follower, control.get(), *path, *gate, files, console, lock.has_value(), metrics.get());
        // Who left does not wait for a run that cannot be read, and nobody waits after another Ctrl-C.
        (*follower)->finish([&] { return asks_to_leave(*gate) || (!ended && (*follower)->is_failing()); });
        if (*notifier != nullptr) {
            (*notifier)->finish(std::chrono::nanoseconds(static_cast<std::int64_t>(notify_.timeout * 1e9)),
                                [&] { return asks_to_leave(*gate); });
            for (const std::string& what : (*notifier)->take_troubles()) console.warn(what);
        }
        show_metrics(metrics.get(), **follower, /*is_running=*/false, console);
        const model::Verdict verdict = (*follower)->verdict();
        if (is_gone(*path, files)) {
            if (!(*follower)->is_gone()) console.warn(gone_in_words(*path));
        } else if (lock && ended) {
            write_report_at_end(*path, verdict, files, console);
        }
        if (json_) {
            model::Json json = {{"schema_version", 1}, {"run", base::printable(*path)}, {"ended", ended}};
            json.update(model::to_json(verdict));
            console.out(json.dump(2) + "\n");
        } else if (!quiet_) {
            console.error("\n" +
                          report::terminal_verdict(verdict, console.error_colour(), console.error_columns()) +
                          "\n");
        }
        return has_finding_at(verdict, *fail_on) ? kExitFired : kExitClean;
    }

  private:
    // Until the run has ended (true) or somebody ends us (false).
    bool follow(Follower& follower, const storage::ControlBlock* control, const std::string& path,
                SignalGate& gate, storage::FileSystem& files, const Console& console, bool supervises,
                MetricsPublisher* metrics) {
        std::unique_ptr<StatusLine> status;
        if (!quiet_) status = StatusLine::open(console.error_colour());
        // The end is seen twice before it is believed: what was written before it is then read.
        bool over = is_over(control, path, files, supervises);
        while (true) {
            bool more = follower.advance(std::chrono::milliseconds(50), /*is_running=*/!over);
            if (status) {
                StatusFacts facts;
                facts.run_name = base_name(path);
                if (control != nullptr) {
                    facts.attached = control->state() != storage::TrainingState::kNotAttached;
                    facts.steps = control->step();
                }
                follower.describe(facts);
                status->show(facts);
            }
            if (metrics != nullptr && metrics->due_in() == 0)
                show_metrics(metrics, follower, /*is_running=*/true, console);
            if (!more && over) return true;
            over = is_over(control, path, files, supervises);
            std::array<pollfd, 2> waiting{
                {{gate.descriptor(), POLLIN, 0}, {follower.wake_descriptor(), POLLIN, 0}}};
            const int patience = follower.wake_descriptor() < 0 ? 50 : kMillisBetweenLooks;
            static_cast<void>(::poll(waiting.data(), waiting.size(), more || over ? 0 : patience));
            while (const auto signal = gate.next()) {
                switch (static_cast<int>(signal->ssi_signo)) {
                    case SIGINT:
                    case SIGTERM:
                    case SIGHUP:
                    case SIGQUIT:
                        // With the training in the same terminal, Ctrl-C is meant for it; its end is ours.
                        if (until_end_ && came_from_terminal(*signal)) break;
                        return false;
                    case SIGWINCH:
                        if (status) status->resized();
                        break;
                    case SIGTSTP:
                        if (status) status->suspend();
                        ::raise(SIGSTOP);
                        break;
                    case SIGCONT:
                        if (status && ::tcgetpgrp(STDERR_FILENO) == ::getpgrp()) status->resume();
                        break;
                    default: break;
                }
            }
        }
    }

    static void show_metrics(MetricsPublisher* publisher, const Follower& follower, bool is_running,
                             const Console& console) {
        if (publisher == nullptr) return;
        actions::Metrics metrics;
        metrics.is_running = is_running;
        follower.describe(metrics);
        publisher->publish(std::move(metrics));
        for (const std::string& what : publisher->take_troubles()) console.warn(what);
    }

    [[nodiscard]] static bool asks_to_leave(SignalGate& gate) {
        bool asks = false;
        while (const auto signal = gate.next()) {
            const int number = static_cast<int>(signal->ssi_signo);
            asks = asks || number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
        }
        return asks;
    }

    [[nodiscard]] bool is_over(const storage::ControlBlock* control, const std::string& path,
                               storage::FileSystem& files, bool supervises) {
        // The first worker to end says so in the control page; the others may still write.
        bool closed = false;
        bool may_be_closed = control != nullptr && control->state() == storage::TrainingState::kEnded;
        if (control == nullptr && base::monotonic_nanos() - looked_nanos_ > kNanosBetweenOpens) {
            may_be_closed = true;
            looked_nanos_ = base::monotonic_nanos();
        }
        if (may_be_closed)
            if (const auto run = read::Run::open(path, files); run.is_ok())
                closed = !(*run)->workers().empty() && (*run)->is_complete();
        const RunState state = state_of_run(path, closed, files, supervises);
        return state != RunState::kRunning && state != RunState::kWaiting &&
               !waits_for_training(state, control);
    }

    // A run without a training looks like one whose training is gone; a supervisor that was started
    // with the training gives it time to attach.
    [[nodiscard]] bool waits_for_training(RunState state, const storage::ControlBlock* control) const {
        return until_end_ && state == RunState::kCrashed && control != nullptr &&
               control->state() == storage::TrainingState::kNotAttached &&
               base::monotonic_nanos() - started_nanos_ < 60'000'000'000;
    }

    static void write_report_at_end(const std::string& path, const model::Verdict& verdict,
                                    storage::FileSystem& files, const Console& console) {
        auto run = read::Run::open(path, files);
        if (!run.is_ok()) {
            console.warn(run.status().message());
            return;
        }
        if (const base::Status written =
                write_report(**run, verdict, storage::RunLayout{path}.report_html(), files);
            !written.is_ok())
            console.warn(written.message());
    }

    std::string run_;
    std::string runs_;
    bool until_end_ = false;
    std::string on_finding_ = "none";
    options::NotifyOptions notify_;
    std::string act_at_ = "warning";
    bool dry_run_ = false;
    bool notify_again_ = false;
    std::string fail_on_ = "never";
    bool quiet_ = false;
    bool json_ = false;
    options::RuleOptions rules_;
    std::int64_t started_nanos_ = base::monotonic_nanos();
    std::int64_t looked_nanos_ = started_nanos_;
};

}  // namespace

VerbEntry watch_verb() {
    return {
        .name = "watch",
        .summary = "Follow a run that something else is writing, until it ends.",
        .usage = "[options] RUN",
        .about =
            "Judges a run while it grows, prints findings as they appear, and ends with it. It does not "
            "touch the training; ending it with Ctrl-C ends only the watching.",
        .examples =
            "  traindbg watch last\n  traindbg watch traindbg-runs/night --on-finding stop --act-at error\n"
            "  traindbg watch last --notify prometheus:9464\n",
        .make = []() -> std::unique_ptr<Verb> { return std::make_unique<WatchVerb>(); }};
}

}  // namespace traindbg::cli
