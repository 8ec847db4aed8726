// How an input of evaluations differs from that of the training, and how the training's changes.
//
// Thread-safety: pure functions.
#pragma once

#include "traindbg/rules/input_values.h"
#include "traindbg/rules/known_rows.h"

namespace traindbg::rules {

struct InputLimits {
    double shift = 0.7;  // difference of the means, in standard deviations of the values
    double scale = 1.8;  // ratio of the standard deviations
};

// The means or the spreads are apart, for another reason than padding or one batch that tells too little.
[[nodiscard]] bool do_inputs_differ(const InputValues& input, const InputLimits& limits,
                                    const KnownRows& rows);
// Both have zeros, one of them more, and the other values are alike. Zeros that one of them alone has, or
// next to alone, are values that a model never met.
[[nodiscard]] bool is_padding(const InputValues& input);
// One batch of a validation: the same rows are evaluated at intervals, which are no grid of coordinates, no
// noise that is drawn anew and nothing that the model makes, step by step, of noise that was kept.
[[nodiscard]] bool is_validation(const InputValues& input, const InputLimits& limits, const KnownRows& rows);
// A number by which data are split, the time of a forecast: it goes up evenly, and on in the evaluation.
[[nodiscard]] bool goes_on(const InputValues& input);
// The training began with inputs like those of the first evaluation and has others by now, batch by batch:
// something works on its own result each time that the data is read. So it may for the evaluation.
// `has_before`: whether it was so when it was looked at before.
[[nodiscard]] bool has_drifted(const InputValues& input, const InputLimits& limits, bool has_before);

}  // namespace traindbg::rules
