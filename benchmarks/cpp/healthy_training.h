// A training that goes well, made up: the table of a model's tensors and statistics that drift as those of a
// healthy training do, so that rules judge all of them and find nothing, which is the common and the dearest
// case. Shared by the benchmarks of judging.
#pragma once

#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/model/step_record.h"
#include "traindbg/model/step_source.h"

namespace traindbg::bench {

// Small and repeatable; nothing here has to be random in earnest.
class Noise {
  public:
    double next() noexcept {  // 0 to 1
        state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
        return static_cast<double>(state_ >> 11U) / 9007199254740992.0;
    }

  private:
    std::uint64_t state_ = 1;
};

inline model::TensorTable table_of(std::size_t tensors) {
    using model::Role;
    constexpr Role kRoles[] = {Role::kWeight, Role::kGradient, Role::kOutput, Role::kActivation};
    model::TensorTable table;
    while (table.size() + 2 < tensors) {
        const std::size_t layer = table.size() / std::size(kRoles);
        const Role role = kRoles[table.size() % std::size(kRoles)];
        model::TensorInfo info;
        info.id = static_cast<model::TensorId>(table.size());
        info.role = role;
        info.module = base::format("layers.{}", layer);
        info.name =
            base::format("{}/{}", model::to_string(role),
                         info.module + (role == Role::kWeight || role == Role::kGradient ? ".weight" : ""));
        info.module_type = role == Role::kActivation ? "ReLU" : "Linear";
        if (role == Role::kActivation) info.activation = model::ActivationKind::kRelu;
        info.layer = static_cast<std::int32_t>(layer);
        info.dtype = tensor::DType::kFloat32;
        info.shape = {64, 64};
        table.push_back(std::move(info));
    }
    for (const auto& [name, role] :
         {std::pair("loss", Role::kLoss), std::pair("loop/learning_rate", Role::kLoop)}) {
        model::TensorInfo info;
        info.id = static_cast<model::TensorId>(table.size());
        info.role = role;
        info.name = name;
        table.push_back(std::move(info));
    }
    return table;
}

inline std::vector<model::StepRecord> steps_of(const model::TensorTable& table, std::size_t count) {
    Noise noise;
    std::vector<model::StepRecord> steps(count);
    for (std::size_t step = 0; step < count; ++step) {
        const double progress = static_cast<double>(step) / static_cast<double>(count);
        const double loss = 2.3 * std::exp(-3 * progress) + 0.05 + 0.05 * noise.next();
        model::StepRecord& record = steps[step];
        record.step = record.sequence = step;
        record.wall_nanos = record.monotonic_nanos = static_cast<std::int64_t>(step) * 10'000'000;
        record.step_nanos = step == 0 ? 0 : 10'000'000;
        for (const model::TensorInfo& info : table) {
            if (model::is_number(info)) {
                record.scalars.push_back({info.id, info.role == model::Role::kLoss ? loss : 0.1});
                continue;
            }
            const bool is_gradient = info.role == model::Role::kGradient;
            const bool is_relu = info.role == model::Role::kActivation;
            const double scale = (is_gradient ? 0.01 * loss : 0.1) * (0.9 + 0.2 * noise.next());
            model::TensorSample sample;
            sample.tensor = info.id;
            model::Statistics& s = sample.statistics;
            s.count = 4096;
            s.zero = is_relu ? 2000 : 0;
            s.min = is_relu ? 0 : -4 * scale;
            s.max = 4 * scale;
            s.mean = is_relu ? 0.4 * scale : 0.01 * scale;
            s.std = scale;
            s.l2 = 64 * scale;
            s.l1 = 0.8 * 4096 * scale;
            if (is_relu) sample.units = {.units = 64, .inactive_units = 2, .low = 0, .high = 0};
            record.tensors.push_back(sample);
        }
    }
    return steps;
}

}  // namespace traindbg::bench
