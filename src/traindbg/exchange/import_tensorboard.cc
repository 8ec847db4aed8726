#include "traindbg/exchange/import_tensorboard.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "traindbg/base/format.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/exchange/output_file.h"
#include "traindbg/format/tf_event.h"
#include "traindbg/format/tfrecord.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/histogram.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/run_writer.h"

namespace traindbg::exchange {
namespace {

using base::ByteBuffer;
using base::ByteSpan;
using base::Code;
using base::Result;
using base::Status;
using model::Mode;
using model::StepIndex;
using model::TensorId;
using model::WorkerId;
using namespace std::chrono_literals;

constexpr std::string_view kEventFileMark = "tfevents";
constexpr std::size_t kMostEventProblems = 100;
constexpr std::size_t kMostFiles = 100'000;
constexpr int kMostDepth = 32;
constexpr std::uint64_t kMostRecordBytes = std::uint64_t{256} << 20;
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
constexpr std::uint64_t kMostMemory = std::uint64_t{4} << 30;
constexpr std::size_t kMostTensors = std::size_t{1} << 20;  // what a run can describe
constexpr std::size_t kMostBuckets = std::size_t{1} << 16;
constexpr std::size_t kLongestTag = 4000;

// A value of the log. The same tensor at the same step: the one that was read later counts.
template <typename Value>
struct Row {
    StepIndex step = 0;
    TensorId tensor = 0;
    std::int64_t wall_nanos = 0;
    Value value{};
};
struct Distribution {
    model::Statistics statistics;
    model::Histogram bins;
};

// What one worker recorded in one mode.
struct Recorded {
    std::vector<Row<double>> scalars;
    std::vector<Row<std::unique_ptr<Distribution>>> histograms;
};
struct Worker {
    std::vector<model::TensorInfo> tensors;
    std::map<std::string, TensorId> ids;  // by name
    std::map<std::string, std::int32_t> layers;
    std::map<Mode, Recorded> modes;
};

// Buckets as both forms of histograms give them.
struct Bucket {
    double lower = 0;
    double upper = 0;
    double count = 0;
};

std::uint64_t whole(double count) noexcept {
    if (!(count > 0)) return 0;
    return count < 9e18 ? static_cast<std::uint64_t>(std::llround(count)) : std::uint64_t{1} << 62;
}

double middle(const Bucket& bucket) noexcept {
    if (!std::isfinite(bucket.lower)) return bucket.upper;
    if (!std::isfinite(bucket.upper)) return bucket.lower;
    return bucket.lower / 2 + bucket.upper / 2;
}

// Everything that buckets tell: approximate moments, and the bins.
std::unique_ptr<Distribution> from_buckets(const std::vector<Bucket>& buckets) {
    auto out = std::make_unique<Distribution>();
    model::Statistics& s = out->statistics;
    double sum = 0;
    double squares = 0;
    bool any = false;
    for (const Bucket& bucket : buckets) {
        const std::uint64_t count = whole(bucket.count);
        if (count == 0) continue;
        if (__builtin_add_overflow(s.count, count, &s.count)) {
            s.count = UINT64_MAX;
            break;
        }
        model::spread(out->bins, bucket.lower, bucket.upper, count);
        const double at = middle(bucket);
        if (!std::isfinite(at)) continue;
        const auto weight = static_cast<double>(count);
        const double low = std::isfinite(bucket.lower) ? bucket.lower : at;
        const double high = std::isfinite(bucket.upper) ? bucket.upper : at;
        s.min = any ? std::min(s.min, low) : low;
        s.max = any ? std::max(s.max, high) : high;
        any = true;
        sum += at * weight;
        squares += at * at * weight;
        s.l1 += std::abs(at) * weight;
    }
    if (s.count == 0) return out;
    const auto n = static_cast<double>(s.count);
    s.mean = sum / n;
    s.std = std::sqrt(std::max(0.0, squares / n - s.mean * s.mean));
    s.l2 = std::sqrt(squares);
    return out;
}

std::unique_ptr<Distribution> from_proto(const format::TfHistogram& proto) {
    const std::size_t size = std::min(proto.bucket.size(), proto.bucket_limit.size());
    std::vector<Bucket> buckets;
    buckets.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
        Bucket bucket{i == 0 ? proto.min : proto.bucket_limit[i - 1], proto.bucket_limit[i], proto.bucket[i]};
        // The outermost buckets reach far beyond what is in them.
        if (std::isfinite(proto.min)) bucket.lower = std::max(bucket.lower, proto.min);
        if (std::isfinite(proto.max)) bucket.upper = std::min(bucket.upper, proto.max);
        if (bucket.lower > bucket.upper) bucket.lower = bucket.upper;
        buckets.push_back(bucket);
    }
    std::unique_ptr<Distribution> out = from_buckets(buckets);
    model::Statistics& s = out->statistics;
    const bool is_finite = std::isfinite(proto.min) && std::isfinite(proto.max) && std::isfinite(proto.sum) &&
                           std::isfinite(proto.sum_squares);
    const std::uint64_t count = std::max<std::uint64_t>(whole(proto.num), s.count);
    if (!is_finite) {
        // How many cannot be told; that there is one can.
        s.count = std::max<std::uint64_t>(count, 1);
        s.nan = 1;
        return out;
    }
    if (count == 0) return out;
    const auto n = static_cast<double>(count);
    s.count = count;
    s.min = proto.min;
    s.max = proto.max;
    s.mean = proto.sum / n;
    s.std = std::sqrt(std::max(0.0, proto.sum_squares / n - s.mean * s.mean));
    s.l2 = std::sqrt(std::max(0.0, proto.sum_squares));
    return out;
}

double element(tensor::DType dtype, const std::byte* at) noexcept {
    const auto get = [at](auto value) {
        std::memcpy(&value, at, sizeof(value));
        return value;
    };
    using tensor::DType;
    switch (dtype) {
        case DType::kFloat64: return get(double{});
        case DType::kFloat32: return static_cast<double>(get(float{}));
        case DType::kFloat16: return static_cast<double>(tensor::half_to_float(get(std::uint16_t{})));
        case DType::kBFloat16: return static_cast<double>(tensor::bfloat16_to_float(get(std::uint16_t{})));
        case DType::kInt64: return static_cast<double>(get(std::int64_t{}));
        case DType::kInt32: return get(std::int32_t{});
        case DType::kInt16: return get(std::int16_t{});
        case DType::kInt8: return get(std::int8_t{});
        case DType::kUInt64: return static_cast<double>(get(std::uint64_t{}));
        case DType::kUInt32: return get(std::uint32_t{});
        case DType::kUInt16: return get(std::uint16_t{});
        case DType::kUInt8:
        case DType::kBool: return get(std::uint8_t{});
        default: return std::nan("");
    }
}

// The numbers of a tensor; nothing for text and other things that are none.
std::optional<std::vector<double>> numbers_of(const format::TfTensor& tensor) {
    const tensor::DType dtype = format::dtype_of_tf(tensor.dtype);
    const std::size_t width = tensor::byte_size(dtype);
    if (width == 0 || dtype == tensor::DType::kComplex64 || dtype == tensor::DType::kComplex128)
        return std::nullopt;
    ByteBuffer own;
    const Result<ByteSpan> values = format::tensor_values(tensor, own);
    if (!values) return std::nullopt;
    std::vector<double> out(values->size() / width);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = element(dtype, values->data() + i * width);
    return out;
}

// The log in memory.
class Log {
  public:
    explicit Log(const ImportRequest& request) : request_(request) {}

    ImportResult result;
    std::map<WorkerId, Worker> workers;

    // Beginning with another file: what a plugin said of a tag holds within a sub-run.
    void begin_file(const std::string& file, const std::string& sub_run_path, bool keep_name) {
        file_ = file;
        if (sub_run_path != sub_run_path_ || !begun_) tags_.clear();
        begun_ = true;
        sub_run_path_ = sub_run_path;
        sub_run_ = parse_sub_run(sub_run_path);
        if (!keep_name) sub_run_.name.clear();
    }

    // One file, in windows that `read` gives (a place, a size).
    [[nodiscard]] Status scan(const std::function<Result<ByteBuffer>(std::uint64_t, std::size_t)>& read,
                              std::uint64_t size) {
        format::RecordScanner scanner(format::RecordCheck::kChecksum, 0, kMostRecordBytes);
        ByteBuffer window;
        std::uint64_t begin = 0;
        bool at_end = false;
        while (true) {
            const std::uint64_t position = scanner.position();
            const bool inside = position >= begin && position - begin <= window.size();
            const auto skip = inside ? static_cast<std::size_t>(position - begin) : window.size();
            const format::RecordItem item = scanner.next(ByteSpan(window).subspan(skip), at_end && inside);
            switch (item.kind) {
                case format::RecordItem::Kind::kRecord: {
                    TRAINDBG_RETURN_IF_ERROR(add_record(item));
                    break;
                }
                case format::RecordItem::Kind::kHole:
                    add_problem(item.offset, item.bytes, item.what, false);
                    break;
                case format::RecordItem::Kind::kForeign:
                    add_problem(item.offset, size - std::min(size, item.offset), item.what, false);
                    return Status::ok();
                case format::RecordItem::Kind::kNeedMore: {
                    if (at_end && inside) {
                        if (scanner.settled() < size)
                            add_problem(scanner.settled(), size - scanner.settled(), scanner.tail_reason(),
                                        true);
                        return Status::ok();
                    }
                    begin = scanner.position();
                    const std::uint64_t room = size - std::min(size, begin);
                    const auto asked = static_cast<std::size_t>(
                        std::min<std::uint64_t>(room, std::max(kWindowBytes, item.bytes_needed)));
                    window.clear();
                    if (asked > 0) {
                        TRAINDBG_ASSIGN_OR_RETURN(window, read(begin, asked));
                    }
                    at_end = window.size() < asked || window.size() == room;
                    if (request_.progress)
                        request_.progress(done_bytes_ + std::min(begin, size), total_bytes_);
                    break;
                }
            }
        }
    }

    void expect(std::uint64_t total_bytes) noexcept { total_bytes_ = total_bytes; }
    void finish_file(std::uint64_t bytes) {
        ++result.files;
        result.bytes += bytes;
        done_bytes_ += bytes;
    }
    void add_problem(std::uint64_t offset, std::uint64_t bytes, std::string what, bool tail) {
        ++result.problems_in_all;
        if (result.problems.size() < kMostEventProblems)
            result.problems.push_back({file_, offset, bytes, std::move(what), tail});
    }

  private:
    struct Tag {
        std::string plugin;
        bool ignored = false;
        std::optional<std::pair<Mode, TensorId>> scalar;
        std::optional<std::pair<Mode, TensorId>> histogram;
    };

    [[nodiscard]] Status add_record(const format::RecordItem& item) {
        const Result<format::TfEvent> event = format::decode_tf_event(item.record.payload);
        if (!event) {
            add_problem(item.offset, item.bytes, event.status().message(), false);
            return Status::ok();
        }
        ++result.events;
        if (event->values.empty()) return Status::ok();
        if (event->step < 0) {
            add_problem(item.offset, item.bytes, base::format("an event of step {}", event->step), false);
            return Status::ok();
        }
        for (const format::TfSummaryValue& value : event->values) add_value(*event, value);
        if (memory_ > kMostMemory)
            return {Code::kResourceExhausted,
                    base::format("{}: more than {} of values; import its sub-directories one by one",
                                 base::printable(request_.from), base::human_bytes(kMostMemory))};
        return Status::ok();
    }

    void add_value(const format::TfEvent& event, const format::TfSummaryValue& value) {
        if (value.tag.empty() || value.tag.size() > kLongestTag) {
            ++result.skipped;
            return;
        }
        const auto [entry, is_new] = tags_.try_emplace(std::string(value.tag));
        Tag& tag = entry->second;
        if (is_new && request_.role) {
            const auto choice = request_.role(value.tag);
            tag.ignored = choice && choice->ignore;
        }
        if (value.metadata && !value.metadata->plugins.empty())
            tag.plugin = value.metadata->plugins.front().plugin_name;
        if (tag.ignored) {
            ++result.skipped;
            return;
        }
        if (value.simple_value)
            return add_scalar(event, entry->first, tag, static_cast<double>(*value.simple_value));
        if (value.histogram) {
            if (value.histogram->bucket.size() > kMostBuckets) ++result.skipped;
            else add_histogram(event, entry->first, tag, from_proto(*value.histogram));
            return;
        }
        if (value.tensor) return add_tensor(event, entry->first, tag, *value.tensor);
        ++result.skipped;
    }

    void add_tensor(const format::TfEvent& event, const std::string& name, Tag& tag,
                    const format::TfTensor& tensor) {
        const bool may_be_scalar = tag.plugin.empty() || tag.plugin == "scalars";
        if (!may_be_scalar && tag.plugin != "histograms") {
            ++result.skipped;
            return;
        }
        const auto numbers = numbers_of(tensor);
        if (numbers && may_be_scalar && numbers->size() == 1)
            return add_scalar(event, name, tag, numbers->front());
        const bool is_table = tensor.shape.size() == 2 && tensor.shape[1] == 3;
        if (!numbers || may_be_scalar || !is_table || numbers->size() / 3 > kMostBuckets) {
            ++result.skipped;
            return;
        }
        std::vector<Bucket> buckets(numbers->size() / 3);
        for (std::size_t i = 0; i < buckets.size(); ++i)
            buckets[i] = {(*numbers)[3 * i], (*numbers)[3 * i + 1], (*numbers)[3 * i + 2]};
        add_histogram(event, name, tag, from_buckets(buckets));
    }

    static std::int64_t nanos(double seconds) noexcept {
        return std::isfinite(seconds) && std::abs(seconds) < 9e9 ? std::llround(seconds * 1e9) : 0;
    }

    void add_scalar(const format::TfEvent& event, const std::string& name, Tag& tag, double value) {
        if (!tag.scalar) tag.scalar = place(name, /*is_scalar=*/true, 1);
        if (!tag.scalar) return;
        workers[sub_run_.worker].modes[tag.scalar->first].scalars.push_back(
            {static_cast<StepIndex>(event.step), tag.scalar->second, nanos(event.wall_time), value});
        ++result.scalars;
        memory_ += sizeof(Row<double>);
    }

    void add_histogram(const format::TfEvent& event, const std::string& name, Tag& tag,
                       std::unique_ptr<Distribution> value) {
        if (value->statistics.count == 0) {
            ++result.skipped;  // of no values
            return;
        }
        if (!tag.histogram) tag.histogram = place(name, /*is_scalar=*/false, value->statistics.count);
        if (!tag.histogram) return;
        memory_ += sizeof(Distribution) + 64 + value->bins.capacity() * sizeof(model::HistogramBin);
        workers[sub_run_.worker].modes[tag.histogram->first].histograms.push_back(
            {static_cast<StepIndex>(event.step), tag.histogram->second, nanos(event.wall_time),
             std::move(value)});
        ++result.histograms;
    }

    // The mode and the number of the tensor that a tag stands for.
    std::optional<std::pair<Mode, TensorId>> place(const std::string& tag, bool is_scalar,
                                                   std::uint64_t elements) {
        std::optional<model::Role> chosen;
        if (request_.role)
            if (const auto choice = request_.role(tag)) chosen = choice->role;
        TagMeaning meaning = is_scalar ? meaning_of_scalar(tag, chosen) : meaning_of_histogram(tag, chosen);
        model::TensorInfo& info = meaning.info;
        if (!sub_run_.name.empty()) info.name = sub_run_.name + "/" + info.name;
        const Mode mode = meaning.mode ? *meaning.mode : sub_run_.mode.value_or(Mode::kTrain);
        Worker& worker = workers[sub_run_.worker];
        // The same name for a number and a distribution would be two tensors in one.
        const std::string key = (is_scalar ? "s" : "h") + info.name;
        if (const auto known = worker.ids.find(key); known != worker.ids.end())
            return std::pair(mode, known->second);
        if (worker.tensors.size() >= kMostTensors) {
            ++result.skipped;
            return std::nullopt;
        }
        while (worker.ids.contains((is_scalar ? "h" : "s") + info.name)) info.name += "~2";
        info.id = static_cast<TensorId>(worker.tensors.size());
        if (!is_scalar) {
            info.shape = {static_cast<std::int64_t>(std::min<std::uint64_t>(elements, INT64_MAX))};
            const std::string layer = info.module.substr(0, info.module.find_last_of("./"));
            info.layer =
                worker.layers.emplace(layer, static_cast<std::int32_t>(worker.layers.size())).first->second;
        }
        worker.ids.emplace(key, info.id);
        worker.tensors.push_back(info);
        return std::pair(mode, info.id);
    }

    const ImportRequest& request_;
    std::string file_;
    std::string sub_run_path_;
    bool begun_ = false;
    SubRun sub_run_;
    std::map<std::string, Tag> tags_;
    std::uint64_t memory_ = 0;
    std::uint64_t done_bytes_ = 0;
    std::uint64_t total_bytes_ = 0;
};

struct EventFilePlace {
    std::string path;
    std::string sub_run;  // its directory below the log directory
    std::uint64_t bytes = 0;
};

Status find_files(storage::FileSystem& files, const std::string& directory, const std::string& relative,
                  int depth, std::vector<EventFilePlace>& out) {
    if (depth > kMostDepth) return Status::ok();
    TRAINDBG_ASSIGN_OR_RETURN(const auto entries, files.list(directory));
    for (const storage::DirectoryEntry& entry : entries) {
        const std::string path = directory + "/" + entry.name;
        if (entry.is_directory) {
            TRAINDBG_RETURN_IF_ERROR(find_files(
                files, path, relative.empty() ? entry.name : relative + "/" + entry.name, depth + 1, out));
        } else if (entry.is_regular && entry.name.find(kEventFileMark) != std::string::npos) {
            if (out.size() >= kMostFiles)
                return {Code::kResourceExhausted,
                        base::format("{}: more than {} event files; import its sub-directories one by one",
                                     base::printable(directory), kMostFiles)};
            out.push_back({path, relative, 0});
        }
    }
    return Status::ok();
}

// Later rows of the same tensor and step replace earlier ones; the rest is in the order of steps.
template <typename Value>
std::uint64_t settle(std::vector<Row<Value>>& rows) {
    std::stable_sort(rows.begin(), rows.end(), [](const Row<Value>& a, const Row<Value>& b) {
        return a.step != b.step ? a.step < b.step : a.tensor < b.tensor;
    });
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool is_again =
            kept > 0 && rows[kept - 1].step == rows[i].step && rows[kept - 1].tensor == rows[i].tensor;
        const std::size_t to = is_again ? kept - 1 : kept++;
        if (to != i) rows[to] = std::move(rows[i]);
    }
    const std::uint64_t replaced = rows.size() - kept;
    rows.resize(kept);
    return replaced;
}

// The rows of one mode as steps, one after the other.
class Steps {
  public:
    Steps(Mode mode, Recorded& rows) : mode_(mode), rows_(&rows) { gather(); }

    [[nodiscard]] bool ended() const noexcept { return ended_; }
    [[nodiscard]] std::int64_t wall_nanos() const noexcept { return record_.wall_nanos; }
    [[nodiscard]] model::StepRecord take() {
        model::StepRecord out = std::exchange(record_, {});
        gather();
        return out;
    }

  private:
    void gather() {
        const auto& scalars = rows_->scalars;
        auto& histograms = rows_->histograms;
        ended_ = scalar_ == scalars.size() && histogram_ == histograms.size();
        if (ended_) return;
        StepIndex step = UINT64_MAX;
        if (scalar_ < scalars.size()) step = scalars[scalar_].step;
        if (histogram_ < histograms.size()) step = std::min(step, histograms[histogram_].step);
        record_.mode = mode_;
        record_.step = step;
        for (; scalar_ < scalars.size() && scalars[scalar_].step == step; ++scalar_) {
            record_.scalars.push_back({scalars[scalar_].tensor, scalars[scalar_].value});
            record_.wall_nanos = std::max(record_.wall_nanos, scalars[scalar_].wall_nanos);
        }
        for (; histogram_ < histograms.size() && histograms[histogram_].step == step; ++histogram_) {
            auto& row = histograms[histogram_];
            record_.tensors.push_back({row.tensor, row.value->statistics, {}});
            record_.histograms.push_back({row.tensor, std::move(row.value->bins)});
            record_.wall_nanos = std::max(record_.wall_nanos, row.wall_nanos);
            row.value.reset();
        }
    }

    Mode mode_;
    Recorded* rows_;
    std::size_t scalar_ = 0;
    std::size_t histogram_ = 0;
    model::StepRecord record_;
    bool ended_ = false;
};

Status write_worker(const std::string& directory, WorkerId id, Worker& worker, ImportResult& result,
                    std::int64_t& first_wall, std::int64_t& last_wall) {
    TRAINDBG_ASSIGN_OR_RETURN(
        const auto writer,
        write::RunWriter::open(storage::posix_file_system(), {.run_directory = directory,
                                                              .worker = id,
                                                              .overflow = write::OverflowPolicy::kBlockFor,
                                                              .block_for = std::chrono::hours(1),
                                                              .sync_interval = 0ms,
                                                              .sealer_nice = 0}));
    model::WorkerMeta meta;
    meta.worker = id;
    meta.framework = "TensorBoard log";
    meta.traindbg = base::version();
    writer->describe(meta);
    infer_shapes(worker.tensors);
    for (const model::TensorInfo& info : worker.tensors) writer->add_tensor(info);
    std::vector<Steps> modes;
    for (auto& [mode, rows] : worker.modes) {
        result.replaced += settle(rows.scalars) + settle(rows.histograms);
        modes.emplace_back(mode, rows);
    }
    std::uint64_t sequence = 0;
    std::int64_t before = 0;
    while (true) {
        // Modes follow each other as the clock says, the steps of a mode by their numbers.
        Steps* next = nullptr;
        for (Steps& steps : modes)
            if (!steps.ended() && (next == nullptr || steps.wall_nanos() < next->wall_nanos())) next = &steps;
        if (next == nullptr) break;
        model::StepRecord record = next->take();
        record.sequence = sequence++;
        record.step_nanos = before == 0 || record.wall_nanos < before
                                ? 0
                                : static_cast<std::uint64_t>(record.wall_nanos - before);
        record.monotonic_nanos = record.wall_nanos;
        before = record.wall_nanos;
        if (first_wall == 0 || record.wall_nanos < first_wall) first_wall = record.wall_nanos;
        last_wall = std::max(last_wall, record.wall_nanos);
        writer->append(std::move(record));
    }
    TRAINDBG_RETURN_IF_ERROR(writer->close(std::chrono::hours(1)));
    const write::WriterCounts counts = writer->counts();
    if (counts.failed || counts.steps_dropped > 0)
        return {Code::kResourceExhausted,
                base::format("{}: {} of {} steps could not be written{}{}", directory, counts.steps_dropped,
                             sequence, counts.failure.empty() ? "" : ": ", counts.failure)};
    result.steps += sequence;
    result.tensors += worker.tensors.size();
    return Status::ok();
}

std::string last_component(std::string_view path) {
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    return std::string(path.substr(path.find_last_of('/') + 1));
}

Status put_run_json(const std::string& path, const model::Json& json) {
    return storage::posix_file_system().put_atomic(path, base::as_bytes(model::to_checked_text(json)));
}

}  // namespace

ImportResult scan_event_file(ByteSpan content) {
    const ImportRequest request{.from = "fuzz", .to = "fuzz"};
    Log log(request);
    log.begin_file("fuzz", "", false);
    const auto read = [&](std::uint64_t offset, std::size_t size) -> Result<ByteBuffer> {
        if (offset >= content.size()) return ByteBuffer();
        const ByteSpan part =
            content.subspan(static_cast<std::size_t>(offset),
                            std::min(size, content.size() - static_cast<std::size_t>(offset)));
        return ByteBuffer(part.begin(), part.end());
    };
    log.scan(read, content.size()).ignore();
    for (auto& [id, worker] : log.workers)
        for (auto& [mode, rows] : worker.modes) {
            log.result.replaced += settle(rows.scalars) + settle(rows.histograms);
            for (Steps steps(mode, rows); !steps.ended(); ++log.result.steps) static_cast<void>(steps.take());
        }
    return std::move(log.result);
}

Result<ImportResult> import_tensorboard(const ImportRequest& request) {
    storage::FileSystem& files = *request.files;
    std::vector<EventFilePlace> found;
    const bool is_file =
        last_component(request.from).find(kEventFileMark) != std::string::npos && files.open(request.from);
    if (is_file) found.push_back({request.from, "", 0});
    else TRAINDBG_RETURN_IF_ERROR(find_files(files, request.from, "", 0, found));
    if (found.empty())
        return Status(Code::kNotFound,
                      base::format("{}: no event files (events.out.tfevents...) in it or below",
                                   base::printable(request.from)));
    std::set<std::string> names;
    for (const EventFilePlace& file : found) names.insert(parse_sub_run(file.sub_run).name);

    TRAINDBG_ASSIGN_OR_RETURN(OutputDirectory directory, OutputDirectory::create(request.to, false, ""));
    Log log(request);
    std::uint64_t total = 0;
    for (EventFilePlace& file : found) {
        if (auto opened = files.open(file.path))
            if (const auto size = (*opened)->size()) file.bytes = *size;
        total += file.bytes;
    }
    log.expect(total);
    for (const EventFilePlace& file : found) {
        log.begin_file(file.path, file.sub_run, names.size() > 1);
        const auto opened = files.open(file.path);
        if (!opened) {
            log.add_problem(0, 0, opened.status().message(), false);
            continue;
        }
        bool unreadable = false;
        const auto read = [&](std::uint64_t offset, std::size_t size) -> Result<ByteBuffer> {
            Result<ByteBuffer> bytes = (*opened)->read_at(offset, size);
            if (bytes) return bytes;
            unreadable = true;
            log.add_problem(offset, 0, bytes.status().message(), false);
            return bytes.status();
        };
        if (const Status status = log.scan(read, file.bytes); !status.is_ok() && !unreadable) return status;
        log.finish_file(file.bytes);
    }
    ImportResult& result = log.result;
    if (result.scalars + result.histograms == 0)
        return Status(
            Code::kNotFound,
            base::format("{}: {} files, but no scalars and no histograms in them{}",
                         base::printable(request.from), result.files,
                         result.problems.empty()
                             ? std::string()
                             : base::format("; {} at {}: {}", base::printable(result.problems[0].file),
                                            result.problems[0].offset, result.problems[0].what)));
    if (names.size() > 1)
        result.notes.push_back(base::format(
            "{} different runs lie in {}: names of tensors begin with theirs; to judge one of them, import "
            "its directory alone",
            names.size(), base::printable(request.from)));

    std::int64_t first_wall = 0;
    std::int64_t last_wall = 0;
    TRAINDBG_ASSIGN_OR_RETURN(const std::string run_json, directory.place("RUN.json"));
    const std::string root = run_json.substr(0, run_json.rfind('/'));
    for (auto& [id, worker] : log.workers) {
        if (worker.tensors.empty()) continue;
        ++result.workers;
        TRAINDBG_RETURN_IF_ERROR(write_worker(root, id, worker, result, first_wall, last_wall));
    }
    model::RunMeta meta;
    meta.run_id = last_component(request.to);
    meta.command = request.command;
    meta.started_wall_nanos = first_wall;
    meta.traindbg = base::version();
    TRAINDBG_RETURN_IF_ERROR(put_run_json(run_json, model::to_json(meta)));
    model::RunEnd end;
    end.wall_nanos = last_wall;
    end.reason = "imported from a TensorBoard log";
    TRAINDBG_RETURN_IF_ERROR(put_run_json(storage::RunLayout{root}.end_json(), model::to_json(end)));
    TRAINDBG_RETURN_IF_ERROR(directory.commit());
    return std::move(result);
}

}  // namespace traindbg::exchange
