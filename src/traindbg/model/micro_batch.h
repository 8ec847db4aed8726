// Which tensors of a step belong to its second micro-batch or a later one.
//
// With gradient accumulation several forward and backward passes share one optimizer step. Where all of them
// are captured (MicroBatches::kAll), the first one's tensors have the names that they always have, and those
// of the n-th the same with "@n" at the end. Whoever judges a step by its tensors looks at the first one's:
// there are as many others as the user wants, and none of them is a series of its own.
#pragma once

#include "traindbg/model/step_record.h"
#include "traindbg/model/step_source.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::model {

[[nodiscard]] bool is_of_later_micro_batch(const TensorInfo& info) noexcept;

// The step without them: `view` itself where there are none, else one whose record is put into `scratch`.
[[nodiscard]] StepView of_first_micro_batch(const StepView& view, StepRecord& scratch);

}  // namespace traindbg::model
