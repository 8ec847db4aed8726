#include "traindbg/exchange/tensorboard_names.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::exchange {
namespace {

using model::Mode;
using model::Role;

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& character : out)
        if (character >= 'A' && character <= 'Z') character = static_cast<char>(character - 'A' + 'a');
    return out;
}

std::vector<std::string> split(std::string_view text, std::string_view separators) {
    std::vector<std::string> out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of(separators), text.size());
        if (end > 0) out.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr std::array<std::string_view, 5> kGradientWords = {"grad", "grads", "gradient", "gradients", "dw"};
constexpr std::array<std::string_view, 7> kWeightWords = {"weight", "weights",    "kernel",   "param",
                                                          "params", "parameters", "embedding"};
constexpr std::array<std::string_view, 2> kBiasWords = {"bias", "biases"};
constexpr std::array<std::string_view, 5> kActivationWords = {"activation", "activations", "relu", "tanh",
                                                              "sigmoid"};
constexpr std::array<std::string_view, 2> kInputWords = {"input", "inputs"};
constexpr std::array<std::string_view, 3> kOutputWords = {"output", "outputs", "logits"};
// First or last parts of a tag that only say what kind of thing it is.
constexpr std::array<std::string_view, 18> kLabels = {
    "grad",   "grads",   "gradient",   "gradients", "weight",      "weights",
    "param",  "params",  "parameters", "biases",    "activations", "activation",
    "inputs", "outputs", "bias",       "output",    "histogram",   "histograms"};

std::optional<Role> role_of_words(const std::vector<std::string>& words) {
    const auto any = [&](const auto& list) {
        return std::any_of(words.begin(), words.end(),
                           [&](const std::string& word) { return is_one_of(word, list); });
    };
    if (any(kGradientWords)) return Role::kGradient;
    if (!words.empty() && is_one_of(words.back(), kBiasWords)) return Role::kBias;
    if (any(kActivationWords)) return Role::kActivation;
    if (any(kWeightWords)) return Role::kWeight;
    if (any(kInputWords)) return Role::kInput;
    if (any(kOutputWords)) return Role::kOutput;
    return std::nullopt;
}

model::ActivationKind activation_of(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
        if (word == "relu") return model::ActivationKind::kRelu;
        if (word == "tanh") return model::ActivationKind::kTanh;
        if (word == "sigmoid") return model::ActivationKind::kSigmoid;
    }
    return model::ActivationKind::kNone;
}

bool is_loss(std::string_view name) {
    const std::vector<std::string> words = split(lower(name), "/._- ");
    bool found = false;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "scale" || words[i] == "scaler") return false;  // the factor of mixed precision
        if (words[i].ends_with("loss") || words[i] == "losses" || words[i] == "nll" ||
            words[i] == "crossentropy" ||
            (words[i] == "cross" && i + 1 < words.size() && words[i + 1] == "entropy"))
            found = true;
    }
    return found;
}

// Takes a mode out of a part such as "val_loss" or "loss-train"; what is left may be empty.
std::optional<Mode> take_mode(std::string& part) {
    if (const auto whole = mode_of_word(part)) {
        part.clear();
        return whole;
    }
    const std::size_t first = part.find_first_of("_- ");
    if (first == std::string::npos) return std::nullopt;
    if (const auto mode = mode_of_word(part.substr(0, first))) {
        part.erase(0, first + 1);
        return mode;
    }
    const std::size_t last = part.find_last_of("_- ");
    if (const auto mode = mode_of_word(part.substr(last + 1))) {
        part.resize(last);
        return mode;
    }
    return std::nullopt;
}

std::string joined(const std::vector<std::string>& parts) { return base::join(parts, "/"); }

}  // namespace

std::optional<Mode> mode_of_word(std::string_view word) {
    const std::string text = lower(word);
    constexpr std::array<std::string_view, 2> kTrain = {"train", "training"};
    constexpr std::array<std::string_view, 7> kEval = {"val",        "valid", "validation", "eval",
                                                       "evaluation", "test",  "dev"};
    if (is_one_of(text, kTrain)) return Mode::kTrain;
    if (is_one_of(text, kEval)) return Mode::kEval;
    if (text == "predict") return Mode::kPredict;
    if (text == "global") return Mode::kGlobal;
    return std::nullopt;
}

SubRun parse_sub_run(std::string_view relative) {
    SubRun out;
    std::vector<std::string> rest;
    for (std::string& part : split(relative, "/")) {
        if (part == ".") continue;
        if (const auto mode = mode_of_word(part); mode && !out.mode) {
            out.mode = mode;
            continue;
        }
        bool is_worker = false;
        for (const std::string_view prefix : {"worker", "rank", "w"}) {
            const std::string text = lower(part);
            if (!text.starts_with(prefix)) continue;
            std::string_view number = std::string_view(text).substr(prefix.size());
            if (number.starts_with('_') || number.starts_with('-')) number.remove_prefix(1);
            std::uint32_t value = 0;
            const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
            if (number.empty() || error != std::errc() || end != number.data() + number.size() ||
                value > 99'999)
                continue;
            out.worker = value;
            is_worker = true;
            break;
        }
        if (!is_worker) rest.push_back(std::move(part));
    }
    out.name = joined(rest);
    return out;
}

TagMeaning meaning_of_scalar(std::string_view tag, std::optional<Role> chosen) {
    TagMeaning out;
    std::vector<std::string> parts = split(tag, "/");
    for (auto part = parts.begin(); part != parts.end() && !out.mode; ++part) {
        // Only the first and the last part tell: what lies between is somebody's module.
        if (part != parts.begin() && part + 1 != parts.end()) continue;
        std::string left = *part;
        const auto mode = take_mode(left);
        if (!mode || (left.empty() && parts.size() == 1)) continue;
        out.mode = mode;
        *part = left;
    }
    std::erase(parts, std::string());
    std::string name = joined(parts);
    if (name.empty()) name = "value";
    out.info.role = chosen.value_or(is_loss(name) ? Role::kLoss : Role::kMetric);
    if (out.info.role == Role::kLoss) {
        out.info.name = lower(name) == "loss" ? "loss" : name;
    } else if (out.info.role == Role::kMetric) {
        out.info.name = name.starts_with("metric/") ? name : "metric/" + name;
    } else {
        out.info.name = base::format("{}/{}", model::to_string(out.info.role), name);
    }
    return out;
}

TagMeaning meaning_of_histogram(std::string_view tag, std::optional<Role> chosen) {
    TagMeaning out;
    std::vector<std::string> parts = split(tag, "/");
    for (const bool first : {true, false}) {
        if (parts.size() < 2) break;
        const auto part = first ? parts.begin() : parts.end() - 1;
        if (const auto mode = mode_of_word(*part); mode && !out.mode) {
            out.mode = mode;
            parts.erase(part);
        }
    }
    const std::vector<std::string> words = split(lower(joined(parts)), "/._- ");
    out.info.role = chosen.value_or(role_of_words(words).value_or(Role::kOther));
    if (out.info.role == Role::kActivation) out.info.activation = activation_of(words);
    if (parts.size() > 1 && is_one_of(lower(parts.front()), kLabels)) parts.erase(parts.begin());
    if (parts.size() > 1 && is_one_of(lower(parts.back()), kLabels) &&
        !is_one_of(lower(parts.back()), kBiasWords) && lower(parts.back()) != "weight")
        parts.pop_back();
    std::string module = joined(parts);
    if (out.info.role == Role::kGradient) {
        for (const std::string_view ending : {".grad", "_grad", ".gradient", "_gradient", "-grad"})
            if (module.size() > ending.size() && lower(module).ends_with(ending)) {
                module.resize(module.size() - ending.size());
                break;
            }
    }
    out.info.module = module;
    out.info.name = base::format("{}/{}", model::to_string(out.info.role), module);
    return out;
}

void infer_shapes(std::vector<model::TensorInfo>& tensors) {
    std::map<std::string, std::int64_t> elements;  // by module, of those with one extent
    for (const model::TensorInfo& info : tensors)
        if (info.shape.size() == 1) elements[info.module] = info.shape[0];
    for (model::TensorInfo& info : tensors) {
        if (info.shape.size() != 1 || (info.role != Role::kGradient && info.role != Role::kWeight)) continue;
        const std::size_t last = info.module.find_last_of("./");
        const std::size_t begin = last == std::string::npos ? 0 : last + 1;
        const std::string name = lower(std::string_view(info.module).substr(begin));
        if (!name.starts_with("weight") && !name.starts_with("kernel")) continue;
        const std::int64_t count = info.shape[0];
        const auto bias = elements.find(info.module.substr(0, begin) + "bias");
        if (bias != elements.end() && bias->second > 0 && count % bias->second == 0) {
            if (count > bias->second) info.shape = {bias->second, count / bias->second};
            continue;
        }
        const std::vector<std::string> words = split(lower(info.module), "/._- ");
        const bool is_norm = std::any_of(words.begin(), words.end(), [](const std::string& word) {
            return word.find("norm") != std::string::npos || word == "bn" || word == "ln" ||
                   (word.size() > 2 && (word.starts_with("bn") || word.starts_with("ln")) &&
                    word.find_first_not_of("0123456789", 2) == std::string::npos);
        });
        if (!is_norm) info.shape = {1, count};
    }
}

}  // namespace traindbg::exchange
