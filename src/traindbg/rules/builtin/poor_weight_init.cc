// Weights that start in a bad place: units that are all alike, values far too large or far too small.

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/loop_facts.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/loss_of_zeros.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kPoorWeightInit = {
    .name = "poor_weight_init",
    .title = "Poor weight initialisation",
    .summary =
        "The units of a layer start alike and stay so, or the weights start far too large or too small.",
    .when =
        "The weights start in a way that holds the training up: units alike or copied, matrices of zeros "
        "or of one constant value, or weights far too large or too small.\n"
        "- Alike (error, or a warning if the training learns all the same): before the first update and "
        "after the second, every row of a weight has the same least and largest value as the others, and "
        "so has every row of its gradient.\n"
        "- Alike, which weights: those of hidden layers, and matrices that are of no layer, such as the "
        "means of a mixture. A recurrent or attention layer may have four kinds of rows. What is of no "
        "layer may have half as many kinds as rows after the first update.\n"
        "- Copies (warning): some rows of a matrix, at least two and a twentieth of it, are alike in this "
        "way with other rows of the same matrix.\n"
        "- Zeros (error): two weight matrices that can be multiplied, of one module or of modules next to "
        "each other, and their gradients are all 0 whenever they are looked at, eight times in 40 steps or "
        "more. Biases of these modules, where there are any, do get a gradient.\n"
        "- Zeros, one matrix alone (info): such a matrix is only a note. It is a warning after 100 steps "
        "where the matrix is the table of an embedding whose rows have two or more values.\n"
        "- Constant (warning): the weights of at least half of the hidden layers start as one value other "
        "than 0, no other matrix of the same module is drawn at random, and after `patience` steps the "
        "training has not come far.\n"
        "- Too large (warning or note): the first loss is more than `loss` times that of guessing, and std "
        "· √fan_in exceeds `large` in the typical weight matrix or in the one before the loss. Where the "
        "typical one exceeds three times `large`, a first loss of 1.5 times guessing is enough.\n"
        "- Too large, severity: a warning once 20 steps have not brought the loss below guessing. Until "
        "then a note (info).\n"
        "- Loss of guessing: the entropy of the labels. For a mean squared error it is the labels' own "
        "mean square, for other distances the root of that, for a binary cross-entropy ln 2.\n"
        "- Too small (warning): std · √fan_in is below `small` in at least half of three or more matrices, "
        "and what the layers return varies less from sample to sample from one layer to the next.\n"
        "- Too small, limit: it is 0.35 where less than a thousandth of the variation of what the first "
        "layer returns is left in what the last one does, and less than a quarter from one layer to the "
        "next.\n"
        "- Too small, effect (also needed): after `patience` steps nothing is learned, or what the model "
        "returns differs from sample to sample by less than a quarter of what targets do. Looked at after "
        "25 steps already where the typical matrix is below a tenth of `small`.\n"
        "- Too small, with a loss made by hand, which need not fall: std · √fan_in is below `small` in all "
        "matrices, and below a tenth of that in the typical one, at the start and still after `patience` "
        "steps.",
    .why =
        "Units that start alike get the same gradient and stay alike for ever: the layer is as good as one "
        "unit. With weights that are too large a model is sure of nonsense, units saturate and gradients "
        "explode; with weights that are too small neither the signal nor the gradient gets through.",
    .fix =
        "Remove the initialisation by hand (PyTorch's own is sound), or use torch.nn.init.kaiming_normal_ "
        "for ReLU, xavier_uniform_ for tanh and sigmoid, and zeros for biases alone.",
    .healthy =
        "Output heads, residual branches, adapters (LoRA) and embeddings that start at zero: their gradients "
        "are not alike. A head of zeros whose loss begins to count later. Norm layers, frozen layers. Large "
        "weights whose outputs are normalised, and inputs or targets that are not normalised: the weights "
        "are not what is large then. Small weights of a training that learns.",
    .cost =
        "Extremes of each row of all weights and gradients at the first three steps and of each channel of "
        "all outputs at the first; statistics of gradients every 10 steps, of weights every 50; the loss.",
    .original = "PoorWeightInitialization",
    .source =
        "He et al., \"Delving deep into rectifiers\", ICCV 2015; Glorot, Bengio, \"Understanding the "
        "difficulty of training deep feedforward neural networks\", AISTATS 2010",
    .severity = model::Severity::kError,
    .parameters = {{"loss", "times", 4, 1.1, 1e9, "first loss, over that of guessing, that is too large"},
                   {"large", "gain", 3, 1, 1e6, "std · √fan_in above which weights are too large"},
                   {"small", "gain", 0.15, 1e-9, 1, "std · √fan_in below which weights are too small"},
                   {"patience", "steps", 50, 10, 1e9, "steps after which a training should have set off"}},
};

// Two rows of one matrix that begin with the same extremes.
struct Copy {
    std::size_t row = 0, of = 0;
    bool has_gradient = false;
};

struct Matrix {
    std::int32_t layer = -1;
    std::string name;  // of the weight
    std::string module;
    bool is_layer = false;
    std::size_t kinds = 1;  // of rows that started as one
    double gain = 0;        // std · √fan_in before the first update
    bool is_alike = true;   // wherever it was looked at
    int weight_looks = 0, gradient_looks = 0;
    bool starts_alike = false;
    bool starts_constant = false;  // one value, and not 0
    bool has_gradient = false;     // one that is not 0
    std::vector<Copy> copies;      // rows that have been alike wherever they were looked at
    std::size_t units = 0;
};

// How often weights and their gradient were all 0, with nothing else in between.
struct Zeros {
    std::string weight, module;
    std::int32_t layer = -1;
    std::vector<std::int64_t> shape;
    bool is_table = false;  // of an embedding
    std::uint64_t weight_looks = 0, gradient_looks = 0;
    model::StepIndex since = 0;
};

// Rows of numbers that are looked up; of single ones, such as the biases of users, 0 is the usual start.
bool is_table_of_vectors(const model::TensorInfo& info) {
    return info.module_type.starts_with("Embedding") && info.shape.size() == 2 && info.shape[1] > 1;
}

// One may be multiplied by the other: what one makes is as wide as what the other takes.
bool can_be_factors(const Zeros& a, const Zeros& b) {
    return a.shape[0] == b.shape[1] || a.shape[1] == b.shape[0];
}

// In one module, or in modules with no more than one between them, as an activation, or a container of one.
bool are_neighbours(const Zeros& a, const Zeros& b) {
    if (a.module == b.module) return true;
    if (a.layer >= 0 && b.layer >= 0) return std::abs(a.layer - b.layer) <= 2;
    const auto parent = [](const std::string& name) {
        const std::size_t dot = name.rfind('.');
        return dot == std::string::npos ? std::string() : name.substr(0, dot);
    };
    return parent(a.module) == parent(b.module);
}

// Every channel has the extremes of every other one, or of one of four kinds.
constexpr std::int64_t kShortestRow = 8;

constexpr std::size_t kMostKinds = 64;  // each channel is compared with one of each

// How many kinds of channels there are, one more than `most` where there are more.
std::size_t kinds_in(const model::ChannelStatistics& channels, std::size_t most) {
    const std::size_t n = channels.channels();
    double size = 0;
    for (std::size_t i = 0; i < n; ++i)
        size = std::max({size, std::abs(static_cast<double>(channels.min[i])),
                         std::abs(static_cast<double>(channels.max[i]))});
    // The same sum, added up in another order.
    const double near = 1e-5 * size;
    std::vector<std::size_t> kinds;
    for (std::size_t i = 0; i < n; ++i) {
        const bool known = std::any_of(kinds.begin(), kinds.end(), [&](std::size_t k) {
            return std::abs(channels.min[i] - channels.min[k]) <= near &&
                   std::abs(channels.max[i] - channels.max[k]) <= near;
        });
        if (known) continue;
        kinds.push_back(i);
        if (kinds.size() > most) break;
    }
    return kinds.size();
}

// The channels lie within this share of their size of each other: gradients of units that were one and came
// apart by rounding do, and gradients of some rows alone do not.
constexpr double kNearlyOne = 0.05;
bool are_nearly_one(const model::ChannelStatistics& channels) {
    const auto [low_min, high_min] = std::minmax_element(channels.min.begin(), channels.min.end());
    const auto [low_max, high_max] = std::minmax_element(channels.max.begin(), channels.max.end());
    if (low_min == channels.min.end() || low_max == channels.max.end()) return false;
    const double size = std::max(std::abs(*low_min), std::abs(*high_max));
    return *high_min - *low_min <= kNearlyOne * size && *high_max - *low_max <= kNearlyOne * size;
}

bool are_alike(const model::ChannelStatistics& channels) {
    const std::size_t n = channels.channels();
    const std::size_t most = n >= 16 && n % 4 == 0 ? 4 : n >= 12 && n % 3 == 0 ? 3 : 1;
    return n >= 2 && kinds_in(channels, most) <= most;
}

// Each row whose extremes are those of one before it, exactly: of random numbers no two are. Rows of one
// value are left out, which other findings are about, and so are short ones.
std::vector<Copy> copies_in(const model::ChannelStatistics& channels, const model::TensorInfo& info) {
    std::vector<Copy> copies;
    std::int64_t length = 1;
    for (std::size_t i = 1; i < info.shape.size(); ++i) length *= info.shape[i];
    if (length < kShortestRow || info.dtype != tensor::DType::kFloat32) return copies;
    std::map<std::pair<float, float>, std::size_t> first;
    for (std::size_t i = 0; i < channels.channels(); ++i) {
        if (channels.min[i] == channels.max[i]) continue;
        const auto [known, is_new] = first.try_emplace({channels.min[i], channels.max[i]}, i);
        if (!is_new) copies.push_back({i, known->second});
    }
    return copies;
}

// Leaves the copies that are alike here, too.
void keep_alike(std::vector<Copy>& copies, const model::ChannelStatistics& channels, bool is_gradient) {
    std::erase_if(copies, [&](Copy& copy) {
        if (copy.row >= channels.channels() || copy.of >= channels.channels()) return true;
        const double low = channels.min[copy.row], high = channels.max[copy.row];
        // The same sum, added up in another order.
        const double near = 1e-5 * std::max(std::abs(low), std::abs(high));
        if (is_gradient && near > 0) copy.has_gradient = true;
        return std::abs(low - channels.min[copy.of]) > near || std::abs(high - channels.max[copy.of]) > near;
    });
}

bool has_several_parts(std::string_view type) {
    constexpr std::array<std::string_view, 4> kParts = {"LSTM", "GRU", "RNN", "Attention"};
    return std::ranges::any_of(
        kParts, [&](std::string_view part) { return type.find(part) != std::string_view::npos; });
}

// The same without kinds.
bool are_all_one(const model::ChannelStatistics& channels) {
    const auto [low, high] = std::minmax_element(channels.min.begin(), channels.min.end());
    const auto [least, most] = std::minmax_element(channels.max.begin(), channels.max.end());
    const double size = std::max(std::abs(static_cast<double>(*low)), std::abs(static_cast<double>(*most)));
    return *high - *low <= 1e-5 * size && *most - *least <= 1e-5 * size;
}

class PoorWeightInit final : public Rule {
  public:
    explicit PoorWeightInit(const Parameters& parameters)
        : times_(parameters.at("loss")),
          large_(parameters.at("large")),
          small_(parameters.at("small")),
          patience_(static_cast<std::uint64_t>(parameters.at("patience"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        const bool has_loss = loss_.observe(step);
        const auto target = loop_fact(step, "target_deviation");
        if (target && target->value > 0 && step.step() >= 20)
            if (const auto output = loop_fact(step, "output_deviation"))
                outputs_differ_ = output->value / target->value;
        if (step.step() < kLooks) {
            look_at_channels(step);
            if (step.step() == 0) {
                look_at_sizes(step);
                of_zeros_.observe(step);
            }
        }
        if (loss_.count() >= patience_) look_at_sizes_again(step);
        if (step.step() + 1 == kLooks) {
            find_alike();
            judge_copies(sink);
        }
        if (!alike_.empty() && (step.step() + 1 == kLooks || step.step() >= 20)) judge_alike(sink);
        look_for_zeros(step, sink);
        if (!has_loss) return;
        judge_large(step, sink);
        judge_small(sink);
        judge_constant(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "the first step was not seen, with the weights as they were initialised";
    }

  private:
    static constexpr model::StepIndex kLooks = 3;
    static constexpr std::uint64_t kTinyPatience = 25;
    static constexpr std::uint64_t kZeroLooks = 8;      // of a gradient
    static constexpr model::StepIndex kZeroSteps = 40;  // from the first to the last of them
    static constexpr model::StepIndex kTableSteps = 100;
    static constexpr double kFarTooLarge = 3;     // times `large`
    static constexpr double kLost = 1e-3;         // of the first layer's spread, at the last one
    static constexpr double kShrinksFast = 0.25;  // layer by layer; PyTorch's own and a ReLU: 0.4
    static constexpr double kBelowUsual = 0.35;   // std · √fan_in; PyTorch's own: 0.58
    static constexpr double kSame = 0.25;         // of what targets differ by from sample to sample
    static constexpr const char* kAtRandom =
        "Initialise weights at random: leave PyTorch's own initialisation in place, or use "
        "torch.nn.init.kaiming_normal_(layer.weight); a constant is for biases only.";

    Matrix& matrix(const model::TensorInfo& info) {
        Matrix& one = matrices_[std::string(place_of(info.name))];
        if (info.role == model::Role::kWeight) {
            one.name = info.name;
            one.module = info.module;
            one.layer = info.layer;
            one.is_layer = is_layer(info.module_type);
        }
        return one;
    }

    void look_at_channels(const model::StepView& step) {
        for (const model::ChannelSample& sample : step.record->channels) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const bool is_weight = info.role == model::Role::kWeight;
            if ((!is_weight && info.role != model::Role::kGradient) || !is_matrix(info)) continue;
            const model::ChannelStatistics& channels = sample.channels;
            if (channels.channels() < 2) continue;
            Matrix& one = matrix(info);
            bool alike = has_several_parts(info.module_type) ? are_alike(channels) : are_all_one(channels);
            if (!alike && step.step() > 0 && one.is_alike && one.starts_alike &&
                !is_layer(info.module_type) && (is_weight || are_nearly_one(channels))) {
                // What began as one parts by rounding, which an optimizer makes larger, into some kinds.
                const std::size_t most = std::min(channels.channels() / 2, kMostKinds);
                const std::size_t kinds = kinds_in(channels, most);
                alike = kinds <= most;
                one.kinds = std::max(one.kinds, kinds);
            }
            one.is_alike = one.is_alike && alike;
            if (!is_weight || step.step() > 0) keep_alike(one.copies, channels, !is_weight);
            if (is_weight) {
                if (step.step() == 0) {
                    one.copies = copies_in(channels, info);
                    one.units = channels.channels();
                    one.starts_alike = alike;
                    one.starts_constant = alike && channels.min[0] == channels.max[0] && channels.max[0] != 0;
                }
                ++one.weight_looks;
            } else {
                ++one.gradient_looks;
                one.has_gradient = one.has_gradient ||
                                   std::any_of(channels.max.begin(), channels.max.end(),
                                               [](float value) { return value != 0; }) ||
                                   std::any_of(channels.min.begin(), channels.min.end(),
                                               [](float value) { return value != 0; });
            }
        }
    }

    // Matrices of zeros whose gradients are zero, too, as those of both factors of a product are: each is the
    // other one times something.
    void look_for_zeros(const model::StepView& step, FindingSink& sink) {
        bool any = false;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const bool is_weight = info.role == model::Role::kWeight;
            if (!is_weight && info.role != model::Role::kGradient) continue;
            const model::Statistics& s = sample.statistics;
            const bool is_zero = s.count > 0 && s.finite() == s.count && s.l2 == 0;
            if (!is_weight && info.shape.size() == 1) {
                bool& asked = asked_[info.module];
                asked = asked || !is_zero;
            }
            const bool is_table = is_table_of_vectors(info);
            if ((!is_matrix(info) && !is_table) || s.count < 2) continue;
            any = true;
            Zeros& one = zeros_[std::string(place_of(info.name))];
            if (!is_zero) {
                one = {};
                continue;
            }
            if (is_weight) {
                one.weight = info.name;
                one.module = info.module;
                one.layer = info.layer;
                one.shape = info.shape;
                one.is_table = is_table;
                ++one.weight_looks;
            } else if (one.gradient_looks++ == 0) {
                one.since = step.step();
            }
        }
        if (any) judge_zeros(step.step(), sink);
    }
    // Unless nothing asks these modules for anything: then their biases have no gradient either.
    [[nodiscard]] bool is_asked(const Zeros& a, const Zeros& b) const {
        bool has_biases = false;
        for (const Zeros* one : {&a, &b}) {
            const auto found = asked_.find(one->module);
            if (found == asked_.end()) continue;
            if (found->second) return true;
            has_biases = true;
        }
        return !has_biases;
    }
    void judge_zeros(model::StepIndex now, FindingSink& sink) {
        std::vector<const Zeros*> all;
        for (const auto& [place, one] : zeros_)
            if (one.weight_looks > 0 && one.gradient_looks >= kZeroLooks && now - one.since >= kZeroSteps)
                all.push_back(&one);
        std::vector<const Zeros*> factors;
        std::copy_if(all.begin(), all.end(), std::back_inserter(factors), [&](const Zeros* one) {
            return !one->is_table && std::any_of(all.begin(), all.end(), [&](const Zeros* other) {
                return other != one && !other->is_table && are_neighbours(*one, *other) &&
                       can_be_factors(*one, *other) && is_asked(*one, *other);
            });
        });
        const char* key = !factors.empty() ? "zeros" : !all.empty() ? "zeros_note" : "";
        // Nothing but a product with itself, or with something that is 0, too, is without a gradient for so
        // long where rows are looked up: a branch whose weight is 0 for a while is given more time.
        std::vector<const Zeros*> tables;
        std::copy_if(all.begin(), all.end(), std::back_inserter(tables),
                     [&](const Zeros* one) { return one->is_table && now - one->since >= kTableSteps; });
        if (factors.empty() && !tables.empty()) key = "zeros_table";
        // Where a whole network is of zeros, its units are alike.
        if (!alike_.empty()) key = "";
        if (zeros_key_ == key) return;
        if (!zeros_key_.empty()) sink.clear(zeros_key_);
        zeros_key_ = key;
        if (zeros_key_.empty()) return;
        fire_zeros(!factors.empty() ? factors : !tables.empty() ? tables : all, now, sink);
    }
    void fire_zeros(const std::vector<const Zeros*>& all, model::StepIndex now, FindingSink& sink) const {
        const Zeros& first = *all.front();
        const bool are_factors = zeros_key_ == "zeros", is_table = zeros_key_ == "zeros_table";
        model::Finding finding;
        finding.key = zeros_key_;
        finding.severity = are_factors ? model::Severity::kError
                           : is_table  ? model::Severity::kWarning
                                       : model::Severity::kInfo;
        finding.first_step = first.since;
        finding.tensor = first.weight;
        finding.layer = first.module;
        finding.places = all.size();
        finding.message = base::format(
            "The weights of {} are all 0, and so is their gradient, at each of {} looks from step {} to "
            "{}{}: {}.",
            place_in_words(first.weight), first.gradient_looks, first.since, now,
            all.size() > 1 ? base::format("; {} matrices are like that", all.size()) : "",
            are_factors ? "they will stay so for ever, as both factors of a product do that start at 0"
            : is_table  ? "what is looked up there is multiplied by itself, or by what is 0, too, and will "
                          "never be anything else"
                        : "they learn nothing until something else changes, as what they are given, what "
                          "they are multiplied by, or the weight of their loss");
        finding.fix =
            is_table ? base::format("Start at random: torch.nn.init.normal_({}, std=0.05).",
                                    place_of(first.weight))
            : are_factors
                ? "Start one of the two at random, as adapters (LoRA) do with the first: "
                  "torch.nn.init.kaiming_uniform_(down, a=math.sqrt(5)), and zeros for the other alone."
                : "Nothing, if that is meant. If they are multiplied by something that starts at 0, too, "
                  "such as a gate, start one of the two at random or at 1.";
        finding.evidence.push_back({"looks at which the gradient was 0",
                                    static_cast<double>(first.gradient_looks), "limit",
                                    static_cast<double>(kZeroLooks)});
        finding.plots = {{first.weight, "l2"}};
        sink.fire(std::move(finding));
    }

    // What the weights do to a signal, and what the layers return.
    void look_at_sizes(const model::StepView& step) {
        measure_outputs(step);
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            const model::Statistics& s = sample.statistics;
            if (info.module_type.find("Norm") != std::string::npos) has_norms_ = true;
            if (info.role != model::Role::kWeight || !is_matrix(info) || s.count == 0) continue;
            ++judged_;
            matrix(info).gain = gain_of(info, s);
        }
    }
    // Of the same matrices, when the training should have set off.
    void look_at_sizes_again(const model::StepView& step) {
        std::vector<double> gains;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kWeight || !is_matrix(info) || sample.statistics.count == 0)
                continue;
            const auto known = matrices_.find(std::string(place_of(info.name)));
            if (known != matrices_.end() && known->second.gain > 0)
                gains.push_back(gain_of(info, sample.statistics));
        }
        if (!gains.empty()) gain_now_ = median(std::move(gains));
    }
    // How far what a layer returns differs from sample to sample: of its typical channel, greatest less
    // least.
    void measure_outputs(const model::StepView& step) {
        std::vector<std::pair<std::int32_t, double>> outputs;
        for (const model::ChannelSample& sample : step.record->channels) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kOutput || !is_weighted(info.module_type)) continue;
            std::vector<double> ranges;
            for (std::size_t i = 0; i < sample.channels.channels(); ++i)
                ranges.push_back(static_cast<double>(sample.channels.max[i]) - sample.channels.min[i]);
            if (!ranges.empty()) outputs.emplace_back(info.layer, median(std::move(ranges)));
        }
        std::stable_sort(outputs.begin(), outputs.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [layer, range] : outputs) outputs_.push_back(range);
    }
    // Which multiplies what it is given by its matrix.
    static bool is_layer(std::string_view type) { return is_weighted(type) || has_several_parts(type); }
    static bool is_weighted(std::string_view type) {
        return type.find("Linear") != std::string_view::npos || type.find("Conv") != std::string_view::npos;
    }

    void find_alike() {
        std::int32_t last = -1;
        std::size_t hidden = 0;
        for (const auto& [place, one] : matrices_) last = std::max(last, one.layer);
        for (const auto& [place, one] : matrices_) {
            if (one.name.empty() || one.gradient_looks == 0) continue;
            // The last layer may be a head, which may start at zero. What multiplies nothing, such as the
            // means of a mixture, is no head, wherever it is.
            const bool is_last = one.layer == last;
            if (is_last && (one.is_layer || !one.has_gradient)) continue;
            hidden += is_last ? 0 : 1;
            if (one.starts_constant && !is_last && !has_random_sibling(one)) constant_.push_back(&one);
            const bool seen = one.weight_looks >= 2 && one.gradient_looks >= 2;
            // What is alike later alone has lost its gradient.
            if (seen && one.is_alike && one.starts_alike) alike_.push_back(&one);
        }
        if (2 * constant_.size() < hidden) constant_.clear();
        const auto before = [](const Matrix* a, const Matrix* b) { return a->layer < b->layer; };
        std::stable_sort(alike_.begin(), alike_.end(), before);
        std::stable_sort(constant_.begin(), constant_.end(), before);
    }

    // Another matrix of the same module tells its units apart: the means beside the spreads of a Bayesian
    // layer.
    [[nodiscard]] bool has_random_sibling(const Matrix& one) const {
        return std::any_of(matrices_.begin(), matrices_.end(), [&](const auto& entry) {
            const Matrix& other = entry.second;
            return &other != &one && other.module == one.module && other.weight_looks > 0 &&
                   !other.starts_alike;
        });
    }

    void judge_alike(FindingSink& sink) const {
        const bool learns = loss_.has_learned_much();
        const Matrix& first = *alike_.front();
        model::Finding finding;
        finding.key = "alike";
        finding.severity = learns ? model::Severity::kWarning : model::Severity::kError;
        if (learns) finding.key = "alike_learns";
        finding.first_step = 0;
        finding.tensor = first.name;
        finding.layer = first.module;
        finding.places = alike_.size();
        finding.message = base::format(
            "All units of {} have the same weights and get the same gradients, at the first step and after "
            "{} updates{}: they stay alike for ever.",
            place_in_words(first.name), kLooks - 1,
            alike_.size() > 1 ? base::format("; so it is in {} layers", alike_.size()) : std::string());
        if (first.kinds > 1)
            finding.message = base::format(
                "All rows of {} start as one and get the same gradient, and after {} updates they are of {} "
                "kinds, which differ by rounding alone{}: they do not come apart.",
                place_in_words(first.name), kLooks - 1, first.kinds,
                alike_.size() > 1 ? base::format("; so it is in {} matrices", alike_.size()) : std::string());
        if (!first.has_gradient)
            finding.message = base::format(
                "All units of {} start with the same weights and get a gradient of exactly 0{}: they never "
                "change.",
                place_in_words(first.name),
                alike_.size() > 1 ? base::format("; so it is in {} layers", alike_.size()) : std::string());
        finding.fix = kAtRandom;
        finding.evidence.push_back(
            {"layers of units alike", static_cast<double>(alike_.size()), "expected", 0});
        if (loss_.count() > 0)
            finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{first.name, "std"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        if (learns) sink.clear("alike");
        sink.fire(std::move(finding));
    }

    // Some units alone, as where a network was widened by copies of its units.
    void judge_copies(FindingSink& sink) {
        const Matrix* worst = nullptr;
        std::size_t most = 0, places = 0;
        for (auto& [place, one] : matrices_) {
            std::erase_if(one.copies, [](const Copy& copy) { return !copy.has_gradient; });
            const bool seen = one.weight_looks >= 2 && one.gradient_looks >= 2;
            const std::size_t count = one.copies.size();
            const bool is_told = std::find(alike_.begin(), alike_.end(), &one) != alike_.end();
            if (!seen || is_told || count < 2 || 20 * count < one.units) continue;
            ++places;
            if (count <= most) continue;
            most = count;
            worst = &one;
        }
        if (worst == nullptr) return;
        const Copy& first = worst->copies.front();
        model::Finding finding;
        finding.key = "copies";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = worst->name;
        finding.layer = worst->module;
        finding.places = places;
        finding.message = base::format(
            "{} of the {} units of {} have the weights of another one (unit {} those of unit {}) and get its "
            "gradients, at the first step and after {} updates{}: they stay copies for ever.",
            most, worst->units, place_in_words(worst->name), first.row, first.of, kLooks - 1,
            places > 1 ? base::format("; so it is in {} layers", places) : std::string());
        finding.fix =
            "Initialise these units at random, or add a little noise to each copy, so that they can learn "
            "something of their own.";
        finding.evidence.push_back(
            {"units that are copies", static_cast<double>(most), "of", static_cast<double>(worst->units)});
        finding.plots = {{worst->name, "std"}};
        sink.fire(std::move(finding));
    }

    // The typical matrix, and the one before the loss.
    [[nodiscard]] std::vector<const Matrix*> sized() const {
        std::vector<const Matrix*> all;
        for (const auto& [place, one] : matrices_)
            if (!one.name.empty() && one.gain > 0) all.push_back(&one);
        std::stable_sort(all.begin(), all.end(),
                         [](const Matrix* a, const Matrix* b) { return a->layer < b->layer; });
        return all;
    }

    [[nodiscard]] double typical_gain() const {
        std::vector<double> gains;
        for (const Matrix* one : sized()) gains.push_back(one->gain);
        return gains.empty() ? 0 : median(std::move(gains));
    }

    void judge_large(const model::StepView& step, FindingSink& sink) {
        if (!is_large_ && step.step() >= 8) return;
        if (!is_large_) {
            const std::optional<double> base = of_zeros_.of(loss_);
            const auto all = sized();
            if (!base || all.empty()) return;
            typical_ = typical_gain();
            // Squashed between the layers, weights far too large show less in the loss.
            const double times = typical_ > kFarTooLarge * large_ ? std::min(times_, 1.5) : times_;
            if (loss_.first() <= times * *base) return;
            worst_ = *std::max_element(all.begin(), all.end(),
                                       [](const Matrix* a, const Matrix* b) { return a->gain < b->gain; });
            if (typical_ <= large_ && all.back()->gain <= large_) return;
            is_large_ = true;
        }
        const std::optional<double> base = of_zeros_.of(loss_);
        if (!base) return;
        if (loss_.count() == 20) is_stuck_ = !(loss_.level() < *base);
        // That it learns in the end does not undo it: the finding stays, and is not told again.
        if (loss_.count() > 20 && loss_.level() < 0.9 * *base) is_stuck_ = false;
        const bool is_short = loss_.count() < 20;
        model::Finding finding;
        finding.key = is_stuck_ ? "large" : "large_note";
        finding.severity = is_stuck_ ? model::Severity::kWarning : model::Severity::kInfo;
        if (!is_stuck_ && !is_short) return;
        finding.first_step = 0;
        finding.tensor = worst_->name;
        finding.layer = worst_->module;
        finding.message = base::format(
            "The weights start too large: the first loss is {}, guessing gives {}; {} multiplies a signal "
            "{}-fold (std · √fan_in; about 1 keeps it as it is), the typical matrix {}-fold.",
            human_number(loss_.first()), human_number(*base), place_in_words(worst_->name),
            human_number(worst_->gain), human_number(typical_));
        finding.fix = base::format(
            "Initialise with about {} of the present standard deviation: leave PyTorch's own initialisation "
            "in place, or use torch.nn.init.kaiming_normal_ (ReLU) or xavier_normal_ (tanh, sigmoid).",
            base::format("1/{}", human_number(std::round(std::max(worst_->gain, 2.0)))));
        finding.evidence.push_back({"loss at the start", loss_.first(), "of guessing", *base});
        finding.evidence.push_back({"std · √fan_in", worst_->gain, "limit", large_});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{worst_->name, "std"}, {loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    // All weights one value, and only the biases tell the units apart.
    void judge_constant(FindingSink& sink) {
        if (constant_.empty() || !alike_.empty() || loss_.count() < patience_ || loss_.is_game()) return;
        if (loss_.has_learned_much()) {
            if (is_constant_) sink.clear("constant");
            constant_.clear();
            return;
        }
        is_constant_ = true;
        const Matrix& first = *constant_.front();
        model::Finding finding;
        finding.key = "constant";
        finding.first_step = 0;
        finding.tensor = first.name;
        finding.layer = first.module;
        finding.places = constant_.size();
        finding.message = base::format(
            "All weights of {} start as one value{}: its units differ by their biases alone, and after {} "
            "steps the loss is {}, {} at the start.",
            place_in_words(first.name),
            constant_.size() > 1 ? base::format(", and so in {} layers", constant_.size()) : std::string(),
            loss_.count(), human_number(loss_.level()), human_number(loss_.start()));
        finding.fix = kAtRandom;
        finding.evidence.push_back(
            {"layers of one value", static_cast<double>(constant_.size()), "expected", 0});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{first.name, "std"}, {loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    // Nothing is learned, or the same for every sample: the mean of the targets.
    [[nodiscard]] bool is_idle() const {
        return !loss_.has_learned() || (outputs_differ_ && *outputs_differ_ < kSame);
    }

    // A loss made by hand need not fall. That no signal gets through the network, it shows by itself: all
    // weights are small, the typical one far too small, at the start and still.
    [[nodiscard]] bool is_dead() const {
        const auto all = sized();
        return typical_gain() < small_ / 10 && gain_now_ && *gain_now_ < small_ / 10 &&
               outputs_.size() >= 3 &&
               std::ranges::all_of(all, [&](const Matrix* one) { return one->gain < small_; });
    }

    void judge_small(FindingSink& sink) {
        // Far too small, there is little to wait for.
        const bool is_tiny = loss_.count() == kTinyPatience && typical_gain() < small_ / 10;
        if ((loss_.count() < patience_ && !is_tiny && !is_small_) || loss_.is_game()) return;
        if (is_small_) {
            if (loss_.is_known_function() ? is_idle() : is_dead()) return fire_small(sink);
            // A lucky batch, or the bias alone.
            if (loss_.is_known_function() && !loss_.has_learned_much()) return;
            sink.clear("small");
            is_small_ = false;
            is_small_over_ = true;
            return;
        }
        // One look may fall on a lucky moment.
        const bool is_due = is_tiny || (loss_.count() <= 6 * patience_ && loss_.count() % patience_ == 0);
        if (is_small_over_ || !is_due || !(loss_.is_known_function() ? is_idle() : is_dead())) return;
        const auto all = sized();
        if (all.size() < 3 || (outputs_.size() < 3 && (has_norms_ || !(typical_gain() < small_ / 10))))
            return;
        const double left = outputs_.empty() ? 1 : outputs_.back() / std::max(outputs_.front(), 1e-300);
        const double between = static_cast<double>(std::max<std::size_t>(outputs_.size(), 2) - 1);
        shrinks_ = std::pow(left, 1.0 / between);
        // Many weights that are not so small make as little of a signal.
        limit_ = left < kLost && shrinks_ < kShrinksFast ? std::max(small_, kBelowUsual) : small_;
        const auto low = static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [&](const Matrix* one) { return one->gain < limit_; }));
        if (2 * low < all.size()) return;
        // Norm layers undo it: then what the layers return does not shrink.
        if (!outputs_.empty() && !(shrinks_ < 0.5) && !(outputs_.back() < 1e-3)) return;
        worst_ = *std::min_element(all.begin(), all.end(),
                                   [](const Matrix* a, const Matrix* b) { return a->gain < b->gain; });
        low_ = low;
        is_small_ = true;
        fire_small(sink);
    }
    void fire_small(FindingSink& sink) const {
        model::Finding finding;
        finding.key = "small";
        finding.first_step = 0;
        finding.tensor = worst_->name;
        finding.layer = worst_->module;
        finding.places = low_;
        finding.message = base::format(
            "The weights start too small: {} multiplies a signal by {} (std · √fan_in; about 1 keeps it as "
            "it is){}, and after {} steps the loss is {}, {} at the start.",
            place_in_words(worst_->name), human_number(worst_->gain),
            outputs_.size() < 2
                ? std::string()
                : base::format(", what the layers return shrinks to {} of its spread from one to the next",
                               human_number(shrinks_)),
            loss_.count(), human_number(loss_.level()), human_number(loss_.start()));
        finding.fix =
            "Leave PyTorch's own initialisation in place, or use torch.nn.init.kaiming_normal_ (ReLU) or "
            "xavier_normal_ (tanh, sigmoid) instead of a small standard deviation.";
        finding.evidence.push_back({"std · √fan_in", worst_->gain, "limit", limit_});
        if (outputs_.size() >= 2)
            finding.evidence.push_back({"spread from layer to layer", shrinks_, "usual", 1});
        finding.evidence.push_back({"loss", loss_.level(), "at the start", loss_.start()});
        finding.plots = {{worst_->name, "std"}, {loss_.tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    double times_, large_, small_;
    std::uint64_t patience_;
    std::uint64_t judged_ = 0;
    std::map<std::string, Matrix> matrices_;  // by place
    std::map<std::string, Zeros> zeros_;      // the same, of all that were looked at
    std::map<std::string, bool> asked_;       // by module with biases: whether these ever got a gradient
    std::string zeros_key_;                   // of what was found of them, as long as it is so
    std::vector<const Matrix*> alike_;
    std::vector<const Matrix*> constant_;
    bool is_constant_ = false, is_small_over_ = false;
    std::vector<double> outputs_;  // spread over the batch of what layers with weights return, in order
    bool has_norms_ = false;
    LossOfZeros of_zeros_;
    double typical_ = 0, shrinks_ = 1, limit_ = 0;
    std::size_t low_ = 0;
    std::optional<double> gain_now_;        // of the typical matrix, once the training should have set off
    std::optional<double> outputs_differ_;  // from sample to sample, as a part of what targets do
    bool is_large_ = false, is_stuck_ = false, is_small_ = false;
    const Matrix* worst_ = nullptr;
    TrainingLoss loss_;
};

std::vector<model::Requirement> poor_weight_init_needs(const Parameters&) {
    constexpr auto kTrain = model::Mode::kTrain;
    constexpr auto kStatistics = model::What::kStatistics;
    constexpr auto kWhat = model::What::kStatistics | model::What::kChannels;
    constexpr model::Schedule kStart = {.every = 0, .dense_until = 3};
    constexpr model::Schedule kFirst = {.every = 0, .dense_until = 1};
    std::vector<model::Requirement> all = loss_requirements(kPoorWeightInit.name);
    all.push_back({"weights", kTrain, kWhat, kStart, kPoorWeightInit.name});
    all.push_back({"gradients", kTrain, kWhat, kStart, kPoorWeightInit.name});
    // Of layers that are put in later, too.
    all.push_back({"gradients", kTrain, kStatistics, {.every = 10}, kPoorWeightInit.name});
    all.push_back({"weights", kTrain, kStatistics, {.every = 50}, kPoorWeightInit.name});
    all.push_back({"outputs", kTrain, kWhat, kFirst, kPoorWeightInit.name});
    all.push_back({"labels", kTrain, kStatistics, kFirst, kPoorWeightInit.name});
    all.push_back(loop_requirement(kPoorWeightInit.name));
    return all;
}

}  // namespace

RuleEntry builtin::poor_weight_init() {
    return {&kPoorWeightInit, &poor_weight_init_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<PoorWeightInit>(p); }};
}

}  // namespace traindbg::rules
