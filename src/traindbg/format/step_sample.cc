#include "traindbg/format/step_sample.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

#include "traindbg/format/record_parts.h"
#include "traindbg/format/records.h"

namespace traindbg::format {
namespace {

using base::ByteReader;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using internal::kCounts;
using internal::kMoments;
using internal::Section;
using model::Statistics;
using model::TensorId;
using model::TensorSample;
using model::TensorTable;

constexpr unsigned kKnownMarks = (1U << kCounts.size()) - 1;

Status damaged_step() { return {Code::kDataLoss, "a step record is damaged"}; }

// Passes over what stands before the sections of a step.
void skip_prefix(ByteReader& reader) {
    constexpr std::size_t kModeBytes = 1;
    constexpr std::size_t kTimesBytes = 16;
    static_cast<void>(reader.raw(kModeBytes));
    for (int i = 0; i < 2; ++i) static_cast<void>(reader.varint());
    static_cast<void>(reader.raw(kTimesBytes));
    for (int i = 0; i < 3; ++i) static_cast<void>(reader.varint());
}

// The content of these sections, wherever they stand; one that is not there is empty. False: damaged.
struct Wanted {
    Section section;
    ByteSpan content;
    bool is_there = false;
};
bool find_sections(ByteReader& reader, std::span<Wanted> wanted) {
    while (reader.ok() && reader.remaining() != 0) {
        const auto section = static_cast<Section>(reader.varint());
        const ByteSpan content = reader.raw(reader.count());
        for (Wanted& one : wanted) {
            if (one.section != section) continue;
            if (one.is_there) return false;
            one.content = content;
            one.is_there = true;
        }
    }
    return reader.ok();
}

// Where `tensor` stands in a list of `size` ids, and the reader behind the list.
std::optional<std::size_t> find_id(ByteReader& reader, std::size_t size, TensorId tensor) {
    // Mostly all tensors are there, and a zero byte says: the next one.
    ByteReader ahead = reader;
    const ByteSpan bytes = ahead.raw(size);
    if (std::all_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte == std::byte{0}; })) {
        reader = ahead;
        return tensor < bytes.size() ? std::optional<std::size_t>(tensor) : std::nullopt;
    }
    std::optional<std::size_t> found;
    std::int64_t expected = 0;
    for (std::size_t i = 0; i < size; ++i) {
        const std::int64_t distance = reader.zigzag();
        constexpr std::int64_t kMost = std::numeric_limits<TensorId>::max();
        if (distance < -expected || distance > kMost - expected) {
            reader.fail();
            return std::nullopt;
        }
        const std::int64_t id = expected + distance;
        if (!found && id == static_cast<std::int64_t>(tensor)) found = i;
        expected = id + 1;
    }
    return found;
}

bool read_counts(ByteReader& reader, ByteSpan marks, std::size_t index, std::uint64_t usual,
                 Statistics& out) {
    std::size_t before = 0;
    for (const std::byte mark : marks.first(index))
        before += static_cast<std::size_t>(std::popcount(std::to_integer<unsigned>(mark) & kKnownMarks));
    for (std::size_t i = 0; i < before; ++i) static_cast<void>(reader.varint());
    const auto mark = std::to_integer<unsigned>(marks[index]);
    out.count = usual;
    for (std::size_t i = 0; i < kCounts.size(); ++i) {
        if (i != 0) out.*kCounts[i] = 0;
        if ((mark >> i & 1) != 0) out.*kCounts[i] = reader.varint();
    }
    // The counts are parts of a whole.
    std::uint64_t left = out.count;
    for (std::size_t i = 1; i < kCounts.size(); ++i) {
        if (out.*kCounts[i] > left) return false;
        left -= out.*kCounts[i];
    }
    return reader.ok();
}

// `index`: of the sample in the list of statistics, which has `samples`.
bool read_units(ByteSpan content, std::size_t index, std::size_t samples, model::UnitStatistics& out) {
    ByteReader reader(content);
    const std::size_t size = reader.count(5);
    std::uint64_t expected = 0;
    for (std::size_t k = 0; k < size && reader.ok(); ++k) {
        const std::uint64_t distance = reader.varint();
        const std::uint64_t units = reader.varint();
        const std::uint64_t inactive = reader.varint();
        const std::uint64_t low = reader.varint();
        const std::uint64_t high = reader.varint();
        if (distance >= samples - expected || units == 0 || units > UINT32_MAX || inactive > units)
            return false;
        const std::uint64_t at = expected + distance;
        if (at == index)
            out = {static_cast<std::uint32_t>(units), static_cast<std::uint32_t>(inactive), low, high};
        if (at >= index) break;
        expected = at + 1;
    }
    return reader.ok();
}

}  // namespace

Result<bool> decode_sample_of(ByteSpan payload, const TensorTable& table, TensorId tensor, SampleParts parts,
                              TensorSample& out) {
    ByteReader step(payload);
    skip_prefix(step);
    const bool with_counts = parts == SampleParts::kAll;
    std::array<Wanted, 2> sections = {{{Section::kStatistics, {}}, {Section::kUnits, {}}}};
    if (!find_sections(step, sections)) return damaged_step();
    const ByteSpan content = sections[0].content;
    const ByteSpan units = sections[1].content;
    if (content.empty() || !is_known(table, tensor)) return false;
    ByteReader reader(content);
    constexpr std::size_t kLeastBytesEach = 1 + kMoments.size() * sizeof(float) + 1;
    const std::size_t size = reader.count(kLeastBytesEach);
    const std::optional<std::size_t> index = find_id(reader, size, tensor);
    const ByteSpan moments = reader.raw(kMoments.size() * size * sizeof(float));
    const ByteSpan marks = reader.raw(size);
    if (!reader.ok()) return damaged_step();
    if (!index) return false;
    out.tensor = tensor;
    for (std::size_t k = 0; k < kMoments.size(); ++k) {
        float value = 0;
        std::memcpy(&value, moments.data() + (k * size + *index) * sizeof(float), sizeof(value));
        out.statistics.*kMoments[k] = static_cast<double>(value);
    }
    if (!with_counts) return true;
    out.units = {};
    if (!read_counts(reader, marks, *index, element_count(table[tensor].shape), out.statistics) ||
        (!units.empty() && !read_units(units, *index, size, out.units)))
        return damaged_step();
    return true;
}

Result<bool> decode_scalar_of(ByteSpan payload, const TensorTable& table, TensorId tensor, double& out) {
    ByteReader step(payload);
    skip_prefix(step);
    std::array<Wanted, 1> sections = {{{Section::kScalars, {}}}};
    if (!find_sections(step, sections)) return damaged_step();
    const ByteSpan content = sections[0].content;
    if (content.empty() || !is_known(table, tensor)) return false;
    ByteReader reader(content);
    const std::size_t size = reader.count(1 + sizeof(double));
    const std::optional<std::size_t> index = find_id(reader, size, tensor);
    const ByteSpan values = reader.raw(size * sizeof(double));
    if (!reader.ok()) return damaged_step();
    if (!index) return false;
    std::memcpy(&out, values.data() + *index * sizeof(out), sizeof(out));
    return true;
}

}  // namespace traindbg::format
