// What a custom rule is shown of a step: what its `needs` name, and nothing else.
//
// So what a rule finds does not depend on what other rules had captured beside. Of that, it is shown all that
// was recorded, at whichever steps.
//
// Lifetime: a shown step borrows from the view that it was made of. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "traindbg/model/requirement.h"
#include "traindbg/model/step_source.h"

namespace traindbg::extend {

// What a step has of one tensor; null where it was not asked for or is not there.
struct ShownTensor {
    const model::TensorInfo* info = nullptr;
    const model::TensorSample* sample = nullptr;
    bool has_statistics = false;  // of `sample`
    bool has_units = false;       // of `sample`
    const model::ScalarSample* scalar = nullptr;
    const model::ClassCounts* classes = nullptr;
    const model::Histogram* histogram = nullptr;
    const model::ChannelStatistics* channels = nullptr;
    const model::Digest* digest = nullptr;
    const model::RawTensor* raw = nullptr;

    // A set of model::What.
    [[nodiscard]] model::What what() const noexcept;
};

struct ShownStep {
    model::StepView view;
    std::vector<ShownTensor> tensors;  // by id

    [[nodiscard]] bool empty() const noexcept { return tensors.empty(); }
};

// Of one worker: ids are remembered.
class StepFilter {
  public:
    // `everything`: statistics, numbers and whole tensors of all that was recorded, whatever `needs` say.
    explicit StepFilter(std::vector<model::Requirement> needs, bool everything = false);

    // Borrowed until the next call.
    [[nodiscard]] const ShownStep& show(const model::StepView& view);

  private:
    [[nodiscard]] model::What wanted(const model::StepView& view, model::TensorId id);
    ShownTensor* place(const model::StepView& view, model::TensorId id);

    std::vector<model::Requirement> needs_;
    bool everything_;
    // By mode and id: what is wanted of it, and whether that is known.
    std::vector<std::vector<std::uint8_t>> wanted_;
    std::vector<std::uint32_t> places_;  // by id: where it is in `step_.tensors`, and 1; 0: it is not
    ShownStep step_;
};

}  // namespace traindbg::extend
