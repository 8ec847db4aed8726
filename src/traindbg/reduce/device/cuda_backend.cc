#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/reduce/device/backend.h"
#include "traindbg/reduce/device/cuda.h"

namespace traindbg::reduce::device {
namespace {

using base::Result;
using base::Status;

CuStream stream_of(const Place& place) noexcept { return std::bit_cast<CuStream>(place.stream); }

// Compiled once in a process for each kind of GPU, or found to be impossible.
Result<std::string> kernels_for(const Cuda& cuda, int major, int minor) {
    static std::mutex mutex;
    static std::map<std::pair<int, int>, Result<std::string>> known;
    const std::scoped_lock lock(mutex);
    const std::pair kind(major, minor);
    if (const auto found = known.find(kind); found != known.end()) return found->second;
    return known.emplace(kind, compile_kernels(cuda, major, minor)).first->second;
}

// For the lifetime of this a GPU's context is the current one, as it most often is anyway, and no graph that
// this or another thread captures is disturbed by what is called.
class InContext {
  public:
    InContext(const Cuda& cuda, CuContext context) : cuda_(cuda) {
        has_mode_ = cuda.exchange_capture_mode(&mode_) == 0;
        CuContext current = nullptr;
        if (cuda.current_context(&current) == 0 && current == context) return;
        status_ = cuda.check("context", cuda.push_context(context));
        is_pushed_ = status_.is_ok();
    }
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;
    ~InContext() {
        CuContext popped = nullptr;
        if (is_pushed_) cuda_.pop_context(&popped);
        if (has_mode_) cuda_.exchange_capture_mode(&mode_);
    }
    [[nodiscard]] const Status& status() const noexcept { return status_; }

  private:
    const Cuda& cuda_;
    Status status_;
    int mode_ = kRelaxedCapture;  // then the one before
    bool has_mode_ = false;
    bool is_pushed_ = false;
};

// One GPU: the context that PyTorch works in, and the kernels in it.
class Gpu {
  public:
    explicit Gpu(const Cuda& cuda) : cuda_(cuda) {}
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;
    // When the process ends the driver may be gone before us: it says so, and nobody minds.
    ~Gpu() {
        if (context_ == nullptr || is_abandoned_) return;
        {
            const InContext inside(cuda_, context_);
            if (!inside.status().is_ok()) return;
            for (CuEvent event : events_) cuda_.destroy_event(event);
            for (const CuAddress address : memory_) cuda_.free(address);
            for (void* const memory : shared_) cuda_.free_host(memory);
            if (module_ != nullptr) cuda_.unload_module(module_);
        }
        cuda_.release_context(device_);
    }

    void abandon() noexcept { is_abandoned_ = true; }
    Status open(int ordinal) {
        TRAINDBG_RETURN_IF_ERROR(cuda_.check("cuInit", cuda_.init(0)));
        TRAINDBG_RETURN_IF_ERROR(cuda_.check("cuDeviceGet", cuda_.device(&device_, ordinal)));
        TRAINDBG_RETURN_IF_ERROR(
            cuda_.check("cuDevicePrimaryCtxRetain", cuda_.retain_context(&context_, device_)));
        int major = 0;
        int minor = 0;
        TRAINDBG_RETURN_IF_ERROR(
            cuda_.check("cuDeviceGetAttribute", cuda_.attribute(&major, kMajorOfCapability, device_)));
        TRAINDBG_RETURN_IF_ERROR(
            cuda_.check("cuDeviceGetAttribute", cuda_.attribute(&minor, kMinorOfCapability, device_)));
        TRAINDBG_ASSIGN_OR_RETURN(const std::string code, kernels_for(cuda_, major, minor));
        const InContext inside(cuda_, context_);
        TRAINDBG_RETURN_IF_ERROR(inside.status());
        TRAINDBG_RETURN_IF_ERROR(cuda_.check("cuModuleLoadData", cuda_.load_module(&module_, code.data())));
        return cuda_.check("cuModuleGetFunction", cuda_.function(&kernel_, module_, kKernel));
    }

    Result<void*> allocate(const Place& place, std::size_t bytes) {
        const InContext inside(cuda_, context_);
        TRAINDBG_RETURN_IF_ERROR(inside.status());
        CuAddress address = 0;
        TRAINDBG_RETURN_IF_ERROR(cuda_.check("memory for reductions", cuda_.allocate(&address, bytes)));
        memory_.push_back(address);
        TRAINDBG_RETURN_IF_ERROR(
            cuda_.check("cuMemsetD8Async", cuda_.fill(address, 0, bytes, stream_of(place))));
        return std::bit_cast<void*>(address);
    }
    Result<SharedMemory> share(std::size_t bytes) {
        const InContext inside(cuda_, context_);
        TRAINDBG_RETURN_IF_ERROR(inside.status());
        void* host = nullptr;
        TRAINDBG_RETURN_IF_ERROR(cuda_.check("page-locked memory for results",
                                             cuda_.allocate_host(&host, bytes, kHostPortable | kHostMapped)));
        shared_.push_back(host);
        CuAddress address = 0;
        TRAINDBG_RETURN_IF_ERROR(
            cuda_.check("cuMemHostGetDevicePointer", cuda_.address_of_host(&address, host, 0)));
        return SharedMemory{static_cast<std::byte*>(host), std::bit_cast<std::byte*>(address)};
    }

    Status launch(const Place& place, const Batch& batch, Word32 blocks) {
        const InContext inside(cuda_, context_);
        TRAINDBG_RETURN_IF_ERROR(inside.status());
        std::array<void*, 1> arguments{const_cast<Batch*>(&batch)};
        return cuda_.check("reductions", cuda_.launch(kernel_, blocks, 1, 1, kThreads, 1, 1, 0,
                                                      stream_of(place), arguments.data(), nullptr));
    }
    bool is_capturing(const Place& place) const {
        const InContext inside(cuda_, context_);
        int answer = 0;
        return !inside.status().is_ok() || cuda_.is_capturing(stream_of(place), &answer) != 0 || answer != 0;
    }
    Result<std::uint32_t> mark(const Place& place) {
        const InContext inside(cuda_, context_);
        TRAINDBG_RETURN_IF_ERROR(inside.status());
        if (unused_.empty()) {
            unused_.reserve(events_.size() + 1);
            CuEvent event = nullptr;
            TRAINDBG_RETURN_IF_ERROR(
                cuda_.check("cuEventCreate", cuda_.create_event(&event, kEventWithoutTime)));
            events_.push_back(event);
            unused_.push_back(static_cast<std::uint32_t>(events_.size() - 1));
        }
        const std::uint32_t number = unused_.back();
        TRAINDBG_RETURN_IF_ERROR(
            cuda_.check("cuEventRecord", cuda_.record_event(events_[number], stream_of(place))));
        unused_.pop_back();
        return number;
    }
    Result<bool> has_passed(std::uint32_t mark) const {
        const InContext inside(cuda_, context_);
        TRAINDBG_RETURN_IF_ERROR(inside.status());
        const CuResult result = cuda_.query_event(events_[mark]);
        if (result == kNotReady) return false;
        TRAINDBG_RETURN_IF_ERROR(cuda_.check("the device", result));
        return true;
    }
    void forget(std::uint32_t mark) noexcept { unused_.push_back(mark); }  // there is room for all

  private:
    const Cuda& cuda_;
    CuDevice device_ = 0;
    CuContext context_ = nullptr;
    bool is_abandoned_ = false;
    CuModule module_ = nullptr;
    CuFunction kernel_ = nullptr;
    std::vector<CuAddress> memory_;
    std::vector<void*> shared_;
    std::vector<CuEvent> events_;        // by mark
    std::vector<std::uint32_t> unused_;  // marks
};

class CudaBackend final : public Backend {
  public:
    explicit CudaBackend(std::unique_ptr<const Cuda> cuda) : cuda_(std::move(cuda)) {}

    void abandon() noexcept override {
        for (const auto& [device, gpu] : gpus_)
            if (gpu != nullptr) gpu->abandon();
    }
    Status prepare(const Place& place) override {
        auto& gpu = gpus_[place.device];
        if (gpu != nullptr) return Status::ok();
        auto opened = std::make_unique<Gpu>(*cuda_);
        TRAINDBG_RETURN_IF_ERROR(opened->open(place.device));
        gpu = std::move(opened);
        return Status::ok();
    }
    bool is_capturing(const Place& place) override {
        const auto gpu = gpus_.find(place.device);
        if (gpu != gpus_.end() && gpu->second != nullptr) return gpu->second->is_capturing(place);
        int answer = 0;
        return cuda_->is_capturing(stream_of(place), &answer) != 0 || answer != 0;
    }
    Result<void*> allocate(const Place& place, std::size_t bytes) override {
        return gpus_.at(place.device)->allocate(place, bytes);
    }
    Result<SharedMemory> share(const Place& place, std::size_t bytes) override {
        return gpus_.at(place.device)->share(bytes);
    }
    Status launch(const Place& place, const Batch& batch, Word32 blocks) override {
        return gpus_.at(place.device)->launch(place, batch, blocks);
    }
    Result<std::uint32_t> mark(const Place& place) override { return gpus_.at(place.device)->mark(place); }
    Result<bool> has_passed(const Place& place, std::uint32_t mark) override {
        return gpus_.at(place.device)->has_passed(mark);
    }
    void forget(const Place& place, std::uint32_t mark) noexcept override {
        if (const auto gpu = gpus_.find(place.device); gpu != gpus_.end()) gpu->second->forget(mark);
    }

  private:
    const std::unique_ptr<const Cuda> cuda_;  // outlives the GPUs
    std::map<std::int32_t, std::unique_ptr<Gpu>> gpus_;
};

}  // namespace

Result<std::unique_ptr<Backend>> cuda_backend(std::span<const std::string> compilers) {
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<const Cuda> cuda, load_cuda("libcuda.so.1", compilers));
    return std::unique_ptr<Backend>(std::make_unique<CudaBackend>(std::move(cuda)));
}

}  // namespace traindbg::reduce::device
