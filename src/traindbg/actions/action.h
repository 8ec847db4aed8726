// What may be done about a finding. One file per action, one table.
//
// An action is idempotent per finding, says beforehand what it would do, and never harms the
// training beyond what its user asked for.
#pragma once

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
    [[nodiscard]] virtual base::Status act(const model::Finding& finding) = 0;
};

// Asks the training, through the run's control block, to end at its next step boundary. `control`
// must outlive the action.
[[nodiscard]] std::unique_ptr<Action> make_stop_action(storage::ControlBlock& control);

}  // namespace traindbg::actions
