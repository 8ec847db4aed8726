#include "traindbg/rules/settings.h"

#include <cmath>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::rules {

std::optional<double> optimizer_setting(const model::WorkerMeta& meta, std::string_view name) {
    if (meta.optimizers.empty()) return std::nullopt;
    for (const auto& [key, value] : meta.optimizers.front().settings)
        if (key == name) return value;
    return std::nullopt;
}

bool updates_follow_gradients(const model::WorkerMeta& meta) {
    return !meta.optimizers.empty() && meta.optimizers.front().type == "SGD";
}

bool is_to_rise(const model::WorkerMeta& meta) {
    return optimizer_setting(meta, "maximize").value_or(0) != 0;
}

double round_for_people(double value) {
    if (!(value > 0) || !std::isfinite(value)) return value;
    const double power = std::pow(10.0, std::floor(std::log10(value) + 1e-9));
    const double digit = value / power;
    return (digit < 1.5 ? 1 : digit < 3.5 ? 2 : digit < 7.5 ? 5 : 10) * power;
}

std::string lower_learning_rate(const model::WorkerMeta& meta, double factor) {
    const std::optional<double> rate = optimizer_setting(meta, "lr");
    if (!rate || !(*rate > 0)) return base::format("lower the learning rate {:.0f}-fold or more", 1 / factor);
    return base::format("lower the learning rate from {} to about {} or less", base::human_number(*rate),
                        base::human_number(round_for_people(*rate * factor)));
}

std::string capitalised(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
}

std::string_view place_of(std::string_view tensor_name) noexcept {
    const std::size_t slash = tensor_name.find('/');
    return slash == std::string_view::npos ? tensor_name : tensor_name.substr(slash + 1);
}

std::string place_in_words(std::string_view tensor_name) {
    const std::string_view place = place_of(tensor_name);
    const bool bare = !place.empty() && place.find_first_not_of("0123456789.") == std::string_view::npos;
    return (bare ? "layer " : "") + std::string(place);
}

}  // namespace traindbg::rules
