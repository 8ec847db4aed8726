// The decoder of TensorFlow's events over any bytes. What it accepts must survive a trip through the
// encoder, and tensors in it must give as many bytes as their shape says, or none.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "traindbg/format/tf_event.h"

using namespace traindbg;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

// NaN is not equal to itself, and a list of numbers is written in the type of its tensor.
bool is_comparable(const format::TfEvent& event) {
    const auto has_nan = [](const std::vector<double>& values) {
        return std::any_of(values.begin(), values.end(), [](double value) { return std::isnan(value); });
    };
    if (std::isnan(event.wall_time)) return false;
    for (const format::TfSummaryValue& value : event.values) {
        if (value.simple_value && std::isnan(*value.simple_value)) return false;
        if (value.histogram) {
            const format::TfHistogram& h = *value.histogram;
            if (has_nan({h.min, h.max, h.num, h.sum, h.sum_squares}) || has_nan(h.bucket) ||
                has_nan(h.bucket_limit))
                return false;
        }
        if (value.tensor && !value.tensor->reals.empty()) return false;
    }
    return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto event = format::decode_tf_event(std::as_bytes(std::span(data, size)));
    if (!event) return 0;
    base::ByteWriter out;
    format::encode_tf_event(out, *event);
    const auto again = format::decode_tf_event(out.bytes());
    require(again.is_ok());
    if (is_comparable(*event)) require(*again == *event);
    base::ByteWriter once_more;
    format::encode_tf_event(once_more, *again);
    require(once_more.bytes() == out.bytes());
    for (const format::TfSummaryValue& value : event->values) {
        if (!value.tensor) continue;
        base::ByteBuffer own;
        const auto values = format::tensor_values(*value.tensor, own, 1 << 16);
        if (!values) continue;
        std::uint64_t count = 1;
        for (const std::int64_t extent : value.tensor->shape) count *= static_cast<std::uint64_t>(extent);
        require(values->size() == count * tensor::byte_size(format::dtype_of_tf(value.tensor->dtype)));
    }
    return 0;
}
