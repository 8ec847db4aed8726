// What was done about findings, written down where the run lies: `<run>/actions.jsonl`, one JSON
// object per line:
//   {"wall_nanos": 1, "rule": "exploding_gradient", "key": "", "worker": 0, "step": 40,
//    "action": "stop", "intention": "stop the training at ...", "result": "done"}
//
// The journal is also what makes an action happen once per finding: a finding is known by its rule,
// key and worker, and a second request for it is answered without acting, unless it says that it is
// meant (a correction of a fault that goes on). So is one for another finding, where what the action would
// do is done already. Who goes on with a run reads first what was done before (`PastActions`).
//
// Thread-safety: one thread at a time. Errors: a journal that cannot be written is reported by
// `perform` after the action was taken, never instead of it.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "traindbg/actions/action.h"
#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"

namespace traindbg::actions {

// The journal's name in a run directory.
inline constexpr std::string_view kJournalName = "actions.jsonl";

enum class Outcome : std::uint8_t {
    kDone,         // acted now
    kAlreadyDone,  // this action was taken for this finding before, or is done for another
    kDryRun,       // written down, and not done
    kFailed,       // tried, and `Performed::status` says why not
};

struct Performed {
    Outcome outcome = Outcome::kDone;
    base::Status status;   // of the action
    base::Status journal;  // of writing it down
};

// Of a result: nothing was done, as that was asked for.
inline constexpr std::string_view kDryRunResult = "dry run";

// What tells a finding of a run from the others, as the journal spells it.
struct FindingKey {
    std::string rule;
    std::string key;
    model::WorkerId worker = 0;

    [[nodiscard]] static FindingKey of(const model::Finding& finding);
    friend auto operator<=>(const FindingKey&, const FindingKey&) = default;
};

// One line of the journal.
struct JournalEntry {
    std::string_view action;                  // "stop", "webhook"
    std::string intention;                    // for people, without what is secret
    std::string result;                       // "done", "dry run", or why not
    std::vector<FindingKey> stands_for = {};  // the findings that were withheld, and told of by this one
    std::size_t receiver = 0;                 // of several with the same action and intention: which, from 0
};
// Adds it to `<run_directory>/actions.jsonl`. From any thread.
[[nodiscard]] base::Status write_down(const std::string& run_directory, const JournalEntry& entry,
                                      const model::Finding& finding);

// What the journal of a run says of before. What is not in it, or cannot be read, was not done.
class PastActions {
  public:
    PastActions() = default;  // nothing
    [[nodiscard]] static PastActions read(const std::string& run_directory);

    // How often an action was taken for a finding; with `dry_run`, also how often it would have been.
    [[nodiscard]] std::uint64_t times(std::string_view action, const FindingKey& finding, bool dry_run) const;
    // Whether a receiver was told of it. `entry`: as its lines are.
    [[nodiscard]] bool was_told(const JournalEntry& entry, const FindingKey& finding, bool dry_run) const;
    // What could not be read, and what follows from that; empty: nothing.
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }

  private:
    void add(std::string_view line);
    void note(const JournalEntry& entry, FindingKey finding);

    using Taken = std::pair<std::string, FindingKey>;
    using Told = std::tuple<std::string, std::string, std::size_t, FindingKey>;
    // Done, and dry.
    std::map<Taken, std::uint64_t> done_, dry_;
    std::set<Told> told_, told_dry_;
    std::uint64_t unreadable_ = 0;  // lines
    std::string trouble_;
};

class ActionJournal {
  public:
    // Appends to `<run_directory>/actions.jsonl`; the file is made with the first action. `past`: what was
    // done for this run before; the same is not done again when the same findings come again. `dry_run`:
    // nothing is done, and the journal says what would have been.
    explicit ActionJournal(std::string run_directory, PastActions past = {}, bool dry_run = false)
        : run_directory_(std::move(run_directory)), past_(std::move(past)), dry_run_(dry_run) {}

    // Acts, unless it did so for this finding before, and writes down what came of it.
    [[nodiscard]] Performed perform(Action& action, const model::Finding& finding, bool again = false);

  private:
    using Key = std::pair<std::string, FindingKey>;
    std::string run_directory_;
    PastActions past_;
    bool dry_run_;
    std::map<Key, std::uint64_t> asked_;  // how often, of those that were not left out as done here
    std::set<Key> done_;
};

}  // namespace traindbg::actions
