// How the values of an input are distributed in training and in evaluation, over the run.
//
// Thread-safety: one thread; the functions are pure. Memory does not grow with the run.
#pragma once

#include <cstdint>
#include <span>

#include "traindbg/model/run_meta.h"
#include "traindbg/model/statistics.h"
#include "traindbg/model/step_record.h"
#include "traindbg/rules/robust.h"

namespace traindbg::rules {

// A floating-point input of the model whose values can be compared: numbers of tokens and categories cannot.
[[nodiscard]] bool is_compared_input(const model::TensorInfo& info, const model::Statistics& values);
[[nodiscard]] std::uint64_t values_in_row(const model::TensorInfo& info);
[[nodiscard]] double share_of_zeros(const model::Statistics& values);
// The standard deviation of a few numbers.
[[nodiscard]] double deviation_of(std::span<const double> values);
// That of values that were independent of each other, by how they change where they do: the batches of some
// steps may be of one task, and those that follow of another.
[[nodiscard]] double deviation_of_changes(std::span<const double> values);

struct InputValues {
    static constexpr std::size_t kFirst = 5;  // batches at either end of the training
    static constexpr std::uint64_t kManyValues = 5000;

    struct Side {
        model::Statistics all;
        std::uint64_t batches = 0;

        void add(const model::Statistics& values) {
            model::merge(all, values);
            ++batches;
        }
    };

    void add_training(const model::TensorInfo& info, const model::Statistics& values);
    void add_evaluation(const model::Statistics& values);

    // There are batches enough to compare. Of evaluations without a loss one batch is looked at: enough for
    // what is no matter of a few values.
    [[nodiscard]] bool is_known() const noexcept {
        return training.batches >= kFirst && (evaluation.batches >= 2 || evaluation.all.count >= kManyValues);
    }
    // What batches of the training differ by among themselves.
    [[nodiscard]] double noise_of_means() const;
    [[nodiscard]] double noise_of_stds() const;
    // Samples of the training come with this input or without it, as their zeros tell.
    [[nodiscard]] bool come_some_without() const {
        return is_blank_or_whole && deviation_of(zeros.values()) > 0;
    }

    Side training, evaluation;
    Side first;                         // batches of the training
    model::Statistics first_evaluated;  // batch
    Recent first_means{kFirst}, first_stds{kFirst};
    Recent means{64}, stds{64}, zeros{64};             // of training batches
    std::uint64_t most_values = 0, values_of_row = 0;  // of training batches
    bool is_blank_or_whole = true;                     // each sample of them, as their zeros tell
};

}  // namespace traindbg::rules
