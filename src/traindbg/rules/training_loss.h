// The loss of a training, as rules see it: where it started, where it is, what guessing would give.
//
// "Does it learn?" is the first question of almost every rule: an oddity in a training that learns
// is a note, the same oddity in one that does not is a fault. This answers it, in terms of the
// training's own start and noise, and of the base rate where the labels' counts tell it.
//
// Thread-safety: one thread. Cost: under a microsecond a step; memory does not grow with the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/robust.h"

namespace traindbg::rules {

// Every rule that asks "does it learn?" needs these: the loss at every step, the classes at some.
[[nodiscard]] std::vector<model::Requirement> loss_requirements(std::string_view rule);

// Whether it is a loss of the optimizer that drives; not that of another one or of a later micro-batch
// ("loss@generator"), nor a second call of a function in a pass ("loss/mse_loss#2").
[[nodiscard]] bool is_first_loss(const model::TensorInfo& info);

class TrainingLoss {
  public:
    // Takes the loss of a TRAIN step: what a classification loss function returned where labels were
    // counted, else what `backward()` was called on. False when the step has no finite loss. Where another
    // training begins in the same process, all begins anew.
    bool observe(const model::StepView& step);
    // The weights are what they were at the start, once more: of the losses so far none counts any more. What
    // is known of the loss itself, and of the labels, stays.
    void begin_anew();

    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] const std::string& tensor() const noexcept { return name_; }
    // A loss function of the framework, or a squared or absolute error that is written out, or what a
    // function gave for each sample and the loop made one number of, whose value falls when the model learns.
    // Other losses made by hand (policy gradients, critics) need not fall.
    [[nodiscard]] bool is_known_function() const noexcept { return known_function_; }
    // It is the sum, made by hand, of what several loss functions returned: a term may begin to count, or to
    // matter, only when another one has been learned.
    [[nodiscard]] bool is_sum_of_several() const noexcept { return sum_of_several_; }
    // The first loss or the median of the first five, whichever is less: a training that blows up at
    // once began at its first loss.
    [[nodiscard]] double start() const noexcept { return start_; }
    [[nodiscard]] double first() const noexcept { return first_.empty() ? 0 : first_.front(); }
    [[nodiscard]] double start_top() const noexcept { return top_; }  // largest of the first five
    // The first losses are far apart without order, some above and some below the first one, as where a few
    // samples decide: then `start` is a matter of chance.
    [[nodiscard]] bool has_vague_start() const;
    [[nodiscard]] double highest() const noexcept { return highest_; }  // over the whole run
    [[nodiscard]] model::StepIndex highest_step() const noexcept { return highest_step_; }
    // How many steps after the first loss of the training.
    [[nodiscard]] model::StepIndex steps_to_highest() const noexcept { return highest_step_ - first_step_; }
    [[nodiscard]] double level() const;  // median of the last ten
    [[nodiscard]] double noise() const;  // of single values, now
    [[nodiscard]] const Recent& recent() const noexcept { return recent_; }
    [[nodiscard]] const Blocks& blocks() const noexcept { return blocks_; }
    // The loss of a model that knows only how frequent each class is: the entropy of the labels. ln C
    // for C classes of one size. Nothing for other losses, or for one that is summed over the batch.
    [[nodiscard]] std::optional<double> base_rate() const;
    // The entropy of the labels alone, and the labels of the last batch counted.
    [[nodiscard]] std::optional<double> label_entropy() const;
    // Of one loss function, that the loss is the sum of: of the steps of a series, say.
    [[nodiscard]] double calls() const noexcept { return calls_; }
    [[nodiscard]] double labels_per_batch() const noexcept { return labels_per_batch_; }
    // How many classes have had a label.
    [[nodiscard]] std::size_t classes() const;
    // The loss now is clearly below what it was at the start and below the base rate.
    [[nodiscard]] bool has_learned() const;
    // It has also come far: more than 40 % below the base rate, or below its start where there is none.
    [[nodiscard]] bool has_learned_much() const;
    // Several optimizers play against or beside each other (`Game`): their losses need not fall.
    [[nodiscard]] bool is_game() const noexcept { return game_.is_on(); }

  private:
    // Of the first step of another training in the same process, whose loss function was not heard.
    struct EarlyLoss {
        double value = 0;
        model::StepIndex step = 0;
    };

    [[nodiscard]] static double value_of(const model::StepView& step, model::TensorId tensor);
    void choose(const model::StepView& step);
    void take_early(const model::StepView& step);
    void look_for_classes(const model::StepView& step);
    void add(double value, model::StepIndex step);
    void look_for_function(const model::StepView& step);

    bool is_another_ = false;  // than the first training of the process
    std::optional<EarlyLoss> early_;
    bool chosen_ = false;
    bool known_function_ = false;
    int reduced_later_ = 0;  // looks that show it; -1: one did not
    Game game_;
    double calls_ = 1;  // of one loss function, that the loss is made of
    bool sum_of_several_ = false;
    std::string name_;
    model::TensorId loss_ = 0;
    std::optional<model::TensorId> classes_;
    std::vector<double> labels_;  // per class, over the run
    double labels_per_batch_ = 0;
    std::vector<double> first_;
    std::uint64_t count_ = 0;
    double start_ = 0, top_ = 0, highest_ = 0;
    model::StepIndex first_step_ = 0, highest_step_ = 0;
    Recent recent_{64};
    Blocks blocks_;
};

}  // namespace traindbg::rules
