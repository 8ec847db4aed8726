#include "traindbg/capture/capture_session.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traindbg/base/clock.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/capture/budget.h"
#include "traindbg/capture/flight_recorder.h"
#include "traindbg/capture/near_names.h"
#include "traindbg/capture/plan_changes.h"
#include "traindbg/capture/run_description.h"
#include "traindbg/capture/step_under_way.h"
#include "traindbg/model/json.h"
#include "traindbg/reduce/reducer.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::capture {
namespace {

using base::Code;
using base::fork_generation;
using base::LogLevel;
using base::Result;
using base::Status;
using model::Mode;
using model::Role;
using model::StepIndex;
using model::StepRecord;
using model::TensorId;
using model::What;
using storage::ControlBlock;
using storage::TrainingState;
using tensor::TensorView;

constexpr std::uint64_t kStepsKeptAfterBadLoss = 3;
// What "everything" means then. The others are had only by computing or copying more than the step itself
// shows, and only where somebody asks for them.
constexpr RoleMask kEverything =
    kAllRoles & ~(mask_of(Role::kPrediction) | mask_of(Role::kLabel) | mask_of(Role::kAttention) |
                  mask_of(Role::kGradientBefore) | mask_of(Role::kBlockOutput));
constexpr std::size_t kMostTensors = 1'000'000;  // a name per step would use up the memory
// What a run's file can describe: one tensor beyond would take the descriptions beside it along.
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMostDimensions = 64;
constexpr std::size_t kMostSkipsTold = 100;  // names that events tell; of the others, how many there are
constexpr StepIndex kNever = UINT64_MAX;
constexpr std::uint64_t kStepsToWait = 3;  // for a tensor of a collection: modules may be called late
constexpr std::size_t kMostBlockNames = 10'000;
constexpr std::size_t kMostPatternsTold = 3;
constexpr std::uint64_t kLongestBlockMs = 3'600'000;  // nothing waits for ever
constexpr std::chrono::nanoseconds kLongestClose = std::chrono::hours(24);
// A training of several processes that is asked to stop goes on for so long, and at least two steps.
constexpr std::int64_t kNanosAhead = 100'000'000;
constexpr StepIndex kMostStepsToAgree = 64;
constexpr std::chrono::nanoseconds kPlanPatience = std::chrono::milliseconds(100);
// Trainings whose beginnings are looked at closely; of others, those that are so many steps from the last
// one.
constexpr std::uint64_t kMostTrainingsLookedAt = 10;
constexpr StepIndex kStepsOfALook = 500;
// What may be taken of another model's training by the standing limit, however much went before.
constexpr double kNanosOfATraining = 0.25e9;
// What the flight recorder gets where the run's own record took all of the time there was to close.
constexpr std::int64_t kLeastFlightNanos = 200'000'000;

}  // namespace

class CaptureSession::Impl {
  public:
    // `flight` and `control` may be null. `plan_in_force`: the number of the plan that the run holds.
    // `plans_seen`: how many were announced before it was read.
    Impl(SessionOptions options, CapturePlan plan, std::unique_ptr<write::RunWriter> writer,
         std::unique_ptr<FlightRecorder> flight, std::shared_ptr<ControlBlock> control,
         storage::FileSystem& files, std::uint32_t plan_in_force, std::uint32_t plans_seen)
        : options_(std::move(options)),
          plan_(std::move(plan)),
          writer_(std::move(writer)),
          flight_(std::move(flight)),
          control_(std::move(control)),
          limit_(limit_of(options_.config)),
          budget_(Budget::of(limit_)),
          files_(files),
          changes_(files, storage::RunLayout{options_.run_directory}, plan_in_force),
          plans_seen_(plans_seen) {
        train_.record.mode = Mode::kTrain;
        eval_.record.mode = Mode::kEval;
        for (const Mode mode : {Mode::kTrain, Mode::kEval})
            plan_.begin_step(mode, 0, base::monotonic_nanos());
        if (control_) {
            flight_copies_seen_ = control_->flight_copies_requested();
            corrections_seen_ = control_->corrections_asked();
            control_->publish_pid(getpid());
            control_->publish_state(TrainingState::kAttached);
        }
    }

    // Whether calls have any effect: not after `close`, and not in the child of a fork.
    [[nodiscard]] bool alive() const noexcept {
        return open_.load(std::memory_order_relaxed) && generation_ == fork_generation();
    }

    [[nodiscard]] TensorId add_tensor(model::TensorInfo info) {
        if (const auto known = ids_.find(info.name); known != ids_.end()) return known->second;
        const model::ShardInfo shard = info.shard.value_or(model::ShardInfo{});
        if (info.name.empty() ||
            std::max({info.shape.size(), shard.whole_shape.size(), shard.offset.size()}) > kMostDimensions ||
            std::max({info.name.size(), info.module.size(), info.module_type.size(),
                      shard.placement.size()}) > kLongestText) {
            count_failure();
            base::log_once(
                LogLevel::kWarning, "capture.unfit",
                base::format(
                    "a tensor is not recorded, because its name is empty or longer than {} bytes or it "
                    "has more than {} dimensions: '{}'",
                    kLongestText, kMostDimensions, base::printable(info.name.substr(0, 100))));
            return kNoTensor;
        }
        if (slots_.size() >= kMostTensors) {
            count_failure();
            base::log_once(LogLevel::kWarning, "capture.too_many_tensors",
                           "more than a million tensor names: further ones are not recorded");
            return kNoTensor;
        }
        const auto id = static_cast<TensorId>(slots_.size());
        info.id = id;
        if (!info.collections.empty()) own_collections_[id] = info.collections;
        for (std::string& name : plan_.collections_of(info.name, info.role))
            if (std::find(info.collections.begin(), info.collections.end(), name) == info.collections.end())
                info.collections.push_back(std::move(name));
        // Whatever may fail for want of memory comes before the writer is told, so that its numbers
        // and ours stay the same.
        train_.taken_at.resize(slots_.size() + 1, kNever);
        eval_.taken_at.resize(slots_.size() + 1, kNever);
        const auto entry = ids_.emplace(info.name, id).first;
        try {
            slots_.push_back({.name = &entry->first, .role = info.role, .activation = info.activation});
            plan_.note_tensor(info);
            if (flight_) flight_->add_tensor(info);
        } catch (...) {
            slots_.resize(id, Slot{});
            own_collections_.erase(id);
            ids_.erase(entry);
            throw;
        }
        writer_->add_tensor(info);
        return id;
    }

    [[nodiscard]] Status ask_for(const model::CaptureConfig& config) {
        TRAINDBG_RETURN_IF_ERROR(CapturePlan::make(config).status());  // before anybody else is told of it
        TRAINDBG_ASSIGN_OR_RETURN(PlanInForce wanted,
                                  publish_wishes(files_, storage::RunLayout{options_.run_directory}, config));
        if (wanted.number <= changes_.in_force()) return Status::ok();  // all of it is captured already
        TRAINDBG_ASSIGN_OR_RETURN(CapturePlan plan, CapturePlan::make(std::move(wanted.config)));
        changes_.note_in_force(wanted.number);
        take_on(std::move(plan), wanted.number, 0, train_.record.step);
        for (const Mode mode : {Mode::kTrain, Mode::kEval})
            plan_.begin_step(mode, find(mode)->record.step, base::monotonic_nanos());
        return Status::ok();
    }

    void describe(model::WorkerMeta meta) {
        meta.worker = writer_->worker();
        if (meta.pid == 0) meta.pid = getpid();
        if (meta.host.empty()) meta.host = host_name();
        if (meta.traindbg.empty()) meta.traindbg = base::version();
        for (const auto& [name, value] : meta.environment)
            if (name == "WORLD_SIZE") has_peers_ = !value.empty() && value != "1" && value != "0";
        writer_->describe(meta);
        if (flight_) flight_->describe(meta);
    }

    void event(std::string_view kind, std::string_view json) { writer_->event(kind, json); }

    void begin_training(bool of_another_model) {
        const StepIndex now = train_.record.step;
        if (of_another_model && !eval_.empty()) end(Mode::kEval);  // what was evaluated is of the one before
        if (std::exchange(last_begun_, now) != now) {  // else it is told once more that the same one begins
            ++trainings_looked_at_;
            if (trainings_looked_at_ <= kMostTrainingsLookedAt || now - last_looked_at_ >= kStepsOfALook) {
                plan_.begin_training(now, eval_.record.step);
                last_looked_at_ = now;
            }
        }
        if (!of_another_model) return;
        ++trainings_;
        if (!limit_) {
            budget_.grant(kNanosOfATraining);
            leave_nothing_out();
        }
        if (new_training_ == kNoTensor) {
            model::TensorInfo info;
            info.name = "loop/new_training";
            info.role = Role::kLoop;
            new_training_ = add_tensor(std::move(info));
            if (new_training_ == kNoTensor) return;
        }
        train_is_of_new_ = eval_is_of_new_ = true;
    }

    [[gnu::hot]] [[nodiscard]] RoleMask due(Mode mode) noexcept {
        const Current* current = find(mode);
        if (current == nullptr) return 0;
        // An evaluation's step counts from the end of the one before, which may be long ago.
        if (mode == Mode::kEval && current->empty())
            plan_.look_again(mode, current->record.step, base::monotonic_nanos());
        RoleMask roles = plan_.due_roles(current->record.mode, current->record.step);
        if (everything()) roles |= kEverything;
        if (has_flight(*current)) roles |= flight_->due_roles();
        return roles;
    }
    [[nodiscard]] RoleMask asked(Mode mode) const noexcept {
        const Current* current = find(mode);
        return current == nullptr ? 0 : plan_.asked_roles(current->record.mode, current->record.step);
    }
    [[nodiscard]] RoleMask eager(Mode mode) const noexcept {
        const Current* current = find(mode);
        if (current == nullptr) return 0;
        const RoleMask planned = plan_.eager_roles(current->record.mode, current->record.step);
        if (everything() && plan_.config().compiled == model::CompiledModels::kEager)
            return planned | (kForwardRoles & kEverything);
        return planned;
    }
    void forward_passed() noexcept {
        const RoleMask was_due = due(Mode::kTrain);
        plan_.note_forward_pass(was_due);
        if (flight_) flight_->note_forward_pass(was_due);
    }
    [[nodiscard]] bool note_block(std::string_view name) {
        if (plan_.is_waiting() && block_names_.size() < kMostBlockNames) block_names_.emplace(name);
        bool is_wanted = plan_.note_block(name);
        if (flight_) is_wanted |= flight_->note_block(name);
        return is_wanted;
    }
    [[nodiscard]] StepIndex step(Mode mode) const noexcept {
        const Current* current = find(mode);
        return current == nullptr ? 0 : current->record.step;
    }

    void observe(Mode mode, TensorId id, const TensorView& view) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return;
        if (is_scalar(slots_[id].role) && view.element_count() == 1) {
            // A loss is looked at even where it is not due: it may have turned bad.
            const Result<double> value = reduce::scalar_value(view);
            if (value) observe_scalar(mode, id, *value);
            else skip(*current, id, value.status());
            return;
        }
        const Wanted wanted = take(*current, id);
        const What all = wanted.run | wanted.flight;
        if (all == What::kNothing) return;
        const bool wants_statistics = model::has(all, What::kStatistics) || model::has(all, What::kUnits);
        const bool wants_all = model::has(wanted.run, What::kRaw);
        std::optional<model::Digest> digest;  // made on the way, where it is wanted
        if (wants_statistics || wants_all) {
            const bool wants_digest = model::has(wanted.run, What::kDigest);
            const Result<model::Statistics> statistics =
                wants_all      ? add_whole(*current, *writer_, id, view, wants_statistics,
                                      wants_digest ? &digest : nullptr)
                : wants_digest ? reduce::statistics_and_digest(view, digest.emplace())
                               : reduce::statistics(view);
            if (!statistics) digest.reset();
            if (!statistics) {
                skip(*current, id, statistics.status());
            } else if (wants_statistics) {
                model::UnitStatistics units;
                if (model::has(all, What::kUnits)) units = units_of(slots_[id], view);
                add_statistics(*current, wanted, id, *statistics, units);
            }
        }
        if (model::has(wanted.flight, What::kRaw)) add_whole_to_flight(*current, id, view);
        add_by_request(*current, id, wanted.run, view, digest);
    }

    void keep_always(TensorId id) noexcept {
        if (id < slots_.size()) slots_[id].is_always_kept = true;
    }

    void observe_update(Mode mode, TensorId update, TensorId ratio, const TensorView& before,
                        const TensorView& after) {
        Current* current = find(mode);
        if (current == nullptr || update >= slots_.size() || ratio >= slots_.size()) return;
        const Wanted wanted = take(*current, update);
        const What all = wanted.run | wanted.flight;
        const Wanted wanted_ratio = take(*current, ratio);
        const bool wants_ratio = model::has(wanted_ratio.run | wanted_ratio.flight, What::kStatistics);
        if (all == What::kNothing && !wants_ratio) return;
        const Result<reduce::DifferenceStatistics> found = reduce::difference_statistics(before, after);
        if (!found) {
            skip(*current, update, found.status());
            return;
        }
        const model::Statistics& difference = found->difference;
        if (model::has(all, What::kStatistics)) add_statistics(*current, wanted, update, difference, {});
        const double relative = difference.l2 / found->before_l2;
        if (wants_ratio && difference.count > 0 && difference.not_finite() == 0 && std::isfinite(relative))
            add_scalar(*current, wanted_ratio, ratio, relative);
        if (model::has(all, What::kRaw) ||
            model::has(wanted.run, What::kHistogram | What::kChannels | What::kDigest))
            add_difference(*current, update, wanted, before, after);
    }

    [[nodiscard]] What wanted(Mode mode, TensorId id) const noexcept {
        const Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return What::kNothing;
        if (current->taken_at[id] == current->record.step) return What::kNothing;
        const Wanted both = wanted(*current, id);
        return both.run | both.flight;
    }
    [[nodiscard]] model::ActivationKind activation(TensorId id) const noexcept {
        return id < slots_.size() ? slots_[id].activation : model::ActivationKind::kNone;
    }

    void observe_statistics(Mode mode, TensorId id, const model::Statistics& statistics,
                            const model::UnitStatistics& units) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return;
        const Wanted wanted = take(*current, id);
        const What all = wanted.run | wanted.flight;
        if (!model::has(all, What::kStatistics) && !model::has(all, What::kUnits)) return;
        add_statistics(*current, wanted, id, statistics, units);
    }

    [[gnu::hot]] void observe_scalar(Mode mode, TensorId id, double value) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return;
        if (slots_[id].role == Role::kLoss) watch_loss(id, std::isfinite(value));
        add_scalar(*current, take(*current, id), id, value);
    }

    [[nodiscard]] LateSample begin_late(Mode mode, TensorId id) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return {};
        const Wanted wanted = take(*current, id);
        return {mode, current->record.step, id, wanted.run, wanted.flight};
    }
    void observe_late(const LateSample& late, const model::Statistics& statistics,
                      const model::UnitStatistics& units) {
        if (StepUnderWay* const step = step_of(late))
            add_statistics(*step, {late.run, late.flight}, late.tensor, statistics, units);
    }
    void observe_late(const LateSample& late, double value) {
        StepUnderWay* const step = step_of(late);
        if (step == nullptr) return;
        if (slots_[late.tensor].role == Role::kLoss) watch_loss(late.tensor, std::isfinite(value));
        add_scalar(*step, {late.run, late.flight}, late.tensor, value);
    }
    [[nodiscard]] bool can_hold_back() const noexcept { return flight_ == nullptr; }
    void observe_channels(Mode mode, TensorId id, model::ChannelStatistics channels) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size() || channels.channels() == 0) return;
        if (channels.channels() > write::kMostStepChannels - current->channels)
            return skip(*current, id, {Code::kResourceExhausted, "tensor: too many channels for this step"});
        current->channels += channels.channels();
        current->record.channels.push_back({id, std::move(channels)});
    }
    [[nodiscard]] std::size_t channel_dimension(TensorId id, std::size_t rank) const noexcept {
        return model::channel_dimension(id < slots_.size() ? slots_[id].role : Role::kOther, rank);
    }
    void release_step(StepIndex step) {
        while (!held_.empty() && held_.front().record.step <= step) release_oldest();
    }

    void observe_classes(Mode mode, TensorId id, const TensorView& logits, const TensorView& labels) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return;
        if (!model::has(take(*current, id).run, What::kClasses)) return;
        Result<model::ClassCounts> counts = reduce::class_counts(logits, labels);
        if (counts) current->record.classes.push_back({id, std::move(counts).value()});
        else skip(*current, id, counts.status());
    }

    void capture_everything_for(std::uint64_t steps) noexcept {
        StepIndex until = 0;
        if (__builtin_add_overflow(train_.record.step, steps, &until) || until == UINT64_MAX)
            until = UINT64_MAX - 1;
        everything_before_ = std::max(everything_before_, until + 1);
    }

    void add_cost(std::uint64_t nanos) noexcept {
        step_cost_ += nanos;
        total_cost_.fetch_add(nanos, std::memory_order_relaxed);
    }

    // `holds`: the step is to be released later, if anything was taken of it or `is_awaited`. Whether it is.
    [[gnu::hot]] bool end(Mode mode, bool holds = false, bool is_awaited = false) {
        Current& current = mode == Mode::kEval ? eval_ : train_;
        StepRecord& record = current.record;
        const std::int64_t now = base::monotonic_nanos();
        const StepIndex next = record.step + 1;
        const std::uint64_t step_nanos = last_end_ == 0 ? 0 : static_cast<std::uint64_t>(now - last_end_);
        if (mode == Mode::kTrain) last_step_nanos_ = static_cast<std::int64_t>(step_nanos);
        const bool has_any = !current.empty() || is_awaited;
        if (has_any && std::exchange(mode == Mode::kEval ? eval_is_of_new_ : train_is_of_new_, false))
            record.scalars.push_back({new_training_, static_cast<double>(trainings_)});
        const bool ends_flight_step = flight_ && mode == Mode::kTrain;
        if (has_any || ends_flight_step) {
            record.wall_nanos = base::wall_nanos();
            record.monotonic_nanos = now;
            record.step_nanos = step_nanos;
            record.capture_nanos = step_cost_;
        }
        if (ends_flight_step) flight_->end_step(record);
        keep_flight_if_asked();
        if (has_any) {
            record.sequence = sequence_++;
            if (holds) {
                held_.push_back(std::exchange(static_cast<StepUnderWay&>(current), {}));
            } else {
                release_all();
                current.hand_to(*writer_);
            }
            record.mode = mode;
        }
        if (plan_.is_waiting()) note_end(mode, next - 1);
        record.step = next;
        const bool follows_its_own = std::exchange(last_mode_, mode) == mode;
        if (budget_.is_limited()) keep_within_budget(mode, next - 1, step_nanos, follows_its_own);
        if (mode == Mode::kTrain) follow_plan(next);
        plan_.begin_step(mode, next, now);
        last_end_ = now;
        step_cost_ = 0;
        if (mode == Mode::kTrain && control_) control_->publish_step(next);
        return has_any && holds;
    }

    // What the flight recorder holds is to stay.
    void keep_flight(std::string_view reason) {
        if (!flight_ || !flight_->keep(reason, train_.record.step)) return;
        const model::Json json = {{"step", train_.record.step}, {"reason", reason}};
        writer_->event("flight_recorder", json.dump(-1, ' ', false, model::Json::error_handler_t::replace));
    }

    // After a request to stop: whether this boundary is where this process leaves. Of a training of several
    // processes it is one that the others have not passed, so that nobody waits for one that is gone.
    [[nodiscard]] bool leaves_now() const noexcept {
        if (!has_peers_) return true;
        const StepIndex done = train_.record.step;
        StepIndex at = control_->stop_step();
        if (at == 0) {
            at = std::max<StepIndex>(done, control_->step()) + steps_to_agree();
            control_->announce_stop_step(at);
        }
        return done >= at || at - done > 2 * kMostStepsToAgree;
    }

    // How far a process may be ahead of another: what it hands to a device runs later than it goes on. A
    // device's queue holds far less than this much time, unless its steps are long: then, not two of them.
    [[nodiscard]] StepIndex steps_to_agree() const noexcept {
        const std::int64_t nanos = std::max<std::int64_t>(last_step_nanos_, 1);
        return 2 + std::min<StepIndex>(static_cast<StepIndex>(kNanosAhead / nanos), kMostStepsToAgree - 2);
    }

    [[gnu::hot]] [[nodiscard]] StepDirective directive() noexcept {
        StepDirective out;
        out.due = due(Mode::kTrain);
        out.plan_changed = std::exchange(plan_changed_, false);
        out.stop_requested = control_ && control_->stop_requested() && leaves_now();
        out.ignores_losses = plan_.config().requirements.empty() && !flight_ && !everything();
        out.correction_asked = control_ && is_correction_asked(control_->corrections_asked());
        if (out.stop_requested && !stop_seen_) {
            stop_seen_ = true;
            control_->publish_state(TrainingState::kStopping);
        }
        return out;
    }

    [[nodiscard]] storage::CorrectionsAsked take_corrections() noexcept {
        if (!control_) return {};
        const storage::CorrectionsAsked now = control_->corrections_asked();
        storage::CorrectionsAsked out = now;
        out.lower_lr -= corrections_seen_.lower_lr;
        out.roll_back -= corrections_seen_.roll_back;
        corrections_seen_ = now;
        return out;
    }
    [[nodiscard]] std::optional<std::uint64_t> checkpoint_asked() const noexcept {
        if (!control_) return std::nullopt;
        const storage::CorrectionsAsked asked = control_->corrections_asked();
        return asked.checkpoint != 0 ? std::optional(asked.bad_since) : std::nullopt;
    }

    void release_oldest() {
        if (!held_.front().empty()) held_.front().hand_to(*writer_);
        held_.pop_front();
    }
    void release_all() {
        while (!held_.empty()) release_oldest();
    }
    [[nodiscard]] bool flush(std::chrono::nanoseconds patience) noexcept {
        return alive() && writer_->flush(patience);
    }

    void close(std::chrono::nanoseconds patience) {
        if (!alive()) return;
        // What was seen of a step that did not end, such as a metric logged after the last one.
        for (Current* current : {&eval_, &train_}) {
            const bool has_flight_step = current == &train_ && flight_ && !flight_->current().empty();
            if (!current->empty() || has_flight_step) end(current->record.mode);
        }
        release_all();
        keep_flight_if_asked();
        if (has_budget() || steps_left_out_ != 0) tell_budget("budget");
        if (plan_.is_waiting()) tell_unmatched(/*at_end=*/true);
        if (skips_not_told_ > 0)
            writer_->event("tensors_skipped", model::Json{{"more", skips_not_told_}}.dump());
        const std::int64_t deadline = base::monotonic_nanos() + std::min(patience, kLongestClose).count();
        const auto left = [deadline](std::int64_t least) {
            return std::chrono::nanoseconds(std::max(deadline - base::monotonic_nanos(), least));
        };
        // Nobody will go by a plan that is still being read.
        changes_.finish(std::min<std::chrono::nanoseconds>(patience, kPlanPatience));
        open_.store(false, std::memory_order_relaxed);
        writer_->close(left(0)).ignore();  // the writer itself says what went wrong, once
        if (flight_) flight_->close(left(kLeastFlightNanos));
        if (!control_) return;
        control_->publish_state(TrainingState::kEnded);
        control_.reset();  // a session that is over may live on for long; its descriptor should not
    }

    void abandon() noexcept {
        open_.store(false, std::memory_order_relaxed);
        writer_->abandon();
        if (flight_) flight_->abandon();
        control_.reset();
    }

    [[nodiscard]] SessionCounts counts() const {
        SessionCounts out;
        // In a forked child the writer's locks may be held by a thread that does not exist there.
        if (generation_ == fork_generation()) out.writer = writer_->counts();
        out.tensors_skipped = skipped_.load(std::memory_order_relaxed);
        out.capture_nanos = total_cost_.load(std::memory_order_relaxed);
        return out;
    }

    // Of a tensor that its caller cannot read.
    void cannot_take(Mode mode, TensorId id, std::string_view why) {
        Current* current = find(mode);
        if (current != nullptr && id < slots_.size())
            skip(*current, id, {Code::kUnsupported, std::string(why)});
    }
    void count_failure() noexcept { skipped_.fetch_add(1, std::memory_order_relaxed); }

    [[nodiscard]] const SessionOptions& options() const noexcept { return options_; }
    [[nodiscard]] const CapturePlan& plan() const noexcept { return plan_; }
    [[nodiscard]] model::WorkerId worker() const noexcept { return writer_->worker(); }
    [[nodiscard]] bool is_in_child() const noexcept { return generation_ != fork_generation(); }

  private:
    struct Slot {
        const std::string* name = nullptr;  // the key in ids_
        Role role = Role::kOther;
        model::ActivationKind activation = model::ActivationKind::kNone;
        bool loss_is_bad = false;
        bool skip_was_told = false;
        bool is_always_kept = false;  // the user hands it over for that
    };
    // The step under way of one mode.
    struct Current : StepUnderWay {
        std::vector<StepIndex> taken_at;    // tensor -> the last step at which it was taken
        std::vector<StepIndex> skipped_at;  // the same of those that were skipped; only as long as needed
    };
    // What is wanted of a tensor, and by whom.
    struct Wanted {
        What run = What::kNothing;
        What flight = What::kNothing;
    };

    [[nodiscard]] bool is_correction_asked(const storage::CorrectionsAsked& now) const noexcept {
        return now.lower_lr != corrections_seen_.lower_lr || now.roll_back != corrections_seen_.roll_back;
    }

    // What the TRAIN step `next` and those after it are captured by, if somebody has put another plan into
    // the run. Without one this is a load and two comparisons.
    [[gnu::hot]] void follow_plan(StepIndex next) {
        if (!control_) return;
        const std::uint32_t announced = control_->plans_announced();
        if (announced == plans_seen_ && !changes_.is_looking()) return;
        if (!changes_.is_looking()) {
            TensorNames tensors;
            for (TensorId id = 0; id < slots_.size(); ++id)
                tensors.add(*slots_[id].name, slots_[id].role, own_collections(id));
            tensors_looked_at_ = slots_.size();
            changes_.look(std::move(tensors));
            plans_seen_ = announced;
            return;
        }
        std::optional<PlanChange> change = changes_.take();
        if (!change || (!change->plan && change->problem.is_ok())) return;
        if (!change->plan) return refuse_plan(change->number, change->problem);
        take_on(std::move(*change->plan), change->number, tensors_looked_at_, next);
    }

    void note_end(Mode mode, StepIndex step) {
        plan_.note_end(mode, step);
        tell_unmatched(/*at_end=*/false);
    }
    // What the user asked for by patterns of which none has matched.
    void tell_unmatched(bool at_end) {
        for (const model::CollectionSpec& each : plan_.take_unmatched(kStepsToWait, at_end)) {
            std::vector<std::string> names(block_names_.begin(), block_names_.end());
            for (const Slot& slot : slots_) names.push_back(*slot.name);
            std::vector<std::string> near = names_near(each.include, names);
            std::string patterns = base::join(
                std::span(each.include).first(std::min(each.include.size(), kMostPatternsTold)), ", ");
            if (each.include.size() > kMostPatternsTold) patterns += ", ...";
            const std::string what = base::format("collection '{}' ({})", each.name, patterns);
            std::string reason =
                base::format("matches none of the {} tensors that were seen {}", slots_.size(),
                             at_end ? std::string("in this training")
                                    : base::format("in {} steps at which it is due", kStepsToWait));
            if (!near.empty()) reason += base::format(" (near it: {})", base::join(near, ", "));
            const model::Json json = {{"what", what}, {"reason", reason}, {"collection", each.name}};
            writer_->event("not_captured", json.dump(-1, ' ', false, model::Json::error_handler_t::replace));
            if (writer_->worker() == 0)  // once for all ranks
                base::log(LogLevel::kWarning,
                          base::printable(base::format("{}: not captured: {}", what, reason)));
        }
    }

    // `plan` has noted the tensors up to `noted`.
    void take_on(CapturePlan plan, std::uint32_t number, std::size_t noted, StepIndex from) {
        for (std::size_t id = noted; id < slots_.size(); ++id)
            plan.note_tensor(*slots_[id].name, slots_[id].role, own_collections(static_cast<TensorId>(id)));
        plan.take_over(plan_);
        plan_ = std::move(plan);
        plan_changed_ = true;
        if (const std::optional<double> limit = limit_of(plan_.config()); limit != limit_) set_limit(limit);
        const model::Json json = {{"number", number}, {"step", from}, {"eval_step", eval_.record.step}};
        writer_->event("plan_changed", json.dump());
        if (writer_->worker() == 0)  // once for all ranks
            base::log(LogLevel::kInfo,
                      base::format("from step {} on, plan-{:06}.json says what is captured", from, number));
    }

    void refuse_plan(std::uint32_t number, const Status& why) {
        const model::Json json = {{"number", number}, {"reason", why.message()}};
        writer_->event("plan_refused", json.dump(-1, ' ', false, model::Json::error_handler_t::replace));
        base::log(LogLevel::kWarning,
                  base::format("a change of what is captured is not followed: {}", why.message()));
    }

    [[nodiscard]] std::span<const std::string> own_collections(TensorId id) const {
        const auto found = own_collections_.find(id);
        if (found == own_collections_.end()) return {};
        return found->second;
    }

    static bool is_scalar(Role role) noexcept { return role == Role::kLoss || role == Role::kMetric; }

    // What is of no particular mode belongs to the TRAIN step under way. PREDICT has no steps.
    [[nodiscard]] const Current* find(Mode mode) const noexcept {
        switch (mode) {
            case Mode::kTrain:
            case Mode::kGlobal: return &train_;
            case Mode::kEval: return &eval_;
            case Mode::kPredict: return nullptr;
        }
        return nullptr;
    }
    [[nodiscard]] Current* find(Mode mode) noexcept {
        return const_cast<Current*>(std::as_const(*this).find(mode));
    }

    [[nodiscard]] bool has_flight(const Current& current) const noexcept {
        return flight_ && &current == &train_ && !is_flight_left_out_;
    }
    [[nodiscard]] bool everything() const noexcept { return train_.record.step < everything_before_; }

    [[nodiscard]] Wanted wanted(const Current& current, TensorId id) const noexcept {
        What what = plan_.due(id, current.record.mode, current.record.step);
        const Slot& slot = slots_[id];
        if (slot.role == Role::kMetric || slot.is_always_kept) what |= What::kStatistics;
        if (everything() && (mask_of(slot.role) & kEverything) != 0) {
            what |= slot.role == Role::kClasses ? What::kClasses : What::kStatistics;
            if (slot.role == Role::kActivation && slot.activation != model::ActivationKind::kNone)
                what |= What::kUnits;
        }
        Wanted out{what, What::kNothing};
        if (has_flight(current)) {
            out.flight = flight_->due(id);
            if (model::has(what, What::kStatistics)) out.flight |= What::kStatistics;
        }
        return out;
    }

    // The same, and marks the tensor as taken at this step; nothing when it was before.
    [[nodiscard]] Wanted take(Current& current, TensorId id) noexcept {
        if (current.taken_at[id] == current.record.step) return {};
        const Wanted out = wanted(current, id);
        if ((out.run | out.flight) != What::kNothing) current.taken_at[id] = current.record.step;
        return out;
    }

    // Null: it was released.
    [[nodiscard]] StepUnderWay* step_of(const LateSample& late) noexcept {
        if (late.tensor >= slots_.size()) return nullptr;
        Current* const current = find(late.mode);
        if (current == nullptr || current->record.step == late.step) return current;
        const auto is_it = [&](const StepUnderWay& each) { return each.record.step == late.step; };
        const auto held = std::ranges::find_if(held_, is_it);
        return current != &train_ || held == held_.end() ? nullptr : &*held;
    }

    void add_statistics(StepUnderWay& current, const Wanted& wanted, TensorId id,
                        const model::Statistics& statistics, const model::UnitStatistics& units) {
        const bool has_units = model::has(wanted.run, What::kUnits);
        if (has_units || model::has(wanted.run, What::kStatistics))
            current.record.tensors.push_back({id, statistics, units});
        if (model::has(wanted.flight, What::kStatistics))
            flight_->current().record.tensors.push_back({id, statistics, units});
        const Role role = slots_[id].role;
        if (role == Role::kLoss) watch_loss(id, statistics.not_finite() == 0);
        if (statistics.not_finite() != 0 && (role == Role::kWeight || role == Role::kBias))
            keep_for_weights();
    }

    void add_scalar(StepUnderWay& current, const Wanted& wanted, TensorId id, double value) {
        if (model::has(wanted.run, What::kStatistics)) current.record.scalars.push_back({id, value});
        if (model::has(wanted.flight, What::kStatistics))
            flight_->current().record.scalars.push_back({id, value});
    }

    [[nodiscard]] static model::UnitStatistics units_of(const Slot& slot, const TensorView& view) {
        if (slot.activation == model::ActivationKind::kNone) return {};
        Result<model::UnitStatistics> units = reduce::unit_statistics(view, slot.activation);
        return units ? *units : model::UnitStatistics{};
    }

    // A copy of the tensor for the writer, and its statistics in the same pass where they are wanted.
    // The same of a digest, where there is a place for it.
    Result<model::Statistics> add_whole(StepUnderWay& current, write::RunWriter& writer, TensorId id,
                                        const TensorView& view, bool wants_statistics,
                                        std::optional<model::Digest>* digest = nullptr) {
        const std::int64_t count = view.element_count();
        const std::size_t each = tensor::byte_size(view.dtype);
        if (count <= 0 || each == 0) {
            TRAINDBG_RETURN_IF_ERROR(reduce::copy_row_major(view, {}));  // says what is wrong, if anything
            current.tensors.push_back({id, view.dtype, {view.shape.begin(), view.shape.end()}, {}, {}});
            return reduce::statistics(view);
        }
        std::size_t bytes = 0;
        std::optional<write::ArenaBlock> room;
        if (!__builtin_mul_overflow(static_cast<std::size_t>(count), each, &bytes))
            room = writer.take_room(bytes);
        if (!room) {
            ++current.tensors_left_out;
            if (wants_statistics) return reduce::statistics(view);
            return model::Statistics{};
        }
        Result<model::Statistics> statistics = model::Statistics{};
        if (wants_statistics) {
            statistics = reduce::copy_with_statistics(view, room->bytes(),
                                                      digest == nullptr ? nullptr : &digest->emplace());
            if (!statistics && statistics.status().code() != Code::kUnsupported) return statistics;
        } else {
            TRAINDBG_RETURN_IF_ERROR(reduce::copy_row_major(view, room->bytes()));
        }
        current.tensors.push_back(
            {id, view.dtype, {view.shape.begin(), view.shape.end()}, std::move(*room), {}});
        return statistics;
    }

    void add_whole_to_flight(Current& current, TensorId id, const TensorView& view) {
        const auto copied = add_whole(flight_->current(), flight_->writer(), id, view, false);
        if (!copied) skip(current, id, copied.status());
    }

    void add_difference(Current& current, TensorId id, const Wanted& wanted, const TensorView& before,
                        const TensorView& after) {
        const tensor::DType dtype = reduce::difference_type(after.dtype);
        std::vector<std::byte> values(static_cast<std::size_t>(after.element_count()) *
                                      tensor::byte_size(dtype));
        if (const Status status = reduce::subtract(before, after, values); !status.is_ok()) {
            skip(current, id, status);
            return;
        }
        const TensorView view{values.data(), dtype, after.shape, {}};
        if (model::has(wanted.run, What::kRaw))
            if (const auto copied = add_whole(current, *writer_, id, view, false); !copied)
                skip(current, id, copied.status());
        if (model::has(wanted.flight, What::kRaw)) add_whole_to_flight(current, id, view);
        add_by_request(current, id, wanted.run, view, std::nullopt);
    }

    // What no rule needs, and only who asks for it gets. `digest`: where it was made already.
    void add_by_request(Current& current, TensorId id, What what, const TensorView& view,
                        const std::optional<model::Digest>& digest) {
        StepRecord& record = current.record;
        if (model::has(what, What::kHistogram)) {
            Result<model::Histogram> histogram = reduce::histogram(view);
            if (histogram) record.histograms.push_back({id, std::move(histogram).value()});
            else skip(current, id, histogram.status());
        }
        if (model::has(what, What::kChannels)) add_channels(current, id, view);
        if (model::has(what, What::kDigest)) {
            const Result<model::Digest> made = digest ? *digest : reduce::digest(view);
            if (made) record.digests.push_back({id, *made});
            else skip(current, id, made.status());
        }
    }

    void add_channels(Current& current, TensorId id, const TensorView& view) {
        const std::size_t rank = view.shape.size();
        const std::size_t dimension = rank == 0 ? 0 : model::channel_dimension(slots_[id].role, rank);
        const std::int64_t count = rank == 0 ? 1 : view.shape[dimension];
        // Asked first: what is computed would be for nothing, at every step.
        const std::uint64_t left = write::kMostStepChannels - current.channels;
        if (count > static_cast<std::int64_t>(left) && count <= std::int64_t{model::kMostChannels})
            return skip(current, id,
                        {Code::kResourceExhausted,
                         base::format("tensor: its {} channels would be more than the {} that a step may "
                                      "have, with those of the tensors before it",
                                      count, write::kMostStepChannels)});
        Result<model::ChannelStatistics> channels = reduce::channel_statistics(view, dimension);
        if (!channels) return skip(current, id, channels.status());
        current.channels += channels->channels();
        current.record.channels.push_back({id, std::move(channels).value()});
    }

    // A loss that turns bad: keep the neighbourhood. One that stays bad has told all it can.
    void watch_loss(TensorId id, bool finite) {
        Slot& slot = slots_[id];
        const bool turns_bad = !finite && !slot.loss_is_bad;
        slot.loss_is_bad = !finite;
        if (!turns_bad) return;
        if (!plan_.config().requirements.empty()) capture_everything_for(kStepsKeptAfterBadLoss);
        keep_flight("a loss is not finite");
    }

    void keep_for_weights() {
        if (!std::exchange(weights_are_bad_, true)) keep_flight("a weight is not finite");
    }

    void keep_flight_if_asked() {
        if (!flight_ || !control_) return;
        const std::uint32_t asked = control_->flight_copies_requested();
        if (std::exchange(flight_copies_seen_, asked) != asked) keep_flight("a rule found something");
    }

    // Counts the step that ends, and decides whether the mode's next one does without what can be left out.
    // `follows_its_own`: so does the step before, and no evaluation came in between.
    void keep_within_budget(Mode mode, StepIndex ended, std::uint64_t step_nanos, bool follows_its_own) {
        const bool is_training = mode == Mode::kTrain;
        const bool has_flight_step = is_training && flight_;
        const RoleMask all = plan_.due_roles_unthinned(mode, ended);
        const bool was_due = has_flight_step || (all & ~kNeverThinned) != 0;
        const bool was_left_out =
            plan_.is_thinned(mode) && (has_flight_step || plan_.due_roles(mode, ended) != all);
        steps_due_ += was_due ? 1 : 0;
        steps_left_out_ += was_left_out ? 1 : 0;
        if (was_left_out && is_overdrawn_ && !std::exchange(thinning_was_told_, true)) {
            tell_budget("budget_thins");
            if (has_budget())
                base::log_once(
                    LogLevel::kInfo, "capture.budget",
                    base::format("capture would take more than {:.3g} % of the training's time: of the "
                                 "steps that are due some are left out",
                                 100 * budget_.share()));
        }
        // Evaluations are of any length, and paid for by what was measured of them.
        budget_.account({.nanos = step_nanos,
                         .cost_nanos = step_cost_,
                         .looked_at = is_training ? looked_at(ended) : 0,
                         .is_whole = is_training && follows_its_own});
        is_overdrawn_ = budget_.is_overdrawn();
        const bool leaves_out = is_overdrawn_ || (is_training && budget_.wants_comparison());
        // Evaluations are few, and much hangs on what they show: the standing limit leaves none of them out.
        if (is_training || has_budget()) plan_.thin(mode, leaves_out);
        if (!is_training) return;
        is_flight_left_out_ = leaves_out;
        // The next evaluation's first step goes by what is so when it begins.
        if (eval_.empty() && has_budget()) plan_.thin(Mode::kEval, is_overdrawn_);
    }
    // The roles that were looked at in this TRAIN step, but for numbers that cost nothing.
    [[nodiscard]] RoleMask looked_at(StepIndex step) const noexcept {
        RoleMask roles = plan_.due_roles(Mode::kTrain, step);
        if (step < everything_before_) roles |= kEverything;
        if (has_flight(train_)) roles |= flight_->due_roles();
        return roles & ~kNeverThinned;
    }
    // From the steps under way on.
    void leave_nothing_out() noexcept {
        for (const Mode mode : {Mode::kTrain, Mode::kEval}) plan_.thin(mode, false);
        is_flight_left_out_ = is_overdrawn_ = false;
    }
    // Whether the training's user set one.
    [[nodiscard]] bool has_budget() const noexcept { return limit_ && budget_.is_limited(); }
    void set_limit(const std::optional<double>& limit) {
        if (has_budget() || steps_left_out_ != 0) tell_budget("budget");  // of what was until now
        budget_ = Budget::of(limit);
        limit_ = limit;
        leave_nothing_out();
        thinning_was_told_ = false;
        steps_due_ = steps_left_out_ = 0;
        if (has_budget()) tell_budget("budget");
    }
    void tell_budget(std::string_view kind) {
        const model::Json json = {{"step", train_.record.step}, {"budget", budget_.share()},
                                  {"is_standing", !limit_},     {"spent", budget_.spent()},
                                  {"steps_due", steps_due_},    {"steps_left_out", steps_left_out_}};
        writer_->event(kind, json.dump());
    }

    // Something that was due of the tensor could not be taken. A tensor counts once at a step.
    void skip(Current& current, TensorId id, const Status& why) {
        if (current.skipped_at.size() <= id) current.skipped_at.resize(slots_.size(), kNever);
        if (std::exchange(current.skipped_at[id], current.record.step) != current.record.step)
            count_failure();
        Slot& slot = slots_[id];
        if (slot.skip_was_told) return;
        slot.skip_was_told = true;
        if (skips_told_ == kMostSkipsTold) {
            ++skips_not_told_;
            return;
        }
        ++skips_told_;
        const model::Json json = {{"tensor", *slot.name}, {"reason", why.message()}};
        writer_->event("tensor_skipped", json.dump(-1, ' ', false, model::Json::error_handler_t::replace));
        base::log_once(
            LogLevel::kInfo, "capture.skip",
            base::format("'{}' is not recorded: {} (there may be more)", *slot.name, why.message()));
    }

    const SessionOptions options_;
    CapturePlan plan_;
    std::unique_ptr<write::RunWriter> writer_;
    const std::unique_ptr<FlightRecorder> flight_;  // null: there is none
    // Null: no supervisor can reach us. Shared with who asks for a supervisor while the writer's threads
    // live.
    std::shared_ptr<ControlBlock> control_;
    std::optional<double> limit_;  // as `limit_of` gives it
    Budget budget_;
    std::uint64_t trainings_ = 1;            // of other models than the one before
    std::uint64_t trainings_looked_at_ = 1;  // and of the same one
    StepIndex last_begun_ = 0;
    StepIndex last_looked_at_ = 0;  // where the last one began whose beginning was looked at closely
    TensorId new_training_ = kNoTensor;
    bool train_is_of_new_ = false, eval_is_of_new_ = false;  // the next step: it is to say so
    std::uint64_t steps_due_ = 0;                            // with anything that the budget could leave out
    std::uint64_t steps_left_out_ = 0;                       // of these
    bool is_flight_left_out_ = false;  // at the TRAIN step under way, for the budget's sake
    bool is_overdrawn_ = false;        // the budget, at the end of the last step
    bool thinning_was_told_ = false;
    std::uint32_t flight_copies_seen_ = 0;
    storage::CorrectionsAsked corrections_seen_;
    bool weights_are_bad_ = false;
    storage::FileSystem& files_;
    PlanChanges changes_;
    std::uint32_t plans_seen_;           // of those announced
    std::size_t tensors_looked_at_ = 0;  // by the change that is being looked at
    bool plan_changed_ = false;          // and nobody was told yet
    const std::uint32_t generation_ = fork_generation();
    std::atomic<bool> open_{true};

    std::unordered_map<std::string, TensorId> ids_;
    std::vector<Slot> slots_;  // by id
    // Beside those by the plan's patterns; of those that have any.
    std::unordered_map<TensorId, std::vector<std::string>> own_collections_;
    std::set<std::string, std::less<>> block_names_;  // of the models' modules with others inside
    Current train_;
    Current eval_;
    std::deque<StepUnderWay> held_;  // TRAIN steps that ended, the oldest first
    std::uint64_t sequence_ = 0;
    std::int64_t last_end_ = 0;        // of a step of any mode; 0: none yet
    Mode last_mode_ = Mode::kTrain;    // of that step
    std::uint64_t step_cost_ = 0;      // since then
    StepIndex everything_before_ = 0;  // TRAIN steps below this one take everything
    bool stop_seen_ = false;
    bool has_peers_ = false;  // other processes of the same training
    std::int64_t last_step_nanos_ = 0;

    std::atomic<std::uint64_t> skipped_{0};
    std::size_t skips_told_ = 0;
    std::size_t skips_not_told_ = 0;
    std::atomic<std::uint64_t> total_cost_{0};
};

namespace {

// Runs `work` with its time on the step's account, and lets nothing out: what a training must never see
// is an exception of ours.
template <typename Session, typename Work>
void guarded(Session& session, Work&& work) noexcept {
    if (!session.alive()) return;
    const std::int64_t begin = base::monotonic_nanos();
    try {
        work();
    } catch (const std::exception& error) {
        session.count_failure();
        base::log_once(LogLevel::kWarning, "capture.failure", error.what());
    } catch (...) {
        session.count_failure();
        base::log_once(LogLevel::kWarning, "capture.failure", "capture failed for an unknown reason");
    }
    session.add_cost(static_cast<std::uint64_t>(base::monotonic_nanos() - begin));
}

}  // namespace

CaptureSession::CaptureSession(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

CaptureSession::~CaptureSession() {
    if (impl_->is_in_child()) impl_->abandon();
    else close(std::chrono::seconds(1));
}

Result<std::unique_ptr<CaptureSession>> CaptureSession::open(SessionOptions options,
                                                             storage::FileSystem& files) {
    try {
        if (options.run_directory.empty())
            return Status(Code::kInvalidArgument, "run directory: the name is empty");
        TRAINDBG_ASSIGN_OR_RETURN(CapturePlan plan, CapturePlan::make(options.config));
        const storage::RunLayout layout{options.run_directory};
        TRAINDBG_RETURN_IF_ERROR(prepare_run(files, layout, options.config, options.command));
        Result<std::unique_ptr<ControlBlock>> control = ControlBlock::open(layout.control());
        const std::uint32_t plans_seen = control ? (*control)->plans_announced() : 0;
        const Result<PlanInForce> in_force = publish_wishes(files, layout, options.config);
        if (!in_force)
            base::log_once(LogLevel::kDebug, "capture.plan",
                           "what this process asks for is not in the run: " + in_force.status().message());
        // A change that came since somebody read the plan for us is followed after the first step.
        const bool is_ours = in_force && in_force->config == options.config;
        if (!control)
            base::log_once(LogLevel::kWarning, "capture.control",
                           "nobody can stop this training or change what is captured of it: " +
                               control.status().message());
        const std::shared_ptr<ControlBlock> page = control ? std::move(control).value() : nullptr;
        TRAINDBG_ASSIGN_OR_RETURN(
            auto writer, write::RunWriter::open(
                             files, {.run_directory = options.run_directory,
                                     .worker = options.worker,
                                     .queue_bytes = static_cast<std::size_t>(options.config.queue_bytes),
                                     .arena_bytes = static_cast<std::size_t>(options.config.arena_bytes),
                                     .overflow = options.config.overflow,
                                     .block_for = std::chrono::milliseconds(std::min<std::uint64_t>(
                                         options.config.block_for_ms, kLongestBlockMs)),
                                     .part_bytes = options.config.part_bytes,
                                     .retention = options.config.retention,
                                     .is_loss_told = [asked = std::weak_ptr<ControlBlock>(page)] {
                                         const auto there = asked.lock();
                                         return there && there->is_supervised();
                                     }}));
        std::unique_ptr<FlightRecorder> flight;
        if (options.config.flight.steps != 0) {
            auto opened = FlightRecorder::open(files, layout, options.config, writer->worker());
            if (opened) flight = std::move(opened).value();
            else base::log(LogLevel::kWarning, "there is no flight recorder: " + opened.status().message());
        }
        auto impl =
            std::make_unique<Impl>(std::move(options), std::move(plan), std::move(writer), std::move(flight),
                                   page, files, is_ours ? in_force->number : 0, is_ours ? plans_seen : 0);
        return std::unique_ptr<CaptureSession>(new CaptureSession(std::move(impl)));
    } catch (const std::exception& error) {
        return Status(Code::kResourceExhausted, base::format("recording could not begin: {}", error.what()));
    }
}

void CaptureSession::keep_flight(std::string_view reason) noexcept {
    guarded(*impl_, [&] { impl_->keep_flight(reason); });
}

TensorId CaptureSession::register_tensor(model::TensorInfo info) noexcept {
    TensorId id = kNoTensor;
    guarded(*impl_, [&] { id = impl_->add_tensor(std::move(info)); });
    return id;
}

void CaptureSession::describe(model::WorkerMeta meta) noexcept {
    guarded(*impl_, [&] { impl_->describe(std::move(meta)); });
}

void CaptureSession::event(std::string_view kind, std::string_view json) noexcept {
    guarded(*impl_, [&] { impl_->event(kind, json); });
}

RoleMask CaptureSession::due(Mode mode) noexcept { return impl_->alive() ? impl_->due(mode) : 0; }
RoleMask CaptureSession::asked(Mode mode) const noexcept { return impl_->alive() ? impl_->asked(mode) : 0; }
RoleMask CaptureSession::eager(Mode mode) const noexcept { return impl_->alive() ? impl_->eager(mode) : 0; }
void CaptureSession::forward_passed() noexcept { impl_->forward_passed(); }
bool CaptureSession::note_block(std::string_view name) noexcept {
    bool is_wanted = false;
    guarded(*impl_, [&] { is_wanted = impl_->note_block(name); });
    return is_wanted;
}
StepIndex CaptureSession::step(Mode mode) const noexcept { return impl_->step(mode); }

void CaptureSession::observe(Mode mode, TensorId tensor, const TensorView& view) noexcept {
    guarded(*impl_, [&] { impl_->observe(mode, tensor, view); });
}

void CaptureSession::observe_batch(Mode mode, std::span<const TensorId> tensors,
                                   std::span<const TensorView> views) noexcept {
    guarded(*impl_, [&] {
        const std::size_t count = std::min(tensors.size(), views.size());
        for (std::size_t i = 0; i < count; ++i)
            if (views[i].data != nullptr) impl_->observe(mode, tensors[i], views[i]);
    });
}

void CaptureSession::cannot_take(Mode mode, TensorId tensor, std::string_view why) noexcept {
    guarded(*impl_, [&] { impl_->cannot_take(mode, tensor, why); });
}

void CaptureSession::observe_scalar(Mode mode, TensorId tensor, double value) noexcept {
    guarded(*impl_, [&] { impl_->observe_scalar(mode, tensor, value); });
}

[[gnu::hot]] void CaptureSession::observe_scalars(Mode mode,
                                                  std::span<const model::ScalarSample> scalars) noexcept {
    guarded(*impl_, [&] {
        for (const model::ScalarSample& each : scalars) impl_->observe_scalar(mode, each.tensor, each.value);
    });
}

void CaptureSession::observe_classes(Mode mode, TensorId tensor, const TensorView& logits,
                                     const TensorView& labels) noexcept {
    guarded(*impl_, [&] { impl_->observe_classes(mode, tensor, logits, labels); });
}

Status CaptureSession::ask_for(const model::CaptureConfig& config) {
    if (!impl_->alive()) return Status::ok();
    try {
        return impl_->ask_for(config);
    } catch (const std::exception& error) {
        return {Code::kResourceExhausted, error.what()};
    }
}

void CaptureSession::keep_always(TensorId tensor) noexcept {
    if (impl_->alive()) impl_->keep_always(tensor);
}

void CaptureSession::observe_update(Mode mode, TensorId update, TensorId ratio, const TensorView& before,
                                    const TensorView& after) noexcept {
    guarded(*impl_, [&] { impl_->observe_update(mode, update, ratio, before, after); });
}

model::What CaptureSession::wanted(Mode mode, TensorId tensor) const noexcept {
    return impl_->alive() ? std::as_const(*impl_).wanted(mode, tensor) : model::What::kNothing;
}
model::ActivationKind CaptureSession::activation(TensorId tensor) const noexcept {
    return impl_->alive() ? impl_->activation(tensor) : model::ActivationKind::kNone;
}

void CaptureSession::observe_statistics(Mode mode, TensorId tensor, const model::Statistics& statistics,
                                        const model::UnitStatistics& units) noexcept {
    guarded(*impl_, [&] { impl_->observe_statistics(mode, tensor, statistics, units); });
}

void CaptureSession::capture_everything_for(std::uint64_t steps) noexcept {
    if (impl_->alive()) impl_->capture_everything_for(steps);
}

void CaptureSession::begin_training(bool of_another_model) noexcept {
    guarded(*impl_, [&] { impl_->begin_training(of_another_model); });
}

void CaptureSession::add_cost(std::uint64_t nanos) noexcept {
    if (impl_->alive()) impl_->add_cost(nanos);
}

storage::CorrectionsAsked CaptureSession::take_corrections() noexcept {
    return impl_->alive() ? impl_->take_corrections() : storage::CorrectionsAsked{};
}
std::optional<std::uint64_t> CaptureSession::checkpoint_asked() const noexcept {
    return impl_->alive() ? impl_->checkpoint_asked() : std::nullopt;
}

[[gnu::hot]] StepDirective CaptureSession::end_step() noexcept {
    StepDirective directive;
    guarded(*impl_, [&] {
        impl_->end(Mode::kTrain);
        directive = impl_->directive();
    });
    return directive;
}
[[gnu::hot]] StepDirective CaptureSession::end_step_held_back(bool is_awaited) noexcept {
    StepDirective directive;
    guarded(*impl_, [&] {
        const bool is_held = impl_->end(Mode::kTrain, true, is_awaited);
        directive = impl_->directive();
        directive.is_held_back = is_held;
    });
    return directive;
}
void CaptureSession::release_step(StepIndex step) noexcept {
    guarded(*impl_, [&] { impl_->release_step(step); });
}
LateSample CaptureSession::begin_late(Mode mode, TensorId tensor) noexcept {
    LateSample out;
    guarded(*impl_, [&] { out = impl_->begin_late(mode, tensor); });
    return out;
}
void CaptureSession::observe_late(const LateSample& sample, const model::Statistics& statistics,
                                  const model::UnitStatistics& units) noexcept {
    guarded(*impl_, [&] { impl_->observe_late(sample, statistics, units); });
}
void CaptureSession::observe_late(const LateSample& sample, double value) noexcept {
    guarded(*impl_, [&] { impl_->observe_late(sample, value); });
}
void CaptureSession::observe_channels(Mode mode, TensorId tensor,
                                      model::ChannelStatistics channels) noexcept {
    guarded(*impl_, [&] { impl_->observe_channels(mode, tensor, std::move(channels)); });
}
std::size_t CaptureSession::channel_dimension(TensorId tensor, std::size_t rank) const noexcept {
    return impl_->channel_dimension(tensor, rank);
}
bool CaptureSession::can_hold_back() const noexcept { return impl_->alive() && impl_->can_hold_back(); }

void CaptureSession::end_eval_step() noexcept {
    guarded(*impl_, [&] { impl_->end(Mode::kEval); });
}

bool CaptureSession::flush(std::chrono::nanoseconds patience) noexcept {
    guarded(*impl_, [&] { impl_->release_all(); });
    return impl_->flush(patience);
}

void CaptureSession::close(std::chrono::nanoseconds patience) noexcept {
    guarded(*impl_, [&] { impl_->close(patience); });
}

void CaptureSession::abandon() noexcept { impl_->abandon(); }
bool CaptureSession::is_open() const noexcept { return impl_->alive(); }
SessionCounts CaptureSession::counts() const { return impl_->counts(); }
const std::string& CaptureSession::run_directory() const noexcept { return impl_->options().run_directory; }
model::WorkerId CaptureSession::worker() const noexcept { return impl_->worker(); }
const CapturePlan& CaptureSession::plan() const noexcept { return impl_->plan(); }

}  // namespace traindbg::capture
