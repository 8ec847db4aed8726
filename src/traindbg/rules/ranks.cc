#include "traindbg/rules/ranks.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "traindbg/base/format.h"

namespace traindbg::rules {
namespace {

// Steps that some ranks have told and others have not, and their tensors (some 50 MB).
constexpr std::size_t kMostWaiting = 64, kMostTensors = 200'000;
constexpr std::size_t kFirstWaiting = 4;  // of them that stay: captured densely, and never to come again

std::uint64_t world_size_of(const model::WorkerMeta& meta) {
    for (const auto& [name, value] : meta.environment) {
        if (name != "WORLD_SIZE") continue;
        std::uint64_t size = 0;
        std::from_chars(value.data(), value.data() + value.size(), size);
        return size;
    }
    return 0;
}

std::size_t tensors_in(const Ranks::Together& together) {
    std::size_t all = 0;
    for (const auto& [worker, rank] : together) all += rank.weights.size() + rank.gradients.size();
    return all;
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
        const bool is_weight = info.role == model::Role::kWeight;
        if (!is_weight && info.role != model::Role::kGradient) continue;
        if (info.shard && info.shard->placement.find_first_not_of("replicate,") != std::string::npos) {
            has_parts_ = true;
            continue;
        }
        if (!is_weight && !with_gradients_) continue;
        auto& place = is_weight ? told.weights : told.gradients;
        place.insert_or_assign(std::string_view(*names_.insert(info.name).first),
                               RankStep::Tensor{info.shape, sample.statistics});
    }
    if (told.weights.empty()) told.gradients.clear();
    for (const model::ScalarSample& sample : step.record->scalars)
        told.has_loss = told.has_loss || step.info(sample.tensor).role == model::Role::kLoss;
    for (const model::DigestSample& sample : step.record->digests) {
        if (step.info(sample.tensor).role != model::Role::kInput) continue;
        told.inputs = (told.inputs ^ sample.digest.fingerprint) * 0x9E3779B97F4A7C15ULL;
    }
    if (told.weights.empty() && told.inputs == 0) return nullptr;
    tensors_ += told.weights.size() + told.gradients.size();
    const auto place = waiting_.try_emplace(step.step()).first;
    RankStep& own = place->second[step.worker];
    tensors_ -= own.weights.size() + own.gradients.size();  // 0, but of a step that it tells again
    own = std::move(told);
    if (place->second.size() < world_) {
        make_room();
        return nullptr;
    }
    completed_ = true;
    // What is older will not be completed: each rank tells its steps in order.
    for (auto older = waiting_.begin(); older != place;) older = forget(older);
    tensors_ -= tensors_in(place->second);
    complete_ = std::move(place->second);
    waiting_.erase(place);
    return &complete_;
}

void Ranks::make_room() {
    while (waiting_.size() > kMostWaiting ||
           (tensors_ > kMostTensors && waiting_.size() > kFirstWaiting + 1)) {
        forget(std::next(waiting_.begin(), kFirstWaiting));
        lost_ = true;
    }
}

Ranks::Waiting::iterator Ranks::forget(Waiting::iterator step) {
    tensors_ -= tensors_in(step->second);
    return waiting_.erase(step);
}

std::string Ranks::why_not() const {
    if (world_ < 2) return "one process trains alone";
    if (completed_) return {};
    return base::format("not all of the {} ranks recorded the same steps{}", world_,
                        lost_ ? ", or too far apart from each other" : "");
}

bool is_of_expert(std::string_view name) noexcept { return name.find("expert") != std::string_view::npos; }

bool have_same_names(const Ranks::Together& together) {
    const auto names_of = [](const RankStep& rank) {
        std::vector<std::string_view> names;
        for (const auto& [name, tensor] : rank.weights)
            if (!is_of_expert(name)) names.push_back(name);
        return names;
    };
    const std::vector<std::string_view> first = names_of(together.begin()->second);
    return std::all_of(together.begin(), together.end(),
                       [&](const auto& rank) { return names_of(rank.second) == first; });
}

}  // namespace traindbg::rules
