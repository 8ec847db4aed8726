#include "report/sample_run.h"

#include <cmath>
#include <limits>

#include "traindbg/base/format.h"

namespace traindbg::report::testing {
namespace {

using model::Mode;
using model::Role;
using model::TensorId;

// The same numbers everywhere and every time: not the library's.
class Noise {
  public:
    double next() {  // -1 .. 1
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<double>(state_ >> 11U) / static_cast<double>(1ULL << 52U) - 1.0;
    }

  private:
    std::uint64_t state_ = 42;
};

model::Statistics statistics_of(double l2, std::uint64_t count, std::uint64_t zero = 0,
                                std::uint64_t nan = 0) {
    model::Statistics out;
    out.count = count;
    out.nan = nan;
    out.zero = zero;
    if (nan == count) return out;
    const double finite = static_cast<double>(count - nan);
    out.l2 = l2;
    out.std = l2 / std::sqrt(finite);
    out.l1 = 0.8 * l2 * std::sqrt(finite);
    out.min = -3 * out.std;
    out.max = 3 * out.std;
    return out;
}

class Builder {
  public:
    explicit Builder(const SampleOptions& options) : options_(options) {}

    SampleRun build() {
        describe();
        add_tensors();
        const std::size_t every_eval = std::max<std::size_t>(1, options_.steps / 10);
        for (std::size_t step = 0; step < options_.steps; ++step) {
            add_train_step(step);
            if (step % every_eval == every_eval - 1)
                for (int batch = 0; batch < 2; ++batch) add_eval_step(step);
        }
        if (options_.with_faults) add_verdict();
        else run_.verdict.outcomes = {{"vanishing_gradient", model::CheckState::kClean, "", options_.steps}};
        return std::move(run_);
    }

  private:
    struct Layer {
        TensorId weight = 0, bias = 0, weight_gradient = 0, bias_gradient = 0, output = 0, activation = 0;
    };

    void describe() {
        run_.meta.run_id = "digits-0001";
        run_.meta.uuid = "0d9f3c1e-2f4d-4f2e-9c53-6f2d1b7a9e10";
        run_.meta.command = {"python", "examples/digits/train.py", "--lr", "0.5",
                             "--note", "a <b>bold</b> try"};
        run_.meta.working_directory = "/home/user/digits";
        run_.meta.started_wall_nanos = kStart;
        run_.meta.host = "workstation";
        run_.meta.platform = "Linux 6.1 x86_64, 16 cores, 64 GiB";
        run_.meta.traindbg = "0.1.0";
        run_.worker.pid = 4242;
        run_.worker.host = "workstation";
        run_.worker.framework = "torch 2.13.0";
        run_.worker.python = "3.11.7";
        run_.worker.traindbg = "0.1.0";
        run_.worker.model_type = "DigitsNet";
        run_.worker.parameters = 61'706;
        run_.worker.optimizers = {{"SGD", {{"lr", 0.5}, {"momentum", 0.9}, {"weight_decay", 0}}}};
        run_.worker.environment = {{"OMP_NUM_THREADS", "2"}};
        run_.end.wall_nanos = kStart + static_cast<std::int64_t>(options_.steps) * kStepNanos;
        run_.end.exit_code = options_.with_faults ? 90 : 0;
        run_.end.stopped_by_rule = options_.with_faults;
        if (options_.with_faults) run_.end.reason = "not_finite: NaN in gradient/fc1.weight";
    }

    TensorId add(std::string name, Role role, const std::string& module, const char* type, std::size_t layer,
                 std::vector<std::int64_t> shape, model::ActivationKind kind = model::ActivationKind::kNone) {
        model::TensorInfo info;
        info.id = static_cast<TensorId>(run_.tensors.size());
        info.name = std::move(name);
        info.role = role;
        info.activation = kind;
        info.module = module;
        info.module_type = type;
        info.layer = static_cast<std::int32_t>(layer);
        info.dtype = tensor::DType::kFloat32;
        info.shape = std::move(shape);
        run_.tensors.push_back(std::move(info));
        return run_.tensors.back().id;
    }

    void add_tensors() {
        loss_ = add("loss/cross_entropy", Role::kLoss, "", "", 0, {});
        backward_ = add("loss", Role::kLoss, "", "", 0, {});
        classes_ = add("classes/cross_entropy", Role::kClasses, "", "", 0, {10});
        metric_ = add(std::string("metric/") + kHostileEnd, Role::kMetric, "", "", 0, {});
        for (std::size_t i = 0; i <= options_.layers; ++i) {
            const bool hostile = i == options_.layers;
            const std::string module = hostile  ? std::string(kHostileName)
                                       : i == 0 ? std::string("conv1")
                                                : base::format("fc{}", i);
            const char* type = i == 0 ? "Conv2d" : "Linear";
            const std::vector<std::int64_t> shape =
                i == 0 ? std::vector<std::int64_t>{16, 1, 3, 3} : std::vector<std::int64_t>{120, 256};
            const std::int64_t wide = i == 0 ? 16 : 120;
            Layer layer;
            layer.weight = add("weight/" + module + ".weight", Role::kWeight, module, type, 2 * i + 1, shape);
            layer.weight_gradient =
                add("gradient/" + module + ".weight", Role::kGradient, module, type, 2 * i + 1, shape);
            layer.bias = add("bias/" + module + ".bias", Role::kBias, module, type, 2 * i + 1, {wide});
            layer.bias_gradient =
                add("gradient/" + module + ".bias", Role::kGradient, module, type, 2 * i + 1, {wide});
            layer.output = add("output/" + module, Role::kOutput, module, type, 2 * i + 1, {32, wide});
            layer.activation =
                add("activation/" + module + ".relu", Role::kActivation, module, type, 2 * i + 1, {32, wide},
                    i == 1 ? model::ActivationKind::kTanh : model::ActivationKind::kRelu);
            layers_.push_back(layer);
        }
    }

    model::StepRecord begin(Mode mode, std::size_t step) {
        model::StepRecord record;
        record.mode = mode;
        record.step = step;
        record.sequence = sequence_++;
        record.wall_nanos = kStart + static_cast<std::int64_t>(sequence_) * kStepNanos;
        record.monotonic_nanos = static_cast<std::int64_t>(sequence_) * kStepNanos;
        record.step_nanos = kStepNanos;
        record.capture_nanos = kStepNanos / 60;
        return record;
    }

    void add_train_step(std::size_t step) {
        const double time = static_cast<double>(step) / static_cast<double>(options_.steps);
        const bool broken = options_.with_faults && time >= 0.9;
        model::StepRecord record = begin(Mode::kTrain, step);
        double loss = 2.3 * std::exp(-4 * time) + 0.08 + 0.12 * std::abs(noise_.next());
        if (options_.with_faults && time > 0.8) loss *= std::exp(60 * (time - 0.8));
        if (broken) loss = std::numeric_limits<double>::quiet_NaN();
        record.scalars = {{loss_, loss}, {backward_, loss}, {metric_, 0.5 * std::exp(-time)}};
        add_classes(record, time, 32);
        if (step < 20 || step % 2 == 0) add_tensors_of(record, time, broken);
        run_.steps.push_back(std::move(record));
    }

    void add_eval_step(std::size_t step) {
        const double time = static_cast<double>(step) / static_cast<double>(options_.steps);
        model::StepRecord record = begin(Mode::kEval, evals_++);
        record.scalars = {{loss_, 2.3 * std::exp(-3 * time) + 0.2 + 0.05 * noise_.next()}};
        add_classes(record, time, 128);
        run_.steps.push_back(std::move(record));
    }

    void add_classes(model::StepRecord& record, double time, std::uint32_t samples) {
        model::ClassSample sample;
        sample.tensor = classes_;
        sample.counts.labels.assign(10, 0);
        sample.counts.predictions.assign(10, 0);
        sample.counts.hits.assign(10, 0);
        for (std::uint32_t i = 0; i < samples; ++i) {
            const auto label = static_cast<std::size_t>((noise_.next() + 1) * 4.999);
            const bool right = noise_.next() < 2 * time - 0.6 && label != 9;  // class 9 is never found
            const std::size_t guess = right ? label : static_cast<std::size_t>((noise_.next() + 1) * 4.499);
            ++sample.counts.labels[label];
            ++sample.counts.predictions[guess];
            if (guess == label) ++sample.counts.hits[label];
        }
        record.classes.push_back(std::move(sample));
    }

    void add_tensors_of(model::StepRecord& record, double time, bool broken) {
        for (std::size_t i = 0; i < layers_.size(); ++i) {
            const Layer& layer = layers_[i];
            const std::uint64_t count = i == 0 ? 144 : 30'720;
            const std::uint64_t wide = i == 0 ? 16 : 120;
            const double depth = std::min(8.0, static_cast<double>(layers_.size() - i));
            double gradient = 0.4 * std::pow(0.3, depth) * (1 + 0.3 * noise_.next()) * std::exp(-2 * time);
            if (options_.with_faults && i == 0) gradient *= std::exp(-18 * time);
            if (options_.with_faults && time > 0.8 && i != 0) gradient *= std::exp(80 * (time - 0.8));
            const bool bad = broken && i != 0;
            const auto put = [&](TensorId id, double l2, std::uint64_t elements, std::uint64_t zero,
                                 std::uint64_t nan) {
                model::TensorSample sample;
                sample.tensor = id;
                sample.statistics = statistics_of(l2, elements, zero, nan);
                record.tensors.push_back(sample);
            };
            put(layer.weight, 4 + static_cast<double>(i) + time, count, 0, 0);
            put(layer.bias, 0.3 + 0.1 * time, wide, 0, 0);
            put(layer.weight_gradient, gradient, count, 0, bad ? count : 0);
            put(layer.bias_gradient, 0.1 * gradient, wide, 0, bad ? wide / 2 : 0);
            const double signal = std::pow(0.7, static_cast<double>(i % 10)) * (1 + 0.1 * noise_.next());
            put(layer.output, signal * std::sqrt(32.0 * static_cast<double>(wide)), 32 * wide, 0, 0);
            model::TensorSample activation;
            activation.tensor = layer.activation;
            const double dead = i == 1 ? 0 : std::min(0.95, 0.45 + 0.5 * time);
            activation.statistics =
                statistics_of(0.6 * signal * std::sqrt(32.0 * static_cast<double>(wide)), 32 * wide,
                              static_cast<std::uint64_t>(dead * 32 * static_cast<double>(wide)));
            activation.units.units = static_cast<std::uint32_t>(wide);
            if (i == 1)
                activation.units.high = static_cast<std::uint64_t>(16.0 * static_cast<double>(wide) * time);
            else
                activation.units.inactive_units =
                    static_cast<std::uint32_t>(0.8 * time * static_cast<double>(wide));
            record.tensors.push_back(activation);
        }
    }

    void add_verdict() {
        const auto at = [&](double time) {
            return static_cast<model::StepIndex>(time * static_cast<double>(options_.steps));
        };
        model::Finding vanishing;
        vanishing.rule = "vanishing_gradient";
        vanishing.key = "conv1";
        vanishing.severity = model::Severity::kWarning;
        vanishing.first_step = at(0.4);
        vanishing.step = at(0.45);
        vanishing.last_step = at(1) - 1;
        vanishing.tensor = "gradient/conv1.weight";
        vanishing.layer = "conv1";
        vanishing.places = 2;
        vanishing.message =
            "The gradient of conv1 is 2.1e-06, 0.00003 of the last layer's: the first layers hardly learn.";
        vanishing.fix =
            "Use ReLU instead of tanh, or put a normalisation layer between the layers.\n"
            "  self.norm1 = nn.BatchNorm2d(16)\n  x = torch.relu(self.norm1(self.conv1(x)))";
        vanishing.evidence = {{"gradient norm of conv1.weight", 2.1e-6, "last layer", 0.071},
                              {"ratio", 2.96e-5, "limit", 1e-3},
                              {"steps in a row", 12, "", 0}};
        vanishing.plots = {{"gradient/conv1.weight", "l2"}, {"gradient/fc1.weight", "l2"}};
        model::Finding bad;
        bad.rule = "not_finite";
        bad.severity = model::Severity::kError;
        bad.first_step = at(0.9);
        bad.step = at(0.9);
        bad.last_step = at(1) - 1;
        bad.tensor = std::string("gradient/") + kHostileName + ".weight";
        bad.layer = kHostileName;
        bad.places = 5;
        bad.message = std::string("The loss became NaN; first in ") + bad.tensor + ".";
        bad.fix =
            "Lower the learning rate to 0.05 (`lr=0.05`), or clip: "
            "`torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)`.";
        bad.evidence = {{"elements that are NaN", 30720, "of", 30720}, {"loss before", 4821.5, "usual", 0.2}};
        bad.plots = {{"loss/cross_entropy", "value"}};
        bad.sources = {{std::string("module/") + kHostileName, std::string(kHostileName) + ".py", 7, ""}};
        run_.verdict.findings = {vanishing, bad};
        run_.verdict.outcomes = {{"dead_relu", model::CheckState::kClean, "", 90},
                                 {"vanishing_gradient", model::CheckState::kFired, "", 110},
                                 {"not_finite", model::CheckState::kFired, "", options_.steps},
                                 {"overfit", model::CheckState::kNotChecked, "fewer than 30 evaluations", 0}};
        model::Cause cause;
        cause.name = "learning_rate_too_high";
        cause.title = "Learning rate too high";
        cause.confidence = 0.86;
        cause.explanation =
            "The loss rose by a factor of 20,000 within 20 steps before it became NaN, and the optimizer's "
            "rate is 0.5. It would be refuted by the same rise at a tenth of the rate.";
        cause.fix = "optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)";
        cause.rules = {"not_finite"};
        cause.sources = {{"optimizer", "train.py", 24, "main"}};
        cause.evidence_for = {
            {bad.message, "not_finite", "", bad.first_step},
            {"SGD has a learning rate of 0.5, which is high for it.", "", "", std::nullopt}};
        cause.evidence_against = {{"vanishing_gradient was there at step 12, before the first sign of this.",
                                   "vanishing_gradient", "", model::StepIndex{12}}};
        run_.verdict.causes = {cause};
    }

    static constexpr std::int64_t kStart = 1'795'000'000'000'000'000;
    static constexpr std::int64_t kStepNanos = 12'000'000;

    SampleOptions options_;
    SampleRun run_;
    Noise noise_;
    std::vector<Layer> layers_;
    TensorId loss_ = 0, backward_ = 0, classes_ = 0, metric_ = 0;
    std::uint64_t sequence_ = 0;
    std::size_t evals_ = 0;
};

}  // namespace

SampleRun make_sample_run(const SampleOptions& options) { return Builder(options).build(); }

}  // namespace traindbg::report::testing
