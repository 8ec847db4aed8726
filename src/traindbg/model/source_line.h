// A line of the training's own code, and what happens there.
#pragma once

#include <cstdint>
#include <string>

namespace traindbg::model {

struct SourceLine {
    // "optimizer" (is made), "step", "backward", "loss/cross_entropy", "evaluation/cross_entropy",
    // "module/encoder.fc1" (is made), "model" (its class), "loader" (is made), "loop" (goes through it),
    // "evaluation_loader", "evaluation_loop", "clip", "schedule" (is made), "schedule_step", "eval",
    // "slope" (is taken, without a graph), "rounds" (the loop that was left early), "weights_taken" (to be
    // gone back to), "number_read" (of a tensor with a graph, and added to the loss).
    std::string what;
    std::string file;        // relative to where the training was started, if it is below
    std::uint32_t line = 0;  // from 1 on
    std::string function;    // that it stands in; empty at the top of a file

    friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

}  // namespace traindbg::model
