// What was taken of a step that has not ended. Private to `capture`.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "traindbg/model/step_record.h"
#include "traindbg/write/run_writer.h"
#include "traindbg/write/whole_tensor.h"

namespace traindbg::capture {

struct StepUnderWay {
    model::StepRecord record;
    std::vector<write::WholeTensor> tensors;
    std::uint64_t tensors_left_out = 0;  // whole ones, for which there was no room
    std::uint64_t channels = 0;          // of record.channels together

    [[nodiscard]] bool empty() const noexcept {
        return record.empty() && tensors.empty() && tensors_left_out == 0;
    }

    // Hands it over; what comes next is empty, and most often of the same size.
    void hand_to(write::RunWriter& writer) {
        const std::size_t samples = record.tensors.size();
        const std::size_t scalars = record.scalars.size();
        model::StepRecord finished = std::exchange(record, writer.recycled());
        writer.append(std::move(finished), std::exchange(tensors, {}), std::exchange(tensors_left_out, 0));
        channels = 0;
        record.tensors.reserve(samples);
        record.scalars.reserve(scalars);
    }
};

}  // namespace traindbg::capture
