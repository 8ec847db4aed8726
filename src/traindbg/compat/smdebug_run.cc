#include "traindbg/compat/smdebug_run.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <unordered_map>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/compat/name_pattern.h"
#include "traindbg/format/smdebug_index.h"
#include "traindbg/format/tf_event.h"
#include "traindbg/format/tfrecord.h"

namespace traindbg::compat {
namespace {

using base::ByteBuffer;
using base::Code;
using base::Result;
using base::Status;
using read::Damage;
using tensor::DType;

// Some 400,000 tensors of one step. As values in memory it takes up to fifty times as much.
constexpr std::uint64_t kMostIndexBytes = std::uint64_t{32} << 20;
constexpr std::size_t kMostDamage = 10'000;  // more are counted in one last entry

using NameId = std::uint32_t;

// A name in an index file: of a tensor, or of a reduction of one.
struct Name {
    std::string text;
    NameId tensor = 0;               // what it is a reduction of; itself
    std::string reduction;           // empty: none
    std::vector<NameId> reductions;  // of a tensor: the names of its reductions
};

struct Entry {
    std::uint64_t offset = 0;
    NameId name = 0;
    std::uint32_t bytes = 0;  // at most 2 GiB and the record's own
};

struct Shape {
    NameId name = 0;
    std::vector<std::int64_t> extents;
};

struct Step {
    SmdebugStep place;
    std::string event_file;      // where it is not the usual one
    std::vector<Entry> entries;  // sorted by name
    std::vector<Shape> shapes;   // sorted by name
};

struct Worker {
    std::map<std::uint64_t, Step> steps;
};

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept {
        return std::hash<std::string_view>{}(text);
    }
};

std::string_view text_of(const ByteBuffer& bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

template <typename Items>
auto find_name(Items& items, NameId name) {
    const auto it = std::lower_bound(items.begin(), items.end(), name,
                                     [](const auto& item, NameId wanted) { return item.name < wanted; });
    return it != items.end() && it->name == name ? &*it : nullptr;
}

// Sorts by name; of several with one name the last stays, as in the original.
template <typename Items>
void sort_by_name(Items& items) {
    std::reverse(items.begin(), items.end());
    std::stable_sort(items.begin(), items.end(),
                     [](const auto& a, const auto& b) { return a.name < b.name; });
    items.erase(std::unique(items.begin(), items.end(),
                            [](const auto& a, const auto& b) { return a.name == b.name; }),
                items.end());
    items.shrink_to_fit();
}

}  // namespace

std::optional<double> SmdebugValue::number() const {
    const std::size_t width = tensor::byte_size(dtype);
    if (width == 0 || bytes.size() != width) return std::nullopt;
    const auto as = [this]<typename T>(T value) {
        std::memcpy(&value, bytes.data(), sizeof(T));
        return value;
    };
    switch (dtype) {
        case DType::kFloat64: return as(double{});
        case DType::kFloat32: return static_cast<double>(as(float{}));
        case DType::kFloat16: return static_cast<double>(tensor::half_to_float(as(std::uint16_t{})));
        case DType::kBFloat16: return static_cast<double>(tensor::bfloat16_to_float(as(std::uint16_t{})));
        case DType::kInt64: return static_cast<double>(as(std::int64_t{}));
        case DType::kInt32: return static_cast<double>(as(std::int32_t{}));
        case DType::kInt16: return static_cast<double>(as(std::int16_t{}));
        case DType::kInt8: return static_cast<double>(as(std::int8_t{}));
        case DType::kUInt64: return static_cast<double>(as(std::uint64_t{}));
        case DType::kUInt32: return static_cast<double>(as(std::uint32_t{}));
        case DType::kUInt16: return static_cast<double>(as(std::uint16_t{}));
        case DType::kUInt8:
        case DType::kBool: return static_cast<double>(as(std::uint8_t{}));
        default: return std::nullopt;
    }
}

class SmdebugRun::Impl {
  public:
    Impl(std::string root, storage::FileSystem& files) : files_(files), root_(std::move(root)) {}

    Result<bool> refresh();
    Result<SmdebugValue> load(const std::string& worker, std::uint64_t global_step, std::string_view name);
    void add_damage(Damage damage);

    [[nodiscard]] const Step* find_step(const std::string& worker, std::uint64_t global_step) const {
        const auto found = workers_.find(worker);
        if (found == workers_.end()) return nullptr;
        const auto step = found->second.steps.find(global_step);
        return step == found->second.steps.end() ? nullptr : &step->second;
    }
    [[nodiscard]] std::optional<NameId> find_id(std::string_view name) const {
        const auto found = ids_.find(name);
        return found == ids_.end() ? std::nullopt : std::optional(found->second);
    }
    [[nodiscard]] std::string event_file(const std::string& worker, const Step& step) const {
        return step.event_file.empty() ? format::smdebug_event_file(step.place.global_step, worker)
                                       : step.event_file;
    }

    storage::FileSystem& files_;
    const std::string root_;
    bool is_complete_ = false;
    std::map<std::string, Worker> workers_;
    std::vector<Name> names_;
    std::unordered_map<std::string, NameId, TextHash, std::equal_to<>> ids_;
    std::vector<format::SmdebugCollection> collections_;
    std::uint64_t expected_workers_ = 0;
    std::vector<Damage> damage_;

  private:
    NameId intern(std::string_view text);
    void rebuild_damage();
    Status refresh_collections(bool& is_new);
    Status read_index(const std::string& path, const format::SmdebugIndexName& name, bool& is_new);
    void take_step(const format::SmdebugIndexName& name, format::SmdebugIndex index);

    std::string collections_from_;          // the file that `collections_` came from
    std::map<std::string, Damage> unread_;  // index and collections files: tried again at each refresh
    std::vector<Damage> met_;               // what readers of values met
    std::set<std::pair<std::string, std::uint64_t>> met_places_;
    std::uint64_t left_out_ = 0;

    // The event file that was read from last.
    std::unique_ptr<storage::ReadFile> open_file_;
    std::string open_path_;
};

NameId SmdebugRun::Impl::intern(std::string_view text) {
    if (const auto found = find_id(text)) return *found;
    const auto id = static_cast<NameId>(names_.size());
    ids_.emplace(std::string(text), id);
    names_.push_back({std::string(text), id, {}, {}});
    const auto reduction = format::parse_smdebug_reduction(text);
    if (reduction && !format::parse_smdebug_reduction(reduction->tensor)) {  // of a tensor, not of another
        const NameId tensor = intern(reduction->tensor);
        names_[id].tensor = tensor;
        names_[id].reduction = std::string(reduction->reduction);
        names_[tensor].reductions.push_back(id);
    }
    return id;
}

void SmdebugRun::Impl::rebuild_damage() {
    damage_.clear();
    for (const auto& [path, damage] : unread_) damage_.push_back(damage);
    damage_.insert(damage_.end(), met_.begin(), met_.end());
    if (left_out_ != 0)
        damage_.push_back({root_, 0, 0, base::format("{} more places are damaged", left_out_), false});
}

void SmdebugRun::Impl::add_damage(Damage damage) {
    if (met_.size() >= kMostDamage) ++left_out_;
    else if (met_places_.emplace(damage.file, damage.offset).second) met_.push_back(std::move(damage));
    else return;
    rebuild_damage();
}

void SmdebugRun::Impl::take_step(const format::SmdebugIndexName& name, format::SmdebugIndex index) {
    Step step;
    step.place = {name.global_step, index.mode, index.mode_step};
    if (!index.event_file.empty() &&
        index.event_file != format::smdebug_event_file(name.global_step, name.worker))
        step.event_file = std::move(index.event_file);
    step.entries.reserve(index.tensors.size());
    for (const format::SmdebugTensorEntry& entry : index.tensors)
        step.entries.push_back({entry.offset, intern(entry.tensor), static_cast<std::uint32_t>(entry.bytes)});
    for (format::SmdebugShapeEntry& entry : index.shapes)
        step.shapes.push_back({intern(entry.tensor), std::move(entry.shape)});
    sort_by_name(step.entries);
    sort_by_name(step.shapes);
    workers_[name.worker].steps.emplace(name.global_step, std::move(step));
}

Status SmdebugRun::Impl::read_index(const std::string& path, const format::SmdebugIndexName& name,
                                    bool& is_new) {
    const auto bytes = storage::read_whole(files_, root_ + "/" + path, kMostIndexBytes);
    if (!bytes) {
        if (bytes.status().code() != Code::kNotFound)
            unread_[path] = {path, 0, 0, bytes.status().message(), false};
        return Status::ok();
    }
    auto index = format::decode_smdebug_index(text_of(*bytes));
    if (!index) {
        unread_[path] = {path, 0, bytes->size(), index.status().message(), false};
        return Status::ok();
    }
    if (names_.size() + index->tensors.size() * 2 + index->shapes.size() >
        std::numeric_limits<NameId>::max() / 2)
        return {Code::kResourceExhausted, root_ + ": has too many names of tensors"};
    unread_.erase(path);
    take_step(name, std::move(*index));
    is_new = true;
    return Status::ok();
}

Status SmdebugRun::Impl::refresh_collections(bool& is_new) {
    const std::string folder(format::kSmdebugCollectionsDirectory);
    const auto entries = files_.list(root_ + "/" + folder);
    if (!entries) return entries.status().code() == Code::kNotFound ? Status::ok() : entries.status();
    bool is_first = true;
    for (const storage::DirectoryEntry& entry : *entries) {
        const auto worker = format::parse_smdebug_collections_name(entry.name);
        if (!worker || !entry.is_regular) continue;
        if (workers_.try_emplace(*worker).second) is_new = true;
        if (!std::exchange(is_first, false)) continue;
        const std::string path = folder + "/" + entry.name;
        if (path == collections_from_) continue;
        const auto bytes = storage::read_whole(files_, root_ + "/" + path, kMostIndexBytes);
        auto read = bytes ? format::decode_smdebug_collections(text_of(*bytes))
                          : Result<format::SmdebugCollections>(bytes.status());
        if (!read) {
            unread_[path] = {path, 0, 0, read.status().message(), false};
            is_first = true;  // the next one may be whole
            continue;
        }
        unread_.erase(path);
        collections_ = std::move(read->collections);
        expected_workers_ = read->workers;
        collections_from_ = path;
        is_new = true;
    }
    return Status::ok();
}

Result<bool> SmdebugRun::Impl::refresh() {
    bool is_new = false;
    // Looked for first: what is listed after it was there is all.
    const bool has_ended = files_.exists(root_ + "/" + std::string(format::kSmdebugEndMarker));
    TRAINDBG_RETURN_IF_ERROR(refresh_collections(is_new));
    const std::string folder(format::kSmdebugIndexDirectory);
    const auto groups = files_.list(root_ + "/" + folder);
    if (!groups && groups.status().code() != Code::kNotFound) return groups.status();
    if (groups) {
        for (const storage::DirectoryEntry& group : *groups) {
            if (!group.is_directory) continue;
            const std::string directory = folder + "/" + group.name;
            const auto entries = files_.list(root_ + "/" + directory);
            if (!entries) {
                unread_[directory] = {directory, 0, 0, entries.status().message(), false};
                continue;
            }
            unread_.erase(directory);
            for (const storage::DirectoryEntry& entry : *entries) {
                if (!entry.is_regular) continue;
                const auto name = format::parse_smdebug_index_name(entry.name);
                if (!name || find_step(name->worker, name->global_step) != nullptr) continue;
                TRAINDBG_RETURN_IF_ERROR(read_index(directory + "/" + entry.name, *name, is_new));
            }
        }
    }
    if (has_ended != is_complete_) is_new = true;
    is_complete_ = has_ended;
    rebuild_damage();
    return is_new;
}

Result<SmdebugValue> SmdebugRun::Impl::load(const std::string& worker, std::uint64_t global_step,
                                            std::string_view name) {
    const Step* step = find_step(worker, global_step);
    const std::optional<NameId> id = find_id(name);
    const Entry* entry = step != nullptr && id ? find_name(step->entries, *id) : nullptr;
    if (entry == nullptr)
        return Status(Code::kNotFound,
                      base::format("{}: {} saved no such value at step {}", base::printable(name),
                                   base::printable(worker), global_step));
    const std::string path = event_file(worker, *step);
    const auto damaged = [&](const std::string& what) {
        add_damage({path, entry->offset, entry->bytes, what, false});
        return Status(Code::kDataLoss,
                      base::format("{}: {}: {}", base::printable(path), base::printable(name), what));
    };
    if (path != open_path_ || open_file_ == nullptr) {
        open_path_.clear();
        auto opened = files_.open(root_ + "/" + path);
        if (!opened) {
            const bool is_missing = opened.status().code() == Code::kNotFound;
            const std::string what = is_missing ? "the event file is missing" : opened.status().message();
            add_damage({path, 0, 0, what, false});
            return Status(Code::kDataLoss, base::format("{}: {}", base::printable(path), what));
        }
        open_file_ = std::move(*opened);
        open_path_ = path;
    }
    // No memory is taken for what an index only says.
    TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t size, open_file_->size());
    if (entry->offset + entry->bytes > size) return damaged("the event file ends before it");
    const auto bytes = open_file_->read_at(entry->offset, entry->bytes);
    if (!bytes) return bytes.status();
    if (bytes->size() != entry->bytes) return damaged("the event file ends before it");
    const auto record = format::parse_record(*bytes, format::RecordCheck::kChecksumOrConstant);
    if (!record) return damaged(record.status().message());
    const auto event = format::decode_tf_event(record->payload);
    if (!event) return damaged(event.status().message());
    if (event->values.size() != 1 || event->values[0].tag != name || !event->values[0].tensor)
        return damaged("its record holds something else");
    const format::TfTensor& tensor = *event->values[0].tensor;
    SmdebugValue value;
    value.wall_seconds = event->wall_time;
    value.shape = tensor.shape;
    if (!tensor.strings.empty() || tensor.dtype == format::kTfString) {
        for (const std::string_view text : tensor.strings) value.texts.emplace_back(text);
        return value;
    }
    ByteBuffer own;
    const auto values = format::tensor_values(tensor, own);
    if (!values) {
        if (values.status().code() == Code::kDataLoss) return damaged(values.status().message());
        return Status(values.status().code(),
                      base::format("{}: {}", base::printable(name), values.status().message()));
    }
    value.dtype = format::dtype_of_tf(tensor.dtype);
    if (own.empty()) value.bytes.assign(values->begin(), values->end());
    else value.bytes = std::move(own);
    return value;
}

SmdebugRun::SmdebugRun(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
SmdebugRun::~SmdebugRun() = default;

bool SmdebugRun::is_one(const std::string& path, storage::FileSystem& files) {
    if (files.exists(path + "/RUN.json")) return false;
    return files.exists(path + "/" + std::string(format::kSmdebugCollectionsDirectory)) ||
           (files.exists(path + "/" + std::string(format::kSmdebugIndexDirectory)) &&
            files.exists(path + "/events"));
}

Result<std::unique_ptr<SmdebugRun>> SmdebugRun::open(const std::string& path, storage::FileSystem& files) {
    if (!is_one(path, files)) {
        return Status(Code::kNotFound,
                      base::format("{}: not a run of the SageMaker Debugger client (it holds no "
                                   "collections and no index); give the directory that was its out_dir",
                                   base::printable(path)));
    }
    auto impl = std::make_unique<Impl>(path, files);
    if (const auto refreshed = impl->refresh(); !refreshed) return refreshed.status();
    return std::unique_ptr<SmdebugRun>(new SmdebugRun(std::move(impl)));
}

const std::string& SmdebugRun::path() const noexcept { return impl_->root_; }
bool SmdebugRun::is_complete() const noexcept { return impl_->is_complete_; }
const std::vector<Damage>& SmdebugRun::damage() const noexcept { return impl_->damage_; }
Result<bool> SmdebugRun::refresh() { return impl_->refresh(); }

std::vector<std::string> SmdebugRun::workers() const {
    std::vector<std::string> names;
    for (const auto& [name, worker] : impl_->workers_) names.push_back(name);
    return names;
}

std::uint64_t SmdebugRun::expected_workers() const noexcept { return impl_->expected_workers_; }

std::vector<std::string> SmdebugRun::tensor_names() const {
    std::vector<std::string> names;
    for (const Name& name : impl_->names_)
        if (name.reduction.empty()) names.push_back(name.text);
    std::sort(names.begin(), names.end());
    return names;
}

std::vector<model::Mode> SmdebugRun::modes() const {
    std::set<model::Mode> modes;
    for (const auto& [name, worker] : impl_->workers_)
        for (const auto& [number, step] : worker.steps) modes.insert(step.place.mode);
    modes.erase(model::Mode::kGlobal);
    return {modes.begin(), modes.end()};
}

std::vector<SmdebugStep> SmdebugRun::steps() const {
    std::map<std::uint64_t, SmdebugStep> steps;
    for (const auto& [name, worker] : impl_->workers_)
        for (const auto& [number, step] : worker.steps) steps.emplace(number, step.place);
    std::vector<SmdebugStep> out;
    for (const auto& [number, place] : steps) out.push_back(place);
    return out;
}

std::vector<SmdebugStep> SmdebugRun::steps_of(const std::string& worker, std::uint64_t first,
                                              std::size_t most) const {
    std::vector<SmdebugStep> out;
    const auto found = impl_->workers_.find(worker);
    if (found == impl_->workers_.end()) return out;
    const auto& steps = found->second.steps;
    for (auto it = steps.lower_bound(first); it != steps.end() && out.size() < most; ++it)
        out.push_back(it->second.place);
    return out;
}

const std::vector<format::SmdebugCollection>& SmdebugRun::collections() const noexcept {
    return impl_->collections_;
}

std::vector<std::string> SmdebugRun::names_of(const format::SmdebugCollection& collection) const {
    std::vector<NamePattern> patterns;
    for (const std::string& text : collection.include_regex)
        if (auto pattern = NamePattern::make(text)) patterns.push_back(std::move(*pattern));
    std::set<std::string> explicit_names(collection.tensor_names.begin(), collection.tensor_names.end());
    std::vector<std::string> names;
    for (std::string& name : tensor_names()) {
        if (explicit_names.contains(name) ||
            std::any_of(patterns.begin(), patterns.end(),
                        [&](const NamePattern& pattern) { return pattern.matches(name); }))
            names.push_back(std::move(name));
    }
    return names;
}

std::vector<SmdebugSample> SmdebugRun::samples(const std::string& worker, std::uint64_t global_step) const {
    std::vector<SmdebugSample> out;
    const Step* step = impl_->find_step(worker, global_step);
    if (step == nullptr) return out;
    std::vector<const Entry*> in_order;
    for (const Entry& entry : step->entries) in_order.push_back(&entry);
    std::sort(in_order.begin(), in_order.end(),
              [](const Entry* a, const Entry* b) { return a->offset < b->offset; });
    std::unordered_map<NameId, std::size_t> places;
    const auto sample_of = [&](NameId id) -> SmdebugSample& {
        const auto [place, is_new] = places.emplace(impl_->names_[id].tensor, out.size());
        if (is_new) out.push_back({impl_->names_[impl_->names_[id].tensor].text, false, nullptr, {}});
        return out[place->second];
    };
    for (const Entry* entry : in_order) {
        SmdebugSample& sample = sample_of(entry->name);
        const Name& name = impl_->names_[entry->name];
        if (name.reduction.empty()) sample.has_value = true;
        else sample.reductions.push_back(name.reduction);
    }
    for (const Shape& shape : step->shapes) sample_of(shape.name).shape = &shape.extents;
    return out;
}

std::vector<std::uint64_t> SmdebugRun::steps_with(const std::string& worker, std::string_view name) const {
    std::vector<std::uint64_t> out;
    const auto found = impl_->workers_.find(worker);
    const std::optional<NameId> id = impl_->find_id(name);
    if (found == impl_->workers_.end() || !id) return out;
    for (const auto& [number, step] : found->second.steps) {
        bool is_here = find_name(step.entries, *id) != nullptr || find_name(step.shapes, *id) != nullptr;
        for (const NameId reduction : impl_->names_[*id].reductions)
            is_here = is_here || find_name(step.entries, reduction) != nullptr;
        if (is_here) out.push_back(number);
    }
    return out;
}

Result<SmdebugValue> SmdebugRun::value(const std::string& worker, std::uint64_t global_step,
                                       std::string_view name) {
    return impl_->load(worker, global_step, name);
}

Result<SmdebugValue> SmdebugRun::reduction(const std::string& worker, std::uint64_t global_step,
                                           std::string_view name, std::string_view reduction) {
    return impl_->load(worker, global_step, format::smdebug_reduction_name(reduction, name));
}

Result<std::vector<std::int64_t>> SmdebugRun::shape(const std::string& worker, std::uint64_t global_step,
                                                    std::string_view name) {
    const Step* step = impl_->find_step(worker, global_step);
    const std::optional<NameId> id = impl_->find_id(name);
    if (step != nullptr && id)
        if (const Shape* shape = find_name(step->shapes, *id)) return shape->extents;
    TRAINDBG_ASSIGN_OR_RETURN(SmdebugValue whole, value(worker, global_step, name));
    return std::move(whole.shape);
}

}  // namespace traindbg::compat
