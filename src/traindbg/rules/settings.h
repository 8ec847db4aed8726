// The training's own settings, in the words of advice: "lower the learning rate from 5 to about 0.5".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "traindbg/model/run_meta.h"

namespace traindbg::rules {

// A setting of the first optimizer: "lr", "momentum", ...
[[nodiscard]] std::optional<double> optimizer_setting(const model::WorkerMeta& meta, std::string_view name);
// Plain gradient descent: the update is the learning rate times the gradient.
[[nodiscard]] bool updates_follow_gradients(const model::WorkerMeta& meta);
// The first optimizer goes uphill: its loss is a score (maximize=True).
[[nodiscard]] bool is_to_rise(const model::WorkerMeta& meta);
// One significant digit, 1, 2 or 5: what a person would try next.
[[nodiscard]] double round_for_people(double value);
// "lower the learning rate from 5 to about 0.5 or less", with or without the number it has now.
[[nodiscard]] std::string lower_learning_rate(const model::WorkerMeta& meta, double factor);
// "Lower ..." for "lower ...", to begin a sentence.
[[nodiscard]] std::string capitalised(std::string text);
// The part of a tensor's name behind its prefix: "fc1.weight" of "gradient/fc1.weight".
[[nodiscard]] std::string_view place_of(std::string_view tensor_name) noexcept;
// The same for a sentence: "fc1.weight", but "layer 6" of "activation/6".
[[nodiscard]] std::string place_in_words(std::string_view tensor_name);

}  // namespace traindbg::rules
