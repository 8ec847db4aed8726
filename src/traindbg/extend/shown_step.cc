#include "traindbg/extend/shown_step.h"

#include <algorithm>
#include <utility>

namespace traindbg::extend {
namespace {

using model::What;

// No kind of data has this bit.
constexpr std::uint8_t kKnown = 128;
// What trials of the original have, whose rules alone are shown everything.
constexpr What kOfTrials = What::kStatistics | What::kRaw;

}  // namespace

What ShownTensor::what() const noexcept {
    What what = What::kNothing;
    if (has_statistics || scalar != nullptr) what |= What::kStatistics;
    if (has_units) what |= What::kUnits;
    if (classes != nullptr) what |= What::kClasses;
    if (histogram != nullptr) what |= What::kHistogram;
    if (channels != nullptr) what |= What::kChannels;
    if (digest != nullptr) what |= What::kDigest;
    if (raw != nullptr) what |= What::kRaw;
    return what;
}

StepFilter::StepFilter(std::vector<model::Requirement> needs, bool everything)
    : needs_(std::move(needs)), everything_(everything), wanted_(model::kModeCount) {}

What StepFilter::wanted(const model::StepView& view, model::TensorId id) {
    if (everything_) return kOfTrials;
    std::vector<std::uint8_t>& known = wanted_[static_cast<std::size_t>(view.mode())];
    if (known.size() <= id) known.resize(view.tensors->size());
    if (known[id] == 0) {
        const model::TensorInfo& info = view.info(id);
        What what = What::kNothing;
        for (const model::Requirement& need : needs_) {
            if (need.mode != view.mode() && need.mode != model::Mode::kGlobal) continue;
            if (need.collection == model::collection_of(info.role) ||
                std::find(info.collections.begin(), info.collections.end(), need.collection) !=
                    info.collections.end())
                what |= need.what;
        }
        known[id] = static_cast<std::uint8_t>(static_cast<std::uint8_t>(what) | kKnown);
    }
    return static_cast<What>(known[id] & ~kKnown);
}

ShownTensor* StepFilter::place(const model::StepView& view, model::TensorId id) {
    if (places_.size() <= id) places_.resize(view.tensors->size());
    if (places_[id] == 0) {
        step_.tensors.push_back({.info = &view.info(id)});
        places_[id] = static_cast<std::uint32_t>(step_.tensors.size());
    }
    return &step_.tensors[places_[id] - 1];
}

const ShownStep& StepFilter::show(const model::StepView& view) {
    step_.view = view;
    step_.tensors.clear();
    std::fill(places_.begin(), places_.end(), 0U);
    const model::StepRecord& record = *view.record;
    for (const model::TensorSample& sample : record.tensors) {
        const What what = wanted(view, sample.tensor);
        const bool has_units = has(what, What::kUnits) && sample.units.units != 0;
        if (!has(what, What::kStatistics) && !has_units) continue;
        ShownTensor& tensor = *place(view, sample.tensor);
        tensor.sample = &sample;
        tensor.has_statistics = has(what, What::kStatistics);
        tensor.has_units = has_units;
    }
    for (const model::ScalarSample& scalar : record.scalars)
        if (has(wanted(view, scalar.tensor), What::kStatistics)) place(view, scalar.tensor)->scalar = &scalar;
    for (const model::ClassSample& sample : record.classes)
        if (has(wanted(view, sample.tensor), What::kClasses))
            place(view, sample.tensor)->classes = &sample.counts;
    for (const model::HistogramSample& sample : record.histograms)
        if (has(wanted(view, sample.tensor), What::kHistogram))
            place(view, sample.tensor)->histogram = &sample.bins;
    for (const model::ChannelSample& sample : record.channels)
        if (has(wanted(view, sample.tensor), What::kChannels))
            place(view, sample.tensor)->channels = &sample.channels;
    for (const model::DigestSample& sample : record.digests)
        if (has(wanted(view, sample.tensor), What::kDigest))
            place(view, sample.tensor)->digest = &sample.digest;
    for (const model::RawTensor& raw : record.raw)
        if (has(wanted(view, raw.tensor), What::kRaw)) place(view, raw.tensor)->raw = &raw;
    std::sort(step_.tensors.begin(), step_.tensors.end(),
              [](const ShownTensor& a, const ShownTensor& b) { return a.info->id < b.info->id; });
    return step_;
}

}  // namespace traindbg::extend
