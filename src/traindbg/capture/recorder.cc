#include "traindbg/recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/capture/capture_session.h"
#include "traindbg/capture/plan_changes.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg {
namespace {

using base::LogLevel;
using base::Result;
using capture::CaptureSession;
using model::What;

const std::string kNoText;

model::Role role_of(Role role) noexcept {
    switch (role) {
        case Role::kWeight: return model::Role::kWeight;
        case Role::kBias: return model::Role::kBias;
        case Role::kGradient: return model::Role::kGradient;
        case Role::kInput: return model::Role::kInput;
        case Role::kOutput: return model::Role::kOutput;
        case Role::kActivation: return model::Role::kActivation;
        case Role::kBuffer: return model::Role::kBuffer;
        case Role::kOther: break;
    }
    return model::Role::kOther;
}

model::ActivationKind kind_of(Activation function) noexcept {
    switch (function) {
        case Activation::kRelu: return model::ActivationKind::kRelu;
        case Activation::kTanh: return model::ActivationKind::kTanh;
        case Activation::kSigmoid: return model::ActivationKind::kSigmoid;
        case Activation::kOther: break;
    }
    return model::ActivationKind::kSmooth;
}

model::Mode mode_of(Mode mode) noexcept {
    return mode == Mode::kEval ? model::Mode::kEval : model::Mode::kTrain;
}

model::CaptureConfig default_config(const RecorderOptions& options) {
    model::CaptureConfig config;
    const auto need = [&](model::Role role, model::Mode mode, What what, model::Schedule schedule) {
        config.requirements.push_back({.collection = std::string(model::collection_of(role)),
                                       .mode = mode,
                                       .what = what,
                                       .schedule = schedule,
                                       .asked_by = "recorder"});
    };
    for (const model::Mode mode : {model::Mode::kTrain, model::Mode::kEval}) {
        const bool train = mode == model::Mode::kTrain;
        const model::Schedule schedule{.every = train ? options.every : options.eval_every,
                                       .dense_until = train ? options.dense_until : 0};
        need(model::Role::kLoss, mode, What::kStatistics, {});
        for (const model::Role role : {model::Role::kWeight, model::Role::kBias, model::Role::kGradient,
                                       model::Role::kInput, model::Role::kOutput, model::Role::kOther})
            need(role, mode, What::kStatistics, schedule);
        need(model::Role::kActivation, mode, What::kStatistics | What::kUnits, schedule);
    }
    return config;
}

// The plan that lies in the run directory, if there is one: the supervisor's rules wrote it.
model::CaptureConfig plan_for(const std::string& run_directory, const RecorderOptions& options) {
    storage::FileSystem& files = storage::posix_file_system();
    const storage::RunLayout layout{run_directory};
    if (!files.exists(layout.plan_json())) return default_config(options);
    Result<capture::PlanInForce> plan = capture::read_plan_in_force(files, layout);
    if (plan) return std::move(plan->config);
    base::log_once(LogLevel::kWarning, "recorder.plan",
                   base::format("{}; recording as if there were none", plan.status().message()));
    return default_config(options);
}

// "fc1" of "fc1.weight".
std::string_view module_of(std::string_view parameter) noexcept {
    const std::size_t dot = parameter.rfind('.');
    return dot == std::string_view::npos ? parameter : parameter.substr(0, dot);
}

std::string with_prefix(std::string_view prefix, std::string_view name) {
    return base::format("{}/{}", prefix, name);
}

}  // namespace

class Recorder::Impl {
  public:
    std::unique_ptr<CaptureSession> session;
    std::string directory;
    std::string error;
    std::uint64_t misfits = 0;  // shapes that did not fit

    void tensor(std::string_view name, model::Role role, model::ActivationKind kind, const void* data,
                std::size_t count, tensor::DType dtype, std::span<const std::int64_t> shape, Mode mode) {
        if ((session->due(mode_of(mode)) & capture::mask_of(role)) == 0) return;
        const auto length = static_cast<std::int64_t>(count);
        const std::span<const std::int64_t> line(&length, 1);
        const tensor::TensorView view{data, dtype, shape.empty() && count != 1 ? line : shape, {}};
        if (!fits(view.shape, length)) {
            ++misfits;
            base::log_once(
                LogLevel::kWarning, "recorder.shape",
                base::format("tensor '{}': {} values do not have the shape that was given; it is not "
                             "recorded (there may be more)",
                             name, count));
            return;
        }
        session->observe(mode_of(mode), id_of(name, role, kind, view), view);
    }

    void scalar(std::string_view name, double value, Mode mode) {
        const bool is_loss = name == "loss" || name.starts_with("loss/");
        const model::Role role = is_loss ? model::Role::kLoss : model::Role::kMetric;
        session->observe_scalar(mode_of(mode), id_of(name, role, model::ActivationKind::kNone, {}), value);
    }

  private:
    using Key = std::pair<model::Role, std::string>;
    // Compares with a view of a name without making a string of it.
    struct KeyLess {
        using is_transparent = void;
        template <typename A, typename B>
        bool operator()(const A& a, const B& b) const noexcept {
            if (a.first != b.first) return a.first < b.first;
            return std::string_view(a.second) < std::string_view(b.second);
        }
    };

    // Whether the extents are not negative and multiply to `count`.
    static bool fits(std::span<const std::int64_t> shape, std::int64_t count) noexcept {
        std::int64_t product = 1;
        for (const std::int64_t extent : shape)
            if (extent < 0 || __builtin_mul_overflow(product, extent, &product)) return false;
        return product == count;
    }

    model::TensorId id_of(std::string_view name, model::Role role, model::ActivationKind kind,
                          const tensor::TensorView& view) {
        if (const auto known = ids_.find(std::pair(role, name)); known != ids_.end()) return known->second;
        model::TensorInfo info;
        info.role = role;
        info.activation = kind;
        info.name =
            role == model::Role::kLoss ? std::string(name) : with_prefix(model::to_string(role), name);
        if (role != model::Role::kLoss && role != model::Role::kMetric) {
            info.module = name;
            info.layer = layer_of(module_of(name));
        }
        info.dtype = view.dtype;
        info.shape.assign(view.shape.begin(), view.shape.end());
        const model::TensorId id = session->register_tensor(std::move(info));
        // What was refused is not remembered: a name for each step would use up the memory here, too.
        if (id != capture::kNoTensor) ids_.emplace(Key(role, name), id);
        return id;
    }

    // Layers are numbered as they are first met.
    std::int32_t layer_of(std::string_view module) {
        const auto known = layers_.find(module);
        if (known != layers_.end()) return known->second;
        return layers_.emplace(module, static_cast<std::int32_t>(layers_.size())).first->second;
    }

    std::map<Key, model::TensorId, KeyLess> ids_;
    std::map<std::string, std::int32_t, std::less<>> layers_;
};

namespace {

// Nothing that goes wrong here may reach the caller.
template <typename Work>
void quietly(Work&& work) noexcept {
    try {
        work();
    } catch (const std::exception& error) {
        base::log_once(LogLevel::kWarning, "recorder.failure", error.what());
    }
}

}  // namespace

Recorder::Recorder() noexcept = default;
Recorder::Recorder(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Recorder::Recorder(Recorder&& other) noexcept = default;
Recorder& Recorder::operator=(Recorder&& other) noexcept = default;
Recorder::~Recorder() { close(); }

Recorder Recorder::open(std::string_view run_directory, const RecorderOptions& options) noexcept {
    std::unique_ptr<Impl> impl;
    quietly([&] {
        impl = std::make_unique<Impl>();
        const char* const given = std::getenv("TRAINDBG_RUN_DIR");
        impl->directory =
            given != nullptr && *given != '\0' ? std::string(given) : std::string(run_directory);
        capture::SessionOptions session;
        session.run_directory = impl->directory;
        if (!impl->directory.empty()) session.config = plan_for(impl->directory, options);
        Result<std::unique_ptr<CaptureSession>> opened = CaptureSession::open(std::move(session));
        if (opened) {
            impl->session = std::move(opened).value();
            model::WorkerMeta meta;
            meta.framework = "C++";
            impl->session->describe(std::move(meta));
        } else {
            impl->error = opened.status().message();
            base::log_once(LogLevel::kWarning, "recorder.open", "nothing is recorded: " + impl->error);
        }
    });
    return Recorder(std::move(impl));
}

bool Recorder::is_open() const noexcept { return impl_ && impl_->session && impl_->session->is_open(); }
const std::string& Recorder::error() const noexcept { return impl_ ? impl_->error : kNoText; }
const std::string& Recorder::run_directory() const noexcept { return impl_ ? impl_->directory : kNoText; }

bool Recorder::needs(Role role, Mode mode) const noexcept {
    return is_open() && (impl_->session->due(mode_of(mode)) & capture::mask_of(role_of(role))) != 0;
}

void Recorder::tensor(std::string_view name, Role role, std::span<const float> values,
                      std::span<const std::int64_t> shape, Mode mode) noexcept {
    if (!is_open()) return;
    quietly([&] {
        impl_->tensor(name, role_of(role), model::ActivationKind::kNone, values.data(), values.size(),
                      tensor::DType::kFloat32, shape, mode);
    });
}

void Recorder::tensor(std::string_view name, Role role, std::span<const double> values,
                      std::span<const std::int64_t> shape, Mode mode) noexcept {
    if (!is_open()) return;
    quietly([&] {
        impl_->tensor(name, role_of(role), model::ActivationKind::kNone, values.data(), values.size(),
                      tensor::DType::kFloat64, shape, mode);
    });
}

void Recorder::activation(std::string_view name, Activation function, std::span<const float> values,
                          std::span<const std::int64_t> shape, Mode mode) noexcept {
    if (!is_open()) return;
    quietly([&] {
        impl_->tensor(name, model::Role::kActivation, kind_of(function), values.data(), values.size(),
                      tensor::DType::kFloat32, shape, mode);
    });
}

void Recorder::scalar(std::string_view name, double value, Mode mode) noexcept {
    if (!is_open()) return;
    quietly([&] { impl_->scalar(name, value, mode); });
}

NextStep Recorder::end_step() noexcept {
    if (!is_open()) return {};
    const capture::StepDirective directive = impl_->session->end_step();
    constexpr capture::RoleMask kScalars =
        capture::mask_of(model::Role::kLoss) | capture::mask_of(model::Role::kMetric);
    return {.anything_due = (directive.due & ~kScalars) != 0, .stop_requested = directive.stop_requested};
}

void Recorder::end_eval_step() noexcept {
    if (is_open()) impl_->session->end_eval_step();
}

std::uint64_t Recorder::step() const noexcept {
    return impl_ && impl_->session ? impl_->session->step(model::Mode::kTrain) : 0;
}

std::uint64_t Recorder::lost() const noexcept {
    if (!impl_ || !impl_->session) return 0;
    std::uint64_t lost = impl_->misfits;
    quietly([&] {
        const capture::SessionCounts counts = impl_->session->counts();
        lost += counts.tensors_skipped + counts.writer.steps_dropped + counts.writer.raw_tensors_dropped;
    });
    return lost;
}

void Recorder::close(std::chrono::milliseconds patience) noexcept {
    // Longer than this would not fit into nanoseconds.
    if (impl_ && impl_->session)
        impl_->session->close(std::min(patience, std::chrono::milliseconds(std::chrono::hours(24))));
}

}  // namespace traindbg
