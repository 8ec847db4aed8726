#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "traindbg/actions/action.h"
#include "traindbg/base/format.h"
#include "traindbg/storage/control_block.h"

namespace traindbg::actions {
namespace {

// Steps that take less than they took would have helped.
constexpr std::array<std::string_view, 3> kOfLargeSteps = {"exploding_gradient", "learning_rate_too_high",
                                                           "numerical_instability"};
// What may be gone with parameters of an hour ago and other batches.
constexpr std::array<std::string_view, 5> kOfDamage = {"exploding_gradient", "learning_rate_too_high",
                                                       "nan_input", "non_finite", "numerical_instability"};
// So many steps are given to a correction before the next one for a fault that goes on.
constexpr std::uint64_t kPatienceSteps = 100;

template <std::size_t N>
bool is_among(const std::array<std::string_view, N>& kinds, const model::Finding& finding) noexcept {
    const auto is = [&kinds](std::string_view word) {
        return std::find(kinds.begin(), kinds.end(), word) != kinds.end();
    };
    return is(finding.kind) || is(finding.rule);
}

// Steps of other modes are counted apart: which step of the training the fault began with, none of them says.
std::uint64_t bad_since(const model::Finding& finding) noexcept {
    return finding.mode == model::Mode::kTrain ? finding.first_step : storage::kStepNotKnown;
}

std::string before_the_fault(const model::Finding& finding) {
    return finding.mode == model::Mode::kTrain ? base::format("before step {}", finding.first_step)
                                               : std::string("before the fault");
}

base::Status ended(const model::Finding& finding) {
    return {base::Code::kUnavailable,
            base::format("a correction because of {}: the training has already ended", finding.rule)};
}

class LowerLrAction final : public Action {
  public:
    explicit LowerLrAction(storage::ControlBlock& control) noexcept : control_(control) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "lower-lr"; }
    [[nodiscard]] std::string intention(const model::Finding& finding) const override {
        return base::format("lower the learning rate, because of {}", finding.rule);
    }
    [[nodiscard]] bool is_done() const noexcept override { return false; }
    [[nodiscard]] bool helps_against(const model::Finding& finding) const noexcept override {
        return is_among(kOfLargeSteps, finding);
    }
    [[nodiscard]] std::uint64_t patience_steps() const noexcept override { return kPatienceSteps; }
    [[nodiscard]] bool ends_training() const noexcept override { return false; }
    [[nodiscard]] base::Status act(const model::Finding& finding) override {
        if (control_.state() == storage::TrainingState::kEnded) return ended(finding);
        control_.request_lower_lr();
        return base::Status::ok();
    }

  private:
    storage::ControlBlock& control_;
};

class RollBackAction final : public Action {
  public:
    explicit RollBackAction(storage::ControlBlock& control) noexcept : control_(control) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "roll-back"; }
    [[nodiscard]] std::string intention(const model::Finding& finding) const override {
        return base::format("go back to parameters of {} and lower the learning rate, because of {}",
                            before_the_fault(finding), finding.rule);
    }
    [[nodiscard]] bool is_done() const noexcept override { return false; }
    [[nodiscard]] bool helps_against(const model::Finding& finding) const noexcept override {
        return is_among(kOfDamage, finding);
    }
    [[nodiscard]] std::uint64_t patience_steps() const noexcept override { return kPatienceSteps; }
    [[nodiscard]] bool ends_training() const noexcept override { return false; }
    [[nodiscard]] base::Status act(const model::Finding& finding) override {
        if (control_.state() == storage::TrainingState::kEnded) return ended(finding);
        control_.request_roll_back(bad_since(finding));
        return base::Status::ok();
    }

  private:
    storage::ControlBlock& control_;
};

// A stop that asks for a checkpoint first.
class CheckpointStopAction final : public Action {
  public:
    explicit CheckpointStopAction(storage::ControlBlock& control)
        : control_(control), stop_(make_stop_action(control)) {}

    [[nodiscard]] std::string_view name() const noexcept override { return "checkpoint-stop"; }
    [[nodiscard]] std::string intention(const model::Finding& finding) const override {
        const std::string before = finding.mode == model::Mode::kTrain && finding.first_step > 0
                                       ? base::format(", and one of {}", before_the_fault(finding))
                                       : std::string();
        return base::format("write a checkpoint{}, and {}", before, stop_->intention(finding));
    }
    [[nodiscard]] bool is_done() const noexcept override { return stop_->is_done(); }
    [[nodiscard]] base::Status act(const model::Finding& finding) override {
        control_.request_checkpoint(bad_since(finding));  // first: who sees the stop sees it, too
        return stop_->act(finding);
    }

  private:
    storage::ControlBlock& control_;
    std::unique_ptr<Action> stop_;
};

}  // namespace

std::unique_ptr<Action> make_action(std::string_view word, storage::ControlBlock& control) {
    if (word == "stop") return make_stop_action(control);
    if (word == "checkpoint-stop") return std::make_unique<CheckpointStopAction>(control);
    if (word == "lower-lr") return std::make_unique<LowerLrAction>(control);
    if (word == "roll-back") return std::make_unique<RollBackAction>(control);
    return nullptr;
}

}  // namespace traindbg::actions
