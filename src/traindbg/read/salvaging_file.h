// Reading around what a disk no longer gives. Private to `read`.
//
// A disk that cannot read one sector fails the whole call that touches it, and with that up to a mebibyte
// that it could still give. So such a call is made again block by block; the blocks that fail once more are
// given as zeros and told. Everything that the store writes has a checksum, so zeros are never taken for
// what was there: they are damage like any other, and what lies around them is read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "traindbg/base/status.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::read::internal {

inline constexpr std::size_t kSalvageBlockBytes = 4096;

// Told of each stretch that was given as zeros: where, how long, and the disk's own words.
using LostStretch =
    std::function<void(std::uint64_t offset, std::uint64_t bytes, const base::Status& status)>;

// `file`, with reads that go around errors of the disk (kDataLoss). A call none of whose blocks can be read
// fails as before, and so does one with sixteen of them in a row: that is no bad sector, but a disk or a
// server that is gone and may come back. Mappings are those of `file`.
[[nodiscard]] std::unique_ptr<storage::ReadFile> salvaging(std::unique_ptr<storage::ReadFile> file,
                                                           LostStretch lost);

}  // namespace traindbg::read::internal
