// Confusion: a classifier that takes classes for others.

#include <map>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"
#include "traindbg/rules/compatible/original_names.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleConfusion = {
    .name = "Confusion",
    .title = "Confusion",
    .summary = "A classifier takes some classes for others.",
    .when =
        "Over the labels and predictions of the run so far: of what is predicted to be some class, less than "
        "the share `min_diag` is of it, or more than `max_off_diag` is of one other class. Labels are the "
        "tensors called `labels` or in the collection `labels_collection`, predictions those called "
        "`predictions` or in `predictions_collection`; there are `category_no` classes.",
    .why =
        "It says which classes a model cannot tell apart, where the accuracy says only that there are some.",
    .fix =
        "Look at samples of these classes: wrong labels, too few of them, features that do not tell them "
        "apart.",
    .healthy =
        "At the start of a training every classifier does this. Classes that nothing was predicted to be are "
        "left out.",
    .cost = "Whole labels and predictions at every 500th step.",
    .original = "Confusion",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters =
        {{"category_no",
          "classes",
          {},
          2,
          1e6,
          "how many classes there are; none: as many as were seen",
          model::ParameterType::kWhole},
         {"labels", "", "labels", 0, 0, "name of the labels", model::ParameterType::kText},
         {"predictions", "", "predictions", 0, 0, "name of the predictions", model::ParameterType::kText},
         {"labels_collection", "", "labels", 0, 0, "collection of the labels", model::ParameterType::kText},
         {"predictions_collection", "", "predictions", 0, 0, "collection of the predictions",
          model::ParameterType::kText},
         {"min_diag", "share", 0.9, 0, 1, "least share of a predicted class that must be of it"},
         {"max_off_diag", "share", 0.1, 0, 1, "largest share of it that may be of one other class"}},
    .readings =
        "The original prints its ratio of the diagonal as c[i][i] divided by the sum over j of c[j][j], "
        "which for several classes of one size cannot reach 0.9; and that off the diagonal as c[j][i] "
        "divided by the sum over j of c[j][i]. Taken is the second sum for both: the column of a predicted "
        "class. Without `category_no` the classes are those seen. It is documented for XGBoost only; here it "
        "judges any labels and predictions: of a row of several predictions the largest is the class, of a "
        "number that is not whole the nearest whole one.",
};

class Confusion final : public CompatibleRule {
  public:
    explicit Confusion(const Parameters& parameters)
        : CompatibleRule("no whole labels and predictions were recorded at one step"),
          labels_name_(parameters.text("labels")),
          predictions_name_(parameters.text("predictions")),
          labels_collection_(parameters.text("labels_collection")),
          predictions_collection_(parameters.text("predictions_collection")),
          classes_(static_cast<std::size_t>(parameters.number_if_any("category_no").value_or(0))),
          least_(parameters.at("min_diag")),
          most_(parameters.at("max_off_diag")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        const model::RawTensor* labels = nullptr;
        const model::RawTensor* predictions = nullptr;
        for (const model::RawTensor& raw : step.record->raw) {
            const model::TensorInfo& info = step.info(raw.tensor);
            if (labels == nullptr &&
                (info.name == labels_name_ || is_in_collection(info, labels_collection_)))
                labels = &raw;
            if (predictions == nullptr &&
                (info.name == predictions_name_ || is_in_collection(info, predictions_collection_)))
                predictions = &raw;
        }
        if (labels == nullptr || predictions == nullptr) return;
        const auto truth = classes_of(*labels, 0);
        const auto guesses = truth ? classes_of(*predictions, truth->size()) : std::nullopt;
        if (!guesses || guesses->size() != truth->size() || truth->empty()) return;
        bool any = false;
        for (std::size_t i = 0; i < truth->size(); ++i) {
            const std::int64_t t = (*truth)[i], g = (*guesses)[i];
            const auto limit = static_cast<std::int64_t>(classes_ == 0 ? kMostClasses : classes_);
            if (t < 0 || g < 0 || t >= limit || g >= limit) continue;
            any = true;
            ++counts_[{t, g}];
            ++columns_[g];
        }
        if (!any) return;
        std::optional<std::pair<std::int64_t, double>> diagonal;
        for (const auto& [column, all] : columns_) {
            const auto hit = counts_.find({column, column});
            const double share = hit == counts_.end() ? 0 : hit->second / all;
            if (share < least_ && (!diagonal || share < diagonal->second)) diagonal = {column, share};
        }
        std::optional<std::pair<std::pair<std::int64_t, std::int64_t>, double>> off;
        for (const auto& [cell, count] : counts_) {
            if (cell.first == cell.second) continue;
            const double share = count / columns_[cell.second];
            if (share > most_ && (!off || share > off->second)) off = {cell, share};
        }
        if (!diagonal && !off) return pass(sink);
        model::Finding finding = finding_at(step, {{predictions->tensor, 0}});
        if (off) {
            finding.message = base::format("{:.0f} % of what is predicted to be class {} is of class {}.",
                                           100 * off->second, off->first.second, off->first.first);
            finding.evidence.push_back({"share of one other class", off->second, "limit", most_});
        } else {
            finding.message = base::format("Only {:.0f} % of what is predicted to be class {} is of it.",
                                           100 * diagonal->second, diagonal->first);
        }
        if (diagonal)
            finding.evidence.push_back({"share of the class itself", diagonal->second, "limit", least_});
        finding.fix = kCompatibleConfusion.fix;
        fire(sink, std::move(finding));
    }

  private:
    static constexpr std::size_t kMostClasses = 10'000;

    std::string labels_name_, predictions_name_, labels_collection_, predictions_collection_;
    std::size_t classes_;
    double least_, most_;
    std::map<std::pair<std::int64_t, std::int64_t>, double> counts_;  // of label and prediction
    std::map<std::int64_t, double> columns_;                          // by prediction
};

std::vector<model::Requirement> compatible_confusion_needs(const Parameters&) {
    std::vector<model::Requirement> out;
    for (const char* collection : {"labels", "predictions"})
        out.push_back({collection,
                       model::Mode::kGlobal,
                       model::What::kStatistics | model::What::kRaw,
                       {.every = kSaveInterval},
                       kCompatibleConfusion.name});
    return out;
}

}  // namespace

RuleEntry confusion() {
    return {&kCompatibleConfusion, &compatible_confusion_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<Confusion>(p); },
            true};
}

}  // namespace traindbg::rules::compatible
