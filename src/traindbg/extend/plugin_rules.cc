#include "traindbg/extend/plugin_rules.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/extend/rule_names.h"
#include "traindbg/extend/shown_step.h"
#include "traindbg/plugin.h"
#include "traindbg/tensor/dtype.h"

using traindbg::model::What;

// The handles that a plugin gets are ours.
struct traindbg_parameters {
    const traindbg::rules::Parameters* values;
};

struct traindbg_needs {
    std::vector<traindbg::model::Requirement> needs;
    std::string rule;
    std::string wrong;
};

struct traindbg_step {
    const traindbg::extend::ShownStep* step;
};

struct traindbg_sink {
    traindbg::rules::FindingSink* findings;  // null while a rule is made
    std::string said;
};

namespace traindbg::extend {
namespace {

using base::Code;
using base::Result;
using base::Status;

// What a description may hold; more is taken for one that points nowhere.
constexpr std::size_t kMostRules = 1000;
constexpr std::size_t kMostParameters = 100;
constexpr std::size_t kMostEvidence = 100;

std::string text_of(const char* text) { return text == nullptr ? std::string() : std::string(text); }

static_assert(static_cast<std::uint32_t>(What::kStatistics) == TRAINDBG_STATISTICS &&
              static_cast<std::uint32_t>(What::kUnits) == TRAINDBG_UNITS &&
              static_cast<std::uint32_t>(What::kClasses) == TRAINDBG_CLASSES &&
              static_cast<std::uint32_t>(What::kRaw) == TRAINDBG_RAW &&
              static_cast<std::uint32_t>(What::kHistogram) == TRAINDBG_HISTOGRAM &&
              static_cast<std::uint32_t>(What::kChannels) == TRAINDBG_CHANNELS &&
              static_cast<std::uint32_t>(What::kDigest) == TRAINDBG_DIGEST);
constexpr std::uint32_t kAllKinds = 127;
static_assert(static_cast<int>(model::Mode::kTrain) == TRAINDBG_TRAIN &&
              static_cast<int>(model::Mode::kEval) == TRAINDBG_EVAL &&
              static_cast<int>(model::Mode::kPredict) == TRAINDBG_PREDICT);
static_assert(static_cast<int>(model::Severity::kError) == TRAINDBG_ERROR);

// Writes as much of `from` as the plugin's struct has room for; it begins with its size.
template <typename T>
void hand_out(T* out, T from) {
    from.size = out->size;
    std::memcpy(out, &from, std::min(out->size, sizeof(T)));
}

// Reads as much of the plugin's struct as there is; the rest is zero.
template <typename T>
T take_in(const T* given) {
    T taken{};
    std::memcpy(&taken, given, std::min(given->size, sizeof(T)));
    return taken;
}

// What the plugin calls. None may throw through C; what they do can fail for want of memory only.

int host_number(const traindbg_parameters* parameters, const char* name, double* value) {
    if (!parameters->values->contains(name)) return 0;
    const double* number = parameters->values->value(name).number();
    if (number != nullptr) *value = *number;
    return number != nullptr ? 1 : 0;
}

int host_flag(const traindbg_parameters* parameters, const char* name, int* value) {
    if (!parameters->values->contains(name)) return 0;
    const bool* flag = parameters->values->value(name).flag();
    if (flag != nullptr) *value = *flag ? 1 : 0;
    return flag != nullptr ? 1 : 0;
}

int host_text(const traindbg_parameters* parameters, const char* name, const char** value) {
    if (!parameters->values->contains(name)) return 0;
    const std::string* text = parameters->values->value(name).text();
    if (text != nullptr) *value = text->c_str();
    return text != nullptr ? 1 : 0;
}

int host_need(traindbg_needs* needs, const char* collection, std::uint32_t what, std::int32_t mode,
              std::uint64_t every, std::uint64_t dense_until) {
    const bool is_mode = mode >= TRAINDBG_TRAIN && mode <= TRAINDBG_PREDICT;
    if (!is_mode || what == 0 || (what & ~kAllKinds) != 0 || text_of(collection).empty()) {
        needs->wrong = base::format("needs '{}', kinds {}, mode {}: there is no such thing",
                                    base::printable(text_of(collection)), what, mode);
        return 0;
    }
    needs->needs.push_back({.collection = collection,
                            .mode = static_cast<model::Mode>(mode),
                            .what = static_cast<What>(what),
                            .schedule = {.every = every, .dense_until = dense_until},
                            .asked_by = needs->rule});
    return 1;
}

std::int32_t host_mode(const traindbg_step* step) {
    return static_cast<std::int32_t>(step->step->view.mode());
}
std::uint64_t host_index(const traindbg_step* step) { return step->step->view.step(); }
std::uint32_t host_worker(const traindbg_step* step) { return step->step->view.worker; }

const char* host_fact(const traindbg_step* step, const char* name) {
    const model::WorkerMeta& meta = *step->step->view.meta;
    const std::string_view what = name;
    if (what == "model_type") return meta.model_type.c_str();
    if (what == "framework") return meta.framework.c_str();
    if (what == "optimizer" && !meta.optimizers.empty()) return meta.optimizers.front().type.c_str();
    return "";
}

int host_setting(const traindbg_step* step, const char* name, double* value) {
    const model::WorkerMeta& meta = *step->step->view.meta;
    if (std::string_view(name) == "parameters") {
        *value = static_cast<double>(meta.parameters);
        return meta.parameters != 0 ? 1 : 0;
    }
    if (meta.optimizers.empty()) return 0;
    for (const auto& [key, number] : meta.optimizers.front().settings)
        if (key == name) {
            *value = number;
            return 1;
        }
    return 0;
}

std::size_t host_tensor_count(const traindbg_step* step) { return step->step->tensors.size(); }

const ShownTensor* at(const traindbg_step* step, std::size_t number) {
    return number < step->step->tensors.size() ? &step->step->tensors[number] : nullptr;
}

int host_tensor(const traindbg_step* step, std::size_t number, traindbg_tensor* out) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr) return 0;
    const model::TensorInfo& info = *tensor->info;
    // Views of literals, which end with a NUL.
    hand_out(out, {.size = 0,
                   .name = info.name.c_str(),
                   .role = model::to_string(info.role).data(),
                   .collection = model::collection_of(info.role).data(),
                   .module = info.module.c_str(),
                   .module_type = info.module_type.c_str(),
                   .activation = model::to_string(info.activation).data(),
                   .dtype = tensor::to_string(info.dtype).data(),
                   .layer = info.layer,
                   .rank = static_cast<std::uint32_t>(info.shape.size()),
                   .shape = info.shape.data(),
                   .has = static_cast<std::uint32_t>(tensor->what())});
    return 1;
}

int host_value(const traindbg_step* step, std::size_t number, double* out) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr || tensor->scalar == nullptr) return 0;
    *out = tensor->scalar->value;
    return 1;
}

int host_statistics(const traindbg_step* step, std::size_t number, traindbg_statistics* out) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr || !tensor->has_statistics) return 0;
    const model::Statistics& s = tensor->sample->statistics;
    hand_out(out, {0, s.count, s.nan, s.positive_infinite, s.negative_infinite, s.zero, s.min, s.max, s.mean,
                   s.std, s.l1, s.l2});
    return 1;
}

int host_units(const traindbg_step* step, std::size_t number, traindbg_units* out) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr || !tensor->has_units) return 0;
    const model::UnitStatistics& units = tensor->sample->units;
    hand_out(out, {0, units.units, units.inactive_units, units.low, units.high});
    return 1;
}

int host_classes(const traindbg_step* step, std::size_t number, traindbg_classes* out) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr || tensor->classes == nullptr) return 0;
    const model::ClassCounts& counts = *tensor->classes;
    hand_out(out,
             {0, counts.labels.size(), counts.labels.data(), counts.predictions.data(), counts.hits.data()});
    return 1;
}

int host_channels(const traindbg_step* step, std::size_t number, traindbg_channels* out) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr || tensor->channels == nullptr) return 0;
    const model::ChannelStatistics& channels = *tensor->channels;
    hand_out(out, {0, channels.channels(), channels.min.data(), channels.max.data(), channels.zero.data()});
    return 1;
}

int host_digest(const traindbg_step* step, std::size_t number, traindbg_digest* out) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr || tensor->digest == nullptr) return 0;
    hand_out(out, {0, tensor->digest->fingerprint, tensor->digest->product});
    return 1;
}

int host_raw(const traindbg_step* step, std::size_t number, traindbg_raw* out) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr || tensor->raw == nullptr) return 0;
    const model::RawTensor& raw = *tensor->raw;
    hand_out(out, {0, tensor::to_string(raw.dtype).data(), static_cast<std::uint32_t>(raw.shape.size()),
                   raw.shape.data(), raw.bytes.data(), raw.bytes.size()});
    return 1;
}

std::size_t host_histogram(const traindbg_step* step, std::size_t number, traindbg_bin* out,
                           std::size_t room) {
    const ShownTensor* tensor = at(step, number);
    if (tensor == nullptr || tensor->histogram == nullptr) return 0;
    const model::Histogram& bins = *tensor->histogram;
    for (std::size_t i = 0; i < std::min(room, bins.size()); ++i) {
        const model::BinEdges edges = model::edges(bins[i].bin);
        out[i] = {edges.lower, edges.upper, bins[i].count};
    }
    return bins.size();
}

void host_fire(traindbg_sink* sink, const traindbg_finding* finding) {
    if (sink->findings == nullptr) return;
    const traindbg_finding given = take_in(finding);
    model::Finding out;
    out.key = text_of(given.key);
    out.kind = text_of(given.kind);
    out.severity =
        static_cast<model::Severity>(std::clamp<std::int32_t>(given.severity, TRAINDBG_INFO, TRAINDBG_ERROR));
    out.first_step = given.first_step;
    out.tensor = text_of(given.tensor);
    out.layer = text_of(given.layer);
    out.places = std::max<std::uint64_t>(given.places, 1);
    out.message = text_of(given.message);
    out.fix = text_of(given.fix);
    for (std::size_t i = 0; i < std::min(given.evidence_count, kMostEvidence); ++i) {
        const traindbg_evidence& each = given.evidence[i];
        out.evidence.push_back({text_of(each.name), each.value, text_of(each.relation), each.reference});
    }
    sink->findings->fire(std::move(out));
}

void host_clear(traindbg_sink* sink, const char* key) {
    if (sink->findings != nullptr) sink->findings->clear(key == nullptr ? "" : key);
}

void host_say(traindbg_sink* sink, const char* why) { sink->said = text_of(why); }

const traindbg_host& host() {
    static const std::string version(base::version());
    static const traindbg_host table = {.size = sizeof(traindbg_host),
                                        .abi = TRAINDBG_PLUGIN_ABI,
                                        .version = version.c_str(),
                                        .number = &host_number,
                                        .flag = &host_flag,
                                        .text = &host_text,
                                        .need = &host_need,
                                        .mode = &host_mode,
                                        .index = &host_index,
                                        .worker = &host_worker,
                                        .fact = &host_fact,
                                        .setting = &host_setting,
                                        .tensor_count = &host_tensor_count,
                                        .tensor = &host_tensor,
                                        .value = &host_value,
                                        .statistics = &host_statistics,
                                        .units = &host_units,
                                        .classes = &host_classes,
                                        .channels = &host_channels,
                                        .digest = &host_digest,
                                        .raw = &host_raw,
                                        .histogram = &host_histogram,
                                        .fire = &host_fire,
                                        .clear = &host_clear,
                                        .say = &host_say};
    return table;
}

// A rule of a plugin, for as long as the process lives.
struct Loaded {
    const traindbg_rule* self = nullptr;  // the plugin's
    traindbg_rule rule{};                 // what we know of it
    model::RuleInfo info;
};

Result<std::vector<model::Requirement>> needs_of(const Loaded& loaded, const rules::Parameters& parameters) {
    const traindbg_parameters handle{&parameters};
    traindbg_needs needs{{}, loaded.info.name, {}};
    loaded.rule.needs(loaded.self, &host(), &handle, &needs);
    if (!needs.wrong.empty())
        return Status(Code::kInvalidArgument, base::format("rule {}: {}", loaded.info.name, needs.wrong));
    return std::move(needs.needs);
}

class PluginRule final : public rules::Rule {
  public:
    PluginRule(std::shared_ptr<const Loaded> loaded, rules::Parameters parameters)
        : loaded_(std::move(loaded)), parameters_(std::move(parameters)), handle_{&parameters_} {
        auto needs = needs_of(*loaded_, parameters_);
        if (!needs.is_ok()) {
            failure_ = needs.status().message();
            return;
        }
        filter_.emplace(std::move(needs).value());
        traindbg_sink sink{nullptr, {}};
        state_ = loaded_->rule.create(loaded_->self, &host(), &handle_, &sink);
        made_ = sink.said.empty();
        failure_ = std::move(sink.said);
    }
    ~PluginRule() override {
        if (made_ && loaded_->rule.destroy != nullptr) loaded_->rule.destroy(state_);
    }

    void on_step(const model::StepView& step, rules::FindingSink& findings) override {
        if (!failure_.empty()) return;
        const ShownStep& shown = filter_->show(step);
        if (shown.empty()) return;
        ++shown_;
        const traindbg_step handle{&shown};
        traindbg_sink sink{&findings, {}};
        const int code = loaded_->rule.on_step(state_, &host(), &handle, &sink);
        if (code == TRAINDBG_JUDGED) ++judged_;
        else if (code == TRAINDBG_NOTHING) why_not_ = std::move(sink.said);
        else
            failure_ = base::format("failed at {} step {}: {}", model::to_string(step.mode()), step.step(),
                                    sink.said.empty() ? "it did not say why" : sink.said);
    }

    void on_end(rules::FindingSink& findings) override {
        if (!failure_.empty() || loaded_->rule.on_end == nullptr) return;
        traindbg_sink sink{&findings, {}};
        loaded_->rule.on_end(state_, &host(), &sink);
        if (!sink.said.empty()) failure_ = "failed at the end: " + sink.said;
    }

    [[nodiscard]] std::uint64_t steps_judged() const override { return judged_; }
    [[nodiscard]] std::string why_not_judged() const override {
        if (shown_ == 0) return "nothing that it needs was recorded";
        return why_not_.empty() ? "no step gave it anything to judge" : why_not_;
    }
    [[nodiscard]] std::string failure() const override { return failure_; }

  private:
    std::shared_ptr<const Loaded> loaded_;
    rules::Parameters parameters_;
    traindbg_parameters handle_;
    std::optional<StepFilter> filter_;
    void* state_ = nullptr;
    bool made_ = false;
    std::uint64_t shown_ = 0;
    std::uint64_t judged_ = 0;
    std::string why_not_;
    std::string failure_;
};

// Element `i` of an array of structs whose size only their maker knows.
template <typename T>
const T* element(const T* first, std::size_t i) {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(first) + i * first->size);
}

Result<model::ParameterInfo> describe_parameter(const traindbg_parameter& given) {
    model::ParameterInfo info;
    info.name = text_of(given.name);
    if (!is_name(info.name))
        return Status(
            Code::kInvalidArgument,
            base::format("parameter '{}': a name has letters, digits and '_'", base::printable(info.name)));
    info.meaning = text_of(given.meaning);
    info.unit = text_of(given.unit);
    info.min = given.min;
    info.max = given.max;
    switch (given.type) {
        case TRAINDBG_NUMBER:
        case TRAINDBG_WHOLE:
            info.type =
                given.type == TRAINDBG_NUMBER ? model::ParameterType::kNumber : model::ParameterType::kWhole;
            info.fallback = given.number;
            break;
        case TRAINDBG_FLAG:
            info.type = model::ParameterType::kFlag;
            info.fallback = given.number != 0;
            break;
        case TRAINDBG_TEXT:
            info.type = model::ParameterType::kText;
            info.fallback = text_of(given.text);
            break;
        default:
            return Status(Code::kInvalidArgument,
                          base::format("parameter {}: there is no type {}", info.name, given.type));
    }
    return info;
}

Result<model::RuleInfo> describe(const traindbg_rule& given) {
    model::RuleInfo info;
    info.name = text_of(given.name);
    if (!is_name(info.name))
        return Status(Code::kInvalidArgument, base::format("rule '{}': a name has letters, digits and '_'",
                                                           base::printable(info.name)));
    const auto wrong = [&](const std::string& what) {
        return Status(Code::kInvalidArgument, base::format("rule {}: {}", info.name, what));
    };
    if (given.needs == nullptr || given.create == nullptr || given.on_step == nullptr)
        return wrong("one of `needs`, `create` and `on_step` is missing");
    if (given.severity < TRAINDBG_INFO || given.severity > TRAINDBG_ERROR)
        return wrong(base::format("there is no severity {}", given.severity));
    info.title = text_of(given.title);
    if (info.title.empty()) info.title = info.name;
    info.summary = text_of(given.summary);
    info.when = text_of(given.when);
    info.why = text_of(given.why);
    info.fix = text_of(given.fix);
    info.healthy = text_of(given.healthy);
    info.severity = static_cast<model::Severity>(given.severity);
    if (given.parameter_count > kMostParameters ||
        (given.parameter_count != 0 && given.parameters == nullptr))
        return wrong(base::format("{} parameters", given.parameter_count));
    for (std::size_t i = 0; i < given.parameter_count; ++i) {
        if (given.parameters->size < sizeof(traindbg_parameter)) return wrong("its parameters have no size");
        auto parameter = describe_parameter(take_in(element(given.parameters, i)));
        if (!parameter.is_ok()) return wrong(parameter.status().message());
        if (std::any_of(info.parameters.begin(), info.parameters.end(),
                        [&](const auto& known) { return known.name == parameter->name; }))
            return wrong(base::format("two parameters are called {}", parameter->name));
        info.parameters.push_back(std::move(parameter).value());
    }
    const auto complete = rules::complete_parameters(info, rules::defaults_of(info));
    if (!complete.is_ok()) return wrong("the default of " + complete.status().message());
    return info;
}

Result<const traindbg_plugin*> open_plugin(const std::string& path, const std::string& shown) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
        return Status(Code::kNotFound, shown + ": there is no such file");
    // A name without a slash would be searched elsewhere.
    const std::string file = std::filesystem::absolute(path, error).string();
    void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
        const char* why = ::dlerror();
        return Status(Code::kInvalidArgument,
                      base::format("{}: cannot be loaded as a shared library: {}", shown,
                                   base::printable(why == nullptr ? "" : why)));
    }
    void* symbol = ::dlsym(library, "traindbg_plugin_describe");
    if (symbol == nullptr)
        return Status(
            Code::kInvalidArgument,
            shown + ": is no plugin: it exports no traindbg_plugin_describe; see traindbg/plugin.h");
    const auto* plugin = reinterpret_cast<decltype(&traindbg_plugin_describe)>(symbol)();
    if (plugin == nullptr)
        return Status(Code::kInvalidArgument, shown + ": traindbg_plugin_describe gave a null pointer");
    if (plugin->abi != TRAINDBG_PLUGIN_ABI)
        return Status(Code::kUnsupported,
                      base::format("{}: is a plugin for version {} of the interface; this traindbg ({}) has "
                                   "version {}: build it with this one's traindbg/plugin.h",
                                   shown, plugin->abi, base::version(), TRAINDBG_PLUGIN_ABI));
    return plugin;
}

}  // namespace

Result<std::vector<rules::RuleEntry>> load_plugin(const std::string& path) {
    const std::string shown = base::printable(path);
    TRAINDBG_ASSIGN_OR_RETURN(const traindbg_plugin* plugin, open_plugin(path, shown));
    const auto wrong = [&](const std::string& what) {
        return Status(Code::kInvalidArgument, base::format("{}: {}", shown, what));
    };
    if (plugin->rule_count == 0 || plugin->rule_count > kMostRules || plugin->rules == nullptr)
        return wrong(base::format("describes {} rules", plugin->rule_count));
    if (plugin->rules->size < sizeof(traindbg_rule)) return wrong("its rules have no size");
    std::vector<rules::RuleEntry> entries;
    for (std::size_t i = 0; i < plugin->rule_count; ++i) {
        auto loaded = std::make_shared<Loaded>();
        loaded->self = element(plugin->rules, i);
        loaded->rule = take_in(loaded->self);
        auto info = describe(loaded->rule);
        if (!info.is_ok()) return wrong(info.status().message());
        loaded->info = std::move(info).value();
        const auto needs = needs_of(*loaded, rules::defaults_of(loaded->info));
        if (!needs.is_ok()) return wrong(needs.status().message());
        rules::RuleEntry entry;
        entry.info = &loaded->info;  // lives as long as the functions that hold `loaded`
        entry.needs = [loaded](const rules::Parameters& parameters) { return needs_of(*loaded, parameters); };
        entry.make = [loaded](const rules::Parameters& parameters) {
            return std::make_unique<PluginRule>(loaded, parameters);
        };
        entry.wants_raw = std::any_of(needs->begin(), needs->end(),
                                      [](const auto& need) { return has(need.what, What::kRaw); });
        entry.origin = path;
        entry.outlives_trainings = true;  // it is not told where another one begins
        entries.push_back(std::move(entry));
    }
    return entries;
}

}  // namespace traindbg::extend
