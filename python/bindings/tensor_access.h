// From a Python object that is a tensor to a tensor::TensorView, without a copy and without linking
// any framework.
//
// In order of preference: DLPack's exchange table of the object's type (~50 ns), the attributes
// `data_ptr()`, `shape`, `stride()`, `dtype` that every torch tensor has (~1 µs), Python's buffer
// protocol (NumPy). Of a distributed tensor the part of this process is read, without a collective call.
// Nothing here leaves a Python error set or throws: a tensor that cannot be read is a `Readable` that
// says why.
//
// Lifetime: views borrow from the objects and from the `TensorReader` that made them; both must
// outlive the views. Needs the GIL.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/reduce/device/device_reducer.h"
#include "traindbg/tensor/tensor_view.h"

namespace traindbg::bindings {

enum class Readable : std::uint8_t {
    kYes,
    kOnDevice,  // only its framework can read it: its memory is a device's, or it is sparse or complex
    kNo,        // no memory (fake, vmapped ...), an unknown layout, or not a tensor at all
};

class TensorReader {
  public:
    TensorReader() = default;
    TensorReader(const TensorReader&) = delete;
    TensorReader& operator=(const TensorReader&) = delete;
    ~TensorReader();  // releases buffers

    [[nodiscard]] Readable read(PyObject* object, tensor::TensorView& view) noexcept;
    // Of what was just found to be on a device: where, with the stream that is current, if it is a dense real
    // tensor of a GPU that CUDA knows. Then the view has its shape and an address of the device.
    [[nodiscard]] const std::optional<reduce::DeviceReducer::Place>& place() const noexcept { return place_; }

  private:
    [[nodiscard]] Readable read_through_table(PyObject* object, const void* table, tensor::TensorView& view);
    [[nodiscard]] Readable read_attributes(PyObject* object, tensor::TensorView& view);
    [[nodiscard]] Readable read_buffer(PyObject* object, tensor::TensorView& view);

    std::optional<reduce::DeviceReducer::Place> place_;
    // Nothing here allocates until it is needed, which for dense tensors of a framework is never.
    std::vector<std::unique_ptr<std::vector<std::int64_t>>> extents_;  // that nobody else keeps
    std::vector<std::unique_ptr<Py_buffer>> buffers_;
    std::vector<PyObject*> references_;
};

// Of what was found to be `kNo`: why, as the second half of a sentence, and what can be done. Calls Python.
// Throws std::bad_alloc only.
[[nodiscard]] std::string why_unreadable(PyObject* object);

}  // namespace traindbg::bindings
