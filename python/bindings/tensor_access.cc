#include "tensor_access.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "bindings.h"
#include "dlpack_abi.h"

namespace traindbg::bindings {
namespace {

using tensor::DType;

DType dtype_of(dlpack::ElementType type) noexcept {
    if (type.lanes != 1) return DType::kUnknown;
    const auto by_width = [&](DType b8, DType b16, DType b32, DType b64) {
        switch (type.bits) {
            case 8: return b8;
            case 16: return b16;
            case 32: return b32;
            case 64: return b64;
            default: return DType::kUnknown;
        }
    };
    switch (type.kind) {
        case dlpack::kInt: return by_width(DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64);
        case dlpack::kUInt: return by_width(DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64);
        case dlpack::kFloat:
            return by_width(DType::kUnknown, DType::kFloat16, DType::kFloat32, DType::kFloat64);
        case dlpack::kBFloat: return type.bits == 16 ? DType::kBFloat16 : DType::kUnknown;
        case dlpack::kComplex:
            return type.bits == 64    ? DType::kComplex64
                   : type.bits == 128 ? DType::kComplex128
                                      : DType::kUnknown;
        case dlpack::kBool: return type.bits == 8 ? DType::kBool : DType::kUnknown;
        case dlpack::kFloat8E4M3Fn: return DType::kFloat8E4M3;
        case dlpack::kFloat8E5M2: return DType::kFloat8E5M2;
        case dlpack::kFloat8E4M3Fnuz: return DType::kFloat8E4M3Fnuz;
        case dlpack::kFloat8E5M2Fnuz: return DType::kFloat8E5M2Fnuz;
        case dlpack::kFloat8E8M0Fnu: return DType::kFloat8E8M0;
        default: return DType::kUnknown;
    }
}

// The struct module's letters, native byte order only.
DType dtype_of_format(const char* format, Py_ssize_t item_size) noexcept {
    if (format == nullptr) return DType::kUInt8;
    std::string_view text(format);
    if (!text.empty() && (text[0] == '@' || text[0] == '=' || text[0] == '<')) text.remove_prefix(1);
    if (text == "Zf") return DType::kComplex64;
    if (text == "Zd") return DType::kComplex128;
    if (text.size() != 1) return DType::kUnknown;
    const auto by_width = [&](DType b8, DType b16, DType b32, DType b64) {
        switch (item_size) {
            case 1: return b8;
            case 2: return b16;
            case 4: return b32;
            case 8: return b64;
            default: return DType::kUnknown;
        }
    };
    switch (text[0]) {
        case 'e':
        case 'f':
        case 'd': return by_width(DType::kUnknown, DType::kFloat16, DType::kFloat32, DType::kFloat64);
        case '?': return DType::kBool;
        case 'b':
        case 'h':
        case 'i':
        case 'l':
        case 'q':
        case 'n': return by_width(DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64);
        case 'B':
        case 'H':
        case 'I':
        case 'L':
        case 'Q':
        case 'N': return by_width(DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64);
        default: return DType::kUnknown;
    }
}

bool has_gaps_or_permutes(const tensor::TensorView& view) noexcept {
    std::int64_t expected = 1;
    for (std::size_t i = view.shape.size(); i-- > 0;) {
        if (!view.strides.empty() && view.strides[i] != expected) return true;
        expected *= view.shape[i];
    }
    return false;
}

// An attribute or the result of a method without arguments; null, with no error set, when there is
// none. A new reference.
PyObject* attribute(PyObject* object, const char* name) noexcept {
    PyObject* out = PyObject_GetAttrString(object, name);
    if (out == nullptr) PyErr_Clear();
    return out;
}
PyObject* call(PyObject* object, const char* method) noexcept {
    PyObject* out = PyObject_CallMethod(object, method, nullptr);
    if (out == nullptr) PyErr_Clear();
    return out;
}
bool is_true(PyObject* value) noexcept {
    const int truth = value == nullptr ? 0 : PyObject_IsTrue(value);
    if (truth < 0) PyErr_Clear();
    return truth > 0;
}
bool method_is_true(PyObject* object, const char* method) noexcept {
    PyObject* value = call(object, method);
    const bool truth = is_true(value);
    Py_XDECREF(value);
    return truth;
}
std::optional<std::vector<std::int64_t>> integers(PyObject* sequence) {
    if (sequence == nullptr) return std::nullopt;
    PyObject* fast = PySequence_Fast(sequence, "");
    if (fast == nullptr) {
        PyErr_Clear();
        return std::nullopt;
    }
    std::vector<std::int64_t> out;
    const Py_ssize_t size = PySequence_Fast_GET_SIZE(fast);
    for (Py_ssize_t i = 0; i < size; ++i) {
        const long long value = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
        if (value == -1 && PyErr_Occurred() != nullptr) {
            PyErr_Clear();
            Py_DECREF(fast);
            return std::nullopt;
        }
        out.push_back(value);
    }
    Py_DECREF(fast);
    return out;
}

// What is known of a type of objects.
struct TypeFacts {
    PyTypeObject* type = nullptr;  // a reference is kept, so that the address stays this type's
    const dlpack::ExchangeTable* table = nullptr;
    // It answers for tensors inside of it: a class with a `__torch_dispatch__` of its own. PyTorch describes
    // such an object as if it had memory, at an address that nobody may read.
    bool is_wrapper = false;
};

TypeFacts look_at(PyTypeObject* type) noexcept {
    TypeFacts facts{.type = type};
    if (PyObject* capsule = attribute(reinterpret_cast<PyObject*>(type), dlpack::kTypeAttribute)) {
        const auto* table =
            static_cast<const dlpack::ExchangeTable*>(PyCapsule_GetPointer(capsule, dlpack::kCapsuleName));
        Py_DECREF(capsule);
        while (table != nullptr && table->version.major != dlpack::kMajorVersion) table = table->older;
        facts.table = table != nullptr && table->describe != nullptr ? table : nullptr;
        PyErr_Clear();
    }
    if (PyObject* dispatch = attribute(reinterpret_cast<PyObject*>(type), "__torch_dispatch__")) {
        facts.is_wrapper = PyCFunction_Check(dispatch) == 0;  // torch.Tensor's own is a built-in function
        Py_DECREF(dispatch);
    }
    return facts;
}

// The last few types are remembered (a training has two or three).
TypeFacts facts_of(PyTypeObject* type) noexcept {
    static TypeFacts known[8];
    static unsigned used = 0;
    for (unsigned i = 0; i < used; ++i)
        if (known[i].type == type) return known[i];
    const TypeFacts facts = look_at(type);
    if (used < std::size(known)) {
        Py_INCREF(type);
        known[used++] = facts;
    }
    return facts;
}

// Whether a tensor has memory: false of one whose storage was freed, or that never had one.
bool has_storage(PyObject* tensor) noexcept {
    PyObject* storage = call(tensor, "untyped_storage");
    PyObject* address = storage == nullptr ? nullptr : call(storage, "data_ptr");
    const bool has_one = is_true(address);
    Py_XDECREF(address);
    Py_XDECREF(storage);
    return has_one;
}

constexpr bool is_complex(DType dtype) noexcept {
    return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

bool attribute_is_true(PyObject* object, const char* name) noexcept {
    PyObject* value = attribute(object, name);
    const bool answer = value == Py_True;  // nothing else may be asked for its truth
    Py_XDECREF(value);
    return answer;
}

// Whether a tensor has indices and values, as gradients of embeddings may.
bool is_sparse(PyObject* object) noexcept { return attribute_is_true(object, "is_sparse"); }

// What `str` makes of an attribute; empty where there is none.
std::string text_of(PyObject* object, const char* name) {
    PyObject* value = attribute(object, name);
    PyObject* text = value == nullptr ? nullptr : PyObject_Str(value);
    const char* letters = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
    PyErr_Clear();
    std::string out = letters == nullptr ? std::string() : std::string(letters);
    Py_XDECREF(text);
    Py_XDECREF(value);
    return out;
}

// The tensor of this process that a wrapper stands for: a distributed tensor's shard; the result of a
// collective call that the training has begun, waited for as its first use does. A new reference; null: none.
PyObject* tensor_inside(PyObject* wrapper) noexcept {
    PyObject* local = attribute(wrapper, "_local_tensor");
    return local != nullptr ? local : call(wrapper, "trigger_wait");
}

// Below this a tensor's address is looked at twice: a view of a freed storage lies at its offset.
constexpr std::uintptr_t kLowAddress = std::uintptr_t{1} << 32;

}  // namespace

TensorReader::~TensorReader() {
    for (const auto& buffer : buffers_) PyBuffer_Release(buffer.get());
    for (PyObject* reference : references_) Py_DECREF(reference);
}

[[gnu::hot]] Readable TensorReader::read(PyObject* object, tensor::TensorView& view) noexcept {
    place_.reset();
    try {
        const TypeFacts facts = facts_of(Py_TYPE(object));
        if (facts.is_wrapper) {
            PyObject* inner = tensor_inside(object);
            if (inner == nullptr) return Readable::kNo;
            references_.push_back(inner);
            return Py_TYPE(inner) == Py_TYPE(object) ? Readable::kNo : read(inner, view);
        }
        const auto read_here = [&] {
            if (facts.table != nullptr) return read_through_table(object, facts.table, view);
            if (PyObject_CheckBuffer(object) != 0) return read_buffer(object, view);
            return read_attributes(object, view);
        };
        const Readable readable = read_here();
        if (readable == Readable::kYes && facts.table != nullptr && is_complex(view.dtype))
            return Readable::kOnDevice;
        return readable == Readable::kNo && is_sparse(object) ? Readable::kOnDevice : readable;
    } catch (...) {  // out of memory
        return Readable::kNo;
    }
}

[[gnu::hot]] Readable TensorReader::read_through_table(PyObject* object, const void* table_address,
                                                       tensor::TensorView& view) {
    const auto* table = static_cast<const dlpack::ExchangeTable*>(table_address);
    dlpack::Tensor seen{};
    if (table->describe(object, &seen) != 0) {
        PyErr_Clear();
        return Readable::kNo;
    }
    const bool is_cuda = seen.device.type == dlpack::kCuda;
    if (!is_cuda && seen.device.type != dlpack::kCpu && seen.device.type != dlpack::kCudaPinnedHost &&
        seen.device.type != dlpack::kRocmPinnedHost)
        return Readable::kOnDevice;
    const auto rank = static_cast<std::size_t>(seen.dimensions);
    view.dtype = dtype_of(seen.dtype);
    view.shape = {seen.shape, rank};
    view.strides = seen.strides == nullptr ? std::span<const std::int64_t>{}
                                           : std::span<const std::int64_t>{seen.strides, rank};
    view.data = seen.data == nullptr ? nullptr : static_cast<const std::byte*>(seen.data) + seen.byte_offset;
    if (reinterpret_cast<std::uintptr_t>(view.data) < kLowAddress && view.element_count() > 0 &&
        !has_storage(object))
        return Readable::kNo;
    // A view whose memory holds the negative of its values is strided: ask only those.
    const bool is_negated = has_gaps_or_permutes(view) && method_is_true(object, "is_neg");
    if (is_cuda) {
        void* stream = nullptr;
        if (!is_negated && !is_complex(view.dtype) && table->current_stream != nullptr &&
            table->current_stream(seen.device.type, seen.device.index, &stream) == 0)
            place_ = {seen.device.index, reinterpret_cast<std::uintptr_t>(stream)};
        else PyErr_Clear();
        return Readable::kOnDevice;
    }
    return is_negated ? Readable::kNo : Readable::kYes;
}

Readable TensorReader::read_attributes(PyObject* object, tensor::TensorView& view) {
    PyObject* address = call(object, "data_ptr");
    if (address == nullptr) return Readable::kNo;
    const auto bits = static_cast<std::uintptr_t>(PyLong_AsUnsignedLongLong(address));
    Py_DECREF(address);
    if (PyErr_Occurred() != nullptr) {
        PyErr_Clear();
        return Readable::kNo;
    }
    PyObject* on_cpu = attribute(object, "is_cpu");
    const bool readable_here = is_true(on_cpu);
    Py_XDECREF(on_cpu);
    if (!readable_here) return Readable::kOnDevice;
    if (method_is_true(object, "is_neg") || method_is_true(object, "is_conj")) return Readable::kNo;

    PyObject* dtype = attribute(object, "dtype");
    PyObject* dtype_name = dtype == nullptr ? nullptr : PyObject_Str(dtype);
    Py_XDECREF(dtype);
    if (dtype_name == nullptr) {
        PyErr_Clear();
        return Readable::kNo;
    }
    Py_ssize_t length = 0;
    const char* text = PyUnicode_AsUTF8AndSize(dtype_name, &length);
    std::string_view name =
        text == nullptr ? std::string_view{} : std::string_view(text, static_cast<std::size_t>(length));
    if (name.starts_with("torch.")) name.remove_prefix(6);
    view.dtype = tensor::parse_dtype(name).value_or(DType::kUnknown);
    if (text == nullptr) PyErr_Clear();
    Py_DECREF(dtype_name);

    PyObject* shape = attribute(object, "shape");
    PyObject* strides = call(object, "stride");
    std::optional<std::vector<std::int64_t>> extents = integers(shape);
    std::optional<std::vector<std::int64_t>> steps = integers(strides);
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    if (!extents || !steps || extents->size() != steps->size()) return Readable::kNo;
    view.data = reinterpret_cast<const void*>(bits);
    view.shape = *extents_.emplace_back(std::make_unique<std::vector<std::int64_t>>(std::move(*extents)));
    view.strides = *extents_.emplace_back(std::make_unique<std::vector<std::int64_t>>(std::move(*steps)));
    const bool may_be_gone = bits < kLowAddress && view.element_count() > 0;
    return may_be_gone && !has_storage(object) ? Readable::kNo : Readable::kYes;
}

Readable TensorReader::read_buffer(PyObject* object, tensor::TensorView& view) {
    // Filled in its final place: a Py_buffer may point into itself.
    Py_buffer& buffer = *buffers_.emplace_back(std::make_unique<Py_buffer>());
    if (PyObject_GetBuffer(object, &buffer, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
        PyErr_Clear();
        buffers_.pop_back();
        return Readable::kNo;
    }
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> strides;
    for (int i = 0; i < buffer.ndim; ++i) {
        if (buffer.itemsize == 0 || buffer.strides[i] % buffer.itemsize != 0) return Readable::kNo;
        shape.push_back(buffer.shape[i]);
        strides.push_back(buffer.strides[i] / buffer.itemsize);
    }
    view.dtype = dtype_of_format(buffer.format, buffer.itemsize);
    view.data = buffer.buf;
    view.shape = *extents_.emplace_back(std::make_unique<std::vector<std::int64_t>>(std::move(shape)));
    view.strides = *extents_.emplace_back(std::make_unique<std::vector<std::int64_t>>(std::move(strides)));
    return Readable::kYes;
}

std::string why_unreadable(PyObject* object) {
    if (attribute_is_true(object, "is_quantized"))
        return "it is quantized: what it holds only stands for numbers; its dequantize() can be given to "
               "traindbg.save";
    if (attribute_is_true(object, "is_nested"))
        return "it is nested, of tensors that differ in shape; what torch.nested.to_padded_tensor makes of "
               "it can "
               "be given to traindbg.save";
    if (attribute_is_true(object, "is_meta")) return "it is on the meta device, where tensors have no values";
    const std::string layout = text_of(object, "layout");
    if (layout.empty()) return "it is no tensor of numbers";
    if (layout != "torch.strided")
        return "its layout is " + layout +
               ", of which nothing is read; its values() or to_dense() can be given "
               "to traindbg.save";
    const TypeFacts facts = facts_of(Py_TYPE(object));
    if (facts.is_wrapper)
        return std::string("its class ") + facts.type->tp_name +
               " stands for other tensors, and which is not known";
    if (!has_storage(object))
        return "it has no memory of its own here: it is wrapped (torch.func) or fake, or its memory was "
               "freed";
    return "its memory cannot be read as it lies; a contiguous copy can be given to traindbg.save";
}

void bind_tensor_access(nanobind::module_& module) {
    module.def(
        "readable",
        [](nanobind::handle tensor) {
            TensorReader reader;
            tensor::TensorView view;
            switch (reader.read(tensor.ptr(), view)) {
                case Readable::kYes: return "yes";
                case Readable::kOnDevice: return "on_device";
                case Readable::kNo: break;
            }
            return "no";
        },
        nanobind::arg("tensor").none(),
        "Whether a tensor's memory can be read in place: 'yes', 'no', or 'on_device', where only its "
        "framework can: it is on a device, or sparse.");
    module.def(
        "why_unreadable", [](nanobind::handle tensor) { return why_unreadable(tensor.ptr()); },
        nanobind::arg("tensor").none(), "Of what is not `readable` why, as the second half of a sentence.");
}

}  // namespace traindbg::bindings
