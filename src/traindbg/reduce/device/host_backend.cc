#include <cstdlib>
#include <new>
#include <vector>

#include "traindbg/reduce/device/backend.h"

namespace traindbg::reduce::device {
namespace {

using base::Result;
using base::Status;

// As few as can take the rest of a line, one element each.
constexpr Word32 kThreads = 8;

class HostBackend final : public Backend {
  public:
    explicit HostBackend(unsigned behind) : behind_(behind) {}

    Status prepare(const Place& /*place*/) override { return Status::ok(); }
    bool is_capturing(const Place& /*place*/) override { return false; }
    Result<void*> allocate(const Place& /*place*/, std::size_t bytes) override {
        return static_cast<void*>(room(bytes));
    }
    Result<SharedMemory> share(const Place& /*place*/, std::size_t bytes) override {
        std::byte* const memory = room(bytes);
        return SharedMemory{memory, memory};
    }
    Status launch(const Place& /*place*/, const Batch& batch, Word32 /*blocks*/) override {
        for (Word32 i = 0; i < batch.size; ++i) run(batch.tasks[i]);
        return Status::ok();
    }
    Result<std::uint32_t> mark(const Place& /*place*/) override { return marks_++; }
    bool has_passed(const Place& /*place*/, std::uint32_t mark) override { return mark + behind_ < marks_; }
    Status wait(const Place& /*place*/, std::uint32_t /*mark*/) override { return Status::ok(); }
    void forget(const Place& /*place*/, std::uint32_t /*mark*/) noexcept override {}

  private:
    static void run(const Task& task) {
        double samples[kSamples];
        for (Word32 i = 0; i < kSamples; ++i) samples[i] = sample_of(task, i);
        const double start = middle_of(samples);
        Found all = nothing_found();
        for (Word32 block = 0; block < task.blocks; ++block) {
            Found of_block = nothing_found();
            for (Word32 thread = 0; thread < kThreads; ++thread)
                add(of_block, part_of(task, start, block, thread, kThreads));
            add(all, of_block);
        }
        Word64 inactive = 0;
        if (task.active != nullptr)
            for (Word32 unit = 0; unit < task.units; ++unit)
                inactive += task.active[unit] != task.stamp ? 1U : 0U;
        *task.record = {all, start, inactive};
    }

    std::byte* room(std::size_t bytes) {
        return reinterpret_cast<std::byte*>(
            memory_.emplace_back((bytes + sizeof(Line) - 1) / sizeof(Line)).data());
    }

    const unsigned behind_;
    std::uint32_t marks_ = 0;
    std::vector<std::vector<Line>> memory_;
};

}  // namespace

std::unique_ptr<Backend> host_backend(unsigned behind) { return std::make_unique<HostBackend>(behind); }

}  // namespace traindbg::reduce::device
