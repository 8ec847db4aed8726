// The functions of CUDA's driver and of NVRTC that reductions use, found in the libraries of this machine
// when they are first wanted: nothing of CUDA is needed to build. Declared by the documentation of their
// binary interface, which NVIDIA keeps stable. Internal to the module.
//
// Owns the two libraries, which stay loaded. Thread-safety: as the driver's, which allows any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "traindbg/base/status.h"

namespace traindbg::reduce::device {

using CuResult = int;  // 0: success
using CuDevice = int;
using CuContext = struct CuContextOpaque*;
using CuModule = struct CuModuleOpaque*;
using CuFunction = struct CuFunctionOpaque*;
using CuStream = struct CuStreamOpaque*;
using CuEvent = struct CuEventOpaque*;
using CuAddress = std::uint64_t;
using NvrtcProgram = struct NvrtcProgramOpaque*;

inline constexpr int kMajorOfCapability = 75;  // attributes of a device
inline constexpr int kMinorOfCapability = 76;
inline constexpr unsigned kHostPortable = 1;  // flags of page-locked memory
inline constexpr unsigned kHostMapped = 2;
inline constexpr CuResult kNotReady = 600;
inline constexpr int kRelaxedCapture = 2;         // calls of this thread do no harm to what others capture
inline constexpr unsigned kEventWithoutTime = 2;  // a flag of an event

struct Cuda {
    CuResult (*init)(unsigned flags);
    CuResult (*error_string)(CuResult error, const char** text);
    CuResult (*device)(CuDevice* out, int ordinal);
    CuResult (*attribute)(int* out, int attribute, CuDevice device);
    CuResult (*retain_context)(CuContext* out, CuDevice device);
    CuResult (*release_context)(CuDevice device);
    CuResult (*current_context)(CuContext* out);
    CuResult (*push_context)(CuContext context);
    CuResult (*pop_context)(CuContext* out);
    CuResult (*load_module)(CuModule* out, const void* image);
    CuResult (*unload_module)(CuModule module);
    CuResult (*function)(CuFunction* out, CuModule module, const char* name);
    CuResult (*allocate)(CuAddress* out, std::size_t bytes);
    CuResult (*free)(CuAddress address);
    CuResult (*fill)(CuAddress address, unsigned char value, std::size_t bytes, CuStream stream);
    CuResult (*allocate_host)(void** out, std::size_t bytes, unsigned flags);
    CuResult (*free_host)(void* memory);
    CuResult (*address_of_host)(CuAddress* out, void* memory, unsigned flags);
    CuResult (*launch)(CuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CuStream stream, void** arguments, void** extra);
    CuResult (*create_event)(CuEvent* out, unsigned flags);
    CuResult (*destroy_event)(CuEvent event);
    CuResult (*record_event)(CuEvent event, CuStream stream);
    CuResult (*query_event)(CuEvent event);
    CuResult (*is_capturing)(CuStream stream, int* out);
    CuResult (*exchange_capture_mode)(int* mode);

    int (*create_program)(NvrtcProgram* out, const char* source, const char* name, int headers,
                          const char* const* header_texts, const char* const* header_names);
    int (*destroy_program)(NvrtcProgram* program);
    int (*compile)(NvrtcProgram program, int options, const char* const* texts);
    int (*log_size)(NvrtcProgram program, std::size_t* out);
    int (*log)(NvrtcProgram program, char* out);
    int (*machine_code_size)(NvrtcProgram program, std::size_t* out);
    int (*machine_code)(NvrtcProgram program, char* out);
    int (*assembly_size)(NvrtcProgram program, std::size_t* out);
    int (*assembly)(NvrtcProgram program, char* out);
    int (*architecture_count)(int* out);
    int (*architectures)(int* out);

    // Ok, or what the driver says about it.
    [[nodiscard]] base::Status check(const char* what, CuResult result) const;
};

// Loads `driver` ("libcuda.so.1") and the first of `compilers` that is there.
[[nodiscard]] base::Result<std::unique_ptr<const Cuda>> load_cuda(const std::string& driver,
                                                                  std::span<const std::string> compilers);

// The kernels for a GPU of compute capability `major`.`minor`: machine code where this compiler knows the
// GPU, else assembly for the newest one that it knows, which the driver translates. Takes about half a
// second.
[[nodiscard]] base::Result<std::string> compile_kernels(const Cuda& cuda, int major, int minor);

inline constexpr const char* kKernel = "traindbg_reduce";
extern const char* const kKernelSource;  // chunk.h and kernels.cu

}  // namespace traindbg::reduce::device
