// Says that a model misses rare classes: in training, in evaluations, or, where none tells, at the end.
//
// Thread-safety: one thread. Cost: linear in the number of classes; memory does not grow with the run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/step_source.h"
#include "traindbg/rules/class_evaluations.h"
#include "traindbg/rules/class_tally.h"
#include "traindbg/rules/firing.h"
#include "traindbg/rules/rare_classes.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class MissedClasses {
  public:
    explicit MissedClasses(double ratio) : ratio_(ratio) {}

    // Takes a TRAIN step.
    void observe(const model::StepView& step);
    // The losses of a TRAIN step whose classes were counted.
    void observe_losses(const model::StepView& step);
    // Takes an EVAL step. `tensor`: the name of the classes that are counted; `last`: training step.
    void observe_evaluation(const model::StepView& step, std::string_view tensor, model::StepIndex last) {
        evaluations_.observe(step, tensor, last);
    }
    // What is found of each class so early, to be compared with what is found later.
    void remember(const ClassTally& tally, model::StepIndex last);

    [[nodiscard]] bool are_ignored(const ClassTally& tally, std::span<const double> weights) const {
        return !ignored_classes(tally, rarity(weights)).empty();
    }
    // One more look, and whether it shows that classes are ignored: how many in a row do.
    std::uint64_t look(bool shows) { return ignored_in_a_row_ = shows ? ignored_in_a_row_ + 1 : 0; }

    // What a finding is about, and what is known besides the counts.
    struct Context {
        std::string_view tensor;          // of the classes
        std::span<const double> weights;  // of classes in the loss
        model::StepIndex last = 0;        // training step
        bool is_game = false;
    };
    // Some samples decide in training, so that several looks in a row must show it, but for the last one.
    void judge(const ClassTally& tally, const Context& context, FindingSink& sink);
    void judge_end(const ClassTally& tally, const Context& context, FindingSink& sink);
    // The same where nothing else is wrong and no evaluation tells: by all that was seen.
    void judge_whole(const ClassTally& tally, const Context& context, FindingSink& sink);

    [[nodiscard]] bool is_firing() const noexcept { return !firing_.is_empty(); }
    [[nodiscard]] bool are_evaluated() const noexcept { return !evaluations_.labels().empty(); }

  private:
    struct Found {
        model::StepIndex step = 0;
        std::vector<double> shares;  // of each class's samples
    };

    [[nodiscard]] Rarity rarity(std::span<const double> weights) const {
        return {.ratio = ratio_, .weights = weights, .are_next = are_next_};
    }
    [[nodiscard]] bool falls_fast() const;
    void judge(const ClassTally& tally, const Context& context, std::uint64_t looks, bool may_come,
               FindingSink& sink);
    void say_training(const ClassTally& tally, const Context& context, const std::vector<std::size_t>& missed,
                      FindingSink& sink);
    void say_evaluation(const ClassTally& tally, const Context& context,
                        const std::vector<std::size_t>& missed, FindingSink& sink);

    static constexpr const char* kInTraining = "imbalance";
    static constexpr const char* kInEvaluation = "evaluation";
    static constexpr double kFallsFast = 0.88;  // of the losses before, where a class may yet be learned

    double ratio_;
    bool are_next_ = false;  // targets are an input of the model one position on
    std::uint64_t ignored_in_a_row_ = 0;
    Recent losses_{40};
    Found before_, now_;  // at a step, and at twice that step or later
    ClassEvaluations evaluations_;
    Firing firing_;
};

}  // namespace traindbg::rules
