// What hooks tell of the training loop: one number per fact and step, under the name `loop/FACT`, or
// `loop/FACT/PLACE` where the fact has a place.
//
// A fact is told at some steps only (`loop_requirement`), and only of steps that were seen from their
// beginning. Thread-safety: one thread. Cost: linear in the step's numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/finding.h"
#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"

namespace traindbg::rules {

struct LoopFact {
    double value = 0;
    std::string_view place;   // of a module or parameter; borrowed from the step
    std::string_view tensor;  // the fact's whole name; borrowed too
};

// The fact of this name that a step tells; nothing where it does not tell it.
[[nodiscard]] std::optional<LoopFact> loop_fact(const model::StepView& step, std::string_view fact);
// The same of a fact that a step may tell of several places.
[[nodiscard]] std::vector<LoopFact> loop_facts(const model::StepView& step, std::string_view fact);
// The first steps of a mode, where most of it shows, and then few.
[[nodiscard]] model::Requirement loop_requirement(std::string_view rule,
                                                  model::Mode mode = model::Mode::kTrain);

// What positions of a sequence see: facts about the first steps' forward passes.
[[nodiscard]] std::vector<model::Requirement> sequence_requirements(std::string_view rule);
// Rows of evaluated batches, known again: facts about evaluations, and the inputs that they are told of.
[[nodiscard]] std::vector<model::Requirement> row_requirements(std::string_view rule);
// How many rows the model's first input has in this step; 0 where it was not captured.
[[nodiscard]] double rows_of_input(const model::StepView& step);

// Whether rows of the training are other ones each time, though there are few enough of them to have come
// again: something random is done to them.
class RowsChange {
  public:
    // Takes a step of either mode.
    void observe(const model::StepView& step);
    // For a finding about a training that does not learn: hardly any row came again of at least half as many
    // more as there are. Empty, or one item.
    [[nodiscard]] std::vector<model::Evidence> evidence() const;
    // How often each different row was looked at, on average; 0: not known.
    [[nodiscard]] double times() const noexcept { return known_ > 0 ? looked_at_ / known_ : 0; }

  private:
    double known_ = 0, looked_at_ = 0, of_training_ = 0;
    bool are_others_ = false;
};

// Several optimizers that play against or beside each other, each by a loss of its own, as in a GAN. Where
// one backward pass serves all of them (encoder and decoder, sparse and dense parameters), it is no game.
class Game {
  public:
    // Takes a TRAIN step.
    void observe(const model::StepView& step) {
        several_ = several_ || step.meta->optimizers.size() > 1;
        if (!several_) return;
        shared_ = shared_ || loop_fact(step, "optimizers_share_pass").has_value();
        const std::optional<LoopFact> passes = loop_fact(step, "backward_passes");
        if (!passes) return;
        passes_ = passes_ || passes->value > 1;
    }
    // Unless it is known that they share their passes, it is one.
    [[nodiscard]] bool is_on() const noexcept { return several_ && (passes_ || !shared_); }

  private:
    bool several_ = false, shared_ = false, passes_ = false;
};

// A cross-entropy that compares vectors with each other (InfoNCE, MoCo): in each row the first score is that
// of what belongs to it, so that all labels are 0, and the scores are no values that a model returned.
class Contrast {
  public:
    // Takes a TRAIN step.
    void observe(const model::StepView& step) {
        for (const model::ClassSample& sample : step.record->classes) {
            const std::vector<std::uint32_t>& labels = sample.counts.labels;
            scores_ = labels.size();
            for (std::size_t i = 1; i < labels.size(); ++i) only_first_ = only_first_ && labels[i] == 0;
        }
        for (const LoopFact& units : loop_facts(step, "output_units")) {
            has_outputs_ = true;
            const bool may_hold = scores_ > 0 && std::fmod(units.value, static_cast<double>(scores_)) == 0;
            are_returned_ = are_returned_ || may_hold;
        }
    }
    [[nodiscard]] bool is_on() const noexcept {
        return scores_ > 1 && only_first_ && has_outputs_ && !are_returned_;
    }
    // The loss of guessing.
    [[nodiscard]] double guessing() const noexcept { return std::log(static_cast<double>(scores_)); }

  private:
    std::size_t scores_ = 0;
    bool only_first_ = true, has_outputs_ = false, are_returned_ = false;
};

// A model that is asked without gradients between its steps, in training mode and for no loss: so an agent
// acts, and so values are asked for that become targets. These grow with what is learned, and the loss with
// them.
class Agent {
  public:
    // Takes a step of either mode.
    void observe(const model::StepView& step) {
        if (step.mode() == model::Mode::kEval) is_evaluated_ = true;
        if (step.mode() != model::Mode::kTrain) return;
        if (loop_fact(step, "trainings")) {  // of another model
            looks_ = asked_ = 0;
            is_taught_ = false;
        }
        is_taught_ = is_taught_ || loop_fact(step, "discounts_rewards") || loop_fact(step, "loss_has_policy");
        if (const std::optional<LoopFact> asked = loop_fact(step, "asked_without_gradients")) {
            ++looks_;
            asked_ += asked->value > 0 && !is_evaluated_ ? 1 : 0;
        }
        is_evaluated_ = false;
    }
    [[nodiscard]] bool is_on() const noexcept {
        return is_taught_ || (looks_ >= kFewest && 10 * asked_ >= 9 * looks_);
    }

    // By its text, which adds discounted rewards up, or by a loss that has log-probabilities of what was
    // chosen: its losses say little of what it learns.
    [[nodiscard]] bool is_taught() const noexcept { return is_taught_; }

  private:
    static constexpr int kFewest = 5;

    int looks_ = 0, asked_ = 0;
    bool is_evaluated_ = false;
    bool is_taught_ = false;
};

// Counts the steps in a row that show something, of those that tell it.
class InARow {
  public:
    explicit InARow(double needed) : needed_(static_cast<std::uint64_t>(needed)) {}

    void add(const model::StepView& step, bool shows) {
        ++judged_;
        if (!shows) {
            count_ = 0;
            return;
        }
        if (count_++ == 0) first_ = step.step();
    }
    [[nodiscard]] bool is_enough() const noexcept { return count_ >= needed_; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] std::uint64_t judged() const noexcept { return judged_; }
    [[nodiscard]] model::StepIndex first() const noexcept { return first_; }
    [[nodiscard]] model::Evidence evidence() const {
        return {"steps in a row", static_cast<double>(count_), "limit", static_cast<double>(needed_)};
    }

  private:
    std::uint64_t needed_;
    std::uint64_t count_ = 0, judged_ = 0;
    model::StepIndex first_ = 0;
};

// A finding about the loop, from its first step on, with the fact's place.
[[nodiscard]] model::Finding loop_finding(std::string_view key, model::Severity severity, const InARow& seen,
                                          const LoopFact& fact);
// " (enc.0.weight and 3 more)", " (enc.0.weight)", or nothing: the first of several places.
[[nodiscard]] std::string and_more(const LoopFact& fact);
// "4 modules (enc.0 and 3 more)", "1 module (enc.0)": the noun gets an s where there are several.
[[nodiscard]] std::string counted(const LoopFact& fact, std::string_view noun);
// The form of a verb or pronoun: of one, or of several.
[[nodiscard]] constexpr std::string_view form(double count, std::string_view one, std::string_view several) {
    return count == 1 ? one : several;
}

}  // namespace traindbg::rules
