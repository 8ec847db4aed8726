#include "traindbg/format/smdebug_index.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
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

Status damaged_index(std::string what) { return {Code::kDataLoss, std::move(what)}; }

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

// Takes an index as the parser comes to it: a document in memory would be many times the text, and take
// longer to make than the text takes to read. As there, the last of several members of one name counts.
class IndexEvents {
  public:
    // What can be said once the document has ended.
    [[nodiscard]] Result<SmdebugIndex> finish() &&;

    // What the parser calls. True: go on.
    bool null() { return take({}); }
    bool boolean(bool /*value*/) { return take({Value::Kind::kElse}); }
    bool number_integer(json::number_integer_t /*value*/) { return take({Value::Kind::kElse}); }
    bool number_unsigned(json::number_unsigned_t value) { return take({Value::Kind::kNumber, value}); }
    bool number_float(json::number_float_t /*value*/, const std::string& /*text*/) {
        return take({Value::Kind::kElse});
    }
    bool string(const std::string& value) { return take({Value::Kind::kText, 0, &value}); }
    bool binary(const json::binary_t& /*value*/) { return take({Value::Kind::kElse}); }
    bool key(const std::string& name) {
        const auto* const known = std::find_if(kKeys.begin(), kKeys.end(), [&](const auto& each) {
            return each.in == in_ && each.name == name;
        });
        key_ = known == kKeys.end() ? Key::kOther : known->key;
        return true;
    }
    bool start_object(std::size_t /*size*/);
    bool end_object() { return leave(); }
    bool start_array(std::size_t /*size*/);
    bool end_array() { return leave(); }
    static bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                            const json::exception& /*why*/) {
        return false;
    }

  private:
    enum class In { kTop, kRoot, kMeta, kTensors, kTensor, kShapes, kShapeEntry, kShape, kElsewhere };
    enum class Key {
        kOther,
        kMeta,
        kTensors,
        kShapes,
        kMode,
        kModeStep,
        kEventFile,
        kTensor,
        kOffset,
        kBytes,
        kOriginal,
        kShape,
    };
    struct KnownKey {
        In in;
        std::string_view name;
        Key key;
    };
    static constexpr std::array kKeys = {
        KnownKey{In::kTensor, "tensorname", Key::kTensor},
        KnownKey{In::kTensor, "start_idx", Key::kOffset},
        KnownKey{In::kTensor, "length", Key::kBytes},
        KnownKey{In::kShapeEntry, "tensorname", Key::kTensor},
        KnownKey{In::kShapeEntry, "originalname", Key::kOriginal},
        KnownKey{In::kShapeEntry, "shape", Key::kShape},
        KnownKey{In::kRoot, "meta", Key::kMeta},
        KnownKey{In::kRoot, "tensor_payload", Key::kTensors},
        KnownKey{In::kRoot, "shape_payload", Key::kShapes},
        KnownKey{In::kMeta, "mode", Key::kMode},
        KnownKey{In::kMeta, "mode_step", Key::kModeStep},
        KnownKey{In::kMeta, "event_file_name", Key::kEventFile},
    };
    struct Value {
        enum class Kind { kNull, kText, kNumber, kElse };
        Kind kind = Kind::kNull;
        std::uint64_t number = 0;
        const std::string* text = nullptr;
    };
    // Of a member: not there (or null), of another type than it must be, or there.
    enum class Found { kNo, kWrong, kYes };

    static void take_text(const Value& value, Found& found, std::string& out) {
        found = value.kind == Value::Kind::kText   ? Found::kYes
                : value.kind == Value::Kind::kNull ? Found::kNo
                                                   : Found::kWrong;
        if (found == Found::kYes) out = *value.text;
        else out.clear();
    }
    static void take_number(const Value& value, Found& found, std::uint64_t& out) {
        found = value.kind == Value::Kind::kNumber ? Found::kYes
                : value.kind == Value::Kind::kNull ? Found::kNo
                                                   : Found::kWrong;
        out = value.number;
    }
    bool take(const Value& value);
    void take_root(Found found);
    bool enter(In in) {
        in_ = in;
        return true;
    }
    bool enter_elsewhere() {
        if (in_ != In::kElsewhere) {
            before_ = in_;
            take({Value::Kind::kElse});
        }
        ++depth_;
        return enter(In::kElsewhere);
    }
    bool leave();
    void begin_meta(Found found);
    void begin_tensors(Found found);
    void begin_shapes(Found found);
    void end_tensor();
    void end_shape_entry();

    In in_ = In::kTop;
    Key key_ = Key::kOther;
    In before_ = In::kTop;   // where what is of no interest began
    std::size_t depth_ = 0;  // in it

    SmdebugIndex index_;
    Found meta_ = Found::kNo;
    Found mode_found_ = Found::kNo;
    Found mode_step_ = Found::kNo;
    Found event_file_ = Found::kNo;
    std::string mode_;
    Found tensors_ = Found::kNo;
    Found shapes_ = Found::kNo;
    std::optional<std::size_t> bad_tensor_;  // the first
    std::optional<std::size_t> bad_shape_;

    // Of the entry under way.
    Found name_ = Found::kNo;
    Found offset_ = Found::kNo;
    Found bytes_ = Found::kNo;
    Found original_ = Found::kNo;
    Found shape_ = Found::kNo;
};

bool IndexEvents::take(const Value& value) {
    const Found found = value.kind == Value::Kind::kNull ? Found::kNo : Found::kWrong;
    switch (in_) {
        case In::kRoot: take_root(found); break;
        case In::kMeta:
            if (key_ == Key::kMode) take_text(value, mode_found_, mode_);
            if (key_ == Key::kModeStep) take_number(value, mode_step_, index_.mode_step);
            if (key_ == Key::kEventFile) take_text(value, event_file_, index_.event_file);
            break;
        case In::kTensors:  // an entry that is no object
            start_object(0);
            leave();
            break;
        case In::kTensor: {
            SmdebugTensorEntry& entry = index_.tensors.back();
            if (key_ == Key::kTensor) take_text(value, name_, entry.tensor);
            if (key_ == Key::kOffset) take_number(value, offset_, entry.offset);
            if (key_ == Key::kBytes) take_number(value, bytes_, entry.bytes);
            break;
        }
        case In::kShapes:
            start_object(0);
            leave();
            break;
        case In::kShapeEntry: {
            SmdebugShapeEntry& entry = index_.shapes.back();
            if (key_ == Key::kTensor) take_text(value, name_, entry.tensor);
            if (key_ == Key::kOriginal) take_text(value, original_, entry.original_name);
            if (key_ == Key::kShape) shape_ = found;
            break;
        }
        case In::kShape: {
            std::vector<std::int64_t>& shape = index_.shapes.back().shape;
            if (value.kind != Value::Kind::kNumber || shape.size() == kMostTfRank ||
                value.number > static_cast<std::uint64_t>(INT64_MAX))
                shape_ = Found::kWrong;
            else shape.push_back(static_cast<std::int64_t>(value.number));
            break;
        }
        case In::kTop:
        case In::kElsewhere: break;
    }
    return true;
}

void IndexEvents::take_root(Found found) {
    if (key_ == Key::kMeta) begin_meta(found);
    if (key_ == Key::kTensors) begin_tensors(found);
    if (key_ == Key::kShapes) begin_shapes(found);
}

void IndexEvents::begin_meta(Found found) {
    meta_ = found;
    mode_found_ = mode_step_ = event_file_ = Found::kNo;
    index_.event_file.clear();
}

void IndexEvents::begin_tensors(Found found) {
    tensors_ = found;
    index_.tensors.clear();
    bad_tensor_.reset();
}

void IndexEvents::begin_shapes(Found found) {
    shapes_ = found;
    index_.shapes.clear();
    bad_shape_.reset();
}

bool IndexEvents::start_object(std::size_t /*size*/) {
    if (in_ == In::kTop) return enter(In::kRoot);
    if (in_ == In::kRoot && key_ == Key::kMeta) {
        begin_meta(Found::kYes);
        return enter(In::kMeta);
    }
    if (in_ == In::kTensors) {
        if (!bad_tensor_) index_.tensors.emplace_back();  // what follows a bad one is not kept
        name_ = offset_ = bytes_ = Found::kNo;
        return enter(In::kTensor);
    }
    if (in_ == In::kShapes) {
        if (!bad_shape_) index_.shapes.emplace_back();
        name_ = original_ = shape_ = Found::kNo;
        return enter(In::kShapeEntry);
    }
    return enter_elsewhere();
}

bool IndexEvents::start_array(std::size_t /*size*/) {
    if (in_ == In::kRoot && key_ == Key::kTensors) {
        begin_tensors(Found::kYes);
        return enter(In::kTensors);
    }
    if (in_ == In::kRoot && key_ == Key::kShapes) {
        begin_shapes(Found::kYes);
        return enter(In::kShapes);
    }
    if (in_ == In::kShapeEntry && key_ == Key::kShape) {
        shape_ = Found::kYes;
        index_.shapes.back().shape.clear();
        return enter(In::kShape);
    }
    return enter_elsewhere();
}

bool IndexEvents::leave() {
    switch (in_) {
        case In::kElsewhere:
            if (--depth_ == 0) in_ = before_;
            return true;
        case In::kTensor: end_tensor(); return enter(In::kTensors);
        case In::kShape: return enter(In::kShapeEntry);
        case In::kShapeEntry: end_shape_entry(); return enter(In::kShapes);
        case In::kMeta:
        case In::kTensors:
        case In::kShapes: return enter(In::kRoot);
        case In::kRoot:
        case In::kTop: break;
    }
    return enter(In::kTop);
}

void IndexEvents::end_tensor() {
    const SmdebugTensorEntry& entry = index_.tensors.back();
    const bool is_whole = name_ == Found::kYes && offset_ == Found::kYes && bytes_ == Found::kYes &&
                          entry.bytes <= record_bytes(kMostRecordPayloadBytes) &&
                          entry.offset <= static_cast<std::uint64_t>(INT64_MAX) - entry.bytes;
    if (!is_whole && !bad_tensor_) bad_tensor_ = index_.tensors.size() - 1;
}

void IndexEvents::end_shape_entry() {
    SmdebugShapeEntry& entry = index_.shapes.back();
    if ((name_ != Found::kYes || shape_ != Found::kYes) && !bad_shape_) bad_shape_ = index_.shapes.size() - 1;
    if (original_ != Found::kYes) entry.original_name = entry.tensor;
}

Result<SmdebugIndex> IndexEvents::finish() && {
    if (meta_ == Found::kNo) return damaged_index("has no 'meta'");
    if (mode_found_ != Found::kYes) return damaged_index("has no mode");
    const std::optional<model::Mode> known = parse_smdebug_mode(mode_);
    if (!known) return damaged_index("has an unknown mode");
    index_.mode = *known;
    if (mode_step_ != Found::kYes) return damaged_index("has no mode_step");
    if (event_file_ == Found::kWrong || (event_file_ == Found::kYes && !is_inside(index_.event_file)))
        return damaged_index("names an event file outside of the run");
    if (tensors_ == Found::kWrong) return damaged_index("has a 'tensor_payload' that is no list");
    if (bad_tensor_) return damaged_index(base::format("has no place for tensor {}", *bad_tensor_));
    if (!index_.tensors.empty() && index_.event_file.empty())
        return damaged_index("has tensors and names no event file");
    if (shapes_ == Found::kWrong) return damaged_index("has a 'shape_payload' that is no list");
    if (bad_shape_) return damaged_index(base::format("has no shape for entry {}", *bad_shape_));
    return std::move(index_);
}

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
    IndexEvents events;
    if (!json::sax_parse(text, &events)) return damaged_index("is not JSON");
    return std::move(events).finish();
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
