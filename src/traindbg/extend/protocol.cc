#include "traindbg/extend/protocol.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/extend/rule_names.h"
#include "traindbg/model/json.h"
#include "traindbg/model/what_words.h"
#include "traindbg/rules/compatible/original_names.h"

namespace traindbg::extend {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::Json;

constexpr std::size_t kMostText = 4096;
constexpr std::size_t kMostEntries = 1000;  // of any list

void put_size(std::string& out, std::size_t size) {
    for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>((size >> shift) & 0xFF);
}

std::size_t size_at(std::string_view bytes, std::size_t at) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < 4; ++i)
        size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
    return size;
}

Status garbage(std::string_view what) {
    return {Code::kDataLoss, base::format("its process answered what is no answer: {}", what)};
}

// The answer as an object; the rule's own error as such. kResourceExhausted: it had no more memory.
Result<Json> object_in(std::string_view json) {
    Json answer = Json::parse(json, nullptr, /*allow_exceptions=*/false);
    if (!answer.is_object()) return garbage("no JSON object");
    const auto error = answer.find("error");
    if (error == answer.end()) return answer;
    if (!error->is_string()) return garbage("an error without words");
    return Status(answer.contains("out_of_memory") ? Code::kResourceExhausted : Code::kInvalidArgument,
                  base::printable(error->get_ref<const std::string&>().substr(0, kMostText)));
}

std::string text_in(const Json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || !found->is_string()) return {};
    const auto& text = found->get_ref<const std::string&>();
    if (text.size() <= kMostText) return text;
    std::size_t cut = kMostText;  // not inside of a letter
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    return text.substr(0, cut);
}

std::uint64_t count_in(const Json& object, const char* key, std::uint64_t fallback) {
    const auto found = object.find(key);
    return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : fallback;
}

double number_in(const Json& object, const char* key, double fallback) {
    const auto found = object.find(key);
    return found == object.end() ? fallback : model::number_from_json(*found, fallback);
}

// The elements of a list that is there; an error for what is no list, or one without end.
Result<const Json*> list_in(const Json& object, const char* key) {
    static const Json none = Json::array();
    const auto found = object.find(key);
    if (found == object.end()) return &none;
    if (!found->is_array()) return garbage(base::format("`{}` is no list", key));
    if (found->size() > kMostEntries)
        return garbage(base::format("`{}` has {} entries, more than {}", key, found->size(), kMostEntries));
    for (const Json& entry : *found)
        if (!entry.is_object()) return garbage(base::format("`{}` has an entry that is no object", key));
    return &*found;
}

Result<model::Requirement> requirement_of(const Json& json, const std::string& asked_by) {
    model::Requirement need;
    need.asked_by = asked_by;
    need.collection = text_in(json, "collection");
    if (need.collection.empty()) return garbage("a need without a collection");
    const auto mode = model::parse_mode(text_in(json, "mode"));
    if (!mode) return garbage(base::format("a need of mode '{}'", base::printable(text_in(json, "mode"))));
    need.mode = *mode;
    need.what = model::What::kNothing;
    const auto what = json.find("what");
    if (what == json.end() || !what->is_array()) return garbage("a need without `what`");
    for (const Json& word : *what) {
        const std::string text = word.is_string() ? word.get<std::string>() : std::string();
        const auto row = std::find_if(model::kWhatWords.begin(), model::kWhatWords.end(),
                                      [&](const auto& known) { return known.word == text; });
        if (row == model::kWhatWords.end())
            return garbage(base::format("a need of '{}'", base::printable(text.substr(0, 100))));
        need.what |= row->bit;
    }
    if (need.what == model::What::kNothing) return garbage("a need of nothing");
    need.schedule.every = count_in(json, "every", 1);
    need.schedule.dense_until = count_in(json, "dense_until", 0);
    need.schedule.start = count_in(json, "start", 0);
    need.schedule.end = count_in(json, "end", UINT64_MAX);
    return need;
}

Result<std::vector<model::Requirement>> needs_in(const Json& object, const std::string& asked_by) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json* list, list_in(object, "needs"));
    std::vector<model::Requirement> needs;
    for (const Json& each : *list) {
        TRAINDBG_ASSIGN_OR_RETURN(model::Requirement need, requirement_of(each, asked_by));
        needs.push_back(std::move(need));
    }
    return needs;
}

Result<model::ParameterInfo> parameter_of(const Json& json) {
    model::ParameterInfo info;
    info.name = text_in(json, "name");
    if (!is_name(info.name))
        return Status(
            Code::kInvalidArgument,
            base::format("parameter '{}': a name has letters, digits and '_'", base::printable(info.name)));
    info.meaning = text_in(json, "meaning");
    info.unit = text_in(json, "unit");
    info.min = number_in(json, "min", 0);
    info.max = number_in(json, "max", 0);
    const std::string type = text_in(json, "type");
    using model::ParameterType;
    if (type == "number") info.type = ParameterType::kNumber;
    else if (type == "whole number") info.type = ParameterType::kWhole;
    else if (type == "flag") info.type = ParameterType::kFlag;
    else if (type == "text") info.type = ParameterType::kText;
    else return garbage(base::format("a parameter of type '{}'", base::printable(type)));
    const auto fallback = json.find("default");
    const auto value = fallback == json.end() ? std::nullopt : model::parameter_from_json(*fallback);
    if (!value) return garbage("a parameter without a default");
    info.fallback = *value;
    return info;
}

Result<PythonRuleInfo> rule_of(const Json& json) {
    PythonRuleInfo rule;
    rule.class_name = text_in(json, "class");
    model::RuleInfo& info = rule.info;
    info.name = text_in(json, "name");
    if (rule.class_name.empty() || !is_name(info.name))
        return Status(Code::kInvalidArgument, base::format("rule '{}': a name has letters, digits and '_'",
                                                           base::printable(info.name)));
    info.title = text_in(json, "title");
    info.summary = text_in(json, "summary");
    info.when = text_in(json, "when");
    info.why = text_in(json, "why");
    info.fix = text_in(json, "fix");
    info.healthy = text_in(json, "healthy");
    const auto severity = model::parse_severity(text_in(json, "severity"));
    if (!severity)
        return Status(Code::kInvalidArgument, base::format("rule {}: there is no severity '{}'", info.name,
                                                           base::printable(text_in(json, "severity"))));
    info.severity = *severity;
    TRAINDBG_ASSIGN_OR_RETURN(const Json* parameters, list_in(json, "parameters"));
    for (const Json& each : *parameters) {
        TRAINDBG_ASSIGN_OR_RETURN(model::ParameterInfo parameter, parameter_of(each));
        info.parameters.push_back(std::move(parameter));
    }
    if (const auto complete = rules::complete_parameters(info, rules::defaults_of(info)); !complete.is_ok())
        return Status(Code::kInvalidArgument,
                      base::format("rule {}: the default of {}", info.name, complete.status().message()));
    const auto everything = json.find("everything");
    rule.everything = everything != json.end() && everything->is_boolean() && everything->get<bool>();
    return rule;
}

Result<model::Finding> finding_of(const Json& json) {
    model::Finding finding;
    finding.key = text_in(json, "key");
    finding.kind = text_in(json, "kind");
    finding.message = text_in(json, "message");
    if (finding.message.empty()) return garbage("a finding without a message");
    finding.fix = text_in(json, "fix");
    finding.tensor = text_in(json, "tensor");
    finding.layer = text_in(json, "layer");
    finding.places = std::max<std::uint64_t>(count_in(json, "places", 1), 1);
    finding.first_step = count_in(json, "first_step", model::kThisStep);
    const auto severity = model::parse_severity(text_in(json, "severity"));
    if (!severity) return garbage(base::format("severity '{}'", base::printable(text_in(json, "severity"))));
    finding.severity = *severity;
    TRAINDBG_ASSIGN_OR_RETURN(const Json* evidence, list_in(json, "evidence"));
    for (const Json& each : *evidence)
        finding.evidence.push_back({text_in(each, "name"), number_in(each, "value", 0),
                                    text_in(each, "relation"), number_in(each, "reference", 0)});
    TRAINDBG_ASSIGN_OR_RETURN(const Json* plots, list_in(json, "plots"));
    for (const Json& each : *plots)
        finding.plots.emplace_back(text_in(each, "tensor"), text_in(each, "statistic"));
    return finding;
}

// `root`: the class of the root module.
Json tensor_of(const model::TensorInfo& info, const std::string& root) {
    Json json = {{"name", info.name},
                 {"role", model::to_string(info.role)},
                 {"collection", model::collection_of(info.role)},
                 {"module", info.module},
                 {"module_type", info.module_type},
                 {"activation", model::to_string(info.activation)},
                 {"layer", info.layer},
                 {"dtype", tensor::to_string(info.dtype)},
                 {"shape", info.shape},
                 {"original_name", rules::compatible::original_name(info, root)},
                 {"original_collections", rules::compatible::original_collections(info)}};
    if (!info.collections.empty()) json["collections"] = info.collections;
    return json;
}

Json statistics_of(const model::Statistics& s) {
    Json json = {s.count, s.nan, s.positive_infinite, s.negative_infinite, s.zero};
    for (const double moment : {s.min, s.max, s.mean, s.std, s.l1, s.l2})
        json.push_back(model::number_to_json(moment));
    return json;
}

Json histogram_of(const model::Histogram& bins) {
    Json json = Json::array();
    for (const model::HistogramBin& bin : bins) {
        const model::BinEdges edges = model::edges(bin.bin);
        json.push_back({model::number_to_json(edges.lower), model::number_to_json(edges.upper), bin.count});
    }
    return json;
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string frame(std::string_view json, std::string_view blob) {
    std::string out;
    out.reserve(kFrameHead + json.size() + blob.size());
    put_size(out, json.size());
    put_size(out, blob.size());
    out += json;
    out += blob;
    return out;
}

Result<std::optional<std::string_view>> answer_in(std::string_view bytes) {
    if (bytes.size() < kFrameHead) return std::optional<std::string_view>();
    const std::size_t size = size_at(bytes, 0);
    if (size > kMostAnswerBytes || size_at(bytes, 4) != 0)
        return garbage(base::format("the head of its frame is {} and {}", size, size_at(bytes, 4)));
    if (bytes.size() < kFrameHead + size) return std::optional<std::string_view>();
    if (bytes.size() > kFrameHead + size) return garbage("more than one answer");
    return std::optional(bytes.substr(kFrameHead, size));
}

std::string describe_request(const std::string& source) {
    return frame(dumped({{"do", "describe"}, {"source", source}}));
}

std::string load_request(const std::string& source, const std::string& class_name,
                         const rules::Parameters& parameters) {
    Json values = Json::object();
    for (const auto& [name, value] : parameters) values[name] = model::parameter_to_json(value);
    return frame(dumped(
        {{"do", "load"}, {"source", source}, {"class", class_name}, {"parameters", std::move(values)}}));
}

std::string try_request(const std::string& class_name) {
    return frame(dumped({{"do", "try"}, {"class", class_name}}));
}

std::string try_loaded_request() { return frame(dumped({{"do", "try"}})); }
std::string needs_request() { return frame(dumped({{"do", "needs"}})); }
std::string make_request(std::uint64_t rule, model::WorkerId worker) {
    return frame(dumped({{"do", "make"}, {"rule", rule}, {"worker", worker}}));
}
std::string end_request(std::uint64_t rule) { return frame(dumped({{"do", "end"}, {"rule", rule}})); }

Result<std::string> StepEncoder::encode(std::uint64_t rule, const ShownStep& step) {
    Json tensors = Json::array();
    std::string blob;
    for (const ShownTensor& tensor : step.tensors) {
        Json& out = tensors.emplace_back(Json{{"id", tensor.info->id}});
        if (told_.size() <= tensor.info->id) told_.resize(step.view.tensors->size());
        if (!told_[tensor.info->id]) out["new"] = tensor_of(*tensor.info, step.view.meta->model_type);
        told_[tensor.info->id] = true;
        if (tensor.has_statistics) out["statistics"] = statistics_of(tensor.sample->statistics);
        if (tensor.has_units) {
            const model::UnitStatistics& units = tensor.sample->units;
            out["units"] = {units.units, units.inactive_units, units.low, units.high};
        }
        if (tensor.scalar != nullptr) out["value"] = model::number_to_json(tensor.scalar->value);
        if (tensor.classes != nullptr)
            out["classes"] = {tensor.classes->labels, tensor.classes->predictions, tensor.classes->hits};
        if (tensor.histogram != nullptr) out["histogram"] = histogram_of(*tensor.histogram);
        if (tensor.channels != nullptr)
            out["channels"] = {tensor.channels->min, tensor.channels->max, tensor.channels->zero};
        if (tensor.digest != nullptr)
            out["digest"] = {base::format("{:016x}", tensor.digest->fingerprint),
                             model::number_to_json(tensor.digest->product)};
        if (tensor.raw != nullptr) {
            const model::RawTensor& raw = *tensor.raw;
            if (blob.size() + raw.bytes.size() > kMostStepBytes)
                return Status(Code::kResourceExhausted,
                              base::format("step {} has whole tensors of more than {}; a rule is shown less",
                                           step.view.step(), base::human_bytes(kMostStepBytes)));
            out["raw"] = {tensor::to_string(raw.dtype), raw.shape, blob.size(), raw.bytes.size()};
            blob.append(reinterpret_cast<const char*>(raw.bytes.data()), raw.bytes.size());
        }
    }
    Json shown = {{"worker", step.view.worker},
                  {"mode", model::to_string(step.view.mode())},
                  {"step", step.view.step()},
                  {"wall_nanos", step.view.record->wall_nanos},
                  {"tensors", std::move(tensors)}};
    if (!meta_ || !(*meta_ == *step.view.meta)) {
        meta_ = *step.view.meta;
        shown["training"] = model::to_json(*meta_);
    }
    return frame(dumped({{"do", "step"}, {"rule", rule}, {"step", std::move(shown)}}), blob);
}

Result<std::vector<PythonRuleInfo>> rules_from_answer(std::string_view json) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json answer, object_in(json));
    TRAINDBG_ASSIGN_OR_RETURN(const Json* list, list_in(answer, "rules"));
    std::vector<PythonRuleInfo> rules;
    for (const Json& each : *list) {
        TRAINDBG_ASSIGN_OR_RETURN(PythonRuleInfo rule, rule_of(each));
        rules.push_back(std::move(rule));
    }
    return rules;
}

Status done_from_answer(std::string_view json) { return object_in(json).status(); }

Result<std::vector<model::Requirement>> needs_from_answer(std::string_view json,
                                                          const std::string& asked_by) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json answer, object_in(json));
    return needs_in(answer, asked_by);
}

Result<Judgement> judgement_from_answer(std::string_view json) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json answer, object_in(json));
    Judgement judgement;
    const auto judged = answer.find("judged");
    judgement.judged = judged != answer.end() && judged->is_boolean() && judged->get<bool>();
    judgement.why_not = text_in(answer, "why_not");
    TRAINDBG_ASSIGN_OR_RETURN(const Json* events, list_in(answer, "events"));
    for (const Json& event : *events) {
        if (const auto fired = event.find("fire"); fired != event.end()) {
            if (!fired->is_object()) return garbage("a finding that is no object");
            TRAINDBG_ASSIGN_OR_RETURN(model::Finding finding, finding_of(*fired));
            judgement.events.emplace_back(std::move(finding));
        } else if (event.contains("clear")) {
            judgement.events.emplace_back(Cleared{text_in(event, "clear")});
        } else {
            return garbage("an event that is neither `fire` nor `clear`");
        }
    }
    return judgement;
}

}  // namespace traindbg::extend
