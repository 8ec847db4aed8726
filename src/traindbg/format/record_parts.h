// Pieces of a STEP that pages of sealed parts hold as well. Private to `format`, `read` and `seal`.
#pragma once

#include <cstdint>

#include "traindbg/base/bytes.h"
#include "traindbg/format/records.h"
#include "traindbg/model/statistics.h"
#include "traindbg/model/step_source.h"

namespace traindbg::format::internal {

// How many classes there are, then the three columns.
void encode_class_counts(base::ByteWriter& out, const model::ClassCounts& counts);
// Fails the reader where there are more than `classes_left`, which is counted down.
void decode_class_counts(base::ByteReader& reader, std::uint64_t& classes_left, model::ClassCounts& counts);

// All of a place but its tensor's id, which stands in `place` already.
void encode_raw_place(base::ByteWriter& out, const RawPlace& place, const model::TensorTable& table);
void decode_raw_place(base::ByteReader& reader, const model::TensorTable& table, RawPlace& place);

}  // namespace traindbg::format::internal
