// The protobuf messages in TensorFlow's event files, as TensorBoard and the SageMaker Debugger client use
// them: Event, Summary, TensorProto and what they hold. Each record of a TFRecord file is one Event.
//
// Field numbers are those of tensorflow/core/framework; fields that nobody here needs (images, audio,
// session logs) are skipped in reading. The one difference between the two users: the plugin data of a
// value is a single message in TensorFlow and a repeated one in the SageMaker Debugger client, which looks
// the same in bytes when there is one.
//
// Ownership: what was decoded borrows the bytes that it was decoded from; what is to be encoded borrows
// what the caller put there. Errors: kDataLoss for bytes that are no such message. Every length is checked,
// and memory is bounded by a small multiple of the input. Thread-safety: free functions and plain values.
// Cost: one pass; the content of a tensor is not copied in decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::format {

// TensorFlow's numbers of element types that have no counterpart in tensor::DType.
inline constexpr std::int32_t kTfUnknown = 0;
inline constexpr std::int32_t kTfString = 7;
// More are refused: they bound what a reader allocates for a small event.
inline constexpr std::size_t kMostSummaryValues = std::size_t{1} << 16;
inline constexpr std::size_t kMostTfRank = 254;

// The element type of TensorFlow's number; kUnknown for text, resources and others. Quantized integers are
// the integers that hold them.
[[nodiscard]] tensor::DType dtype_of_tf(std::int32_t number) noexcept;
[[nodiscard]] std::int32_t tf_of_dtype(tensor::DType dtype) noexcept;  // kTfUnknown for kUnknown

// A tensor. Its elements stand in `content`, or one by one in one of the lists, which may be shorter than
// the shape says: then the last one stands for the rest.
struct TfTensor {
    std::int32_t dtype = kTfUnknown;
    std::vector<std::int64_t> shape;
    std::vector<std::string_view> dimension_names;  // empty, or one per dimension
    base::ByteSpan content;                         // little-endian, row-major
    std::vector<std::string_view> strings;
    std::vector<double> reals;           // float_val, double_val; complex ones as two each
    std::vector<std::int64_t> integers;  // int_val, int64_val, bool_val, uint32_val, uint64_val, half_val

    friend bool operator==(const TfTensor&, const TfTensor&);
};

// The elements of `tensor` as one block, row-major: its content, or its list written out into `own`, all
// zeros where it has neither. kUnsupported for text and unknown types; kDataLoss when elements and shape do
// not fit; kResourceExhausted when a list would take more than `most_bytes`.
[[nodiscard]] base::Result<base::ByteSpan> tensor_values(const TfTensor& tensor, base::ByteBuffer& own,
                                                         std::uint64_t most_bytes = std::uint64_t{64} << 20);

// Counts of values between limits: bucket i has those above bucket_limit[i - 1], up to bucket_limit[i].
struct TfHistogram {
    double min = 0;
    double max = 0;
    double num = 0;
    double sum = 0;
    double sum_squares = 0;
    std::vector<double> bucket_limit;
    std::vector<double> bucket;

    friend bool operator==(const TfHistogram&, const TfHistogram&) = default;
};

struct TfPluginData {
    std::string_view plugin_name;  // "scalars", "histograms", "text"; "mode", "mode_step"
    std::string_view content;

    friend bool operator==(const TfPluginData&, const TfPluginData&) = default;
};

enum class TfDataClass : std::int32_t { kUnknown = 0, kScalar = 1, kTensor = 2, kBlobSequence = 3 };

struct TfMetadata {
    std::vector<TfPluginData> plugins;
    std::string_view display_name;
    std::string_view description;
    TfDataClass data_class = TfDataClass::kUnknown;

    // The content of the plugin of that name; nothing where it has no data here.
    [[nodiscard]] std::optional<std::string_view> plugin(std::string_view name) const noexcept;

    friend bool operator==(const TfMetadata&, const TfMetadata&) = default;
};

struct TfSummaryValue {
    std::string_view tag;
    std::string_view node_name;
    std::optional<TfMetadata> metadata;
    // One of these; none for an image and other kinds.
    std::optional<float> simple_value;
    std::optional<TfHistogram> histogram;
    std::optional<TfTensor> tensor;

    friend bool operator==(const TfSummaryValue&, const TfSummaryValue&) = default;
};

struct TfEvent {
    double wall_time = 0;  // seconds since 1970
    std::int64_t step = 0;
    std::string_view file_version;  // of the first event of TensorBoard's files: "brain.Event:2"
    std::vector<TfSummaryValue> values;

    friend bool operator==(const TfEvent&, const TfEvent&) = default;
};

void encode_tf_event(base::ByteWriter& out, const TfEvent& event);
[[nodiscard]] base::Result<TfEvent> decode_tf_event(base::ByteSpan payload);

}  // namespace traindbg::format
