#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <vector>

#include "traindbg/reduce/device/backend.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::reduce::device {
namespace {

using base::Result;
using base::Status;

// As few as can take the rest of a line, one element each.
constexpr Word32 kHostThreads = 8;
// Who waits sees it pass.
constexpr unsigned kLooksToPass = 300;

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
        for (Word32 i = 0; i < batch.size; ++i) {
            Launched& launched = launched_.emplace_back(Launched{batch.tasks[i], {}, {}, marks_});
            launched.data = copied(launched.task, launched.task.data);
            launched.before = copied(launched.task, launched.task.before);
            *launched.task.record = nothing_yet();
        }
        return Status::ok();
    }
    Result<std::uint32_t> mark(const Place& /*place*/) override { return marks_++; }
    Result<bool> has_passed(const Place& /*place*/, std::uint32_t mark) override {
        if (mark + behind_ >= marks_ && ++looks_ % kLooksToPass != 0) return false;
        while (!launched_.empty() && launched_.front().mark <= mark) {
            run(launched_.front());
            launched_.pop_front();
        }
        return true;
    }
    void forget(const Place& /*place*/, std::uint32_t /*mark*/) noexcept override {}

  private:
    struct Launched {
        Task task;
        std::vector<std::byte> data;
        std::vector<std::byte> before;
        std::uint32_t mark;  // the first after it
    };

    // At an address that is like the tensor's to sixteen bytes.
    static std::vector<std::byte> copied(const Task& task, const void* from) {
        if (from == nullptr) return {};
        const std::size_t size = task.elements * tensor::byte_size(static_cast<tensor::DType>(task.element));
        std::vector<std::byte> out(size + 2 * sizeof(Line));
        std::memcpy(out.data() + lead(out, from), from, size);
        return out;
    }
    static std::size_t lead(const std::vector<std::byte>& copy, const void* from) noexcept {
        const auto wanted = reinterpret_cast<std::uintptr_t>(from);
        const auto there = reinterpret_cast<std::uintptr_t>(copy.data());
        return (wanted - there) % sizeof(Line);
    }
    // What nobody may read.
    static Record nothing_yet() noexcept {
        Record record{};
        record.start = std::numeric_limits<double>::quiet_NaN();
        record.found.nan = record.found.above = 1;
        return record;
    }

    static void run(const Launched& launched) {
        Task task = launched.task;
        task.data = launched.data.data() + lead(launched.data, task.data);
        if (task.before != nullptr) task.before = launched.before.data() + lead(launched.before, task.before);
        double samples[kSamples];
        for (Word32 i = 0; i < kSamples; ++i) samples[i] = sample_of(task, i);
        const double start = middle_of(samples);
        Found all = nothing_found();
        for (Word32 block = 0; block < task.blocks; ++block) {
            Found of_block = nothing_found();
            for (Word32 thread = 0; thread < kHostThreads; ++thread)
                add(of_block, part_of(task, start, block, thread, kHostThreads));
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
    unsigned looks_ = 0;  // in vain
    std::deque<Launched> launched_;
    std::vector<std::vector<Line>> memory_;
};

}  // namespace

std::unique_ptr<Backend> host_backend(unsigned behind) { return std::make_unique<HostBackend>(behind); }

}  // namespace traindbg::reduce::device
