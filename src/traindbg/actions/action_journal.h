// What was done about findings, written down where the run lies: `<run>/actions.jsonl`, one JSON
// object per line:
//   {"wall_nanos": 1, "rule": "exploding_gradient", "key": "", "worker": 0, "step": 40,
//    "action": "stop", "intention": "stop the training at ...", "result": "done"}
//
// The journal is also what makes an action happen once per finding: a finding is known by its rule,
// key and worker, and a second request for it is answered without acting, unless it says that it is
// meant (a correction of a fault that goes on). So is one for another finding, where what the action would
// do is done already.
//
// Thread-safety: one thread at a time. Errors: a journal that cannot be written is reported by
// `perform` after the action was taken, never instead of it.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>

#include "traindbg/actions/action.h"
#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"

namespace traindbg::actions {

// The journal's name in a run directory.
inline constexpr std::string_view kJournalName = "actions.jsonl";

enum class Outcome : std::uint8_t {
    kDone,         // acted now
    kAlreadyDone,  // this action was taken for this finding before, or is done for another
    kFailed,       // tried, and `Performed::status` says why not
};

struct Performed {
    Outcome outcome = Outcome::kDone;
    base::Status status;   // of the action
    base::Status journal;  // of writing it down
};

// One line of the journal.
struct JournalEntry {
    std::string_view action;     // "stop", "webhook"
    std::string intention;       // for people, without what is secret
    std::string result;          // "done", or why not
    std::uint64_t withheld = 0;  // how many findings more it stands for
};
// Adds it to `<run_directory>/actions.jsonl`. From any thread.
[[nodiscard]] base::Status write_down(const std::string& run_directory, const JournalEntry& entry,
                                      const model::Finding& finding);

class ActionJournal {
  public:
    // Appends to `<run_directory>/actions.jsonl`; the file is made with the first action.
    explicit ActionJournal(std::string run_directory) : run_directory_(std::move(run_directory)) {}

    // Acts, unless it did so for this finding before, and writes down what came of it.
    [[nodiscard]] Performed perform(Action& action, const model::Finding& finding, bool again = false);

  private:
    using Key = std::tuple<std::string, std::string, std::string, model::WorkerId>;
    std::string run_directory_;
    std::set<Key> done_;
};

}  // namespace traindbg::actions
