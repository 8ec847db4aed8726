#include "traindbg/storage/object_file_system.h"

#include <algorithm>
#include <array>
#include <list>
#include <optional>
#include <set>

#include "traindbg/base/clock.h"
#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/base/text.h"
#include "traindbg/storage/object_pieces.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::storage {
namespace {

using base::ByteBuffer;
using base::Code;
using base::Result;
using base::Status;

constexpr std::uint64_t kBlockBytes = 256 << 10;
constexpr std::uint64_t kMostFetchBytes = 8 << 20;
constexpr std::uint64_t kMostWholeBytes = 64 << 20;
constexpr std::size_t kMemoryBlocks = 128;
constexpr std::size_t kMostObjects = 1'000'000;

// A file: one object, or the pieces of one that grows.
struct StoredFile {
    std::vector<ObjectInfo> pieces;
    std::uint64_t size = 0;
    bool is_fixed = false;  // its objects never change: blocks of them may be kept
};

// All that a run's prefix held at one moment.
struct Snapshot {
    std::map<std::string, StoredFile> files;  // by name relative to the prefix
    std::int64_t taken_nanos = 0;
};

// What stands before the last "/"; empty: nothing.
std::string prefix_above(const std::string& key) {
    const std::size_t slash = key.rfind('/');
    return slash == std::string::npos ? std::string() : key.substr(0, slash);
}

// A name that a file system could not have is none here either.
bool is_plain_name(std::string_view name) {
    return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos;
}

Snapshot snapshot_of(const std::string& prefix, std::vector<ObjectInfo> objects) {
    Snapshot snapshot;
    std::map<std::string, std::map<std::uint32_t, ObjectInfo>> pieces;
    for (ObjectInfo& object : objects) {
        const std::string name = object.key.substr(prefix.size());
        if (const auto piece = parse_piece(name)) {
            const std::string file(piece->file);
            pieces[file][piece->index] = std::move(object);
            continue;
        }
        StoredFile& file = snapshot.files[name];
        file.size = object.size;
        file.is_fixed = name.ends_with(".seg") || name.ends_with(".blob") || name.ends_with(".raw");
        file.pieces = {std::move(object)};
    }
    for (auto& [name, numbered] : pieces) {
        if (snapshot.files.contains(name)) continue;  // the whole object has all of it
        StoredFile file;
        file.is_fixed = true;
        for (auto& [index, object] : numbered) {
            if (index != file.pieces.size()) break;  // behind a gap nothing can be placed
            if (object.size > UINT64_MAX - file.size) break;
            file.size += object.size;
            file.pieces.push_back(std::move(object));
        }
        if (!file.pieces.empty()) snapshot.files[name] = std::move(file);
    }
    return snapshot;
}

}  // namespace

// What the file system and its files share.
class ObjectFileSystem::Core {
  public:
    Core(ObjectStore& store, BlockCache& cache, ObjectFileSystemOptions options)
        : store_(store), cache_(cache), options_(std::move(options)) {}

    // The key of a path: "runs/night" of "s3://bucket/runs/night/".
    [[nodiscard]] std::optional<std::string> key_of(const std::string& path) const {
        if (!path.starts_with(options_.root)) return std::nullopt;
        std::string_view key = std::string_view(path).substr(options_.root.size());
        if (!key.empty() && key.front() != '/') return std::nullopt;
        while (key.starts_with('/')) key.remove_prefix(1);
        while (key.ends_with('/')) key.remove_suffix(1);
        return std::string(key);
    }
    [[nodiscard]] Patience patience() const {
        return {base::monotonic_nanos() + options_.patience.count(), nullptr};
    }
    [[nodiscard]] Status not_found(const std::string& key) const {
        return {Code::kNotFound, base::format("{}/{}: no such file", options_.root, base::printable(key))};
    }

    // The run that a key lies in, if it is known: the longest prefix with a snapshot.
    [[nodiscard]] std::optional<std::string> known_run(const std::string& key) {
        const std::lock_guard lock(mutex_);
        for (std::string run = key;; run = prefix_above(run)) {
            if (runs_.contains(run)) return run;
            if (run.empty()) return std::nullopt;
        }
    }

    // What the run at `run` (a key) holds, not older than `look_interval`.
    [[nodiscard]] Result<std::shared_ptr<const Snapshot>> look(const std::string& run) {
        std::shared_ptr<const Snapshot> known;
        {
            const std::lock_guard lock(mutex_);
            const auto it = runs_.find(run);
            if (it != runs_.end()) known = it->second;
        }
        const std::int64_t now = base::monotonic_nanos();
        if (known && now - known->taken_nanos < options_.look_interval.count()) return known;
        const std::string prefix = run.empty() ? run : run + "/";
        auto objects = list_all(store_, prefix, kMostObjects, patience());
        if (!objects.is_ok()) {
            if (!known || objects.status().code() != Code::kUnavailable) return objects.status();
            base::log_once(base::LogLevel::kWarning, "look " + run,
                           objects.status().message() + "; going on with what was read before");
            const std::lock_guard lock(mutex_);
            auto again = std::make_shared<Snapshot>(*known);
            again->taken_nanos = base::monotonic_nanos();
            runs_[run] = again;
            return std::shared_ptr<const Snapshot>(std::move(again));
        }
        auto fresh = std::make_shared<Snapshot>(snapshot_of(prefix, std::move(objects).value()));
        fresh->taken_nanos = base::monotonic_nanos();
        const std::lock_guard lock(mutex_);
        runs_[run] = fresh;
        return std::shared_ptr<const Snapshot>(std::move(fresh));
    }

    // The snapshot of the run that `key`, a file, lies in, and the file's name in it. Makes one where a
    // RUN.json says that there is a run.
    [[nodiscard]] Result<std::pair<std::shared_ptr<const Snapshot>, std::string>> find_run(
        const std::string& key) {
        std::optional<std::string> run = known_run(prefix_above(key));
        if (!run) {
            std::string above = prefix_above(key);
            if (parse_worker_directory(std::string_view(above).substr(above.rfind('/') + 1)))
                above = prefix_above(above);
            // Asked for by name before all is listed: a bucket may hold millions of other objects.
            const std::string run_json = above.empty() ? "RUN.json" : above + "/RUN.json";
            const auto there = store_.head(run_json, patience());
            if (!there.is_ok()) {
                TRAINDBG_RETURN_IF_ERROR(why_not(above));
                return there.status().code() == Code::kNotFound ? not_found(key) : there.status();
            }
            run = above;
        }
        TRAINDBG_ASSIGN_OR_RETURN(std::shared_ptr<const Snapshot> snapshot, look(*run));
        return std::make_pair(std::move(snapshot), run->empty() ? key : key.substr(run->size() + 1));
    }

    // An answer without a body says little about what is wrong; that of a list says it.
    [[nodiscard]] Status why_not(const std::string& prefix) {
        if (is_reached_) return Status::ok();
        ListRequest request;
        request.prefix = prefix;
        request.limit = 1;
        Status status = store_.list(request, patience()).status();
        if (status.is_ok()) is_reached_ = true;
        return status;
    }

    [[nodiscard]] ObjectStore& store() noexcept { return store_; }

    // `count` blocks of an object from block `first`, of which the first is wanted and the others will
    // be; gives the first.
    [[nodiscard]] Result<std::shared_ptr<const ByteBuffer>> block(const ObjectInfo& object,
                                                                  std::uint64_t first, std::uint64_t count) {
        // Without an ETag nobody can tell whether the object is still the one that was kept.
        const bool may_keep = !object.etag.empty();
        const std::string name = name_of(object, first);
        if (auto kept = from_memory(name); kept && may_keep) return kept;
        if (may_keep)
            if (auto kept = cache_.get(name)) return keep(name, std::move(*kept));
        // Up to the next block that is here already.
        std::uint64_t fetched = 1;
        const std::uint64_t blocks = (object.size + kBlockBytes - 1) / kBlockBytes;
        while (fetched < count && first + fetched < blocks && !from_memory(name_of(object, first + fetched)))
            ++fetched;
        const std::uint64_t offset = first * kBlockBytes;
        const std::uint64_t bytes = std::min(fetched * kBlockBytes, object.size - offset);
        TRAINDBG_ASSIGN_OR_RETURN(
            ByteBuffer all,
            store_.get_range(object.key, offset, static_cast<std::size_t>(bytes), object.etag, patience()));
        if (all.size() != bytes)
            return Status(Code::kDataLoss, base::format("{}/{}: is shorter than it was", options_.root,
                                                        base::printable(object.key)));
        std::shared_ptr<const ByteBuffer> wanted;
        for (std::uint64_t i = fetched; i-- > 0;) {  // the first one last, so that it is in memory for sure
            const auto begin = all.begin() + static_cast<std::ptrdiff_t>(i * kBlockBytes);
            const auto size = static_cast<std::ptrdiff_t>(std::min(kBlockBytes, bytes - i * kBlockBytes));
            ByteBuffer part(begin, begin + size);
            if (!may_keep) {
                wanted = std::make_shared<const ByteBuffer>(std::move(part));
                continue;
            }
            const std::string part_name = name_of(object, first + i);
            cache_.put(part_name, part);
            wanted = keep(part_name, std::move(part));
        }
        return wanted;
    }

  private:
    [[nodiscard]] std::string name_of(const ObjectInfo& object, std::uint64_t block) const {
        return base::format("{}\n{}\n{}\n{}\n{}", options_.identity, object.key, object.etag, object.size,
                            block);
    }

    [[nodiscard]] std::shared_ptr<const ByteBuffer> from_memory(const std::string& name) {
        const std::lock_guard lock(mutex_);
        const auto it = by_name_.find(name);
        if (it == by_name_.end()) return nullptr;
        blocks_.splice(blocks_.begin(), blocks_, it->second);
        return it->second->second;
    }
    std::shared_ptr<const ByteBuffer> keep(const std::string& name, ByteBuffer bytes) {
        auto block = std::make_shared<const ByteBuffer>(std::move(bytes));
        const std::lock_guard lock(mutex_);
        if (by_name_.contains(name)) return block;
        blocks_.emplace_front(name, block);
        by_name_[name] = blocks_.begin();
        if (blocks_.size() > kMemoryBlocks) {
            by_name_.erase(blocks_.back().first);
            blocks_.pop_back();
        }
        return block;
    }

    ObjectStore& store_;
    BlockCache& cache_;
    const ObjectFileSystemOptions options_;
    std::atomic<bool> is_reached_{false};  // the bucket, with these credentials

    std::mutex mutex_;
    std::map<std::string, std::shared_ptr<const Snapshot>> runs_;
    // The blocks in memory, the last used first.
    using Blocks = std::list<std::pair<std::string, std::shared_ptr<const ByteBuffer>>>;
    Blocks blocks_;
    std::map<std::string, Blocks::iterator> by_name_;
};

namespace {

// The content of one moment.
class WholeFile final : public ReadFile {
  public:
    explicit WholeFile(ByteBuffer bytes) : bytes_(std::move(bytes)) {}
    Result<ByteBuffer> read_at(std::uint64_t offset, std::size_t size) override {
        if (offset >= bytes_.size()) return ByteBuffer();
        const auto begin = bytes_.begin() + static_cast<std::ptrdiff_t>(offset);
        const auto count = std::min<std::uint64_t>(size, bytes_.size() - offset);
        return ByteBuffer(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
    Result<std::uint64_t> size() override { return std::uint64_t{bytes_.size()}; }

  private:
    const ByteBuffer bytes_;
};

class RangedFile final : public ReadFile {
  public:
    RangedFile(std::shared_ptr<ObjectFileSystem::Core> core, std::string key, StoredFile file)
        : core_(std::move(core)), key_(std::move(key)), file_(std::move(file)) {}

    Result<ByteBuffer> read_at(std::uint64_t offset, std::size_t size) override {
        ByteBuffer bytes;
        if (offset >= file_.size) return bytes;
        std::uint64_t left = std::min<std::uint64_t>(size, file_.size - offset);
        // Who goes on where the last read ended will most likely go on: twice as much each time.
        ahead_ = offset == next_ ? std::min(std::max(ahead_, kBlockBytes) * 2, kMostFetchBytes) : 0;
        next_ = offset + left;
        try {
            bytes.reserve(static_cast<std::size_t>(left));
        } catch (const std::bad_alloc&) {
            return Status(Code::kResourceExhausted, base::printable(key_) + ": no memory to read it");
        }
        std::uint64_t begin = 0;  // of the piece
        for (const ObjectInfo& piece : file_.pieces) {
            if (left == 0) break;
            if (offset >= begin + piece.size) {
                begin += piece.size;
                continue;
            }
            std::uint64_t inside = offset - begin;
            while (left != 0 && inside < piece.size) {
                const std::uint64_t first = inside / kBlockBytes;
                const std::uint64_t last = (inside + std::max(left, ahead_) - 1) / kBlockBytes;
                const std::uint64_t count = std::min(last - first + 1, kMostFetchBytes / kBlockBytes);
                TRAINDBG_ASSIGN_OR_RETURN(const auto block, core_->block(piece, first, count));
                const std::uint64_t at = inside - first * kBlockBytes;
                if (at >= block->size())
                    return Status(Code::kDataLoss, base::printable(piece.key) + ": is shorter than it was");
                const std::uint64_t taken = std::min<std::uint64_t>(left, block->size() - at);
                const auto from = block->begin() + static_cast<std::ptrdiff_t>(at);
                bytes.insert(bytes.end(), from, from + static_cast<std::ptrdiff_t>(taken));
                inside += taken;
                offset += taken;
                left -= taken;
            }
            begin += piece.size;
        }
        return bytes;
    }

    // As of the last look at the run; a file that is gone since keeps what it had.
    Result<std::uint64_t> size() override {
        auto found = core_->find_run(key_);
        if (found.is_ok()) {
            const auto it = found->first->files.find(found->second);
            // Pieces are only added: what was read stays where it was.
            if (it != found->first->files.end() && it->second.size > file_.size && it->second.is_fixed)
                file_ = it->second;
        }
        return file_.size;
    }

  private:
    const std::shared_ptr<ObjectFileSystem::Core> core_;
    const std::string key_;
    StoredFile file_;
    std::uint64_t next_ = 0;
    std::uint64_t ahead_ = 0;
};

Status store_is_read_only(const std::string& path) {
    return {
        Code::kUnsupported,
        base::printable(path) + ": lies in a bucket and is only read from here; traindbg sync writes there"};
}

}  // namespace

ObjectFileSystem::ObjectFileSystem(ObjectStore& store, BlockCache& cache, ObjectFileSystemOptions options)
    : core_(std::make_shared<Core>(store, cache, std::move(options))) {}
ObjectFileSystem::~ObjectFileSystem() = default;

Result<std::unique_ptr<ReadFile>> ObjectFileSystem::open(const std::string& path) {
    const auto key = core_->key_of(path);
    if (!key || key->empty()) return core_->not_found(path);
    TRAINDBG_ASSIGN_OR_RETURN(const auto found, core_->find_run(*key));
    const auto it = found.first->files.find(found.second);
    if (it == found.first->files.end()) return core_->not_found(*key);
    const StoredFile& file = it->second;
    if (file.is_fixed) return std::unique_ptr<ReadFile>(std::make_unique<RangedFile>(core_, *key, file));
    TRAINDBG_ASSIGN_OR_RETURN(
        ByteBuffer bytes,
        core_->store().get_range(file.pieces.front().key, 0, kMostWholeBytes + 1, "", core_->patience()));
    if (bytes.size() > kMostWholeBytes)
        return Status(Code::kResourceExhausted, base::printable(path) + ": is larger than 64 MiB");
    return std::unique_ptr<ReadFile>(std::make_unique<WholeFile>(std::move(bytes)));
}

Result<std::vector<DirectoryEntry>> ObjectFileSystem::list(const std::string& path) {
    const auto key = core_->key_of(path);
    if (!key) return core_->not_found(path);
    std::map<std::string, DirectoryEntry> entries;
    const auto add = [&entries](const std::string& name, bool is_directory) {
        if (!is_plain_name(name)) return;
        DirectoryEntry& entry = entries[name];
        entry.name = name;
        entry.is_directory = entry.is_directory || is_directory;
        entry.is_regular = !entry.is_directory;
    };
    auto run = core_->known_run(*key);
    if (!run && parse_worker_directory(std::string_view(*key).substr(key->rfind('/') + 1))) {
        // Of a run that was not looked at yet, most likely.
        core_->find_run(*key + "/any").status().ignore();
        run = core_->known_run(*key);
    }
    std::string below;  // of the run
    if (!run) {
        ListRequest request;
        request.prefix = key->empty() ? *key : *key + "/";
        request.shallow = true;
        bool is_run = false;
        for (std::size_t seen = 0; seen < kMostObjects;) {
            TRAINDBG_ASSIGN_OR_RETURN(const ObjectPage page, core_->store().list(request, core_->patience()));
            for (const ObjectInfo& object : page.objects) {
                const std::string name = object.key.substr(request.prefix.size());
                is_run = is_run || name == "RUN.json";
                add(name, false);
            }
            for (const std::string& directory : page.directories)
                add(directory.substr(request.prefix.size(), directory.size() - request.prefix.size() - 1),
                    true);
            seen += page.objects.size() + page.directories.size();
            if (page.next.empty()) break;
            request.page = page.next;
        }
        if (is_run) run = key;
    } else if (run->size() < key->size()) {
        below = key->substr(run->empty() ? 0 : run->size() + 1) + "/";
    }
    if (run) {
        entries.clear();
        TRAINDBG_ASSIGN_OR_RETURN(const auto snapshot, core_->look(*run));
        for (const auto& [name, file] : snapshot->files) {
            if (!name.starts_with(below)) continue;
            const std::string rest = name.substr(below.size());
            const std::size_t slash = rest.find('/');
            add(rest.substr(0, slash), slash != std::string::npos);
        }
    }
    if (entries.empty()) return core_->not_found(*key);
    std::vector<DirectoryEntry> sorted;
    sorted.reserve(entries.size());
    for (auto& [name, entry] : entries) sorted.push_back(std::move(entry));
    return sorted;
}

bool ObjectFileSystem::exists(const std::string& path) {
    const auto key = core_->key_of(path);
    if (!key || key->empty()) return false;
    const auto found = core_->find_run(*key);
    if (!found.is_ok()) return false;
    const auto& files = found->first->files;
    if (files.contains(found->second)) return true;
    const auto below = files.lower_bound(found->second + "/");
    return below != files.end() && below->first.starts_with(found->second + "/");
}

Result<std::unique_ptr<AppendFile>> ObjectFileSystem::create(const std::string& path) {
    return store_is_read_only(path);
}
Status ObjectFileSystem::put_atomic(const std::string& path, base::ByteSpan) {
    return store_is_read_only(path);
}
Status ObjectFileSystem::create_directories(const std::string& path) { return store_is_read_only(path); }
Status ObjectFileSystem::create_directory(const std::string& path) { return store_is_read_only(path); }
Status ObjectFileSystem::remove(const std::string& path) { return store_is_read_only(path); }

}  // namespace traindbg::storage
