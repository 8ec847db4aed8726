// Features that an ensemble of trees makes next to no use of.

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/builtin/builtin.h"

namespace traindbg::rules {
namespace {

const model::RuleInfo kLowFeatureImportance = {
    .name = "low_feature_importance",
    .title = "Low feature importance",
    .summary = "Some features of an ensemble of trees carry next to no importance.",
    .when =
        "When the run is over, after `min_rounds` rounds and more of which tensors "
        "`feature_importance/TYPE/FEATURE` were recorded, as the original's XGBoost hook does: at the last "
        "one some of three or more features have less than `share` of an equal share of all importance. Of "
        "several types the first of total_gain, gain, total_cover, cover and weight counts. XGBoost tells "
        "nothing of features that are in no tree: where all are called f0, f1 and so on, those whose numbers "
        "are missing in between count, too.",
    .why =
        "A column of which nothing is used costs time and memory, may stand for one that was joined wrongly "
        "or is constant, and may be used by chance later on.",
    .fix = "Look at what these columns hold; leave them out and see whether the evaluation stays as good.",
    .healthy =
        "Features that are copies of others, which have their importance; features for rare cases; few "
        "rounds. A note (info).",
    .cost =
        "What an XGBoost run of the original recorded, or what is given to `traindbg.save` under such names.",
    .original = "",
    .source =
        "Rauschmayr et al., \"Amazon SageMaker Debugger: a system for real-time insights into machine "
        "learning model training\", MLSys 2021 (Low feature importance); Breiman, \"Random forests\", "
        "Machine Learning 45 (2001); Guyon, Elisseeff, \"An introduction to variable and feature "
        "selection\", JMLR 3 (2003)",
    .severity = model::Severity::kInfo,
    .parameters = {{"share", "share", 0.01, 0, 1, "of an equal share, below which it is next to nothing"},
                   {"min_rounds", "rounds", 20, 1, 1e9, "after which it judges"}},
};

constexpr std::string_view kImportance = "feature_importance/";
constexpr std::array<std::string_view, 5> kTypes = {"total_gain", "gain", "total_cover", "cover", "weight"};
constexpr std::size_t kFewestFeatures = 3;
constexpr std::size_t kMostNamed = 5;

// The number of a feature that XGBoost called itself: 7 of "f7".
std::optional<std::uint32_t> number_of_feature(std::string_view name) {
    if (name.size() < 2 || name.front() != 'f') return std::nullopt;
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    return number;
}

class LowFeatureImportance final : public Rule {
  public:
    explicit LowFeatureImportance(const Parameters& parameters)
        : share_(parameters.at("share")),
          min_rounds_(static_cast<std::uint64_t>(parameters.at("min_rounds"))) {}

    void on_step(const model::StepView& step, FindingSink&) override {
        bool is_first = true;
        const auto add = [&](model::TensorId id, double value) {
            const std::optional<Feature>& feature = feature_of(step, id);
            if (!feature || !std::isfinite(value) || value < 0) return;
            if (std::exchange(is_first, false)) begin_round(step);
            types_[feature->type][feature->name] = {value, id};
        };
        for (const model::ScalarSample& sample : step.record->scalars) add(sample.tensor, sample.value);
        for (const model::TensorSample& sample : step.record->tensors)
            if (sample.statistics.count == 1) add(sample.tensor, sample.statistics.mean);
    }
    void on_end(FindingSink& sink) override {
        const Importances* all = counted();
        if (all == nullptr || rounds_ < min_rounds_) return;
        double sum = 0;
        for (const auto& [feature, importance] : *all) sum += importance.value;
        const Missing unused = missing_in(*all);
        const auto features = static_cast<double>(all->size() + unused.count);
        if (features < kFewestFeatures || !(sum > 0)) return;
        std::vector<Low> low;
        for (const auto& [feature, importance] : *all)
            if (importance.value < share_ / features * sum)
                low.push_back({feature, importance.value / sum, importance.tensor});
        if (low.empty() && unused.count == 0) return;
        std::stable_sort(low.begin(), low.end(),
                         [](const Low& a, const Low& b) { return a.share < b.share; });
        fire(low, unused, features, sink);
    }
    [[nodiscard]] std::uint64_t steps_judged() const override {
        return rounds_ >= min_rounds_ ? rounds_seen_ : 0;
    }
    [[nodiscard]] std::string why_not_judged() const override {
        if (rounds_seen_ == 0) return "no feature importance was recorded";
        return base::format("fewer than {} rounds were seen", min_rounds_);
    }

  private:
    struct Feature {
        std::string type, name;
        std::string tensor;
    };
    struct Importance {
        double value = 0;
        model::TensorId tensor = 0;
    };
    using Importances = std::map<std::string, Importance>;
    struct Low {
        std::string feature;
        double share = 0;
        model::TensorId tensor = 0;
    };

    struct Missing {
        std::size_t count = 0;
        std::vector<std::string> names;
    };

    // Looked up once for each tensor.
    const std::optional<Feature>& feature_of(const model::StepView& step, model::TensorId id) {
        if (is_known_.size() <= id) is_known_.resize(id + 1, false);
        if (features_.size() <= id) features_.resize(id + 1);
        if (is_known_[id]) return features_[id];
        is_known_[id] = true;
        const std::string& name = step.info(id).name;
        const std::size_t begin = name.find(kImportance);
        if (begin == std::string::npos) return features_[id];
        const std::string rest = name.substr(begin + kImportance.size());
        const std::size_t slash = rest.find('/');
        if (slash != std::string::npos && slash + 1 < rest.size())
            features_[id] = {rest.substr(0, slash), rest.substr(slash + 1), name};
        return features_[id];
    }
    void begin_round(const model::StepView& step) {
        types_.clear();
        last_ = step.step();
        rounds_ = last_ + 1;
        ++rounds_seen_;
    }
    // Those of the type that tells most.
    [[nodiscard]] const Importances* counted() const {
        for (const std::string_view type : kTypes)
            if (const auto found = types_.find(std::string(type)); found != types_.end())
                return &found->second;
        return types_.empty() ? nullptr : &types_.begin()->second;
    }
    // Features in no tree, of which XGBoost tells nothing: their number, and the first few by name.
    [[nodiscard]] static Missing missing_in(const Importances& all) {
        std::vector<std::uint32_t> numbers;
        for (const auto& [feature, importance] : all) {
            const std::optional<std::uint32_t> number = number_of_feature(feature);
            if (!number) return {};
            numbers.push_back(*number);
        }
        std::sort(numbers.begin(), numbers.end());
        Missing missing;
        for (std::size_t i = 1; i < numbers.size(); ++i) {
            if (numbers[i] == numbers[i - 1]) continue;  // "f1" and "f01"
            missing.count += numbers[i] - numbers[i - 1] - 1;
            for (std::uint32_t number = numbers[i - 1] + 1;
                 number < numbers[i] && missing.names.size() < kMostNamed; ++number)
                missing.names.push_back(base::format("f{} (in no tree)", number));
        }
        return missing;
    }

    void fire(const std::vector<Low>& low, const Missing& unused, double features, FindingSink& sink) const {
        const std::size_t count = low.size() + unused.count;
        std::vector<std::string> names = unused.names;
        for (const Low& one : low)
            if (names.size() < kMostNamed)
                names.push_back(base::format("{} ({:.2g} %)", one.feature, 100 * one.share));
        model::Finding finding;
        finding.key = "features";
        finding.severity = model::Severity::kInfo;
        finding.step = last_;
        finding.first_step = last_;
        finding.places = count;
        if (!low.empty()) finding.tensor = features_[low.front().tensor]->tensor;
        finding.message = base::format(
            "After {} rounds {} of {:.0f} features ({:.0f} %) have next to no importance, where an equal "
            "share is {:.2g} %: {}{}.",
            rounds_, count, features, 100 * static_cast<double>(count) / features, 100 / features,
            base::join(names, ", "),
            count > names.size() ? base::format(" and {} more", count - names.size()) : "");
        finding.fix = kLowFeatureImportance.fix;
        finding.evidence.push_back(
            {"features without importance", static_cast<double>(count), "of", features});
        if (!low.empty()) {
            finding.evidence.push_back(
                {"share of importance", low.front().share, "limit", share_ / features});
            finding.plots = {{finding.tensor, "value"}};
        }
        sink.fire(std::move(finding));
    }

    double share_;
    std::uint64_t min_rounds_;
    std::uint64_t rounds_ = 0, rounds_seen_ = 0;
    model::StepIndex last_ = 0;
    std::map<std::string, Importances> types_;  // of the last round
    // By tensor.
    std::vector<bool> is_known_;
    std::vector<std::optional<Feature>> features_;
};

// Nothing of a PyTorch training has importances; what the user saves is recorded as it is given.
std::vector<model::Requirement> low_feature_importance_needs(const Parameters&) { return {}; }

}  // namespace

RuleEntry builtin::low_feature_importance() {
    return {&kLowFeatureImportance, &low_feature_importance_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> {
                return std::make_unique<LowFeatureImportance>(p);
            }};
}

}  // namespace traindbg::rules
