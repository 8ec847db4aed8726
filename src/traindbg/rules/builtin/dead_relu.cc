// ReLU units that are zero for every sample: nothing passes, forward or back.

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/settings.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kDeadRelu = {
    .name = "dead_relu",
    .title = "Dead ReLU",
    .summary = "Most units of a ReLU layer are zero for every sample and get no gradient any more.",
    .when =
        "Nearly all units of a ReLU layer are zero for every sample, or a large share of them stays so in "
        "batch after batch.\n"
        "- Inactive: a unit (in a convolution, a channel) is inactive in a batch if it is never positive "
        "there.\n"
        "- nn.Threshold and its function count as a ReLU if they make 0 of all that is not above a "
        "threshold, which is not below 0.\n"
        "- Whole layer (error): at least `whole` of the layer's units are inactive in three captured "
        "batches in a row. It is only a warning if the training learns all the same, around the layer.\n"
        "- Whole layer, still: from then on it is taken for dead as long as 95 % of its units are "
        "inactive.\n"
        "- Partly dead: after 100 steps, at least `share` of the layer's units are inactive in each of the "
        "last `window` captured batches.\n"
        "- Partly dead, nothing learned (warning): this shows at two looks in a row, and the training does "
        "not learn.\n"
        "- Partly dead, died in training (warning): the training learns, but at least `nearly` of the "
        "units are inactive in each of these batches, and fewer than half were inactive at the first "
        "step.\n"
        "- Partly dead, note only (info): in all other cases.\n"
        "- Not judged for parts: layers with fewer than 16 values per unit in a batch are judged only as a "
        "whole.",
    .why =
        "A ReLU that is negative for all inputs has derivative 0: its weights never change again, and "
        "nothing behind a layer of such units sees the input.",
    .fix =
        "Dead from the start: initialise biases with 0 and weights for ReLU (He), and standardise the "
        "inputs. Died in training: lower the learning rate. LeakyReLU or GELU cannot die.",
    .healthy =
        "Sparse layers of a model that learns; units that are off in one batch and on in another; small "
        "batches.",
    .cost =
        "One pass over the ReLU outputs at the first 5 steps, then every 10th up to step 100 and every 25th "
        "after.",
    .original = "DeadRelu",
    .source = "Lu et al., \"Dying ReLU and Initialization: Theory and Numerical Examples\", 2019",
    .severity = model::Severity::kError,
    .parameters = {{"whole", "share", 0.99, 0.5, 1, "inactive units that make a layer dead as a whole"},
                   {"share", "share", 0.75, 0.05, 1, "inactive units that make it partly dead"},
                   {"nearly", "share", 0.9, 0.05, 1, "inactive units that are too many in any training"},
                   {"window", "captures", 5, 2, 1000, "captured batches in a row that must show it"}},
};

class DeadRelu final : public Rule {
  public:
    explicit DeadRelu(const Parameters& parameters)
        : whole_(parameters.at("whole")),
          share_(parameters.at("share")),
          nearly_(parameters.at("nearly")),
          window_(static_cast<std::size_t>(parameters.at("window"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        bool any = false;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.activation != model::ActivationKind::kRelu || sample.units.units == 0 ||
                sample.statistics.count == 0 || sample.statistics.not_finite() > 0)
                continue;
            any = true;
            auto [place, is_new] = layers_.try_emplace(sample.tensor, window_);
            Layer& layer = place->second;
            const double inactive =
                static_cast<double>(sample.units.inactive_units) / static_cast<double>(sample.units.units);
            if (is_new) layer.first_share = inactive;
            layer.units = sample.units.units;
            layer.values_per_unit =
                static_cast<double>(sample.statistics.count) / static_cast<double>(sample.units.units);
            layer.shares.add(inactive);
            // A unit of a dead layer that comes back for a batch brings no layer to life.
            const double limit = layer.dead_in_a_row >= kWholeInARow ? std::min(whole_, kStillWhole) : whole_;
            layer.dead_in_a_row = inactive >= limit ? layer.dead_in_a_row + 1 : 0;
            if (layer.dead_in_a_row == 1) layer.died = step.step();
        }
        if (!any) return;
        ++judged_;
        judge(step, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override { return "no ReLU in the model was seen"; }

  private:
    static constexpr int kFewestLooks = 2;
    static constexpr std::uint64_t kWholeInARow = 3;
    static constexpr double kStillWhole = 0.95;  // inactive units of a layer that has died
    static constexpr std::string_view kPartLearning = "units_learning", kPart = "units";
    static constexpr std::string_view kWholeLearning = "layer_learning", kWhole = "layer";
    static constexpr std::array kFromGoodToBad = {kPartLearning, kPart, kWholeLearning, kWhole};
    struct Layer {
        explicit Layer(std::size_t window) : shares(window) {}
        Recent shares;
        std::uint32_t units = 0;
        double values_per_unit = 0;
        double first_share = 0;
        std::uint64_t dead_in_a_row = 0;
        model::StepIndex died = 0;

        [[nodiscard]] double lowest() const {
            const auto all = shares.values();
            return *std::min_element(all.begin(), all.end());
        }
    };
    using Place = std::map<model::TensorId, Layer>::value_type;

    void judge(const model::StepView& step, FindingSink& sink) {
        // The first dead layer in the order of the data: those behind it follow from it.
        const Place* dead = nullptr;
        const Place* partly = nullptr;
        std::uint64_t dead_places = 0, partly_places = 0;
        const auto before = [&](const Place& a, const Place& b) {
            return step.info(a.first).layer < step.info(b.first).layer;
        };
        for (const Place& place : layers_) {
            const Layer& layer = place.second;
            if (layer.dead_in_a_row >= kWholeInARow) {
                ++dead_places;
                if (dead == nullptr || before(place, *dead)) dead = &place;
            } else if (layer.shares.full() && layer.values_per_unit >= 16 && layer.lowest() >= share_ &&
                       loss_.count() >= 100) {
                ++partly_places;
                if (partly == nullptr || layer.lowest() > partly->second.lowest()) partly = &place;
            }
        }
        const bool learns = loss_.has_learned();
        // A training that is about to learn is given one more look.
        partly_looks_ = dead == nullptr && partly != nullptr ? partly_looks_ + 1 : 0;
        const std::string_view key = dead != nullptr                 ? (learns ? kWholeLearning : kWhole)
                                     : partly == nullptr             ? ""
                                     : learns                        ? kPartLearning
                                     : partly_looks_ >= kFewestLooks ? kPart
                                                                     : "";
        if (firing_ != key && !firing_.empty()) end(key, sink);
        firing_ = key;
        if (dead != nullptr) fire(step, *dead, dead_places, true, learns, sink);
        else if (!firing_.empty()) fire(step, *partly, partly_places, false, learns, sink);
    }

    // What was told is over, or it has become worse and is told by `next`: one fault has one finding.
    void end(std::string_view next, FindingSink& sink) const {
        const auto place_of = [](std::string_view key) {
            return std::find(kFromGoodToBad.begin(), kFromGoodToBad.end(), key) - kFromGoodToBad.begin();
        };
        if (next.empty() || place_of(next) < place_of(firing_)) return sink.clear(firing_);
        model::Finding note;
        note.key = firing_;
        note.message = "It became worse, and is told by a finding of its own since.";
        sink.take_back(std::move(note));
    }

    // Of a ReLU that is called as a function the layer that it is given: what lies nearest before it, of the
    // same shape. Tensors are numbered as the first step comes to them.
    static const model::TensorInfo* layer_before(const model::StepView& step,
                                                 const model::TensorInfo& activation) {
        const std::string& type = activation.module_type;
        if (type.find("ReLU") != std::string::npos || type == "Threshold") return nullptr;  // its own module
        const model::TensorInfo* nearest = nullptr;
        for (const model::TensorInfo& info : *step.tensors)
            if (info.role == model::Role::kOutput && info.id < activation.id &&
                info.shape == activation.shape && (nearest == nullptr || info.id > nearest->id))
                nearest = &info;
        return nearest;
    }

    // Whether it is nn.Threshold, or its function by the end of the name: "activation/model.threshold#2".
    static bool is_threshold(const model::TensorInfo& info) {
        const std::string_view name = std::string_view(info.name).substr(0, info.name.find('#'));
        return info.module_type == "Threshold" || name.ends_with(".threshold");
    }

    // By updates: what is sparse by its nature was so at the first step.
    [[nodiscard]] bool has_nearly_died(const Layer& layer) const {
        return layer.lowest() >= nearly_ && layer.first_share < 0.5;
    }
    void fire(const model::StepView& step, const Place& place, std::uint64_t places, bool whole, bool learns,
              FindingSink& sink) const {
        const model::TensorInfo& info = step.info(place.first);
        const Layer& layer = place.second;
        const double share = whole ? layer.shares.values().back() : layer.lowest();
        const bool from_start = layer.first_share >= (whole ? whole_ : share_);
        model::Finding finding;
        finding.key = firing_;
        const bool is_note = learns && !has_nearly_died(layer);
        finding.severity = whole     ? (learns ? model::Severity::kWarning : model::Severity::kError)
                           : is_note ? model::Severity::kInfo
                                     : model::Severity::kWarning;
        if (whole) finding.first_step = layer.died;
        finding.tensor = info.name;
        const model::TensorInfo* fed_by = layer_before(step, info);
        finding.layer = fed_by != nullptr ? fed_by->module : info.module;
        finding.places = places;
        finding.message =
            base::format("{} {} units of {}{} {} for every sample of {} captured batches in a row, {}{}{}.",
                         whole && share >= 1 ? base::format("All {}", layer.units)
                                             : base::format("{:.0f} % of the {}", 100 * share, layer.units),
                         is_threshold(info) ? "Threshold" : "ReLU", place_in_words(info.name),
                         fed_by != nullptr ? base::format(", behind {},", fed_by->module) : std::string(),
                         "are zero", whole ? layer.dead_in_a_row : window_,
                         from_start ? "from the first step on"
                                    : base::format("{:.0f} % at the first step", 100 * layer.first_share),
                         places > 1 ? base::format("; {} layers are like this", places) : "",
                         learns ? "; the training learns all the same" : "");
        finding.fix =
            learns ? "Nothing, if sparsity is wanted; otherwise a narrower layer does the same work."
            : from_start && is_threshold(info)
                ? "Use nn.ReLU, whose threshold is 0: with usual initial weights and standardised inputs few "
                  "values pass a higher one."
            : from_start ? "Initialise the biases before this ReLU with 0 and the weights with "
                           "torch.nn.init.kaiming_normal_, and standardise the inputs; or use LeakyReLU."
                         : base::format(
                               "{}: the units were alive at the first step and one update pushed them below "
                               "zero; or use LeakyReLU.",
                               capitalised(lower_learning_rate(*step.meta, 0.1)));
        finding.evidence.push_back({"inactive units", share, "limit", whole ? whole_ : share_});
        finding.evidence.push_back({"inactive units at the first step", layer.first_share, "", 0});
        finding.plots = {{info.name, "inactive_units"}};
        if (!loss_.tensor().empty()) finding.plots.emplace_back(loss_.tensor(), "value");
        sink.fire(std::move(finding));
    }

    double whole_, share_, nearly_;
    std::size_t window_;
    std::uint64_t judged_ = 0;
    std::map<model::TensorId, Layer> layers_;
    std::string firing_;
    int partly_looks_ = 0;  // in a row
    TrainingLoss loss_;
};

std::vector<model::Requirement> dead_relu_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kDeadRelu.name);
    // Denser at first: units die early.
    constexpr auto kWhat = model::What::kStatistics | model::What::kUnits;
    all.push_back({"activations",
                   model::Mode::kTrain,
                   kWhat,
                   {.every = 10, .dense_until = 5, .end = 100},
                   kDeadRelu.name});
    all.push_back({"activations", model::Mode::kTrain, kWhat, {.every = 25, .start = 100}, kDeadRelu.name});
    return all;
}

}  // namespace

RuleEntry builtin::dead_relu() {
    return {&kDeadRelu, &dead_relu_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<DeadRelu>(p); }};
}

}  // namespace traindbg::rules
