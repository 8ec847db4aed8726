// Columns of a table that say nothing: one value in all rows.

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"
#include "traindbg/rules/training_loss.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kConstantFeature = {
    .name = "constant_feature",
    .title = "Features that are constant",
    .summary = "Columns of the model's input hold one value in all rows: they tell nothing of a sample.",
    .when =
        "A feature of an input table has the same value in every training row that was looked at.\n"
        "- Constant feature (info): an input is of floating point with two dimensions (rows and features). "
        "A feature has one value in every row of the training batches looked at, at least `rows` rows in "
        "all. A note, as it may be meant.\n"
        "- Windows: an input of three dimensions is such a table of samples times moments, where the first "
        "layer with a matrix takes its last dimension. Of a convolution, this has to be told by the number "
        "of its input channels, which is not that of the moments.\n"
        "- Filled table: at least half of the other columns are never 0.\n"
        "- Filled but for flags: this holds only apart from columns that go from 0 to 1, such as those of "
        "one-hot codes. Then columns of zeros do not count as constant, and there must be at least two "
        "filled columns, and one for every four of the 0-to-1 columns.\n"
        "- Only flags beside a filled column: constant columns count where the squares of two add up to 1. "
        "There must be four such columns, or two with values other than 0 and 1: sines and cosines of an "
        "angle that is always the same, or categories that always are.\n"
        "- Not counted: the end of a curve that is held there, as a temperature at a wall, or of a series "
        "less its first value. It is the first or the last of eight columns or more.\n"
        "- Such a curve: the values of the next three columns reach to both sides of its own, those of the "
        "second clearly further than those of the first, and those of the third about as far or further.\n"
        "- A whole input, at the end of the run (info): all columns of a table of three or more are 0 in "
        "`sure` rows. At ten looks at gradients or more, a layer whose weight takes so many features never "
        "got a gradient of that weight, but of its bias.\n"
        "- A whole input, warning: the training compares its outputs with targets by a loss function, has "
        "100 steps or more, and its loss ends above half of its start.\n"
        "- Warning: `sure` rows have the one value, the table has at most 40 features, and the training "
        "compares its outputs with targets by a loss function. At least three features vary, and at most "
        "60 % are constant.\n"
        "- Still a note: the value is 1 in all of the constant features.",
    .why =
        "A column that was filled with a default, joined wrongly or cut off by a filter is missing without a "
        "word. Where it varies once the model is used, its weights are those that it was initialised with.",
    .fix = "Look where the column is made. Leave it out, or mend what fills it.",
    .healthy =
        "A column of ones in place of a bias; tables of which most columns are 0 in most rows (words, "
        "pixels), which are not judged, nor is the value that is the least one of three other columns (a "
        "background), nor the end of a curve that is held there; a column without a finite value, which "
        "other rules tell of; an input of zeros that is filled at a later stage of the run, or without which "
        "the training comes far (info): flags that are never set, a first state, conditions that another "
        "training brings.",
    .cost =
        "The extremes and zeros of each feature of the inputs, and one pass over all gradients, at the first "
        "20 steps and then at every 50th.",
    .original = "",
    .source = "scikit-learn documentation, sklearn.feature_selection.VarianceThreshold",
    .severity = model::Severity::kWarning,
    .parameters = {{"rows", "rows", 200, 10, 1e9, "rows that have to have the one value"},
                   {"sure", "rows", 600, 10, 1e9, "so many, and it is a warning"}},
};

class ConstantFeature final : public Rule {
  public:
    explicit ConstantFeature(const Parameters& parameters)
        : rows_(parameters.at("rows")), sure_(parameters.at("sure")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        if (step.mode() != model::Mode::kTrain) return;
        loss_.observe(step);
        look_at_gradients(step);
        for (const model::ChannelSample& sample : step.record->channels) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kInput || !is_float(info.dtype) || !is_table(step, info)) continue;
            Table& table = tables_[sample.tensor];
            if (!add(table, sample.channels, info)) continue;
            ++judged_;
            judge(table, info, sink);
        }
    }
    void on_end(FindingSink& sink) override {
        for (const auto& [id, table] : tables_)
            if (!table.is_mixed && is_all_zero(table)) judge_whole(table, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        return "no input of the model was seen that is a table of numbers";
    }

  private:
    struct Table {
        std::string name;  // of the input
        std::vector<float> low, high;
        std::vector<bool> has_zero;
        double rows = 0;
        bool is_mixed = false;  // has another number of features now and then
        bool is_told = false;
    };

    static bool is_float(tensor::DType dtype) {
        using tensor::DType;
        return dtype == DType::kFloat16 || dtype == DType::kBFloat16 || dtype == DType::kFloat32 ||
               dtype == DType::kFloat64;
    }

    // Rows and features; or samples, moments and features, as the first layer takes them. That the last
    // dimension of others is features, nobody says: it may be the width of a picture.
    static bool is_table(const model::StepView& step, const model::TensorInfo& input) {
        if (input.shape.size() != 3) return input.shape.size() == 2;
        const model::TensorInfo* first = nullptr;
        for (const model::TensorInfo& info : *step.tensors)
            if (info.role == model::Role::kWeight && info.layer >= 0 && info.shape.size() >= 2 &&
                (first == nullptr || info.layer < first->layer))
                first = &info;
        if (first == nullptr || first->shape[1] != input.shape[2]) return false;
        return first->shape.size() == 2 || input.shape[1] != input.shape[2];
    }

    static bool add(Table& table, const model::ChannelStatistics& channels, const model::TensorInfo& info) {
        const std::size_t count = channels.channels();
        if (count < 2 || info.shape[0] < 1) return false;
        if (table.low.empty()) {
            table.low = channels.min;
            table.high = channels.max;
            table.has_zero.resize(count);
            table.name = info.name;
        }
        table.is_mixed = table.is_mixed || table.low.size() != count;
        if (table.is_mixed) return false;
        for (std::size_t i = 0; i < count; ++i) {
            table.low[i] = std::min(table.low[i], channels.min[i]);
            table.high[i] = std::max(table.high[i], channels.max[i]);
            table.has_zero[i] = table.has_zero[i] || channels.zero[i] > 0;
        }
        table.rows +=
            static_cast<double>(info.shape.size() == 3 ? info.shape[0] * info.shape[1] : info.shape[0]);
        return true;
    }

    // Of a layer with one matrix and a bias, as what it is given tells: by zeros alone the bias is trained,
    // and the matrix never is.
    struct Layer {
        std::int64_t features = 0;
        std::uint64_t looks = 0;
        bool is_weight_reached = false, is_bias_reached = false;
    };

    void look_at_gradients(const model::StepView& step) {
        for (const model::TensorSample& sample : step.record->tensors) {
            const model::TensorInfo& info = step.info(sample.tensor);
            if (info.role != model::Role::kGradient || info.module.empty()) continue;
            const bool is_reached = sample.statistics.l2 != 0 || sample.statistics.not_finite() > 0;
            if (info.shape.size() == 2 && info.name.ends_with(".weight") &&
                info.module_type.find("Embedding") == std::string::npos) {
                Layer& layer = layers_[info.module];
                layer.features = info.shape[1];
                ++layer.looks;
                layer.is_weight_reached = layer.is_weight_reached || is_reached;
            } else if (info.shape.size() == 1 && info.name.ends_with(".bias")) {
                Layer& layer = layers_[info.module];
                layer.is_bias_reached = layer.is_bias_reached || is_reached;
            }
        }
    }
    // What takes nothing but zeros, of so many features; empty where nothing does.
    [[nodiscard]] std::string_view layer_of_zeros(std::size_t features) const {
        for (const auto& [module, layer] : layers_)
            if (layer.features == static_cast<std::int64_t>(features) && layer.looks >= kFewestLooks &&
                !layer.is_weight_reached && layer.is_bias_reached)
                return module;
        return {};
    }
    static bool is_all_zero(const Table& table) {
        const auto is_zero = [](float value) { return value == 0; };
        return std::all_of(table.low.begin(), table.low.end(), is_zero) &&
               std::all_of(table.high.begin(), table.high.end(), is_zero) &&
               std::all_of(table.has_zero.begin(), table.has_zero.end(), [](bool has) { return has; });
    }
    // At the end of the run, for a later stage may fill it. Zeros may be meant, as a first state is, or
    // flags that are never set: what speaks against that is a training that does not come far.
    void judge_whole(const Table& table, FindingSink& sink) const {
        const std::size_t count = table.low.size();
        const std::string_view layer = count < kFewestOthers ? std::string_view() : layer_of_zeros(count);
        if (table.rows < sure_ || layer.empty()) return;
        model::Finding finding;
        finding.key = table.name;
        const bool comes_not_far = loss_.count() >= kPatience && loss_.level() > kFarOfStart * loss_.start();
        finding.severity = loss_.is_known_function() && !loss_.is_game() && comes_not_far
                               ? model::Severity::kWarning
                               : model::Severity::kInfo;
        finding.tensor = table.name;
        finding.places = count;
        finding.message = base::format(
            "All {} features of {} are 0 in all of {:.0f} rows, and the weight of {}, which takes as many, "
            "never got a gradient.",
            count, table.name, table.rows, layer);
        finding.evidence.push_back(
            {"features with one value", static_cast<double>(count), "features", static_cast<double>(count)});
        finding.evidence.push_back({"rows", table.rows, "limit", sure_});
        finding.fix =
            "Look where this input is made: codes that were not found in a list of categories (as text and "
            "as numbers they differ), a join without matches, an array that was never filled.";
        sink.fire(std::move(finding));
    }

    // A curve that is held at its first place, or its last: `value` is there always, and next to it the
    // values spread to both sides, the more the further away. Columns that are not places of one curve
    // have spreads of their own.
    static bool is_end_of_curve(const Table& table, std::size_t end) {
        const std::size_t count = table.low.size();
        if (count < kFewestPlaces || (end != 0 && end + 1 != count)) return false;
        const double value = table.low[end];
        const auto reaches = [&](std::size_t away, bool is_above) {
            const std::size_t place = end == 0 ? away : end - away;
            return is_above ? table.high[place] - value : value - table.low[place];
        };
        for (const bool is_above : {false, true}) {
            const double first = reaches(1, is_above), second = reaches(2, is_above);
            const bool grows = first > 0 && first <= kNearer * second && second <= kMostGrowth * first;
            if (!grows || reaches(3, is_above) < kAboutAsFar * second) return false;
        }
        return true;
    }

    static bool is_background(const Table& table, float value) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < table.low.size(); ++i)
            if (table.low[i] == value && table.high[i] > value) ++count;
        return count >= 3;
    }

    // Columns with one value that say one thing together: sine and cosine of an angle, or the flags of a
    // category. A bias and a category that never is look like one such pair, but not like two.
    static std::vector<std::size_t> codes_of(const Table& table) {
        std::vector<std::size_t> constant, codes;
        if (table.low.size() > kMostFeatures) return codes;
        for (std::size_t i = 0; i < table.low.size(); ++i)
            if (table.low[i] == table.high[i] && (table.low[i] != 0 || table.has_zero[i]))
                constant.push_back(i);
        std::size_t ones = 0;
        bool is_angle = false;
        for (const std::size_t i : constant) {
            const double one = table.low[i];
            const bool is_code = std::any_of(constant.begin(), constant.end(), [&](std::size_t other) {
                const double two = table.low[other];
                return other != i && std::abs(one * one + two * two - 1) < 1e-5;
            });
            if (!is_code) continue;
            codes.push_back(i);
            ones += one != 0 ? 1 : 0;
            is_angle = is_angle || (one != 0 && one != 1);
        }
        if (!is_angle && (ones < 2 || codes.size() - ones < 2)) codes.clear();
        return codes;
    }

    void judge(Table& table, const model::TensorInfo& info, FindingSink& sink) const {
        if (table.rows < rows_) return;
        std::vector<std::size_t> constant;
        std::size_t filled = 0, left_out = 0, flags = 0;
        for (std::size_t i = 0; i < table.low.size(); ++i) {
            if (table.low[i] == table.high[i]) {
                // No finite element at all; or the background of pixels, which others have as their least.
                const bool is_empty = table.low[i] == 0 && !table.has_zero[i];
                const bool is_no_column = is_background(table, table.low[i]) || is_end_of_curve(table, i);
                if (!is_empty && !is_no_column) constant.push_back(i);
                else ++left_out;
            } else if (!table.has_zero[i]) {
                ++filled;
            } else if (table.low[i] == 0 && table.high[i] == 1) {
                ++flags;
            }
        }
        const std::size_t others = table.low.size() - constant.size() - left_out;
        // A code of which one is never used is a column of zeros, too.
        // Many flags beside one measure are a bag of words.
        const bool is_filled_but_for_flags =
            2 * filled < others && filled >= 2 && 4 * filled >= flags && 2 * filled >= others - flags;
        if (is_filled_but_for_flags)
            std::erase_if(constant, [&](std::size_t i) { return table.low[i] == 0; });
        const bool is_of_flags = filled >= 1 && filled + flags == others;
        if (2 * filled < others && !is_filled_but_for_flags)
            constant = is_of_flags ? codes_of(table) : std::vector<std::size_t>{};
        if (constant.empty() || others == 0) {
            if (std::exchange(table.is_told, false)) sink.clear(info.name);
            return;
        }
        table.is_told = true;
        std::string which;
        for (std::size_t i = 0; i < std::min<std::size_t>(constant.size(), kMostNamed); ++i)
            which += base::format("{}{} ({})", i == 0 ? "" : ", ", constant[i],
                                  base::human_number(static_cast<double>(table.low[constant[i]])));
        if (constant.size() > kMostNamed) which += base::format(" and {} more", constant.size() - kMostNamed);
        model::Finding finding;
        finding.key = info.name;
        const bool is_bias =
            std::all_of(constant.begin(), constant.end(), [&](std::size_t i) { return table.low[i] == 1; });
        const bool is_sure =
            table.rows >= sure_ && loss_.is_known_function() && !loss_.is_game() &&
            table.low.size() <= kMostFeatures && others >= kFewestOthers && !is_bias &&
            static_cast<double>(constant.size()) <= kMostConstant * static_cast<double>(table.low.size());
        finding.severity = is_sure ? model::Severity::kWarning : model::Severity::kInfo;
        finding.tensor = info.name;
        finding.places = constant.size();
        finding.message = base::format(
            "{} of the {} features of {} {} one value in all of {:.0f} rows: index {}.", constant.size(),
            table.low.size(), info.name, constant.size() == 1 ? "has" : "have", table.rows, which);
        finding.evidence.push_back({"features with one value", static_cast<double>(constant.size()),
                                    "features", static_cast<double>(table.low.size())});
        finding.evidence.push_back({"rows", table.rows, "limit", rows_});
        finding.fix =
            "Look where these columns are made: a default, a join, a filter; leave them out if they are so.";
        sink.fire(std::move(finding));
    }

    static constexpr std::size_t kMostNamed = 5;
    static constexpr std::size_t kMostFeatures = 40;  // of a table whose columns somebody thought of
    static constexpr std::size_t kFewestOthers = 3;
    static constexpr double kMostConstant = 0.6;       // of all
    static constexpr std::uint64_t kFewestLooks = 10;  // at gradients
    static constexpr std::uint64_t kPatience = 100;    // steps in which a training may come far
    static constexpr double kFarOfStart = 0.5;         // of the loss, at the end
    static constexpr std::size_t kFewestPlaces = 8;    // of a curve
    // How far the values beside the end of a curve reach, from it: the first as a share of the second, the
    // second in times of the first, as of a square, and the third as a share of the second.
    static constexpr double kNearer = 0.85, kMostGrowth = 6, kAboutAsFar = 0.85;

    double rows_, sure_;
    TrainingLoss loss_;
    std::uint64_t judged_ = 0;
    std::map<model::TensorId, Table> tables_;
    std::map<std::string, Layer, std::less<>> layers_;  // by module
};

std::vector<model::Requirement> constant_feature_needs(const Parameters&) {
    std::vector<model::Requirement> all = loss_requirements(kConstantFeature.name);
    all.push_back({"inputs",
                   model::Mode::kTrain,
                   model::What::kChannels,
                   {.every = 50, .dense_until = 20},
                   kConstantFeature.name});
    all.push_back({"gradients",
                   model::Mode::kTrain,
                   model::What::kStatistics,
                   {.every = 50, .dense_until = 20},
                   kConstantFeature.name});
    return all;
}

}  // namespace

RuleEntry builtin::constant_feature() {
    return {&kConstantFeature, &constant_feature_needs, [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<ConstantFeature>(p);
            }};
}

}  // namespace traindbg::rules
