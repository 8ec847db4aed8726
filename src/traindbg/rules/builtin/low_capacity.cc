// A layer through which too few numbers pass.

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/far_from_fit.h"
#include "traindbg/rules/loss_arguments.h"
#include "traindbg/rules/neighbours.h"
#include "traindbg/rules/robust.h"
#include "traindbg/rules/updates.h"

namespace traindbg::rules {
namespace {

using base::human_number;

const model::RuleInfo kLowCapacity = {
    .name = "low_capacity",
    .title = "Too narrow a layer",
    .summary =
        "The last layer is given too few numbers for what it has to tell apart, and the loss stays high.",
    .when =
        "A training stands still far above a good fit, because a layer, or the whole model, has too few "
        "units for what it has to tell apart.\n"
        "- Thin hidden layers (warning), at the end of a run: there are three or more layers in front of "
        "the last one, none has more than three units, and one is given six numbers or more. The loss is "
        "above 12 % of what guessing gives, and has fallen by less than 15 % over the last third of the "
        "run.\n"
        "- Narrow last layer, what counts: the last layer, which makes what the loss is given, has at most "
        "four inputs. It has just one, or it has at least eight outputs and fewer inputs than a `narrow`th "
        "of these (of classes that are counted, exactly that, too).\n"
        "- A table as the last layer counts likewise, for a note (info): no module makes the scores of a "
        "classification, and "
        "the only weights that have as many rows or columns as there are scores are an embedding's, of at "
        "most four columns.\n"
        "- Narrow throughout counts as well: no layer in front of the last one has more than four units, "
        "and there are two or more such layers.\n"
        "- Narrow (warning): judged after `steps` steps, or at the end of a run of half of that. The loss "
        "is above `share` of what guessing gives (and below twice what guessing gives). It has fallen by "
        "less than 15 % over the last third of the run, and the learning rate has not come to an end.\n"
        "- Simple model (warning): the whole model is one matrix, or has no layer of more than eight units "
        "in front of the last one, though its inputs tell more. It must stand still as well, in one of the "
        "two ways below.\n"
        "- Simple model, inputs: of some hundred first rows, the labels of nearest ones differ by less "
        "than `neighbours` of what those of any two do. This is also less than a third of the loss divided "
        "by that of guessing, and that share is itself above `neighbours`.\n"
        "- Stands still, first way: over the last third of the run the loss has no downward trend "
        "(Mann-Kendall z > -2) and no fall of 5 %, at no less than half of the highest rate.\n"
        "- Stands still, second way, at the end of a run of a model of several layers: over the last "
        "third, no trend (z between -2 and 2.5) and no fall of 5 %, at no less than a hundredth of the "
        "highest rate. An evaluation is as bad, as for a warning of `underfit`.\n"
        "- One factor (warning): the whole model is tables that hold one number a row, two or more for "
        "each kind of row (a factorisation with one factor, beside biases). The loss is as high, and "
        "stands still, as for a narrow last layer.",
    .why =
        "All that is told apart has to fit into these numbers: with two, ten classes lie in one plane. More "
        "training does not help, and training and evaluation are equally bad.",
    .fix = "Widen the layer in front of the last one, to several times the number of outputs.",
    .healthy =
        "A narrow layer with which the loss gets low; a narrow layer elsewhere, as in an auto-encoder or a "
        "gate; a loss that still falls; noise in the data, with a layer that is wide enough. Tables of one "
        "number a row that are added, as abilities and difficulties are.",
    .cost =
        "The loss at every step, of training and of evaluation, the shapes of the weights, and one pass over "
        "what the modules return at the first 5 steps and then at every 50th; a comparison of some hundred "
        "rows of the first inputs with each other, once.",
    .original = "",
    .source =
        "Yang et al., \"Breaking the softmax bottleneck\", ICLR 2018; Humbatova et al., \"DeepCrime\", ISSTA "
        "2021 (layers made too narrow)",
    .severity = model::Severity::kWarning,
    .parameters = {{"steps", "steps", 200, 50, 1e9, "steps that a training has to get below it"},
                   {"share", "share", 0.35, 0.01, 1, "of the loss of guessing, that is high"},
                   {"narrow", "times", 4, 1, 1e6, "as many outputs as inputs, from which on it is narrow"},
                   {"neighbours", "share", 0.3, 0.01, 1, "difference of labels between nearest inputs"}},
};

constexpr double kMostInputs = 4;    // more may tell many outputs apart, as vectors of words do
constexpr double kIncomparable = 2;  // times what guessing gives: no layer is so narrow
constexpr std::int64_t kTiny = 4;    // units, of a net that is no wider anywhere
constexpr std::int64_t kFarTooNarrow = 8;
constexpr std::int64_t kThin = 3;  // units, of all layers in front of the last one
constexpr int kThinLayers = 3;
constexpr double kThinShare = 0.12;        // of the loss of guessing
constexpr std::int64_t kRowsOfTable = 20;  // at least
constexpr std::int64_t kUsualColumns = 16;

class LowCapacity final : public Rule {
  public:
    explicit LowCapacity(const Parameters& parameters)
        : steps_(static_cast<std::uint64_t>(parameters.at("steps"))),
          share_(parameters.at("share")),
          narrow_(parameters.at("narrow")),
          neighbours_most_(parameters.at("neighbours")),
          far_({.min_steps = steps_, .share_told = neighbours_most_, .alike = neighbours_most_}) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        far_.observe(step);
        if (step.mode() != model::Mode::kTrain) return;
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role == model::Role::kWeight && info.shape.size() >= 2) learn(sample.tensor, info);
        }
        for (const LossCall& call : loss_calls(step)) {
            const Maker maker = maker_of(step, call);
            if (maker.tensor != nullptr && maker.squash == Squash::kNone) last_ = maker.tensor->module;
            if (call.function == "cross_entropy" && call.prediction->shape.size() == 2)
                scores_ = call.prediction->shape[1];
        }
        if (far_.guessing().loss().count() >= steps_ && far_.guessing().loss().count() % 10 == 0) judge(sink);
    }
    void on_end(FindingSink& sink) override {
        far_.end();
        is_at_end_ = true;
        judge_thin(sink);
        if (2 * far_.guessing().loss().count() >= steps_) judge(sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        const bool is_judged = narrow_layer()    ? share_of(*narrow_layer()).has_value()
                               : is_one_factor() ? far_.guessing().share().has_value()
                                                 : is_simple();
        return is_judged ? far_.guessing().loss().count() : 0;
    }
    [[nodiscard]] std::string why_not_judged() const override {
        if (!narrow_layer() && !is_one_factor()) return "the last layer is not narrow, or was not seen";
        return "it is not known how large the loss of guessing is";
    }

  private:
    struct Layer {
        std::string module;
        std::int32_t place = -1;
        std::int64_t out = 0, in = 0;
        std::int64_t width = 0;    // units, of its widest matrix
        std::size_t matrices = 1;  // that it holds
        bool is_table = false;     // of an embedding
    };
    struct Narrow {
        const Layer* last = nullptr;
        const Layer* before = nullptr;  // what makes its inputs; null where there is none
    };

    // Once for each tensor: looking for its module among all at every step is a square.
    void learn(model::TensorId id, const model::TensorInfo& info) {
        if (is_learnt_.size() <= id) is_learnt_.resize(id + 1, false);
        if (is_learnt_[id]) return;
        is_learnt_[id] = true;
        // Parameters of a module written by hand may be the other way round.
        const bool is_usual = info.module_type.find("Linear") != std::string::npos ||
                              info.module_type.find("Conv") != std::string::npos;
        const std::int64_t width = is_usual ? info.shape[0] : std::max(info.shape[0], info.shape[1]);
        for (Layer& layer : layers_) {
            if (layer.module != info.module) continue;
            layer.width = std::max(layer.width, width);
            ++layer.matrices;
            return;
        }
        if (layers_.size() >= 1000) return;
        // What a transposed convolution is given comes first.
        const bool is_transposed = info.module_type.find("ConvTranspose") != std::string::npos;
        const std::int64_t out = info.shape[is_transposed ? 1 : 0], in = info.shape[is_transposed ? 0 : 1];
        const bool is_table = info.module_type.find("Embedding") != std::string::npos;
        layers_.push_back({info.module, info.layer, out, in, is_transposed ? out : width, 1, is_table});
    }

    [[nodiscard]] std::optional<Narrow> narrow_layer() const {
        Narrow found;
        for (const Layer& layer : layers_)
            if (layer.module == last_) found.last = &layer;
        if (last_.empty()) found.last = scoring_table();
        if (found.last == nullptr || layers_.size() < 2) return std::nullopt;
        const auto in = static_cast<double>(found.last->in), out = static_cast<double>(found.last->out);
        // A language model has many more words than numbers to tell them by, and is not narrow.
        const auto is_tiny = [&](const Layer& layer) { return &layer == found.last || layer.out <= kTiny; };
        // An auto-encoder's code of two numbers for eight is meant, as a picture of a table.
        const bool is_of_classes =
            far_.guessing().function().empty() && far_.guessing().loss().base_rate().has_value();
        const bool is_narrow =
            in <= kMostInputs &&
            (in == 1 || (out >= 8 && (in * narrow_ < out || (is_of_classes && in * narrow_ == out))) ||
             (layers_.size() >= 3 && in <= kTiny && std::all_of(layers_.begin(), layers_.end(), is_tiny)));
        if (!is_narrow) return std::nullopt;
        for (const Layer& layer : layers_)
            if (layer.place < found.last->place &&
                (found.before == nullptr || layer.place > found.before->place))
                found.before = &layer;
        return found;
    }

    // Scores that no module makes are products with the rows of a table, if nothing else has as many.
    [[nodiscard]] const Layer* scoring_table() const {
        const Layer* found = nullptr;
        for (const Layer& layer : layers_) {
            if (scores_ < kRowsOfTable || (layer.out != scores_ && layer.in != scores_)) continue;
            if (found != nullptr || !layer.is_table || layer.out != scores_) return nullptr;
            found = &layer;
        }
        return found;
    }

    // Where the labels are not counted, only what is far too narrow is told.
    [[nodiscard]] std::optional<double> share_of(const Narrow& narrow) const {
        const std::optional<double> share = far_.guessing().share();
        if (share || narrow.last->in > kFarTooNarrow) return share;
        return far_.guessing().least_share();
    }

    // A factorisation with one factor: nothing but tables of one number a row, two or more of as many rows.
    // A table without another one of as many rows is a bias, or one of two numbers that are added.
    [[nodiscard]] bool is_one_factor() const {
        const auto is_of_numbers = [](const Layer& layer) {
            return layer.in == 1 && layer.out >= kRowsOfTable && layer.matrices == 1;
        };
        if (layers_.size() < 4 || !std::all_of(layers_.begin(), layers_.end(), is_of_numbers)) return false;
        return std::all_of(layers_.begin(), layers_.end(), [&](const Layer& layer) {
            return std::count_if(layers_.begin(), layers_.end(),
                                 [&](const Layer& other) { return other.out == layer.out; }) >= 2;
        });
    }
    void judge_one_factor(FindingSink& sink) {
        const std::optional<double> share = is_one_factor() ? far_.guessing().share() : std::nullopt;
        if (!share || far_.guessing().loss().is_game()) return;
        const bool on = *share > share_ && *share < kIncomparable && !is_falling() && !is_over();
        if (on) fire_one_factor(*share, sink);
        else if (fired_factor_ && *share < 0.9 * share_) sink.clear("factor");
        fired_factor_ = fired_factor_ || on;
    }
    // One matrix, or next to no units between the first and the last one.
    [[nodiscard]] bool is_simple() const {
        const auto is_wide = [&](const Layer& layer) {
            return layer.module == last_ ? layer.matrices > 1 : layer.width > kFarTooNarrow;
        };
        return !layers_.empty() && !last_.empty() && std::none_of(layers_.begin(), layers_.end(), is_wide);
    }
    // What a look at the nearest row already known tells, such a model does not.
    void judge_simple(FindingSink& sink) {
        const std::optional<double> share = far_.guessing().share();
        const std::optional<double> unlike = far_.neighbours().unlike();
        if (!is_simple() || !share || !unlike || far_.guessing().loss().is_game()) return;
        const bool tells = *unlike < std::min(neighbours_most_, *share / 3);
        // A schedule that went to its end was meant to. A single matrix may only have been slow.
        const std::optional<FarFromFit::Found> far = is_at_end_ ? far_.found() : std::nullopt;
        const bool is_stuck =
            (stands_still() && !is_over()) || (far && far->is_certain && layers_.size() > 1);
        const bool on = tells && *share > neighbours_most_ && is_stuck;
        if (on) fire_simple(*share, *unlike, sink);
        else if (fired_simple_ && *share < 0.9 * neighbours_most_) sink.clear("simple");
        fired_simple_ = fired_simple_ || on;
    }

    // Of several layers in front of the last one none has more than a few units.
    [[nodiscard]] const Layer* thin_layer() const {
        const Layer* found = nullptr;
        std::int64_t most_in = 0;
        int count = 0;
        for (const Layer& layer : layers_) {
            if (layer.module == last_) continue;
            if (layer.width > kThin) return nullptr;
            ++count;
            most_in = std::max(most_in, layer.in);
            if (found == nullptr || layer.place < found->place) found = &layer;
        }
        return count >= kThinLayers && most_in >= 2 * kThin ? found : nullptr;
    }
    void judge_thin(FindingSink& sink) {
        const Layer* thin = last_.empty() ? nullptr : thin_layer();
        const std::optional<double> share = far_.guessing().share();
        if (thin == nullptr || !share || fired_ || fired_simple_ || far_.guessing().loss().is_game()) return;
        if (2 * far_.guessing().loss().count() < steps_) return;
        if (*share > kThinShare && *share < kIncomparable && !is_falling()) fire_thin(*thin, *share, sink);
    }

    void judge(FindingSink& sink) {
        judge_one_factor(sink);
        if (!fired_) judge_simple(sink);
        if (fired_simple_) return;
        const std::optional<Narrow> narrow = narrow_layer();
        const std::optional<double> share = narrow ? share_of(*narrow) : std::nullopt;
        if (!share || far_.guessing().loss().is_game()) return;
        const bool on = *share > share_ && *share < kIncomparable && !is_falling() && !is_over();
        if (on) fire(*narrow, *share, sink);
        else if (fired_ && *share < 0.9 * share_) sink.clear("layer");
        fired_ = fired_ || on;
    }
    [[nodiscard]] bool is_over() const {
        return far_.rates().is_known() && far_.rates().now() < 0.05 * far_.rates().peak();
    }
    // At no lower a rate than before, over the last third of the run.
    [[nodiscard]] bool stands_still() const {
        const auto means = far_.guessing().loss().blocks().means();
        const auto third = means.last(means.size() / 3);
        const bool is_slower = far_.rates().is_known() && far_.rates().now() < 0.5 * far_.rates().peak();
        return third.size() >= 8 && fall() < 0.05 && trend_z(third) > -2 && !is_slower;
    }
    [[nodiscard]] bool is_falling() const { return fall() > 0.15; }
    // Over the last third of the run, as a share of the loss at its beginning; of a short run, 1.
    [[nodiscard]] double fall() const {
        const auto means = far_.guessing().loss().blocks().means();
        const auto third = means.last(means.size() / 3);
        if (third.size() < 4) return 1;
        const auto part = std::max<std::size_t>(third.size() / 4, 1);
        const auto level_of = [](std::span<const double> some) { return median({some.begin(), some.end()}); };
        return 1 - level_of(third.last(part)) / level_of(third.first(part));
    }

    void fire(const Narrow& narrow, double share, FindingSink& sink) const {
        const Layer& last = *narrow.last;
        model::Finding finding;
        finding.key = "layer";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.layer = narrow.before != nullptr ? narrow.before->module : last.module;
        finding.tensor = base::format("weight/{}.weight", last.module);
        finding.message = base::format(
            "{} makes {} outputs of {} {}, and after {} steps the loss is {}, {:.0f} % of that of guessing: "
            "more does not pass through so few.",
            last.module, last.out, last.in, last.in == 1 ? "number" : "numbers",
            far_.guessing().loss().count(), human_number(far_.guessing().level()), 100 * share);
        finding.fix = base::format("Widen what {} is given from {} to {} or more.", last.module, last.in,
                                   std::max<std::int64_t>(16, 2 * last.out));
        if (last.is_table) {
            // What is drawn at random behind few rows is known no better by more columns.
            finding.severity = model::Severity::kInfo;
            finding.layer = last.module;
            finding.message = base::format(
                "The {} scores are products with the rows of {}, which have {} numbers, and after {} steps "
                "the loss is {}, {:.0f} % of that of guessing: so few tell few rows apart.",
                last.out, last.module, last.in, far_.guessing().loss().count(),
                human_number(far_.guessing().level()), 100 * share);
            finding.fix = base::format("Give {} {} columns or more instead of {}.", last.module,
                                       kUsualColumns, last.in);
        }
        finding.evidence.push_back({"numbers that the last layer is given", static_cast<double>(last.in),
                                    "numbers that it makes", static_cast<double>(last.out)});
        finding.evidence.push_back({"share of the loss of guessing", share, "limit", share_});
        finding.plots = {{far_.guessing().loss().tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    void fire_thin(const Layer& thin, double share, FindingSink& sink) const {
        model::Finding finding;
        finding.key = "thin";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.tensor = base::format("weight/{}.weight", thin.module);
        finding.layer = thin.module;
        finding.message = base::format(
            "No layer in front of {} has more than {} units, from {} on, and after {} steps the loss is "
            "{:.0f} % of that of guessing.",
            last_, kThin, thin.module, far_.guessing().loss().count(), 100 * share);
        finding.fix = base::format(
            "Look at what the widths are computed from: a multiplier, a division of whole numbers, one that "
            "is made twice. Widen {} and the layers behind it.",
            thin.module);
        finding.evidence.push_back({"share of the loss of guessing", share, "limit", kThinShare});
        finding.plots = {{far_.guessing().loss().tensor(), "value"}};
        sink.fire(std::move(finding));
    }
    void fire_one_factor(double share, FindingSink& sink) const {
        const Layer& first = layers_.front();
        model::Finding finding;
        finding.key = "factor";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.layer = first.module;
        finding.tensor = base::format("weight/{}.weight", first.module);
        finding.places = layers_.size();
        finding.message = base::format(
            "The model is {} tables of one number a row ({} has {} rows), and after {} steps the loss is {}, "
            "{:.0f} % of that of guessing: beside a bias each row has one factor.",
            layers_.size(), first.module, first.out, far_.guessing().loss().count(),
            human_number(far_.guessing().level()), 100 * share);
        finding.fix =
            base::format("Give {} and the table it is multiplied with 8 columns or more.", first.module);
        finding.evidence.push_back({"columns of each table", 1, "usual", 8});
        finding.evidence.push_back({"share of the loss of guessing", share, "limit", share_});
        finding.plots = {{far_.guessing().loss().tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    void fire_simple(double share, double unlike, FindingSink& sink) const {
        std::int64_t widest = 0;
        const Layer* widest_layer = &layers_.front();
        for (const Layer& layer : layers_) {
            if (layer.module == last_ || layer.width <= widest) continue;
            widest = layer.width;
            widest_layer = &layer;
        }
        model::Finding finding;
        finding.key = "simple";
        finding.severity = model::Severity::kWarning;
        finding.first_step = 0;
        finding.layer = widest_layer->module;
        finding.tensor = base::format("weight/{}.weight", widest_layer->module);
        finding.message = base::format(
            "The model {}, and after {} steps the loss is {:.0f} % of that of guessing, though its inputs "
            "tell more: of {:.0f} rows of them, labels of nearest ones differ {:.0f} % as much as those of "
            "any two.",
            widest == 0 ? std::string("is one matrix, which is linear")
                        : base::format("has no more than {} units in front of its last layer", widest),
            far_.guessing().loss().count(), 100 * share, far_.neighbours().rows(), 100 * unlike);
        finding.fix = widest == 0
                          ? "Add a hidden layer with a nonlinearity, or features that are products of "
                            "inputs: no line parts such classes."
                          : base::format("Widen {} from {} units to {} or more.", widest_layer->module,
                                         widest, 4 * widest);
        finding.evidence.push_back({"share of the loss of guessing", share, "limit", neighbours_most_});
        for (model::Evidence& item : far_.neighbours().evidence())
            finding.evidence.push_back(std::move(item));
        finding.plots = {{far_.guessing().loss().tensor(), "value"}};
        sink.fire(std::move(finding));
    }

    std::uint64_t steps_;
    double share_, narrow_, neighbours_most_;
    FarFromFit far_;
    bool fired_ = false, fired_simple_ = false, fired_factor_ = false, is_at_end_ = false;
    std::string last_;
    std::int64_t scores_ = 0;  // that a classification is given for each row
    std::vector<Layer> layers_;
    std::vector<bool> is_learnt_;  // by tensor
};

std::vector<model::Requirement> low_capacity_needs(const Parameters&) {
    std::vector<model::Requirement> all = far_from_fit_requirements(kLowCapacity.name);
    for (model::Requirement& more : maker_requirements(kLowCapacity.name)) all.push_back(std::move(more));
    all.push_back({"weights",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 0, .dense_until = 2},
                   kLowCapacity.name});
    return all;
}

}  // namespace

RuleEntry builtin::low_capacity() {
    return {&kLowCapacity, &low_capacity_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<LowCapacity>(p); }};
}

}  // namespace traindbg::rules
