#include "traindbg/compat/smdebug_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <thread>
#include <unordered_map>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/compat/smdebug_names.h"
#include "traindbg/compat/smdebug_statistics.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::compat {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::Role;
using model::TensorId;

constexpr std::chrono::milliseconds kLookAgain{200};
constexpr std::string_view kWorkerPrefix = "worker_";

std::optional<model::WorkerId> number_of(std::string_view worker) {
    if (!worker.starts_with(kWorkerPrefix)) return std::nullopt;
    worker.remove_prefix(kWorkerPrefix.size());
    model::WorkerId number = 0;
    const auto [end, error] = std::from_chars(worker.data(), worker.data() + worker.size(), number);
    if (worker.empty() || error != std::errc{} || end != worker.data() + worker.size() ||
        number > 999'999'999)
        return std::nullopt;
    return number;
}

std::uint64_t elements_of(const std::vector<std::int64_t>& shape) {
    std::uint64_t count = 1;
    for (const std::int64_t extent : shape) {
        if (extent <= 0) return 0;
        if (count > (std::uint64_t{1} << 48) / static_cast<std::uint64_t>(extent)) return 0;
        count *= static_cast<std::uint64_t>(extent);
    }
    return count;
}

bool is_scalar(Role role) noexcept { return role == Role::kLoss || role == Role::kMetric; }

std::int64_t nanos_of(double seconds) noexcept {
    return seconds > 0 && seconds < 9e9 ? static_cast<std::int64_t>(std::llround(seconds * 1e9)) : 0;
}

struct WorkerState {
    model::WorkerId id = 0;
    std::uint64_t next_step = 0;  // global
    std::uint64_t steps_given = 0;
    model::WorkerMeta meta;
    model::TensorTable tensors;
    std::unordered_map<std::string, TensorId> ids;
    std::map<std::string, std::int32_t, std::less<>> layers;  // of modules, in the order of the forward pass
};

}  // namespace

class SmdebugSource::Impl {
  public:
    Impl(std::unique_ptr<SmdebugRun> run, bool with_raw)
        : run_(std::move(run)), with_raw_(with_raw), names_(*run_) {}

    Result<std::optional<model::StepView>> next(std::chrono::nanoseconds patience);

    std::unique_ptr<SmdebugRun> run_;
    SmdebugSkips skips_;
    bool is_finishing_ = false;
    bool has_ended_ = false;

  private:
    void end();
    std::optional<std::pair<std::string, SmdebugStep>> choose();
    WorkerState& state_of(const std::string& worker);
    Status load(const std::string& worker, WorkerState& state, const SmdebugStep& step);
    Status load_sample(const std::string& worker, WorkerState& state, const SmdebugStep& step,
                       const SmdebugSample& sample);
    void load_value(model::TensorInfo& info, SmdebugValue value);
    Status load_reductions(const std::string& worker, const SmdebugStep& step, const SmdebugSample& sample,
                           model::TensorInfo& info);
    void note_time(const SmdebugValue& value);
    void order_modules(WorkerState& state, const std::vector<SmdebugSample>& samples) const;
    TensorId id_of(WorkerState& state, std::string_view name);

    bool with_raw_;
    SmdebugNames names_;
    std::map<std::string, WorkerState> workers_;
    model::StepRecord record_;
};

WorkerState& SmdebugSource::Impl::state_of(const std::string& worker) {
    const auto [found, is_new] = workers_.try_emplace(worker);
    WorkerState& state = found->second;
    if (!is_new) return state;
    const auto is_taken = [&](model::WorkerId id) {
        return std::any_of(workers_.begin(), workers_.end(), [&](const auto& other) {
            return &other.second != &state && other.second.id == id;
        });
    };
    state.id = number_of(worker).value_or(0);
    while (is_taken(state.id)) ++state.id;
    state.meta.worker = state.id;
    state.meta.environment = {{"recorded_by", "SageMaker Debugger client"}, {"worker", worker}};
    return state;
}

void SmdebugSource::Impl::end() {
    has_ended_ = true;
    for (const auto& [worker, state] : workers_)
        skips_.late += run_->steps_of(worker).size() - state.steps_given;
}

// The worker that is least far, and its next step.
std::optional<std::pair<std::string, SmdebugStep>> SmdebugSource::Impl::choose() {
    std::optional<std::pair<std::string, SmdebugStep>> best;
    for (const std::string& worker : run_->workers()) {
        const std::vector<SmdebugStep> steps = run_->steps_of(worker, state_of(worker).next_step, 1);
        if (steps.empty()) continue;
        if (!best || steps.front().global_step < best->second.global_step) best = {worker, steps.front()};
    }
    return best;
}

// Outputs come in the order of the forward pass; parameters in that of the model's definition.
void SmdebugSource::Impl::order_modules(WorkerState& state, const std::vector<SmdebugSample>& samples) const {
    const auto add = [&](const std::string& module) {
        if (!module.empty()) state.layers.try_emplace(module, static_cast<std::int32_t>(state.layers.size()));
    };
    for (const bool are_outputs : {true, false}) {
        for (const SmdebugSample& sample : samples) {
            const model::TensorInfo info = names_.describe(sample.name);
            const bool is_output = info.role == Role::kOutput || info.role == Role::kActivation;
            const bool is_parameter = info.role == Role::kWeight || info.role == Role::kBias;
            if (are_outputs ? is_output && info.module != names_.root() : is_parameter) add(info.module);
        }
    }
}

TensorId SmdebugSource::Impl::id_of(WorkerState& state, std::string_view name) {
    const auto [found, is_new] =
        state.ids.try_emplace(std::string(name), static_cast<TensorId>(state.tensors.size()));
    if (is_new) {
        model::TensorInfo info = names_.describe(name);
        info.id = found->second;
        const auto layer = state.layers.find(info.module);
        if (layer != state.layers.end()) info.layer = layer->second;
        state.tensors.push_back(std::move(info));
    }
    return found->second;
}

void SmdebugSource::Impl::note_time(const SmdebugValue& value) {
    if (record_.wall_nanos == 0) record_.wall_nanos = nanos_of(value.wall_seconds);
}

void SmdebugSource::Impl::load_value(model::TensorInfo& info, SmdebugValue value) {
    if (info.dtype == tensor::DType::kUnknown) {
        info.dtype = value.dtype;
        info.shape = value.shape;
    }
    const tensor::TensorView view{value.bytes.data(), value.dtype, value.shape, {}};
    const Result<model::Statistics> statistics = reduce::statistics(view);
    if (!statistics) {
        ++skips_.types;
    } else if (is_scalar(info.role)) {
        const std::optional<double> number = value.number();
        const double mean =
            statistics->not_finite() == 0 ? statistics->mean : std::numeric_limits<double>::quiet_NaN();
        record_.scalars.push_back({info.id, number.value_or(mean)});
    } else {
        model::TensorSample sample{info.id, *statistics, {}};
        if (info.activation != model::ActivationKind::kNone && tensor::is_floating(value.dtype))
            if (const auto units = reduce::unit_statistics(view, info.activation)) sample.units = *units;
        record_.tensors.push_back(sample);
    }
    if (with_raw_ && !is_scalar(info.role))
        record_.raw.push_back({info.id, value.dtype, std::move(value.shape), std::move(value.bytes)});
}

Status SmdebugSource::Impl::load_reductions(const std::string& worker, const SmdebugStep& step,
                                            const SmdebugSample& sample, model::TensorInfo& info) {
    Reductions reductions;
    for (const std::string_view name : sample.reductions) {
        const auto value = run_->reduction(worker, step.global_step, sample.name, name);
        if (!value) {
            if (value.status().code() == Code::kDataLoss) continue;  // told by the run
            return value.status();
        }
        note_time(*value);
        if (const std::optional<double> number = value->number()) reductions.emplace(name, *number);
    }
    if (reductions.empty()) return Status::ok();
    if (is_scalar(info.role)) {
        const auto mean = reductions.find("mean");
        if (mean != reductions.end()) record_.scalars.push_back({info.id, mean->second});
        return Status::ok();
    }
    const std::uint64_t count = sample.shape == nullptr ? 0 : elements_of(*sample.shape);
    const VarianceKind kind = names_.root().empty() ? VarianceKind::kPopulation : VarianceKind::kSample;
    if (const auto statistics = statistics_of(reductions, count, kind))
        record_.tensors.push_back({info.id, *statistics, {}});
    else ++skips_.no_norm;
    return Status::ok();
}

Status SmdebugSource::Impl::load_sample(const std::string& worker, WorkerState& state,
                                        const SmdebugStep& step, const SmdebugSample& sample) {
    model::TensorInfo& info = state.tensors[id_of(state, sample.name)];
    if (sample.shape != nullptr && info.shape.empty()) info.shape = *sample.shape;
    if (!sample.has_value) {
        if (sample.reductions.empty()) ++skips_.shapes;
        return load_reductions(worker, step, sample, info);
    }
    auto value = run_->value(worker, step.global_step, sample.name);
    if (value) {
        note_time(*value);
        if (value->dtype == tensor::DType::kUnknown) ++skips_.texts;
        else load_value(info, std::move(*value));
        return Status::ok();
    }
    switch (value.status().code()) {
        case Code::kDataLoss: return load_reductions(worker, step, sample, info);  // told by the run
        case Code::kUnsupported:
        case Code::kResourceExhausted: ++skips_.types; return Status::ok();
        default: return value.status();
    }
}

Status SmdebugSource::Impl::load(const std::string& worker, WorkerState& state, const SmdebugStep& step) {
    record_ = {};
    record_.mode = step.mode;
    record_.step = step.mode_step;
    record_.sequence = step.global_step;
    const std::vector<SmdebugSample> samples = run_->samples(worker, step.global_step);
    if (state.steps_given++ == 0) {
        state.meta.model_type = names_.root();
        order_modules(state, samples);
    }
    for (const SmdebugSample& sample : samples)
        TRAINDBG_RETURN_IF_ERROR(load_sample(worker, state, step, sample));
    state.next_step = step.global_step + 1;
    return Status::ok();
}

Result<std::optional<model::StepView>> SmdebugSource::Impl::next(std::chrono::nanoseconds patience) {
    const std::int64_t deadline = base::monotonic_nanos() + patience.count();
    while (!has_ended_) {
        if (const auto chosen = choose()) {
            WorkerState& state = state_of(chosen->first);
            TRAINDBG_RETURN_IF_ERROR(load(chosen->first, state, chosen->second));
            return std::optional(model::StepView{state.id, &record_, &state.tensors, &state.meta});
        }
        // A run that was complete when it was listed has nothing more to come.
        if (run_->is_complete()) {
            end();
            break;
        }
        TRAINDBG_ASSIGN_OR_RETURN(const bool is_new, run_->refresh());
        if (is_new) {
            names_ = SmdebugNames(*run_);
            continue;
        }
        if (is_finishing_) {
            end();
            break;
        }
        const std::int64_t left = deadline - base::monotonic_nanos();
        if (left <= 0) break;
        std::this_thread::sleep_for(
            std::min<std::chrono::nanoseconds>(kLookAgain, std::chrono::nanoseconds(left)));
    }
    return std::optional<model::StepView>();
}

SmdebugSource::SmdebugSource(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
SmdebugSource::~SmdebugSource() = default;

Result<std::unique_ptr<SmdebugSource>> SmdebugSource::open(const std::string& path,
                                                           storage::FileSystem& files, bool with_raw) {
    TRAINDBG_ASSIGN_OR_RETURN(auto run, SmdebugRun::open(path, files));
    return std::unique_ptr<SmdebugSource>(
        new SmdebugSource(std::make_unique<Impl>(std::move(run), with_raw)));
}

Result<std::optional<model::StepView>> SmdebugSource::next(std::chrono::nanoseconds patience) {
    return impl_->next(patience);
}
bool SmdebugSource::ended() const { return impl_->has_ended_; }
void SmdebugSource::finish_when_idle() noexcept { impl_->is_finishing_ = true; }
const SmdebugRun& SmdebugSource::run() const noexcept { return *impl_->run_; }
const SmdebugSkips& SmdebugSource::skips() const noexcept { return impl_->skips_; }

}  // namespace traindbg::compat
