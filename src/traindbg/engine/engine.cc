#include "traindbg/engine/engine.h"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/diagnose/diagnose.h"
#include "traindbg/diagnose/source_lines.h"
#include "traindbg/model/micro_batch.h"
#include "traindbg/model/rule_instance.h"
#include "traindbg/rules/hold.h"

namespace traindbg::engine {

using base::Result;
using base::Status;

namespace {

constexpr std::size_t kMostKeys = 1000;  // of one rule and one worker

// One rule that runs, and its parameters.
struct Active {
    const rules::RuleEntry* entry = nullptr;
    std::string name;  // the rule's or the instance's
    rules::Parameters parameters;
    rules::Hold hold;
    std::string broken;                        // why it was taken out
    std::unique_ptr<rules::Rule> of_all = {};  // the one object of a rule that sees all workers
};

// What a rule has looked at.
struct Judged {
    std::uint64_t steps = 0;
    std::string why_not;
};

struct Worker {
    // As `Active`s; null once broken, and of a rule that sees all workers.
    std::vector<std::unique_ptr<rules::Rule>> rules;
    model::WorkerMeta meta;
    model::Mode mode = model::Mode::kTrain;                        // of the last step that was shown
    std::array<model::StepIndex, model::kModeCount> last_steps{};  // by mode
    std::array<model::StepIndex, model::kModeCount> next_steps{};  // 0: none was shown
    std::int64_t wall_nanos = 0;                                   // when it was recorded
    bool trained = false;                                          // a TRAIN step was shown
    double training = 1;                                           // which of the process's it is in
    std::array<model::StepIndex, model::kModeCount> began{};       // its first steps, by mode
    std::vector<std::uint64_t> judged_before;                      // as `rules`: steps of earlier trainings

    [[nodiscard]] model::StepIndex last_step(model::Mode of) const {
        return last_steps[static_cast<std::size_t>(of)];
    }
};

// A finding whose fault has not lasted for its rule's hold.
struct Waiting {
    std::size_t finding = 0;
    std::size_t rule = 0;
    model::WorkerId worker = 0;  // whose steps count
    model::StepIndex step = 0;   // at which the rule saw the fault, of the finding's mode
    std::int64_t wall_nanos = 0;
};

// It was pending, and was over before it fired: nothing to be told.
bool is_dropped(const model::Finding& finding) {
    return finding.state == model::FindingState::kResolved && finding.times == 0;
}

}  // namespace

class Engine::Impl {
  public:
    explicit Impl(std::vector<Active> active) : active_(std::move(active)) {
        for (Active& each : active_)
            if (each.entry->sees_all_workers) each.of_all = each.entry->make(each.parameters);
    }

    void on_step(const model::StepView& view) {
        Worker& worker = worker_of(view.worker);
        const auto mode = static_cast<std::size_t>(view.mode());
        if (const std::optional<double> number = new_training(view)) {
            if (*number > worker.training) begin_training(view.worker, worker, *number);
            worker.began[mode] = view.step();
        }
        worker.mode = view.mode();
        worker.last_steps[mode] = view.step();
        worker.next_steps[mode] = view.step() + 1;
        worker.wall_nanos = view.record->wall_nanos;
        worker.trained = worker.trained || view.mode() == model::Mode::kTrain;
        if (!(worker.meta == *view.meta)) worker.meta = *view.meta;
        ++steps_;
        phase_ = Phase::kStep;
        model::StepView shown = model::of_first_micro_batch(view, scratch_);
        for (std::size_t i = 0; i < active_.size(); ++i) {
            shown.began = tells_trainings_apart(i) ? std::min(worker.began[mode], view.step()) : 0;
            ask(view.worker, worker, i,
                [&](rules::Rule& rule, rules::FindingSink& sink) { rule.on_step(shown, sink); });
        }
        if (!waiting_.empty()) let_fire(view.worker, worker);
    }

    void on_begin(std::int64_t wall_nanos) {
        ask_those_of_all([&](rules::Rule& rule, rules::FindingSink&) { rule.on_begin(wall_nanos); });
    }

    void on_time(std::int64_t wall_nanos) {
        phase_ = ended_ ? Phase::kTimeAtEnd : Phase::kTime;
        const auto question = [&](rules::Rule& rule, rules::FindingSink& sink) {
            rule.on_time(wall_nanos, sink);
        };
        if (workers_.empty()) ask_those_of_all(question);
        else ask_all(question);
    }

    void on_end() {
        if (std::exchange(ended_, true)) return;
        phase_ = Phase::kEnd;
        // The last word is about the training, even where an evaluation came last.
        for (auto& [id, worker] : workers_)
            if (worker.trained) worker.mode = model::Mode::kTrain;
        ask_all([](rules::Rule& rule, rules::FindingSink& sink) { rule.on_end(sink); });
    }

    [[nodiscard]] model::Verdict verdict() const {
        std::vector<std::size_t> order;
        for (std::size_t i = 0; i < findings_.size(); ++i)
            if (!is_dropped(findings_[i])) order.push_back(i);
        // One that was pending has its place where it fired.
        std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
            return traces_[a].moment < traces_[b].moment;
        });
        model::Verdict verdict;
        for (const std::size_t i : order) verdict.findings.push_back(findings_[i]);
        verdict.outcomes = outcomes();
        verdict.causes = diagnose::likely_causes(verdict.findings, verdict.outcomes, meta());
        return verdict;
    }

    [[nodiscard]] const std::vector<model::Finding>& findings() const noexcept { return findings_; }
    [[nodiscard]] const std::vector<Trace>& traces() const noexcept { return traces_; }
    [[nodiscard]] std::vector<model::RuleOutcome> outcomes() const {
        std::vector<model::RuleOutcome> outcomes;
        for (std::size_t i = 0; i < active_.size(); ++i) outcomes.push_back(outcome_of(i));
        return outcomes;
    }
    [[nodiscard]] const model::WorkerMeta& meta() const noexcept {
        static const model::WorkerMeta kUnknown;
        return workers_.empty() ? kUnknown : workers_.begin()->second.meta;
    }

    Listener listener;
    FailureListener failure_listener;
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  private:
    using Key = std::tuple<std::size_t, model::WorkerId, std::string>;

    class Sink final : public rules::FindingSink {
      public:
        Sink(Impl& engine, model::WorkerId id, const Worker& worker, std::size_t rule)
            : engine_(engine), id_(id), worker_(worker), rule_(rule) {}
        void fire(model::Finding finding) override { engine_.fire(rule_, id_, worker_, std::move(finding)); }
        void clear(std::string_view key) override {
            if (engine_.active_[rule_].of_all == nullptr) return engine_.clear(rule_, id_, key);
            for (const auto& [id, worker] : engine_.workers_) engine_.clear(rule_, id, key);
            engine_.clear(rule_, 0, key);  // of before the first step
        }
        void take_back(model::Finding note) override {
            const bool is_of_all = engine_.active_[rule_].of_all != nullptr;
            if (engine_.tells_trainings_apart(rule_)) count_in_run(note, worker_, model::Mode::kTrain);
            engine_.take_back(rule_, is_of_all ? note.worker : id_, note);
        }

      private:
        Impl& engine_;
        model::WorkerId id_;
        const Worker& worker_;
        std::size_t rule_;
    };

    Worker& worker_of(model::WorkerId id) {
        const auto [place, is_new] = workers_.try_emplace(id);
        if (is_new)
            for (const Active& active : active_)
                place->second.rules.push_back(
                    active.entry->sees_all_workers ? nullptr : active.entry->make(active.parameters));
        return place->second;
    }

    // The number of the training that begins with a step.
    static std::optional<double> new_training(const model::StepView& view) {
        for (const model::ScalarSample& sample : view.record->scalars) {
            const model::TensorInfo& info = view.info(sample.tensor);
            if (info.role == model::Role::kLoop && info.name == "loop/new_training") return sample.value;
        }
        return std::nullopt;
    }

    // The one before is over, and rules know nothing of the next one. Their last word (`on_end`) is about the
    // end of the process: some of what they say then was meant to be told until there.
    void begin_training(model::WorkerId id, Worker& worker, double number) {
        worker.judged_before.resize(active_.size());
        for (std::size_t i = 0; i < active_.size(); ++i) {
            std::unique_ptr<rules::Rule>& object = worker.rules[i];
            if (!tells_trainings_apart(i) || object == nullptr) continue;
            worker.judged_before[i] += object->steps_judged();
            object = active_[i].entry->make(active_[i].parameters);
        }
        // What is found in the next one is told again.
        for (const auto& [key, finding] : index_)
            if (std::get<1>(key) == id && tells_trainings_apart(std::get<0>(key)))
                clear(std::get<0>(key), id, std::get<2>(key));
        worker.began = worker.next_steps;
        worker.training = number;
    }

    static void add_judged(Judged& judged, const rules::Rule& object) {
        judged.steps += object.steps_judged();
        if (judged.why_not.empty()) judged.why_not = object.why_not_judged();
    }

    // Every object of every rule, once.
    template <typename Question>
    void ask_all(const Question& question) {
        for (auto place = workers_.begin(); place != workers_.end(); ++place)
            for (std::size_t i = 0; i < active_.size(); ++i)
                if (active_[i].of_all == nullptr || place == workers_.begin())
                    ask(place->first, place->second, i, question);
    }

    // Those that are there before any worker is.
    template <typename Question>
    void ask_those_of_all(const Question& question) {
        Worker nobody;
        for (std::size_t i = 0; i < active_.size(); ++i)
            if (active_[i].of_all != nullptr) ask(0, nobody, i, question);
    }

    // The one boundary at which an exception of a rule ends: it costs that rule, not the run.
    template <typename Question>
    void ask(model::WorkerId id, Worker& worker, std::size_t rule, Question&& question) {
        std::unique_ptr<rules::Rule>& object =
            active_[rule].entry->sees_all_workers ? active_[rule].of_all : worker.rules[rule];
        if (!active_[rule].broken.empty() || object == nullptr) return;
        Sink sink(*this, id, worker, rule);
        std::string why;
        has_too_many_ = false;
        try {
            question(*object, sink);
            why = object->failure();
            if (why.empty() && has_too_many_)
                why = base::format("it fires under ever new keys: more than {}", kMostKeys);
        } catch (const std::exception& error) {
            why = base::format("internal error: {}", error.what());
        }
        if (why.empty()) return;
        object.reset();
        active_[rule].broken = std::move(why);
        if (failure_listener) failure_listener(active_[rule].name, active_[rule].broken);
    }

    void fire(std::size_t rule, model::WorkerId id, const Worker& worker, model::Finding finding) {
        finding.rule = active_[rule].name;
        if (finding.kind.empty()) finding.kind = active_[rule].entry->info->name;
        // A rule that sees all workers says which one it is, and at which of the steps that they all took.
        const bool is_of_all = active_[rule].of_all != nullptr;
        const model::WorkerId asked = id;  // by whose step it has its place among others
        if (is_of_all) id = finding.worker;
        finding.worker = id;
        const auto [place, is_new] = index_.try_emplace(Key(rule, id, finding.key), findings_.size());
        // Findings are kept for ever, so a rule that makes a new one at each step must come to an end.
        if (is_new && ++keys_[{rule, id}] > kMostKeys) {
            index_.erase(place);
            has_too_many_ = true;
            return;
        }
        const std::size_t number = place->second;
        if (is_new) {
            findings_.emplace_back();
            traces_.emplace_back();
        }
        model::Finding& known = findings_[number];
        const bool is_first = is_new || is_dropped(known);
        if (tells_trainings_apart(rule)) count_in_run(finding, worker, is_first ? worker.mode : known.mode);
        // A finding counts in the steps of one mode, that in which it first fired.
        if (!is_of_all) {
            finding.mode = is_first ? worker.mode : known.mode;
            finding.last_step = worker.last_step(finding.mode);
        }
        finding.step = finding.last_step;
        finding.first_step = std::min(finding.first_step, finding.last_step);
        finding.times = 0;
        const bool begins = is_first || known.state == model::FindingState::kResolved;
        const bool is_elsewhere = finding.layer != known.layer || finding.tensor != known.tensor;
        if (begins || is_elsewhere || known.sources.empty())
            finding.sources = diagnose::source_lines(finding.kind, finding, worker.meta);
        else finding.sources = known.sources;
        if (!is_first) {
            // The rule says what is the matter; the engine, since when.
            finding.first_step = std::min(finding.first_step, known.first_step);
            finding.step = known.step;
            finding.severity = std::max(finding.severity, known.severity);
            finding.places = std::max(finding.places, known.places);
            finding.times = known.times;
        }
        // What is said when no step comes, or of the whole run, has no later step to wait for.
        const bool waits = phase_ == Phase::kStep && !active_[rule].hold.is_none();
        const bool waited = !begins && known.state == model::FindingState::kPending;
        const bool fires = begins ? !waits : waited && phase_ != Phase::kStep;
        if (fires) finding.state = model::FindingState::kFiring;
        else finding.state = begins ? model::FindingState::kPending : known.state;
        if (fires) ++finding.times;
        if (fires && waited && finding.times == 1) finding.step = finding.last_step;
        known = std::move(finding);
        ++traces_[number].changes;
        if (is_first || (fires && known.times == 1)) traces_[number].moment = {steps_, phase_, asked, rule};
        if (fires && waited)
            std::erase_if(waiting_, [&](const Waiting& each) { return each.finding == number; });
        if (!begins && !fires) return;
        if (begins && waits) {
            const model::WorkerId counted = workers_.contains(id) ? id : asked;
            const Worker& whose = workers_.at(counted);
            waiting_.push_back({number, rule, counted, whose.last_step(known.mode), whose.wall_nanos});
        }
        if (listener) listener(known);
    }

    [[nodiscard]] bool tells_trainings_apart(std::size_t rule) const {
        return !active_[rule].entry->sees_all_workers && !active_[rule].entry->outlives_trainings;
    }

    // A rule counts the steps of the training that it is shown.
    static void count_in_run(model::Finding& finding, const Worker& worker, model::Mode mode) {
        const model::StepIndex began = worker.began[static_cast<std::size_t>(mode)];
        if (__builtin_add_overflow(finding.first_step, began, &finding.first_step))
            finding.first_step = UINT64_MAX;
        if (worker.training <= 1 || finding.message.find("step") == std::string::npos) return;
        finding.message += base::format(
            " (Steps in this text are counted from step {}, where training {:.0f} of the process began.)",
            worker.began[static_cast<std::size_t>(model::Mode::kTrain)], worker.training);
    }

    // Those whose fault has lasted by now, this step of the worker included: nobody cleared it.
    void let_fire(model::WorkerId id, const Worker& worker) {
        std::vector<Waiting> still;
        for (const Waiting& each : waiting_) {
            const Active& rule = active_[each.rule];
            model::Finding& finding = findings_[each.finding];
            const model::StepIndex last = worker.last_step(finding.mode);
            const bool is_asked = each.worker == id && finding.mode == worker.mode && rule.broken.empty();
            const bool has_lasted = rule.hold.nanos > 0
                                        ? worker.wall_nanos - each.wall_nanos >= rule.hold.nanos
                                        : last >= each.step && last - each.step >= rule.hold.steps;
            if (!is_asked || !has_lasted) {
                still.push_back(each);
                continue;
            }
            finding.state = model::FindingState::kFiring;
            if (++finding.times == 1) {
                finding.step = last;
                traces_[each.finding].moment = {steps_, phase_, id, each.rule};
            }
            ++traces_[each.finding].changes;
            if (listener) listener(finding);
        }
        waiting_ = std::move(still);
    }

    void clear(std::size_t rule, model::WorkerId id, std::string_view key) {
        const auto place = index_.find(Key(rule, id, std::string(key)));
        if (place == index_.end()) return;
        model::Finding& known = findings_[place->second];
        if (known.state == model::FindingState::kResolved) return;
        std::erase_if(waiting_, [&](const Waiting& each) { return each.finding == place->second; });
        known.state = model::FindingState::kResolved;
        ++traces_[place->second].changes;
        if (listener) listener(known);
    }

    void take_back(std::size_t rule, model::WorkerId id, const model::Finding& note) {
        const auto place = index_.find(Key(rule, id, note.key));
        if (place == index_.end()) return;
        model::Finding& known = findings_[place->second];
        if (known.times > 0) {
            known.severity = model::Severity::kInfo;
            known.message = note.message;
            known.fix = note.fix;
            known.state = model::FindingState::kFiring;  // told again, also where it was over
        }
        clear(rule, id, note.key);
    }

    [[nodiscard]] model::RuleOutcome outcome_of(std::size_t rule) const {
        const Active& active = active_[rule];
        model::RuleOutcome outcome;
        outcome.rule = active.name;
        if (!active.broken.empty()) {
            outcome.reason = active.broken;
            return outcome;
        }
        Judged judged;
        if (active.of_all != nullptr) add_judged(judged, *active.of_all);
        for (const auto& [id, worker] : workers_) {
            if (worker.rules[rule] != nullptr) add_judged(judged, *worker.rules[rule]);
            if (rule < worker.judged_before.size()) judged.steps += worker.judged_before[rule];
        }
        outcome.steps_judged = judged.steps;
        outcome.reason = judged.why_not;
        const bool fired = std::any_of(findings_.begin(), findings_.end(), [&](const model::Finding& f) {
            return f.rule == outcome.rule && f.times > 0;
        });
        if (fired) outcome.state = model::CheckState::kFired;
        else if (outcome.steps_judged > 0) outcome.state = model::CheckState::kClean;
        if (outcome.state != model::CheckState::kNotChecked) outcome.reason.clear();
        else if (workers_.empty()) outcome.reason = "no step was recorded";
        return outcome;
    }

    std::vector<Active> active_;
    std::map<model::WorkerId, Worker> workers_;
    std::vector<model::Finding> findings_;
    std::vector<Trace> traces_;     // as `findings_`
    std::vector<Waiting> waiting_;  // for the pending ones of them
    std::map<Key, std::size_t> index_;
    std::map<std::pair<std::size_t, model::WorkerId>, std::size_t> keys_;  // how many of each rule
    bool has_too_many_ = false;                                            // the rule that is asked
    model::StepRecord scratch_;  // a step without what rules are not shown
    std::uint64_t steps_ = 0;
    Phase phase_ = Phase::kStep;
    bool ended_ = false;
};

Result<std::unique_ptr<Engine>> Engine::make(const std::vector<rules::RuleChoice>& choices,
                                             const std::vector<rules::RuleEntry>& known) {
    std::vector<Active> active;
    for (const rules::RuleChoice& choice : choices) {
        const auto chosen = std::find_if(known.begin(), known.end(), [&](const rules::RuleEntry& candidate) {
            return candidate.info->name == model::rule_of(choice.name);
        });
        // For its message: which name is near.
        if (chosen == known.end()) return rules::find_rule(choice.name).status();
        const rules::RuleEntry* entry = &*chosen;
        TRAINDBG_ASSIGN_OR_RETURN(rules::Parameters parameters,
                                  rules::complete_parameters(*entry->info, choice.parameters));
        const auto same = std::find_if(active.begin(), active.end(),
                                       [&](const Active& other) { return other.name == choice.name; });
        if (same != active.end()) {
            return Status(base::Code::kInvalidArgument,
                          "rule " + choice.name + ": chosen twice; give all of its parameters at once");
        }
        TRAINDBG_ASSIGN_OR_RETURN(const rules::Hold hold, rules::hold_of(*entry->info, choice.parameters));
        active.push_back({entry, choice.name, std::move(parameters), hold, {}});
    }
    return std::unique_ptr<Engine>(new Engine(std::make_unique<Impl>(std::move(active))));
}

Engine::Engine(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Engine::~Engine() = default;

void Engine::set_listener(Listener listener) { impl_->listener = std::move(listener); }
void Engine::set_failure_listener(FailureListener listener) { impl_->failure_listener = std::move(listener); }
void Engine::on_begin(std::int64_t wall_nanos) { impl_->on_begin(wall_nanos); }
void Engine::on_step(const model::StepView& step) { impl_->on_step(step); }
void Engine::on_time(std::int64_t wall_nanos) { impl_->on_time(wall_nanos); }
void Engine::on_end() { impl_->on_end(); }
model::Verdict Engine::verdict() const { return impl_->verdict(); }
std::uint64_t Engine::steps_judged() const { return impl_->steps(); }
const std::vector<model::Finding>& Engine::findings() const noexcept { return impl_->findings(); }
const std::vector<Engine::Trace>& Engine::traces() const noexcept { return impl_->traces(); }
std::vector<model::RuleOutcome> Engine::outcomes() const { return impl_->outcomes(); }
const model::WorkerMeta& Engine::meta() const noexcept { return impl_->meta(); }

Status judge(model::StepSource& source, Judge& engine, const std::function<void()>& after_step) {
    constexpr auto kPatience = std::chrono::milliseconds(200);
    while (true) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::optional<model::StepView> step, source.next(kPatience));
        if (step) engine.on_step(*step);
        else if (source.ended()) break;
        if (after_step) after_step();
    }
    engine.on_end();
    return Status::ok();
}

}  // namespace traindbg::engine
