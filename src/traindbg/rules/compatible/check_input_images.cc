// CheckInputImages: images whose mean is far from zero.

#include <algorithm>
#include <cmath>
#include <map>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/rules/compatible/common.h"
#include "traindbg/rules/compatible/compatible.h"

namespace traindbg::rules::compatible {
namespace {

const model::RuleInfo kCompatibleCheckInputImages = {
    .name = "CheckInputImages",
    .title = "Check input images",
    .summary = "The input images are not normalised.",
    .when =
        "Once `threshold_samples` images were seen in the inputs whose names match `regex`, the absolute "
        "mean of the values of some channel is more than `threshold_mean`; `channel` is the dimension of the "
        "channels.",
    .why = "Nets learn slower, and some not at all, from inputs whose mean is far from zero.",
    .fix = "Subtract the mean of the training data from each channel, e.g. torchvision.transforms.Normalize.",
    .healthy = "Images in [0, 1] have a mean near 0.5 and fire; most nets learn from them.",
    .cost = "Whole inputs at every 500th step of training.",
    .original = "CheckInputImages",
    .source = std::string(kSource),
    .severity = model::Severity::kWarning,
    .parameters = {{"threshold_mean", "value", 0.2, 0, 1e300, "largest absolute mean"},
                   {"threshold_samples", "images", 500, 1, 1e15, "images from which it judges",
                    model::ParameterType::kWhole},
                   {"regex", "", ".*hybridsequential0_input_0", 0, 0, "names of inputs",
                    model::ParameterType::kPattern},
                   {"channel", "dimension", 1, 0, 16, "dimension of the channels",
                    model::ParameterType::kWhole}},
    .readings =
        "A tensor of images has at least three dimensions, the first of which are the images. The mean is "
        "that of all images so far. The default of `regex` also stands for every input of a model with "
        "images, whatever it is called here.",
};

class CheckInputImages final : public CompatibleRule {
  public:
    explicit CheckInputImages(const Parameters& parameters)
        : CompatibleRule("fewer whole images were recorded than `threshold_samples`"),
          selection_({}, {parameters.text("regex")},
                     is_default(kCompatibleCheckInputImages, parameters, "regex")
                         ? +[](const model::TensorInfo& info) { return info.role == model::Role::kInput; }
                         : nullptr),
          limit_(parameters.at("threshold_mean")),
          samples_(parameters.at("threshold_samples")),
          channel_(static_cast<std::size_t>(parameters.at("channel"))) {}

    void on_step(const model::StepView& step, FindingSink& sink) override {
        bool any = false;
        std::vector<Place> met;
        for (const model::RawTensor& raw : step.record->raw) {
            if (raw.shape.size() < 3 || channel_ >= raw.shape.size()) continue;
            if (!selection_.includes(step, raw.tensor)) continue;
            const auto values = values_of(raw);
            if (!values || values->empty()) continue;
            Images& images = images_[raw.tensor];
            const Channels channels(channel_, raw.shape);
            images.sums.resize(std::max(images.sums.size(), channels.count()));
            images.counts.resize(images.sums.size());
            for (std::size_t i = 0; i < values->size(); ++i) {
                images.sums[channels.of(i)] += (*values)[i];
                ++images.counts[channels.of(i)];
            }
            images.seen += static_cast<double>(raw.shape[0]);
            if (images.seen < samples_) continue;
            any = looked(raw.tensor);
            double mean = 0;
            for (std::size_t c = 0; c < images.sums.size(); ++c) {
                const double each = images.sums[c] / static_cast<double>(images.counts[c]);
                if (std::abs(each) > std::abs(mean)) mean = each;
            }
            if (std::abs(mean) > limit_) met.push_back({raw.tensor, mean});
        }
        if (!any) return;
        if (met.empty()) return pass(sink);
        model::Finding finding = finding_at(step, met);
        finding.message =
            base::format("A channel of {} has a mean of {} over {:.0f} images.", finding.tensor,
                         base::human_number(met.front().value), images_[met.front().tensor].seen);
        finding.fix = kCompatibleCheckInputImages.fix;
        finding.evidence.push_back({"mean", met.front().value, "limit", limit_});
        fire(sink, std::move(finding));
    }

  private:
    struct Images {
        std::vector<double> sums;  // by channel
        std::vector<std::uint64_t> counts;
        double seen = 0;
    };

    Selection selection_;
    double limit_, samples_;
    std::size_t channel_;
    std::map<model::TensorId, Images> images_;
};

std::vector<model::Requirement> compatible_check_input_images_needs(const Parameters&) {
    return {{"inputs",
             model::Mode::kTrain,
             model::What::kStatistics | model::What::kRaw,
             {.every = kSaveInterval},
             kCompatibleCheckInputImages.name}};
}

}  // namespace

RuleEntry check_input_images() {
    return {
        &kCompatibleCheckInputImages, &compatible_check_input_images_needs,
        [](const Parameters& p) -> std::unique_ptr<Rule> { return std::make_unique<CheckInputImages>(p); },
        true};
}

}  // namespace traindbg::rules::compatible
