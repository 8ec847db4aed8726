// One tensor of a STEP, without the other tensors: for who asks for one number over all steps of a log.
//
// Gives what `decode_step` gives of that tensor. A payload that is damaged in what has to be looked at is
// kDataLoss; what belongs to other tensors is passed over and not judged.
//
// Thread-safety: free functions. Cost: some tens of nanoseconds, and one more for each tensor of the step.
#pragma once

#include <cstdint>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/model/step_record.h"
#include "traindbg/model/step_source.h"

namespace traindbg::format {

enum class SampleParts : std::uint8_t {
    kMoments,  // min to l2; all else of the sample stays as it was
    kAll,
};

// False: the step has no statistics of it, or nobody described it. `out` is overwritten when it is true.
[[nodiscard]] base::Result<bool> decode_sample_of(base::ByteSpan payload, const model::TensorTable& table,
                                                  model::TensorId tensor, SampleParts parts,
                                                  model::TensorSample& out);
// The same of a loss or a metric.
[[nodiscard]] base::Result<bool> decode_scalar_of(base::ByteSpan payload, const model::TensorTable& table,
                                                  model::TensorId tensor, double& out);

}  // namespace traindbg::format
