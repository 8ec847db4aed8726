// Statistics of tensors in the memory of a device, taken there: one pass over each tensor, on the stream in
// which the training works with it, and a hundred bytes of each for the host. Nothing waits but `wait`.
//
// The kernels are compiled by NVRTC when they are first wanted, for the GPU that is there; neither CUDA's
// toolkit nor a header of it is needed to build or to run, only the driver and the library that PyTorch
// brings with it.
//
// Accuracy: see chunk.h; where its condition holds, as `statistics` of reducer.h promises.
// Thread-safety: one thread at a time. A child of a fork must not use it; destroying it there is harmless.
// Memory: on each device and stream 1 MiB, more where tensors have very many units, and page-locked host
// memory of 112 bytes for each result that was ever awaited at the same time; kept until the reducer is
// destroyed. A stream must live until what was begun on it was marked.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "traindbg/base/status.h"
#include "traindbg/model/statistics.h"
#include "traindbg/model/tensor_info.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg::reduce {
namespace device {
class Backend;
}

class DeviceReducer {
  public:
    // A stream of a device; its handle is the driver's (0: the default stream).
    struct Place {
        std::int32_t device = 0;
        std::uint64_t stream = 0;

        friend bool operator==(const Place&, const Place&) = default;
    };
    // `view.data` is an address of the device.
    struct Wanted {
        tensor::TensorView view;
        model::ActivationKind units_of = model::ActivationKind::kNone;  // its units are counted, too
    };
    // By which a result is asked for, until it is released.
    using Ticket = std::uint32_t;
    static constexpr Ticket kNone = UINT32_MAX;

    // `compilers`: file names of NVRTC; the first that can be loaded is used. Fails with kUnsupported where
    // there is no driver, no compiler or no device.
    [[nodiscard]] static base::Result<std::unique_ptr<DeviceReducer>> on_cuda(
        std::span<const std::string> compilers);
    // For tensors in host memory, by the same source, and as if it were `behind` marks behind: for tests.
    [[nodiscard]] static std::unique_ptr<DeviceReducer> on_host(unsigned behind = 0);
    // On whatever there is; for tests.
    [[nodiscard]] static std::unique_ptr<DeviceReducer> on(std::unique_ptr<device::Backend> backend);
    ~DeviceReducer();

    // Begins to reduce; what is done on the stream afterwards may change the tensors. Of each its ticket, or
    // kNone: its elements do not lie in a row (in any order of the dimensions), it is empty, its type is
    // complex or unknown, the stream is captured, or something failed, which `failure` tells.
    void begin(const Place& place, std::span<const Wanted> tensors, std::span<Ticket> tickets) noexcept;
    // The same of `after - before`, which have one shape, one floating type and the same strides.
    [[nodiscard]] Ticket begin_difference(const Place& place, const tensor::TensorView& before,
                                          const tensor::TensorView& after) noexcept;

    // A mark of what was begun up to now. 0: there is no memory for one, and what it was for is lost.
    using Mark = std::uint64_t;
    [[nodiscard]] Mark mark() noexcept;
    // Whether the device has come so far, and if it has, what became of it: ok, or on an error, no result of
    // before the mark is there. The mark is void then. A stream that is captured comes no further until that
    // is over.
    [[nodiscard]] std::optional<base::Status> poll(Mark mark) noexcept;
    // The same for all that was begun, marked or not, for at most so long; its marks stay. An error: not in
    // that time, or as above.
    [[nodiscard]] base::Status wait(std::chrono::nanoseconds patience) noexcept;
    [[nodiscard]] model::Statistics statistics(Ticket ticket) const noexcept;
    [[nodiscard]] model::UnitStatistics units(Ticket ticket) const noexcept;
    [[nodiscard]] double before_l2(Ticket ticket) const noexcept;  // of a difference
    // The value of a tensor with one element.
    [[nodiscard]] double value(Ticket ticket) const noexcept;
    // The ticket is void. The device must have passed it.
    void release(Ticket ticket) noexcept;

    // Why something was not taken, the last time that was an error; ok where nothing failed so far. After one
    // nothing more is taken on that stream.
    [[nodiscard]] const base::Status& failure() const noexcept;

  private:
    class Impl;
    explicit DeviceReducer(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> impl_;
};

}  // namespace traindbg::reduce
