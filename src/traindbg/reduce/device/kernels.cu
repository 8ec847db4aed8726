// The kernels, behind the text of chunk.h. Compiled at run time for the GPU that is there.

namespace traindbg::reduce::device {

// What the threads of a block found, in thread 0.
__device__ __forceinline__ Found of_block(const Found& mine, Found* shared) {
    const Word32 thread = threadIdx.x;
    shared[thread] = mine;
    __syncthreads();
    for (Word32 half = kThreads / 2; half > 0; half /= 2) {
        if (thread < half) add(shared[thread], shared[thread + half]);
        __syncthreads();
    }
    return shared[0];
}

// As the other blocks left it, not as it lies in this processor's cache.
__device__ __forceinline__ Found fresh(const Found* from) {
    Found out;
    const auto* const words = reinterpret_cast<const Word64*>(from);
    auto* const copy = reinterpret_cast<Word64*>(&out);
#pragma unroll
    for (Word32 i = 0; i < sizeof(Found) / sizeof(Word64); ++i) copy[i] = __ldcg(words + i);
    return out;
}

}  // namespace traindbg::reduce::device

// One block for each stretch of a tensor; the block that is done last puts together what all found, in their
// order, and tells the host. So the result does not depend on which one that is.
extern "C" __global__ void __launch_bounds__(traindbg::reduce::device::kThreads)
    traindbg_reduce(const __grid_constant__ traindbg::reduce::device::Batch batch) {
    using namespace traindbg::reduce::device;
    __shared__ Found shared[kThreads];
    __shared__ bool is_last;
    const Word32 thread = threadIdx.x;
    Word32 number = 0;
    while (number + 1 < batch.size && batch.tasks[number + 1].first_block <= blockIdx.x) ++number;
    const Task& task = batch.tasks[number];
    const Word32 block = blockIdx.x - task.first_block;

    __shared__ double samples[kSamples];
    if (thread < kSamples) samples[thread] = sample_of(task, thread);
    __syncthreads();
    const double start = middle_of(samples);
    Found found = of_block(part_of(task, start, block, thread, kThreads), shared);
    if (task.blocks > 1) {
        if (thread == 0) {  // past the barriers of `of_block`: its fence holds for the marks of all threads
            task.scratch[block] = found;
            __threadfence();
            is_last = atomicAdd(task.arrived, 1U) + 1 == task.blocks;
            __threadfence();
        }
        __syncthreads();
        if (!is_last) return;
        Found mine = nothing_found();
        for (Word32 i = thread; i < task.blocks; i += kThreads) add(mine, fresh(task.scratch + i));
        found = of_block(mine, shared);
        if (thread == 0) *task.arrived = 0;
    }
    __shared__ Word32 inactive;
    if (thread == 0) inactive = 0;
    __syncthreads();
    if (task.active != nullptr) {
        Word32 mine = 0;
        // Past this processor's cache, several at a time.
#pragma unroll 8
        for (Word32 unit = thread; unit < task.units; unit += kThreads)
            mine += __ldcg(task.active + unit) != task.stamp ? 1U : 0U;
        if (mine != 0) atomicAdd(&inactive, mine);
        __syncthreads();
    }
    if (thread == 0) {
        task.record->found = found;
        task.record->start = start;
        task.record->inactive_units = inactive;
        __threadfence_system();
    }
}
