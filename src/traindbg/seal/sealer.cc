#include "traindbg/seal/sealer.h"

#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/format/segment.h"

namespace traindbg::seal {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using format::FrameType;
using format::ScanItem;

constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
constexpr std::uint64_t kHeaderFrames = 2 * format::frame_bytes(40);  // a log that is shorter holds no record

std::uint64_t random_salt() noexcept {
    std::uint64_t salt = 0;
    if (::getrandom(&salt, sizeof(salt), GRND_NONBLOCK) != static_cast<ssize_t>(sizeof(salt)))
        salt = static_cast<std::uint64_t>(base::wall_nanos()) * 0x9E3779B97F4A7C15 +
               static_cast<std::uint64_t>(::getpid());
    return salt | 1;
}

// Whether a sealed part is there and every byte of it is right: then it stands for its log.
bool has_whole_segment(storage::FileSystem& files, const std::string& path) {
    constexpr std::uint64_t kLargestVerified = std::uint64_t{256} << 20;
    const Result<ByteBuffer> bytes = storage::read_whole(files, path, kLargestVerified);
    if (!bytes) return false;
    const std::optional<format::FileHeader> header = format::find_file_header(*bytes);
    if (!header || header->kind != format::FileKind::kSegment ||
        !format::find_footer(*bytes, header->salt).has_value())
        return false;
    format::FrameScanner scanner;
    while (scanner.position() < bytes->size()) {
        const format::ScanItem item =
            scanner.next(base::ByteSpan(*bytes).subspan(static_cast<std::size_t>(scanner.position())), true);
        if (item.kind != format::ScanItem::Kind::kFrame) return false;
    }
    return true;
}

// Hands every frame of the log to a builder.
class LogToSegment {
  public:
    LogToSegment(storage::ReadFile& file, std::string path, model::WorkerId worker, std::uint32_t part)
        : file_(file), path_(std::move(path)), worker_(worker), part_(part) {}

    Result<ByteBuffer> build(SealedPart& sealed) {
        TRAINDBG_ASSIGN_OR_RETURN(sealed.log_bytes, file_.size());
        std::size_t window_bytes = kWindowBytes;
        while (true) {
            const std::uint64_t begin = scanner_.position();
            if (begin >= sealed.log_bytes) break;
            TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer window, file_.read_at(begin, window_bytes));
            if (window.empty()) break;
            const bool at_end = begin + window.size() >= sealed.log_bytes;
            TRAINDBG_ASSIGN_OR_RETURN(const std::size_t needed, take_window(window, begin, at_end));
            if (at_end && scanner_.position() == begin) break;  // what is left is no frame
            if (at_end && needed == 0) break;
            window_bytes = std::max(kWindowBytes, needed);
        }
        sealed.tail_bytes = sealed.log_bytes - std::min(sealed.log_bytes, scanner_.settled());
        if (!builder_) return Status(Code::kDataLoss, path_ + ": has no header");
        sealed.steps = builder_->steps();
        return builder_->finish();
    }

  private:
    // All frames of the window; how many bytes the next one must have, 0 when there is nothing more.
    Result<std::size_t> take_window(ByteSpan window, std::uint64_t begin, bool at_end) {
        while (true) {
            const auto used = static_cast<std::size_t>(scanner_.position() - begin);
            const ScanItem item = scanner_.next(window.subspan(std::min(used, window.size())), at_end);
            switch (item.kind) {
                case ScanItem::Kind::kNeedMore: return at_end ? std::size_t{0} : item.bytes_needed;
                case ScanItem::Kind::kHole:
                    return Status(Code::kDataLoss,
                                  base::format("{}: is damaged at byte {}: {}; it stays as it is", path_,
                                               item.offset, item.what));
                case ScanItem::Kind::kForeign:
                    return Status(Code::kDataLoss, base::format("{}: {}", path_, item.what));
                case ScanItem::Kind::kFrame: TRAINDBG_RETURN_IF_ERROR(take(item.frame));
            }
        }
    }

    Status take(const format::Frame& frame) {
        if (!builder_) {
            const std::optional<format::FileHeader>& header = scanner_.header();
            if (!header) return {Code::kDataLoss, path_ + ": has no header"};
            TRAINDBG_RETURN_IF_ERROR(format::check_version(*header));
            if (header->kind != format::FileKind::kLog || header->worker != worker_ || header->part != part_)
                return {Code::kDataLoss, path_ + ": says that it is another file; it stays as it is"};
            builder_.emplace(*header, random_salt());
        }
        if (frame.type == FrameType::kFileHeader) return Status::ok();
        Status status = builder_->add(frame);
        if (status.is_ok()) return status;
        return {status.code(), base::format("{}: frame {}: {}", path_, frame.sequence, status.message())};
    }

    storage::ReadFile& file_;
    const std::string path_;
    const model::WorkerId worker_;
    const std::uint32_t part_;
    format::FrameScanner scanner_;
    std::optional<format::SegmentBuilder> builder_;
};

// A name that `put_atomic` gives its content before that is whole.
bool is_temporary(std::string_view name) { return name.starts_with('.') && name.ends_with(".tmp"); }

Result<std::uint64_t> size_of(storage::FileSystem& files, const std::string& path) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ReadFile> file, files.open(path));
    return file->size();
}

Status compact_worker(storage::FileSystem& files, const storage::RunLayout& layout, model::WorkerId worker,
                      CompactReport& report, const std::function<bool()>& part_is_done) {
    const Result<std::unique_ptr<storage::FileLock>> lock = lock_worker(files, layout, worker);
    if (!lock) {
        if (lock.status().code() == Code::kNotFound) return Status::ok();
        if (lock.status().code() != Code::kUnavailable) return lock.status();
        report.workers_alive.push_back(worker);
        return Status::ok();
    }
    TRAINDBG_ASSIGN_OR_RETURN(const WorkerFiles found, list_worker(files, layout, worker));
    for (const std::string& path : found.leftovers) {
        if (files.remove(path).is_ok()) ++report.leftovers_removed;
    }
    for (const WorkerFiles::File& log : found.logs) {
        const std::string log_path = layout.log(worker, log.number);
        if (has_whole_segment(files, layout.segment(worker, log.number))) {
            if (const Status status = files.remove(log_path); !status.is_ok())
                report.problems.push_back(status.message());
            else ++report.logs_removed;
        } else if (const Result<SealedPart> sealed = seal_part(files, layout, worker, log.number)) {
            ++report.parts_sealed;
            report.steps += sealed->steps;
            report.bytes_before += sealed->log_bytes;
            report.bytes_after += sealed->segment_bytes;
        } else if (sealed.status().code() == Code::kDataLoss && log.bytes < kHeaderFrames) {
            // The process ended while it began this part: there is nothing in it.
            if (files.remove(log_path).is_ok()) ++report.leftovers_removed;
        } else {
            if (sealed.status().code() == Code::kResourceExhausted)
                report.problems_of_room.push_back(sealed.status().message());
            report.problems.push_back(sealed.status().message());
        }
        if (!part_is_done()) return Status(Code::kUnavailable, "stopped");
    }
    return Status::ok();
}

}  // namespace

Result<SealedPart> seal_part(storage::FileSystem& files, const storage::RunLayout& layout,
                             model::WorkerId worker, std::uint32_t part) {
    const std::string log_path = layout.log(worker, part);
    SealedPart sealed;
    ByteBuffer segment;
    {
        TRAINDBG_ASSIGN_OR_RETURN(const std::unique_ptr<storage::ReadFile> file, files.open(log_path));
        LogToSegment turned(*file, log_path, worker, part);
        TRAINDBG_ASSIGN_OR_RETURN(segment, turned.build(sealed));
    }
    sealed.segment_bytes = segment.size();
    TRAINDBG_RETURN_IF_ERROR(files.put_atomic(layout.segment(worker, part), segment));
    TRAINDBG_RETURN_IF_ERROR(files.remove(log_path));
    return sealed;
}

std::uint64_t WorkerFiles::bytes() const noexcept {
    std::uint64_t bytes = 0;
    for (const std::vector<File>* kind : {&logs, &segments, &blobs})
        for (const File& file : *kind) bytes += file.bytes;
    return bytes;
}

Result<WorkerFiles> list_worker(storage::FileSystem& files, const storage::RunLayout& layout,
                                model::WorkerId worker) {
    const std::string directory = layout.worker_directory(worker);
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, files.list(directory));
    WorkerFiles found;
    for (const storage::DirectoryEntry& entry : entries) {
        if (!entry.is_regular) continue;
        const std::string path = directory + "/" + entry.name;
        if (is_temporary(entry.name) || entry.name == "reserve") {
            found.leftovers.push_back(path);
            continue;
        }
        std::vector<WorkerFiles::File>* kind = nullptr;
        std::optional<std::uint32_t> number;
        if ((number = storage::parse_part(entry.name, ".log"))) kind = &found.logs;
        else if ((number = storage::parse_part(entry.name, ".seg"))) kind = &found.segments;
        else if ((number = storage::parse_part(entry.name, ".blob"))) kind = &found.blobs;
        if (kind == nullptr) continue;
        const Result<std::uint64_t> size = size_of(files, path);
        if (!size && size.status().code() == Code::kNotFound) continue;  // removed meanwhile
        if (!size) return size.status();
        kind->push_back({*number, *size});
    }
    for (std::vector<WorkerFiles::File>* kind : {&found.logs, &found.segments, &found.blobs})
        std::sort(kind->begin(), kind->end(),
                  [](const WorkerFiles::File& a, const WorkerFiles::File& b) { return a.number < b.number; });
    return found;
}

Result<std::vector<model::WorkerId>> list_workers(storage::FileSystem& files,
                                                  const storage::RunLayout& layout) {
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, files.list(layout.root));
    std::vector<model::WorkerId> workers;
    for (const storage::DirectoryEntry& entry : entries)
        if (const auto worker = storage::parse_worker_directory(entry.name); worker && entry.is_directory)
            workers.push_back(*worker);
    std::sort(workers.begin(), workers.end());
    return workers;
}

Result<std::unique_ptr<storage::FileLock>> lock_worker(storage::FileSystem& files,
                                                       const storage::RunLayout& layout,
                                                       model::WorkerId worker, storage::LockFile file) {
    const std::string directory = layout.worker_directory(worker);
    const std::string path = layout.lock(worker);
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<storage::DirectoryEntry> entries, files.list(directory));
    // A writer takes the lock before it makes another file. So here, where one is, either the lock is held or
    // the writer is gone, with the lock's file or (of a copy) without it; where none is, one may be about to
    // take it and must not find it taken.
    const bool has_files = std::any_of(entries.begin(), entries.end(), [&](const auto& entry) {
        return directory + "/" + entry.name != path;
    });
    if (!has_files) return Status(Code::kNotFound, directory + ": is empty");
    Result<std::unique_ptr<storage::FileLock>> lock = files.try_lock(path, file);
    if (!lock && lock.status().code() == Code::kUnsupported)
        return Status(Code::kUnsupported, lock.status().message() +
                                              ", so that nobody can tell whether the worker's process lives; "
                                              "what it wrote is left as it is");
    return lock;
}

Result<CompactReport> compact_run(
    storage::FileSystem& files, const std::string& run,
    const std::function<bool(std::uint64_t done, std::uint64_t all)>& progress) {
    const storage::RunLayout layout{run};
    if (!files.exists(layout.run_json()))
        return Status(Code::kNotFound, run + ": is no run: there is no RUN.json in it");
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<model::WorkerId> workers, list_workers(files, layout));
    std::uint64_t all = 0;
    for (const model::WorkerId worker : workers)
        if (const Result<WorkerFiles> found = list_worker(files, layout, worker)) all += found->logs.size();
    CompactReport report;
    std::uint64_t done = 0;
    bool stopped = false;
    const auto part_is_done = [&] {
        ++done;
        if (progress && !progress(done, all)) stopped = true;
        return !stopped;
    };
    for (const model::WorkerId worker : workers) {
        const Status status = compact_worker(files, layout, worker, report, part_is_done);
        if (stopped) break;
        if (!status.is_ok()) report.problems.push_back(status.message());
    }
    return report;
}

}  // namespace traindbg::seal
