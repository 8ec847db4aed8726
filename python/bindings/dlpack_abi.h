// The few structures through which tensor libraries show each other their memory (DLPack, major
// version 1), declared as far as we read them. Layout only: no code of another project is needed to
// build, and no tensor library is linked.
//
// A tensor class that takes part has an attribute `__dlpack_c_exchange_api__`: a capsule named
// "dlpack_exchange_api" that holds a pointer to an `ExchangeTable`, which lives as long as the
// process. Its function `describe` fills in a `Tensor` that borrows from the Python object: nothing is
// allocated, no reference is taken, and no stream is synchronised.
#pragma once

#include <cstddef>
#include <cstdint>

namespace traindbg::bindings::dlpack {

inline constexpr const char* kCapsuleName = "dlpack_exchange_api";
inline constexpr const char* kTypeAttribute = "__dlpack_c_exchange_api__";
inline constexpr std::uint32_t kMajorVersion = 1;

inline constexpr std::int32_t kCpu = 1;
inline constexpr std::int32_t kCuda = 2;
inline constexpr std::int32_t kCudaPinnedHost = 3;
inline constexpr std::int32_t kRocmPinnedHost = 11;

// Kinds of element types.
inline constexpr std::uint8_t kInt = 0;
inline constexpr std::uint8_t kUInt = 1;
inline constexpr std::uint8_t kFloat = 2;
inline constexpr std::uint8_t kBFloat = 4;
inline constexpr std::uint8_t kComplex = 5;
inline constexpr std::uint8_t kBool = 6;
inline constexpr std::uint8_t kFloat8E4M3Fn = 10;
inline constexpr std::uint8_t kFloat8E4M3Fnuz = 11;
inline constexpr std::uint8_t kFloat8E5M2 = 12;
inline constexpr std::uint8_t kFloat8E5M2Fnuz = 13;
inline constexpr std::uint8_t kFloat8E8M0Fnu = 14;

struct Device {
    std::int32_t type;
    std::int32_t index;
};

struct ElementType {
    std::uint8_t kind;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct Tensor {
    void* data;
    Device device;
    std::int32_t dimensions;
    ElementType dtype;
    std::int64_t* shape;
    std::int64_t* strides;  // in elements; null: row-major
    std::uint64_t byte_offset;
};
static_assert(sizeof(void*) != 8 || (sizeof(Tensor) == 48 && offsetof(Tensor, shape) == 24));

struct ExchangeTable {
    struct {
        std::uint32_t major;
        std::uint32_t minor;
    } version;
    const ExchangeTable* older;  // the same for an older major version, or null
    void (*allocate)();          // not used here; only their place matters
    void (*own)();
    void (*make_object)();
    // 0, or -1 with a Python error set. May be null.
    int (*describe)(void* object, Tensor* out);
    // 0, or -1 with a Python error set: the stream in which the caller's operations on that device go. May be
    // null.
    int (*current_stream)(std::int32_t device_type, std::int32_t device_index, void** out);
};

}  // namespace traindbg::bindings::dlpack
