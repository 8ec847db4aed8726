// A ZIP archive of stored (not compressed) entries: the container of NumPy's .npz. Entries, archives and
// numbers of entries may be of any size (ZIP64).
//
// Thread-safety: one thread at a time. Cost: one checksum over each entry.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"
#include "traindbg/exchange/output_file.h"

namespace traindbg::exchange {

// The CRC-32 of ZIP, PNG and Ethernet (not CRC-32C), continued from `before`.
[[nodiscard]] std::uint32_t crc32(base::ByteSpan bytes, std::uint32_t before = 0) noexcept;

class ZipWriter {
  public:
    // `file` must outlive the writer. `small_below`: sizes and offsets from this one on are written with 64
    // bits; only tests have a reason for another value.
    explicit ZipWriter(OutputFile& file, std::uint64_t small_below = UINT32_MAX)
        : file_(file), small_below_(small_below) {}

    // One entry whose content is `head`, then `body`. `name`: UTF-8, relative.
    [[nodiscard]] base::Status add(const std::string& name, base::ByteSpan head, base::ByteSpan body);
    // The directory; nothing may be added after it.
    [[nodiscard]] base::Status finish();
    [[nodiscard]] std::size_t entries() const noexcept { return entries_.size(); }

  private:
    struct Entry {
        std::string name;
        std::uint32_t checksum = 0;
        std::uint64_t bytes = 0;
        std::uint64_t offset = 0;
    };
    OutputFile& file_;
    std::uint64_t small_below_;
    std::vector<Entry> entries_;
};

}  // namespace traindbg::exchange
