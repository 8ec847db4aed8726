#include "traindbg/diagnose/training_facts.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <span>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"

namespace traindbg::diagnose {
namespace {

using base::human_number;
using model::WorkerMeta;

// Learning rates of an optimizer: at and above, and at and below which they are what `Rate` says.
struct Usual {
    std::string_view optimizer;
    double far_above = 0, low = 0, far_below = 0;
};
// Plain steps are as large as the gradient; those of Adadelta and L-BFGS have a size of their own, which 1
// leaves as it is; all others divide by the gradient's size, so that the rate is the size of a step.
constexpr std::array kUsual = {Usual{"SGD", 1, 1e-3, 1e-4}, Usual{"Adadelta", 10, 1e-2, 1e-3},
                               Usual{"LBFGS", 10, 1e-2, 1e-3}};
constexpr Usual kOthers = {"", 0.1, 1e-5, 1e-6};

Usual usual_of(std::string_view optimizer) {
    for (const Usual& each : kUsual)
        if (each.optimizer == optimizer) return each;
    return kOthers;
}

// Of several groups, `lr` is the first one's, `lr_min` and `lr_max` the extremes.
template <typename Visit>
void for_each_rate(const WorkerMeta& meta, const Visit& visit) {
    for (const model::OptimizerInfo& optimizer : meta.optimizers) {
        const Usual usual = usual_of(optimizer.type);
        for (const auto& [name, value] : optimizer.settings)
            if (name == "lr" || name == "lr_min" || name == "lr_max")
                visit(Rate{optimizer.type, value, value >= usual.far_above, value <= usual.low,
                           value <= usual.far_below},
                      value / usual.far_above);
    }
}

std::string_view fact(const WorkerMeta& meta, std::string_view name) {
    for (const auto& [key, value] : meta.environment)
        if (key == name) return value;
    return {};
}

// How many modules are of one of these types, by the fact "module_types": "Linear=3 ReLU=2".
std::uint64_t modules(const WorkerMeta& meta, std::span<const std::string_view> types) {
    std::uint64_t count = 0;
    std::string_view rest = fact(meta, "module_types");
    while (!rest.empty()) {
        const std::string_view word = rest.substr(0, rest.find(' '));
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
        const std::size_t equals = word.find('=');
        if (equals == std::string_view::npos) continue;
        std::uint64_t number = 0;
        std::from_chars(word.data() + equals + 1, word.data() + word.size(), number);
        for (const std::string_view type : types)
            if (word.substr(0, equals) == type) count += number;
    }
    return count;
}

constexpr std::array<std::string_view, 3> kFlat = {"Sigmoid", "Tanh", "Softsign"};
constexpr std::array<std::string_view, 9> kNormalising = {
    "BatchNorm1d",    "BatchNorm2d", "BatchNorm3d",   "LayerNorm",        "RMSNorm",
    "InstanceNorm2d", "GroupNorm",   "SyncBatchNorm", "LocalResponseNorm"};
constexpr std::array<std::string_view, 4> kOfBatch = {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d",
                                                      "SyncBatchNorm"};
constexpr std::array<std::string_view, 6> kRecurrent = {"RNN",     "LSTM",     "GRU",
                                                        "RNNCell", "LSTMCell", "GRUCell"};
constexpr std::array<std::string_view, 5> kDropping = {"Dropout", "Dropout1d", "Dropout2d", "Dropout3d",
                                                       "AlphaDropout"};

void add_rates(std::string_view cause, const WorkerMeta& meta, std::vector<Fact>& facts) {
    const std::optional<Rate> highest = highest_rate(meta);
    const std::optional<Rate> lowest = lowest_rate(meta);
    if (!highest || !lowest) return;
    const auto say = [](const Rate& rate, std::string_view how) {
        return base::format("{} has a learning rate of {}, {}.", rate.optimizer, human_number(rate.value),
                            how);
    };
    if (cause == "learning_rate_too_high") {
        if (highest->is_far_above)
            facts.push_back({say(*highest, "far above what is usual for it"), true, true});
        else if (highest->is_low) facts.push_back({say(*highest, "which is low for it"), false, true});
        else facts.push_back({say(*highest, "which is usual for it"), false, true});
    } else if (cause == "no_learning_signal" && lowest->is_far_below) {
        facts.push_back({say(*lowest, "far below what is usual for it"), true, true});
    } else if (cause == "learning_rate_too_low") {
        if (highest->is_far_below)
            facts.push_back({say(*highest, "far below what is usual for it"), true, false});
        else if (!lowest->is_low) facts.push_back({say(*lowest, "which is usual for it"), false, false});
    }
}

void add_modules(std::string_view cause, const WorkerMeta& meta, std::vector<Fact>& facts) {
    if (fact(meta, "module_types").empty()) return;
    if (cause == "vanishing_gradient") {
        const std::uint64_t flat = modules(meta, kFlat), norms = modules(meta, kNormalising);
        if (norms != 0)
            facts.push_back(
                {base::format("The model has {} normalising {}, which keep gradients from shrinking.", norms,
                              norms == 1 ? "module" : "modules"),
                 false, false});
        else if (flat >= 3)
            facts.push_back(
                {base::format("The model has {} sigmoid or tanh modules and none that normalises.", flat),
                 true, false});
    } else if (cause == "exploding_gradient") {
        if (modules(meta, kRecurrent) != 0)
            facts.push_back(
                {"The model is recurrent: a gradient is multiplied by the same weights at each of "
                 "its steps in time.",
                 true, false});
    } else if (cause == "over_regularized") {
        if (const std::uint64_t dropouts = modules(meta, kDropping); dropouts != 0)
            facts.push_back(
                {base::format("The model has {} dropout {}.", dropouts, dropouts == 1 ? "module" : "modules"),
                 true, true});
    }
}

void add_loader(std::string_view cause, const WorkerMeta& meta, std::vector<Fact>& facts) {
    if (cause == "unshuffled_data") {
        const std::string_view shuffles = fact(meta, "loader_shuffles");
        if (shuffles == "false")
            facts.push_back({"The DataLoader goes through its data in order (shuffle=False).", true, false});
        else if (shuffles == "true")
            facts.push_back({"The DataLoader shuffles (shuffle=True).", false, false});
    } else if (cause == "batchnorm_momentum" && modules(meta, kOfBatch) != 0) {
        constexpr std::uint64_t kFew = 4;  // statistics of so few samples are mostly noise
        const std::string_view text = fact(meta, "loader_batch_size");
        std::uint64_t size = 0;
        if (std::from_chars(text.data(), text.data() + text.size(), size).ec == std::errc() && size <= kFew)
            facts.push_back({base::format("Batch norm is given batches of {}.", size), true, false});
    }
}

}  // namespace

std::optional<Rate> highest_rate(const WorkerMeta& meta) {
    std::optional<Rate> found;
    double most = 0;
    for_each_rate(meta, [&](const Rate& rate, double relative) {
        if (found && !(relative > most)) return;
        found = rate;
        most = relative;
    });
    return found;
}

std::optional<Rate> lowest_rate(const WorkerMeta& meta) {
    std::optional<Rate> found;
    double least = 0;
    for_each_rate(meta, [&](const Rate& rate, double relative) {
        if (found && !(relative < least)) return;
        found = rate;
        least = relative;
    });
    return found;
}

std::vector<Fact> facts_about(std::string_view cause, const WorkerMeta& meta) {
    std::vector<Fact> facts;
    add_rates(cause, meta, facts);
    add_modules(cause, meta, facts);
    add_loader(cause, meta, facts);
    return facts;
}

}  // namespace traindbg::diagnose
