// A file of whole tensors that is being written. Used by the writer's thread alone.
//
// Tensors that lie one after the other in an arena are written in one stretch from where they lie, past the
// page cache where the system can do that: such a stretch is put at a place in the file that agrees with its
// address modulo a page, and what is left between is zeros.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/format/frame.h"
#include "traindbg/format/records.h"
#include "traindbg/storage/file_system.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/whole_tensor.h"

namespace traindbg::write {

class BlobFile {
  public:
    // The `number`-th blob of the worker whose log has the header `of_log`. `is_bulk`: written past the page
    // cache where possible; not for one that is removed soon.
    [[nodiscard]] static base::Result<BlobFile> create(storage::FileSystem& files,
                                                       const storage::RunLayout& layout,
                                                       const format::FileHeader& of_log, std::uint32_t number,
                                                       bool is_bulk = true);

    // Writes the tensors, adds where they lie to `places`, and gives the memory of those that are written
    // back. After an error `places` has those that were written before.
    [[nodiscard]] base::Status append(std::span<WholeTensor> tensors, std::vector<format::RawPlace>& places);
    [[nodiscard]] base::Status sync();
    [[nodiscard]] std::uint64_t size() const { return file_->size(); }
    [[nodiscard]] std::uint32_t number() const noexcept { return header_.part; }
    [[nodiscard]] bool is_dirty() const noexcept { return is_dirty_; }

  private:
    BlobFile(std::unique_ptr<storage::AppendFile> file, const format::FileHeader& header) noexcept
        : file_(std::move(file)), header_(header) {}
    [[nodiscard]] base::Status append_zeros(std::uint64_t bytes);

    std::unique_ptr<storage::AppendFile> file_;
    format::FileHeader header_;
    bool is_dirty_ = true;
};

}  // namespace traindbg::write
