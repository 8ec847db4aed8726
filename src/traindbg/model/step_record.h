// Everything that one worker recorded about one step. Capture builds it, the store keeps it, rules
// and reports read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "traindbg/model/channel_statistics.h"
#include "traindbg/model/digest.h"
#include "traindbg/model/histogram.h"
#include "traindbg/model/statistics.h"
#include "traindbg/model/step.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::model {

struct TensorSample {
    TensorId tensor = 0;
    Statistics statistics;
    UnitStatistics units;  // units.units == 0: not taken

    friend bool operator==(const TensorSample&, const TensorSample&) = default;
};

// One number: a loss, a metric, a learning rate.
struct ScalarSample {
    TensorId tensor = 0;
    double value = 0;

    friend bool operator==(const ScalarSample&, const ScalarSample&) = default;
};

struct ClassSample {
    TensorId tensor = 0;
    ClassCounts counts;

    friend bool operator==(const ClassSample&, const ClassSample&) = default;
};

// A whole tensor, copied, row-major.
struct RawTensor {
    TensorId tensor = 0;
    tensor::DType dtype = tensor::DType::kUnknown;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;

    friend bool operator==(const RawTensor&, const RawTensor&) = default;
};

struct StepRecord {
    Mode mode = Mode::kTrain;
    StepIndex step = 0;           // of this mode
    std::uint64_t sequence = 0;   // over all modes: the order in which this worker recorded
    std::int64_t wall_nanos = 0;  // at the end of the step
    std::int64_t monotonic_nanos = 0;
    std::uint64_t step_nanos = 0;     // since the end of the step before; 0 for a worker's first
    std::uint64_t capture_nanos = 0;  // of these, spent in traindbg
    std::vector<TensorSample> tensors;
    std::vector<ScalarSample> scalars;
    std::vector<ClassSample> classes;
    std::vector<HistogramSample> histograms;
    std::vector<ChannelSample> channels;
    std::vector<DigestSample> digests;
    std::vector<RawTensor> raw;  // readers get these on request only

    [[nodiscard]] bool empty() const noexcept {
        return tensors.empty() && scalars.empty() && classes.empty() && histograms.empty() &&
               channels.empty() && digests.empty() && raw.empty();
    }
    friend bool operator==(const StepRecord&, const StepRecord&) = default;
};

}  // namespace traindbg::model
