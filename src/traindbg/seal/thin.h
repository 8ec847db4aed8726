// Takes steps out of a sealed part. Private to `seal`.
#pragma once

#include <cstdint>
#include <functional>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/model/step.h"

namespace traindbg::seal {

// The sealed part `segment` with those steps alone for which `keeps` gives true; events, descriptions and
// totals stay. kDataLoss when it is damaged anywhere, kUnsupported when it holds what this version does not
// know: then it is better kept as it is. `steps_removed` may be null. Memory: the steps that stay, decoded.
[[nodiscard]] base::Result<base::ByteBuffer> thin_segment(
    base::ByteSpan segment, const std::function<bool(model::Mode mode, model::StepIndex step)>& keeps,
    std::uint64_t* steps_removed);

}  // namespace traindbg::seal
