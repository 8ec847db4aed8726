// Decides, from requirements alone, what is taken of which tensor at which step.
//
// A function of its configuration, and of the times that `begin_step` is told where something is due by
// time; no clock of its own, no I/O. `capture` asks it once per tensor (when the tensor is registered) and
// once per step. A requirement of mode GLOBAL holds in every mode.
//
// Thread-safety: const members from any thread while nothing else is called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::capture {

// The roles that a step needs, as a set of bits (1 << Role). 0: an idle step, nothing is attached.
using RoleMask = std::uint32_t;
[[nodiscard]] constexpr RoleMask mask_of(model::Role role) noexcept {
    return RoleMask{1} << static_cast<unsigned>(role);
}

// The share of the training's time that capture may take by this configuration; 0: no limit; nothing: the
// standing limit, where the default rules' needs are all that it wants (`budget.h`).
[[nodiscard]] std::optional<double> limit_of(const model::CaptureConfig& config) noexcept;

// Numbers, which cost next to nothing: no budget leaves them out.
inline constexpr RoleMask kNeverThinned = mask_of(model::Role::kLoss) | mask_of(model::Role::kMetric);
inline constexpr RoleMask kAllRoles = (RoleMask{1} << model::kRoleCount) - 1;
// What only a forward pass shows.
inline constexpr RoleMask kForwardRoles =
    mask_of(model::Role::kInput) | mask_of(model::Role::kOutput) | mask_of(model::Role::kActivation) |
    mask_of(model::Role::kAttention) | mask_of(model::Role::kBlockOutput);

// Of roles whose tensors cost nothing until somebody asks for one: it is known beforehand whether there are
// any
// (`note_block`).
inline constexpr RoleMask kAskedFor = mask_of(model::Role::kBlockOutput);

// For a person: "at every 10th step and at steps 3, 7, from step 2".
[[nodiscard]] std::string when_in_words(const model::Requirement& requirement);

// Whether `pattern` is a regular expression that collections can be made with: those of ECMAScript, searched
// anywhere in a name, without back-references. kInvalidArgument names it.
[[nodiscard]] base::Status check_pattern(const std::string& pattern);

class CapturePlan {
  public:
    // kInvalidArgument names a requirement whose collection does not exist, or a collection's pattern
    // that is no regular expression.
    [[nodiscard]] static base::Result<CapturePlan> make(model::CaptureConfig config);

    // A step begins; what is due by time is due at it when enough has passed since the last such step.
    // `now`: nanoseconds of a clock that only goes forward.
    void begin_step(model::Mode mode, model::StepIndex step, std::int64_t now) noexcept;
    // Another training begins in the process with the steps under way, which are given: what rules want where
    // a training begins is due again. What users ask for counts from the first step of all.
    void begin_training(model::StepIndex train, model::StepIndex eval) noexcept;
    // The step under way has only now come to anything: what its beginning was too early for is due by time.
    void look_again(model::Mode mode, model::StepIndex step, std::int64_t now) noexcept;
    // Which roles have anything due at this step. Collections of the user's may hold tensors of any
    // role: while one is due, the mask has the roles of its registered tensors (`note_tensor`), and
    // those roles of which no tensor at all is known yet, since one of the collection's may come; few models
    // have attention maps, and a forward pass that was looked at for them shows whether this one does. What
    // modules with others inside return is due where `note_block` was told of one that is asked for.
    [[nodiscard]] RoleMask due_roles(model::Mode mode, model::StepIndex step) const noexcept;
    // Those of them that are due for what the user asked for.
    [[nodiscard]] RoleMask asked_roles(model::Mode mode, model::StepIndex step) const noexcept;
    // The roles that were due, had `thin` not been called.
    [[nodiscard]] RoleMask due_roles_unthinned(model::Mode mode, model::StepIndex step) const noexcept;
    // From the mode's next step on, only numbers and what is asked for at this very step are due; what is due
    // by time stays so until it was taken. To be called before `begin_step`.
    void thin(model::Mode mode, bool thins) noexcept;
    [[nodiscard]] bool is_thinned(model::Mode mode) const noexcept {
        return (thinned_ >> static_cast<unsigned>(mode) & 1U) != 0;
    }
    // Those of kForwardRoles for which a compiled model is to run uncompiled at this step: all that are
    // due, none, or those that the user asked for, as the configuration's `compiled` says.
    [[nodiscard]] RoleMask eager_roles(model::Mode mode, model::StepIndex step) const noexcept;
    // The first step >= `from` at which anything but scalars is due, or may be by time; UINT64_MAX: never.
    [[nodiscard]] model::StepIndex next_step_needed(model::Mode mode, model::StepIndex from) const noexcept;

    // What is due of one tensor at this step. Cheap: indexes of its requirements are cached.
    [[nodiscard]] model::What due(model::TensorId tensor, model::Mode mode,
                                  model::StepIndex step) const noexcept;
    // Must be called once per tensor, in id order. `collections`: those that it is in beside its role's and
    // those whose patterns its name matches.
    void note_tensor(std::string_view name, model::Role role, std::span<const std::string> collections = {});
    void note_tensor(const model::TensorInfo& info) { note_tensor(info.name, info.role, info.collections); }
    // A module with others inside is there, whose output would have this name. Whether somebody asks for it:
    // it is due then wherever that is.
    bool note_block(std::string_view name);

    // A step has ended, of a mode: collections that the user asked for, and of which no tensor has come yet,
    // were waited for in it, if they were due.
    void note_end(model::Mode mode, model::StepIndex step) noexcept;
    // Whether any such collection is still waited for.
    [[nodiscard]] bool is_waiting() const noexcept { return !waiting_.empty(); }
    // Those that were waited for in `steps` steps, or `at_end` in any; they are waited for no longer. What
    // users hand over (metrics, tensors of their own) comes when they do so, and is waited for until the end.
    [[nodiscard]] std::vector<model::CollectionSpec> take_unmatched(std::uint64_t steps, bool at_end);

    // This plan takes the place of `before`, whose tensors were noted here, too: what that one has learned
    // of the training holds on, and what both want by time stays due when it would have been.
    void take_over(const CapturePlan& before);
    // A whole forward pass was looked at. From now on a collection of the user's makes a compiled model
    // run uncompiled only for roles of which it holds a tensor.
    // `due`: the roles that were due in it.
    void note_forward_pass(RoleMask due = 0) noexcept {
        is_forward_known_ = true;
        roles_without_tensors_ |= due & mask_of(model::Role::kAttention);
    }
    // The user's collections that a tensor of this name is in, in the order of the configuration. What a
    // module with others inside returned is in those of which a pattern finds it and not what is inside, as
    // "^output/block1$" does; "output/.*" asks for the outputs of all modules that have none inside. What
    // such a pattern finds it finds with all its parts ("output/block1:0").
    [[nodiscard]] std::vector<std::string> collections_of(std::string_view tensor, model::Role role) const;

    // The requirements that touch a tensor, registered or not: indexes into those of the configuration.
    [[nodiscard]] std::vector<std::size_t> requirements_for(const model::TensorInfo& info) const;

    [[nodiscard]] const model::CaptureConfig& config() const noexcept { return config_; }

  private:
    class Patterns;  // the collections' regular expressions, compiled

    CapturePlan(model::CaptureConfig config, std::shared_ptr<const Patterns> patterns);
    // The first step of the training under way, as the requirement counts.
    [[nodiscard]] model::StepIndex began(std::size_t index, model::Mode mode) const noexcept;
    [[nodiscard]] bool is_due(std::size_t index, model::Mode mode, model::StepIndex step) const noexcept;
    [[nodiscard]] bool is_due_unthinned(std::size_t index, model::Mode mode,
                                        model::StepIndex step) const noexcept;
    [[nodiscard]] bool is_left_out(std::size_t index, model::Mode mode, model::StepIndex step) const noexcept;
    template <typename IsDue>
    [[nodiscard]] RoleMask roles_where(const IsDue& is_due) const noexcept;
    [[nodiscard]] static bool touches(const model::Requirement& requirement, model::Role role,
                                      std::span<const std::string> collections);

    model::CaptureConfig config_;
    std::shared_ptr<const Patterns> patterns_;
    std::vector<std::vector<std::uint32_t>> requirements_of_;  // tensor id -> indexes into config_
    std::vector<bool> is_never_thinned_;  // tensor id -> whether it is a loss or a metric
    std::vector<RoleMask> roles_of_;      // requirement -> roles of the tensors it touches
    std::vector<bool> is_asked_by_user_;  // requirement -> whether no rule asks for it
    std::vector<bool> is_users_;          // requirement -> whether its collection is one of the user's
    RoleMask roles_seen_ = 0;             // of all tensors noted
    RoleMask roles_without_tensors_ = 0;  // none came where they were due
    std::uint32_t thinned_ = 0;           // a set of bits (1 << Mode)
    model::StepIndex train_began_ = 0, eval_began_ = 0;  // the first steps of the training under way
    bool is_forward_known_ = false;
    // A collection that the user asked for, and of which no tensor is known.
    struct Waiting {
        std::size_t collection = 0;  // of the configuration
        std::uint64_t steps = 0;     // at which it was due
        bool is_handed_over = false;
    };
    std::vector<Waiting> waiting_;
    std::vector<std::string> told_;  // names of those that were taken as unmatched
    // Of those with a time.
    struct Timed {
        std::size_t requirement = 0;
        std::int64_t last = -1;    // when it was due; -1: never yet
        std::uint32_t due_in = 0;  // a set of bits (1 << Mode): at the step under way
    };
    std::vector<Timed> timed_;
};

}  // namespace traindbg::capture
