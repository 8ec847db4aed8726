// A training that has learned something and stands still far from fitting its own data: whether it is one,
// and what shows it. Asked by `underfit`, by `plateau`, which leaves such trainings to it, and by rules that
// know a reason.
//
// Thread-safety: one thread. Cost: a few microseconds a step; memory does not grow with the run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/evaluation_loss.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/neighbours.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {

// The losses of training and evaluation, what loss functions are given, learning rates, neighbours.
[[nodiscard]] std::vector<model::Requirement> far_from_fit_requirements(std::string_view rule);

class FarFromFit {
  public:
    struct Limits {
        std::uint64_t min_steps = 300;  // with a loss before it judges
        double share = 0.5;             // of the loss of the best constant answer, that is far
        double share_told = 0.3;        // the same where the inputs are known to tell more
        double alike = 0.2;             // difference of labels between nearest inputs, that is small
        double accuracy = 0.9;          // of training, where labels are counted: above, it fits
        double gap = 0.25;              // between training and evaluation, as a share, that counts as none
    };
    struct Found {
        model::StepIndex since = 0;  // the last third of the training begins
        double level = 0, constant = 0;
        double share = 0;                  // the one of the other
        std::optional<double> accuracy;    // over the last third, in training mode
        std::optional<double> evaluation;  // the loss of the last one, of the same function
        std::optional<double> unlike;      // how far labels of nearest inputs differ (`Neighbours`)
        // More is to be had of these inputs. An evaluation is as bad, so it is no matter of dropout or
        // augmentation; nearest inputs differ in their labels by less than `alike` and a third of what is
        // left; of labels that are counted the training misses more than three times as many as nearest
        // inputs differ in; others are no probabilities and not weighted, whose least loss is not known.
        bool is_certain = false;
    };

    explicit FarFromFit(Limits limits) : limits_(limits) {}
    FarFromFit() : FarFromFit(Limits()) {}

    // Takes a step of any mode.
    void observe(const model::StepView& step);
    // The run is over; what was evaluated last counts, too.
    void end() { evaluation_.end(); }
    // What a run that is over is like; nothing where it fits, still falls, or cannot be judged.
    [[nodiscard]] std::optional<Found> found() const;
    // Steps with a loss, where it is known what the best constant answer gives; else 0.
    [[nodiscard]] std::uint64_t count() const;
    [[nodiscard]] const TrainingLoss& loss() const noexcept { return guessing_.loss(); }
    // What it looks at, for rules that ask more of these.
    [[nodiscard]] const Guessing& guessing() const noexcept { return guessing_; }
    [[nodiscard]] const Neighbours& neighbours() const noexcept { return neighbours_; }
    [[nodiscard]] const LearningRates& rates() const noexcept { return rates_; }

  private:
    void count_hits(const model::StepView& step);
    [[nodiscard]] bool is_certain(const Found& found) const;
    [[nodiscard]] bool stands_still() const;
    [[nodiscard]] bool has_rate() const;

    Limits limits_;
    Guessing guessing_;
    EvaluationLoss evaluation_;
    Neighbours neighbours_;
    LearningRates rates_;
    // Side by side: of the same steps.
    Blocks steps_, learning_rates_;
    Blocks accuracies_;  // of batches whose labels were counted
    bool is_weighted_ = false;
};

}  // namespace traindbg::rules
