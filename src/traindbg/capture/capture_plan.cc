#include "traindbg/capture/capture_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/base/pattern.h"
#include "traindbg/base/text.h"
#include "traindbg/capture/near_names.h"
#include "traindbg/model/due_steps.h"

namespace traindbg::capture {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::Mode;
using model::Requirement;
using model::Role;
using model::Schedule;
using model::StepIndex;
using model::TensorInfo;
using model::What;

constexpr std::string_view kUser = "user";

bool holds_in(const Requirement& requirement, Mode mode) noexcept {
    return requirement.mode == mode || requirement.mode == Mode::kGlobal;
}

// Names of modules that might be inside of another one: which a pattern finds without being meant for one of
// them.
constexpr std::array<std::string_view, 2> kInside = {".inside", ".0.0.0.0.0.0.0.0"};

// Whether it may be of what users log or save, by its patterns' words.
bool is_handed_over(const model::CollectionSpec& spec) {
    return std::any_of(spec.include.begin(), spec.include.end(), [](const std::string& pattern) {
        return pattern.find("metric") != std::string::npos || pattern.find("custom") != std::string::npos;
    });
}

// "output/block1:0@2": what the module's output is called, and what tells passes and calls apart.
struct BlockName {
    std::string module;  // "output/block1"
    std::string mark;    // "@2"
};
BlockName parts_of(std::string_view name) {
    std::size_t end = name.size();
    for (const char sign : {'@', '#'}) {
        const std::size_t last = name.substr(0, end).find_last_not_of("0123456789");
        if (last != std::string_view::npos && last + 1 < end && name[last] == sign) end = last;
    }
    const std::string_view mark = name.substr(end);
    return {std::string(name.substr(0, std::min(end, name.find(':')))), std::string(mark)};
}

}  // namespace

Status check_pattern(const std::string& pattern) { return base::Pattern::make(pattern).status(); }

namespace {

// "2nd", "11th"
std::string ordinal(std::uint64_t number) {
    const bool is_teen = number / 10 % 10 == 1;
    const std::uint64_t last = is_teen ? 0 : number % 10;
    return base::format("{}{}", number, last == 1 ? "st" : last == 2 ? "nd" : last == 3 ? "rd" : "th");
}

}  // namespace

std::string when_in_words(const Requirement& requirement) {
    const Schedule& schedule = requirement.schedule;
    std::string out;
    if (schedule.every == 1) out = "at every step";
    else if (schedule.every > 1) out = base::format("at every {} step", ordinal(schedule.every));
    if (schedule.dense_until > 0 && schedule.every != 1)
        out += base::format("{}at each step below {}", out.empty() ? "" : " and ", schedule.dense_until);
    const auto also = [&out](const std::string& more) { out += (out.empty() ? "" : " and ") + more; };
    if (!requirement.steps.empty()) {
        std::vector<std::string> words;
        for (const StepIndex step : requirement.steps) words.push_back(base::format("{}", step));
        also(base::format("at step{} {}", words.size() == 1 ? "" : "s", base::join(words, ", ")));
    }
    if (requirement.every_ms != 0)
        also(base::format("every {} s", static_cast<double>(requirement.every_ms) / 1000));
    if (out.empty()) return "never";
    if (schedule.start > 0) out += base::format(", from step {}", schedule.start);
    if (schedule.end != UINT64_MAX) out += base::format(", before step {}", schedule.end);
    return out;
}

class CapturePlan::Patterns {
  public:
    static Result<std::shared_ptr<const Patterns>> make(const model::CaptureConfig& config) {
        auto out = std::make_shared<Patterns>();
        for (const model::CollectionSpec& spec : config.collections) {
            Collection collection{.name = spec.name, .include = {}, .exclude = {}};
            TRAINDBG_RETURN_IF_ERROR(compile(spec.name, spec.include, collection.include));
            TRAINDBG_RETURN_IF_ERROR(compile(spec.name, spec.exclude, collection.exclude));
            out->collections_.push_back(std::move(collection));
        }
        return std::shared_ptr<const Patterns>(std::move(out));
    }

    [[nodiscard]] std::vector<std::string> matches(std::string_view tensor, Role role) const {
        std::vector<std::string> out;
        for (const Collection& collection : collections_) {
            const bool is_in =
                role == Role::kBlockOutput ? names(collection, tensor) : any(collection.include, tensor);
            if (is_in && !any(collection.exclude, tensor)) out.push_back(collection.name);
        }
        return out;
    }

  private:
    struct Collection {
        std::string name;
        std::vector<base::Pattern> include;
        std::vector<base::Pattern> exclude;
    };

    static Status compile(const std::string& name, const std::vector<std::string>& patterns,
                          std::vector<base::Pattern>& out) {
        for (const std::string& pattern : patterns) {
            Result<base::Pattern> compiled = base::Pattern::make(pattern);
            if (!compiled.is_ok())
                return Status(Code::kInvalidArgument,
                              base::format("collection '{}': pattern {}", base::printable(name),
                                           compiled.status().message()));
            out.push_back(std::move(compiled).value());
        }
        return Status::ok();
    }

    // Whether a pattern finds the output of just this module. One that finds what is inside of it, whatever
    // that is called, is meant for the outputs of modules without others inside.
    static bool names(const Collection& collection, std::string_view tensor) {
        const BlockName block = parts_of(tensor);
        const std::string whole = block.module + block.mark;
        return std::any_of(
            collection.include.begin(), collection.include.end(), [&](const base::Pattern& pattern) {
                if (!pattern.matches(tensor) && !pattern.matches(whole)) return false;
                return std::none_of(kInside.begin(), kInside.end(), [&](std::string_view inside) {
                    return pattern.matches(block.module + std::string(inside));
                });
            });
    }

    static bool any(const std::vector<base::Pattern>& patterns, std::string_view text) {
        return std::any_of(patterns.begin(), patterns.end(),
                           [&](const base::Pattern& pattern) { return pattern.matches(text); });
    }

    std::vector<Collection> collections_;
};

CapturePlan::CapturePlan(model::CaptureConfig config, std::shared_ptr<const Patterns> patterns)
    : config_(std::move(config)), patterns_(std::move(patterns)) {
    for (const Requirement& requirement : config_.requirements) {
        const std::optional<Role> role = model::role_of_collection(requirement.collection);
        roles_of_.push_back(role ? mask_of(*role) : 0);
        is_users_.push_back(!role.has_value());
        is_asked_by_user_.push_back(requirement.asked_by == kUser);
        if (requirement.every_ms != 0) timed_.push_back({roles_of_.size() - 1});
    }
    for (std::size_t i = 0; i < config_.collections.size(); ++i) {
        const bool is_asked_for =
            std::any_of(config_.requirements.begin(), config_.requirements.end(), [&](const auto& each) {
                return each.asked_by == kUser && each.what != What::kNothing &&
                       each.collection == config_.collections[i].name;
            });
        if (is_asked_for)
            waiting_.push_back({.collection = i, .is_handed_over = is_handed_over(config_.collections[i])});
    }
}

Result<CapturePlan> CapturePlan::make(model::CaptureConfig config) {
    std::vector<std::string> known = model::builtin_collections();
    for (const model::CollectionSpec& spec : config.collections) {
        if (std::find(known.begin(), known.end(), spec.name) != known.end())
            return Status(Code::kInvalidArgument,
                          base::format("collection '{}': there is one of that name already",
                                       base::printable(spec.name)));
        known.push_back(spec.name);
    }
    for (const Requirement& requirement : config.requirements)
        if (std::find(known.begin(), known.end(), requirement.collection) == known.end())
            return Status(Code::kInvalidArgument,
                          base::format("unknown collection '{}'{}", base::printable(requirement.collection),
                                       base::did_you_mean(requirement.collection, known)));
    TRAINDBG_ASSIGN_OR_RETURN(auto patterns, Patterns::make(config));
    return CapturePlan(std::move(config), std::move(patterns));
}

std::optional<double> limit_of(const model::CaptureConfig& config) noexcept {
    const bool is_asked = config.flight.steps != 0 ||
                          std::any_of(config.requirements.begin(), config.requirements.end(),
                                      [](const Requirement& each) { return each.asked_by == kUser; });
    return config.budget || !is_asked ? config.budget : 0;
}

void CapturePlan::begin_training(StepIndex train, StepIndex eval) noexcept {
    train_began_ = train;
    eval_began_ = eval;
}

StepIndex CapturePlan::began(std::size_t index, Mode mode) const noexcept {
    if (is_asked_by_user_[index]) return 0;
    return mode == Mode::kEval ? eval_began_ : train_began_;
}

[[gnu::hot]] void CapturePlan::begin_step(Mode mode, StepIndex step, std::int64_t now) noexcept {
    const std::uint32_t bit = 1U << static_cast<unsigned>(mode);
    for (Timed& timed : timed_) timed.due_in &= ~bit;
    look_again(mode, step, now);
}

[[gnu::hot]] void CapturePlan::look_again(Mode mode, StepIndex step, std::int64_t now) noexcept {
    const std::uint32_t bit = 1U << static_cast<unsigned>(mode);
    for (Timed& timed : timed_) {
        if ((timed.due_in & bit) != 0) continue;
        const Requirement& requirement = config_.requirements[timed.requirement];
        if (!holds_in(requirement, mode) || !requirement.schedule.holds(step, began(timed.requirement, mode)))
            continue;
        if (timed.last >= 0 &&
            static_cast<std::uint64_t>(now - timed.last) / 1'000'000 < requirement.every_ms)
            continue;
        if (is_left_out(timed.requirement, mode, step)) continue;
        timed.last = now;
        timed.due_in |= bit;
    }
}

void CapturePlan::thin(Mode mode, bool thins) noexcept {
    const std::uint32_t bit = 1U << static_cast<unsigned>(mode);
    thinned_ = thins ? thinned_ | bit : thinned_ & ~bit;
}

bool CapturePlan::is_left_out(std::size_t index, Mode mode, StepIndex step) const noexcept {
    if (!is_thinned(mode)) return false;
    if (!is_users_[index] && (roles_of_[index] & ~kNeverThinned) == 0) return false;
    const Requirement& requirement = config_.requirements[index];
    return !std::binary_search(requirement.steps.begin(), requirement.steps.end(), step);
}

bool CapturePlan::is_due(std::size_t index, Mode mode, StepIndex step) const noexcept {
    return is_due_unthinned(index, mode, step) && !is_left_out(index, mode, step);
}

bool CapturePlan::is_due_unthinned(std::size_t index, Mode mode, StepIndex step) const noexcept {
    const Requirement& requirement = config_.requirements[index];
    if (!holds_in(requirement, mode)) return false;
    if (requirement.is_due(step, began(index, mode))) return true;
    if (requirement.every_ms == 0) return false;
    const auto timed = std::find_if(timed_.begin(), timed_.end(),
                                    [index](const Timed& each) { return each.requirement == index; });
    return timed != timed_.end() && (timed->due_in >> static_cast<unsigned>(mode) & 1U) != 0;
}

template <typename IsDue>
RoleMask CapturePlan::roles_where(const IsDue& is_due) const noexcept {
    RoleMask mask = 0;
    for (std::size_t i = 0; i < config_.requirements.size(); ++i) {
        if (config_.requirements[i].what == What::kNothing || !is_due(i)) continue;
        mask |= roles_of_[i];
        if (is_users_[i]) mask |= kAllRoles & ~kAskedFor & ~roles_seen_ & ~roles_without_tensors_;
    }
    return mask;
}

[[gnu::hot]] RoleMask CapturePlan::due_roles(Mode mode, StepIndex step) const noexcept {
    return roles_where([&](std::size_t i) { return is_due(i, mode, step); });
}

RoleMask CapturePlan::asked_roles(Mode mode, StepIndex step) const noexcept {
    return roles_where([&](std::size_t i) { return is_asked_by_user_[i] && is_due(i, mode, step); });
}

RoleMask CapturePlan::due_roles_unthinned(Mode mode, StepIndex step) const noexcept {
    return roles_where([&](std::size_t i) { return is_due_unthinned(i, mode, step); });
}

RoleMask CapturePlan::eager_roles(Mode mode, StepIndex step) const noexcept {
    if (config_.compiled == model::CompiledModels::kSkip) return 0;
    if (config_.compiled == model::CompiledModels::kEager) return due_roles(mode, step) & kForwardRoles;
    RoleMask mask = 0;
    for (std::size_t i = 0; i < config_.requirements.size(); ++i) {
        const Requirement& requirement = config_.requirements[i];
        if (requirement.asked_by != kUser || requirement.what == What::kNothing || !is_due(i, mode, step))
            continue;
        mask |= roles_of_[i];
        if (is_users_[i] && !is_forward_known_) mask |= kAllRoles & ~kAskedFor & ~roles_seen_;
    }
    return mask & kForwardRoles;
}

StepIndex CapturePlan::next_step_needed(Mode mode, StepIndex from) const noexcept {
    constexpr RoleMask kScalars = mask_of(Role::kLoss) | mask_of(Role::kMetric);
    StepIndex first = UINT64_MAX;
    for (std::size_t i = 0; i < config_.requirements.size(); ++i) {
        const Requirement& requirement = config_.requirements[i];
        if (requirement.what == What::kNothing || !holds_in(requirement, mode)) continue;
        if (!is_users_[i] && (roles_of_[i] & ~kScalars) == 0) continue;
        if (const std::optional<StepIndex> next = model::next_due(requirement, from, began(i, mode)))
            first = std::min(first, *next);
    }
    return first;
}

What CapturePlan::due(model::TensorId tensor, Mode mode, StepIndex step) const noexcept {
    What what = What::kNothing;
    if (tensor >= requirements_of_.size()) return what;
    for (const std::uint32_t index : requirements_of_[tensor]) {
        const bool is_so =
            is_never_thinned_[tensor] ? is_due_unthinned(index, mode, step) : is_due(index, mode, step);
        if (is_so) what |= config_.requirements[index].what;
    }
    return what;
}

bool CapturePlan::touches(const Requirement& requirement, Role role,
                          std::span<const std::string> collections) {
    return model::collection_of(role) == requirement.collection ||
           std::find(collections.begin(), collections.end(), requirement.collection) != collections.end();
}

void CapturePlan::note_tensor(std::string_view name, Role role, std::span<const std::string> collections) {
    std::vector<std::string> all = collections_of(name, role);
    all.insert(all.end(), collections.begin(), collections.end());
    std::vector<std::uint32_t> indexes;
    for (std::size_t i = 0; i < config_.requirements.size(); ++i)
        if (touches(config_.requirements[i], role, all)) indexes.push_back(static_cast<std::uint32_t>(i));
    is_never_thinned_.push_back((mask_of(role) & kNeverThinned) != 0);
    requirements_of_.push_back(std::move(indexes));
    for (const std::uint32_t i : requirements_of_.back()) roles_of_[i] |= mask_of(role);
    roles_seen_ |= mask_of(role);
    std::erase_if(waiting_, [&](const Waiting& each) {
        return std::find(all.begin(), all.end(), config_.collections[each.collection].name) != all.end();
    });
}

bool CapturePlan::note_block(std::string_view name) {
    std::vector<std::string> collections = collections_of(name, Role::kBlockOutput);
    const std::string of_part = std::string(name) + ":";  // what parts it has, its output will show
    for (const model::CollectionSpec& each : config_.collections)
        if (std::any_of(each.include.begin(), each.include.end(),
                        [&](const std::string& pattern) { return plain_part(pattern).starts_with(of_part); }))
            collections.push_back(each.name);
    bool is_wanted = false;
    for (std::size_t i = 0; i < config_.requirements.size(); ++i) {
        if (!touches(config_.requirements[i], Role::kBlockOutput, collections)) continue;
        roles_of_[i] |= mask_of(Role::kBlockOutput);
        is_wanted = true;
    }
    return is_wanted;
}

void CapturePlan::note_end(Mode mode, StepIndex step) noexcept {
    for (Waiting& each : waiting_) {
        const std::string& name = config_.collections[each.collection].name;
        for (std::size_t i = 0; i < config_.requirements.size(); ++i) {
            const Requirement& requirement = config_.requirements[i];
            if (requirement.collection != name || !is_asked_by_user_[i] || !is_due(i, mode, step)) continue;
            ++each.steps;
            break;
        }
    }
}

std::vector<model::CollectionSpec> CapturePlan::take_unmatched(std::uint64_t steps, bool at_end) {
    const auto is_one = [&](const Waiting& each) {
        return at_end ? each.steps > 0 : each.steps >= steps && !each.is_handed_over;
    };
    std::vector<model::CollectionSpec> out;
    for (const Waiting& each : waiting_)
        if (is_one(each)) out.push_back(config_.collections[each.collection]);
    for (const model::CollectionSpec& each : out) told_.push_back(each.name);
    std::erase_if(waiting_, is_one);
    return out;
}

void CapturePlan::take_over(const CapturePlan& before) {
    // A pass of which only the inputs were wanted has shown nothing of what modules return.
    constexpr RoleMask kReturned = kForwardRoles & ~mask_of(Role::kInput);
    is_forward_known_ = before.is_forward_known_ && (before.roles_seen_ & kReturned) != 0;
    thinned_ = before.thinned_;
    train_began_ = before.train_began_;
    eval_began_ = before.eval_began_;
    roles_without_tensors_ = before.roles_without_tensors_;
    told_ = before.told_;
    std::erase_if(waiting_, [this](const Waiting& each) {
        return std::find(told_.begin(), told_.end(), config_.collections[each.collection].name) !=
               told_.end();
    });
    for (Timed& timed : timed_) {
        const Requirement& requirement = config_.requirements[timed.requirement];
        const auto same = std::find_if(before.timed_.begin(), before.timed_.end(), [&](const Timed& each) {
            return before.config_.requirements[each.requirement] == requirement;
        });
        if (same == before.timed_.end()) continue;
        timed.last = same->last;
        timed.due_in = same->due_in;
    }
}

std::vector<std::string> CapturePlan::collections_of(std::string_view tensor, Role role) const {
    return patterns_->matches(tensor, role);
}

std::vector<std::size_t> CapturePlan::requirements_for(const TensorInfo& info) const {
    std::vector<std::string> collections = collections_of(info.name, info.role);
    collections.insert(collections.end(), info.collections.begin(), info.collections.end());
    std::vector<std::size_t> indexes;
    for (std::size_t i = 0; i < config_.requirements.size(); ++i)
        if (touches(config_.requirements[i], info.role, collections)) indexes.push_back(i);
    return indexes;
}

}  // namespace traindbg::capture
