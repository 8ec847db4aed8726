// How fast are all statistics of a tensor, compared with copying it and with the obvious loop?
// The bytes that are reported are those of the tensor.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "traindbg/reduce/reducer.h"

namespace {

using traindbg::model::ActivationKind;
using traindbg::tensor::DType;
using traindbg::tensor::TensorView;

template <typename T>
std::vector<T> normal_values(std::int64_t count, double scale) {
    std::mt19937 random(1);
    std::normal_distribution<double> normal(0, scale);
    std::vector<T> values(static_cast<std::size_t>(count));
    for (T& value : values) value = static_cast<T>(normal(random));
    return values;
}

// The same values, cut to 16 bits.
std::vector<std::uint16_t> brain_values(std::int64_t count) {
    const std::vector<float> floats = normal_values<float>(count, 1);
    std::vector<std::uint16_t> values(floats.size());
    for (std::size_t i = 0; i < floats.size(); ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &floats[i], sizeof bits);
        values[i] = static_cast<std::uint16_t>(bits >> 16);
    }
    return values;
}

void measure(benchmark::State& state, const TensorView& view, std::string_view kernel) {
    for (auto _ : state) benchmark::DoNotOptimize(traindbg::reduce::statistics_with_kernel(kernel, view));
    state.SetBytesProcessed(state.iterations() * view.element_count() *
                            static_cast<std::int64_t>(traindbg::tensor::byte_size(view.dtype)));
    state.SetLabel(std::string(kernel));
}

void statistics_float32(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 4;
    const auto values = normal_values<float>(count, 1);
    measure(state, {values.data(), DType::kFloat32, {&count, 1}, {}}, traindbg::reduce::kernel_name());
}

void statistics_bfloat16(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 2;
    const auto values = brain_values(count);
    measure(state, {values.data(), DType::kBFloat16, {&count, 1}, {}}, traindbg::reduce::kernel_name());
}

void statistics_float16(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 2;
    std::vector<std::uint16_t> values = brain_values(count);
    for (std::uint16_t& bits : values) bits &= 0xBFFF;  // no exponent that would mean infinity or NaN
    measure(state, {values.data(), DType::kFloat16, {&count, 1}, {}}, traindbg::reduce::kernel_name());
}

void statistics_float64(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 8;
    const auto values = normal_values<double>(count, 1);
    measure(state, {values.data(), DType::kFloat64, {&count, 1}, {}}, traindbg::reduce::kernel_name());
}

// Gradients that vanish leave the range of float squares: the slow path.
void statistics_vanishing(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 4;
    const auto values = normal_values<float>(count, 1e-22);
    measure(state, {values.data(), DType::kFloat32, {&count, 1}, {}}, traindbg::reduce::kernel_name());
}

void statistics_one_nan(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 4;
    auto values = normal_values<float>(count, 1);
    values[values.size() / 2] = std::numeric_limits<float>::quiet_NaN();
    measure(state, {values.data(), DType::kFloat32, {&count, 1}, {}}, traindbg::reduce::kernel_name());
}

void statistics_strided(benchmark::State& state) {  // every second column
    const std::int64_t rows = state.range(0) / 4 / 512;
    const auto values = normal_values<float>(rows * 1024, 1);
    const std::int64_t shape[] = {rows, 512};
    const std::int64_t strides[] = {1024, 2};
    measure(state, {values.data(), DType::kFloat32, shape, strides}, traindbg::reduce::kernel_name());
}

void naive_loop(benchmark::State& state) {
    const auto values = normal_values<float>(state.range(0) / 4, 1);
    for (auto _ : state) {
        double sum = 0;
        double l1 = 0;
        double squares = 0;
        float smallest = values[0];
        float largest = values[0];
        std::uint64_t nan = 0;
        std::uint64_t zero = 0;
        for (const float x : values) {
            if (std::isnan(x)) {
                ++nan;
                continue;
            }
            if (x == 0) ++zero;
            sum += static_cast<double>(x);
            l1 += std::abs(static_cast<double>(x));
            squares += static_cast<double>(x) * static_cast<double>(x);
            smallest = std::min(smallest, x);
            largest = std::max(largest, x);
        }
        benchmark::DoNotOptimize(sum + l1 + squares + static_cast<double>(smallest + largest) +
                                 static_cast<double>(nan + zero));
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

void copy(benchmark::State& state) {
    const auto values = normal_values<float>(state.range(0) / 4, 1);
    std::vector<float> copied(values.size());
    for (auto _ : state) {
        std::memcpy(copied.data(), values.data(), values.size() * sizeof(float));
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

void each_kernel(benchmark::State& state) {
    const auto kernels = traindbg::reduce::available_kernels();
    const auto index = static_cast<std::size_t>(state.range(1));
    if (index >= kernels.size()) {
        state.SkipWithError("this CPU has fewer kernels");
        return;
    }
    const std::int64_t count = state.range(0) / 4;
    const auto values = normal_values<float>(count, 1);
    measure(state, {values.data(), DType::kFloat32, {&count, 1}, {}}, kernels[index]);
}

void measure_histogram(benchmark::State& state, const TensorView& view) {
    for (auto _ : state) benchmark::DoNotOptimize(traindbg::reduce::histogram(view));
    state.SetBytesProcessed(state.iterations() * view.element_count() *
                            static_cast<std::int64_t>(traindbg::tensor::byte_size(view.dtype)));
}

void histogram_float32(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 4;
    const auto values = normal_values<float>(count, 1e-3);
    measure_histogram(state, {values.data(), DType::kFloat32, {&count, 1}, {}});
}

// All elements in one bin: each increment needs the result of one before it.
void histogram_constant(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 4;
    const std::vector<float> values(static_cast<std::size_t>(count), 0.5F);
    measure_histogram(state, {values.data(), DType::kFloat32, {&count, 1}, {}});
}

void histogram_bfloat16(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 2;
    const auto values = brain_values(count);
    measure_histogram(state, {values.data(), DType::kBFloat16, {&count, 1}, {}});
}

void relu_units(benchmark::State& state) {  // a tenth of the units is dead
    const std::int64_t shape[] = {state.range(0) / 4 / 1024, 16, 64};
    auto values = normal_values<float>(state.range(0) / 4, 1);
    const std::int64_t images[] = {shape[0], shape[1], 8, 8};
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = i / 64 % 16 < 2 ? 0 : std::max(values[i], 0.0F);
    const TensorView view{values.data(), DType::kFloat32, images, {}};
    for (auto _ : state)
        benchmark::DoNotOptimize(traindbg::reduce::unit_statistics(view, ActivationKind::kRelu));
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

void tanh_units(benchmark::State& state) {
    const std::int64_t shape[] = {state.range(0) / 4 / 1024, 1024};
    const auto values = normal_values<float>(state.range(0) / 4, 1);
    const TensorView view{values.data(), DType::kFloat32, shape, {}};
    for (auto _ : state)
        benchmark::DoNotOptimize(traindbg::reduce::unit_statistics(view, ActivationKind::kTanh));
    state.SetBytesProcessed(state.iterations() * state.range(0));
}

void sizes(benchmark::internal::Benchmark* bench) {
    for (const std::int64_t bytes : {4 << 10, 256 << 10, 1 << 20, 100 << 20}) bench->Arg(bytes);
}

BENCHMARK(statistics_float32)->Arg(512)->Apply(sizes);
BENCHMARK(copy)->Apply(sizes);
BENCHMARK(naive_loop)->Apply(sizes);
BENCHMARK(statistics_bfloat16)->Apply(sizes);
BENCHMARK(statistics_float16)->Arg(256 << 10)->Arg(100 << 20);
BENCHMARK(statistics_float64)->Arg(256 << 10)->Arg(100 << 20);
BENCHMARK(statistics_vanishing)->Arg(256 << 10);
BENCHMARK(statistics_one_nan)->Arg(256 << 10);
BENCHMARK(statistics_strided)->Arg(256 << 10);
BENCHMARK(each_kernel)->ArgsProduct({{256 << 10}, {0, 1, 2, 3}});
BENCHMARK(histogram_float32)->Apply(sizes);
BENCHMARK(histogram_constant)->Arg(1 << 20);
BENCHMARK(histogram_bfloat16)->Arg(1 << 20);
BENCHMARK(relu_units)->Arg(1 << 20);
BENCHMARK(tanh_units)->Arg(1 << 20);

}  // namespace
