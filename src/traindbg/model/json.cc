#include "traindbg/model/json.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/model/what_words.h"

namespace traindbg::model {
namespace {

using base::Code;
using base::Result;
using base::Status;

// Text that came from a training may hold any bytes; JSON may not.
std::string safe(std::string_view text) { return base::printable(text); }

// Prose and code: as `safe`, with its line breaks and tabs.
std::string safe_lines(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_of("\n\t"), text.size());
        out += safe(text.substr(0, end));
        if (end < text.size()) out += text[end];
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

Json strings(const std::vector<std::string>& items) {
    Json out = Json::array();
    for (const std::string& item : items) out.push_back(safe(item));
    return out;
}

Json pairs(const std::vector<std::pair<std::string, std::string>>& items) {
    Json out = Json::array();
    for (const auto& [key, value] : items) out.push_back(Json::array({safe(key), safe(value)}));
    return out;
}

// Reads the members of one JSON object and remembers the first thing that was wrong.
class ObjectReader {
  public:
    ObjectReader(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
        if (!json.is_object()) fail("is not an object");
    }

    [[nodiscard]] Status status() const { return status_; }
    [[nodiscard]] bool failed() const { return !status_.is_ok(); }

    void fail(const std::string& what) {
        if (status_.is_ok()) status_ = Status(Code::kInvalidArgument, where_ + ": " + what);
    }
    // The member, or null.
    [[nodiscard]] const Json* find(const char* key) const {
        if (!json_.is_object()) return nullptr;
        const auto it = json_.find(key);
        return it == json_.end() || it->is_null() ? nullptr : &*it;
    }
    void text(const char* key, std::string& out) {
        if (const Json* value = find(key)) {
            if (value->is_string()) out = value->get<std::string>();
            else fail(base::format("'{}' is not a string", key));
        }
    }
    void number(const char* key, double& out) {
        if (const Json* value = find(key)) {
            if (value->is_number() || value->is_string()) out = number_from_json(*value, out);
            else fail(base::format("'{}' is not a number", key));
        }
    }
    template <typename Integer>
    void integer(const char* key, Integer& out) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (value->is_number_unsigned()) {
            const auto number = value->get<std::uint64_t>();
            if (number <= static_cast<std::uint64_t>(std::numeric_limits<Integer>::max())) {
                out = static_cast<Integer>(number);
                return;
            }
        } else if (value->is_number_integer() && std::numeric_limits<Integer>::is_signed) {
            const auto number = value->get<std::int64_t>();
            if (number >= static_cast<std::int64_t>(std::numeric_limits<Integer>::min())) {
                out = static_cast<Integer>(number);
                return;
            }
        }
        fail(base::format("'{}' is not a whole number in range", key));
    }
    void boolean(const char* key, bool& out) {
        if (const Json* value = find(key)) {
            if (value->is_boolean()) out = value->get<bool>();
            else fail(base::format("'{}' is not true or false", key));
        }
    }
    template <typename Enum>
    void word(const char* key, Enum& out, std::optional<Enum> (*parse)(std::string_view) noexcept) {
        if (const Json* value = find(key)) {
            const std::optional<Enum> parsed =
                value->is_string() ? parse(value->get_ref<const std::string&>()) : std::nullopt;
            if (parsed) out = *parsed;
            else fail(base::format("'{}' has the unknown value {}", key, value->dump()));
        }
    }
    void texts(const char* key, std::vector<std::string>& out) {
        each(key, [&](const Json& item) {
            if (item.is_string()) out.push_back(item.get<std::string>());
            else fail(base::format("'{}' holds something that is not a string", key));
        });
    }
    void text_pairs(const char* key, std::vector<std::pair<std::string, std::string>>& out) {
        each(key, [&](const Json& item) {
            if (item.is_array() && item.size() == 2 && item[0].is_string() && item[1].is_string())
                out.emplace_back(item[0].get<std::string>(), item[1].get<std::string>());
            else fail(base::format("'{}' holds something that is not a pair of strings", key));
        });
    }
    template <typename Visit>
    void each(const char* key, Visit&& visit) {
        const Json* value = find(key);
        if (value == nullptr) return;
        if (!value->is_array()) return fail(base::format("'{}' is not a list", key));
        for (const Json& item : *value) {
            if (failed()) return;
            visit(item);
        }
    }
    // For files that people write.
    void only(const std::vector<std::string>& known) {
        if (!json_.is_object()) return;
        for (const auto& [key, value] : json_.items()) {
            if (std::find(known.begin(), known.end(), key) == known.end())
                return fail(
                    base::format("unknown key '{}'{}", base::printable(key), base::did_you_mean(key, known)));
        }
    }

  private:
    const Json& json_;
    std::string where_;
    Status status_;
};

Result<Json> parse(std::string_view text, std::string_view what) {
    Json json = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return Status(Code::kInvalidArgument, base::format("{}: not valid JSON", what));
    return json;
}

Json schedule_json(const Requirement& requirement) {
    const Schedule& schedule = requirement.schedule;
    Json out = {{"every", schedule.every}};
    if (schedule.dense_until != 0) out["dense_until"] = schedule.dense_until;
    if (schedule.start != 0) out["start"] = schedule.start;
    if (schedule.end != UINT64_MAX) out["end"] = schedule.end;
    if (!requirement.steps.empty()) out["steps"] = requirement.steps;
    if (requirement.every_ms != 0) out["every_ms"] = requirement.every_ms;
    return out;
}

void read_requirement(const Json& json, Requirement& out, ObjectReader& parent) {
    ObjectReader reader(json, "requirement");
    reader.only({"collection", "mode", "what", "schedule", "for"});
    reader.text("collection", out.collection);
    if (out.collection.empty()) reader.fail("'collection' is missing");
    reader.word("mode", out.mode, &parse_mode);
    reader.text("for", out.asked_by);
    if (reader.find("what") != nullptr) out.what = What::kNothing;
    reader.each("what", [&](const Json& item) {
        for (const WhatWord& row : kWhatWords) {
            if (item.is_string() && item.get_ref<const std::string&>() == row.word) {
                out.what |= row.bit;
                return;
            }
        }
        std::vector<std::string> words;
        for (const WhatWord& row : kWhatWords) words.emplace_back(row.word);
        reader.fail(base::format("'what' has the unknown value {}, which is not one of {}", item.dump(),
                                 base::join(words, ", ")));
    });
    if (const Json* schedule = reader.find("schedule")) {
        ObjectReader inner(*schedule, "schedule of '" + out.collection + "'");
        inner.only({"every", "dense_until", "start", "end", "steps", "every_ms"});
        inner.integer("every", out.schedule.every);
        inner.integer("dense_until", out.schedule.dense_until);
        inner.integer("start", out.schedule.start);
        inner.integer("end", out.schedule.end);
        inner.integer("every_ms", out.every_ms);
        inner.each("steps", [&](const Json& item) {
            if (!item.is_number_unsigned()) return inner.fail("'steps' holds something that is no step");
            out.steps.push_back(item.get<StepIndex>());
        });
        std::sort(out.steps.begin(), out.steps.end());
        if (inner.failed()) parent.fail(inner.status().message());
    }
    if (reader.failed()) parent.fail(reader.status().message());
}

Json to_json(const std::vector<SourceLine>& sources) {
    Json out = Json::array();
    for (const SourceLine& source : sources) {
        Json entry = {{"what", safe(source.what)}, {"file", safe(source.file)}, {"line", source.line}};
        if (!source.function.empty()) entry["function"] = safe(source.function);
        out.push_back(std::move(entry));
    }
    return out;
}

void read_sources(ObjectReader& reader, std::vector<SourceLine>& out) {
    reader.each("sources", [&](const Json& item) {
        ObjectReader inner(item, "source line");
        SourceLine source;
        inner.text("what", source.what);
        inner.text("file", source.file);
        inner.integer("line", source.line);
        inner.text("function", source.function);
        if (inner.failed()) reader.fail(inner.status().message());
        out.push_back(std::move(source));
    });
}

Finding read_finding(ObjectReader& reader) {
    Finding out;
    reader.text("rule", out.rule);
    reader.text("key", out.key);
    reader.text("kind", out.kind);
    reader.word("severity", out.severity, &parse_severity);
    reader.word("state", out.state, &parse_finding_state);
    reader.word("mode", out.mode, &parse_mode);
    reader.integer("worker", out.worker);
    reader.integer("first_step", out.first_step);
    reader.integer("step", out.step);
    reader.integer("last_step", out.last_step);
    reader.integer("times", out.times);
    reader.text("tensor", out.tensor);
    reader.text("layer", out.layer);
    reader.integer("places", out.places);
    reader.text("message", out.message);
    reader.text("fix", out.fix);
    reader.each("evidence", [&](const Json& item) {
        ObjectReader inner(item, "evidence");
        Evidence evidence;
        inner.text("name", evidence.name);
        inner.number("value", evidence.value);
        inner.text("relation", evidence.relation);
        inner.number("reference", evidence.reference);
        if (inner.failed()) reader.fail(inner.status().message());
        out.evidence.push_back(std::move(evidence));
    });
    reader.text_pairs("plots", out.plots);
    read_sources(reader, out.sources);
    return out;
}

}  // namespace

Json number_to_json(double value) {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
}

double number_from_json(const Json& json, double fallback) {
    if (json.is_number()) return json.get<double>();
    if (json.is_string()) {
        const auto& word = json.get_ref<const std::string&>();
        if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
        if (word == "inf") return std::numeric_limits<double>::infinity();
        if (word == "-inf") return -std::numeric_limits<double>::infinity();
    }
    return fallback;
}

Json parameter_to_json(const ParameterValue& value) {
    if (const double* number = value.number()) return number_to_json(*number);
    if (const bool* flag = value.flag()) return *flag;
    if (const std::string* text = value.text()) return safe(*text);
    return nullptr;
}

std::optional<ParameterValue> parameter_from_json(const Json& json) {
    if (json.is_null()) return ParameterValue();
    if (json.is_boolean()) return ParameterValue(json.get<bool>());
    if (json.is_number()) return ParameterValue(json.get<double>());
    if (json.is_string()) return ParameterValue(json.get<std::string>());
    return std::nullopt;
}

Json to_json(const Requirement& requirement) {
    Json what = Json::array();
    for (const WhatWord& row : kWhatWords)
        if (has(requirement.what, row.bit)) what.push_back(row.word);
    return {{"collection", safe(requirement.collection)},
            {"mode", to_string(requirement.mode)},
            {"what", std::move(what)},
            {"schedule", schedule_json(requirement)},
            {"for", safe(requirement.asked_by)}};
}

Json to_json(const Retention& retention) {
    return {{"quota_bytes", retention.quota_bytes},
            {"keep_last", retention.keep_last},
            {"thin", retention.thin},
            {"keep_tensors", retention.keep_tensors}};
}

namespace {

Json to_json(const FlightRecorder& flight) {
    return {{"steps", flight.steps}, {"collect", strings(flight.collect)}, {"raw", strings(flight.raw)}};
}

void read_flight(const Json& item, FlightRecorder& out, ObjectReader& outer) {
    ObjectReader reader(item, "flight");
    reader.only({"steps", "collect", "raw"});
    reader.integer("steps", out.steps);
    reader.texts("collect", out.collect);
    reader.texts("raw", out.raw);
    if (reader.failed()) outer.fail(reader.status().message());
}

void read_retention(const Json& item, Retention& out, ObjectReader& outer) {
    ObjectReader reader(item, "retention");
    reader.only({"quota_bytes", "keep_last", "thin", "keep_tensors"});
    reader.integer("quota_bytes", out.quota_bytes);
    reader.integer("keep_last", out.keep_last);
    reader.integer("thin", out.thin);
    reader.integer("keep_tensors", out.keep_tensors);
    if (reader.failed()) outer.fail(reader.status().message());
}

Json to_json(const Corrections& corrections) {
    Json out = {{"skip_bad_steps", corrections.skip_bad_steps},
                {"snapshot_every", corrections.snapshot_every},
                {"lr_factor", corrections.lr_factor},
                {"most", corrections.most}};
    if (corrections.dry_run) out["dry_run"] = true;  // a library of before reads all other plans
    return out;
}

void read_corrections(const Json& item, Corrections& out, ObjectReader& outer) {
    ObjectReader reader(item, "corrections");
    reader.only({"skip_bad_steps", "snapshot_every", "lr_factor", "most", "dry_run"});
    reader.boolean("skip_bad_steps", out.skip_bad_steps);
    reader.integer("snapshot_every", out.snapshot_every);
    reader.number("lr_factor", out.lr_factor);
    if (!(out.lr_factor > 0 && out.lr_factor <= 1)) reader.fail("'lr_factor' is not above 0 and at most 1");
    reader.integer("most", out.most);
    reader.boolean("dry_run", out.dry_run);
    if (reader.failed()) outer.fail(reader.status().message());
}

}  // namespace

Json to_json(const CaptureConfig& config) {
    Json requirements = Json::array();
    for (const Requirement& requirement : config.requirements) requirements.push_back(to_json(requirement));
    Json collections = Json::array();
    for (const CollectionSpec& spec : config.collections)
        collections.push_back({{"name", safe(spec.name)},
                               {"include", strings(spec.include)},
                               {"exclude", strings(spec.exclude)}});
    Json out = {{"schema_version", 1},
                {"queue_bytes", config.queue_bytes},
                {"arena_bytes", config.arena_bytes},
                {"overflow", to_string(config.overflow)},
                {"block_for_ms", config.block_for_ms},
                {"part_bytes", config.part_bytes},
                {"retention", to_json(config.retention)},
                {"compiled", to_string(config.compiled)},
                {"micro_batches", to_string(config.micro_batches)},
                {"budget", config.budget ? Json(*config.budget) : Json()},
                {"flight", to_json(config.flight)},
                {"corrections", to_json(config.corrections)},
                {"collections", std::move(collections)},
                {"requirements", std::move(requirements)}};
    if (config.probe) out["probe"] = true;  // a library of before reads all other plans
    return out;
}

Result<CaptureConfig> capture_config_from_json(std::string_view text) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json json, parse(text, "capture plan"));
    CaptureConfig out;
    ObjectReader reader(json, "capture plan");
    reader.only({"schema_version", "queue_bytes", "arena_bytes", "overflow", "block_for_ms", "part_bytes",
                 "retention", "compiled", "micro_batches", "budget", "flight", "corrections", "probe",
                 "collections", "requirements", "crc32c"});
    std::uint32_t version = 1;
    reader.integer("schema_version", version);
    if (version != 1)
        reader.fail(base::format("schema_version {} is newer than this traindbg understands (1)", version));
    reader.integer("queue_bytes", out.queue_bytes);
    reader.integer("arena_bytes", out.arena_bytes);
    reader.word("overflow", out.overflow, &parse_overflow_policy);
    reader.integer("block_for_ms", out.block_for_ms);
    reader.integer("part_bytes", out.part_bytes);
    reader.word("compiled", out.compiled, &parse_compiled_models);
    reader.word("micro_batches", out.micro_batches, &parse_micro_batches);
    reader.boolean("probe", out.probe);
    if (const Json* budget = reader.find("budget"); budget != nullptr && !budget->is_null()) {
        reader.number("budget", out.budget.emplace());
        if (!(*out.budget >= 0 && *out.budget < 1)) reader.fail("'budget' is not a share from 0 to below 1");
    }
    if (const Json* flight = reader.find("flight")) read_flight(*flight, out.flight, reader);
    if (const Json* corrections = reader.find("corrections"))
        read_corrections(*corrections, out.corrections, reader);
    if (const Json* retention = reader.find("retention")) read_retention(*retention, out.retention, reader);
    reader.each("collections", [&](const Json& item) {
        ObjectReader inner(item, "collection");
        inner.only({"name", "include", "exclude"});
        CollectionSpec spec;
        inner.text("name", spec.name);
        if (spec.name.empty()) inner.fail("'name' is missing");
        inner.texts("include", spec.include);
        inner.texts("exclude", spec.exclude);
        if (inner.failed()) reader.fail(inner.status().message());
        out.collections.push_back(std::move(spec));
    });
    std::vector<std::string> known = builtin_collections();
    for (const CollectionSpec& spec : out.collections) known.push_back(spec.name);
    reader.each("requirements", [&](const Json& item) {
        Requirement requirement;
        read_requirement(item, requirement, reader);
        if (!reader.failed() && std::find(known.begin(), known.end(), requirement.collection) == known.end())
            reader.fail(base::format("unknown collection '{}'{}", base::printable(requirement.collection),
                                     base::did_you_mean(requirement.collection, known)));
        out.requirements.push_back(std::move(requirement));
    });
    for (const std::vector<std::string>* names : {&out.flight.collect, &out.flight.raw})
        for (const std::string& name : *names)
            if (std::find(known.begin(), known.end(), name) == known.end())
                reader.fail(base::format("flight: unknown collection '{}'{}", base::printable(name),
                                         base::did_you_mean(name, known)));
    if (reader.failed()) return reader.status();
    return out;
}

Json to_json(const RuleInfo& info) {
    Json parameters = Json::array();
    for (const ParameterInfo& parameter : info.parameters) {
        Json item = {{"name", parameter.name},
                     {"type", to_string(parameter.type)},
                     {"unit", parameter.unit},
                     {"default", parameter_to_json(parameter.fallback)},
                     {"meaning", parameter.meaning}};
        if (parameter.type == ParameterType::kNumber || parameter.type == ParameterType::kWhole)
            item.update({{"min", number_to_json(parameter.min)}, {"max", number_to_json(parameter.max)}});
        if (parameter.type == ParameterType::kChoice) item["choices"] = strings(parameter.choices);
        parameters.push_back(std::move(item));
    }
    return {{"name", info.name},
            {"title", info.title},
            {"summary", info.summary},
            {"when", info.when},
            {"why", info.why},
            {"fix", info.fix},
            {"healthy", info.healthy},
            {"cost", info.cost},
            {"original", info.original},
            {"source", info.source},
            {"readings", info.readings},
            {"severity", to_string(info.severity)},
            {"parameters", std::move(parameters)}};
}

Json to_json(const Finding& finding) {
    Json evidence = Json::array();
    for (const Evidence& item : finding.evidence) {
        Json entry = {{"name", safe(item.name)}, {"value", number_to_json(item.value)}};
        if (!item.relation.empty()) {
            entry["relation"] = safe(item.relation);
            entry["reference"] = number_to_json(item.reference);
        }
        evidence.push_back(std::move(entry));
    }
    return {{"rule", finding.rule},
            {"key", safe(finding.key)},
            {"kind", safe(finding.kind)},
            {"severity", to_string(finding.severity)},
            {"state", to_string(finding.state)},
            {"mode", to_string(finding.mode)},
            {"worker", finding.worker},
            {"first_step", finding.first_step},
            {"step", finding.step},
            {"last_step", finding.last_step},
            {"times", finding.times},
            {"tensor", safe(finding.tensor)},
            {"layer", safe(finding.layer)},
            {"places", finding.places},
            {"message", safe_lines(finding.message)},
            {"fix", safe_lines(finding.fix)},
            {"evidence", std::move(evidence)},
            {"plots", pairs(finding.plots)},
            {"sources", to_json(finding.sources)}};
}

Result<Finding> finding_from_json(std::string_view text) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json json, parse(text, "finding"));
    ObjectReader reader(json, "finding");
    Finding out = read_finding(reader);
    if (reader.failed()) return reader.status();
    return out;
}

Json to_json(const RuleOutcome& outcome) {
    Json out = {
        {"rule", outcome.rule}, {"state", to_string(outcome.state)}, {"steps_judged", outcome.steps_judged}};
    if (!outcome.reason.empty()) out["reason"] = safe(outcome.reason);
    return out;
}

namespace {

Json to_json(const std::vector<CauseEvidence>& evidence) {
    Json out = Json::array();
    for (const CauseEvidence& item : evidence) {
        Json entry = {{"text", safe_lines(item.text)}};
        if (!item.rule.empty()) entry["rule"] = safe(item.rule);
        if (!item.key.empty()) entry["key"] = safe(item.key);
        if (item.step) entry["step"] = *item.step;
        out.push_back(std::move(entry));
    }
    return out;
}

void read_evidence(ObjectReader& reader, const char* key, std::vector<CauseEvidence>& out) {
    reader.each(key, [&](const Json& item) {
        ObjectReader inner(item, key);
        CauseEvidence evidence;
        inner.text("text", evidence.text);
        inner.text("rule", evidence.rule);
        inner.text("key", evidence.key);
        if (inner.find("step") != nullptr) inner.integer("step", evidence.step.emplace());
        if (inner.failed()) reader.fail(inner.status().message());
        out.push_back(std::move(evidence));
    });
}

}  // namespace

Json to_json(const Cause& cause) {
    return {{"name", cause.name},
            {"title", safe(cause.title)},
            {"confidence", number_to_json(cause.confidence)},
            {"sure", is_sure(cause)},
            {"explanation", safe_lines(cause.explanation)},
            {"fix", safe_lines(cause.fix)},
            {"rules", strings(cause.rules)},
            {"evidence_for", to_json(cause.evidence_for)},
            {"evidence_against", to_json(cause.evidence_against)},
            {"sources", to_json(cause.sources)}};
}

Json to_json(const Verdict& verdict) {
    Json findings = Json::array();
    for (const Finding& finding : verdict.findings) findings.push_back(to_json(finding));
    Json outcomes = Json::array();
    for (const RuleOutcome& outcome : verdict.outcomes) outcomes.push_back(to_json(outcome));
    Json causes = Json::array();
    for (const Cause& cause : verdict.causes) causes.push_back(to_json(cause));
    return {{"findings", std::move(findings)}, {"rules", std::move(outcomes)}, {"causes", std::move(causes)}};
}

Result<Verdict> verdict_from_json(std::string_view text) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json json, parse(text, "verdict"));
    Verdict out;
    ObjectReader reader(json, "verdict");
    reader.each("findings", [&](const Json& item) {
        ObjectReader inner(item, "finding");
        out.findings.push_back(read_finding(inner));
        if (inner.failed()) reader.fail(inner.status().message());
    });
    reader.each("rules", [&](const Json& item) {
        ObjectReader inner(item, "rule outcome");
        RuleOutcome outcome;
        inner.text("rule", outcome.rule);
        inner.word("state", outcome.state, &parse_check_state);
        inner.text("reason", outcome.reason);
        inner.integer("steps_judged", outcome.steps_judged);
        if (inner.failed()) reader.fail(inner.status().message());
        out.outcomes.push_back(std::move(outcome));
    });
    reader.each("causes", [&](const Json& item) {
        ObjectReader inner(item, "cause");
        Cause cause;
        inner.text("name", cause.name);
        inner.text("title", cause.title);
        inner.number("confidence", cause.confidence);
        inner.text("explanation", cause.explanation);
        inner.text("fix", cause.fix);
        inner.texts("rules", cause.rules);
        read_evidence(inner, "evidence_for", cause.evidence_for);
        read_evidence(inner, "evidence_against", cause.evidence_against);
        read_sources(inner, cause.sources);
        if (inner.failed()) reader.fail(inner.status().message());
        out.causes.push_back(std::move(cause));
    });
    if (reader.failed()) return reader.status();
    return out;
}

Json to_json(const WorkerMeta& meta) {
    Json optimizers = Json::array();
    for (const OptimizerInfo& optimizer : meta.optimizers) {
        Json settings = Json::object();
        for (const auto& [key, value] : optimizer.settings) settings[safe(key)] = number_to_json(value);
        optimizers.push_back({{"type", safe(optimizer.type)}, {"settings", std::move(settings)}});
    }
    return {{"worker", meta.worker},
            {"pid", meta.pid},
            {"host", safe(meta.host)},
            {"framework", safe(meta.framework)},
            {"python", safe(meta.python)},
            {"traindbg", safe(meta.traindbg)},
            {"model_type", safe(meta.model_type)},
            {"parameters", meta.parameters},
            {"optimizers", std::move(optimizers)},
            {"environment", pairs(meta.environment)},
            {"sources", to_json(meta.sources)}};
}

Result<WorkerMeta> worker_meta_from_json(std::string_view text) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json json, parse(text, "worker description"));
    WorkerMeta out;
    ObjectReader reader(json, "worker description");
    reader.integer("worker", out.worker);
    reader.integer("pid", out.pid);
    reader.text("host", out.host);
    reader.text("framework", out.framework);
    reader.text("python", out.python);
    reader.text("traindbg", out.traindbg);
    reader.text("model_type", out.model_type);
    reader.integer("parameters", out.parameters);
    reader.each("optimizers", [&](const Json& item) {
        ObjectReader inner(item, "optimizer");
        OptimizerInfo optimizer;
        inner.text("type", optimizer.type);
        if (const Json* settings = inner.find("settings"); settings != nullptr && settings->is_object())
            for (const auto& [key, value] : settings->items())
                optimizer.settings.emplace_back(
                    key, number_from_json(value, std::numeric_limits<double>::quiet_NaN()));
        if (inner.failed()) reader.fail(inner.status().message());
        out.optimizers.push_back(std::move(optimizer));
    });
    reader.text_pairs("environment", out.environment);
    read_sources(reader, out.sources);
    if (reader.failed()) return reader.status();
    return out;
}

Json to_json(const RunMeta& meta) {
    return {{"run_id", safe(meta.run_id)},
            {"uuid", safe(meta.uuid)},
            {"command", strings(meta.command)},
            {"working_directory", safe(meta.working_directory)},
            {"started_wall_nanos", meta.started_wall_nanos},
            {"host", safe(meta.host)},
            {"platform", safe(meta.platform)},
            {"traindbg", safe(meta.traindbg)}};
}

Result<RunMeta> run_meta_from_json(std::string_view text) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json json, parse(text, "run description"));
    RunMeta out;
    ObjectReader reader(json, "run description");
    reader.text("run_id", out.run_id);
    reader.text("uuid", out.uuid);
    reader.texts("command", out.command);
    reader.text("working_directory", out.working_directory);
    reader.integer("started_wall_nanos", out.started_wall_nanos);
    reader.text("host", out.host);
    reader.text("platform", out.platform);
    reader.text("traindbg", out.traindbg);
    if (reader.failed()) return reader.status();
    return out;
}

Json to_json(const RunEnd& end) {
    return {{"wall_nanos", end.wall_nanos},
            {"exit_code", end.exit_code},
            {"stopped_by_rule", end.stopped_by_rule},
            {"reason", safe(end.reason)}};
}

Result<RunEnd> run_end_from_json(std::string_view text) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json json, parse(text, "run end"));
    RunEnd out;
    ObjectReader reader(json, "run end");
    reader.integer("wall_nanos", out.wall_nanos);
    reader.integer("exit_code", out.exit_code);
    reader.boolean("stopped_by_rule", out.stopped_by_rule);
    reader.text("reason", out.reason);
    if (reader.failed()) return reader.status();
    return out;
}

Json to_json(const TensorInfo& info) {
    Json out = {{"id", info.id},
                {"name", safe(info.name)},
                {"role", to_string(info.role)},
                {"collection", collection_of(info.role)},
                {"module", safe(info.module)},
                {"module_type", safe(info.module_type)},
                {"layer", info.layer},
                {"dtype", tensor::to_string(info.dtype)},
                {"shape", info.shape}};
    if (info.activation != ActivationKind::kNone) out["activation"] = to_string(info.activation);
    if (!info.collections.empty()) out["collections"] = strings(info.collections);
    if (info.shard)
        out["shard"] = {{"whole_shape", info.shard->whole_shape},
                        {"offset", info.shard->offset},
                        {"placement", safe(info.shard->placement)}};
    return out;
}

Json to_json(const Statistics& statistics) {
    return {{"count", statistics.count},
            {"min", number_to_json(statistics.min)},
            {"max", number_to_json(statistics.max)},
            {"mean", number_to_json(statistics.mean)},
            {"std", number_to_json(statistics.std)},
            {"l1", number_to_json(statistics.l1)},
            {"l2", number_to_json(statistics.l2)},
            {"nan", statistics.nan},
            {"inf", statistics.infinite()},
            {"zero", statistics.zero}};
}

}  // namespace traindbg::model
