#include "traindbg/format/records.h"

#include <algorithm>
#include <bit>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>

#include "traindbg/base/format.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/record_parts.h"
#include "traindbg/model/json.h"

namespace traindbg::format {
namespace {

using base::ByteReader;
using base::ByteSpan;
using base::ByteWriter;
using base::Code;
using base::Result;
using base::Status;
using internal::kMoments;
using internal::Section;
using model::ChannelSample;
using model::ClassSample;
using model::DigestSample;
using model::HistogramSample;
using model::ScalarSample;
using model::Statistics;
using model::StepRecord;
using model::TensorId;
using model::TensorInfo;
using model::TensorSample;
using model::TensorTable;

// Which counts of a tensor are not what they usually are, and follow as varints in this order.
constexpr std::uint8_t kCountFollows = 1;  // not the element count of the tensor's description
constexpr std::uint8_t kNanFollows = 2;    // not 0, as for all below
constexpr std::uint8_t kPositiveInfiniteFollows = 4;
constexpr std::uint8_t kNegativeInfiniteFollows = 8;
constexpr std::uint8_t kZeroFollows = 16;

Status damaged_record(const char* what) {
    return {Code::kDataLoss, base::format("a {} record is damaged_record", what)};
}

// The nearest float32, but never an infinity or a zero made of something else.
float narrow(double value) noexcept {
    const auto narrowed = static_cast<float>(value);
    if (std::isfinite(narrowed) && (narrowed != 0 || value == 0)) return narrowed;  // nearly always
    if (std::isnan(value) || std::isinf(value)) return narrowed;
    const float sign = std::signbit(value) ? -1.0F : 1.0F;
    return sign * (narrowed == 0 ? FLT_TRUE_MIN : FLT_MAX);
}

// Ids of a list mostly count up by one: each is written as its distance from the one before plus one.
class IdWriter {
  public:
    explicit IdWriter(ByteWriter& out) : out_(out) {}
    void write(TensorId id) {
        out_.zigzag(static_cast<std::int64_t>(id) - expected_);
        expected_ = static_cast<std::int64_t>(id) + 1;
    }

  private:
    ByteWriter& out_;
    std::int64_t expected_ = 0;
};

class IdReader {
  public:
    explicit IdReader(ByteReader& in) : in_(in) {}
    TensorId read() {
        const std::int64_t distance = in_.zigzag();
        constexpr std::int64_t kMost = std::numeric_limits<TensorId>::max();
        if (distance < -expected_ || distance > kMost - expected_) {
            in_.fail();
            return 0;
        }
        const std::int64_t id = expected_ + distance;
        expected_ = id + 1;
        return static_cast<TensorId>(id);
    }

  private:
    ByteReader& in_;
    std::int64_t expected_ = 0;
};

void encode_shape(ByteWriter& out, const std::vector<std::int64_t>& shape) {
    out.varint(shape.size());
    for (const std::int64_t extent : shape) out.zigzag(extent);
}

std::vector<std::int64_t> decode_shape(ByteReader& reader) {
    const std::size_t rank = reader.count();
    if (rank > kMostRank) {
        reader.fail();
        return {};
    }
    std::vector<std::int64_t> shape(rank);
    for (std::int64_t& extent : shape) extent = reader.zigzag();
    return shape;
}

tensor::DType decode_dtype(std::uint8_t number) noexcept {
    return number <= static_cast<std::uint8_t>(tensor::kLastDType) ? static_cast<tensor::DType>(number)
                                                                   : tensor::DType::kUnknown;
}

bool is_mode(std::uint8_t number) noexcept { return number >= 1 && number < model::kModeCount; }

// Writes a section's number and length, then what `write` puts there.
template <typename Write>
void section(ByteWriter& out, Section number, const Write& write) {
    out.varint(static_cast<std::uint64_t>(number));
    const std::size_t begin = out.size();
    write(out);
    out.insert_varint(begin, out.size() - begin);
}

// The element counts of a table's tensors, from the caller's list or from the descriptions.
class UsualCounts {
  public:
    UsualCounts(const TensorTable& table, std::span<const std::uint64_t> counts) noexcept
        : table_(table), counts_(counts) {}
    [[nodiscard]] std::uint64_t of(TensorId id) const noexcept {
        if (id < counts_.size()) return counts_[id];
        return counts_.empty() && is_known(table_, id) ? element_count(table_[id].shape) : kNotDescribed;
    }

  private:
    const TensorTable& table_;
    std::span<const std::uint64_t> counts_;
};

using Moments = std::array<float, kMoments.size()>;

Moments narrow(const Statistics& statistics) noexcept {
    Moments narrowed{};
    bool is_odd = false;  // without a branch for each: they are made side by side
    for (std::size_t k = 0; k < kMoments.size(); ++k) {
        const double value = statistics.*kMoments[k];
        narrowed[k] = static_cast<float>(value);
        const bool overflowed = std::fabs(narrowed[k]) > FLT_MAX;
        const bool vanished = (narrowed[k] == 0) & (value != 0);
        is_odd = is_odd | overflowed | vanished;
    }
    if (is_odd)
        for (std::size_t k = 0; k < kMoments.size(); ++k) narrowed[k] = narrow(statistics.*kMoments[k]);
    return narrowed;
}

void encode_statistics(ByteWriter& out, const std::vector<TensorSample>& samples, const UsualCounts& usual) {
    out.reserve(16 + samples.size() * 32);
    out.varint(samples.size());
    IdWriter ids(out);
    for (const TensorSample& sample : samples) ids.write(sample.tensor);
    // In one pass over the samples, which are much larger than what is kept of them.
    const std::size_t size = samples.size();
    const std::size_t marks_offset = kMoments.size() * size * sizeof(float);
    const std::span<std::byte> columns = out.extend(marks_offset + size);
    bool any_counts = false;
    for (std::size_t i = 0; i < size; ++i) {
        const TensorSample& sample = samples[i];
        const Statistics& s = sample.statistics;
        const Moments moments = narrow(s);
        for (std::size_t k = 0; k < moments.size(); ++k)
            std::memcpy(columns.data() + (k * size + i) * sizeof(float), &moments[k], sizeof(float));
        const std::uint64_t count = usual.of(sample.tensor);
        const auto marks = static_cast<std::uint8_t>(
            (count != kNotDescribed && s.count == count ? 0 : kCountFollows) |
            (s.nan != 0 ? kNanFollows : 0) | (s.positive_infinite != 0 ? kPositiveInfiniteFollows : 0) |
            (s.negative_infinite != 0 ? kNegativeInfiniteFollows : 0) | (s.zero != 0 ? kZeroFollows : 0));
        columns[marks_offset + i] = static_cast<std::byte>(marks);
        any_counts = any_counts || marks != 0;
    }
    if (!any_counts) return;
    const std::size_t first_mark = out.size() - size;  // `columns` may move
    for (std::size_t i = 0; i < size; ++i) {
        const auto marks = std::to_integer<std::uint8_t>(out.bytes()[first_mark + i]);
        const Statistics& s = samples[i].statistics;
        if ((marks & kCountFollows) != 0) out.varint(s.count);
        if ((marks & kNanFollows) != 0) out.varint(s.nan);
        if ((marks & kPositiveInfiniteFollows) != 0) out.varint(s.positive_infinite);
        if ((marks & kNegativeInfiniteFollows) != 0) out.varint(s.negative_infinite);
        if ((marks & kZeroFollows) != 0) out.varint(s.zero);
    }
}

void decode_statistics(ByteReader& reader, const UsualCounts& usual, std::vector<TensorSample>& samples) {
    constexpr std::size_t kLeastBytesEach = 1 + kMoments.size() * sizeof(float) + 1;
    const std::size_t size = reader.count(kLeastBytesEach);
    samples.assign(size, TensorSample{});
    IdReader ids(reader);
    for (TensorSample& sample : samples) sample.tensor = ids.read();
    const ByteSpan columns = reader.raw(kMoments.size() * size * sizeof(float));
    const ByteSpan marks = reader.raw(size);
    if (!reader.ok()) return;
    for (std::size_t i = 0; i < size; ++i) {
        const auto mark = std::to_integer<std::uint8_t>(marks[i]);
        Statistics& s = samples[i].statistics;
        for (std::size_t k = 0; k < kMoments.size(); ++k) {
            float value = 0;
            std::memcpy(&value, columns.data() + (k * size + i) * sizeof(float), sizeof(float));
            s.*kMoments[k] = value;
        }
        const std::uint64_t count = usual.of(samples[i].tensor);
        s.count = count == kNotDescribed ? 0 : count;
        if (mark == 0) continue;  // nothing follows; of a lost description: left out below
        if ((mark & kCountFollows) != 0) s.count = reader.varint();
        if ((mark & kNanFollows) != 0) s.nan = reader.varint();
        if ((mark & kPositiveInfiniteFollows) != 0) s.positive_infinite = reader.varint();
        if ((mark & kNegativeInfiniteFollows) != 0) s.negative_infinite = reader.varint();
        if ((mark & kZeroFollows) != 0) s.zero = reader.varint();
        if ((mark & kCountFollows) == 0 && count == kNotDescribed) continue;
        // The counts are parts of a whole: what does not add up would give nonsense further on.
        std::uint64_t left = s.count;
        for (const std::uint64_t part : {s.nan, s.positive_infinite, s.negative_infinite, s.zero}) {
            if (part > left) return reader.fail();
            left -= part;
        }
    }
}

void encode_units(ByteWriter& out, const std::vector<TensorSample>& samples) {
    const auto taken = [](const TensorSample& sample) { return sample.units.units != 0; };
    out.varint(static_cast<std::uint64_t>(std::count_if(samples.begin(), samples.end(), taken)));
    std::size_t expected = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        if (!taken(samples[i])) continue;
        out.varint(i - expected);
        expected = i + 1;
        out.varint(samples[i].units.units);
        out.varint(samples[i].units.inactive_units);
        out.varint(samples[i].units.low);
        out.varint(samples[i].units.high);
    }
}

void decode_units(ByteReader& reader, std::vector<TensorSample>& samples) {
    const std::size_t size = reader.count(5);
    std::uint64_t expected = 0;
    for (std::size_t k = 0; k < size && reader.ok(); ++k) {
        const std::uint64_t distance = reader.varint();
        const std::uint64_t units = reader.varint();
        const std::uint64_t inactive = reader.varint();
        const std::uint64_t low = reader.varint();
        const std::uint64_t high = reader.varint();
        if (distance >= samples.size() - expected || units == 0 || units > UINT32_MAX || inactive > units)
            return reader.fail();
        const auto index = static_cast<std::size_t>(expected + distance);
        samples[index].units = {static_cast<std::uint32_t>(units), static_cast<std::uint32_t>(inactive), low,
                                high};
        expected = index + 1;
    }
}

void encode_scalars(ByteWriter& out, const std::vector<ScalarSample>& samples) {
    out.varint(samples.size());
    IdWriter ids(out);
    for (const ScalarSample& sample : samples) ids.write(sample.tensor);
    for (const ScalarSample& sample : samples) out.fixed(sample.value);
}

void decode_scalars(ByteReader& reader, std::vector<ScalarSample>& samples) {
    samples.assign(reader.count(1 + sizeof(double)), ScalarSample{});
    IdReader ids(reader);
    for (ScalarSample& sample : samples) sample.tensor = ids.read();
    for (ScalarSample& sample : samples) sample.value = reader.fixed<double>();
}

std::size_t class_count(const model::ClassCounts& counts) noexcept {
    return std::max({counts.labels.size(), counts.predictions.size(), counts.hits.size()});
}

constexpr std::array kClassColumns = {&model::ClassCounts::labels, &model::ClassCounts::predictions,
                                      &model::ClassCounts::hits};

void encode_classes(ByteWriter& out, const std::vector<const ClassSample*>& samples) {
    out.varint(samples.size());
    IdWriter ids(out);
    for (const ClassSample* sample : samples) {
        ids.write(sample->tensor);
        internal::encode_class_counts(out, sample->counts);
    }
}

void decode_class_column(ByteReader& reader, std::vector<std::uint32_t>& values) {
    const auto layout = reader.fixed<std::uint8_t>();
    const auto read_value = [&reader](std::uint32_t& out) {
        const std::uint64_t value = reader.varint();
        if (value > UINT32_MAX) return reader.fail();
        out = static_cast<std::uint32_t>(value);
    };
    if (layout == 0) {
        for (std::uint32_t& value : values) {
            read_value(value);
            if (!reader.ok()) return;
        }
    } else if (layout == 1) {
        const std::size_t filled = reader.count(2);
        std::uint64_t expected = 0;
        for (std::size_t k = 0; k < filled; ++k) {
            const std::uint64_t distance = reader.varint();
            if (!reader.ok() || distance >= values.size() - expected) return reader.fail();
            read_value(values[static_cast<std::size_t>(expected + distance)]);
            expected += distance + 1;
        }
    } else {
        reader.fail();
    }
}

void decode_classes(ByteReader& reader, std::vector<ClassSample>& samples) {
    const std::size_t size = reader.count(5);
    std::uint64_t classes_left = kMostClasses;
    IdReader ids(reader);
    samples.clear();
    for (std::size_t k = 0; k < size && reader.ok(); ++k) {
        ClassSample sample;
        sample.tensor = ids.read();
        internal::decode_class_counts(reader, classes_left, sample.counts);
        if (!reader.ok()) return;
        samples.push_back(std::move(sample));
    }
}

// A whole tensor that is as its description says needs neither type nor shape.
constexpr std::uint8_t kShapeFollows = 1;

void encode_raw_places(ByteWriter& out, std::span<const RawPlace> places, const TensorTable& table) {
    out.varint(places.size());
    IdWriter ids(out);
    for (const RawPlace& place : places) ids.write(place.tensor);
    for (const RawPlace& place : places) internal::encode_raw_place(out, place, table);
}

void decode_raw_places(ByteReader& reader, const TensorTable& table, std::vector<RawPlace>& places) {
    places.assign(reader.count(9), RawPlace{});
    IdReader ids(reader);
    for (RawPlace& place : places) place.tensor = ids.read();
    for (RawPlace& place : places) {
        internal::decode_raw_place(reader, table, place);
        if (!reader.ok()) return;
    }
}

void encode_histograms(ByteWriter& out, const std::vector<HistogramSample>& samples) {
    out.varint(samples.size());
    IdWriter ids(out);
    for (const HistogramSample& sample : samples) ids.write(sample.tensor);
    for (const HistogramSample& sample : samples) {
        out.varint(sample.bins.size());
        std::int64_t expected = 0;
        for (const model::HistogramBin& entry : sample.bins) {
            out.zigzag(entry.bin - expected);
            expected = std::int64_t{entry.bin} + 1;
            out.varint(entry.count);
        }
    }
}

void decode_histogram(ByteReader& reader, model::Histogram& bins) {
    const std::size_t size = reader.count(2);
    if (size > model::kMostBins) return reader.fail();
    bins.reserve(size);
    std::int64_t expected = 0;
    std::uint64_t elements = 0;
    for (std::size_t k = 0; k < size; ++k) {
        const std::int64_t distance = reader.zigzag();
        const std::uint64_t count = reader.varint();
        // Ascending numbers of bins that there are, and counts that can be added up.
        if (!reader.ok() || (k > 0 && distance < 0) || distance < model::kLeastBin - expected ||
            distance > model::kNanBin - expected || count == 0 ||
            __builtin_add_overflow(elements, count, &elements))
            return reader.fail();
        bins.push_back({static_cast<std::int16_t>(expected + distance), count});
        expected += distance + 1;
    }
}

void decode_histograms(ByteReader& reader, std::vector<HistogramSample>& samples) {
    samples.assign(reader.count(2), HistogramSample{});
    IdReader ids(reader);
    for (HistogramSample& sample : samples) sample.tensor = ids.read();
    for (HistogramSample& sample : samples) {
        decode_histogram(reader, sample.bins);
        if (!reader.ok()) return;
    }
}

void encode_channel_samples(ByteWriter& out, const std::vector<const ChannelSample*>& samples) {
    out.varint(samples.size());
    IdWriter ids(out);
    for (const ChannelSample* sample : samples) {
        ids.write(sample->tensor);
        internal::encode_channels(out, sample->channels);
    }
}

void decode_channel_samples(ByteReader& reader, std::vector<ChannelSample>& samples) {
    const std::size_t size = reader.count(3);
    std::uint64_t channels_left = kMostStepChannels;
    IdReader ids(reader);
    samples.clear();
    for (std::size_t k = 0; k < size && reader.ok(); ++k) {
        ChannelSample sample;
        sample.tensor = ids.read();
        internal::decode_channels(reader, channels_left, sample.channels);
        if (!reader.ok()) return;
        samples.push_back(std::move(sample));
    }
}

void encode_digest_samples(ByteWriter& out, const std::vector<DigestSample>& samples) {
    out.varint(samples.size());
    IdWriter ids(out);
    for (const DigestSample& sample : samples) ids.write(sample.tensor);
    for (const DigestSample& sample : samples) internal::encode_digest(out, sample.digest);
}

void decode_digest_samples(ByteReader& reader, std::vector<DigestSample>& samples) {
    samples.assign(reader.count(1 + sizeof(std::uint64_t) + sizeof(double)), DigestSample{});
    IdReader ids(reader);
    for (DigestSample& sample : samples) sample.tensor = ids.read();
    for (DigestSample& sample : samples) sample.digest = internal::decode_digest(reader);
}

StepPrefix read_prefix(ByteReader& reader, bool& mode_known) {
    StepPrefix prefix;
    const auto mode = reader.fixed<std::uint8_t>();
    mode_known = is_mode(mode);
    if (mode_known) prefix.mode = static_cast<model::Mode>(mode);
    prefix.step = reader.varint();
    prefix.sequence = reader.varint();
    prefix.wall_nanos = reader.fixed<std::int64_t>();
    prefix.monotonic_nanos = reader.fixed<std::int64_t>();
    prefix.step_nanos = reader.varint();
    prefix.capture_nanos = reader.varint();
    prefix.raw_tensors = reader.varint();
    return prefix;
}

// Leaves out samples of tensors that nobody described; says how many.
template <typename Sample>
std::uint64_t drop_unknown(std::vector<Sample>& samples, const TensorTable& table) {
    return std::erase_if(samples, [&](const Sample& sample) { return !is_known(table, sample.tensor); });
}

}  // namespace

namespace internal {

void encode_class_counts(ByteWriter& out, const model::ClassCounts& counts) {
    const std::size_t classes = class_count(counts);
    out.varint(classes);
    for (const auto column : kClassColumns) {
        const std::vector<std::uint32_t>& values = counts.*column;
        const auto filled = static_cast<std::size_t>(
            std::count_if(values.begin(), values.end(), [](std::uint32_t value) { return value != 0; }));
        // Few of many classes occur in a batch of a language model: then only those are listed.
        const bool sparse = filled * 2 < classes;
        out.fixed(static_cast<std::uint8_t>(sparse ? 1 : 0));
        if (!sparse) {
            for (std::size_t i = 0; i < classes; ++i) out.varint(i < values.size() ? values[i] : 0);
            continue;
        }
        out.varint(filled);
        std::size_t expected = 0;
        for (std::size_t i = 0; i < values.size(); ++i) {
            if (values[i] == 0) continue;
            out.varint(i - expected);
            out.varint(values[i]);
            expected = i + 1;
        }
    }
}

void decode_class_counts(ByteReader& reader, std::uint64_t& classes_left, model::ClassCounts& counts) {
    const std::uint64_t classes = reader.varint();
    if (classes > classes_left) return reader.fail();
    classes_left -= classes;
    for (const auto column : kClassColumns) {
        std::vector<std::uint32_t>& values = counts.*column;
        values.assign(static_cast<std::size_t>(classes), 0);
        decode_class_column(reader, values);
        if (!reader.ok()) return;
    }
}

void encode_channels(ByteWriter& out, const model::ChannelStatistics& channels) {
    const auto write = [&out](const std::vector<float>& column) {
        for (const float value : column) out.fixed(value);
    };
    const bool has_zeros =
        std::any_of(channels.zero.begin(), channels.zero.end(), [](float share) { return share != 0; });
    out.varint(channels.channels());
    out.fixed(static_cast<std::uint8_t>(has_zeros ? 1 : 0));
    write(channels.min);
    write(channels.max);
    if (has_zeros) write(channels.zero);
}

void decode_channels(ByteReader& reader, std::uint64_t& channels_left, model::ChannelStatistics& channels) {
    const std::uint64_t size = reader.varint();
    const auto layout = reader.fixed<std::uint8_t>();
    const std::uint64_t columns = layout == 1 ? 3 : 2;
    if (!reader.ok() || layout > 1 || size > model::kMostChannels || size > channels_left ||
        reader.remaining() / sizeof(float) < size * columns)
        return reader.fail();
    channels_left -= size;
    const auto read = [&](std::vector<float>& column) {
        column.resize(static_cast<std::size_t>(size));
        for (float& value : column) value = reader.fixed<float>();
    };
    read(channels.min);
    read(channels.max);
    if (layout == 1) read(channels.zero);
    else channels.zero.assign(static_cast<std::size_t>(size), 0);
    for (std::size_t i = 0; i < channels.channels(); ++i)
        if (!std::isfinite(channels.min[i]) || !std::isfinite(channels.max[i]) ||
            channels.min[i] > channels.max[i] || !(channels.zero[i] >= 0 && channels.zero[i] <= 1))
            return reader.fail();
}

void encode_digest(ByteWriter& out, const model::Digest& digest) {
    out.fixed(digest.fingerprint);
    out.fixed(digest.product);
}

model::Digest decode_digest(ByteReader& reader) {
    model::Digest digest;
    digest.fingerprint = reader.fixed<std::uint64_t>();
    digest.product = reader.fixed<double>();
    return digest;
}

void encode_raw_place(ByteWriter& out, const RawPlace& place, const TensorTable& table) {
    const bool is_usual = is_known(table, place.tensor) && table[place.tensor].dtype == place.dtype &&
                          table[place.tensor].shape == place.shape;
    out.fixed(is_usual ? std::uint8_t{0} : kShapeFollows);
    if (!is_usual) {
        out.fixed(static_cast<std::uint8_t>(place.dtype));
        encode_shape(out, place.shape);
    }
    out.varint(place.blob);
    out.varint(place.offset / kBlobAlignment);
    out.varint(place.bytes);
    out.fixed(place.checksum);
}

void decode_raw_place(ByteReader& reader, const TensorTable& table, RawPlace& place) {
    const auto flags = reader.fixed<std::uint8_t>();
    if (!reader.ok() || flags > kShapeFollows) return reader.fail();
    if ((flags & kShapeFollows) != 0) {
        place.dtype = decode_dtype(reader.fixed<std::uint8_t>());
        place.shape = decode_shape(reader);
    } else if (is_known(table, place.tensor)) {
        place.dtype = table[place.tensor].dtype;
        place.shape = table[place.tensor].shape;
    }
    const std::uint64_t blob = reader.varint();
    const std::uint64_t offset = reader.varint();
    place.bytes = reader.varint();
    place.checksum = reader.fixed<std::uint32_t>();
    // 2^50 bytes: no blob is larger, and no sum of two such numbers overflows.
    constexpr std::uint64_t kMost = std::uint64_t{1} << 50;
    if (blob > UINT32_MAX || offset > kMost / kBlobAlignment || place.bytes > kMost) return reader.fail();
    place.blob = static_cast<std::uint32_t>(blob);
    place.offset = offset * kBlobAlignment;
}

}  // namespace internal

std::uint64_t element_count(const std::vector<std::int64_t>& shape) noexcept {
    std::uint64_t count = 1;
    for (const std::int64_t extent : shape) {
        if (extent <= 0) return 0;
        if (count > UINT64_MAX / static_cast<std::uint64_t>(extent)) return 0;
        count *= static_cast<std::uint64_t>(extent);
    }
    if (count == kNotDescribed) return 0;
    return count;
}

std::vector<std::uint64_t> element_counts(const TensorTable& table) {
    std::vector<std::uint64_t> counts;
    counts.reserve(table.size());
    for (const TensorInfo& info : table)
        counts.push_back(info.name.empty() ? kNotDescribed : element_count(info.shape));
    return counts;
}

void encode_schema(ByteWriter& out, const std::vector<TensorInfo>& tensors) {
    out.varint(tensors.size());
    ByteWriter entry;
    for (const TensorInfo& info : tensors) {
        entry.clear();
        entry.varint(info.id);
        entry.text(info.name);
        entry.fixed(static_cast<std::uint8_t>(info.role));
        entry.fixed(static_cast<std::uint8_t>(info.activation));
        entry.text(info.module);
        entry.text(info.module_type);
        entry.zigzag(info.layer);
        entry.fixed(static_cast<std::uint8_t>(info.dtype));
        encode_shape(entry, info.shape);
        entry.varint(info.collections.size());
        for (const std::string& collection : info.collections) entry.text(collection);
        if (info.shard) {
            encode_shape(entry, info.shard->whole_shape);
            encode_shape(entry, info.shard->offset);
            entry.text(info.shard->placement);
        }
        out.varint(entry.size());
        out.append(entry.bytes());
    }
}

Status decode_schema(ByteSpan payload, TensorTable& table) {
    ByteReader reader(payload);
    const std::size_t size = reader.count(10);
    for (std::size_t k = 0; k < size; ++k) {
        ByteReader entry(reader.raw(reader.count()));
        const std::uint64_t id = entry.varint();
        TensorInfo info;
        info.name = entry.text();
        const auto role = entry.fixed<std::uint8_t>();
        if (role < model::kRoleCount) info.role = static_cast<model::Role>(role);
        const auto activation = entry.fixed<std::uint8_t>();
        if (activation <= static_cast<std::uint8_t>(model::ActivationKind::kSmooth))
            info.activation = static_cast<model::ActivationKind>(activation);
        info.module = entry.text();
        info.module_type = entry.text();
        const std::int64_t layer = entry.zigzag();
        info.dtype = decode_dtype(entry.fixed<std::uint8_t>());
        info.shape = decode_shape(entry);
        const std::size_t collections = entry.count();
        for (std::size_t i = 0; i < collections && entry.ok(); ++i)
            info.collections.emplace_back(entry.text());
        if (entry.ok() && entry.remaining() != 0) {
            model::ShardInfo shard;
            shard.whole_shape = decode_shape(entry);
            shard.offset = decode_shape(entry);
            shard.placement = entry.text();
            info.shard = std::move(shard);
        }
        if (!reader.ok() || !entry.ok() || id >= kMostTensors || info.name.empty() || layer < INT32_MIN ||
            layer > INT32_MAX)
            return damaged_record("schema");
        info.id = static_cast<TensorId>(id);
        info.layer = static_cast<std::int32_t>(layer);
        while (table.size() <= id) {  // also for ids whose own description was lost
            TensorInfo unknown;
            unknown.id = static_cast<TensorId>(table.size());
            table.push_back(std::move(unknown));
        }
        if (table[id].name.empty()) table[id] = std::move(info);
    }
    return reader.ok() ? Status::ok() : damaged_record("schema");
}

void encode_worker(ByteWriter& out, const model::WorkerMeta& meta) {
    out.append(base::as_bytes(model::to_json(meta).dump()));
}

Result<model::WorkerMeta> decode_worker(ByteSpan payload) {
    return model::worker_meta_from_json({reinterpret_cast<const char*>(payload.data()), payload.size()});
}

std::size_t encode_step(ByteWriter& out, const StepRecord& record, const TensorTable& table,
                        std::span<const RawPlace> raw, std::span<const std::uint64_t> counts) {
    out.fixed(static_cast<std::uint8_t>(record.mode));
    out.varint(record.step);
    out.varint(record.sequence);
    out.fixed(record.wall_nanos);
    out.fixed(record.monotonic_nanos);
    out.varint(record.step_nanos);
    out.varint(record.capture_nanos);
    out.varint(raw.size());
    if (!record.tensors.empty()) {
        section(out, Section::kStatistics, [&](ByteWriter& content) {
            encode_statistics(content, record.tensors, UsualCounts(table, counts));
        });
        const bool has_units =
            std::any_of(record.tensors.begin(), record.tensors.end(),
                        [](const TensorSample& sample) { return sample.units.units != 0; });
        if (has_units)
            section(out, Section::kUnits,
                    [&](ByteWriter& content) { encode_units(content, record.tensors); });
    }
    if (!record.scalars.empty())
        section(out, Section::kScalars,
                [&](ByteWriter& content) { encode_scalars(content, record.scalars); });
    std::vector<const ClassSample*> classes;
    std::size_t classes_left = kMostClasses;
    for (const ClassSample& sample : record.classes) {
        const std::size_t count = class_count(sample.counts);
        if (count > classes_left) continue;
        classes_left -= count;
        classes.push_back(&sample);
    }
    if (!classes.empty())
        section(out, Section::kClasses, [&](ByteWriter& content) { encode_classes(content, classes); });
    if (!raw.empty())
        section(out, Section::kRaw, [&](ByteWriter& content) { encode_raw_places(content, raw, table); });
    if (!record.histograms.empty())
        section(out, Section::kHistograms,
                [&](ByteWriter& content) { encode_histograms(content, record.histograms); });
    std::vector<const ChannelSample*> channels;
    std::size_t channels_left = kMostStepChannels;
    for (const ChannelSample& sample : record.channels) {
        if (sample.channels.channels() > channels_left) continue;
        channels_left -= sample.channels.channels();
        channels.push_back(&sample);
    }
    if (!channels.empty())
        section(out, Section::kChannels,
                [&](ByteWriter& content) { encode_channel_samples(content, channels); });
    if (!record.digests.empty())
        section(out, Section::kDigests,
                [&](ByteWriter& content) { encode_digest_samples(content, record.digests); });
    return record.classes.size() - classes.size() + record.channels.size() - channels.size();
}

Result<StepPrefix> decode_step_prefix(ByteSpan payload) {
    ByteReader reader(payload);
    bool mode_known = false;
    const StepPrefix prefix = read_prefix(reader, mode_known);
    if (!reader.ok()) return damaged_record("step");
    if (!mode_known) return Status(Code::kUnsupported, "a step record of an unknown mode");
    return prefix;
}

Result<std::uint64_t> decode_step(ByteSpan payload, const TensorTable& table, StepRecord& record,
                                  std::vector<RawPlace>* raw, std::span<const std::uint64_t> counts) {
    ByteReader reader(payload);
    bool mode_known = false;
    const StepPrefix prefix = read_prefix(reader, mode_known);
    if (!reader.ok()) return damaged_record("step");
    if (!mode_known) return Status(Code::kUnsupported, "a step record of an unknown mode");
    record.mode = prefix.mode;
    record.step = prefix.step;
    record.sequence = prefix.sequence;
    record.wall_nanos = prefix.wall_nanos;
    record.monotonic_nanos = prefix.monotonic_nanos;
    record.step_nanos = prefix.step_nanos;
    record.capture_nanos = prefix.capture_nanos;
    record.tensors.clear();
    record.scalars.clear();
    record.classes.clear();
    record.histograms.clear();
    record.channels.clear();
    record.digests.clear();
    record.raw.clear();
    if (raw != nullptr) raw->clear();
    std::uint64_t seen = 0;  // a bit per known section
    while (reader.ok() && reader.remaining() != 0) {
        const std::uint64_t number = reader.varint();
        ByteReader content(reader.raw(reader.count()));
        if (!reader.ok()) break;
        if (number < 64) {
            if ((seen >> number & 1) != 0) return damaged_record("step");
            seen |= std::uint64_t{1} << number;
        }
        switch (static_cast<Section>(number)) {
            case Section::kStatistics:
                decode_statistics(content, UsualCounts(table, counts), record.tensors);
                break;
            case Section::kUnits: decode_units(content, record.tensors); break;
            case Section::kScalars: decode_scalars(content, record.scalars); break;
            case Section::kClasses: decode_classes(content, record.classes); break;
            case Section::kRaw:
                if (raw != nullptr) decode_raw_places(content, table, *raw);
                break;
            case Section::kHistograms: decode_histograms(content, record.histograms); break;
            case Section::kChannels: decode_channel_samples(content, record.channels); break;
            case Section::kDigests: decode_digest_samples(content, record.digests); break;
        }
        if (!content.ok()) return damaged_record("step");
    }
    if (!reader.ok()) return damaged_record("step");
    return drop_unknown(record.tensors, table) + drop_unknown(record.scalars, table) +
           drop_unknown(record.classes, table) + drop_unknown(record.histograms, table) +
           drop_unknown(record.channels, table) + drop_unknown(record.digests, table) +
           (raw == nullptr ? 0 : drop_unknown(*raw, table));
}

void encode_event(ByteWriter& out, const EventRecord& event) {
    out.fixed(event.wall_nanos);
    out.text(event.kind);
    out.text(event.json);
}

Result<EventRecord> decode_event(ByteSpan payload) {
    ByteReader reader(payload);
    EventRecord event;
    event.wall_nanos = reader.fixed<std::int64_t>();
    event.kind = reader.text();
    event.json = reader.text();
    if (!reader.ok()) return damaged_record("event");
    return event;
}

void encode_totals(ByteWriter& out, const TotalsRecord& totals) {
    out.fixed(totals.wall_nanos);
    out.varint(totals.steps_written);
    out.varint(totals.steps_dropped);
    out.varint(totals.raw_tensors_dropped);
}

Result<TotalsRecord> decode_totals(ByteSpan payload) {
    ByteReader reader(payload);
    TotalsRecord totals;
    totals.wall_nanos = reader.fixed<std::int64_t>();
    totals.steps_written = reader.varint();
    totals.steps_dropped = reader.varint();
    totals.raw_tensors_dropped = reader.varint();
    if (!reader.ok()) return damaged_record("totals");
    return totals;
}

}  // namespace traindbg::format
