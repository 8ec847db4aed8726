// Where the kernels of a reduction run: on a GPU, or, for tests and for trainings on the CPU that are to go
// the same way, on the host. Internal to the module.
//
// Thread-safety: one thread at a time. Errors: none is fatal; what cannot be done is said as a Status.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "traindbg/base/status.h"
#include "traindbg/reduce/device/chunk.h"
#include "traindbg/reduce/device/device_reducer.h"

namespace traindbg::reduce::device {

using Place = DeviceReducer::Place;

// Memory that the host reads and a device writes. Given back with its backend.
struct SharedMemory {
    std::byte* host = nullptr;
    std::byte* device = nullptr;
};

class Backend {
  public:
    Backend() = default;
    Backend(const Backend&) = delete;
    Backend& operator=(const Backend&) = delete;
    virtual ~Backend() = default;

    // Nothing of a device's is given back from now on: it may still write there, or it is a parent process's.
    virtual void abandon() noexcept {}
    // Compiles for the device where that was not done yet: the first call takes about a second.
    virtual base::Status prepare(const Place& place) = 0;
    // What is launched on the stream now would become part of a graph.
    virtual bool is_capturing(const Place& place) = 0;
    // Of the device, zeroed in the stream's order. Given back with the backend.
    virtual base::Result<void*> allocate(const Place& place, std::size_t bytes) = 0;
    virtual base::Result<SharedMemory> share(const Place& place, std::size_t bytes) = 0;
    virtual base::Status launch(const Place& place, const Batch& batch, Word32 blocks) = 0;
    // Remembers, by a number, how far the stream is with what was handed to it, and whether it has come so
    // far; an error: the device failed. A number is used again after `forget`.
    virtual base::Result<std::uint32_t> mark(const Place& place) = 0;
    virtual base::Result<bool> has_passed(const Place& place, std::uint32_t mark) = 0;
    virtual void forget(const Place& place, std::uint32_t mark) noexcept = 0;
};

// Works when a mark is passed, with what the tensors held when it was launched; it is so many marks behind,
// until somebody has looked for it some hundred times.
[[nodiscard]] std::unique_ptr<Backend> host_backend(unsigned behind);
// `compilers`: file names of NVRTC, the first that can be loaded is used.
[[nodiscard]] base::Result<std::unique_ptr<Backend>> cuda_backend(std::span<const std::string> compilers);

}  // namespace traindbg::reduce::device
