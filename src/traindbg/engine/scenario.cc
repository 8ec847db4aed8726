#include "traindbg/engine/scenario.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/engine/engine.h"
#include "traindbg/tensor/dtype.h"

namespace traindbg::scenario {
namespace {

using base::Result;
using base::Status;

using Words = std::vector<std::string>;

// Splits at blanks; "in quotes" is one word.
Words split(std::string_view text) {
    Words words;
    std::string word;
    bool quoted = false;
    for (const char c : text) {
        if (c == '"') {
            quoted = !quoted;
        } else if (!quoted && (c == ' ' || c == '\t')) {
            if (!word.empty()) words.push_back(std::exchange(word, {}));
        } else {
            word += c;
        }
    }
    if (!word.empty()) words.push_back(word);
    return words;
}

std::optional<double> number(std::string_view text) {
    if (text == "nan") return std::nan("");
    if (text == "inf") return HUGE_VAL;
    if (text == "-inf") return -HUGE_VAL;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

// Noise that is the same everywhere: about normal, of standard deviation 1.
class Noise {
  public:
    double next() {
        double sum = 0;
        for (int i = 0; i < 12; ++i) {
            state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
            sum += static_cast<double>(state_ >> 11) / 9007199254740992.0;
        }
        return sum - 6;
    }

  private:
    std::uint64_t state_ = 20260101;
};

class Parser {
  public:
    Result<Scenario> run(std::string_view text) {
        std::istringstream lines{std::string(text)};
        std::string whole;  // a line and those that go on with it
        int number = 0;
        const auto flush = [&] {
            const Words words = split(whole);
            return words.empty() ? Status::ok() : take(words, std::exchange(whole, {}));
        };
        for (std::string line; std::getline(lines, line);) {
            ++number;
            if (const std::size_t hash = line.find('#'); hash != std::string::npos) line.resize(hash);
            if (!line.starts_with(' ')) {
                TRAINDBG_RETURN_IF_ERROR(flush());
                whole.clear();
                line_ = number;
            }
            whole += line + ' ';
        }
        TRAINDBG_RETURN_IF_ERROR(flush());
        return finish();
    }

  private:
    Status wrong(const std::string& what) const {
        return Status(base::Code::kInvalidArgument, base::format("line {}: {}", line_, what));
    }

    Status take(const Words& words, const std::string& line) {
        const std::string& verb = words[0];
        if (verb == "scenario:") {
            scenario_.title = line.substr(line.find(':') + 1);
            return Status::ok();
        }
        if (verb == "rank") return take_rank(words);
        if (verb == "environment") return take_environment(words);
        if (verb == "optimizer") return take_optimizer(words);
        if (verb == "tensor") return take_tensor(words);
        if (verb == "rules") return take_rules(words);
        if (verb == "eval") return take_eval(words);
        if (verb == "series") return take_series(words);
        if (verb == "classes") return take_classes(words);
        if (verb == "histogram") return take_histogram(words);
        if (verb == "digests") return take_digests(words);
        if (verb == "channels") return take_channels(words);
        if (verb == "raw") return take_raw(words);
        if (verb == "time") return take_time(words);
        if (verb == "expect") return take_expectation(words);
        return wrong("unknown word '" + verb + "'");
    }

    // "key=value" words from `first` on.
    Result<std::map<std::string, std::string>> settings(const Words& words, std::size_t first) const {
        std::map<std::string, std::string> all;
        for (std::size_t i = first; i < words.size(); ++i) {
            const std::size_t equals = words[i].find('=');
            if (equals == std::string::npos) return wrong("expected key=value, not '" + words[i] + "'");
            all[words[i].substr(0, equals)] = words[i].substr(equals + 1);
        }
        return all;
    }

    // rank 1: what follows is of this rank; before the first such line, of rank 0.
    Status take_rank(const Words& words) {
        const auto rank = words.size() == 2 ? number(words[1]) : std::nullopt;
        if (!rank || *rank < 0 || *rank > 1000 || *rank != std::floor(*rank))
            return wrong("expected: rank N");
        scenario_.workers.try_emplace(0);
        worker_ = static_cast<model::WorkerId>(*rank);
        // Described as the one before, until it says otherwise.
        scenario_.workers.try_emplace(worker_, model::WorkerMeta(scenario_.workers.at(0)));
        return Status::ok();
    }

    // environment NAME=VALUE ...: of the rank
    Status take_environment(const Words& words) {
        TRAINDBG_ASSIGN_OR_RETURN(const auto given, settings(words, 1));
        for (const auto& [name, value] : given)
            scenario_.workers[worker_].environment.emplace_back(name, value);
        return Status::ok();
    }

    Status take_optimizer(const Words& words) {
        if (words.size() < 2) return wrong("optimizer needs a type");
        TRAINDBG_ASSIGN_OR_RETURN(const auto given, settings(words, 2));
        model::OptimizerInfo info;
        info.type = words[1];
        for (const auto& [key, text] : given) {
            const auto value = number(text);
            if (!value) return wrong("not a number: " + text);
            info.settings.emplace_back(key, *value);
        }
        scenario_.workers[worker_].optimizers.push_back(std::move(info));
        return Status::ok();
    }

    Status take_tensor(const Words& words) {
        if (words.size() < 2) return wrong("tensor needs a name");
        TRAINDBG_ASSIGN_OR_RETURN(const auto given, settings(words, 2));
        model::TensorInfo& info = tensor(words[1]);
        for (const auto& [key, value] : given) {
            if (key == "layer") info.layer = std::stoi(value);
            else if (key == "type") info.module_type = value;
            else if (key == "module") info.module = value;
            else if (key == "kind") {
                const auto kind = model::parse_activation_kind(value);
                if (!kind) return wrong("unknown kind " + value);
                info.activation = *kind;
            } else if (key == "dtype") {
                const auto dtype = tensor::parse_dtype(value);
                if (!dtype) return wrong("unknown dtype " + value);
                info.dtype = *dtype;
            } else if (key == "shape") {
                info.shape.clear();
                std::istringstream parts(value);
                for (std::string part; std::getline(parts, part, 'x');)
                    info.shape.push_back(std::stoll(part));
            } else {
                return wrong("unknown key " + key);
            }
        }
        return Status::ok();
    }

    Status take_rules(const Words& words) {
        for (std::size_t i = 1; i < words.size(); ++i) {
            const std::size_t dot = words[i].find('.');
            if (dot == std::string::npos) {
                scenario_.rules.push_back({words[i], {}});
                continue;
            }
            const std::size_t equals = words[i].find('=', dot);
            const std::string name = words[i].substr(0, dot);
            const auto rule = std::find_if(scenario_.rules.begin(), scenario_.rules.end(),
                                           [&](const auto& choice) { return choice.name == name; });
            if (rule == scenario_.rules.end() || equals == std::string::npos)
                return wrong("expected RULE RULE.PARAMETER=VALUE, not '" + words[i] + "'");
            rule->parameters[words[i].substr(dot + 1, equals - dot - 1)] = words[i].substr(equals + 1);
        }
        return Status::ok();
    }

    // eval 3 after 27 55: three EVAL steps after TRAIN step 27, three after 55.
    Status take_eval(const Words& words) {
        const auto count = words.size() < 4 || words[2] != "after" ? std::nullopt : number(words[1]);
        if (!count) return wrong("expected: eval COUNT after STEPS");
        TRAINDBG_ASSIGN_OR_RETURN(const auto steps, step_list(words[3]));
        for (const std::uint64_t step : steps)
            times_[worker_].evals_after[step] += static_cast<std::uint64_t>(*count);
        return Status::ok();
    }

    // 0..99, 0..500/10, 3,5,7..9
    Result<std::vector<std::uint64_t>> step_list(const std::string& text) const {
        std::vector<std::uint64_t> steps;
        std::istringstream parts(text);
        for (std::string part; std::getline(parts, part, ',');) {
            std::uint64_t every = 1;
            if (const std::size_t slash = part.find('/'); slash != std::string::npos) {
                every = std::stoull(part.substr(slash + 1));
                part.resize(slash);
            }
            const std::size_t dots = part.find("..");
            if (part.empty() || every == 0 || part.find_first_not_of("0123456789.") != std::string::npos)
                return wrong("bad steps: " + text);
            const std::uint64_t first = std::stoull(part);
            const std::uint64_t last = dots == std::string::npos ? first : std::stoull(part.substr(dots + 2));
            for (std::uint64_t step = first; step <= last; step += every) steps.push_back(step);
        }
        return steps;
    }

    // 2.3 2.2x5 2.3->0.1x50 1=>1e9x10 2.3~0.05x100, - for nothing
    Result<std::vector<std::optional<double>>> values(const Words& words, std::size_t first,
                                                      std::size_t wanted) {
        std::vector<std::optional<double>> all;
        for (std::size_t i = first; i < words.size(); ++i) {
            std::string item = words[i];
            std::size_t count = i + 1 == words.size() && first + 1 == words.size() ? wanted : 1;
            if (const std::size_t times = item.find('x'); times != std::string::npos) {
                count = std::stoull(item.substr(times + 1));
                item.resize(times);
            }
            if (item == "-") {
                all.resize(all.size() + count);
                continue;
            }
            double spread = 0;
            if (const std::size_t tilde = item.find('~'); tilde != std::string::npos) {
                spread = number(item.substr(tilde + 1)).value_or(0);
                item.resize(tilde);
            }
            const std::size_t arrow = std::min(item.find("->"), item.find("=>"));
            const bool geometric = arrow != std::string::npos && item[arrow] == '=';
            const auto from = number(item.substr(0, arrow));
            const auto to = arrow == std::string::npos ? from : number(item.substr(arrow + 2));
            if (!from || !to) return wrong("bad value: " + words[i]);
            for (std::size_t k = 0; k < count; ++k) {
                const double part = count > 1 ? static_cast<double>(k) / static_cast<double>(count - 1) : 0;
                const double value = arrow == std::string::npos ? *from
                                     : geometric                ? *from * std::pow(*to / *from, part)
                                                                : *from + (*to - *from) * part;
                all.emplace_back(spread > 0 ? value + spread * noise_.next() : value);
            }
        }
        if (all.size() != wanted) return wrong(base::format("{} values for {} steps", all.size(), wanted));
        return all;
    }

    // series TENSOR STATISTIC MODE STEPS: VALUES
    Status take_series(const Words& words) {
        if (words.size() < 6 || !words[4].ends_with(':'))
            return wrong("expected: series TENSOR STATISTIC MODE STEPS: VALUES");
        const auto mode = model::parse_mode(words[3]);
        if (!mode) return wrong("unknown mode " + words[3]);
        TRAINDBG_ASSIGN_OR_RETURN(const auto steps, step_list(words[4].substr(0, words[4].size() - 1)));
        TRAINDBG_ASSIGN_OR_RETURN(const auto numbers, values(words, 5, steps.size()));
        const model::TensorInfo info = tensor(words[1]);
        for (std::size_t i = 0; i < steps.size(); ++i) {
            if (!numbers[i]) continue;
            model::StepRecord& record = step(*mode, steps[i]);
            if (words[2] == "value") {
                record.scalars.push_back({info.id, *numbers[i]});
                continue;
            }
            if (!set(sample(record, info), words[2], *numbers[i]))
                return wrong("unknown statistic " + words[2]);
        }
        return Status::ok();
    }

    static bool set(model::TensorSample& sample, const std::string& name, double value) {
        model::Statistics& s = sample.statistics;
        // A count, where it is one: other statistics may be anything, also NaN.
        const auto whole = value >= 0 && value < 1e18 ? static_cast<std::uint64_t>(value) : 0;
        if (name == "l2") {
            s.l2 = value;
        } else if (name == "rms") {  // spares a test from working out the rest
            const double size = std::sqrt(static_cast<double>(s.count));
            s.l2 = value * size;
            s.std = value;
        } else if (name == "min") s.min = value;
        else if (name == "max") s.max = value;
        else if (name == "mean") s.mean = value;
        else if (name == "std") s.std = value;
        else if (name == "l1") s.l1 = value;
        else if (name == "nan") s.nan = whole;
        else if (name == "inf") s.positive_infinite = whole;
        else if (name == "-inf") s.negative_infinite = whole;
        else if (name == "zero") s.zero = whole;
        else if (name == "count") s.count = whole;
        else if (name == "units") sample.units.units = static_cast<std::uint32_t>(whole);
        else if (name == "inactive_units") sample.units.inactive_units = static_cast<std::uint32_t>(whole);
        else if (name == "low") sample.units.low = whole;
        else if (name == "high") sample.units.high = whole;
        else return false;
        return true;
    }

    // classes TENSOR MODE STEPS: labels=1,2 predictions=1,2 hits=1,2
    Status take_classes(const Words& words) {
        if (words.size() != 7 || !words[3].ends_with(':'))
            return wrong("expected: classes TENSOR MODE STEPS: labels=.. predictions=.. hits=..");
        const auto mode = model::parse_mode(words[2]);
        if (!mode) return wrong("unknown mode " + words[2]);
        TRAINDBG_ASSIGN_OR_RETURN(const auto steps, step_list(words[3].substr(0, words[3].size() - 1)));
        TRAINDBG_ASSIGN_OR_RETURN(const auto given, settings(words, 4));
        model::ClassCounts counts;
        for (const auto& [key, text] : given) {
            std::vector<std::uint32_t> list;
            std::istringstream parts(text);
            for (std::string part; std::getline(parts, part, ',');)
                list.push_back(static_cast<std::uint32_t>(std::stoul(part)));
            if (key == "labels") counts.labels = list;
            else if (key == "predictions") counts.predictions = list;
            else if (key == "hits") counts.hits = list;
            else return wrong("unknown key " + key);
        }
        if (counts.labels.size() != counts.hits.size() || counts.labels.size() != counts.predictions.size())
            return wrong("labels, predictions and hits must have one length");
        const model::TensorId id = tensor(words[1]).id;
        for (const std::uint64_t at : steps) step(*mode, at).classes.push_back({id, counts});
        return Status::ok();
    }

    // TENSOR MODE STEPS: of a line that says something of a tensor at these steps.
    struct At {
        model::TensorId tensor = 0;
        model::Mode mode = model::Mode::kTrain;
        std::vector<std::uint64_t> steps;
    };
    Result<At> at(const Words& words) {
        if (words.size() < 5 || !words[3].ends_with(':'))
            return wrong("expected: " + words[0] + " TENSOR MODE STEPS: ...");
        const auto mode = model::parse_mode(words[2]);
        if (!mode) return wrong("unknown mode " + words[2]);
        TRAINDBG_ASSIGN_OR_RETURN(auto steps, step_list(words[3].substr(0, words[3].size() - 1)));
        return At{tensor(words[1]).id, *mode, std::move(steps)};
    }

    // histogram TENSOR MODE STEPS: VALUE=COUNT ...
    Status take_histogram(const Words& words) {
        TRAINDBG_ASSIGN_OR_RETURN(const At where, at(words));
        TRAINDBG_ASSIGN_OR_RETURN(const auto given, settings(words, 4));
        model::Histogram bins;
        for (const auto& [value, count] : given) {
            const auto of = number(value), times = number(count);
            if (!of || !times) return wrong("not a number: " + value + "=" + count);
            model::merge(
                bins, {{static_cast<std::int16_t>(model::bin_of(*of)), static_cast<std::uint64_t>(*times)}});
        }
        for (const std::uint64_t i : where.steps)
            step(where.mode, i).histograms.push_back({where.tensor, bins});
        return Status::ok();
    }

    // digests TENSOR MODE STEPS: VALUES, whole numbers that stand for fingerprints
    Status take_digests(const Words& words) {
        TRAINDBG_ASSIGN_OR_RETURN(const At where, at(words));
        TRAINDBG_ASSIGN_OR_RETURN(const auto numbers, values(words, 4, where.steps.size()));
        for (std::size_t i = 0; i < where.steps.size(); ++i)
            if (numbers[i])
                step(where.mode, where.steps[i])
                    .digests.push_back({where.tensor, {static_cast<std::uint64_t>(*numbers[i]), 1}});
        return Status::ok();
    }

    // channels TENSOR MODE STEPS: min=-1,-2 max=1,2 zero=0,0, or min=-1x16 for 16 alike; what is left out
    // is 0
    Status take_channels(const Words& words) {
        TRAINDBG_ASSIGN_OR_RETURN(const At where, at(words));
        TRAINDBG_ASSIGN_OR_RETURN(const auto given, settings(words, 4));
        model::ChannelStatistics all;
        for (const auto& [key, text] : given) {
            std::vector<float> list;
            std::istringstream parts(text);
            for (std::string part; std::getline(parts, part, ',');) {
                std::size_t times = 1;
                if (const std::size_t x = part.find('x'); x != std::string::npos) {
                    times = std::stoull(part.substr(x + 1));
                    part.resize(x);
                }
                const auto value = number(part);
                if (!value) return wrong("bad value: " + part);
                list.insert(list.end(), times, static_cast<float>(*value));
            }
            if (key == "min") all.min = list;
            else if (key == "max") all.max = list;
            else if (key == "zero") all.zero = list;
            else return wrong("unknown key " + key);
        }
        const std::size_t most = std::max({all.min.size(), all.max.size(), all.zero.size()});
        for (std::vector<float>* list : {&all.min, &all.max, &all.zero}) {
            if (!list->empty() && list->size() != most)
                return wrong("min, max and zero must have one length");
            list->resize(most);
        }
        for (const std::uint64_t i : where.steps) step(where.mode, i).channels.push_back({where.tensor, all});
        return Status::ok();
    }

    // raw TENSOR MODE STEPS: VALUES, all of the tensor's, the same at each of the steps
    Status take_raw(const Words& words) {
        TRAINDBG_ASSIGN_OR_RETURN(const At where, at(words));
        const model::TensorInfo info = tensor(words[1]);
        std::size_t count = 1;
        for (const std::int64_t size : info.shape) count *= static_cast<std::size_t>(size);
        TRAINDBG_ASSIGN_OR_RETURN(const auto numbers, values(words, 4, count));
        model::RawTensor raw{info.id, tensor::DType::kFloat64, info.shape, {}};
        for (const std::optional<double>& number : numbers) {
            const auto bytes = std::bit_cast<std::array<std::byte, sizeof(double)>>(number.value_or(0));
            raw.bytes.insert(raw.bytes.end(), bytes.begin(), bytes.end());
        }
        for (const std::uint64_t i : where.steps) step(where.mode, i).raw.push_back(raw);
        return Status::ok();
    }

    // time MODE STEPS: SECONDS
    Status take_time(const Words& words) {
        if (words.size() < 4 || !words[2].ends_with(':')) return wrong("expected: time MODE STEPS: SECONDS");
        const auto mode = model::parse_mode(words[1]);
        if (!mode) return wrong("unknown mode " + words[1]);
        TRAINDBG_ASSIGN_OR_RETURN(const auto steps, step_list(words[2].substr(0, words[2].size() - 1)));
        TRAINDBG_ASSIGN_OR_RETURN(const auto numbers, values(words, 3, steps.size()));
        for (std::size_t i = 0; i < steps.size(); ++i)
            step(*mode, steps[i]).wall_nanos = static_cast<std::int64_t>(numbers[i].value_or(0) * 1e9);
        return Status::ok();
    }

    // expect RULE key=value ... | expect quiet | expect clean RULE | expect not_checked RULE reason=".."
    // expect cause NAME | expect cause none
    Status take_expectation(const Words& words) {
        if (words.size() < 2) return wrong("expect what?");
        Expectation expectation;
        expectation.line = line_;
        std::size_t next = 2;
        if (words[1] == "quiet" || words[1] == "clean" || words[1] == "not_checked" || words[1] == "cause") {
            expectation.what = words[1];
            if (words[1] != "quiet") {
                if (words.size() < 3) return wrong("expect " + words[1] + " what?");
                expectation.subject = words[2];
                next = 3;
            }
        } else {
            expectation.what = "finding";
            expectation.subject = words[1];
            if (!rules::find_rule(words[1]).is_ok()) return wrong("no rule is called " + words[1]);
        }
        TRAINDBG_ASSIGN_OR_RETURN(expectation.conditions, settings(words, next));
        scenario_.expectations.push_back(std::move(expectation));
        return Status::ok();
    }

    // The tensor of this name, made from what its name says if it is new.
    model::TensorInfo& tensor(const std::string& name) {
        const auto known = ids_.find(name);
        if (known != ids_.end()) return scenario_.tensors[known->second];
        model::TensorInfo info;
        info.id = static_cast<model::TensorId>(scenario_.tensors.size());
        info.name = name;
        info.role = model::parse_role(name.substr(0, name.find('/'))).value_or(model::Role::kOther);
        if (const std::size_t slash = name.find('/'); slash != std::string::npos)
            info.module = name.substr(slash + 1);
        ids_[name] = info.id;
        scenario_.tensors.push_back(std::move(info));
        return scenario_.tensors.back();
    }
    model::StepRecord& step(model::Mode mode, std::uint64_t index) {
        Time& time = times_[worker_];
        model::StepRecord& record = (mode == model::Mode::kTrain ? time.train : time.eval)[index];
        record.mode = mode;
        record.step = index;
        return record;
    }
    static model::TensorSample& sample(model::StepRecord& record, const model::TensorInfo& info) {
        for (model::TensorSample& known : record.tensors)
            if (known.tensor == info.id) return known;
        record.tensors.push_back({info.id, {}, {}});
        std::uint64_t count = 1;
        for (const std::int64_t size : info.shape) count *= static_cast<std::uint64_t>(size);
        record.tensors.back().statistics.count = count;
        return record.tensors.back();
    }

    Result<Scenario> finish() {
        if (scenario_.rules.empty()) scenario_.rules = rules::default_rules();
        scenario_.workers.try_emplace(0);
        if (scenario_.workers.size() > 1) {
            const std::string size = std::to_string(scenario_.workers.size());
            for (auto& [worker, meta] : scenario_.workers) meta.environment.emplace_back("WORLD_SIZE", size);
        }
        std::set<std::uint64_t> indexes;
        for (const auto& [worker, time] : times_)
            for (const auto& [index, record] : time.train) indexes.insert(index);
        for (const std::uint64_t index : indexes)
            for (auto& [worker, time] : times_) TRAINDBG_RETURN_IF_ERROR(append(worker, time, index));
        for (const auto& [worker, time] : times_)
            if (time.next_eval != time.eval.size()) return wrong("more EVAL steps than the eval lines place");
        return std::move(scenario_);
    }

    // What one worker records.
    struct Time {
        std::map<std::uint64_t, model::StepRecord> train, eval;
        std::map<std::uint64_t, std::uint64_t> evals_after;
        std::uint64_t next_eval = 0, sequence = 0;
    };

    // Its TRAIN step of this index, and the evaluation after it.
    Status append(model::WorkerId worker, Time& time, std::uint64_t index) {
        const auto train = time.train.find(index);
        if (train == time.train.end()) return Status::ok();
        train->second.sequence = time.sequence++;
        scenario_.steps.push_back({worker, std::move(train->second)});
        const auto evals = time.evals_after.find(index);
        for (std::uint64_t i = 0; evals != time.evals_after.end() && i < evals->second; ++i) {
            const auto eval = time.eval.find(time.next_eval++);
            if (eval == time.eval.end()) return wrong("fewer EVAL steps than the eval lines place");
            eval->second.sequence = time.sequence++;
            scenario_.steps.push_back({worker, std::move(eval->second)});
        }
        return Status::ok();
    }

    int line_ = 0;
    Scenario scenario_;
    std::map<std::string, model::TensorId> ids_;
    model::WorkerId worker_ = 0;  // that lines are of
    std::map<model::WorkerId, Time> times_;
    Noise noise_;
};

std::string line_of(const model::Finding& f) {
    return base::format(
        "{} {} key={} state={} rank={} first={} step={} last={} tensor={} layer={} places={}\n    {}\n    "
        "fix: {}",
        f.rule, model::to_string(f.severity), f.key, model::to_string(f.state), f.worker, f.first_step,
        f.step, f.last_step, f.tensor, f.layer, f.places, f.message, f.fix);
}

bool meets(const model::Finding& f, const std::string& key, const std::string& value) {
    if (key == "severity") return model::to_string(f.severity) == value;
    if (key == "key") return f.key == value;
    if (key == "kind") return f.kind == value;
    if (key == "state") return model::to_string(f.state) == value;
    if (key == "rank") return std::to_string(f.worker) == value;
    if (key == "first") return std::to_string(f.first_step) == value;
    if (key == "step") return std::to_string(f.step) == value;
    if (key == "before") {
        std::uint64_t limit = 0;
        const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), limit);
        return error == std::errc() && end == value.data() + value.size() && f.step < limit;
    }
    if (key == "tensor") return f.tensor == value;
    if (key == "layer") return f.layer == value;
    if (key == "places") return std::to_string(f.places) == value;
    if (key == "message") return f.message.find(value) != std::string::npos;
    if (key == "fix") return f.fix.find(value) != std::string::npos;
    return false;
}

}  // namespace

Result<Scenario> parse(std::string_view text) { return Parser().run(text); }

Result<model::Verdict> run(const Scenario& scenario) {
    TRAINDBG_ASSIGN_OR_RETURN(const auto engine, engine::Engine::make(scenario.rules));
    ScenarioSource source(scenario);
    TRAINDBG_RETURN_IF_ERROR(engine::judge(source, *engine));
    return engine->verdict();
}

std::vector<std::string> mismatches(const Scenario& scenario, const model::Verdict& verdict) {
    std::vector<std::string> all;
    const auto fail = [&](const Expectation& e, const std::string& what) {
        all.push_back(base::format("line {}: {}", e.line, what));
    };
    std::set<const model::Finding*> expected;
    bool quiet = false;
    for (const Expectation& e : scenario.expectations) {
        if (e.what == "finding") {
            const model::Finding* best = nullptr;
            std::string missed;
            for (const model::Finding& finding : verdict.findings) {
                if (finding.rule != e.subject) continue;
                std::string wrong;
                for (const auto& [key, value] : e.conditions)
                    if (!meets(finding, key, value)) wrong += base::format(" {}={}", key, value);
                if (wrong.empty()) best = &finding;
                else missed += base::format("\n  not{}: {}", wrong, line_of(finding));
            }
            if (best == nullptr) fail(e, "no such finding of " + e.subject + missed);
            else expected.insert(best);
        } else if (e.what == "quiet") {
            quiet = true;
        } else if (e.what == "cause") {
            const std::string first = verdict.causes.empty() ? "none" : verdict.causes.front().name;
            if (first != e.subject) fail(e, "the first cause is " + first + ", not " + e.subject);
            for (const auto& [key, value] : e.conditions) {
                const bool is_message = key == "message" && !verdict.causes.empty();
                if (!is_message && key != "alone") fail(e, "a cause has no " + key);
                else if (!is_message && verdict.causes.size() != 1) fail(e, "other causes are named, too");
                else if (is_message && verdict.causes.front().explanation.find(value) == std::string::npos)
                    fail(e, "the first cause is told otherwise: " + verdict.causes.front().explanation);
            }
        } else {
            for (const model::RuleOutcome& outcome : verdict.outcomes) {
                if (outcome.rule != e.subject) continue;
                if (model::to_string(outcome.state) != e.what)
                    fail(e, base::format("{} is {}", outcome.rule, model::to_string(outcome.state)));
                const auto reason = e.conditions.find("reason");
                if (reason != e.conditions.end() && outcome.reason.find(reason->second) == std::string::npos)
                    fail(e, "the reason is: " + outcome.reason);
            }
        }
    }
    // Everything above info has to be expected.
    for (const model::Finding& finding : verdict.findings) {
        if (finding.severity == model::Severity::kInfo || expected.contains(&finding)) continue;
        all.push_back("not expected: " + line_of(finding));
    }
    if (scenario.expectations.empty()) all.push_back("the scenario expects nothing");
    if (quiet && std::any_of(expected.begin(), expected.end(), [](const model::Finding* finding) {
            return finding->severity != model::Severity::kInfo;
        }))
        all.push_back("quiet, but findings are expected, too");
    return all;
}

std::string describe(const model::Verdict& verdict) {
    std::string text;
    for (const model::Finding& finding : verdict.findings) text += line_of(finding) + "\n";
    for (const model::RuleOutcome& outcome : verdict.outcomes)
        text += base::format("{}: {} {} ({} steps)\n", outcome.rule, model::to_string(outcome.state),
                             outcome.reason, outcome.steps_judged);
    for (const model::Cause& cause : verdict.causes)
        text += base::format("cause {} {:.2f}: {}\n    fix: {}\n", cause.name, cause.confidence,
                             cause.explanation, cause.fix);
    return text;
}

}  // namespace traindbg::scenario
