#include "traindbg/rules/ranks.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "traindbg/base/format.h"

namespace traindbg::rules {
namespace {

constexpr std::size_t kMostWaiting = 64;  // steps that some ranks have told and others have not

std::uint64_t world_size_of(const model::WorkerMeta& meta) {
    for (const auto& [name, value] : meta.environment) {
        if (name != "WORLD_SIZE") continue;
        std::uint64_t size = 0;
        std::from_chars(value.data(), value.data() + value.size(), size);
        return size;
    }
    return 0;
}

}  // namespace

double distance_between(const model::Statistics& a, const model::Statistics& b) noexcept {
    if (a.count != b.count) return HUGE_VAL;
    if (a.not_finite() != 0 || b.not_finite() != 0) return a.not_finite() == b.not_finite() ? 0 : HUGE_VAL;
    const double size = std::max(a.l2, b.l2);
    if (size == 0) return 0;
    const double rms = size / std::sqrt(static_cast<double>(a.count));
    return std::max({std::abs(a.min - b.min) / rms, std::abs(a.max - b.max) / rms,
                     std::abs(a.mean - b.mean) / rms, std::abs(a.l2 - b.l2) / size});
}

void Ranks::describe(const model::WorkerMeta& meta) {
    world_ = std::max(world_, world_size_of(meta));
    for (const auto& [name, value] : meta.environment)
        if (name == "data_parallel" && value == "DistributedDataParallel") is_data_parallel_ = true;
    if (!optimizers_) optimizers_ = meta.optimizers;
    else if (!(*optimizers_ == meta.optimizers)) is_one_ = false;
}

const Ranks::Together* Ranks::observe(const model::StepView& step) {
    if (step.mode() != model::Mode::kTrain) return nullptr;
    // It says all that it knows when its optimizer first steps; one without an optimizer has no more to say.
    const bool is_described = !step.meta->optimizers.empty() || step.step() >= 2;
    if (is_described && described_.insert(step.worker).second) describe(*step.meta);
    if (world_ < 2) return nullptr;
    RankStep told;
    for (const model::TensorSample& sample : step.record->tensors) {
        const model::TensorInfo& info = step.info(sample.tensor);
        if (info.role == model::Role::kInput) told.input_values += sample.statistics.count;
        if (info.role != model::Role::kWeight && info.role != model::Role::kGradient) continue;
        if (info.shard && info.shard->placement.find_first_not_of("replicate,") != std::string::npos) {
            has_parts_ = true;
            continue;
        }
        auto& place = info.role == model::Role::kWeight ? told.weights : told.gradients;
        place.insert_or_assign(info.name, RankStep::Tensor{info.shape, sample.statistics});
    }
    for (const model::DigestSample& sample : step.record->digests) {
        if (step.info(sample.tensor).role != model::Role::kInput) continue;
        told.inputs = (told.inputs ^ sample.digest.fingerprint) * 0x9E3779B97F4A7C15ULL;
    }
    if (told.weights.empty() && told.inputs == 0) return nullptr;
    Together& together = waiting_[step.step()];
    together.insert_or_assign(step.worker, std::move(told));
    if (together.size() < world_) {
        if (waiting_.size() > kMostWaiting) waiting_.erase(waiting_.begin());
        return nullptr;
    }
    completed_ = true;
    complete_ = std::move(together);
    // What is older will not be completed: each rank tells its steps in order.
    waiting_.erase(waiting_.begin(), waiting_.upper_bound(step.step()));
    return &complete_;
}

std::string Ranks::why_not() const {
    if (world_ < 2) return "one process trains alone";
    if (!completed_) return base::format("not all of the {} ranks recorded the same steps", world_);
    return {};
}

}  // namespace traindbg::rules
