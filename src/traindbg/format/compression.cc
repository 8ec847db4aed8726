#include "traindbg/format/compression.h"

#include <zstd.h>

#include <new>

namespace traindbg::format {
namespace {

// Higher levels take a multiple of the time for one or two per cent of such columns.
constexpr int kLevel = 1;

}  // namespace

struct Compressor::Context {
    struct Free {
        void operator()(ZSTD_CCtx* context) const noexcept { ZSTD_freeCCtx(context); }
    };
    std::unique_ptr<ZSTD_CCtx, Free> zstd{ZSTD_createCCtx()};
    base::ByteBuffer buffer;
};

Compressor::Compressor() : context_(std::make_unique<Context>()) {}
Compressor::~Compressor() = default;

base::ByteSpan Compressor::compress(base::ByteSpan bytes) {
    if (!context_->zstd || bytes.empty()) return {};
    const std::size_t bound = ZSTD_compressBound(bytes.size());
    if (context_->buffer.size() < bound) context_->buffer.resize(bound);
    const std::size_t size = ZSTD_compressCCtx(context_->zstd.get(), context_->buffer.data(), bound,
                                               bytes.data(), bytes.size(), kLevel);
    if (ZSTD_isError(size) != 0 || size >= bytes.size()) return {};
    return base::ByteSpan(context_->buffer).first(size);
}

struct Decompressor::Context {
    struct Free {
        void operator()(ZSTD_DCtx* context) const noexcept { ZSTD_freeDCtx(context); }
    };
    std::unique_ptr<ZSTD_DCtx, Free> zstd{ZSTD_createDCtx()};
};

Decompressor::Decompressor() : context_(std::make_unique<Context>()) {}
Decompressor::~Decompressor() = default;

base::Status Decompressor::decompress(base::ByteSpan bytes, std::size_t size, base::ByteBuffer& out) {
    if (!context_->zstd) return {base::Code::kResourceExhausted, "there is no memory to decompress with"};
    out.resize(size);
    const std::size_t got =
        ZSTD_decompressDCtx(context_->zstd.get(), out.data(), size, bytes.data(), bytes.size());
    if (ZSTD_isError(got) != 0 || got != size)
        return {base::Code::kDataLoss, "a compressed column does not hold what its page says"};
    return base::Status::ok();
}

}  // namespace traindbg::format
