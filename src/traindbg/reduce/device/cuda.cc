#include "traindbg/reduce/device/cuda.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <vector>

#include "traindbg/base/format.h"

namespace traindbg::reduce::device {
namespace {

using base::Code;
using base::Result;
using base::Status;

// Remembers the first function that is not there.
class Library {
  public:
    explicit Library(void* handle) : handle_(handle) {}

    template <typename Function>
    void find(Function*& function, const char* name) {
        function = reinterpret_cast<Function*>(::dlsym(handle_, name));
        if (function == nullptr && missing_ == nullptr) missing_ = name;
    }
    [[nodiscard]] Status status(std::string_view library) const {
        if (missing_ == nullptr) return Status::ok();
        return {Code::kUnsupported, base::format("{}: too old, it has no {}", library, missing_)};
    }

  private:
    void* handle_;
    const char* missing_ = nullptr;
};

Status find_driver(void* handle, Cuda& cuda) {
    Library library(handle);
    library.find(cuda.init, "cuInit");
    library.find(cuda.error_string, "cuGetErrorString");
    library.find(cuda.device, "cuDeviceGet");
    library.find(cuda.attribute, "cuDeviceGetAttribute");
    library.find(cuda.retain_context, "cuDevicePrimaryCtxRetain");
    library.find(cuda.release_context, "cuDevicePrimaryCtxRelease_v2");
    library.find(cuda.current_context, "cuCtxGetCurrent");
    library.find(cuda.push_context, "cuCtxPushCurrent_v2");
    library.find(cuda.pop_context, "cuCtxPopCurrent_v2");
    library.find(cuda.load_module, "cuModuleLoadData");
    library.find(cuda.unload_module, "cuModuleUnload");
    library.find(cuda.function, "cuModuleGetFunction");
    library.find(cuda.allocate, "cuMemAlloc_v2");
    library.find(cuda.free, "cuMemFree_v2");
    library.find(cuda.fill, "cuMemsetD8Async");
    library.find(cuda.allocate_host, "cuMemHostAlloc");
    library.find(cuda.free_host, "cuMemFreeHost");
    library.find(cuda.address_of_host, "cuMemHostGetDevicePointer_v2");
    library.find(cuda.launch, "cuLaunchKernel");
    library.find(cuda.create_event, "cuEventCreate");
    library.find(cuda.destroy_event, "cuEventDestroy_v2");
    library.find(cuda.record_event, "cuEventRecord");
    library.find(cuda.query_event, "cuEventQuery");
    library.find(cuda.is_capturing, "cuStreamIsCapturing");
    library.find(cuda.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
    return library.status("CUDA's driver");
}
Status find_compiler(void* handle, Cuda& cuda) {
    Library library(handle);
    library.find(cuda.create_program, "nvrtcCreateProgram");
    library.find(cuda.destroy_program, "nvrtcDestroyProgram");
    library.find(cuda.compile, "nvrtcCompileProgram");
    library.find(cuda.log_size, "nvrtcGetProgramLogSize");
    library.find(cuda.log, "nvrtcGetProgramLog");
    library.find(cuda.machine_code_size, "nvrtcGetCUBINSize");
    library.find(cuda.machine_code, "nvrtcGetCUBIN");
    library.find(cuda.assembly_size, "nvrtcGetPTXSize");
    library.find(cuda.assembly, "nvrtcGetPTX");
    library.find(cuda.architecture_count, "nvrtcGetNumSupportedArchs");
    library.find(cuda.architectures, "nvrtcGetSupportedArchs");
    return library.status("NVRTC");
}

// NVRTC looks for a second library by its name alone: the one that lies beside it is loaded first.
void* load_compiler(const std::filesystem::path& file) {
    std::error_code error;
    if (file.has_parent_path())
        for (const auto& entry : std::filesystem::directory_iterator(file.parent_path(), error)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("libnvrtc-builtins.so"))
                ::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
        }
    return ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
}

class Program {
  public:
    explicit Program(const Cuda& cuda) : cuda_(cuda) {
        if (cuda.create_program(&program_, kKernelSource, "traindbg.cu", 0, nullptr, nullptr) != 0)
            program_ = nullptr;
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;
    ~Program() {
        if (program_ != nullptr) cuda_.destroy_program(&program_);
    }

    [[nodiscard]] Result<std::string> compile(const std::string& architecture, bool to_machine_code) {
        const std::string target = "--gpu-architecture=" + architecture;
        const std::array<const char*, 2> options{target.c_str(), "--std=c++17"};
        if (program_ == nullptr ||
            cuda_.compile(program_, static_cast<int>(options.size()), options.data()) != 0)
            return Status(Code::kUnsupported,
                          "NVRTC: the kernels are not compiled for " + architecture + ": " + log());
        std::size_t size = 0;
        if ((to_machine_code ? cuda_.machine_code_size : cuda_.assembly_size)(program_, &size) == 0 &&
            size > 0) {
            std::string out(size, '\0');
            if ((to_machine_code ? cuda_.machine_code : cuda_.assembly)(program_, out.data()) == 0)
                return out;
        }
        return Status(Code::kUnsupported, "NVRTC: gives no code for " + architecture);
    }

  private:
    [[nodiscard]] std::string log() const {
        std::size_t size = 0;
        if (program_ == nullptr || cuda_.log_size(program_, &size) != 0 || size < 2)
            return "no reason is given";
        std::string out(size, '\0');
        if (cuda_.log(program_, out.data()) != 0) return "no reason is given";
        out.resize(std::min<std::size_t>(size - 1, 2000));
        return out;
    }

    const Cuda& cuda_;
    NvrtcProgram program_ = nullptr;
};

}  // namespace

Status Cuda::check(const char* what, CuResult result) const {
    if (result == 0) return Status::ok();
    const char* text = nullptr;
    if (error_string(result, &text) != 0 || text == nullptr) text = "unknown error";
    return {Code::kUnavailable, base::format("{}: {} (CUDA error {})", what, text, result)};
}

Result<std::unique_ptr<const Cuda>> load_cuda(const std::string& driver,
                                              std::span<const std::string> compilers) {
    auto cuda = std::make_unique<Cuda>();
    void* const handle = ::dlopen(driver.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
        return Status(Code::kUnsupported, driver + ": CUDA's driver is not on this machine");
    TRAINDBG_RETURN_IF_ERROR(find_driver(handle, *cuda));
    Status found(Code::kUnsupported, "libnvrtc: not found; PyTorch for CUDA brings it");
    for (const std::string& file : compilers) {
        void* const compiler = load_compiler(file);
        if (compiler == nullptr) continue;
        found = find_compiler(compiler, *cuda);
        if (found.is_ok()) break;
    }
    TRAINDBG_RETURN_IF_ERROR(found);
    return std::unique_ptr<const Cuda>(std::move(cuda));
}

Result<std::string> compile_kernels(const Cuda& cuda, int major, int minor) {
    const int wanted = 10 * major + minor;
    int count = 0;
    std::vector<int> known;
    if (cuda.architecture_count(&count) == 0 && count > 0) {
        known.resize(static_cast<std::size_t>(count));
        if (cuda.architectures(known.data()) != 0) known.clear();
    }
    Program program(cuda);
    if (std::ranges::find(known, wanted) != known.end())
        return program.compile(base::format("sm_{}", wanted), true);
    int nearest = 0;
    for (const int each : known)
        if (each <= wanted) nearest = std::max(nearest, each);
    if (nearest == 0)
        return Status(Code::kUnsupported,
                      base::format("NVRTC: knows no GPU of compute capability {}.{} or less", major, minor));
    return program.compile(base::format("compute_{}", nearest), false);
}

}  // namespace traindbg::reduce::device
