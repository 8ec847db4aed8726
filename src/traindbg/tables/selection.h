// Which part of a run is wanted. The same words as on the command line and in Python.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traindbg/model/step.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::tables {

struct Selection {
    // Of names of tensors, asked once per tensor and worker; empty: every name.
    std::function<bool(std::string_view)> name{};
    std::vector<std::string> collections{};  // in any of these; empty: all
    std::optional<model::Mode> mode{};
    model::StepIndex first_step = 0;
    model::StepIndex end_step = UINT64_MAX;  // the first one that is not wanted
    std::optional<model::WorkerId> worker{};
    std::vector<std::string> statistics{};  // columns of the statistics; empty: all

    // What does not depend on a step. An empty name is never wanted.
    [[nodiscard]] bool wants(const model::TensorInfo& info) const;
    [[nodiscard]] bool wants(model::WorkerId id) const noexcept { return !worker || *worker == id; }
    [[nodiscard]] bool wants(model::Mode of, model::StepIndex step) const noexcept {
        return (!mode || *mode == of) && step >= first_step && step < end_step;
    }
};

// Remembers what a selection says of each tensor of each worker.
class TensorFilter {
  public:
    explicit TensorFilter(const Selection& selection) : selection_(&selection) {}
    [[nodiscard]] bool wants(model::WorkerId worker, const model::TensorInfo& info);

  private:
    struct Known {
        model::WorkerId worker;
        std::vector<std::int8_t> wanted;  // by id; -1: not asked yet
    };
    const Selection* selection_;
    std::vector<Known> known_;
};

}  // namespace traindbg::tables
