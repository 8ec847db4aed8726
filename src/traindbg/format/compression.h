// zstd, for the columns of sealed parts.
//
// The size of what comes out is always known beforehand, so that no input can make a reader take
// more memory than its own tables said it would.
//
// Thread-safety: one thread per object. Cost: a context of some hundred KB, kept between calls.
#pragma once

#include <memory>

#include "traindbg/base/bytes.h"
#include "traindbg/base/status.h"

namespace traindbg::format {

class Compressor {
  public:
    Compressor();
    Compressor(const Compressor&) = delete;
    Compressor& operator=(const Compressor&) = delete;
    ~Compressor();

    // The compressed bytes, valid until the next call; nothing when they would not be fewer.
    [[nodiscard]] base::ByteSpan compress(base::ByteSpan bytes);

  private:
    struct Context;
    std::unique_ptr<Context> context_;
};

class Decompressor {
  public:
    Decompressor();
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;
    ~Decompressor();

    // Exactly `size` bytes into `out`; kDataLoss when `bytes` hold something else.
    [[nodiscard]] base::Status decompress(base::ByteSpan bytes, std::size_t size, base::ByteBuffer& out);

  private:
    struct Context;
    std::unique_ptr<Context> context_;
};

}  // namespace traindbg::format
