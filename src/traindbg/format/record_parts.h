// What a STEP is made of, for all that read or write a piece of one. Private to `format`, `read` and `seal`.
#pragma once

#include <array>
#include <cstdint>

#include "traindbg/base/bytes.h"
#include "traindbg/format/records.h"
#include "traindbg/model/channel_statistics.h"
#include "traindbg/model/digest.h"
#include "traindbg/model/statistics.h"
#include "traindbg/model/step_source.h"

namespace traindbg::format::internal {

// Parts of a STEP. The numbers are written into files: never change one, only add.
enum class Section : std::uint64_t {
    kStatistics = 1,
    kUnits = 2,
    kScalars = 3,
    kClasses = 4,
    kRaw = 5,
    kHistograms = 6,
    kChannels = 7,
    kDigests = 8,
};

// The columns of the statistics, in their order; and what may follow for a tensor, in the order of the bits
// of its mark: the element count where it is not that of the description, and the others where they are not
// 0.
inline constexpr std::array kMoments = {&model::Statistics::min,  &model::Statistics::max,
                                        &model::Statistics::mean, &model::Statistics::std,
                                        &model::Statistics::l1,   &model::Statistics::l2};
inline constexpr std::array kCounts = {&model::Statistics::count, &model::Statistics::nan,
                                       &model::Statistics::positive_infinite,
                                       &model::Statistics::negative_infinite, &model::Statistics::zero};

// How many classes there are, then the three columns.
void encode_class_counts(base::ByteWriter& out, const model::ClassCounts& counts);
// Fails the reader where there are more than `classes_left`, which is counted down.
void decode_class_counts(base::ByteReader& reader, std::uint64_t& classes_left, model::ClassCounts& counts);

// How many channels there are, then the columns.
void encode_channels(base::ByteWriter& out, const model::ChannelStatistics& channels);
// Fails the reader where there are more than a tensor may have or than `channels_left`, which is counted
// down, or where a number cannot be.
void decode_channels(base::ByteReader& reader, std::uint64_t& channels_left,
                     model::ChannelStatistics& channels);

void encode_digest(base::ByteWriter& out, const model::Digest& digest);
[[nodiscard]] model::Digest decode_digest(base::ByteReader& reader);

// All of a place but its tensor's id, which stands in `place` already.
void encode_raw_place(base::ByteWriter& out, const RawPlace& place, const model::TensorTable& table);
void decode_raw_place(base::ByteReader& reader, const model::TensorTable& table, RawPlace& place);

}  // namespace traindbg::format::internal
