#include "traindbg/write/blob_file.h"

#include <array>
#include <cstdint>
#include <utility>

#include "traindbg/base/crc32c.h"
#include "traindbg/write/frame_file.h"

namespace traindbg::write {
namespace {

using base::ByteSpan;
using base::Result;
using base::Status;

// A stretch ends with the tensor that reaches this, so that its memory is soon free for others.
constexpr std::size_t kStretchBytes = std::size_t{8} << 20;

static_assert(Arena::kBlockAlignment == format::kBlobAlignment,
              "a stretch of the arena is a stretch of the file");

std::uint64_t gap_to(std::uint64_t value, std::uint64_t unit) noexcept {
    return (unit - value % unit) % unit;
}

// How many of `tensors` lie one after the other in the arena, from the first on.
std::size_t stretch_of(std::span<const WholeTensor> tensors, std::size_t& bytes) {
    bytes = tensors[0].bytes().size();
    if (tensors[0].block.is_empty()) return 1;
    const std::byte* const begin = tensors[0].bytes().data();
    std::size_t count = 1;
    while (count < tensors.size() && bytes < kStretchBytes) {
        const WholeTensor& next = tensors[count];
        const std::size_t padded = bytes + static_cast<std::size_t>(gap_to(bytes, Arena::kBlockAlignment));
        if (next.block.is_empty() || next.bytes().data() != begin + padded) break;
        bytes = padded + next.bytes().size();
        ++count;
    }
    return count;
}

}  // namespace

Result<BlobFile> BlobFile::create(storage::FileSystem& files, const storage::RunLayout& layout,
                                  const format::FileHeader& of_log, std::uint32_t number, bool is_bulk) {
    format::FileHeader header = of_log;
    header.kind = format::FileKind::kBlob;
    header.part = number;
    header.salt = random_salt();
    const std::string path = layout.blob(header.worker, number);
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<storage::AppendFile> file,
                              is_bulk ? files.create_bulk(path) : files.create(path));
    base::ByteWriter bytes;
    format::append_file_header(bytes, header);
    bytes.pad_to(format::kBlobHeaderBytes);
    if (const Status status = file->append(bytes.bytes()); !status.is_ok()) {
        files.remove(path).ignore();
        return status;
    }
    return BlobFile(std::move(file), header);
}

Status BlobFile::append(std::span<WholeTensor> tensors, std::vector<format::RawPlace>& places) {
    const std::uint32_t seed = format::checksum_seed(header_.salt);
    while (!tensors.empty()) {
        std::size_t bytes = 0;
        const std::size_t count = stretch_of(tensors, bytes);
        const std::byte* const begin = tensors[0].bytes().data();
        is_dirty_ = true;
        if (bytes >= storage::kLeastDirectBytes && !tensors[0].block.is_empty()) {
            const auto address = reinterpret_cast<std::uintptr_t>(begin);
            TRAINDBG_RETURN_IF_ERROR(append_zeros((address - file_->size()) % storage::kDirectAlignment));
        }
        const std::uint64_t offset = file_->size();
        std::vector<format::RawPlace> found;
        for (WholeTensor& tensor : tensors.first(count)) {
            format::RawPlace place;
            place.tensor = tensor.tensor;
            place.dtype = tensor.dtype;
            place.shape = std::move(tensor.shape);
            place.blob = header_.part;
            place.bytes = tensor.bytes().size();
            // Tensors without an element have no bytes and lie nowhere in particular.
            place.offset =
                offset + (place.bytes == 0 ? 0 : static_cast<std::uint64_t>(tensor.bytes().data() - begin));
            place.checksum = base::crc32c(tensor.bytes(), seed);
            found.push_back(std::move(place));
        }
        const Status status = file_->append(ByteSpan(begin, bytes));
        for (std::size_t i = 0; i < count; ++i) {
            if (found[i].offset + found[i].bytes > file_->size()) break;  // an error cut it off
            places.push_back(std::move(found[i]));
            tensors[i].block.reset();
            tensors[i].owned = {};
        }
        TRAINDBG_RETURN_IF_ERROR(status);
        TRAINDBG_RETURN_IF_ERROR(append_zeros(gap_to(file_->size(), format::kBlobAlignment)));
        tensors = tensors.subspan(count);
    }
    return Status::ok();
}

Status BlobFile::append_zeros(std::uint64_t bytes) {
    static constexpr std::array<std::byte, storage::kDirectAlignment> kZeros{};
    if (bytes == 0) return Status::ok();
    return file_->append(ByteSpan(kZeros).first(static_cast<std::size_t>(bytes)));
}

Status BlobFile::sync() {
    if (!is_dirty_) return Status::ok();
    TRAINDBG_RETURN_IF_ERROR(file_->sync());
    is_dirty_ = false;
    return Status::ok();
}

}  // namespace traindbg::write
