// ClassImbalance: classes that are rare, or that are predicted wrongly.

#include <algorithm>
#include <map>

#include "traindbg/base/format.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleClassImbalance = {
    .name = "ClassImbalance",
    .title = "Class imbalance",
    .summary = "Some classes are far more frequent than others, or are mostly predicted wrongly.",
    .when =
        "Once `samples` labels were counted: the most frequent class has more than `threshold_imbalance` "
        "times as many labels as the rarest, or of some class more than the share `threshold_misprediction` "
        "is predicted wrongly. Labels and predictions are what a classification loss was given, or the "
        "tensors that match `labels_regex` and `predictions_regex`, if one of these is given or no such loss "
        "was counted; with `argmax` the largest prediction of a row is the class.",
    .why = "A model can do well on average by leaving a rare class out.",
    .fix = "Weight the classes in the loss, draw them evenly, or collect more of the rare ones.",
    .healthy =
        "Imbalance as such is no fault: ours, `class_imbalance`, fires where a rare class is also missed. At "
        "the start of a training most predictions are wrong.",
    .cost = "Labels and predictions of every 500th step of training, counted.",
    .original = "ClassImbalance",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"threshold_imbalance", "ratio", 10, 0, 1e300, "largest ratio of two classes' labels"},
                   {"threshold_misprediction", "share", 0.7, 0, 1, "largest share of a class that is wrong"},
                   {"samples", "labels", 500, 1, 1e15, "labels from which it judges",
                    model::ParameterType::kWhole},
                   {"argmax", "", false, 0, 0, "predictions are probabilities of classes",
                    model::ParameterType::kFlag},
                   {"labels_regex", "", ".*labels", 0, 0, "names of labels", model::ParameterType::kPattern},
                   {"predictions_regex", "", ".*predictions", 0, 0, "names of predictions",
                    model::ParameterType::kPattern}},
    .readings =
        "The original attaches no collection. Classes without a label so far are not classes. Counts are of "
        "the whole run. Predictions that are rows of probabilities are not judged without `argmax`; of a "
        "single number between 0 and 1 the nearest whole one is the class. What a loss was given is counted "
        "with or without `argmax`. Tensors that match a pattern that is given have to be recorded whole, for "
        "which a hook configuration can ask.",
};

class ClassImbalance final : public CompatibleRule {
  public:
    explicit ClassImbalance(const Parameters& parameters)
        : CompatibleRule("fewer labels were recorded than `samples`"),
          by_pattern_(!has_default_patterns(parameters)),
          argmax_(parameters.flag("argmax")),
          labels_({}, {parameters.text("labels_regex")}),
          predictions_({}, {parameters.text("predictions_regex")}),
          ratio_(parameters.at("threshold_imbalance")),
          wrong_(parameters.at("threshold_misprediction")),
          samples_(parameters.at("samples")) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        for (const model::ClassSample& sample : step.record->classes) {
            if (by_pattern_) break;
            for (std::size_t i = 0; i < sample.counts.labels.size(); ++i)
                add(static_cast<std::int64_t>(i), sample.counts.labels[i], sample.counts.hits[i]);
            tensor_ = sample.tensor;
            any = true;
            break;  // one loss; others judge the same samples again
        }
        if (!any) any = add_whole(step);
        if (!any || total_ < samples_) return;
        const auto by_labels = [](const auto& a, const auto& b) { return a.second.labels < b.second.labels; };
        const auto [rare, common] = std::minmax_element(classes_.begin(), classes_.end(), by_labels);
        const double ratio = common->second.labels / rare->second.labels;
        const auto missed = std::max_element(
            classes_.begin(), classes_.end(),
            [](const auto& a, const auto& b) { return a.second.wrong() < b.second.wrong(); });
        const bool is_imbalanced = ratio > ratio_;
        if (!is_imbalanced && !(missed->second.wrong() > wrong_)) return pass(sink);
        model::Finding finding = finding_at(step, {{tensor_, 0}});
        if (is_imbalanced) {
            finding.message =
                base::format("Class {} has {:.0f} labels and class {} {:.0f}: {:.3g} times as many.",
                             common->first, common->second.labels, rare->first, rare->second.labels, ratio);
            finding.evidence.push_back({"most frequent / rarest class", ratio, "limit", ratio_});
        } else {
            finding.message =
                base::format("{:.0f} % of the {:.0f} samples of class {} are predicted wrongly.",
                             100 * missed->second.wrong(), missed->second.labels, missed->first);
            finding.evidence.push_back({"share predicted wrongly", missed->second.wrong(), "limit", wrong_});
        }
        finding.fix = kCompatibleClassImbalance.fix;
        fire(sink, std::move(finding));
    }

    static bool has_default_patterns(const Parameters& parameters) {
        return is_default(kCompatibleClassImbalance, parameters, "labels_regex") &&
               is_default(kCompatibleClassImbalance, parameters, "predictions_regex");
    }

  private:
    struct Class {
        double labels = 0;
        double hits = 0;
        [[nodiscard]] double wrong() const { return 1 - hits / labels; }
    };

    void add(std::int64_t which, double labels, double hits) {
        if (labels <= 0) return;
        Class& known = classes_[which];
        known.labels += labels;
        known.hits += hits;
        total_ += labels;
    }

    bool add_whole(const model::StepView& step) {
        const model::RawTensor* labels = nullptr;
        const model::RawTensor* predictions = nullptr;
        for (const model::RawTensor& raw : step.record->raw) {
            if (labels == nullptr && labels_.includes(step, raw.tensor)) labels = &raw;
            if (predictions == nullptr && predictions_.includes(step, raw.tensor)) predictions = &raw;
        }
        if (labels == nullptr || predictions == nullptr) return false;
        const auto classes = classes_of(*labels, 0);
        if (!classes) return false;
        const auto guesses = classes_of(*predictions, classes->size());
        if (!guesses || guesses->size() != classes->size()) return false;
        if (!argmax_ && !is_one_for_each(*predictions, classes->size())) {
            why_not("predictions are rows of probabilities: set argmax");
            return false;
        }
        for (std::size_t i = 0; i < classes->size(); ++i)
            add((*classes)[i], 1, (*classes)[i] == (*guesses)[i] ? 1 : 0);
        tensor_ = labels->tensor;
        return true;
    }

    static bool is_one_for_each(const model::RawTensor& raw, std::size_t labels) {
        std::size_t count = 1;
        for (const std::int64_t size : raw.shape) count *= static_cast<std::size_t>(size);
        return count == labels;
    }

    bool by_pattern_, argmax_;
    Selection labels_, predictions_;
    double ratio_, wrong_, samples_;
    double total_ = 0;
    std::map<std::int64_t, Class> classes_;
    model::TensorId tensor_ = 0;
};

std::vector<model::Requirement> compatible_class_imbalance_needs(const Parameters& parameters) {
    if (!ClassImbalance::has_default_patterns(parameters)) return {};
    return {{"classes",
             model::Mode::kTrain,
             model::What::kClasses,
             {.every = kSaveInterval},
             kCompatibleClassImbalance.name}};
}

}  // namespace

RuleEntry class_imbalance() {
    return {&kCompatibleClassImbalance, &compatible_class_imbalance_needs,
            [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<ClassImbalance>(p); },
            true};
}

}  // namespace traindbg::rules::compatible
