// What the numbers in names of inputs stand for: "input/0", "input/head.1".
//
// Thread-safety: one thread. Memory: a name for each input.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "traindbg/model/step_source.h"

namespace traindbg::rules {

// Before the number of a further batch of a step: "input/0@2".
inline constexpr char kFurtherBatch = '@';

class InputNames {
  public:
    // How many inputs each model was given by the passes of a step, of either mode. They have numbers, which
    // go through lists.
    void count(const model::StepView& step);
    // Which inputs are computed by others that are trained, of the training.
    void note_computed(const model::StepView& step);

    // Whether a number stands for one input of the model, in training and evaluation: the first one does.
    [[nodiscard]] bool is_one_input(std::string_view name) const;
    // Whether it is data that the only model is given: "input/0" is, "input/head.0" need not be.
    [[nodiscard]] bool is_data(std::string_view name) const;

  private:
    static constexpr std::size_t kVarying = 0;  // number of inputs

    std::map<std::string, std::size_t, std::less<>> given_;  // inputs of each pass, by whose they are
    std::set<std::string, std::less<>> computed_;
};

}  // namespace traindbg::rules
