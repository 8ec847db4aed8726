#include "traindbg/format/smdebug_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/format/tf_event.h"
#include "traindbg/format/tfrecord.h"

namespace traindbg::format {
namespace {

using base::Code;
using base::Result;
using base::Status;
using nlohmann::json;

constexpr std::string_view kReductionPrefix = "smdebug/reductions/";
constexpr std::size_t kStepDigits = 12;
constexpr std::uint64_t kStepsPerIndexDirectory = 1000;

constexpr std::array<std::pair<model::Mode, std::string_view>, 4> kModes = {{
    {model::Mode::kTrain, "TRAIN"},
    {model::Mode::kEval, "EVAL"},
    {model::Mode::kPredict, "PREDICT"},
    {model::Mode::kGlobal, "GLOBAL"},
}};

Status damaged(std::string what) { return {Code::kDataLoss, std::move(what)}; }

const json* member(const json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto it = object.find(key);
    return it == object.end() || it->is_null() ? nullptr : &*it;
}

bool read_text(const json& object, const char* key, std::string& out) {
    const json* value = member(object, key);
    if (value == nullptr || !value->is_string()) return false;
    out = value->get_ref<const std::string&>();
    return true;
}

bool read_number(const json& object, const char* key, std::uint64_t& out) {
    const json* value = member(object, key);
    if (value == nullptr || !value->is_number_unsigned()) return false;
    out = value->get<std::uint64_t>();
    return true;
}

// Only what lies in the run itself is opened.
bool is_inside(std::string_view path) {
    if (path.empty() || path.front() == '/' || path.find('\0') != std::string_view::npos) return false;
    while (!path.empty()) {
        const std::size_t end = std::min(path.find('/'), path.size());
        if (path.substr(0, end) == "..") return false;
        path.remove_prefix(std::min(end + 1, path.size()));
    }
    return true;
}

bool read_shape(const json& value, std::vector<std::int64_t>& out) {
    if (!value.is_array() || value.size() > kMostTfRank) return false;
    for (const json& extent : value) {
        if (!extent.is_number_unsigned()) return false;
        const auto wide = extent.get<std::uint64_t>();
        if (wide > static_cast<std::uint64_t>(INT64_MAX)) return false;
        out.push_back(static_cast<std::int64_t>(wide));
    }
    return true;
}

// A JSON string with everything but ASCII escaped, as Python writes it.
std::string json_string(std::string_view text) {
    return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

std::optional<std::uint64_t> parse_digits(std::string_view text) noexcept {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

std::string padded(std::uint64_t number, int digits) { return base::format("{:0{}}", number, digits); }

}  // namespace

std::string_view smdebug_mode_name(model::Mode mode) noexcept {
    for (const auto& [known, name] : kModes)
        if (known == mode) return name;
    return "GLOBAL";
}

std::optional<model::Mode> parse_smdebug_mode(std::string_view name) noexcept {
    for (const auto& [mode, known] : kModes)
        if (known == name) return mode;
    return std::nullopt;
}

Result<SmdebugIndex> decode_smdebug_index(std::string_view text) {
    const json document = json::parse(text, nullptr, false);
    if (document.is_discarded()) return damaged("is not JSON");
    const json* meta = member(document, "meta");
    if (meta == nullptr) return damaged("has no 'meta'");
    SmdebugIndex out;
    std::string mode;
    if (!read_text(*meta, "mode", mode)) return damaged("has no mode");
    const std::optional<model::Mode> known = parse_smdebug_mode(mode);
    if (!known) return damaged("has an unknown mode");
    out.mode = *known;
    if (!read_number(*meta, "mode_step", out.mode_step)) return damaged("has no mode_step");
    if (member(*meta, "event_file_name") != nullptr) {
        if (!read_text(*meta, "event_file_name", out.event_file) || !is_inside(out.event_file))
            return damaged("names an event file outside of the run");
    }
    if (const json* tensors = member(document, "tensor_payload")) {
        if (!tensors->is_array()) return damaged("has a 'tensor_payload' that is no list");
        out.tensors.reserve(tensors->size());
        for (const json& item : *tensors) {
            SmdebugTensorEntry& entry = out.tensors.emplace_back();
            if (!read_text(item, "tensorname", entry.tensor) ||
                !read_number(item, "start_idx", entry.offset) || !read_number(item, "length", entry.bytes) ||
                entry.bytes > record_bytes(kMostRecordPayloadBytes) ||
                entry.offset > static_cast<std::uint64_t>(INT64_MAX) - entry.bytes)
                return damaged(base::format("has no place for tensor {}", out.tensors.size() - 1));
        }
        if (!out.tensors.empty() && out.event_file.empty())
            return damaged("has tensors and names no event file");
    }
    if (const json* shapes = member(document, "shape_payload")) {
        if (!shapes->is_array()) return damaged("has a 'shape_payload' that is no list");
        for (const json& item : *shapes) {
            SmdebugShapeEntry& entry = out.shapes.emplace_back();
            const json* shape = member(item, "shape");
            if (!read_text(item, "tensorname", entry.tensor) || shape == nullptr ||
                !read_shape(*shape, entry.shape))
                return damaged(base::format("has no shape for entry {}", out.shapes.size() - 1));
            if (!read_text(item, "originalname", entry.original_name)) entry.original_name = entry.tensor;
        }
    }
    return out;
}

std::string encode_smdebug_index(const SmdebugIndex& index) {
    std::string out = base::format(R"({{"meta": {{"mode": "{}", "mode_step": {})",
                                   smdebug_mode_name(index.mode), index.mode_step);
    if (!index.event_file.empty()) out += R"(, "event_file_name": )" + json_string(index.event_file);
    out += R"(}, "tensor_payload": [)";
    bool is_first = true;
    for (const SmdebugTensorEntry& entry : index.tensors) {
        if (!std::exchange(is_first, false)) out += ", ";
        out += base::format(R"({{"tensorname": {}, "start_idx": {}, "length": {}}})",
                            json_string(entry.tensor), entry.offset, entry.bytes);
    }
    out += R"(], "shape_payload": [)";
    is_first = true;
    for (const SmdebugShapeEntry& entry : index.shapes) {
        if (!std::exchange(is_first, false)) out += ", ";
        out += base::format(R"({{"tensorname": {}, "originalname": {}, "shape": [{}]}})",
                            json_string(entry.tensor), json_string(entry.original_name),
                            base::join(entry.shape, ", "));
    }
    return out + "]}";
}

std::string smdebug_worker_in_file(std::string_view worker) {
    std::string out(worker);
    if (!out.starts_with('/')) return out;
    std::replace(out.begin(), out.end(), '/', '_');
    std::replace(out.begin(), out.end(), ':', '-');
    return out;
}

std::string smdebug_worker_of_file(std::string_view text) {
    std::string out(text);
    if (!out.starts_with('_')) return out;
    std::replace(out.begin(), out.end(), '_', '/');
    std::replace(out.begin(), out.end(), '-', ':');
    return out;
}

std::string smdebug_event_file(std::uint64_t global_step, std::string_view worker) {
    const std::string step = padded(global_step, kStepDigits);
    return base::format("events/{}/{}_{}.tfevents", step, step, smdebug_worker_in_file(worker));
}

std::string smdebug_index_file(std::uint64_t global_step, std::string_view worker) {
    return base::format("{}/{}/{}_{}.json", kSmdebugIndexDirectory,
                        padded(global_step / kStepsPerIndexDirectory, 9), padded(global_step, kStepDigits),
                        smdebug_worker_in_file(worker));
}

std::string smdebug_collections_file(std::string_view worker) {
    return base::format("{}/{}{}", kSmdebugCollectionsDirectory, smdebug_worker_in_file(worker),
                        kSmdebugCollectionsSuffix);
}

std::optional<SmdebugIndexName> parse_smdebug_index_name(std::string_view name) {
    for (const std::string_view suffix : {std::string_view(".json"), std::string_view(".csv")}) {
        if (!name.ends_with(suffix)) continue;
        name.remove_suffix(suffix.size());
        const std::size_t end = name.find('_');
        if (end == std::string_view::npos || end + 1 == name.size()) return std::nullopt;
        const std::optional<std::uint64_t> step = parse_digits(name.substr(0, end));
        if (!step) return std::nullopt;
        return SmdebugIndexName{*step, smdebug_worker_of_file(name.substr(end + 1))};
    }
    return std::nullopt;
}

std::optional<std::string> parse_smdebug_collections_name(std::string_view name) {
    if (!name.ends_with(kSmdebugCollectionsSuffix)) return std::nullopt;
    name.remove_suffix(kSmdebugCollectionsSuffix.size());
    if (name.empty()) return std::nullopt;
    return smdebug_worker_of_file(name);
}

std::optional<SmdebugReduction> parse_smdebug_reduction(std::string_view name) noexcept {
    if (!name.starts_with(kReductionPrefix)) return std::nullopt;
    name.remove_prefix(kReductionPrefix.size());
    const std::size_t end = name.find('/');
    if (end == std::string_view::npos || end == 0 || end + 1 == name.size()) return std::nullopt;
    return SmdebugReduction{name.substr(0, end), name.substr(end + 1)};
}

std::string smdebug_reduction_name(std::string_view reduction, std::string_view tensor) {
    return base::format("{}{}/{}", kReductionPrefix, reduction, tensor);
}

}  // namespace traindbg::format
