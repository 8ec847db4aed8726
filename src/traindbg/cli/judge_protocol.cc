#include "traindbg/cli/judge_protocol.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/model/json.h"

namespace traindbg::cli {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::Json;

std::string line_of(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status unreadable(std::string_view what) {
    return {Code::kDataLoss, base::format("a line between processes that judge: no {}", what)};
}

// Members by name, each of its type or not at all.
class Reader {
  public:
    explicit Reader(const Json& json) : json_(json) {}

    [[nodiscard]] const Json* find(const char* name) const {
        const auto found = json_.find(name);
        return found == json_.end() ? nullptr : &*found;
    }
    [[nodiscard]] std::uint64_t count(const char* name) {
        const Json* value = find(name);
        if (value == nullptr || !value->is_number_unsigned()) return fail(name), 0;
        return value->get<std::uint64_t>();
    }
    [[nodiscard]] std::string text(const char* name) {
        const Json* value = find(name);
        if (value == nullptr || !value->is_string()) return fail(name), std::string();
        return value->get<std::string>();
    }
    [[nodiscard]] std::vector<std::string> texts(const char* name) {
        std::vector<std::string> out;
        const Json* value = find(name);
        if (value == nullptr || !value->is_array()) return fail(name), out;
        for (const Json& each : *value) {
            if (!each.is_string()) return fail(name), out;
            out.push_back(each.get<std::string>());
        }
        return out;
    }
    [[nodiscard]] std::vector<std::uint64_t> counts(const char* name) {
        std::vector<std::uint64_t> out;
        const Json* value = find(name);
        if (value == nullptr || !value->is_array()) return fail(name), out;
        for (const Json& each : *value) {
            if (!each.is_number_unsigned()) return fail(name), out;
            out.push_back(each.get<std::uint64_t>());
        }
        return out;
    }
    void fail(std::string_view what) {
        if (status_.is_ok()) status_ = unreadable(what);
    }
    [[nodiscard]] const Status& status() const noexcept { return status_; }

  private:
    const Json& json_;
    Status status_;
};

Result<Json> parse(std::string_view line) {
    Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object()) return unreadable("object");
    return json;
}

Json to_json(const read::WorkerGaps& gaps) {
    Json stopped = Json::array();
    for (const read::StoppedWorker& worker : gaps.stopped) {
        Json each = {{"worker", worker.worker},
                     {"last_step_of_others", worker.last_step_of_others},
                     {"has_closed", worker.has_closed ? 1U : 0U}};
        if (worker.last_step) each["last_step"] = *worker.last_step;
        stopped.push_back(std::move(each));
    }
    return {{"missing", gaps.missing}, {"stopped", std::move(stopped)}};
}

Result<read::WorkerGaps> gaps_of(const Json& json) {
    read::WorkerGaps gaps;
    Reader reader(json);
    for (const std::uint64_t worker : reader.counts("missing"))
        gaps.missing.push_back(static_cast<model::WorkerId>(worker));
    const Json* stopped = reader.find("stopped");
    if (stopped == nullptr || !stopped->is_array()) return unreadable("stopped");
    for (const Json& each : *stopped) {
        if (!each.is_object()) return unreadable("stopped");
        Reader inner(each);
        read::StoppedWorker worker;
        worker.worker = static_cast<model::WorkerId>(inner.count("worker"));
        worker.last_step_of_others = inner.count("last_step_of_others");
        worker.has_closed = inner.count("has_closed") != 0;
        if (inner.find("last_step") != nullptr) worker.last_step = inner.count("last_step");
        TRAINDBG_RETURN_IF_ERROR(inner.status());
        gaps.stopped.push_back(worker);
    }
    TRAINDBG_RETURN_IF_ERROR(reader.status());
    return gaps;
}

struct ToJson {
    Json operator()(const FindingSaid& said) const {
        const engine::Moment& moment = said.moment;
        return {{"say", "finding"},
                {"number", said.number},
                {"moment", {moment.steps, static_cast<unsigned>(moment.phase), moment.worker, moment.rule}},
                {"event", static_cast<unsigned>(said.event)},
                {"finding", model::to_json(said.finding)}};
    }
    Json operator()(const OutcomeSaid& said) const {
        return {{"say", "outcome"}, {"place", said.rule}, {"outcome", model::to_json(said.outcome)}};
    }
    Json operator()(const MetaSaid& said) const {
        return {{"say", "meta"}, {"meta", model::to_json(said.meta)}};
    }
    Json operator()(const TroubleSaid& said) const { return {{"say", "trouble"}, {"what", said.what}}; }
    Json operator()(const ProgressSaid& said) const {
        Json json = {{"say", "progress"}};
        if (said.newest_step) json["newest_step"] = *said.newest_step;
        return json;
    }
    Json operator()(const DoneSaid& said) const {
        return {{"say", "done"},
                {"damaged_places", said.unseen.damaged_places},
                {"workers", to_json(said.unseen.workers)}};
    }
    Json operator()(const FailureSaid& said) const {
        return {{"say", "failure"},
                {"code", static_cast<unsigned>(said.status.code())},
                {"message", said.status.message()}};
    }
};

Result<JudgeLine> finding_of(Reader& reader, std::uint64_t rules) {
    FindingSaid said;
    said.number = reader.count("number");
    const std::vector<std::uint64_t> moment = reader.counts("moment");
    const std::uint64_t event = reader.count("event");
    const Json* finding = reader.find("finding");
    TRAINDBG_RETURN_IF_ERROR(reader.status());
    if (finding == nullptr || moment.size() != 4 || moment[3] >= rules) return unreadable("finding");
    if (moment[1] > static_cast<std::uint64_t>(engine::Phase::kTimeAtEnd) ||
        event > static_cast<std::uint64_t>(FindingSaid::Event::kPending))
        return unreadable("finding");
    said.moment = {moment[0], static_cast<engine::Phase>(moment[1]), static_cast<model::WorkerId>(moment[2]),
                   moment[3]};
    said.event = static_cast<FindingSaid::Event>(event);
    TRAINDBG_ASSIGN_OR_RETURN(said.finding, model::finding_from_json(finding->dump()));
    return JudgeLine(std::move(said));
}

Result<JudgeLine> outcome_of(Reader& reader, std::uint64_t rules) {
    OutcomeSaid said;
    said.rule = reader.count("place");
    const Json* json = reader.find("outcome");
    TRAINDBG_RETURN_IF_ERROR(reader.status());
    if (json == nullptr || !json->is_object() || said.rule >= rules) return unreadable("outcome");
    Reader inner(*json);
    said.outcome.rule = inner.text("rule");
    const auto state = model::parse_check_state(inner.text("state"));
    said.outcome.steps_judged = inner.count("steps_judged");
    if (inner.find("reason") != nullptr) said.outcome.reason = inner.text("reason");
    TRAINDBG_RETURN_IF_ERROR(inner.status());
    if (!state) return unreadable("state");
    said.outcome.state = *state;
    return JudgeLine(std::move(said));
}

}  // namespace

std::string to_line(const JudgeTask& task) {
    Json choices = Json::array();
    for (std::size_t i = 0; i < task.choices.size(); ++i) {
        Json parameters = Json::object();
        for (const auto& [name, value] : task.choices[i].parameters)
            parameters[name] = model::parameter_to_json(value);
        choices.push_back({{"name", task.choices[i].name},
                           {"place", task.places[i]},
                           {"parameters", std::move(parameters)}});
    }
    return line_of({{"rules", std::move(choices)},
                    {"plugins", task.custom.plugins},
                    {"python", task.custom.python},
                    {"memory", task.custom.memory},
                    {"runs", task.runs},
                    {"timeout", task.custom.timeout},
                    {"live", task.is_live ? 1U : 0U}});
}

std::string to_line(const JudgeLine& line) { return line_of(std::visit(ToJson{}, line)); }

Result<JudgeTask> judge_task_of(std::string_view line) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json json, parse(line));
    Reader reader(json);
    JudgeTask task;
    task.custom.plugins = reader.texts("plugins");
    task.custom.python = reader.texts("python");
    task.custom.memory = reader.text("memory");
    task.runs = reader.text("runs");
    task.is_live = reader.count("live") != 0;
    const Json* timeout = reader.find("timeout");
    const Json* rules = reader.find("rules");
    TRAINDBG_RETURN_IF_ERROR(reader.status());
    if (timeout == nullptr || !timeout->is_number()) return unreadable("timeout");
    task.custom.timeout = timeout->get<double>();
    if (rules == nullptr || !rules->is_array()) return unreadable("rules");
    for (const Json& each : *rules) {
        if (!each.is_object()) return unreadable("rule");
        Reader inner(each);
        rules::RuleChoice choice;
        choice.name = inner.text("name");
        task.places.push_back(inner.count("place"));
        const Json* parameters = inner.find("parameters");
        TRAINDBG_RETURN_IF_ERROR(inner.status());
        if (parameters == nullptr || !parameters->is_object()) return unreadable("parameters");
        for (const auto& [name, value] : parameters->items()) {
            const auto parameter = model::parameter_from_json(value);
            if (!parameter) return unreadable("parameter");
            choice.parameters[name] = *parameter;
        }
        task.choices.push_back(std::move(choice));
    }
    return task;
}

Result<JudgeLine> judge_line_of(std::string_view line, std::uint64_t rules) {
    TRAINDBG_ASSIGN_OR_RETURN(const Json json, parse(line));
    Reader reader(json);
    const std::string say = reader.text("say");
    if (say == "finding") return finding_of(reader, rules);
    if (say == "outcome") return outcome_of(reader, rules);
    JudgeLine said;
    if (say == "progress") {
        ProgressSaid progress;
        if (reader.find("newest_step") != nullptr) progress.newest_step = reader.count("newest_step");
        said = progress;
    } else if (say == "trouble") {
        said = TroubleSaid{reader.text("what")};
    } else if (say == "meta") {
        const Json* meta = reader.find("meta");
        if (meta == nullptr) return unreadable("meta");
        TRAINDBG_ASSIGN_OR_RETURN(model::WorkerMeta read, model::worker_meta_from_json(meta->dump()));
        said = MetaSaid{std::move(read)};
    } else if (say == "done") {
        DoneSaid done;
        done.unseen.damaged_places = reader.count("damaged_places");
        const Json* workers = reader.find("workers");
        if (workers == nullptr || !workers->is_object()) return unreadable("workers");
        TRAINDBG_ASSIGN_OR_RETURN(done.unseen.workers, gaps_of(*workers));
        said = std::move(done);
    } else if (say == "failure") {
        const std::uint64_t code = reader.count("code");
        std::string message = reader.text("message");
        if (code == 0 || code > static_cast<std::uint64_t>(Code::kInternal)) return unreadable("code");
        said = FailureSaid{Status(static_cast<Code>(code), std::move(message))};
    } else {
        return unreadable("word");
    }
    TRAINDBG_RETURN_IF_ERROR(reader.status());
    return said;
}

}  // namespace traindbg::cli
