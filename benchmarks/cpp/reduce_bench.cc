// How fast are all statistics of a tensor, compared with copying it and with the obvious loop?
// The bytes that are reported are those of the tensor.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
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

// What a whole tensor costs: its statistics and a copy of it, in one pass and in two. The copies go round in
// a ring that is larger than the caches, as those on their way to the disk do.
class Ring {
  public:
    explicit Ring(std::size_t piece)
        : piece_((piece + 63) / 64 * 64), memory_(static_cast<std::byte*>(std::aligned_alloc(64, kBytes))) {
        std::memset(memory_.get(), 1, kBytes);
    }
    std::span<std::byte> next(std::size_t bytes) {
        if (at_ + piece_ > kBytes) at_ = 0;
        std::byte* const begin = memory_.get() + at_;
        at_ += piece_;
        return {begin, bytes};
    }

  private:
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };
    static constexpr std::size_t kBytes = std::size_t{256} << 20;
    std::size_t piece_;
    std::size_t at_ = 0;
    std::unique_ptr<std::byte, Free> memory_;
};

template <typename Copy>
void measure_copy(benchmark::State& state, const Copy& copy) {
    const std::int64_t count = state.range(0) / 4;
    const auto values = normal_values<float>(count, 1);
    const TensorView view{values.data(), DType::kFloat32, {&count, 1}, {}};
    Ring ring(values.size() * 4);
    for (auto _ : state) copy(view, ring.next(values.size() * 4));
    state.SetBytesProcessed(state.iterations() * count * 4);
}

void whole_tensor_one_pass(benchmark::State& state) {
    measure_copy(state, [](const TensorView& view, std::span<std::byte> room) {
        benchmark::DoNotOptimize(traindbg::reduce::copy_with_statistics(view, room));
    });
}
void whole_tensor_statistics_then_memcpy(benchmark::State& state) {
    measure_copy(state, [](const TensorView& view, std::span<std::byte> room) {
        benchmark::DoNotOptimize(traindbg::reduce::statistics(view));
        std::memcpy(room.data(), view.data, room.size());
        benchmark::ClobberMemory();
    });
}
void whole_tensor_memcpy_alone(benchmark::State& state) {
    measure_copy(state, [](const TensorView& view, std::span<std::byte> room) {
        std::memcpy(room.data(), view.data, room.size());
        benchmark::ClobberMemory();
    });
}

// What a step did to the weights: two arrays are read, and the bytes are those of both.
template <typename T>
void measure_difference(benchmark::State& state, DType dtype, std::vector<T> before, std::vector<T> after) {
    const auto count = static_cast<std::int64_t>(before.size());
    const TensorView first{before.data(), dtype, {&count, 1}, {}};
    const TensorView second{after.data(), dtype, {&count, 1}, {}};
    for (auto _ : state) benchmark::DoNotOptimize(traindbg::reduce::difference_statistics(first, second));
    state.SetBytesProcessed(state.iterations() * count * 2 * static_cast<std::int64_t>(sizeof(T)));
}

void difference_float32(benchmark::State& state) {
    auto before = normal_values<float>(state.range(0) / 8, 0.02);
    auto after = before;
    for (float& value : after) value *= 0.999F;
    measure_difference(state, DType::kFloat32, std::move(before), std::move(after));
}

void difference_bfloat16(benchmark::State& state) {
    auto before = brain_values(state.range(0) / 4);
    auto after = before;
    for (std::uint16_t& bits : after) bits ^= 1;
    measure_difference(state, DType::kBFloat16, std::move(before), std::move(after));
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

// Of a batch of images, of the same channels-last, and of a weight: the bytes are those of the tensor.
void measure_channels(benchmark::State& state, const TensorView& view, std::size_t dimension) {
    for (auto _ : state) benchmark::DoNotOptimize(traindbg::reduce::channel_statistics(view, dimension));
    state.SetBytesProcessed(state.iterations() * view.element_count() *
                            static_cast<std::int64_t>(traindbg::tensor::byte_size(view.dtype)));
}

void channels_images(benchmark::State& state) {
    const auto values = normal_values<float>(state.range(0) / 4, 1);
    const std::int64_t shape[] = {state.range(0) / 4 / 64 / 64, 64, 8, 8};
    measure_channels(state, {values.data(), DType::kFloat32, shape, {}}, 1);
}

void channels_last(benchmark::State& state) {
    const auto values = normal_values<float>(state.range(0) / 4, 1);
    const std::int64_t shape[] = {state.range(0) / 4 / 64 / 64, 64, 8, 8};
    const std::int64_t strides[] = {64 * 64, 1, 64 * 8, 64};
    measure_channels(state, {values.data(), DType::kFloat32, shape, strides}, 1);
}

void channels_weight(benchmark::State& state) {
    const auto values = normal_values<float>(state.range(0) / 4, 1);
    const std::int64_t shape[] = {256, state.range(0) / 4 / 256};
    measure_channels(state, {values.data(), DType::kFloat32, shape, {}}, 0);
}

void channels_bfloat16(benchmark::State& state) {
    const auto values = brain_values(state.range(0) / 2);
    const std::int64_t shape[] = {256, state.range(0) / 2 / 256};
    measure_channels(state, {values.data(), DType::kBFloat16, shape, {}}, 0);
}

void measure_digest(benchmark::State& state, const TensorView& view) {
    for (auto _ : state) benchmark::DoNotOptimize(traindbg::reduce::digest(view));
    state.SetBytesProcessed(state.iterations() * view.element_count() *
                            static_cast<std::int64_t>(traindbg::tensor::byte_size(view.dtype)));
}

void digest_float32(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 4;
    const auto values = normal_values<float>(count, 1);
    measure_digest(state, {values.data(), DType::kFloat32, {&count, 1}, {}});
}

// A zero ends the product: what is left is the fingerprint.
void digest_with_zeros(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 4;
    auto values = normal_values<float>(count, 1);
    for (float& value : values) value = std::max(value, 0.0F);
    measure_digest(state, {values.data(), DType::kFloat32, {&count, 1}, {}});
}

void digest_bfloat16(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 2;
    const auto values = brain_values(count);
    measure_digest(state, {values.data(), DType::kBFloat16, {&count, 1}, {}});
}

void statistics_and_digest_float32(benchmark::State& state) {
    const std::int64_t count = state.range(0) / 4;
    const auto values = normal_values<float>(count, 1);
    const TensorView view{values.data(), DType::kFloat32, {&count, 1}, {}};
    traindbg::model::Digest digest;
    for (auto _ : state) {
        benchmark::DoNotOptimize(traindbg::reduce::statistics_and_digest(view, digest));
        benchmark::DoNotOptimize(digest);
    }
    state.SetBytesProcessed(state.iterations() * count * 4);
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
BENCHMARK(difference_float32)->Apply(sizes);
BENCHMARK(difference_bfloat16)->Arg(256 << 10)->Arg(100 << 20);
BENCHMARK(statistics_vanishing)->Arg(256 << 10);
BENCHMARK(statistics_one_nan)->Arg(256 << 10);
BENCHMARK(statistics_strided)->Arg(256 << 10);
BENCHMARK(each_kernel)->ArgsProduct({{256 << 10}, {0, 1, 2, 3}});
BENCHMARK(histogram_float32)->Apply(sizes);
BENCHMARK(histogram_constant)->Arg(1 << 20);
BENCHMARK(histogram_bfloat16)->Arg(1 << 20);
BENCHMARK(channels_images)->Arg(1 << 20)->Arg(100 << 20);
BENCHMARK(channels_last)->Arg(1 << 20)->Arg(100 << 20);
BENCHMARK(channels_weight)->Arg(1 << 20)->Arg(100 << 20);
BENCHMARK(channels_bfloat16)->Arg(1 << 20);
BENCHMARK(digest_float32)->Apply(sizes);
BENCHMARK(digest_with_zeros)->Arg(1 << 20);
BENCHMARK(digest_bfloat16)->Arg(1 << 20);
BENCHMARK(statistics_and_digest_float32)->Apply(sizes);
BENCHMARK(relu_units)->Arg(1 << 20);
BENCHMARK(tanh_units)->Arg(1 << 20);

BENCHMARK(whole_tensor_one_pass)->Arg(40 << 10)->Arg(1 << 20)->Arg(100 << 20);
BENCHMARK(whole_tensor_statistics_then_memcpy)->Arg(40 << 10)->Arg(1 << 20)->Arg(100 << 20);
BENCHMARK(whole_tensor_memcpy_alone)->Arg(40 << 10)->Arg(1 << 20)->Arg(100 << 20);

}  // namespace
