#include "traindbg/read/salvaging_file.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

namespace traindbg::read::internal {
namespace {

using base::ByteBuffer;
using base::Code;
using base::Result;
using base::Status;

constexpr std::size_t kMostLostInARow = 16;

class SalvagingFile final : public storage::ReadFile {
  public:
    SalvagingFile(std::unique_ptr<storage::ReadFile> file, LostStretch lost)
        : file_(std::move(file)), lost_(std::move(lost)) {}

    Result<ByteBuffer> read_at(std::uint64_t offset, std::size_t size) override {
        Result<ByteBuffer> whole = file_->read_at(offset, size);
        if (whole.status().code() != Code::kDataLoss) return whole;
        const Result<std::uint64_t> end = file_->size();
        if (!end || offset >= *end) return whole;
        ByteBuffer bytes(static_cast<std::size_t>(std::min<std::uint64_t>(size, *end - offset)));
        const Result<std::size_t> filled = salvage(offset, bytes, whole.status());
        if (!filled) return filled.status();
        bytes.resize(*filled);
        return bytes;
    }

    Result<std::size_t> read_into(std::uint64_t offset, std::span<std::byte> out) override {
        Result<std::size_t> whole = file_->read_into(offset, out);
        if (whole.status().code() != Code::kDataLoss) return whole;
        const Result<std::uint64_t> end = file_->size();
        if (!end || offset >= *end) return whole;
        const std::size_t size = static_cast<std::size_t>(std::min<std::uint64_t>(out.size(), *end - offset));
        return salvage(offset, out.first(size), whole.status());
    }

    Result<std::uint64_t> size() override { return file_->size(); }

    Result<std::unique_ptr<storage::Mapping>> map(std::uint64_t offset, std::size_t size) override {
        return file_->map(offset, size);
    }

  private:
    struct Stretch {
        std::uint64_t offset = 0;
        std::uint64_t bytes = 0;
        Status status;
    };

    // `whole`: how the call for all of it failed.
    Result<std::size_t> salvage(std::uint64_t offset, std::span<std::byte> out, const Status& whole) {
        std::vector<Stretch> lost;
        std::size_t in_a_row = 0;
        bool has_some = false;
        std::size_t done = 0;
        while (done < out.size()) {
            const std::uint64_t at = offset + done;
            const std::size_t size = std::min(
                kSalvageBlockBytes - static_cast<std::size_t>(at % kSalvageBlockBytes), out.size() - done);
            const Result<std::size_t> block = file_->read_into(at, out.subspan(done, size));
            if (block) {
                has_some = true;
                in_a_row = 0;
                done += *block;
                if (*block < size) break;  // cut off meanwhile
                continue;
            }
            if (block.status().code() != Code::kDataLoss) return block.status();
            if (++in_a_row == kMostLostInARow) return whole;
            std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(done), size, std::byte{0});
            if (in_a_row > 1) lost.back().bytes += size;
            else lost.push_back({at, size, block.status()});
            done += size;
        }
        if (!has_some) return whole;
        for (const Stretch& stretch : lost) lost_(stretch.offset, stretch.bytes, stretch.status);
        return done;
    }

    std::unique_ptr<storage::ReadFile> file_;
    LostStretch lost_;
};

}  // namespace

std::unique_ptr<storage::ReadFile> salvaging(std::unique_ptr<storage::ReadFile> file, LostStretch lost) {
    return std::make_unique<SalvagingFile>(std::move(file), std::move(lost));
}

}  // namespace traindbg::read::internal
