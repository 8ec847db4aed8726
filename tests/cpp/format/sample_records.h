// Small records that use every field of the format, for tests of this module and of those above it.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "traindbg/model/run_meta.h"
#include "traindbg/model/step_record.h"
#include "traindbg/model/step_source.h"
#include "traindbg/model/tensor_info.h"

namespace traindbg::testing {

// 0 weight (4x3), 1 activation (2x4), 2 loss, 3 classes.
inline model::TensorTable sample_tensors() {
    model::TensorTable table(4);
    table[0].name = "weight/fc1.weight";
    table[0].role = model::Role::kWeight;
    table[0].module = "fc1.weight";
    table[0].module_type = "Linear";
    table[0].layer = 0;
    table[0].dtype = tensor::DType::kFloat32;
    table[0].shape = {4, 3};
    table[0].collections = {"mine", "Größe"};
    table[1].name = "activation/relu";
    table[1].role = model::Role::kActivation;
    table[1].activation = model::ActivationKind::kRelu;
    table[1].module = "relu";
    table[1].module_type = "ReLU";
    table[1].layer = 1;
    table[1].dtype = tensor::DType::kBFloat16;
    table[1].shape = {2, 4};
    table[2].name = "loss";
    table[2].role = model::Role::kLoss;
    table[2].dtype = tensor::DType::kFloat32;
    table[3].name = "classes/cross_entropy";
    table[3].role = model::Role::kClasses;
    for (std::uint32_t id = 0; id < table.size(); ++id) table[id].id = id;
    return table;
}

// All moments are float32 values, so that they come back exactly.
inline model::StepRecord sample_step(std::uint64_t step, bool with_raw = false) {
    model::StepRecord record;
    record.mode = step % 5 == 4 ? model::Mode::kEval : model::Mode::kTrain;
    record.step = step;
    record.sequence = step;
    record.wall_nanos = 1'700'000'000'000'000'000 + static_cast<std::int64_t>(step);
    record.monotonic_nanos = 5'000'000'000 + static_cast<std::int64_t>(step) * 1000;
    record.step_nanos = step == 0 ? 0 : 1'000'000 + step;
    record.capture_nanos = 1000 + step;
    const auto scale = static_cast<double>(step + 1);
    model::TensorSample weight;
    weight.tensor = 0;
    weight.statistics = {12, 0, 0, 0, step % 3, -0.5 * scale, 0.75 * scale, 0.125, 0.25, 3.5 * scale, 1.5};
    model::TensorSample activation;
    activation.tensor = 1;
    activation.statistics = {6, 1, 2, 0, 2, 0, scale, 0.5, 0.5, 2, 1.25};  // a smaller last batch
    activation.units = {4, 1, 0, static_cast<std::uint64_t>(step)};
    record.tensors = {weight, activation};
    record.scalars = {{2, 1.0 / scale}};
    model::ClassSample classes;
    classes.tensor = 3;
    classes.counts.labels = {3, 0, 1, static_cast<std::uint32_t>(step)};
    classes.counts.predictions = {0, 0, 4, 0};
    classes.counts.hits = {0, 0, 1, 0};
    record.classes = {classes};
    const std::uint64_t zeros = step % 3;
    record.histograms = {{0, {{-180, 4}, {0, zeros + 1}, {170, 7 - zeros}}}};
    if (step % 2 == 1) record.histograms.push_back({1, {{0, 2}, {161, 1}, {259, 2}, {260, 1}}});
    if (step % 3 == 2) {  // not at each: many a test counts in bytes
        const auto bound = static_cast<float>(scale);
        record.channels = {{0, {{-bound, -1, 0.5F}, {bound, -0.5F, 0.75F}, {0, 0, 0}}}};
        record.digests = {{0, {0x0123'4567'89AB'CDEF + step, -scale / 3}}};
        if (step % 2 == 0) {
            record.channels.push_back({1, {{0, -bound}, {0, 1}, {1, 0.25F}}});
            record.digests.push_back({1, {UINT64_MAX - step, 0}});
        }
    }
    if (with_raw) {
        model::RawTensor raw;
        raw.tensor = 0;
        raw.dtype = tensor::DType::kFloat32;
        raw.shape = {4, 3};
        std::vector<float> values(12);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) * 0.5F;
        values[0] = static_cast<float>(step);
        raw.bytes.resize(values.size() * sizeof(float));
        std::memcpy(raw.bytes.data(), values.data(), raw.bytes.size());
        model::RawTensor empty;
        empty.tensor = 1;
        empty.dtype = tensor::DType::kBFloat16;
        empty.shape = {0, 4};
        record.raw = {raw, empty};
    }
    return record;
}

// The steps of the golden run, which is of version 1.0: it has neither channels nor digests.
inline constexpr std::uint64_t kGoldenSteps = 10;
inline model::StepRecord golden_step(std::uint64_t step) {
    model::StepRecord record = sample_step(step, step % 3 == 0);
    record.channels.clear();
    record.digests.clear();
    return record;
}

inline model::WorkerMeta sample_meta() {
    model::WorkerMeta meta;
    meta.pid = 4711;
    meta.host = "node1";
    meta.framework = "torch 2.13.0";
    meta.python = "3.11.2";
    meta.traindbg = "0.1.0";
    meta.model_type = "Net";
    meta.parameters = 12;
    meta.optimizers = {{"SGD", {{"lr", 0.1}}}};
    meta.environment = {{"OMP_NUM_THREADS", "2"}};
    return meta;
}

inline constexpr const char* kSampleRunJson =
    R"({"run_id":"sample","uuid":"00112233-4455-6677-8899-aabbccddeeff","command":["python","train.py"]})";

}  // namespace traindbg::testing
