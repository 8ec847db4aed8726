// One file of frames, read as far as it goes. Private to `read`.
//
// `poll` reads what was appended since the last call and hands every frame to a visitor; `frame_at`
// goes back to one of them. Both verify checksums, so that a byte that changed in between is noticed.
//
// Thread-safety: one thread. Cost: no more than a window of the file (1 MiB, or one larger frame) is
// in memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "traindbg/base/status.h"
#include "traindbg/format/frame_scanner.h"
#include "traindbg/read/run.h"
#include "traindbg/storage/file_system.h"

namespace traindbg::read::internal {

class LogReader {
  public:
    // `name` is what damage is reported under.
    LogReader(std::unique_ptr<storage::ReadFile> file, std::string name)
        : file_(std::move(file)), name_(std::move(name)) {}

    // Calls `visit(offset, frame)` for every new whole frame. kUnsupported: a newer format; nothing
    // of the file is read then.
    [[nodiscard]] base::Status poll(
        const std::function<void(std::uint64_t offset, const format::Frame&)>& visit);
    // The frame at `offset`, which `poll` saw there. It stays valid until the next call.
    [[nodiscard]] base::Result<format::Frame> frame_at(std::uint64_t offset, std::size_t bytes);

    // Gives back the bytes around the last frame that was gone back to.
    void release_window() noexcept {
        base::ByteBuffer().swap(window_);
        window_bytes_ = 0;
    }

    [[nodiscard]] storage::ReadFile& file() noexcept { return *file_; }
    // An error came before the end of the last poll: there is more than was read.
    [[nodiscard]] bool is_behind() const noexcept { return is_behind_; }
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    // Nothing until the file's header was read.
    [[nodiscard]] const std::optional<format::FileHeader>& header() const noexcept {
        return scanner_.header();
    }
    [[nodiscard]] const std::vector<Damage>& damage() const noexcept { return damage_; }
    // What lies behind the last whole frame, if anything.
    [[nodiscard]] const std::optional<Damage>& tail() const noexcept { return tail_; }

  private:
    std::unique_ptr<storage::ReadFile> file_;
    std::string name_;
    format::FrameScanner scanner_;
    std::uint64_t size_ = 0;
    bool is_dead_ = false;    // nothing more to be had from this file
    bool is_behind_ = false;  // an error came before the end: there is more than was read
    std::vector<Damage> damage_;
    std::optional<Damage> tail_;

    base::ByteBuffer window_;       // of `frame_at`; its memory is used again
    std::size_t window_bytes_ = 0;  // of it that are of the file
    std::uint64_t window_begin_ = 0;
};

}  // namespace traindbg::read::internal
