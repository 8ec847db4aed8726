#include "traindbg/cli/follower.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/cli/run_files.h"
#include "traindbg/report/report.h"

namespace traindbg::cli {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t kVerdictNanosBetween = 500'000'000;
constexpr std::int64_t kSpeedWindowNanos = 3'000'000'000;

// A block of lines that begins on a line of its own, whatever the training was writing.
std::string as_block(std::string text, bool is_terminal) {
    while (!text.empty() && text.back() == '\n') text.pop_back();
    text = "\n" + text + "\n";
    if (!is_terminal) return text;
    std::string out;  // a terminal that the training made raw does not return by itself
    for (const char letter : text) {
        if (letter == '\n') out += '\r';
        out += letter;
    }
    return out;
}

}  // namespace

Follower::Follower(FollowerOptions options, Console& console, storage::FileSystem& files,
                   std::unique_ptr<read::RunTail> tail, std::unique_ptr<engine::Judge> judge,
                   engine::Engine* engine, SpreadJudge* spread)
    : options_(std::move(options)),
      console_(console),
      files_(files),
      tail_(std::move(tail)),
      judge_(std::move(judge)),
      engine_(engine),
      spread_(spread),
      journal_(options_.run, std::move(options_.past), options_.dry_run) {
    judge_->set_listener([this](const model::Finding& finding) { on_finding(finding); });
    judge_->set_failure_listener([this](const std::string& rule, const std::string& why) {
        verdict_changed_ = true;
        trouble(base::format("rule {}: {}; it judges no more, the training and the other rules go on", rule,
                             why));
    });
    if (spread_ != nullptr) watch_processes();
}

base::Result<std::unique_ptr<Follower>> Follower::open(FollowerOptions options, Console& console,
                                                       storage::FileSystem& files) {
    std::unique_ptr<engine::Judge> judge;
    engine::Engine* in_one = nullptr;
    SpreadJudge* spread = nullptr;
    if (options.spreading.processes > 1 && options.choices.size() > 1) {
        TRAINDBG_ASSIGN_OR_RETURN(
            auto made, SpreadJudge::start(options.run, options.choices, options.spreading, /*is_live=*/true));
        spread = made.get();
        judge = std::move(made);
    } else {
        TRAINDBG_ASSIGN_OR_RETURN(auto made, engine::Engine::make(options.choices));
        if (const auto meta = read_run_meta(options.run, files); meta.is_ok())
            made->on_begin(meta->started_wall_nanos);
        in_one = made.get();
        judge = std::move(made);
    }
    const bool with_raw = spread == nullptr && rules::want_raw(options.choices);
    TRAINDBG_ASSIGN_OR_RETURN(auto tail, read::RunTail::open(options.run, files, with_raw));
    return std::unique_ptr<Follower>(
        new Follower(std::move(options), console, files, std::move(tail), std::move(judge), in_one, spread));
}

void Follower::watch_processes() {
    spread_->set_trouble_listener([this](const std::string& what) {
        verdict_changed_ = true;
        // Each of them says what all of them, and we, may see.
        if (std::find(troubles_.begin(), troubles_.end(), what) == troubles_.end()) trouble(what);
    });
    waker_ = base::FileDescriptor(::epoll_create1(EPOLL_CLOEXEC));
    for (const int descriptor : {tail_->wake_descriptor(), spread_->wake_descriptor()}) {
        epoll_event event{};
        event.events = EPOLLIN;
        if (descriptor < 0 || ::epoll_ctl(waker_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) {
            waker_.reset();  // then it is looked now and then
            return;
        }
    }
}

int Follower::wake_descriptor() const noexcept {
    return spread_ != nullptr ? waker_.get() : tail_->wake_descriptor();
}

std::optional<model::StepIndex> Follower::newest_step() const {
    if (!newest_) return std::nullopt;
    return newest_->step;
}

void Follower::trouble(std::string what, bool is_passing) {
    if (!options_.on_trouble) console_.warn(what);
    else if (!is_passing) options_.on_trouble(what);
    troubles_.push_back(std::move(what));
}

bool Follower::advance(std::chrono::nanoseconds slice, bool is_running) {
    const std::int64_t until = base::monotonic_nanos() + slice.count();
    bool more = false;
    while (!tail_failed_ && base::monotonic_nanos() >= retry_nanos_) {
        auto step = tail_->next(std::chrono::nanoseconds(0));
        if (!step.is_ok()) {
            on_read_error(step.status());
            break;
        }
        if (const std::int64_t since = std::exchange(failing_since_nanos_, 0); since != 0) {
            is_gone_ = false;
            trouble(base::format("{}: can be read again after {}; nothing is left out",
                                 base::printable(options_.run),
                                 base::human_duration(base::monotonic_nanos() - since)),
                    /*is_passing=*/true);
        }
        if (!step->has_value()) {
            if (is_running) judge_->on_time(base::wall_nanos());
            break;
        }
        on_step(**step);
        if (base::monotonic_nanos() >= until) {
            more = true;
            break;
        }
    }
    if (spread_ != nullptr) spread_->attend();
    keep_verdict(false);
    return more;
}

// True: the run's directory is not there any more, which is said once.
bool Follower::tell_if_gone() {
    if (!cli::is_gone(options_.run, files_)) return false;
    if (!std::exchange(is_gone_, true)) trouble(gone_in_words(options_.run), /*is_passing=*/true);
    return true;
}

// The same step is tried again: nothing is judged twice or left out.
void Follower::on_read_error(const base::Status& status) {
    const std::int64_t now = base::monotonic_nanos();
    const bool is_first = failing_since_nanos_ == 0;
    if (is_first) failing_since_nanos_ = now;
    // What is damaged stays damaged; a reader goes around it, and where it does not, waiting is of no use.
    const bool is_permanent =
        status.code() == base::Code::kUnsupported || status.code() == base::Code::kInvalidArgument;
    const auto patience = finished_ ? options_.give_up_at_end_after : options_.give_up_after;
    // One that was moved may come back, as long as somebody trains.
    const bool is_gone = status.code() == base::Code::kNotFound && tell_if_gone();
    if (is_gone && (finished_ || now - failing_since_nanos_ >= patience.count())) {
        tail_failed_ = true;
        return;
    }
    if (is_permanent || now - failing_since_nanos_ >= patience.count()) {
        tail_failed_ = true;
        trouble(base::format("{}; this run is no longer judged, the training goes on", status.message()));
        return;
    }
    retry_nanos_ = now + options_.retry_after.count();
    if (is_first && !is_gone)
        trouble(base::format("{}; looking again every {} until it can be read", status.message(),
                             base::human_duration(options_.retry_after.count())),
                /*is_passing=*/true);
}

void Follower::finish(const std::function<bool()>& interrupted) {
    if (finished_) return;
    finished_ = true;
    if (failing_since_nanos_ != 0) failing_since_nanos_ = base::monotonic_nanos();  // from here on
    tail_->finish_when_idle();
    if (spread_ != nullptr) spread_->finish();
    while (advance(kSlice, /*is_running=*/false) || (!tail_failed_ && !tail_->ended())) {
        if (interrupted()) {
            trouble("interrupted while the last steps were judged: the findings are of those before",
                    /*is_passing=*/true);
            if (spread_ != nullptr) spread_->leave();
            break;
        }
        if (failing_since_nanos_ != 0)
            std::this_thread::sleep_for(std::min<nanoseconds>(kSlice, options_.retry_after));
    }
    judge_->on_end();
    // Of a run that ended before somebody looked; while it is supervised, its end is not known yet.
    if (const auto end = read_run_end(options_.run, files_); end.is_ok()) judge_->on_time(end->wall_nanos);
    if (spread_ != nullptr) finish_processes(interrupted);
    verdict_changed_ = true;
    keep_verdict(true);
}

// They are as far as they are: one that says nothing for long is ended.
void Follower::finish_processes(const std::function<bool()>& interrupted) {
    constexpr std::int64_t kLeavingNanos = 5'000'000'000;
    std::int64_t leaving_since = 0;
    while (!spread_->is_done()) {
        spread_->attend(kSlice);
        keep_verdict(false);
        if (leaving_since == 0 && interrupted()) {
            leaving_since = base::monotonic_nanos();
            spread_->leave();
        }
        if (leaving_since != 0 && base::monotonic_nanos() - leaving_since > kLeavingNanos) {
            trouble("interrupted: processes that judge were not waited for; what they have said counts");
            break;
        }
    }
}

void Follower::on_step(const model::StepView& step) {
    ++steps_seen_;
    judge_->on_step(step);
    // A step that its writer dropped leaves its number out.
    const auto [known, is_first] = sequences_.try_emplace(step.worker);
    Sequence& sequence = known->second;
    if (is_first) sequence.next = step.record->sequence;  // what was before may have been removed
    if (step.record->sequence > sequence.next) sequence.missing += step.record->sequence - sequence.next;
    sequence.next = std::max(sequence.next, step.record->sequence + 1);
    if (step.mode() != model::Mode::kTrain) return;
    act_again_where_it_goes_on();
    const model::StepRecord& record = *step.record;
    ++train_steps_;
    step_nanos_ += record.step_nanos;
    if (record.step_nanos != 0) capture_nanos_ += record.capture_nanos;
    if (step.worker != 0) return;
    for (const model::ScalarSample& scalar : record.scalars)
        if (scalar.tensor < step.tensors->size() && step.info(scalar.tensor).role == model::Role::kLoss) {
            loss_ = scalar.value;
            break;
        }
    newest_ = Mark{record.step, record.monotonic_nanos};
    if (!mark_ || record.monotonic_nanos - mark_->monotonic_nanos > kSpeedWindowNanos) {
        older_mark_ = mark_;
        mark_ = newest_;
    }
}

void Follower::on_finding(const model::Finding& finding) {
    verdict_changed_ = true;
    if (options_.on_change) options_.on_change(finding);
    const bool fires = finding.state == model::FindingState::kFiring;
    if (fires) {
        if (finding.times == 1) ++findings_;
        if (options_.on_fires) options_.on_fires();
    }
    if (options_.prints_findings && finding.times > 0) print(finding);
    if (!fires || finding.severity < options_.act_at) return;
    if (options_.notifier != nullptr) options_.notifier->tell(finding);
    // A correction is one of this occurrence: a fault that was over and comes back is corrected again.
    act(finding, options_.action != nullptr && options_.action->patience_steps() != 0);
}

// One that comes and goes is not told each time; the summary says how it ended.
void Follower::print(const model::Finding& finding) {
    const auto say = [this](std::string text) {
        console_.error(as_block(std::move(text), console_.error_is_terminal()));
    };
    const std::tuple key(finding.rule, finding.key, finding.worker);
    const bool fires = finding.state == model::FindingState::kFiring;
    if (fires && finding.times == 1)
        say(report::terminal_finding(finding, console_.error_colour(), console_.error_columns()));
    else if (fires && told_back_.insert(key).second)
        say(base::format("traindbg: {} is back at step {}", finding.rule, finding.last_step));
    else if (finding.state == model::FindingState::kResolved && told_over_.insert(key).second)
        say(base::format("traindbg: {} is over, last seen at step {}", finding.rule, finding.last_step));
}

void Follower::act(const model::Finding& finding, bool again) {
    if (options_.action == nullptr || !options_.action->helps_against(finding)) return;
    if (!options_.act_for.empty() && !options_.act_for.contains(finding.rule)) return;
    is_stalled_ = is_stalled_ || options_.stalls.contains(finding.rule);
    const actions::Performed performed = journal_.perform(*options_.action, finding, again);
    const auto say = [this](const std::string& what) {
        if (options_.prints_findings)
            console_.error(as_block("traindbg: " + what, console_.error_is_terminal()));
    };
    if (options_.action->patience_steps() != 0 && performed.outcome != actions::Outcome::kFailed)
        acted_step_ = newest_ ? newest_->step : finding.step;
    if (performed.outcome == actions::Outcome::kDone) {
        if (!acted_on_ && options_.action->ends_training()) acted_on_ = finding;
        say("asked to " + options_.action->intention(finding));
    } else if (performed.outcome == actions::Outcome::kDryRun) {
        say("dry run: would ask to " + options_.action->intention(finding));
    } else if (performed.outcome == actions::Outcome::kFailed) {
        trouble(performed.status.message());
    }
    if (!performed.journal.is_ok()) trouble(performed.journal.message());
}

// A correction has been given its time, and the fault is still seen.
void Follower::act_again_where_it_goes_on() {
    const std::uint64_t patience = options_.action == nullptr ? 0 : options_.action->patience_steps();
    if (patience == 0 || !acted_step_ || !newest_ || newest_->step < *acted_step_ + patience) return;
    acted_step_ = newest_->step;  // the next look is as far away, whatever comes of this one
    // Processes may be some steps behind us.
    const model::StepIndex judged =
        spread_ == nullptr ? newest_->step : std::min(newest_->step, spread_->newest_step().value_or(0));
    const model::Verdict verdict = judge_->verdict();
    for (const model::Finding& finding : verdict.findings)
        if (finding.state == model::FindingState::kFiring && finding.severity >= options_.act_at &&
            finding.last_step + patience / 2 >= judged && options_.action->helps_against(finding))
            return act(finding, true);
}

void Follower::keep_verdict(bool now) {
    if (!options_.keeps_verdict || !verdict_changed_ || verdict_was_told_ || (verdict_failed_ && !now))
        return;
    if (!now && base::monotonic_nanos() - verdict_nanos_ < kVerdictNanosBetween) return;
    verdict_changed_ = false;
    verdict_nanos_ = base::monotonic_nanos();
    verdict_status_ = write_verdict(options_.run, judge_->verdict(), options_.choices, files_);
    if (verdict_status_.is_ok()) return;
    verdict_failed_ = true;
    // At the end it is tried again: a disk that is full may have room by then.
    const bool is_full = verdict_status_.code() == base::Code::kResourceExhausted;
    if ((is_full && (!now || !options_.tells_full_disk)) || tell_if_gone()) return;
    verdict_was_told_ = true;
    trouble(base::format("{}; findings are printed but not kept", verdict_status_.message()));
}

void Follower::describe(StatusFacts& facts) const {
    facts.findings = findings_;
    facts.loss = loss_;
    facts.attached = facts.attached || steps_seen_ > 0;
    if (newest_) facts.steps = std::max<std::uint64_t>(facts.steps, newest_->step + 1);
    const std::optional<Mark>& from = older_mark_ ? older_mark_ : mark_;
    if (from && newest_ && newest_->step > from->step && newest_->monotonic_nanos > from->monotonic_nanos)
        facts.steps_per_second = static_cast<double>(newest_->step - from->step) * 1e9 /
                                 static_cast<double>(newest_->monotonic_nanos - from->monotonic_nanos);
    if (step_nanos_ > 0)
        facts.capture_share = static_cast<double>(capture_nanos_) / static_cast<double>(step_nanos_);
}

void Follower::describe(actions::Metrics& metrics) const {
    StatusFacts facts;
    describe(facts);
    if (newest_) metrics.step = newest_->step;
    metrics.train_steps = train_steps_;
    metrics.loss = loss_;
    metrics.steps_per_second = facts.steps_per_second;
    metrics.step_nanos = step_nanos_;
    metrics.capture_nanos = capture_nanos_;
    for (const auto& [worker, sequence] : sequences_) metrics.steps_dropped += sequence.missing;
    if (finished_) {  // what the workers themselves counted
        if (const auto run = read::Run::open(options_.run, files_); run.is_ok()) {
            const read::RunTotals totals = (*run)->totals();
            metrics.steps_dropped = std::max(metrics.steps_dropped, totals.steps_dropped);
            metrics.raw_tensors_dropped = totals.raw_tensors_dropped;
        }
    }
    metrics.verdict = judge_->verdict();
    if (options_.notifier != nullptr) metrics.channels = options_.notifier->counts();
}

}  // namespace traindbg::cli
