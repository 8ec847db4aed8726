#include "traindbg/cli/plan_costs.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "traindbg/base/bytes.h"
#include "traindbg/base/clock.h"
#include "traindbg/format/records.h"
#include "traindbg/reduce/reducer.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::cli {
namespace {

using model::Mode;
using model::Requirement;
using model::Role;
using model::StepIndex;
using model::StepRecord;
using model::TensorId;
using model::TensorInfo;
using model::What;

constexpr std::uint64_t kLooksBack = 100;  // steps of which the idle ones are named
constexpr std::size_t kUsualBins = 60;     // of a histogram that nobody has seen

bool is_scalar(Role role) noexcept { return role == Role::kLoss || role == Role::kMetric; }

// Bytes per second of `work`, which goes through `bytes`: the best of some tries.
template <typename Work>
double speed_of(std::size_t bytes, int tries, Work&& work) {
    std::int64_t best = INT64_MAX;
    for (int i = 0; i < tries; ++i) {
        const std::int64_t begin = base::monotonic_nanos();
        work();
        best = std::min(best, base::monotonic_nanos() - begin);
    }
    return static_cast<double>(bytes) * 1e9 / static_cast<double>(std::max<std::int64_t>(best, 1));
}

// Bytes of the payload of a step with this record, more than those of an empty one.
double encoded_size(const StepRecord& record, const model::TensorTable& table,
                    std::span<const format::RawPlace> raw) {
    const auto size = [&](const StepRecord& one, std::span<const format::RawPlace> places) {
        base::ByteWriter out;
        format::encode_step(out, one, table, places);
        return static_cast<double>(out.size());
    };
    return size(record, raw) - size(StepRecord{}, {});
}

double element_bytes(const TensorInfo& info) {
    return static_cast<double>(format::element_count(info.shape)) *
           static_cast<double>(tensor::byte_size(info.dtype));
}

// Of a tensor whose channels nobody has seen.
double usual_channel_bytes(const TensorInfo& info) {
    constexpr double kBytesEach = 3 * sizeof(float);
    if (info.shape.empty()) return kBytesEach;
    const std::int64_t channels = info.shape[model::channel_dimension(info.role, info.shape.size())];
    return channels > std::int64_t{model::kMostChannels} ? 0 : kBytesEach * static_cast<double>(channels);
}

}  // namespace

Speeds measure_speeds() {
    constexpr std::size_t kElements = std::size_t{4} << 20;  // more than caches hold
    std::vector<float> values(kElements);
    for (std::size_t i = 0; i < kElements; ++i) values[i] = static_cast<float>(i % 8191) / 8191.0F - 0.5F;
    std::vector<std::byte> copy(kElements * sizeof(float));
    const std::int64_t shape[] = {static_cast<std::int64_t>(kElements)};
    const std::int64_t part[] = {static_cast<std::int64_t>(kElements / 8)};
    const tensor::TensorView all{values.data(), tensor::DType::kFloat32, shape, {}};
    const tensor::TensorView some{values.data(), tensor::DType::kFloat32, part, {}};
    const std::int64_t channels[] = {512, static_cast<std::int64_t>(kElements / 8 / 512)};
    const tensor::TensorView square{values.data(), tensor::DType::kFloat32, channels, {}};
    bool is_fine = true;
    Speeds speeds;
    speeds.statistics =
        speed_of(copy.size(), 3, [&] { is_fine = reduce::statistics(all).is_ok() && is_fine; });
    speeds.histogram =
        speed_of(copy.size() / 8, 2, [&] { is_fine = reduce::histogram(some).is_ok() && is_fine; });
    speeds.channels = speed_of(copy.size() / 8, 2,
                               [&] { is_fine = reduce::channel_statistics(square, 0).is_ok() && is_fine; });
    speeds.digest = speed_of(copy.size() / 8, 2, [&] { is_fine = reduce::digest(some).is_ok() && is_fine; });
    speeds.copy = speed_of(copy.size(), 3,
                           [&] { is_fine = reduce::copy_with_statistics(all, copy).is_ok() && is_fine; });
    return is_fine ? speeds : Speeds{1e9, 1e8, 1e9, 1e9, 1e9};
}

std::vector<std::string> askers(const Requirement& requirement) {
    constexpr std::string_view kBetween = ", ";
    std::vector<std::string> names;
    std::string_view rest = requirement.asked_by;
    while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(kBetween), rest.size());
        if (end > 0) names.emplace_back(rest.substr(0, end));
        rest.remove_prefix(std::min(end + kBetween.size(), rest.size()));
    }
    if (names.empty()) names.emplace_back("?");
    return names;
}

PlanCosts::PlanCosts(capture::CapturePlan plan, std::vector<TensorInfo> tensors,
                     std::span<const StepRecord> seen, const Speeds& speeds, double step_nanos)
    : plan_(std::move(plan)), tensors_(std::move(tensors)), speeds_(speeds), step_nanos_(step_nanos) {
    measure_sizes(seen);
    std::map<std::pair<Role, std::vector<std::size_t>>, std::size_t> known;
    for (TensorId id = 0; id < tensors_.size(); ++id) {
        plan_.note_tensor(tensors_[id]);
        if (tensors_[id].name.empty()) continue;  // its description was lost
        const auto [place, is_new] =
            known.try_emplace({tensors_[id].role, plan_.requirements_for(tensors_[id])}, groups_.size());
        if (is_new) groups_.push_back({place->first.first, place->first.second, {}});
        groups_[place->second].tensors.push_back(id);
    }
    std::stable_sort(groups_.begin(), groups_.end(),
                     [](const Group& a, const Group& b) { return a.role < b.role; });
}

void PlanCosts::measure_sizes(std::span<const StepRecord> seen) {
    sizes_.resize(tensors_.size());
    std::vector<bool> has_statistics(tensors_.size());
    for (const StepRecord& record : seen) {
        for (const auto& sample : record.tensors) {
            if (sample.tensor >= sizes_.size() || has_statistics[sample.tensor]) continue;
            has_statistics[sample.tensor] = true;
            StepRecord one;
            one.tensors = {{sample.tensor, sample.statistics, {}}};
            Sizes& sizes = sizes_[sample.tensor];
            sizes.statistics = encoded_size(one, tensors_, {});
            if (sample.units.units == 0) continue;
            one.tensors = {sample};
            sizes.units = encoded_size(one, tensors_, {}) - sizes.statistics;
        }
        for (const auto& sample : record.classes) {
            if (sample.tensor >= sizes_.size()) continue;
            StepRecord one;
            one.classes = {sample};
            sizes_[sample.tensor].classes = encoded_size(one, tensors_, {});
        }
        for (const auto& sample : record.histograms) {
            if (sample.tensor >= sizes_.size()) continue;
            StepRecord one;
            one.histograms = {sample};
            sizes_[sample.tensor].histogram = encoded_size(one, tensors_, {});
        }
        for (const auto& sample : record.channels) {
            if (sample.tensor >= sizes_.size()) continue;
            StepRecord one;
            one.channels = {sample};
            sizes_[sample.tensor].channels = encoded_size(one, tensors_, {});
        }
    }
    for (TensorId id = 0; id < tensors_.size(); ++id) {
        const TensorInfo& info = tensors_[id];
        if (info.name.empty()) continue;
        StepRecord one;
        if (model::is_number(info)) {
            one.scalars = {{id, 1.0}};
        } else {
            model::TensorSample sample{.tensor = id, .statistics = {}, .units = {}};
            sample.statistics.count = format::element_count(info.shape);
            one.tensors = {sample};
        }
        Sizes& sizes = sizes_[id];
        if (!has_statistics[id]) sizes.statistics = encoded_size(one, tensors_, {});
        if (sizes.units == 0) sizes.units = 8;
        if (sizes.histogram == 0) sizes.histogram = 2.0 * kUsualBins;
        if (sizes.classes == 0) sizes.classes = 64;
        if (sizes.channels == 0) sizes.channels = usual_channel_bytes(info);
        sizes.digest = sizeof(model::Digest) + 1;
        const format::RawPlace place{
            .tensor = id,
            .dtype = info.dtype,
            .shape = info.shape,
            .offset = std::uint64_t{1} << 30,
            .bytes = static_cast<std::uint64_t>(std::max(element_bytes(info), 0.0)),
        };
        sizes.place = encoded_size(StepRecord{}, tensors_, {&place, 1});
    }
}

Cost PlanCosts::cost(TensorId id, What what) const {
    Cost out;
    if (id >= tensors_.size() || what == What::kNothing) return out;
    const TensorInfo& info = tensors_[id];
    const Sizes& sizes = sizes_[id];
    const double elements = element_bytes(info);
    const auto seconds = [](double bytes, double speed) { return speed > 0 ? bytes / speed * 1e9 : 0.0; };
    const bool is_number = model::is_number(info);
    const double of_number =
        info.role == Role::kLoop ? speeds_.nanos_per_loop_number : speeds_.nanos_per_number;
    out.nanos = is_number ? of_number : speeds_.nanos_per_tensor;
    // Of an update the parameter is copied before the step, and read with the copy after it.
    const double passes = info.role == Role::kWeightUpdate ? 2 : 1;
    if (!is_number && info.role == Role::kWeightUpdate) out.nanos += seconds(elements, speeds_.copy);
    if (model::has(what, What::kRaw) && !is_number) {
        constexpr double kAlignment = 64;  // where the bytes of whole tensors begin
        out.bytes += sizes.place + elements + kAlignment / 2;
        out.nanos += seconds(elements, speeds_.copy);
        if (model::has(what, What::kStatistics)) out.bytes += sizes.statistics;
    } else if (model::has(what, What::kStatistics)) {
        out.bytes += sizes.statistics;
        if (!is_number) out.nanos += seconds(elements * passes, speeds_.statistics);
    }
    if (model::has(what, What::kUnits) && info.activation != model::ActivationKind::kNone) {
        out.bytes += sizes.units;
        out.nanos += seconds(elements, speeds_.statistics);
    }
    if (model::has(what, What::kHistogram) && !is_number) {
        out.bytes += sizes.histogram;
        out.nanos += seconds(elements, speeds_.histogram);
    }
    if (model::has(what, What::kChannels) && !is_number) {
        out.bytes += sizes.channels;
        out.nanos += seconds(elements, speeds_.channels);
    }
    if (model::has(what, What::kDigest) && !is_number) {
        out.bytes += sizes.digest;
        out.nanos += seconds(elements, speeds_.digest);
    }
    if (model::has(what, What::kClasses)) out.bytes += sizes.classes;
    return out;
}

std::vector<PlanRow> PlanCosts::rows() const {
    std::vector<PlanRow> rows;
    for (const Group& group : groups_) {
        std::vector<PlanRow> of_group;
        for (const std::size_t index : group.requirements) {
            const Requirement& requirement = plan_.config().requirements[index];
            if (requirement.what == What::kNothing) continue;
            const std::string when = capture::when_in_words(requirement);
            const auto same = std::find_if(of_group.begin(), of_group.end(), [&](const PlanRow& row) {
                return row.what == requirement.what && row.mode == requirement.mode && row.when == when;
            });
            if (same != of_group.end()) {
                for (std::string& who : askers(requirement))
                    if (std::find(same->asked_by.begin(), same->asked_by.end(), who) == same->asked_by.end())
                        same->asked_by.push_back(std::move(who));
                continue;
            }
            PlanRow row{.collection = std::string(model::collection_of(group.role)),
                        .tensors = group.tensors,
                        .what = requirement.what,
                        .mode = requirement.mode,
                        .when = when,
                        .asked_by = askers(requirement),
                        .cost = {}};
            for (const TensorId id : group.tensors) row.cost += cost(id, requirement.what);
            of_group.push_back(std::move(row));
        }
        rows.insert(rows.end(), of_group.begin(), of_group.end());
    }
    return rows;
}

std::vector<std::size_t> PlanCosts::without_tensors() const {
    std::vector<bool> has_any(plan_.config().requirements.size());
    for (const Group& group : groups_)
        for (const std::size_t index : group.requirements) has_any[index] = true;
    std::vector<std::size_t> none;
    for (std::size_t i = 0; i < has_any.size(); ++i)
        if (!has_any[i]) none.push_back(i);
    return none;
}

PlanSummary PlanCosts::summary(std::uint64_t steps) const {
    PlanSummary out;
    out.steps = steps;
    capture::CapturePlan plan = plan_;  // what is due by time changes it
    std::map<std::pair<std::size_t, What>, Cost> costs;
    for (StepIndex step = 0; step < std::max(steps, kLooksBack); ++step) {
        plan.begin_step(Mode::kTrain, step,
                        static_cast<std::int64_t>(static_cast<double>(step) * step_nanos_));
        Cost of_step;
        bool is_idle = true;
        for (std::size_t g = 0; g < groups_.size(); ++g) {
            const What what = plan.due(groups_[g].tensors.front(), Mode::kTrain, step);
            if (what == What::kNothing) continue;
            is_idle = is_idle && is_scalar(groups_[g].role);
            const auto [known, is_new] = costs.try_emplace({g, what});
            if (is_new)
                for (const TensorId id : groups_[g].tensors) known->second += cost(id, what);
            of_step += known->second;
        }
        if (step == 0) of_step.nanos += speeds_.nanos_of_first_step;
        if (step < kLooksBack && is_idle) out.idle.push_back(step);
        if (step >= steps) continue;
        out.all += of_step;
        if (!is_idle) ++out.captured;
        if (of_step.bytes + of_step.nanos > out.most.bytes + out.most.nanos) out.most = of_step;
    }
    return out;
}

}  // namespace traindbg::cli
