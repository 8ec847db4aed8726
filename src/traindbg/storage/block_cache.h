// Blocks of immutable objects, kept on this machine's disk so that they are fetched once: under
// `$XDG_CACHE_HOME/traindbg/blocks` (or `~/.cache`), for the user alone, of a bounded size.
//
// A block is known by a text that names server, bucket, key, ETag and place; its file holds that text
// and a checksum, and a file with another text or a wrong checksum is no block. Files are put in place
// whole, so any number of processes may share a cache; the oldest go first when it is full.
//
// Thread-safety: all members from any thread. Errors: none. What cannot be read or written is a miss.
// Cost: one small file per block; a look through all of them when the bound is reached.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "traindbg/base/bytes.h"

namespace traindbg::storage {

class BlockCache {
  public:
    // `directory` is made when the first block is kept; empty: nothing is ever kept.
    BlockCache(std::string directory, std::uint64_t most_bytes);

    [[nodiscard]] std::optional<base::ByteBuffer> get(const std::string& name);
    void put(const std::string& name, base::ByteSpan bytes);

    [[nodiscard]] std::uint64_t hits() const noexcept { return hits_.load(); }
    [[nodiscard]] std::uint64_t misses() const noexcept { return misses_.load(); }

  private:
    [[nodiscard]] std::string path_of(const std::string& name) const;
    // Looks through the whole cache and removes the oldest until it is at 80 % of the bound.
    void shrink();

    const std::string directory_;
    const std::uint64_t most_bytes_;
    std::atomic<std::uint64_t> hits_{0};
    std::atomic<std::uint64_t> misses_{0};
    std::atomic<std::uint64_t> put_since_look_;  // bytes
    std::atomic<std::uint64_t> may_put_{0};      // until the next look
    std::mutex shrinking_;
};

// Where a user's cache lies: $XDG_CACHE_HOME/traindbg/blocks or $HOME/.cache/traindbg/blocks; empty: there
// is no such place.
[[nodiscard]] std::string default_cache_directory();

}  // namespace traindbg::storage
