// What may be done about a finding. One file per action, one table.
//
// An action is idempotent per finding, says beforehand what it would do, and never harms the
// training beyond what its user asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "traindbg/base/status.h"
#include "traindbg/model/finding.h"

namespace traindbg::storage {
class ControlBlock;
}

namespace traindbg::actions {

class Action {
  public:
    Action() = default;
    Action(const Action&) = delete;
    Action& operator=(const Action&) = delete;
    virtual ~Action() = default;

    // One word for the journal and for options: "stop".
    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    // "stop the training at the next step boundary"
    [[nodiscard]] virtual std::string intention(const model::Finding& finding) const = 0;
    // Whether what it would do was done already, for whichever finding: then it need not act.
    [[nodiscard]] virtual bool is_done() const noexcept = 0;
    // Whether it is a remedy for such a fault at all; if not, it is not taken.
    [[nodiscard]] virtual bool helps_against(const model::Finding& finding) const noexcept {
        static_cast<void>(finding);
        return true;
    }
    // It may be taken again for a finding that is seen still so many steps later; 0: once is all.
    [[nodiscard]] virtual std::uint64_t patience_steps() const noexcept { return 0; }
    // Whether the training is expected to end by it.
    [[nodiscard]] virtual bool ends_training() const noexcept { return true; }
    [[nodiscard]] virtual base::Status act(const model::Finding& finding) = 0;
};

// Asks the training, through the run's control block, to end at its next step boundary. `control`
// must outlive the action.
[[nodiscard]] std::unique_ptr<Action> make_stop_action(storage::ControlBlock& control);
// By the word of --on-finding: "stop", "checkpoint-stop", and the corrections, which the training makes by
// itself and of which it has only so many: "lower-lr", "roll-back". Null: another word ("none").
[[nodiscard]] std::unique_ptr<Action> make_action(std::string_view word, storage::ControlBlock& control);

}  // namespace traindbg::actions
