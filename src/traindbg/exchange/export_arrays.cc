// Whole tensors as .npz or safetensors, and series of numbers as .npz.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/exchange/array_names.h"
#include "traindbg/exchange/export_format.h"
#include "traindbg/exchange/output_file.h"
#include "traindbg/exchange/zip_writer.h"
#include "traindbg/model/json.h"
#include "traindbg/read/run.h"
#include "traindbg/tables/table_reader.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::exchange {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using model::RawTensor;
using model::StepView;
using tensor::DType;

// Series are held in memory until the archive is written.
constexpr std::uint64_t kMostSeriesBytes = std::uint64_t{1} << 30;
// Other readers of safetensors refuse a longer header.
constexpr std::size_t kMostHeaderBytes = 100'000'000;

// Calls `visit` for every whole tensor of the selection, with its worker, mode and step.
Status each_whole_tensor(read::Run& run, const ExportRequest& request, std::uint64_t done_before,
                         std::uint64_t total,
                         const std::function<Status(const StepView& view, const RawTensor& raw)>& visit) {
    tables::TensorFilter filter(request.selection);
    Status problem;
    std::uint64_t done = done_before;
    const Status read = run.for_each_step(
        [&](const StepView& view) {
            request.tell(++done, total);
            if (!request.selection.wants(view.worker) || !request.selection.wants(view.mode(), view.step()))
                return true;
            for (const RawTensor& raw : view.record->raw) {
                if (raw.tensor >= view.tensors->size()) continue;
                if (!filter.wants(view.worker, view.info(raw.tensor))) continue;
                problem = visit(view, raw);
                if (!problem.is_ok()) return false;
            }
            return true;
        },
        true);
    return problem.is_ok() ? read : problem;
}

Status nothing_selected(const ExportRequest& request, const read::Run& run) {
    const std::vector<read::Damage>& damage = run.damage();
    const bool is_damaged =
        std::any_of(damage.begin(), damage.end(), [](const read::Damage& place) { return !place.tail; });
    return {
        Code::kNotFound,
        base::format("{}: no whole tensor {}fits the selection; record them with --raw COLLECTION, and see "
                     "traindbg show --tensors{}",
                     base::printable(request.run), is_damaged ? "that can be read " : "",
                     is_damaged ? "; the run is damaged: traindbg verify names it" : "")};
}

// ---- NumPy ----

// NumPy's word for a type that it has; empty for those that it does not have.
std::string_view numpy_descr(DType dtype) noexcept {
    switch (dtype) {
        case DType::kFloat64: return "<f8";
        case DType::kFloat32: return "<f4";
        case DType::kFloat16: return "<f2";
        case DType::kInt64: return "<i8";
        case DType::kInt32: return "<i4";
        case DType::kInt16: return "<i2";
        case DType::kInt8: return "|i1";
        case DType::kUInt64: return "<u8";
        case DType::kUInt32: return "<u4";
        case DType::kUInt16: return "<u2";
        case DType::kUInt8: return "|u1";
        case DType::kBool: return "|b1";
        case DType::kComplex64: return "<c8";
        case DType::kComplex128: return "<c16";
        case DType::kBFloat16:
        case DType::kFloat8E4M3:
        case DType::kFloat8E5M2:
        case DType::kFloat8E4M3Fnuz:
        case DType::kFloat8E5M2Fnuz:
        case DType::kFloat8E8M0:
        case DType::kUnknown: break;
    }
    return {};
}

// bfloat16 and float8, for which NumPy has no type, as the float32 of the same value.
ByteBuffer widened(const RawTensor& raw) {
    const std::size_t width = tensor::byte_size(raw.dtype);
    const std::size_t count = width == 0 ? 0 : raw.bytes.size() / width;
    ByteBuffer out(count * sizeof(float));
    for (std::size_t i = 0; i < count; ++i) {
        float value = 0;
        if (raw.dtype == DType::kBFloat16) {
            std::uint16_t bits = 0;
            std::memcpy(&bits, raw.bytes.data() + i * width, width);
            value = tensor::bfloat16_to_float(bits);
        } else {
            const auto bits = std::to_integer<std::uint8_t>(raw.bytes[i]);
            value = tensor::float8_to_float(raw.dtype, bits);
        }
        std::memcpy(out.data() + i * sizeof(float), &value, sizeof(float));
    }
    return out;
}

// The header of a .npy of version 1.0, padded so that the data begin at a multiple of 64.
std::string npy_header(std::string_view descr, const std::vector<std::int64_t>& shape) {
    std::string extents;
    for (const std::int64_t extent : shape) extents += base::format("{}, ", extent);
    if (shape.size() > 1) extents.resize(extents.size() - 2);
    else if (shape.size() == 1) extents.pop_back();  // "(3,)"
    std::string text =
        base::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, extents);
    constexpr std::size_t kBefore = 10;
    text.append(63 - (kBefore + text.size()) % 64, ' ');
    text += '\n';
    std::string out("\x93NUMPY\x01\x00", 8);
    out += static_cast<char>(text.size() & 0xFF);
    out += static_cast<char>(text.size() >> 8);
    return out + text;
}

template <typename T>
ByteSpan bytes_of(const std::vector<T>& values) {
    return std::as_bytes(std::span(values));
}

Result<std::uint64_t> add_whole_tensors(read::Run& run, const ExportRequest& request, ZipWriter& zip,
                                        UniqueNames& names, ExportResult& result) {
    const bool several = run.workers().size() > 1;
    std::uint64_t added = 0;
    std::uint64_t made_wide = 0;
    TRAINDBG_RETURN_IF_ERROR(each_whole_tensor(
        run, request, 0, run.totals().steps, [&](const StepView& view, const RawTensor& raw) {
            std::string_view descr = numpy_descr(raw.dtype);
            ByteBuffer wide;
            ByteSpan body = raw.bytes;
            if (descr.empty()) {
                if (raw.dtype == DType::kUnknown)
                    return Status(Code::kUnsupported,
                                  base::format("{}: its type is not known to this version; leave it out with "
                                               "--tensor",
                                               base::printable(view.info(raw.tensor).name)));
                wide = widened(raw);
                body = wide;
                descr = "<f4";
                ++made_wide;
            }
            const std::string name = names.take(
                base::format("{}{}/{}/{}", worker_prefix(view.worker, several), model::to_string(view.mode()),
                             view.step(), path_of(view.info(raw.tensor).name)));
            ++added;
            return zip.add(name + ".npy", base::as_bytes(npy_header(descr, raw.shape)), body);
        }));
    if (made_wide > 0)
        result.notes.push_back(base::format(
            "{} arrays of bfloat16 or float8 became float32: NumPy has no such types", made_wide));
    return added;
}

// The columns of one tensor in one mode of one worker.
struct Series {
    std::vector<std::uint64_t> steps;
    std::vector<std::vector<double>> reals;          // by column; empty for those of the other kind
    std::vector<std::vector<std::uint64_t>> wholes;  // likewise
};

Status add_series(const std::string& table, const ExportRequest& request, bool several, std::uint64_t total,
                  ZipWriter& zip, UniqueNames& names, ExportResult& result) {
    TRAINDBG_ASSIGN_OR_RETURN(const tables::TableKind kind, tables::parse_table(table));
    TRAINDBG_ASSIGN_OR_RETURN(
        const auto reader, tables::TableReader::open(request.run, kind, request.selection, *request.files));
    constexpr std::size_t kFirstValue = 5;  // worker, mode, step, wall_time, name
    const std::vector<tables::Field>& fields = reader->fields();
    const std::size_t columns = fields.size() - kFirstValue;
    // A count that may be missing is a float, so that it can be NaN.
    const auto is_whole = [&](std::size_t i) {
        const tables::Field& field = fields[kFirstValue + i];
        return field.type == tables::Type::kUInt64 && !field.nullable;
    };
    std::map<std::string, Series> all;
    std::uint64_t bytes = 0;
    while (true) {
        TRAINDBG_ASSIGN_OR_RETURN(const std::optional<tables::Batch> batch, reader->next());
        if (!batch) break;
        bytes += batch->rows * (columns + 1) * sizeof(std::uint64_t);
        if (bytes > kMostSeriesBytes)
            return Status(Code::kResourceExhausted,
                          base::format("{}: more than {} of series; take fewer with --name, --steps or "
                                       "--statistic, or export as parquet or csv",
                                       base::printable(request.run), base::human_bytes(kMostSeriesBytes)));
        for (std::size_t row = 0; row < batch->rows; ++row) {
            const auto& cells = batch->columns;
            const std::string key =
                base::format("{}{}/{}", worker_prefix(cells[0].at<std::uint32_t>(row), several),
                             cells[1].text_at(row), path_of(cells[4].text_at(row)));
            Series& series = all[key];
            series.reals.resize(columns);
            series.wholes.resize(columns);
            series.steps.push_back(cells[2].at<std::uint64_t>(row));
            for (std::size_t i = 0; i < columns; ++i) {
                const tables::Column& cell = cells[kFirstValue + i];
                if (is_whole(i)) series.wholes[i].push_back(cell.at<std::uint64_t>(row));
                else if (cell.is_null(row))
                    series.reals[i].push_back(std::numeric_limits<double>::quiet_NaN());
                else if (cell.type == tables::Type::kUInt64)
                    series.reals[i].push_back(static_cast<double>(cell.at<std::uint64_t>(row)));
                else series.reals[i].push_back(cell.at<double>(row));
            }
        }
        request.tell(reader->steps_read(), total);
    }
    result.add_damage(reader->damage());
    for (const auto& [key, series] : all) {
        const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(series.steps.size())};
        TRAINDBG_RETURN_IF_ERROR(zip.add(names.take(key + "/step") + ".npy",
                                         base::as_bytes(npy_header("<u8", shape)), bytes_of(series.steps)));
        for (std::size_t i = 0; i < columns; ++i) {
            const std::string name = names.take(base::format("{}/{}", key, fields[kFirstValue + i].name));
            TRAINDBG_RETURN_IF_ERROR(is_whole(i)
                                         ? zip.add(name + ".npy", base::as_bytes(npy_header("<u8", shape)),
                                                   bytes_of(series.wholes[i]))
                                         : zip.add(name + ".npy", base::as_bytes(npy_header("<f8", shape)),
                                                   bytes_of(series.reals[i])));
        }
    }
    return Status::ok();
}

// ---- safetensors ----

std::string_view safetensors_dtype(DType dtype) noexcept {
    switch (dtype) {
        case DType::kFloat64: return "F64";
        case DType::kFloat32: return "F32";
        case DType::kFloat16: return "F16";
        case DType::kBFloat16: return "BF16";
        case DType::kFloat8E4M3: return "F8_E4M3";
        case DType::kFloat8E5M2: return "F8_E5M2";
        case DType::kFloat8E4M3Fnuz: return "F8_E4M3FNUZ";
        case DType::kFloat8E5M2Fnuz: return "F8_E5M2FNUZ";
        case DType::kFloat8E8M0: return "F8_E8M0";
        case DType::kInt64: return "I64";
        case DType::kInt32: return "I32";
        case DType::kInt16: return "I16";
        case DType::kInt8: return "I8";
        case DType::kUInt64: return "U64";
        case DType::kUInt32: return "U32";
        case DType::kUInt16: return "U16";
        case DType::kUInt8: return "U8";
        case DType::kBool: return "BOOL";
        case DType::kComplex64: return "C64";
        case DType::kComplex128:
        case DType::kUnknown: break;
    }
    return {};
}

struct Slot {
    std::string path;  // within its step
    std::string step;  // "w1/train/100"
    DType dtype = DType::kUnknown;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes = 0;
};

}  // namespace

Result<ExportResult> export_npz(const ExportRequest& request) {
    TRAINDBG_ASSIGN_OR_RETURN(const auto run, read::Run::open(request.run, *request.files));
    TRAINDBG_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(request.to, request.overwrite));
    ZipWriter zip(file);
    UniqueNames names;
    ExportResult result;
    for (const std::string& table : request.tables) {
        if (table != kWholeTensors) {
            TRAINDBG_RETURN_IF_ERROR(add_series(table, request, run->workers().size() > 1,
                                                run->totals().steps, zip, names, result));
            continue;
        }
        TRAINDBG_ASSIGN_OR_RETURN(const std::uint64_t added,
                                  add_whole_tensors(*run, request, zip, names, result));
        if (added == 0 && request.tables.size() == 1) return nothing_selected(request, *run);
    }
    TRAINDBG_RETURN_IF_ERROR(zip.finish());
    TRAINDBG_RETURN_IF_ERROR(file.commit());
    result.items = zip.entries();
    result.bytes = file.size();
    result.files = 1;
    result.add_damage(run->damage());
    return result;
}

Result<ExportResult> export_safetensors(const ExportRequest& request) {
    TRAINDBG_ASSIGN_OR_RETURN(const auto run, read::Run::open(request.run, *request.files));
    TRAINDBG_ASSIGN_OR_RETURN(OutputFile file, OutputFile::create(request.to, request.overwrite));
    const bool several = run->workers().size() > 1;
    const std::uint64_t total = run->totals().steps * 2;  // the header comes first: two passes

    ExportResult result;
    std::vector<Slot> slots;
    std::set<std::string> steps;
    std::uint64_t left_out = 0;
    TRAINDBG_RETURN_IF_ERROR(
        each_whole_tensor(*run, request, 0, total, [&](const StepView& view, const RawTensor& raw) {
            if (safetensors_dtype(raw.dtype).empty()) {
                ++left_out;
                return Status::ok();
            }
            slots.push_back({path_of(view.info(raw.tensor).name),
                             base::format("{}{}/{}", worker_prefix(view.worker, several),
                                          model::to_string(view.mode()), view.step()),
                             raw.dtype, raw.shape, raw.bytes.size()});
            steps.insert(slots.back().step);
            return Status::ok();
        }));
    if (slots.empty()) return nothing_selected(request, *run);
    if (left_out > 0)
        result.notes.push_back(
            base::format("{} tensors of complex128 were left out: safetensors has no such type", left_out));

    // The tensors of one step have their own names: such a file can be loaded as weights.
    UniqueNames names;
    model::Json header = model::Json::object();
    header["__metadata__"] = {
        {"format", "pt"}, {"run", base::printable(run->meta().run_id)}, {"traindbg", base::version()}};
    if (steps.size() == 1) header["__metadata__"]["step"] = *steps.begin();
    std::uint64_t offset = 0;
    for (const Slot& slot : slots) {
        const std::string name =
            names.take(steps.size() == 1 ? slot.path : base::format("{}/{}", slot.step, slot.path));
        header[name] = {{"dtype", safetensors_dtype(slot.dtype)},
                        {"shape", slot.shape},
                        {"data_offsets", {offset, offset + slot.bytes}}};
        offset += slot.bytes;
    }
    std::string text = header.dump(-1, ' ', false, model::Json::error_handler_t::replace);
    text.append((8 - text.size() % 8) % 8, ' ');  // the data begin at a multiple of 8
    if (text.size() > kMostHeaderBytes)
        return Status(Code::kResourceExhausted,
                      base::format("{}: too many tensors for the header of one file; take fewer steps with "
                                   "--steps",
                                   base::printable(request.to)));
    const std::uint64_t length = text.size();
    TRAINDBG_RETURN_IF_ERROR(file.write(std::as_bytes(std::span(&length, 1))));
    TRAINDBG_RETURN_IF_ERROR(file.write(text));

    std::size_t next = 0;
    TRAINDBG_RETURN_IF_ERROR(
        each_whole_tensor(*run, request, total / 2, total, [&](const StepView&, const RawTensor& raw) {
            if (safetensors_dtype(raw.dtype).empty()) return Status::ok();
            if (next == slots.size() || slots[next].bytes != raw.bytes.size())
                return Status(Code::kUnavailable, base::format("{}: changed while it was read; try again",
                                                               base::printable(request.run)));
            ++next;
            return file.write(raw.bytes);
        }));
    if (next != slots.size())
        return Status(Code::kUnavailable,
                      base::format("{}: changed while it was read; try again", base::printable(request.run)));
    TRAINDBG_RETURN_IF_ERROR(file.commit());
    result.items = slots.size();
    result.bytes = file.size();
    result.files = 1;
    result.add_damage(run->damage());
    return result;
}

}  // namespace traindbg::exchange
