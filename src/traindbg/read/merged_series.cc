#include "traindbg/read/merged_series.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/format/records.h"
#include "traindbg/model/statistics.h"
#include "traindbg/read/statistic.h"

namespace traindbg::read {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::Role;
using model::Statistics;
using model::TensorInfo;
using model::WorkerId;

using Key = std::pair<model::Mode, model::StepIndex>;

struct Holder {
    WorkerId worker = 0;
    const TensorInfo* info = nullptr;
};

// What is merged of one step.
struct Whole {
    Statistics statistics;
    double sum = 0;  // of scalars
    std::size_t parts = 0;
};

bool is_scalar(Role role) noexcept { return role == Role::kLoss || role == Role::kMetric; }

bool has_batch(Role role) noexcept {
    switch (role) {
        case Role::kInput:
        case Role::kOutput:
        case Role::kBlockOutput:
        case Role::kActivation:
        case Role::kPrediction:
        case Role::kLabel:
        case Role::kAttention:
        case Role::kOther: return true;
        default: return false;
    }
}

std::vector<Holder> holders_of(const Run& run, const std::string& tensor) {
    std::vector<Holder> holders;
    for (const WorkerId worker : run.workers())
        for (const TensorInfo& info : run.tensors(worker))
            if (info.name == tensor) {
                holders.push_back({worker, &info});
                break;
            }
    return holders;
}

// Of parts that several workers hold, the first. Where the place of a part is not known, all are kept, and
// the number of elements tells whether one was counted twice.
void keep_each_part_once(std::vector<Holder>& holders) {
    std::vector<Holder> kept;
    for (const Holder& holder : holders) {
        const bool is_known = std::any_of(kept.begin(), kept.end(), [&](const Holder& other) {
            return other.info->shard && holder.info->shard &&
                   other.info->shard->offset.size() == holder.info->shard->whole_shape.size() &&
                   other.info->shard->offset == holder.info->shard->offset &&
                   other.info->shape == holder.info->shape;
        });
        if (!is_known) kept.push_back(holder);
    }
    holders = std::move(kept);
}

// Whether there is nothing to merge: the first worker's record is that of the whole tensor.
bool is_whole(const Run& run, std::vector<Holder> holders) {
    const auto has_shard = [](const Holder& holder) { return holder.info->shard.has_value(); };
    if (std::none_of(holders.begin(), holders.end(), has_shard))
        return !has_batch(holders.front().info->role) || holders.size() + run.missing_workers().size() == 1;
    if (!std::all_of(holders.begin(), holders.end(), has_shard)) return false;
    keep_each_part_once(holders);
    const TensorInfo& first = *holders.front().info;
    return holders.size() == 1 && !first.shard->is_partial() && first.shape == first.shard->whole_shape;
}

// A unit may be in several parts, bits are hashed in their order, and products of parts may be 0 or infinite
// where that of the whole is neither.
Status cannot_merge(std::string_view statistic) {
    return {Code::kInvalidArgument,
            base::format("statistic '{}' is of each part and cannot be merged: ask for it worker by worker",
                         statistic)};
}

// The statistics of a worker's part as far as `statistic` of the whole needs them.
Result<std::map<Key, Statistics>> read_part(Run& run, WorkerId worker, const std::string& tensor,
                                            std::string_view statistic) {
    struct Partly {
        Statistics statistics;
        std::size_t fields = 0;
    };
    if (const std::string_view base = internal::find_statistic(statistic)->base; !base.empty())
        statistic = base;  // which merges; what is derived follows from the whole
    std::vector<std::string_view> names = {"count", "nan", "inf"};
    if (statistic == "std") names.emplace_back("mean");
    if (std::find(names.begin(), names.end(), statistic) == names.end()) names.push_back(statistic);
    std::map<Key, Partly> found;
    for (const std::string_view name : names) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::vector<SeriesPoint> points, run.series(worker, tensor, name));
        for (const SeriesPoint& point : points) {
            Partly& entry = found[{point.mode, point.step}];
            Statistics& s = entry.statistics;
            ++entry.fields;
            const auto number = [&] { return static_cast<std::uint64_t>(point.value); };
            if (name == "count") s.count = number();
            else if (name == "nan") s.nan = number();
            else if (name == "inf") s.positive_infinite = number();
            else if (name == "zero") s.zero = number();
            else if (name == "min") s.min = point.value;
            else if (name == "max") s.max = point.value;
            else if (name == "mean") s.mean = point.value;
            else if (name == "std") s.std = point.value;
            else if (name == "l1") s.l1 = point.value;
            else if (name == "l2") s.l2 = point.value;
        }
    }
    std::map<Key, Statistics> whole;
    for (const auto& [key, entry] : found)
        if (entry.fields == names.size()) whole.emplace(key, entry.statistics);
    return whole;
}

}  // namespace

Result<MergedSeries> merged_series(Run& run, const std::string& tensor, std::string_view statistic) {
    std::vector<Holder> holders = holders_of(run, tensor);
    const std::vector<WorkerId> workers = run.workers();
    const WorkerId first = !holders.empty() ? holders.front().worker : workers.empty() ? 0 : workers.front();
    // Tells of words that do not exist, and is the answer where there is nothing to merge.
    TRAINDBG_ASSIGN_OR_RETURN(std::vector<SeriesPoint> firsts, run.series(first, tensor, statistic));

    const TensorInfo& info = *holders.front().info;
    const bool is_sharded =
        std::any_of(holders.begin(), holders.end(), [](const Holder& holder) { return holder.info->shard; });
    MergedSeries merged;
    const bool takes_mean = is_scalar(info.role) && statistic == "value";
    const internal::StatisticKind kind = internal::find_statistic(statistic)->kind;
    const bool can_merge =
        kind != internal::StatisticKind::kUnits && kind != internal::StatisticKind::kDigest;
    if (!can_merge && !is_whole(run, holders)) return cannot_merge(statistic);
    if (!can_merge || (!is_sharded && !has_batch(info.role) && !takes_mean)) {
        merged.workers = {first};
        merged.points = std::move(firsts);
        const auto before = [](const SeriesPoint& a, const SeriesPoint& b) {
            return Key(a.mode, a.step) < Key(b.mode, b.step);
        };
        std::stable_sort(merged.points.begin(), merged.points.end(), before);
        return merged;
    }
    for (const Holder& holder : holders)
        if (holder.info->shard && holder.info->shard->is_partial())
            return Status(
                Code::kInvalidArgument,
                base::format("tensor '{}' cannot be merged: it was recorded before its parts were "
                             "reduced ({}); ask for it worker by worker",
                             base::printable(tensor), base::printable(holder.info->shard->placement)));

    if (is_sharded) keep_each_part_once(holders);
    std::map<Key, Whole> wholes;
    for (const Holder& holder : holders) {
        merged.workers.push_back(holder.worker);
        if (takes_mean) {
            TRAINDBG_ASSIGN_OR_RETURN(const std::vector<SeriesPoint> points,
                                      run.series(holder.worker, tensor, statistic));
            for (const SeriesPoint& point : points) {
                Whole& whole = wholes[{point.mode, point.step}];
                whole.sum += point.value;
                ++whole.parts;
            }
            continue;
        }
        TRAINDBG_ASSIGN_OR_RETURN(const auto parts, read_part(run, holder.worker, tensor, statistic));
        for (const auto& [key, part] : parts) {
            Whole& whole = wholes[key];
            model::merge(whole.statistics, part);
            ++whole.parts;
        }
    }
    // A part without elements is not recorded: of a distributed tensor, its elements tell whether all is
    // there.
    const std::uint64_t elements = info.shard ? format::element_count(info.shard->whole_shape) : 0;
    const std::size_t parts = holders.size() + run.missing_workers().size();
    for (const auto& [key, whole] : wholes) {
        if (is_sharded ? whole.statistics.count != elements : whole.parts != parts) {
            merged.left_out.push_back(key);
            continue;
        }
        const std::optional<double> value =
            takes_mean ? whole.sum / static_cast<double>(whole.parts)
                       : Run::statistic_of({info.id, whole.statistics, {}}, statistic);
        if (value) merged.points.push_back({key.first, key.second, *value});
    }
    return merged;
}

Result<WorkerId> worker_of_whole(Run& run, const std::string& tensor) {
    std::vector<Holder> holders = holders_of(run, tensor);
    const std::vector<WorkerId> workers = run.workers();
    // Nobody has it: that names what is near.
    if (holders.empty()) return run.digests(workers.empty() ? 0 : workers.front(), tensor).status();
    const WorkerId first = holders.front().worker;
    if (!is_whole(run, std::move(holders))) return cannot_merge("fingerprint");
    return first;
}

}  // namespace traindbg::read
