// What a judge and the processes that judge for it say to each other: lines of JSON over two pipes.
//
// The judge says what is to be done first (`JudgeTask`), and later kFinishLine, kLeaveLine; a pipe that it
// closed is the end. A process says what it finds as it finds it (`JudgeLine`), and that it lives at least
// every second. Both are of the same build; all the same, what cannot be read is an error and no assumption.
//
// Thread-safety: plain functions. Errors: kDataLoss for a line that is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/cli/judging.h"
#include "traindbg/engine/moment.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"
#include "traindbg/options/rule_options.h"
#include "traindbg/rules/rule.h"

namespace traindbg::cli {

inline constexpr std::string_view kFinishLine = "finish";  // nobody writes the run any more: take the rest
inline constexpr std::string_view kLeaveLine = "leave";    // take no more of it

struct JudgeTask {
    std::vector<rules::RuleChoice> choices;
    std::vector<std::uint64_t> places;  // of each of them among all rules
    options::CustomRuleOptions custom;  // where those of them that are the user's come from
    std::string runs;                   // the root of other runs; empty: the usual one
    bool is_live = false;               // the run is followed until kFinishLine
};

struct FindingSaid {
    enum class Event : std::uint8_t { kNone, kFires, kResolved, kPending };  // what a listener is to be told

    std::uint64_t number = 0;
    engine::Moment moment;  // its rule: the place among all rules
    Event event = Event::kNone;
    model::Finding finding;
};
struct OutcomeSaid {
    std::uint64_t rule = 0;  // the place among all rules
    model::RuleOutcome outcome;
};
struct MetaSaid {
    model::WorkerMeta meta;
};
struct TroubleSaid {
    std::string what;
};
// It lives, and has said all there is to say of the steps up to this one of worker 0.
struct ProgressSaid {
    std::optional<model::StepIndex> newest_step;
};
// The last line. All has been said.
struct DoneSaid {
    Unseen unseen;
};
// The last line. It could not go on.
struct FailureSaid {
    base::Status status;
};
using JudgeLine =
    std::variant<FindingSaid, OutcomeSaid, MetaSaid, TroubleSaid, ProgressSaid, DoneSaid, FailureSaid>;

// With a line end.
[[nodiscard]] std::string to_line(const JudgeTask& task);
[[nodiscard]] std::string to_line(const JudgeLine& line);
[[nodiscard]] base::Result<JudgeTask> judge_task_of(std::string_view line);
// `rules`: how many there are; a place behind them is an error.
[[nodiscard]] base::Result<JudgeLine> judge_line_of(std::string_view line, std::uint64_t rules);

}  // namespace traindbg::cli
