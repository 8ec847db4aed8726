#include "traindbg/compat/smdebug_export.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/compat/smdebug_statistics.h"
#include "traindbg/format/smdebug_collections.h"
#include "traindbg/format/smdebug_index.h"
#include "traindbg/format/tf_event.h"
#include "traindbg/format/tfrecord.h"

namespace traindbg::compat {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::ByteWriter;
using base::Code;
using base::Result;
using base::Status;
using tensor::DType;

using StepKey = std::pair<model::Mode, model::StepIndex>;

// As a collection's configuration spells them, in the order of `reductions_of`.
constexpr std::array<std::string_view, 10> kReductionWords = {
    "min", "max", "mean", "std", "variance", "sum", "l1_norm", "l2_norm", "abs_mean", "abs_max"};

constexpr std::string_view kProduct = "prod";  // of tensors with a digest

// ---- element types

template <typename To, typename From, typename Convert>
ByteBuffer converted(ByteSpan bytes, const Convert& convert) {
    ByteBuffer out(bytes.size() / sizeof(From) * sizeof(To));
    for (std::size_t i = 0; i < bytes.size() / sizeof(From); ++i) {
        From from{};
        std::memcpy(&from, bytes.data() + i * sizeof(From), sizeof(From));
        const To to = convert(from);
        std::memcpy(out.data() + i * sizeof(To), &to, sizeof(To));
    }
    return out;
}

template <typename To, typename From>
ByteBuffer cast(ByteSpan bytes) {
    return converted<To, From>(bytes, [](From value) { return static_cast<To>(value); });
}

bool fits_int64(ByteSpan bytes) {
    for (std::size_t i = 0; i + 8 <= bytes.size(); i += 8) {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes.data() + i, 8);
        if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return false;
    }
    return true;
}

// The type that the original's reader gives these values in; nothing where it is their own. 64-bit numbers
// without a sign that need all bits stay as they are: there is no wider type.
std::optional<std::pair<DType, ByteBuffer>> widened(DType dtype, ByteSpan bytes) {
    switch (dtype) {
        case DType::kBFloat16:
            return std::pair(DType::kFloat32,
                             converted<float, std::uint16_t>(bytes, tensor::bfloat16_to_float));
        case DType::kFloat8E4M3:
        case DType::kFloat8E5M2:
        case DType::kFloat8E4M3Fnuz:
        case DType::kFloat8E5M2Fnuz:
        case DType::kFloat8E8M0:
            return std::pair(DType::kFloat32,
                             converted<float, std::uint8_t>(bytes, [dtype](std::uint8_t bits) {
                                 return tensor::float8_to_float(dtype, bits);
                             }));
        case DType::kInt8: return std::pair(DType::kInt32, cast<std::int32_t, std::int8_t>(bytes));
        case DType::kInt16: return std::pair(DType::kInt32, cast<std::int32_t, std::int16_t>(bytes));
        case DType::kUInt16: return std::pair(DType::kInt32, cast<std::int32_t, std::uint16_t>(bytes));
        case DType::kUInt32: return std::pair(DType::kInt64, cast<std::int64_t, std::uint32_t>(bytes));
        case DType::kUInt64:
            if (!fits_int64(bytes)) return std::nullopt;
            return std::pair(DType::kInt64, ByteBuffer(bytes.begin(), bytes.end()));
        case DType::kComplex64:  // two floats each
            return std::pair(DType::kComplex128, cast<double, float>(bytes));
        default: return std::nullopt;
    }
}

// ---- steps over all modes

// For every step of every mode its number over all modes. Modes count their own steps, recorded or not: a
// step's number is what all modes together have counted before it.
std::map<StepKey, std::uint64_t> global_steps(const std::map<StepKey, std::uint64_t>& first_sequence) {
    std::vector<std::pair<std::uint64_t, StepKey>> in_order;
    for (const auto& [key, sequence] : first_sequence) in_order.emplace_back(sequence, key);
    std::sort(in_order.begin(), in_order.end());
    std::map<StepKey, std::uint64_t> numbers;
    std::array<std::uint64_t, model::kModeCount> counted{};
    std::uint64_t next = 0;
    for (const auto& [sequence, key] : in_order) {
        std::uint64_t number = key.second;
        for (std::size_t mode = 0; mode < counted.size(); ++mode)
            if (mode != static_cast<std::size_t>(key.first)) number += counted[mode];
        number = std::max(number, next);
        std::uint64_t& own = counted[static_cast<std::size_t>(key.first)];
        own = std::max(own, key.second + 1);
        numbers.emplace(key, number);
        next = number + 1;
    }
    return numbers;
}

// ---- one step

class StepWriter {
  public:
    StepWriter(const model::StepView& view, std::uint64_t global_step)
        : view_(view),
          global_step_(global_step),
          mode_step_(std::to_string(view.step())),
          mode_(std::to_string(static_cast<int>(view.mode()))) {
        index_.mode = view.mode();
        index_.mode_step = view.step();
    }

    void add(const std::string& name, DType dtype, const std::vector<std::int64_t>& shape, ByteSpan content) {
        std::vector<std::string> dimension_names;
        for (const std::int64_t extent : shape)
            dimension_names.push_back(base::format("{}_{}", name, extent));
        format::TfEvent event;
        event.wall_time = static_cast<double>(view_.record->wall_nanos) / 1e9;
        event.step = static_cast<std::int64_t>(global_step_);
        format::TfSummaryValue& value = event.values.emplace_back();
        value.tag = name;
        value.metadata = format::TfMetadata{{{"mode_step", mode_step_}, {"mode", mode_}}, {}, {}, {}};
        format::TfTensor& tensor = value.tensor.emplace();
        tensor.dtype = format::tf_of_dtype(dtype);
        tensor.shape = shape;
        tensor.dimension_names.assign(dimension_names.begin(), dimension_names.end());
        tensor.content = content;
        payload_.clear();
        format::encode_tf_event(payload_, event);
        const std::size_t begin = events_.size();
        format::append_record(events_, payload_.bytes(), format::RecordFooter::kConstant);
        index_.tensors.push_back({name, begin, events_.size() - begin});
    }
    void add_number(const std::string& name, double number) {
        add(name, DType::kFloat64, {}, std::as_bytes(std::span(&number, 1)));
    }
    void add_shape(const std::string& name, const std::vector<std::int64_t>& shape) {
        index_.shapes.push_back({name, name, shape});
    }

    [[nodiscard]] bool empty() const { return index_.tensors.empty() && index_.shapes.empty(); }
    [[nodiscard]] std::size_t records() const { return index_.tensors.size(); }
    [[nodiscard]] const ByteBuffer& events() const { return events_.bytes(); }
    [[nodiscard]] format::SmdebugIndex& index() { return index_; }

  private:
    const model::StepView& view_;
    std::uint64_t global_step_;
    std::string mode_step_;
    std::string mode_;
    ByteWriter payload_;
    ByteWriter events_;
    format::SmdebugIndex index_;
};

class Exporter {
  public:
    Exporter(read::Run& run, const SmdebugExport& job, storage::FileSystem& files)
        : run_(run), job_(job), files_(files) {}

    Result<SmdebugExported> write();

  private:
    bool selects(const model::StepView& view) const {
        return !job_.selects_step || job_.selects_step(view.worker, view.mode(), view.step());
    }
    bool selects(const model::TensorInfo& info) const {
        return !job_.selects_tensor || job_.selects_tensor(info);
    }
    Status number_steps();
    Status write_step(const model::StepView& view);
    void fill(const model::StepView& view, StepWriter& out);
    Status write_collections();
    Status put(const std::string& path, ByteSpan bytes);
    static std::string worker_name(model::WorkerId worker) { return base::format("worker_{}", worker); }
    std::string note(const model::TensorInfo& info);

    read::Run& run_;
    const SmdebugExport& job_;
    storage::FileSystem& files_;
    std::map<StepKey, std::uint64_t> global_steps_;
    std::uint64_t all_steps_ = 0;
    std::set<std::string> directories_;
    std::set<std::pair<model::WorkerId, std::uint64_t>> written_;  // global steps
    std::map<std::string, std::set<std::string>> collections_;     // their tensors
    bool has_products_ = false;
    SmdebugExported done_;
};

// A new file. Nobody reads the directory before its end marker is there, so nothing is synced.
Status Exporter::put(const std::string& path, ByteSpan bytes) {
    const std::string full = job_.to + "/" + path;
    const std::string directory = full.substr(0, full.rfind('/'));
    if (directories_.insert(directory).second) TRAINDBG_RETURN_IF_ERROR(files_.create_directories(directory));
    TRAINDBG_ASSIGN_OR_RETURN(const auto file, files_.create(full));
    done_.bytes += bytes.size();
    ++done_.files;
    return file->append(bytes);
}

Status Exporter::number_steps() {
    std::map<StepKey, std::uint64_t> first_sequence;
    TRAINDBG_RETURN_IF_ERROR(run_.for_each_step([&](const model::StepView& view) {
        if (!selects(view)) return true;
        ++all_steps_;
        const auto [place, is_new] =
            first_sequence.emplace(StepKey(view.mode(), view.step()), view.record->sequence);
        if (!is_new) place->second = std::min(place->second, view.record->sequence);
        return true;
    }));
    global_steps_ = global_steps(first_sequence);
    return Status::ok();
}

// The name under which a tensor is written: the client refuses text that is not UTF-8.
std::string Exporter::note(const model::TensorInfo& info) {
    std::string name = base::printable(info.name);
    collections_[std::string(model::collection_of(info.role))].insert(name);
    for (const std::string& collection : info.collections) collections_[collection].insert(name);
    return name;
}

void Exporter::fill(const model::StepView& view, StepWriter& out) {
    for (const model::ScalarSample& sample : view.record->scalars) {
        const model::TensorInfo& info = view.info(sample.tensor);
        if (job_.with_scalars && selects(info)) out.add_number(note(info), sample.value);
    }
    std::set<model::TensorId> whole;
    for (const model::RawTensor& raw : view.record->raw) {
        const model::TensorInfo& info = view.info(raw.tensor);
        if (!job_.with_values || !selects(info)) continue;
        if (raw.dtype == DType::kUnknown || raw.bytes.empty()) {
            ++done_.left_out;
            continue;
        }
        whole.insert(raw.tensor);
        const std::string name = note(info);
        if (const auto wide = widened(raw.dtype, raw.bytes)) {
            ++done_.widened;
            out.add(name, wide->first, raw.shape, wide->second);
        } else {
            out.add(name, raw.dtype, raw.shape, raw.bytes);
        }
    }
    if (!job_.with_reductions) return;
    std::map<model::TensorId, const model::Digest*> digests;
    if (!job_.selects_reduction || job_.selects_reduction(kProduct))
        for (const model::DigestSample& sample : view.record->digests)
            digests.emplace(sample.tensor, &sample.digest);
    for (const model::TensorSample& sample : view.record->tensors) {
        const model::TensorInfo& info = view.info(sample.tensor);
        if (!selects(info)) continue;
        const std::string name = note(info);
        for (const auto& [reduction, value] : reductions_of(sample.statistics))
            if (!job_.selects_reduction || job_.selects_reduction(reduction))
                out.add_number(format::smdebug_reduction_name(reduction, name), value);
        if (const auto found = digests.find(sample.tensor); found != digests.end()) {
            has_products_ = true;
            out.add_number(format::smdebug_reduction_name(kProduct, name),
                           product_of(*found->second, sample.statistics));
        }
        // A shape beside a value would hide the value from the client.
        std::uint64_t count = 1;
        for (const std::int64_t extent : info.shape) count *= static_cast<std::uint64_t>(extent);
        if (!whole.contains(sample.tensor) && count == sample.statistics.count)
            out.add_shape(name, info.shape);
    }
}

Status Exporter::write_step(const model::StepView& view) {
    const std::uint64_t global_step = global_steps_.at({view.mode(), view.step()});
    StepWriter out(view, global_step);
    fill(view, out);
    if (!out.empty()) {
        const std::string worker = worker_name(view.worker);
        if (out.records() != 0) {
            out.index().event_file = format::smdebug_event_file(global_step, worker);
            TRAINDBG_RETURN_IF_ERROR(put(out.index().event_file, out.events()));
        }
        const std::string index = format::encode_smdebug_index(out.index());
        TRAINDBG_RETURN_IF_ERROR(put(format::smdebug_index_file(global_step, worker), base::as_bytes(index)));
        ++done_.steps;
        done_.records += out.records();
    }
    return Status::ok();
}

Status Exporter::write_collections() {
    format::SmdebugCollections all;
    all.workers = std::max<std::uint64_t>(done_.workers, 1);
    format::SmdebugReductionConfig config;
    config.save_raw_tensor = job_.with_values;
    if (job_.with_reductions) config.reductions.assign(kReductionWords.begin(), kReductionWords.end());
    if (has_products_) config.reductions.emplace_back(kProduct);
    for (const auto& [name, tensors] : collections_)
        all.collections.push_back({name, {}, {tensors.begin(), tensors.end()}, config});
    const std::string text = format::encode_smdebug_collections(all);
    for (const model::WorkerId worker : run_.workers())
        TRAINDBG_RETURN_IF_ERROR(
            put(format::smdebug_collections_file(worker_name(worker)), base::as_bytes(text)));
    return Status::ok();
}

Result<SmdebugExported> Exporter::write() {
    if (files_.exists(job_.to)) {
        const auto entries = files_.list(job_.to);
        if (!entries || !entries->empty())
            return Status(Code::kAlreadyExists,
                          base::format("{}: is there already and not empty; name a new directory",
                                       base::printable(job_.to)));
    }
    done_.workers = run_.workers().size();
    TRAINDBG_RETURN_IF_ERROR(number_steps());
    Status problem;
    std::uint64_t seen = 0;
    TRAINDBG_RETURN_IF_ERROR(run_.for_each_step(
        [&](const model::StepView& view) {
            if (!selects(view)) return true;
            // A run that grows has steps that were not there when they were numbered.
            const auto number = global_steps_.find({view.mode(), view.step()});
            if (number == global_steps_.end()) return true;
            if (!written_.emplace(view.worker, number->second).second) {
                ++done_.repeated;  // a training that was resumed: the first stays
                return true;
            }
            problem = write_step(view);
            if (problem.is_ok() && job_.progress) job_.progress(++seen, std::max(all_steps_, seen));
            return problem.is_ok();
        },
        job_.with_values));
    TRAINDBG_RETURN_IF_ERROR(problem);
    TRAINDBG_RETURN_IF_ERROR(write_collections());
    TRAINDBG_RETURN_IF_ERROR(put(std::string(format::kSmdebugEndMarker), {}));
    return done_;
}

}  // namespace

Result<SmdebugExported> export_smdebug(read::Run& run, const SmdebugExport& job, storage::FileSystem& files) {
    return Exporter(run, job, files).write();
}

}  // namespace traindbg::compat
