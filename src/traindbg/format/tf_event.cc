#include "traindbg/format/tf_event.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <protozero/pbf_reader.hpp>
#include <utility>

#include "traindbg/base/format.h"

namespace traindbg::format {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::ByteWriter;
using base::Code;
using base::Result;
using base::Status;
using protozero::pbf_reader;
using protozero::pbf_wire_type;
using protozero::tag_and_type;
using tensor::DType;

// TensorFlow's number first. The quantized ones stand at the end, so that writing never picks them.
constexpr std::array<std::pair<std::int32_t, DType>, 22> kTypes = {{
    {1, DType::kFloat32},     {2, DType::kFloat64},   {3, DType::kInt32},     {4, DType::kUInt8},
    {5, DType::kInt16},       {6, DType::kInt8},      {8, DType::kComplex64}, {9, DType::kInt64},
    {10, DType::kBool},       {14, DType::kBFloat16}, {17, DType::kUInt16},   {18, DType::kComplex128},
    {19, DType::kFloat16},    {22, DType::kUInt32},   {23, DType::kUInt64},   {24, DType::kFloat8E5M2},
    {25, DType::kFloat8E4M3}, {11, DType::kInt8},     {12, DType::kUInt8},    {13, DType::kInt32},
    {15, DType::kInt16},      {16, DType::kUInt16},
}};

// ---- reading

constexpr auto kVarint = pbf_wire_type::varint;
constexpr auto kFixed32 = pbf_wire_type::fixed32;
constexpr auto kFixed64 = pbf_wire_type::fixed64;
constexpr auto kBytes = pbf_wire_type::length_delimited;

std::string_view text_of(pbf_reader& in) {
    const protozero::data_view view = in.get_view();
    return {view.data(), view.size()};
}

ByteSpan bytes_of(pbf_reader& in) { return base::as_bytes(text_of(in)); }

std::int64_t signed_of(std::uint64_t value) noexcept { return static_cast<std::int64_t>(value); }

// Refuses what is well-formed and still not to be taken.
Status too_many(const char* what, std::size_t most) {
    return {Code::kDataLoss, base::format("an event with more than {} {}", most, what)};
}

Status read_dimension(pbf_reader in, TfTensor& out) {
    std::int64_t size = 0;
    std::string_view name;
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(1, kVarint): size = in.get_int64(); break;
            case tag_and_type(2, kBytes): name = text_of(in); break;
            default: in.skip();
        }
    }
    if (out.shape.size() == kMostTfRank) return too_many("dimensions of a tensor", kMostTfRank);
    out.shape.push_back(size);
    out.dimension_names.push_back(name);
    return Status::ok();
}

Status read_shape(pbf_reader in, TfTensor& out) {
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(2, kBytes):
                TRAINDBG_RETURN_IF_ERROR(read_dimension(in.get_message(), out));
                break;
            default: in.skip();
        }
    }
    return Status::ok();
}

template <typename Range, typename Out>
void append_all(const Range& range, Out& out) {
    for (const auto value : range) out.push_back(static_cast<typename Out::value_type>(value));
}

Status read_tensor(pbf_reader in, TfTensor& out) {
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(1, kVarint): out.dtype = in.get_enum(); break;
            case tag_and_type(2, kBytes): TRAINDBG_RETURN_IF_ERROR(read_shape(in.get_message(), out)); break;
            case tag_and_type(4, kBytes): out.content = bytes_of(in); break;
            case tag_and_type(5, kBytes):  // float_val
            case tag_and_type(9, kBytes):  // scomplex_val
                append_all(in.get_packed_float(), out.reals);
                break;
            case tag_and_type(5, kFixed32):
            case tag_and_type(9, kFixed32): out.reals.push_back(static_cast<double>(in.get_float())); break;
            case tag_and_type(6, kBytes):   // double_val
            case tag_and_type(12, kBytes):  // dcomplex_val
                append_all(in.get_packed_double(), out.reals);
                break;
            case tag_and_type(6, kFixed64):
            case tag_and_type(12, kFixed64): out.reals.push_back(in.get_double()); break;
            case tag_and_type(8, kBytes): out.strings.push_back(text_of(in)); break;
            case tag_and_type(7, kBytes):   // int_val
            case tag_and_type(10, kBytes):  // int64_val
            case tag_and_type(11, kBytes):  // bool_val
            case tag_and_type(13, kBytes):  // half_val
            case tag_and_type(16, kBytes):  // uint32_val
            case tag_and_type(17, kBytes):  // uint64_val
                append_all(in.get_packed_uint64(), out.integers);
                break;
            case tag_and_type(7, kVarint):
            case tag_and_type(10, kVarint):
            case tag_and_type(11, kVarint):
            case tag_and_type(13, kVarint):
            case tag_and_type(16, kVarint):
            case tag_and_type(17, kVarint): out.integers.push_back(signed_of(in.get_uint64())); break;
            default: in.skip();
        }
    }
    if (std::all_of(out.dimension_names.begin(), out.dimension_names.end(),
                    [](std::string_view name) { return name.empty(); }))
        out.dimension_names.clear();
    return Status::ok();
}

void read_histogram(pbf_reader in, TfHistogram& out) {
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(1, kFixed64): out.min = in.get_double(); break;
            case tag_and_type(2, kFixed64): out.max = in.get_double(); break;
            case tag_and_type(3, kFixed64): out.num = in.get_double(); break;
            case tag_and_type(4, kFixed64): out.sum = in.get_double(); break;
            case tag_and_type(5, kFixed64): out.sum_squares = in.get_double(); break;
            case tag_and_type(6, kBytes): append_all(in.get_packed_double(), out.bucket_limit); break;
            case tag_and_type(6, kFixed64): out.bucket_limit.push_back(in.get_double()); break;
            case tag_and_type(7, kBytes): append_all(in.get_packed_double(), out.bucket); break;
            case tag_and_type(7, kFixed64): out.bucket.push_back(in.get_double()); break;
            default: in.skip();
        }
    }
}

void read_plugin(pbf_reader in, TfPluginData& out) {
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(1, kBytes): out.plugin_name = text_of(in); break;
            case tag_and_type(2, kBytes): out.content = text_of(in); break;
            default: in.skip();
        }
    }
}

void read_metadata(pbf_reader in, TfMetadata& out) {
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(1, kBytes): read_plugin(in.get_message(), out.plugins.emplace_back()); break;
            case tag_and_type(2, kBytes): out.display_name = text_of(in); break;
            case tag_and_type(3, kBytes): out.description = text_of(in); break;
            case tag_and_type(4, kVarint): out.data_class = static_cast<TfDataClass>(in.get_enum()); break;
            default: in.skip();
        }
    }
}

Status read_value(pbf_reader in, TfSummaryValue& out) {
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(1, kBytes): out.tag = text_of(in); break;
            case tag_and_type(2, kFixed32): out.simple_value = in.get_float(); break;
            case tag_and_type(5, kBytes): read_histogram(in.get_message(), out.histogram.emplace()); break;
            case tag_and_type(7, kBytes): out.node_name = text_of(in); break;
            case tag_and_type(8, kBytes):
                TRAINDBG_RETURN_IF_ERROR(read_tensor(in.get_message(), out.tensor.emplace()));
                break;
            case tag_and_type(9, kBytes): read_metadata(in.get_message(), out.metadata.emplace()); break;
            default: in.skip();
        }
    }
    return Status::ok();
}

Status read_summary(pbf_reader in, TfEvent& out) {
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(1, kBytes):
                if (out.values.size() == kMostSummaryValues) return too_many("values", kMostSummaryValues);
                TRAINDBG_RETURN_IF_ERROR(read_value(in.get_message(), out.values.emplace_back()));
                break;
            default: in.skip();
        }
    }
    return Status::ok();
}

Status read_event(pbf_reader in, TfEvent& out) {
    while (in.next()) {
        switch (in.tag_and_type()) {
            case tag_and_type(1, kFixed64): out.wall_time = in.get_double(); break;
            case tag_and_type(2, kVarint): out.step = in.get_int64(); break;
            case tag_and_type(3, kBytes): out.file_version = text_of(in); break;
            case tag_and_type(5, kBytes):
                TRAINDBG_RETURN_IF_ERROR(read_summary(in.get_message(), out));
                break;
            default: in.skip();
        }
    }
    return Status::ok();
}

// ---- writing: fields in the order of their numbers, none that has its default value

void tag(ByteWriter& out, std::uint32_t field, pbf_wire_type type) {
    out.varint(field << 3 | static_cast<std::uint32_t>(type));
}
void put_text(ByteWriter& out, std::uint32_t field, std::string_view text) {
    tag(out, field, kBytes);
    out.text(text);
}
void put_text_if(ByteWriter& out, std::uint32_t field, std::string_view text) {
    if (!text.empty()) put_text(out, field, text);
}
void put_integer(ByteWriter& out, std::uint32_t field, std::int64_t value) {
    if (value == 0) return;
    tag(out, field, kVarint);
    out.varint(static_cast<std::uint64_t>(value));
}
void put_double(ByteWriter& out, std::uint32_t field, double value) {
    if (std::bit_cast<std::uint64_t>(value) == 0) return;
    tag(out, field, kFixed64);
    out.fixed(value);
}
void put_doubles(ByteWriter& out, std::uint32_t field, const std::vector<double>& values) {
    if (values.empty()) return;
    tag(out, field, kBytes);
    out.varint(values.size() * sizeof(double));
    out.array(std::span(values));
}
template <typename Write>
void put_message(ByteWriter& out, std::uint32_t field, const Write& write) {
    ByteWriter content;
    write(content);
    tag(out, field, kBytes);
    out.varint(content.size());
    out.append(content.bytes());
}

// The number of the list that holds values of this type one by one, for `integers`.
std::uint32_t integer_list_of(std::int32_t dtype) noexcept {
    switch (dtype_of_tf(dtype)) {
        case DType::kInt64: return 10;
        case DType::kBool: return 11;
        case DType::kFloat16:
        case DType::kBFloat16: return 13;
        case DType::kUInt32: return 16;
        case DType::kUInt64: return 17;
        default: return 7;
    }
}

void write_reals(ByteWriter& out, const TfTensor& tensor) {
    const DType dtype = dtype_of_tf(tensor.dtype);
    if (tensor.reals.empty()) return;
    if (dtype == DType::kFloat64 || dtype == DType::kComplex128) {
        put_doubles(out, dtype == DType::kFloat64 ? 6 : 12, tensor.reals);
        return;
    }
    tag(out, dtype == DType::kComplex64 ? 9 : 5, kBytes);
    out.varint(tensor.reals.size() * sizeof(float));
    for (const double value : tensor.reals) out.fixed(static_cast<float>(value));
}

void write_tensor(ByteWriter& out, const TfTensor& tensor) {
    out.reserve(tensor.content.size() + 64);
    put_integer(out, 1, tensor.dtype);
    put_message(out, 2, [&](ByteWriter& shape) {
        for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
            put_message(shape, 2, [&](ByteWriter& dimension) {
                put_integer(dimension, 1, tensor.shape[i]);
                if (i < tensor.dimension_names.size()) put_text_if(dimension, 2, tensor.dimension_names[i]);
            });
        }
    });
    if (!tensor.content.empty()) {
        tag(out, 4, kBytes);
        out.varint(tensor.content.size());
        out.append(tensor.content);
    }
    // The lists in the order of their numbers: floats are 5 and 6, text 8, integers 7 and from 10 on.
    const DType dtype = dtype_of_tf(tensor.dtype);
    const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
    if (!is_complex) write_reals(out, tensor);
    const auto write_integers = [&] {
        if (tensor.integers.empty()) return;
        put_message(out, integer_list_of(tensor.dtype), [&](ByteWriter& list) {
            for (const std::int64_t value : tensor.integers) list.varint(static_cast<std::uint64_t>(value));
        });
    };
    const bool are_first = integer_list_of(tensor.dtype) == 7;
    if (are_first) write_integers();
    for (const std::string_view text : tensor.strings) put_text(out, 8, text);
    if (is_complex) write_reals(out, tensor);
    if (!are_first) write_integers();
}

void write_histogram(ByteWriter& out, const TfHistogram& histogram) {
    put_double(out, 1, histogram.min);
    put_double(out, 2, histogram.max);
    put_double(out, 3, histogram.num);
    put_double(out, 4, histogram.sum);
    put_double(out, 5, histogram.sum_squares);
    put_doubles(out, 6, histogram.bucket_limit);
    put_doubles(out, 7, histogram.bucket);
}

void write_metadata(ByteWriter& out, const TfMetadata& metadata) {
    for (const TfPluginData& plugin : metadata.plugins) {
        put_message(out, 1, [&](ByteWriter& content) {
            put_text_if(content, 1, plugin.plugin_name);
            put_text_if(content, 2, plugin.content);
        });
    }
    put_text_if(out, 2, metadata.display_name);
    put_text_if(out, 3, metadata.description);
    put_integer(out, 4, static_cast<std::int32_t>(metadata.data_class));
}

void write_value(ByteWriter& out, const TfSummaryValue& value) {
    put_text_if(out, 1, value.tag);
    if (value.simple_value) {
        tag(out, 2, kFixed32);
        out.fixed(*value.simple_value);
    }
    if (value.histogram)
        put_message(out, 5, [&](ByteWriter& content) { write_histogram(content, *value.histogram); });
    put_text_if(out, 7, value.node_name);
    if (value.tensor) put_message(out, 8, [&](ByteWriter& content) { write_tensor(content, *value.tensor); });
    if (value.metadata)
        put_message(out, 9, [&](ByteWriter& content) { write_metadata(content, *value.metadata); });
}

// ---- values of a list, written out

void store_real(ByteBuffer& out, std::size_t index, bool is_wide, double value) noexcept {
    const auto narrow = static_cast<float>(value);
    if (is_wide) std::memcpy(out.data() + index * sizeof(value), &value, sizeof(value));
    else std::memcpy(out.data() + index * sizeof(narrow), &narrow, sizeof(narrow));
}
void store_integer(ByteBuffer& out, std::size_t index, std::size_t width, std::int64_t value) noexcept {
    std::memcpy(out.data() + index * width, &value, width);  // little-endian: the low bytes come first
}

}  // namespace

DType dtype_of_tf(std::int32_t number) noexcept {
    for (const auto& [tf, dtype] : kTypes)
        if (tf == number) return dtype;
    return DType::kUnknown;
}

std::int32_t tf_of_dtype(DType dtype) noexcept {
    for (const auto& [tf, known] : kTypes)
        if (known == dtype) return tf;
    return kTfUnknown;
}

bool operator==(const TfTensor& a, const TfTensor& b) {
    return a.dtype == b.dtype && a.shape == b.shape && a.dimension_names == b.dimension_names &&
           std::equal(a.content.begin(), a.content.end(), b.content.begin(), b.content.end()) &&
           a.strings == b.strings && a.reals == b.reals && a.integers == b.integers;
}

std::optional<std::string_view> TfMetadata::plugin(std::string_view name) const noexcept {
    for (const TfPluginData& data : plugins)
        if (data.plugin_name == name) return data.content;
    return std::nullopt;
}

Result<ByteSpan> tensor_values(const TfTensor& tensor, ByteBuffer& own, std::uint64_t most_bytes) {
    const DType dtype = dtype_of_tf(tensor.dtype);
    if (dtype == DType::kUnknown) {
        return Status(Code::kUnsupported,
                      tensor.dtype == kTfString || !tensor.strings.empty()
                          ? std::string("is text, not numbers")
                          : base::format("has elements of the unknown type {}", tensor.dtype));
    }
    const std::size_t width = tensor::byte_size(dtype);
    std::uint64_t count = 1;
    for (const std::int64_t extent : tensor.shape) {
        if (extent < 0) return Status(Code::kDataLoss, "has a negative dimension");
        const auto wide = static_cast<std::uint64_t>(extent);
        if (wide != 0 && count > (std::uint64_t{1} << 48) / wide)
            return Status(Code::kDataLoss, "has a shape beyond every memory");
        count *= wide;
    }
    const std::uint64_t bytes = count * width;
    if (!tensor.content.empty() || count == 0) {
        if (tensor.content.size() != bytes) {
            return Status(Code::kDataLoss, base::format("has {} bytes where its shape needs {}",
                                                        tensor.content.size(), bytes));
        }
        return tensor.content;
    }
    if (bytes > most_bytes)
        return Status(Code::kResourceExhausted,
                      base::format("has {} elements in a list, which is more than is taken", count));
    const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
    const bool is_wide = dtype == DType::kFloat64 || dtype == DType::kComplex128;
    const bool is_real = is_wide || dtype == DType::kFloat32 || is_complex;
    const std::size_t parts = is_complex ? 2 : 1;
    const std::size_t given = is_real ? tensor.reals.size() / parts : tensor.integers.size();
    if (given > count)
        return Status(Code::kDataLoss,
                      base::format("has {} elements where its shape needs {}", given, count));
    own.assign(static_cast<std::size_t>(bytes), std::byte{0});
    if (given == 0) return ByteSpan(own);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t from = std::min(i, given - 1);
        if (is_real) {
            for (std::size_t part = 0; part < parts; ++part)
                store_real(own, i * parts + part, is_wide, tensor.reals[from * parts + part]);
        } else {
            store_integer(own, i, width, tensor.integers[from]);
        }
    }
    return ByteSpan(own);
}

void encode_tf_event(ByteWriter& out, const TfEvent& event) {
    put_double(out, 1, event.wall_time);
    put_integer(out, 2, event.step);
    put_text_if(out, 3, event.file_version);
    if (event.values.empty()) return;
    put_message(out, 5, [&](ByteWriter& summary) {
        for (const TfSummaryValue& value : event.values)
            put_message(summary, 1, [&](ByteWriter& content) { write_value(content, value); });
    });
}

Result<TfEvent> decode_tf_event(ByteSpan payload) {
    // The one place where an exception of protozero's ends.
    try {
        TfEvent event;
        TRAINDBG_RETURN_IF_ERROR(
            read_event(pbf_reader(reinterpret_cast<const char*>(payload.data()), payload.size()), event));
        return event;
    } catch (const protozero::exception& error) {
        return Status(Code::kDataLoss, base::format("is no event: {}", error.what()));
    }
}

}  // namespace traindbg::format
