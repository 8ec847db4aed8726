// Facts of the loop that are told of classes, or of weights, by their numbers: `loop/FACT/3`.
//
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "traindbg/model/step_source.h"

namespace traindbg::rules {

// More numbers than that are not told.
inline constexpr std::size_t kMostNumbered = 64;

// The number that is all of `digits`; nothing where it is none, or too large.
[[nodiscard]] std::optional<std::size_t> number_in(std::string_view digits);
// Puts a value into its place, and zeros in front of it where there was nothing.
void put_numbered(double value, std::size_t number, std::vector<double>& values);
// Puts all values of a fact that a step tells into their places.
void read_numbered(const model::StepView& step, std::string_view fact, std::vector<double>& values);

}  // namespace traindbg::rules
