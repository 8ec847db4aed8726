// Sealed parts whose pages say what a test wants them to say, with right checksums: what a hostile program
// could write.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/crc32c.h"
#include "traindbg/format/column.h"
#include "traindbg/format/compression.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/format/segment.h"
#include "traindbg/model/channel_statistics.h"

namespace traindbg::testing {

inline constexpr std::uint64_t kMadeSalt = 0xB0B;

// A page whose columns are given by their entries and bytes.
class PageMaker {
  public:
    void integers(format::Column column, std::vector<std::uint64_t> values) {
        format::ColumnEntry entry = encoder_.integers(values, columns_);
        entry.column = static_cast<std::uint8_t>(column);
        entries_.push_back(entry);
    }
    // `stored` unfolds to something; the page says that it is `claimed` bytes.
    void folded(format::Column column, format::Encoding encoding, base::ByteSpan stored,
                std::uint32_t claimed) {
        format::ColumnEntry entry;
        entry.column = static_cast<std::uint8_t>(column);
        entry.encoding = static_cast<std::uint8_t>(encoding) | format::kCompressed;
        entry.raw_bytes = claimed;
        entry.stored_bytes = static_cast<std::uint32_t>(stored.size());
        entry.checksum = base::crc32c(stored, format::checksum_seed(kMadeSalt));
        columns_.append(stored);
        entries_.push_back(entry);
    }
    [[nodiscard]] base::ByteBuffer take(format::PageKind kind, model::TensorId tensor, std::uint32_t rows) {
        base::ByteWriter out;
        out.fixed(std::uint32_t{0});
        out.fixed(std::uint32_t{0});
        out.fixed(static_cast<std::uint8_t>(kind));
        out.varint(tensor);
        out.varint(rows);
        out.varint(entries_.size());
        for (const format::ColumnEntry& entry : entries_) {
            out.fixed(entry.column);
            out.fixed(entry.encoding);
            out.varint(entry.raw_bytes);
            out.varint(entry.stored_bytes);
            out.fixed(entry.checksum);
        }
        out.patch(4, static_cast<std::uint32_t>(out.size()));
        out.patch(0, base::crc32c(base::ByteSpan(out.bytes()).subspan(4), format::checksum_seed(kMadeSalt)));
        out.append(columns_.bytes());
        return out.take();
    }

  private:
    format::ColumnEncoder encoder_{kMadeSalt};
    base::ByteWriter columns_;
    std::vector<format::ColumnEntry> entries_;
};

// A sealed part of one TRAIN step, with these pages behind it; its index is rebuilt by whoever reads it.
// Where it has a footer, that is empty: it only says that nothing is missing.
inline base::ByteBuffer made_segment(const model::TensorTable& table, std::uint64_t step,
                                     const std::vector<base::ByteBuffer>& pages, bool has_footer = false) {
    base::ByteWriter out;
    format::FileHeader header;
    header.kind = format::FileKind::kSegment;
    header.salt = kMadeSalt;
    format::append_file_header(out, header);
    std::uint64_t sequence = 2;
    const auto add = [&](format::FrameType type, base::ByteSpan payload) {
        format::append_frame(out, type, sequence++, payload, kMadeSalt).ignore();
    };
    base::ByteWriter schema;
    format::encode_schema(schema, table);
    add(format::FrameType::kSchema, schema.bytes());
    PageMaker steps;
    steps.integers(format::Column::kRow, {0});
    steps.integers(format::Column::kMode, {static_cast<std::uint64_t>(model::Mode::kTrain)});
    steps.integers(format::Column::kStep, {step});
    add(format::FrameType::kPage, steps.take(format::PageKind::kSteps, 0, 1));
    for (const base::ByteBuffer& page : pages) add(format::FrameType::kPage, page);
    if (has_footer) add(format::FrameType::kFooter, {});
    return out.take();
}

// As many tensors with a page each, in which one step has as many channels as a tensor may have, all 0: some
// hundred bytes in the file, 786 KB in memory.
struct HostileChannels {
    model::TensorTable table;
    std::vector<base::ByteBuffer> pages;

    explicit HostileChannels(std::uint32_t tensors) : table(tensors) {
        base::ByteWriter row;
        row.varint(model::kMostChannels);
        row.fixed(std::uint8_t{0});  // none of them holds a zero
        row.append(base::ByteBuffer(std::size_t{model::kMostChannels} * 2 * sizeof(float)));
        format::Compressor compressor;
        const base::ByteSpan folded = compressor.compress(row.bytes());
        for (model::TensorId id = 0; id < tensors; ++id) {
            table[id].id = id;
            table[id].name = "output/" + std::to_string(id);
            table[id].role = model::Role::kOutput;
            PageMaker page;
            page.integers(format::Column::kRow, {0});
            page.integers(format::Column::kLengths, {row.size()});
            page.folded(format::Column::kBytes, format::Encoding::kBytes, folded,
                        static_cast<std::uint32_t>(row.size()));
            pages.push_back(page.take(format::PageKind::kChannels, id, 1));
        }
    }
};

}  // namespace traindbg::testing
