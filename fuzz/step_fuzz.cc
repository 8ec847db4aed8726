// The decoders of payloads over any bytes. What a decoder accepts must survive a trip through the
// encoder: then no field was read from beyond its place.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "format/sample_records.h"
#include "traindbg/format/records.h"
#include "traindbg/format/step_sample.h"

using namespace traindbg;

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

// NaN is not equal to itself: such records are compared by their bytes alone.
bool has_nan(const model::StepRecord& record) {
    for (const auto& sample : record.tensors) {
        const model::Statistics& s = sample.statistics;
        if (std::isnan(s.min + s.max + s.mean + s.std + s.l1 + s.l2)) return true;
    }
    for (const auto& sample : record.scalars)
        if (std::isnan(sample.value)) return true;
    return false;
}

// One tensor alone is read as in the whole step, where that is whole.
void check_samples(base::ByteSpan payload, const model::TensorTable& table, const model::StepRecord* whole) {
    for (model::TensorId id = 0; id <= table.size(); ++id) {
        model::TensorSample sample;
        double value = 0;
        const auto found = format::decode_sample_of(payload, table, id, format::SampleParts::kAll, sample);
        const auto found_value = format::decode_scalar_of(payload, table, id, value);
        if (whole == nullptr) continue;
        const auto is_it = [id](const auto& each) { return each.tensor == id; };
        const auto expected = std::find_if(whole->tensors.begin(), whole->tensors.end(), is_it);
        require(found.is_ok() && *found == (expected != whole->tensors.end()));
        if (*found && !has_nan(*whole)) require(sample == *expected);
        const auto scalar = std::find_if(whole->scalars.begin(), whole->scalars.end(), is_it);
        require(found_value.is_ok() && *found_value == (scalar != whole->scalars.end()));
        if (*found_value && !has_nan(*whole)) require(value == scalar->value);
    }
}

void check_step(base::ByteSpan payload, const model::TensorTable& table) {
    model::StepRecord record;
    std::vector<format::RawPlace> raw;
    const bool is_whole = format::decode_step(payload, table, record, &raw).is_ok();
    check_samples(payload, table, is_whole ? &record : nullptr);
    if (!is_whole) return;
    require(format::decode_step_prefix(payload).is_ok());
    base::ByteWriter out;
    require(format::encode_step(out, record, table, raw) == 0);
    model::StepRecord again;
    std::vector<format::RawPlace> raw_again;
    const auto skipped = format::decode_step(out.bytes(), table, again, &raw_again);
    require(skipped.is_ok() && *skipped == 0 && raw == raw_again);
    if (!has_nan(record)) require(record == again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const base::ByteSpan payload = std::as_bytes(std::span(data, size)).subspan(1);
    switch (data[0] % 5) {
        case 0: check_step(payload, testing::sample_tensors()); break;
        case 1: {
            model::TensorTable table;
            if (!format::decode_schema(payload, table).is_ok()) break;
            base::ByteWriter out;
            std::vector<model::TensorInfo> known;
            for (const model::TensorInfo& info : table)
                if (!info.name.empty()) known.push_back(info);
            format::encode_schema(out, known);
            model::TensorTable again;
            require(format::decode_schema(out.bytes(), again).is_ok());
            require(table == again);
            break;
        }
        case 2: {
            const auto event = format::decode_event(payload);
            if (!event) break;
            base::ByteWriter out;
            format::encode_event(out, *event);
            require(*format::decode_event(out.bytes()) == *event);
            break;
        }
        case 3: static_cast<void>(format::decode_totals(payload)); break;
        default: static_cast<void>(format::decode_worker(payload)); break;
    }
    return 0;
}
