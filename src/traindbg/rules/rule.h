// A rule: one way in which a training goes wrong, and how to see it.
//
// A rule sees the steps of one worker in the order in which they were recorded (those of all workers as they
// come, where its entry says so) and keeps all it needs in its own object. It does no I/O (the steps of
// another run come by other_run.h) and knows no clock, so that a live run, a stored run and a table of
// numbers in a test give the same findings. One rule, one file under `builtin/`, named after the fault;
// `registry.h` lists them all.
//
// Thread-safety: an object is used by one thread at a time; different objects are independent.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/rule_info.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/parameters.h"

namespace traindbg::rules {

// Where a rule puts what it found. A rule calls `fire` at every step at which it sees the fault, with
// the same `key` for the same fault; the engine makes one finding of it. `clear` says that the fault
// of that key is over.
class FindingSink {
  public:
    FindingSink() = default;
    FindingSink(const FindingSink&) = delete;
    FindingSink& operator=(const FindingSink&) = delete;
    virtual ~FindingSink() = default;
    // The engine fills in rule, worker, state, mode, step and last_step, and the rule's name as kind where
    // there is none. A rule that sees all workers says worker, mode and last_step itself, and its `clear`
    // holds for all workers. A rule that knows that the fault began earlier says so in `first_step`; one that
    // leaves it above the current step (the initial `kThisStep`) means "now".
    virtual void fire(model::Finding finding) = 0;
    virtual void clear(std::string_view key) = 0;
    // There was no fault: what was told under this key stays as a note that says so, with the words of
    // `note`, and is over. Nothing where nothing was told.
    // NOLINTNEXTLINE(performance-unnecessary-value-param): who overrides it keeps the note
    virtual void take_back(model::Finding note) { clear(note.key); }
};

class Rule {
  public:
    Rule() = default;
    Rule(const Rule&) = delete;
    Rule& operator=(const Rule&) = delete;
    virtual ~Rule() = default;

    // The run began so late (Unix time, nanoseconds). Called first, where that is known, of a rule that sees
    // all workers.
    virtual void on_begin(std::int64_t wall_nanos) { static_cast<void>(wall_nanos); }
    virtual void on_step(const model::StepView& step, FindingSink& sink) = 0;
    // The training is over; a rule that judges a whole run does it here.
    virtual void on_end(FindingSink& sink) { static_cast<void>(sink); }
    // It is so late (Unix time, nanoseconds), and nothing new was recorded. Called now and then while a run
    // is followed, and at most once, with the time at which it ended, for one that is stored. A rule that
    // sees all workers is asked before the first step, too.
    virtual void on_time(std::int64_t wall_nanos, FindingSink& sink) {
        static_cast<void>(wall_nanos);
        static_cast<void>(sink);
    }
    // How many steps gave this rule something to judge; 0 means "not checked".
    [[nodiscard]] virtual std::uint64_t steps_judged() const = 0;
    // Why not, when steps_judged() is 0: "no ReLU in the model", "fewer than 30 steps with a loss".
    [[nodiscard]] virtual std::string why_not_judged() const = 0;
    // Why it can judge no more, asked after each of the calls above; empty: it can. A rule that is not ours
    // says so when it failed or ran into its limits.
    [[nodiscard]] virtual std::string failure() const { return {}; }
};

// What the registry knows of a rule without an object of it.
struct RuleEntry {
    const model::RuleInfo* info;
    // Of a rule of ours this cannot fail.
    std::function<base::Result<std::vector<model::Requirement>>(const Parameters& parameters)> needs;
    std::function<std::unique_ptr<Rule>(const Parameters& parameters)> make;
    bool wants_raw = false;   // looks at whole tensors, where there are any
    std::string origin = {};  // of a custom rule: the file that it was loaded from
    // One object is shown the steps of all workers, in any order between them: it compares the ranks of a
    // training.
    bool sees_all_workers = false;
    // One object is shown the trainings of a process one after the other. Else each has an object of its own.
    bool outlives_trainings = false;
};

// All rules of ours, sorted by name: what is on by default.
[[nodiscard]] const std::vector<RuleEntry>& builtin_rules();
// Rules that mean what those of SageMaker Debugger of the same names mean, sorted by name: on when chosen.
[[nodiscard]] const std::vector<RuleEntry>& compatible_rules();
// Rules of the user's, in the order in which they were added: on by default.
[[nodiscard]] std::span<const RuleEntry> custom_rules();
// Adds some for the life of the process. To be called before anything asks for a rule, by one thread:
// references into the tables do not survive it. kAlreadyExists names a rule that is there, and adds none.
[[nodiscard]] base::Status add_custom_rules(std::vector<RuleEntry> entries);
// All of them: ours, the compatible ones, custom ones.
[[nodiscard]] const std::vector<RuleEntry>& all_rules();
[[nodiscard]] bool is_on_by_default(std::string_view name);
// `name`: of a rule, or of an instance of one (model/rule_instance.h). kNotFound names the nearest rule.
[[nodiscard]] base::Result<const RuleEntry*> find_rule(std::string_view name);

// A rule that somebody wants to run.
struct RuleChoice {
    std::string name;       // the rule's, or an instance's of it; each is chosen once
    Parameters parameters;  // only those given
};
// The default set: every built-in and custom rule with its defaults.
[[nodiscard]] std::vector<RuleChoice> default_rules();
// What has to be captured for these rules, equal requirements merged.
[[nodiscard]] base::Result<std::vector<model::Requirement>> requirements_of(
    const std::vector<RuleChoice>& choices);
// Whether one of them has to be shown whole tensors.
[[nodiscard]] bool want_raw(const std::vector<RuleChoice>& choices);

}  // namespace traindbg::rules
