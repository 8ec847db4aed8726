#include "traindbg/sync/uploader.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "traindbg/base/crc32c.h"
#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/object_pieces.h"
#include "traindbg/storage/plan_files.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::sync {
namespace {

using base::ByteBuffer;
using base::Code;
using base::Result;
using base::Status;
using storage::Patience;

constexpr std::size_t kMostObjects = 1'000'000;
constexpr std::uint64_t kMostJsonBytes = 64ULL << 20;
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
constexpr std::string_view kRunJson = "RUN.json";
constexpr std::string_view kEndJson = "END.json";

std::string_view text_of(const ByteBuffer& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// 3 of "w0000/000003.log" with ".log".
std::optional<std::uint32_t> number_of(const std::string& name, std::string_view suffix) {
    return storage::parse_part(std::string_view(name).substr(name.rfind('/') + 1), suffix);
}

}  // namespace

// The pieces of one growing file that are up, from the first one without a gap.
struct Uploader::Pieces {
    std::map<std::uint32_t, std::uint64_t> sizes;
    [[nodiscard]] std::uint32_t count() const {
        std::uint32_t next = 0;
        for (const auto& [index, size] : sizes) {
            if (index != next) break;
            ++next;
        }
        return next;
    }
    [[nodiscard]] std::uint64_t bytes() const {
        std::uint64_t sum = 0;
        const std::uint32_t whole = count();
        for (const auto& [index, size] : sizes)
            if (index < whole) sum += size;
        return sum;
    }
};

// What is known of a growing file's frames.
struct Uploader::Growing {
    format::FrameScanner scanner;
    std::vector<std::uint64_t> ends;  // of frames, one about every `piece_bytes`
};

struct Uploader::LocalFile {
    enum class Kind : std::uint8_t { kGrowing, kImmutable, kChanging };
    std::string name;  // relative to the run
    Kind kind = Kind::kChanging;
    bool has_frames = false;
    bool is_finished = false;  // growing no more: one of a higher number is there
    std::unique_ptr<storage::ReadFile> file{};
    std::uint64_t size = 0;
    std::uint64_t until = 0;  // what of it may go up now
};

Uploader::Uploader(UploadOptions options, storage::FileSystem& files, storage::ObjectStore& store)
    : options_(std::move(options)), files_(files), store_(store) {}
Uploader::~Uploader() = default;

std::string Uploader::key_of(const std::string& name) const {
    return options_.prefix.empty() ? name : options_.prefix + "/" + name;
}

Status Uploader::look_at_bucket(const Patience& patience) {
    const std::string prefix = options_.prefix.empty() ? std::string() : options_.prefix + "/";
    TRAINDBG_ASSIGN_OR_RETURN(const std::vector<storage::ObjectInfo> found,
                              storage::list_all(store_, prefix, kMostObjects, patience));
    objects_.clear();
    pieces_.clear();
    for (const storage::ObjectInfo& object : found) {
        const std::string name = object.key.substr(prefix.size());
        if (const auto piece = storage::parse_piece(name))
            pieces_[std::string(piece->file)].sizes[piece->index] = object.size;
        else objects_[name] = object.size;
    }
    TRAINDBG_RETURN_IF_ERROR(check_identity(patience));
    knows_bucket_ = true;
    return Status::ok();
}

Status Uploader::check_identity(const Patience& patience) {
    TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer ours,
                              storage::read_whole(files_, path_of(std::string(kRunJson)), kMostJsonBytes));
    TRAINDBG_ASSIGN_OR_RETURN(const model::RunMeta our_meta, model::run_meta_from_json(text_of(ours)));
    const auto there = objects_.find(std::string(kRunJson));
    if (there == objects_.end()) return Status::ok();
    if (there->second > kMostJsonBytes)
        return {Code::kInvalidArgument, base::printable(key_of("RUN.json")) + ": is not that of a run"};
    TRAINDBG_ASSIGN_OR_RETURN(
        const ByteBuffer theirs,
        store_.get_range(key_of("RUN.json"), 0, static_cast<std::size_t>(there->second), "", patience));
    const Result<model::RunMeta> their_meta = model::run_meta_from_json(text_of(theirs));
    if (theirs == ours || (their_meta.is_ok() && !our_meta.uuid.empty() && their_meta->uuid == our_meta.uuid))
        return Status::ok();
    return {Code::kInvalidArgument,
            base::format("{}: holds another run{}; upload to another prefix (one that ends with '/' gets the "
                         "run's name behind it)",
                         base::printable(options_.prefix),
                         their_meta.is_ok() ? " (" + base::printable(their_meta->run_id) + ")" : "")};
}

Result<std::vector<Uploader::LocalFile>> Uploader::look_at_files() {
    using Kind = LocalFile::Kind;
    std::vector<LocalFile> found;
    TRAINDBG_ASSIGN_OR_RETURN(const auto entries, files_.list(options_.run));
    for (const storage::DirectoryEntry& entry : entries) {
        if (entry.name.starts_with('.') || entry.name == "control") continue;
        if (entry.is_regular) found.push_back({entry.name, Kind::kChanging});
        if (!entry.is_directory || !storage::parse_worker_directory(entry.name)) continue;
        const auto below = files_.list(options_.run + "/" + entry.name);
        if (!below.is_ok()) {
            troubles_.push_back(below.status().message());
            continue;
        }
        std::map<std::string, std::uint32_t> highest;  // number, by suffix
        const std::size_t first = found.size();
        for (const storage::DirectoryEntry& file : *below) {
            // Room that a writer sets aside for itself, and its lock, are no part of the record.
            if (!file.is_regular || file.name.starts_with('.') || file.name == "reserve" ||
                file.name == "lock")
                continue;
            LocalFile local{entry.name + "/" + file.name, Kind::kChanging};
            if (file.name.ends_with(".seg")) local.kind = Kind::kImmutable;
            for (const std::string_view suffix : storage::kGrowingSuffixes) {
                const auto number = storage::parse_part(file.name, suffix);
                if (!number) continue;
                local.kind = Kind::kGrowing;
                local.has_frames = suffix == ".log";
                highest[std::string(suffix)] = std::max(highest[std::string(suffix)], *number);
            }
            found.push_back(std::move(local));
        }
        for (std::size_t i = first; i < found.size(); ++i)
            for (const auto& [suffix, number] : highest)
                if (const auto own = number_of(found[i].name, suffix)) found[i].is_finished = *own < number;
    }
    return found;
}

// A log that could not be read in this round, or was sealed meanwhile, comes in the next one. Parts behind it
// wait for it: a follower takes a part that has a later one for finished.
void Uploader::hold_back_later_parts(std::vector<LocalFile>& found) {
    const auto part_of = [](const LocalFile& file) -> std::optional<std::pair<std::string, std::uint32_t>> {
        const std::size_t slash = file.name.rfind('/');
        if (slash == std::string::npos) return std::nullopt;
        const std::string_view base = std::string_view(file.name).substr(slash + 1);
        std::optional<std::uint32_t> part = storage::parse_part(base, ".log");
        if (!part) part = storage::parse_part(base, ".seg");
        if (!part) return std::nullopt;
        return std::pair(file.name.substr(0, slash), *part);
    };
    std::map<std::string, std::uint32_t> first_missing;  // of each worker's directory
    for (const LocalFile& file : found) {
        const auto part = part_of(file);
        if (!part || file.file) continue;
        const auto [it, is_new] = first_missing.try_emplace(part->first, part->second);
        if (!is_new) it->second = std::min(it->second, part->second);
    }
    for (LocalFile& file : found) {
        const auto part = part_of(file);
        if (!part) continue;
        const auto missing = first_missing.find(part->first);
        if (missing != first_missing.end() && part->second > missing->second) file.file.reset();
    }
}

// Opens the file and finds out how much of it may go up.
void Uploader::measure(LocalFile& file, bool is_last) {
    auto opened = files_.open(path_of(file.name));
    if (!opened.is_ok()) {
        // Sealed and removed since the directory was read: its segment comes in the next round.
        if (opened.status().code() != Code::kNotFound) troubles_.push_back(opened.status().message());
        has_vanished_ = has_vanished_ || opened.status().code() == Code::kNotFound ||
                        file.kind != LocalFile::Kind::kChanging;
        return;
    }
    const auto size = (*opened)->size();
    if (!size.is_ok()) {
        troubles_.push_back(size.status().message());
        has_vanished_ = has_vanished_ || file.kind != LocalFile::Kind::kChanging;
        return;
    }
    file.file = std::move(opened).value();
    file.size = *size;
    file.until = *size;
    if (file.kind != LocalFile::Kind::kGrowing || !file.has_frames) return;
    Growing& growing = growing_[file.name];
    std::size_t wanted = kWindowBytes;
    bool is_done = growing.scanner.position() >= file.size;
    while (!is_done) {
        const std::uint64_t begin = growing.scanner.position();
        const auto window = file.file->read_at(begin, wanted);
        if (!window.is_ok()) {
            troubles_.push_back(window.status().message());
            has_vanished_ = true;
            file.file.reset();
            return;
        }
        const bool at_end = begin + window->size() >= file.size || window->size() < wanted;
        while (true) {
            const auto used = static_cast<std::size_t>(growing.scanner.position() - begin);
            const format::ScanItem item =
                growing.scanner.next(base::ByteSpan(*window).subspan(std::min(used, window->size())), false);
            if (item.kind == format::ScanItem::Kind::kNeedMore) {
                wanted = std::max(kWindowBytes, item.bytes_needed);
                is_done = at_end;
                break;
            }
            if (item.kind == format::ScanItem::Kind::kForeign) {
                is_done = true;
                break;
            }
            const std::uint64_t last = growing.ends.empty() ? 0 : growing.ends.back();
            if (growing.scanner.settled() - last >= options_.piece_bytes / 2)
                growing.ends.push_back(growing.scanner.settled());
        }
    }
    if (!is_last && !file.is_finished) file.until = std::min(growing.scanner.settled(), file.size);
}

void Uploader::did_put(const std::string& name, std::uint64_t bytes) {
    ++counts_.objects_put;
    counts_.bytes_put += bytes;
    counts_.bytes_pending -= std::min<std::uint64_t>(bytes, counts_.bytes_pending);
    if (options_.told) options_.told(key_of(name), bytes, false);
}

Status Uploader::remove(const std::string& name, const Patience& patience) {
    if (!options_.is_dry) TRAINDBG_RETURN_IF_ERROR(store_.remove(key_of(name), patience));
    ++counts_.objects_removed;
    if (options_.told) options_.told(key_of(name), 0, true);
    return Status::ok();
}

Status Uploader::put_growing(const LocalFile& file, bool is_last, const Patience& patience) {
    Pieces& pieces = pieces_[file.name];
    const auto whole = objects_.find(file.name);
    const bool is_blob = !file.has_frames;
    // A file that is finished and has no pieces goes up as it is.
    if (is_blob && pieces.sizes.empty() && (is_last || file.is_finished || whole != objects_.end())) {
        if (whole != objects_.end() && whole->second == file.size) {
            ++counts_.objects_kept;
            return Status::ok();
        }
        if (!options_.is_dry)
            TRAINDBG_RETURN_IF_ERROR(store_.put_file(key_of(file.name), *file.file, file.size, patience));
        objects_[file.name] = file.size;
        did_put(file.name, file.size);
        return Status::ok();
    }
    // Behind a gap nothing is of use, and the next piece's place must be free.
    const std::uint32_t next = pieces.count();
    while (!pieces.sizes.empty() && pieces.sizes.rbegin()->first >= next) {
        const std::uint32_t index = pieces.sizes.rbegin()->first;
        TRAINDBG_RETURN_IF_ERROR(remove(storage::piece_name(file.name, index), patience));
        pieces.sizes.erase(index);
    }
    counts_.objects_kept += next;
    std::uint64_t from = pieces.bytes();
    if (from > file.size) {
        troubles_.push_back(base::format("{}: has {} bytes here and {} in the bucket; the bucket's are kept",
                                         base::printable(path_of(file.name)), file.size, from));
        return Status::ok();
    }
    const std::vector<std::uint64_t>& ends = growing_[file.name].ends;
    while (from < file.until) {
        std::uint64_t end = std::min(file.until, from + options_.piece_bytes);
        if (end < file.until) {
            // The last end of a frame that still fits.
            const auto it = std::upper_bound(ends.begin(), ends.end(), end);
            if (it != ends.begin() && *(it - 1) > from) end = *(it - 1);
        }
        const std::uint32_t index = pieces.count();
        const std::string name = storage::piece_name(file.name, index);
        if (!options_.is_dry) {
            TRAINDBG_ASSIGN_OR_RETURN(const ByteBuffer bytes,
                                      file.file->read_at(from, static_cast<std::size_t>(end - from)));
            if (bytes.size() != end - from)
                return {Code::kDataLoss, base::printable(path_of(file.name)) + ": was cut while it was read"};
            TRAINDBG_RETURN_IF_ERROR(store_.put_if_absent(key_of(name), bytes, patience));
        }
        pieces.sizes[index] = end - from;
        did_put(name, end - from);
        from = end;
    }
    return Status::ok();
}

Status Uploader::put_immutable(const LocalFile& file, const Patience& patience) {
    const auto it = objects_.find(file.name);
    if (it != objects_.end() && it->second == file.size) {
        ++counts_.objects_kept;
        return Status::ok();
    }
    if (!options_.is_dry)
        TRAINDBG_RETURN_IF_ERROR(store_.put_file(key_of(file.name), *file.file, file.size, patience));
    objects_[file.name] = file.size;
    did_put(file.name, file.size);
    return Status::ok();
}

Status Uploader::put_changed(const LocalFile& file, const Patience& patience) {
    const auto bytes =
        file.file->read_at(0, static_cast<std::size_t>(std::min(file.size, kMostJsonBytes + 1)));
    if (!bytes.is_ok() || bytes->size() > kMostJsonBytes) {
        troubles_.push_back(bytes.is_ok() ? base::printable(path_of(file.name)) + ": is larger than 64 MiB"
                                          : bytes.status().message());
        return Status::ok();
    }
    const auto content = std::make_pair(std::uint64_t{bytes->size()}, base::crc32c(*bytes));
    const auto known = put_.find(file.name);
    if (known != put_.end() && known->second == content) {
        ++counts_.objects_kept;
        return Status::ok();
    }
    if (const auto there = objects_.find(file.name);
        known == put_.end() && there != objects_.end() && there->second == bytes->size()) {
        // A process before this one may have put it.
        const auto theirs = store_.get_range(key_of(file.name), 0, bytes->size(), "", patience);
        if (theirs.is_ok() && *theirs == *bytes) {
            put_[file.name] = content;
            ++counts_.objects_kept;
            return Status::ok();
        }
    }
    if (!options_.is_dry) {
        const std::string key = key_of(file.name);
        const bool is_first = file.name == kRunJson && !objects_.contains(file.name);
        TRAINDBG_RETURN_IF_ERROR(is_first ? store_.put_if_absent(key, *bytes, patience)
                                          : store_.put(key, *bytes, patience));
    }
    objects_[file.name] = bytes->size();
    put_[file.name] = content;
    did_put(file.name, bytes->size());
    return Status::ok();
}

Status Uploader::remove_superseded(const Patience& patience) {
    for (auto& [file, pieces] : pieces_) {
        const auto number = number_of(file, ".log");
        if (!number || pieces.sizes.empty()) continue;
        const std::string segment = file.substr(0, file.size() - 4) + ".seg";
        if (!objects_.contains(segment)) continue;
        while (!pieces.sizes.empty()) {
            const std::uint32_t index = pieces.sizes.rbegin()->first;
            TRAINDBG_RETURN_IF_ERROR(remove(storage::piece_name(file, index), patience));
            pieces.sizes.erase(index);
        }
    }
    return Status::ok();
}

Status Uploader::round(bool is_last, const Patience& patience) {
    using Kind = LocalFile::Kind;
    troubles_.clear();
    has_vanished_ = false;
    counts_.objects_kept = 0;
    Status status = [&] {
        if (!knows_bucket_) TRAINDBG_RETURN_IF_ERROR(look_at_bucket(patience));
        // The end is looked for before anything else: what was written before it is then seen below.
        const bool is_over = files_.exists(path_of(std::string(kEndJson)));
        TRAINDBG_ASSIGN_OR_RETURN(std::vector<LocalFile> found, look_at_files());
        std::set<std::string> segments;
        for (const LocalFile& file : found)
            if (file.kind == Kind::kImmutable) segments.insert(file.name);
        // A log that is sealed already goes up as its segment only.
        std::erase_if(found, [&](const LocalFile& file) {
            return file.kind == Kind::kGrowing && file.has_frames &&
                   segments.contains(file.name.substr(0, file.name.size() - 4) + ".seg");
        });
        // Logs are measured before blobs, and blobs go up before logs: a step's tensors are in their blob
        // before the step is in its log.
        for (LocalFile& file : found)
            if (file.has_frames) measure(file, is_last);
        for (LocalFile& file : found)
            if (!file.has_frames) measure(file, is_last);
        hold_back_later_parts(found);
        std::uint64_t pending = 0;
        for (const LocalFile& file : found) {
            if (!file.file) continue;
            const auto whole = objects_.find(file.name);
            const auto pieces = pieces_.find(file.name);
            std::uint64_t up = whole != objects_.end() ? whole->second : 0;
            if (pieces != pieces_.end()) up = std::max(up, pieces->second.bytes());
            pending += file.until - std::min(file.until, up);
        }
        counts_.bytes_pending = pending;

        const auto rank = [](const LocalFile& file) {
            if (file.name == kRunJson) return 0;
            // Before what lies behind the gap that it explains.
            if (file.name == "plan.json" || storage::parse_plan_change(file.name) ||
                file.name.ends_with("/removed.json") || file.name.ends_with("/ring"))
                return 1;
            if (file.name == kEndJson) return 6;
            if (file.kind == Kind::kChanging) return 5;
            // Logs and segments in the order of their parts, which is that of their names: who follows the
            // bucket never sees a part before all of those before it.
            return file.has_frames || file.kind == Kind::kImmutable ? 3 : 2;
        };
        std::stable_sort(found.begin(), found.end(),
                         [&](const LocalFile& a, const LocalFile& b) { return rank(a) < rank(b); });
        for (LocalFile& file : found) {
            if (!file.file || (file.name == kEndJson && (!is_over || has_vanished_))) continue;
            switch (file.kind) {
                case Kind::kGrowing: TRAINDBG_RETURN_IF_ERROR(put_growing(file, is_last, patience)); break;
                case Kind::kImmutable: TRAINDBG_RETURN_IF_ERROR(put_immutable(file, patience)); break;
                case Kind::kChanging:
                    // The end is told once all else is up.
                    if (file.name == kEndJson) TRAINDBG_RETURN_IF_ERROR(remove_superseded(patience));
                    TRAINDBG_RETURN_IF_ERROR(put_changed(file, patience));
                    break;
            }
            file.file.reset();
        }
        TRAINDBG_RETURN_IF_ERROR(remove_superseded(patience));
        has_end_ = has_end_ || (is_over && troubles_.empty() && !has_vanished_);
        if (is_last && has_vanished_)
            return Status(Code::kUnavailable,
                          base::printable(options_.run) + ": its files changed while they were uploaded");
        ++counts_.rounds;
        return Status::ok();
    }();
    // What is there now is not known any more: the next round looks.
    if (!status.is_ok()) knows_bucket_ = false;
    return status;
}

}  // namespace traindbg::sync
