// Judges a run while it grows: reads the steps as they are committed, shows them to the rules, prints
// findings as they fire, keeps `verdict.json`, and asks for the actions that the user chose.
//
// `run` and `watch` both drive one. Nothing here waits: the caller polls `wake_descriptor`.
//
// Thread-safety: one thread at a time. Errors: trouble with the run's files is said once, counted in
// `troubles`, and never reaches the training.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "traindbg/actions/action.h"
#include "traindbg/actions/action_journal.h"
#include "traindbg/actions/metrics.h"
#include "traindbg/actions/notifier.h"
#include "traindbg/base/file_descriptor.h"
#include "traindbg/base/status.h"
#include "traindbg/cli/console.h"
#include "traindbg/cli/judging.h"
#include "traindbg/cli/spread_judge.h"
#include "traindbg/cli/status_line.h"
#include "traindbg/engine/engine.h"
#include "traindbg/read/run.h"
#include "traindbg/rules/rule.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::cli {

struct FollowerOptions {
    std::string run;  // its directory
    std::vector<rules::RuleChoice> choices;
    Spreading spreading = {};
    bool keeps_verdict = true;  // writes verdict.json; one process per run may
    // A verdict for which the disk has no room at the end is told by who follows, with what else has none.
    bool tells_full_disk = true;
    bool prints_findings = true;
    actions::Action* action = nullptr;      // taken for findings from `act_at` up; outlives the follower
    std::set<std::string> act_for = {};     // rules for which the action is taken; empty: all
    std::set<std::string> stalls = {};      // rules that say that no step comes any more: Acting::stalls
    actions::PastActions past = {};         // what was done before, and is not done again
    bool dry_run = false;                   // the action is written down, and not taken
    actions::Notifier* notifier = nullptr;  // told of the same findings; outlives the follower
    model::Severity act_at = model::Severity::kWarning;
    std::function<void()> on_fires = {};  // a finding is new, or has come back; before the action
    // Of a judge that judges for another one: told of all that begins or ends, first; and of troubles that
    // its own reading has not, instead of the console.
    std::function<void(const model::Finding&)> on_change = {};
    std::function<void(const std::string& what)> on_trouble = {};
    // A run that cannot be read just now (a network, a file system that was away) is looked at again after
    // `retry_after`, and given up when it could not be read for so long; at the end of the run, sooner.
    std::chrono::nanoseconds retry_after = std::chrono::seconds(1);
    std::chrono::nanoseconds give_up_after = std::chrono::minutes(10);
    std::chrono::nanoseconds give_up_at_end_after = std::chrono::seconds(20);
};

class Follower {
  public:
    // How long one look at new steps may take before signals are looked at again.
    static constexpr std::chrono::milliseconds kSlice{50};
    // A fast training commits thousands of steps a second. They are taken in batches, this far apart at
    // least, so that judging costs few wake-ups.
    static constexpr std::int64_t kBatchNanos = 20'000'000;

    [[nodiscard]] static base::Result<std::unique_ptr<Follower>> open(FollowerOptions options,
                                                                      Console& console,
                                                                      storage::FileSystem& files);
    Follower(const Follower&) = delete;
    Follower& operator=(const Follower&) = delete;

    // -1: none; look now and then.
    [[nodiscard]] int wake_descriptor() const noexcept;
    // Takes what is there, for at most about `slice`. True: there may be more already. `is_running`: where
    // nothing is there, something may be written still, and time passes.
    bool advance(std::chrono::nanoseconds slice, bool is_running = true);
    // Nobody writes any more: takes the rest (until `interrupted` says to leave it), gives the rules
    // their last word and keeps the verdict.
    void finish(const std::function<bool()>& interrupted);
    [[nodiscard]] model::Verdict verdict() const { return judge_->verdict(); }
    // Null where the rules are spread over processes.
    [[nodiscard]] const engine::Engine* engine() const noexcept { return engine_; }
    // Of TRAIN, of worker 0.
    [[nodiscard]] std::optional<model::StepIndex> newest_step() const;
    // The last look at the run failed; another one is due.
    [[nodiscard]] bool is_failing() const noexcept { return failing_since_nanos_ != 0; }
    // Fills in what the steps tell.
    void describe(StatusFacts& facts) const;
    // The same with the verdict, what was dropped and what was told.
    void describe(actions::Metrics& metrics) const;
    [[nodiscard]] std::uint64_t steps_seen() const noexcept { return steps_seen_; }
    // The finding because of which the training was first asked to stop.
    [[nodiscard]] const std::optional<model::Finding>& acted_on() const noexcept { return acted_on_; }
    // It was, and one of the rules of `stalls` fired: it may never come to a step at which it sees that.
    [[nodiscard]] bool is_stalled() const noexcept { return acted_on_.has_value() && is_stalled_; }
    // The run's directory was there, and is not any more.
    [[nodiscard]] bool is_gone() const noexcept { return is_gone_; }
    // How keeping the verdict went, the last time.
    [[nodiscard]] const base::Status& verdict_status() const noexcept { return verdict_status_; }
    // What went wrong, and what came of it: a run that could not be read for a while is told here, too.
    [[nodiscard]] const std::vector<std::string>& troubles() const noexcept { return troubles_; }

  private:
    Follower(FollowerOptions options, Console& console, storage::FileSystem& files,
             std::unique_ptr<read::RunTail> tail, std::unique_ptr<engine::Judge> judge,
             engine::Engine* engine, SpreadJudge* spread);
    void watch_processes();
    void finish_processes(const std::function<bool()>& interrupted);
    void on_step(const model::StepView& step);
    void on_finding(const model::Finding& finding);
    void print(const model::Finding& finding);
    void act(const model::Finding& finding, bool again);
    void act_again_where_it_goes_on();
    void keep_verdict(bool now);
    void on_read_error(const base::Status& status);
    bool tell_if_gone();
    // `is_passing`: of our own looking at the run.
    void trouble(std::string what, bool is_passing = false);

    FollowerOptions options_;
    Console& console_;
    storage::FileSystem& files_;
    std::unique_ptr<read::RunTail> tail_;
    std::unique_ptr<engine::Judge> judge_;
    engine::Engine* engine_ = nullptr;  // `judge_`, where it is one
    SpreadJudge* spread_ = nullptr;     // `judge_`, where it is one
    base::FileDescriptor waker_;        // where it is: for the tail and the processes
    actions::ActionJournal journal_;
    std::optional<model::Finding> acted_on_;
    bool is_stalled_ = false;
    std::vector<std::string> troubles_;
    std::set<std::tuple<std::string, std::string, model::WorkerId>> told_over_, told_back_;
    bool tail_failed_ = false;              // for good
    std::int64_t failing_since_nanos_ = 0;  // 0: the last look succeeded
    std::int64_t retry_nanos_ = 0;          // not before
    bool finished_ = false;
    bool verdict_changed_ = true;
    bool verdict_failed_ = false;    // not tried again before the end
    bool verdict_was_told_ = false;  // nor at the end
    base::Status verdict_status_;    // of the last try to keep it
    bool is_gone_ = false;           // the run's directory; told
    std::int64_t verdict_nanos_ = 0;

    struct Sequence {
        std::uint64_t next = 0;
        std::uint64_t missing = 0;
    };
    std::map<model::WorkerId, Sequence> sequences_;
    std::uint64_t steps_seen_ = 0;
    std::uint64_t train_steps_ = 0;
    std::uint64_t step_nanos_ = 0;
    std::uint64_t capture_nanos_ = 0;
    std::uint64_t findings_ = 0;
    std::optional<model::StepIndex> acted_step_;  // when a correction was asked for last
    std::optional<double> loss_;
    // For the speed: a training's own clock at two of its steps.
    struct Mark {
        model::StepIndex step;
        std::int64_t monotonic_nanos;
    };
    std::optional<Mark> older_mark_;
    std::optional<Mark> mark_;
    std::optional<Mark> newest_;
};

}  // namespace traindbg::cli
