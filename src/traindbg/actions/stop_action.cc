#include <cstdint>
#include <memory>
#include <string>

#include "traindbg/actions/action.h"
#include "traindbg/base/format.h"
#include "traindbg/storage/control_block.h"

namespace traindbg::actions {
namespace {

// The request is one word of shared memory that is only ever set, so asking twice asks once.
class StopAction final : public Action {
  public:
    explicit StopAction(storage::ControlBlock& control) noexcept : control_(control) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "stop"; }

    [[nodiscard]] std::string intention(const model::Finding& finding) const override {
        return base::format("stop the training at the next step boundary, because of {}", finding.rule);
    }

    [[nodiscard]] bool is_done() const noexcept override { return control_.stop_requested(); }

    [[nodiscard]] base::Status act(const model::Finding& finding) override {
        switch (control_.state()) {
            case storage::TrainingState::kEnded:
                return {base::Code::kUnavailable,
                        base::format("stop because of {}: the training has already ended", finding.rule)};
            case storage::TrainingState::kNotAttached:
            case storage::TrainingState::kAttached:
            case storage::TrainingState::kStopping: break;
        }
        control_.request_stop();
        return base::Status::ok();
    }

  private:
    storage::ControlBlock& control_;
};

}  // namespace

std::unique_ptr<Action> make_stop_action(storage::ControlBlock& control) {
    return std::make_unique<StopAction>(control);
}

}  // namespace traindbg::actions
