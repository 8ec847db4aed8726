#include "traindbg/capture/capture_session.h"

#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "traindbg/base/bytes.h"
#include "traindbg/base/clock.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/base/text.h"
#include "traindbg/base/version.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/json.h"
#include "traindbg/reduce/reducer.h"
#include "traindbg/storage/control_block.h"
#include "traindbg/storage/run_layout.h"

namespace traindbg::capture {
namespace {

using base::Code;
using base::fork_generation;
using base::LogLevel;
using base::Result;
using base::Status;
using model::Mode;
using model::Role;
using model::StepIndex;
using model::StepRecord;
using model::TensorId;
using model::What;
using storage::ControlBlock;
using storage::TrainingState;
using tensor::TensorView;

constexpr std::uint64_t kStepsKeptAfterBadLoss = 3;
// What "everything" means then. The others are had only by computing or copying more than the step itself
// shows, and only where somebody asks for them.
constexpr RoleMask kEverything = kAllRoles & ~(mask_of(Role::kPrediction) | mask_of(Role::kLabel) |
                                               mask_of(Role::kAttention) | mask_of(Role::kGradientBefore));
constexpr std::size_t kMostTensors = 1'000'000;  // a name per step would use up the memory
// What a run's file can describe: one tensor beyond would take the descriptions beside it along.
constexpr std::size_t kLongestText = 4096;
constexpr std::size_t kMostDimensions = 64;
constexpr StepIndex kNever = UINT64_MAX;
constexpr std::uint64_t kLongestBlockMs = 3'600'000;  // nothing waits for ever

std::string host_name() {
    std::array<char, 256> name{};
    return gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data()) : std::string();
}

std::string platform() {
    utsname system{};
    if (uname(&system) != 0) return {};
    return base::format("{} {} {}, {} cores", system.sysname, system.release, system.machine,
                        sysconf(_SC_NPROCESSORS_ONLN));
}

// A random UUID (version 4) from the kernel: the training's random numbers are not touched.
std::string make_uuid() {
    std::array<unsigned char, 16> bytes{};
    if (getrandom(bytes.data(), bytes.size(), GRND_NONBLOCK) != static_cast<ssize_t>(bytes.size())) return {};
    bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0F) | 0x40);
    bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3F) | 0x80);
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
        out += base::format("{:02x}", bytes[i]);
    }
    return out;
}

std::string_view last_component(std::string_view path) {
    while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
    return path.substr(path.find_last_of('/') + 1);
}

Status put_if_missing(storage::FileSystem& files, const std::string& path, const model::Json& json) {
    if (files.exists(path)) return Status::ok();
    return files.put_atomic(path, base::as_bytes(model::to_checked_text(json)));
}

// The run directory with its description and plan, as far as nobody made them before.
Status prepare_run(storage::FileSystem& files, const storage::RunLayout& layout,
                   const SessionOptions& options) {
    TRAINDBG_RETURN_IF_ERROR(files.create_directories(layout.root));
    if (!files.exists(layout.run_json())) {
        model::RunMeta meta;
        meta.run_id = last_component(layout.root);
        meta.uuid = make_uuid();
        meta.command = options.command;
        std::array<char, 4096> directory{};
        if (getcwd(directory.data(), directory.size()) != nullptr) meta.working_directory = directory.data();
        meta.started_wall_nanos = base::wall_nanos();
        meta.host = host_name();
        meta.platform = platform();
        meta.traindbg = base::version();
        TRAINDBG_RETURN_IF_ERROR(put_if_missing(files, layout.run_json(), model::to_json(meta)));
    }
    return put_if_missing(files, layout.plan_json(), model::to_json(options.config));
}

}  // namespace

class CaptureSession::Impl {
  public:
    Impl(SessionOptions options, CapturePlan plan, std::unique_ptr<write::RunWriter> writer,
         std::unique_ptr<ControlBlock> control)
        : options_(std::move(options)),
          plan_(std::move(plan)),
          writer_(std::move(writer)),
          control_(std::move(control)) {
        train_.record.mode = Mode::kTrain;
        eval_.record.mode = Mode::kEval;
        for (const Mode mode : {Mode::kTrain, Mode::kEval})
            plan_.begin_step(mode, 0, base::monotonic_nanos());
        if (control_) {
            control_->publish_pid(getpid());
            control_->publish_state(TrainingState::kAttached);
        }
    }

    // Whether calls have any effect: not after `close`, and not in the child of a fork.
    [[nodiscard]] bool alive() const noexcept {
        return open_.load(std::memory_order_relaxed) && generation_ == fork_generation();
    }

    [[nodiscard]] TensorId add_tensor(model::TensorInfo info) {
        if (const auto known = ids_.find(info.name); known != ids_.end()) return known->second;
        const model::ShardInfo shard = info.shard.value_or(model::ShardInfo{});
        if (info.name.empty() ||
            std::max({info.shape.size(), shard.whole_shape.size(), shard.offset.size()}) > kMostDimensions ||
            std::max({info.name.size(), info.module.size(), info.module_type.size(),
                      shard.placement.size()}) > kLongestText) {
            count_failure();
            base::log_once(
                LogLevel::kWarning, "capture.unfit",
                base::format(
                    "a tensor is not recorded, because its name is empty or longer than {} bytes or it "
                    "has more than {} dimensions: '{}'",
                    kLongestText, kMostDimensions, base::printable(info.name.substr(0, 100))));
            return kNoTensor;
        }
        if (slots_.size() >= kMostTensors) {
            count_failure();
            base::log_once(LogLevel::kWarning, "capture.too_many_tensors",
                           "more than a million tensor names: further ones are not recorded");
            return kNoTensor;
        }
        const auto id = static_cast<TensorId>(slots_.size());
        info.id = id;
        for (std::string& name : plan_.collections_of(info.name))
            if (std::find(info.collections.begin(), info.collections.end(), name) == info.collections.end())
                info.collections.push_back(std::move(name));
        // Whatever may fail for want of memory comes before the writer is told, so that its numbers
        // and ours stay the same.
        train_.taken_at.resize(slots_.size() + 1, kNever);
        eval_.taken_at.resize(slots_.size() + 1, kNever);
        const auto entry = ids_.emplace(info.name, id).first;
        try {
            slots_.push_back({.name = &entry->first, .role = info.role, .activation = info.activation});
            plan_.note_tensor(info);
        } catch (...) {
            slots_.resize(id, Slot{});
            ids_.erase(entry);
            throw;
        }
        writer_->add_tensor(info);
        return id;
    }

    void describe(model::WorkerMeta meta) {
        meta.worker = writer_->worker();
        if (meta.pid == 0) meta.pid = getpid();
        if (meta.host.empty()) meta.host = host_name();
        if (meta.traindbg.empty()) meta.traindbg = base::version();
        writer_->describe(meta);
    }

    void event(std::string_view kind, std::string_view json) { writer_->event(kind, json); }

    [[nodiscard]] RoleMask due(Mode mode) noexcept {
        const Current* current = find(mode);
        if (current == nullptr) return 0;
        // An evaluation's step counts from the end of the one before, which may be long ago.
        if (mode == Mode::kEval && current->empty())
            plan_.look_again(mode, current->record.step, base::monotonic_nanos());
        return plan_.due_roles(current->record.mode, current->record.step) | (everything() ? kEverything : 0);
    }
    [[nodiscard]] RoleMask eager(Mode mode) const noexcept {
        const Current* current = find(mode);
        if (current == nullptr) return 0;
        const RoleMask planned = plan_.eager_roles(current->record.mode, current->record.step);
        if (everything() && plan_.config().compiled == model::CompiledModels::kEager)
            return planned | (kForwardRoles & kEverything);
        return planned;
    }
    void forward_passed() noexcept { plan_.note_forward_pass(due(Mode::kTrain)); }
    [[nodiscard]] StepIndex step(Mode mode) const noexcept {
        const Current* current = find(mode);
        return current == nullptr ? 0 : current->record.step;
    }

    void observe(Mode mode, TensorId id, const TensorView& view) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return;
        if (is_scalar(slots_[id].role) && view.element_count() == 1) {
            // A loss is looked at even where it is not due: it may have turned bad.
            const Result<double> value = reduce::scalar_value(view);
            if (value) observe_scalar(mode, id, *value);
            else skip(id, value.status());
            return;
        }
        const What what = take(*current, id);
        if (what == What::kNothing) return;
        const bool wants_statistics = model::has(what, What::kStatistics) || model::has(what, What::kUnits);
        const bool wants_all = model::has(what, What::kRaw);
        if (wants_statistics || wants_all) {
            const Result<model::Statistics> statistics =
                wants_all ? add_whole(*current, id, view, wants_statistics) : reduce::statistics(view);
            if (!statistics) {
                skip(id, statistics.status());
            } else if (wants_statistics) {
                model::UnitStatistics units;
                if (model::has(what, What::kUnits)) units = units_of(slots_[id], view);
                add_statistics(*current, id, *statistics, units);
            }
        }
        if (model::has(what, What::kHistogram)) add_histogram(*current, id, view);
    }

    void keep_always(TensorId id) noexcept {
        if (id < slots_.size()) slots_[id].is_always_kept = true;
    }

    void observe_update(Mode mode, TensorId update, TensorId ratio, const TensorView& before,
                        const TensorView& after) {
        Current* current = find(mode);
        if (current == nullptr || update >= slots_.size() || ratio >= slots_.size()) return;
        const What what = take(*current, update);
        const bool wants_ratio = model::has(take(*current, ratio), What::kStatistics);
        if (what == What::kNothing && !wants_ratio) return;
        const Result<reduce::DifferenceStatistics> found = reduce::difference_statistics(before, after);
        if (!found) {
            skip(update, found.status());
            return;
        }
        const model::Statistics& difference = found->difference;
        if (model::has(what, What::kStatistics)) add_statistics(*current, update, difference, {});
        const double relative = difference.l2 / found->before_l2;
        if (wants_ratio && difference.count > 0 && difference.not_finite() == 0 && std::isfinite(relative))
            current->record.scalars.push_back({ratio, relative});
        if (model::has(what, What::kRaw) || model::has(what, What::kHistogram))
            add_difference(*current, update, what, before, after);
    }

    void observe_statistics(Mode mode, TensorId id, const model::Statistics& statistics) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return;
        if (!model::has(take(*current, id), What::kStatistics)) return;
        add_statistics(*current, id, statistics, {});
    }

    void observe_scalar(Mode mode, TensorId id, double value) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return;
        if (slots_[id].role == Role::kLoss) watch_loss(id, std::isfinite(value));
        if (model::has(take(*current, id), What::kStatistics)) current->record.scalars.push_back({id, value});
    }

    void observe_classes(Mode mode, TensorId id, const TensorView& logits, const TensorView& labels) {
        Current* current = find(mode);
        if (current == nullptr || id >= slots_.size()) return;
        if (!model::has(take(*current, id), What::kClasses)) return;
        Result<model::ClassCounts> counts = reduce::class_counts(logits, labels);
        if (counts) current->record.classes.push_back({id, std::move(counts).value()});
        else skip(id, counts.status());
    }

    void capture_everything_for(std::uint64_t steps) noexcept {
        StepIndex until = 0;
        if (__builtin_add_overflow(train_.record.step, steps, &until) || until == UINT64_MAX)
            until = UINT64_MAX - 1;
        everything_before_ = std::max(everything_before_, until + 1);
    }

    void add_cost(std::uint64_t nanos) noexcept {
        step_cost_ += nanos;
        total_cost_.fetch_add(nanos, std::memory_order_relaxed);
    }

    void end(Mode mode) {
        Current& current = mode == Mode::kEval ? eval_ : train_;
        StepRecord& record = current.record;
        const std::int64_t now = base::monotonic_nanos();
        const StepIndex next = record.step + 1;
        if (!current.empty()) {
            record.sequence = sequence_++;
            record.wall_nanos = base::wall_nanos();
            record.monotonic_nanos = now;
            record.step_nanos = last_end_ == 0 ? 0 : static_cast<std::uint64_t>(now - last_end_);
            record.capture_nanos = step_cost_;
            const std::size_t tensors = record.tensors.size();
            const std::size_t scalars = record.scalars.size();
            StepRecord finished = std::exchange(record, writer_->recycled());
            record.mode = mode;
            record.step = next;
            writer_->append(std::move(finished), std::exchange(current.tensors, {}),
                            std::exchange(current.tensors_left_out, 0));
            record.tensors.reserve(tensors);  // the next step is most often like this one
            record.scalars.reserve(scalars);
        } else {
            record.step = next;
        }
        plan_.begin_step(mode, next, now);
        last_end_ = now;
        step_cost_ = 0;
        if (mode == Mode::kTrain && control_) control_->publish_step(next);
    }

    [[nodiscard]] StepDirective directive() noexcept {
        StepDirective out;
        out.due = due(Mode::kTrain);
        out.stop_requested = control_ && control_->stop_requested();
        if (out.stop_requested && !stop_seen_) {
            stop_seen_ = true;
            control_->publish_state(TrainingState::kStopping);
        }
        return out;
    }

    void close(std::chrono::nanoseconds patience) {
        if (!alive()) return;
        // What was seen of a step that did not end, such as a metric logged after the last one.
        for (Current* current : {&eval_, &train_})
            if (!current->empty()) end(current->record.mode);
        open_.store(false, std::memory_order_relaxed);
        writer_->close(patience).ignore();  // the writer itself says what went wrong, once
        if (!control_) return;
        control_->publish_state(TrainingState::kEnded);
        control_.reset();  // a session that is over may live on for long; its descriptor should not
    }

    void abandon() noexcept {
        open_.store(false, std::memory_order_relaxed);
        writer_->abandon();
        control_.reset();
    }

    [[nodiscard]] SessionCounts counts() const {
        SessionCounts out;
        // In a forked child the writer's locks may be held by a thread that does not exist there.
        if (generation_ == fork_generation()) out.writer = writer_->counts();
        out.tensors_skipped = skipped_.load(std::memory_order_relaxed);
        out.capture_nanos = total_cost_.load(std::memory_order_relaxed);
        return out;
    }

    void count_failure() noexcept { skipped_.fetch_add(1, std::memory_order_relaxed); }

    [[nodiscard]] const SessionOptions& options() const noexcept { return options_; }
    [[nodiscard]] const CapturePlan& plan() const noexcept { return plan_; }
    [[nodiscard]] model::WorkerId worker() const noexcept { return writer_->worker(); }
    [[nodiscard]] bool is_in_child() const noexcept { return generation_ != fork_generation(); }

  private:
    struct Slot {
        const std::string* name = nullptr;  // the key in ids_
        Role role = Role::kOther;
        model::ActivationKind activation = model::ActivationKind::kNone;
        bool loss_is_bad = false;
        bool skip_was_told = false;
        bool is_always_kept = false;  // the user hands it over for that
    };
    // The step under way of one mode.
    struct Current {
        StepRecord record;
        std::vector<write::WholeTensor> tensors;
        std::uint64_t tensors_left_out = 0;  // whole ones, for which there was no room
        std::vector<StepIndex> taken_at;     // tensor -> the last step at which it was taken

        [[nodiscard]] bool empty() const noexcept {
            return record.empty() && tensors.empty() && tensors_left_out == 0;
        }
    };

    static bool is_scalar(Role role) noexcept { return role == Role::kLoss || role == Role::kMetric; }

    // What is of no particular mode belongs to the TRAIN step under way. PREDICT has no steps.
    [[nodiscard]] const Current* find(Mode mode) const noexcept {
        switch (mode) {
            case Mode::kTrain:
            case Mode::kGlobal: return &train_;
            case Mode::kEval: return &eval_;
            case Mode::kPredict: return nullptr;
        }
        return nullptr;
    }
    [[nodiscard]] Current* find(Mode mode) noexcept {
        return const_cast<Current*>(std::as_const(*this).find(mode));
    }

    [[nodiscard]] bool everything() const noexcept { return train_.record.step < everything_before_; }

    [[nodiscard]] What wanted(const Current& current, TensorId id) const noexcept {
        What what = plan_.due(id, current.record.mode, current.record.step);
        const Slot& slot = slots_[id];
        if (slot.role == Role::kMetric || slot.is_always_kept) what |= What::kStatistics;
        if (everything() && (mask_of(slot.role) & kEverything) != 0) {
            what |= slot.role == Role::kClasses ? What::kClasses : What::kStatistics;
            if (slot.role == Role::kActivation && slot.activation != model::ActivationKind::kNone)
                what |= What::kUnits;
        }
        return what;
    }

    // The same, and marks the tensor as taken at this step; nothing when it was before.
    [[nodiscard]] What take(Current& current, TensorId id) noexcept {
        if (current.taken_at[id] == current.record.step) return What::kNothing;
        const What what = wanted(current, id);
        if (what != What::kNothing) current.taken_at[id] = current.record.step;
        return what;
    }

    void add_statistics(Current& current, TensorId id, const model::Statistics& statistics,
                        const model::UnitStatistics& units) {
        current.record.tensors.push_back({id, statistics, units});
        if (slots_[id].role == Role::kLoss) watch_loss(id, statistics.not_finite() == 0);
    }

    [[nodiscard]] static model::UnitStatistics units_of(const Slot& slot, const TensorView& view) {
        if (slot.activation == model::ActivationKind::kNone) return {};
        Result<model::UnitStatistics> units = reduce::unit_statistics(view, slot.activation);
        return units ? *units : model::UnitStatistics{};
    }

    // A copy of the tensor for the writer, and its statistics in the same pass where they are wanted.
    Result<model::Statistics> add_whole(Current& current, TensorId id, const TensorView& view,
                                        bool wants_statistics) {
        const std::int64_t count = view.element_count();
        const std::size_t each = tensor::byte_size(view.dtype);
        if (count <= 0 || each == 0) {
            TRAINDBG_RETURN_IF_ERROR(reduce::copy_row_major(view, {}));  // says what is wrong, if anything
            current.tensors.push_back({id, view.dtype, {view.shape.begin(), view.shape.end()}, {}, {}});
            return reduce::statistics(view);
        }
        std::size_t bytes = 0;
        std::optional<write::ArenaBlock> room;
        if (!__builtin_mul_overflow(static_cast<std::size_t>(count), each, &bytes))
            room = writer_->take_room(bytes);
        if (!room) {
            ++current.tensors_left_out;
            if (wants_statistics) return reduce::statistics(view);
            return model::Statistics{};
        }
        Result<model::Statistics> statistics = model::Statistics{};
        if (wants_statistics) {
            statistics = reduce::copy_with_statistics(view, room->bytes());
            if (!statistics && statistics.status().code() != Code::kUnsupported) return statistics;
        } else {
            TRAINDBG_RETURN_IF_ERROR(reduce::copy_row_major(view, room->bytes()));
        }
        current.tensors.push_back(
            {id, view.dtype, {view.shape.begin(), view.shape.end()}, std::move(*room), {}});
        return statistics;
    }

    void add_difference(Current& current, TensorId id, What what, const TensorView& before,
                        const TensorView& after) {
        const tensor::DType dtype = reduce::difference_type(after.dtype);
        std::vector<std::byte> values(static_cast<std::size_t>(after.element_count()) *
                                      tensor::byte_size(dtype));
        if (const Status status = reduce::subtract(before, after, values); !status.is_ok()) {
            skip(id, status);
            return;
        }
        const TensorView view{values.data(), dtype, after.shape, {}};
        if (model::has(what, What::kRaw))
            if (const auto copied = add_whole(current, id, view, false); !copied) skip(id, copied.status());
        if (model::has(what, What::kHistogram)) add_histogram(current, id, view);
    }

    void add_histogram(Current& current, TensorId id, const TensorView& view) {
        Result<model::Histogram> histogram = reduce::histogram(view);
        if (histogram) current.record.histograms.push_back({id, std::move(histogram).value()});
        else skip(id, histogram.status());
    }

    // A loss that turns bad: keep the neighbourhood. One that stays bad has told all it can.
    void watch_loss(TensorId id, bool finite) noexcept {
        Slot& slot = slots_[id];
        if (!finite && !slot.loss_is_bad && !plan_.config().requirements.empty())
            capture_everything_for(kStepsKeptAfterBadLoss);
        slot.loss_is_bad = !finite;
    }

    void skip(TensorId id, const Status& why) {
        count_failure();
        Slot& slot = slots_[id];
        if (slot.skip_was_told) return;
        slot.skip_was_told = true;
        const model::Json json = {{"tensor", *slot.name}, {"reason", why.message()}};
        writer_->event("tensor_skipped", json.dump(-1, ' ', false, model::Json::error_handler_t::replace));
        base::log_once(
            LogLevel::kInfo, "capture.skip",
            base::format("'{}' is not recorded: {} (there may be more)", *slot.name, why.message()));
    }

    const SessionOptions options_;
    CapturePlan plan_;
    std::unique_ptr<write::RunWriter> writer_;
    std::unique_ptr<ControlBlock> control_;  // null: no supervisor can reach us
    const std::uint32_t generation_ = fork_generation();
    std::atomic<bool> open_{true};

    std::unordered_map<std::string, TensorId> ids_;
    std::vector<Slot> slots_;  // by id
    Current train_;
    Current eval_;
    std::uint64_t sequence_ = 0;
    std::int64_t last_end_ = 0;        // of a step of any mode; 0: none yet
    std::uint64_t step_cost_ = 0;      // since then
    StepIndex everything_before_ = 0;  // TRAIN steps below this one take everything
    bool stop_seen_ = false;

    std::atomic<std::uint64_t> skipped_{0};
    std::atomic<std::uint64_t> total_cost_{0};
};

namespace {

// Runs `work` with its time on the step's account, and lets nothing out: what a training must never see
// is an exception of ours.
template <typename Session, typename Work>
void guarded(Session& session, Work&& work) noexcept {
    if (!session.alive()) return;
    const std::int64_t begin = base::monotonic_nanos();
    try {
        work();
    } catch (const std::exception& error) {
        session.count_failure();
        base::log_once(LogLevel::kWarning, "capture.failure", error.what());
    } catch (...) {
        session.count_failure();
        base::log_once(LogLevel::kWarning, "capture.failure", "capture failed for an unknown reason");
    }
    session.add_cost(static_cast<std::uint64_t>(base::monotonic_nanos() - begin));
}

}  // namespace

CaptureSession::CaptureSession(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}

CaptureSession::~CaptureSession() {
    if (impl_->is_in_child()) impl_->abandon();
    else close(std::chrono::seconds(1));
}

Result<std::unique_ptr<CaptureSession>> CaptureSession::open(SessionOptions options,
                                                             storage::FileSystem& files) {
    try {
        if (options.run_directory.empty())
            return Status(Code::kInvalidArgument, "run directory: the name is empty");
        TRAINDBG_ASSIGN_OR_RETURN(CapturePlan plan, CapturePlan::make(options.config));
        const storage::RunLayout layout{options.run_directory};
        TRAINDBG_RETURN_IF_ERROR(prepare_run(files, layout, options));
        Result<std::unique_ptr<ControlBlock>> control = ControlBlock::open(layout.control());
        if (!control)
            base::log_once(LogLevel::kWarning, "capture.control",
                           "the supervisor cannot stop this training: " + control.status().message());
        TRAINDBG_ASSIGN_OR_RETURN(
            auto writer, write::RunWriter::open(
                             files, {.run_directory = options.run_directory,
                                     .worker = options.worker,
                                     .queue_bytes = static_cast<std::size_t>(options.config.queue_bytes),
                                     .arena_bytes = static_cast<std::size_t>(options.config.arena_bytes),
                                     .overflow = options.config.overflow,
                                     .block_for = std::chrono::milliseconds(std::min<std::uint64_t>(
                                         options.config.block_for_ms, kLongestBlockMs)),
                                     .part_bytes = options.config.part_bytes,
                                     .retention = options.config.retention}));
        auto impl = std::make_unique<Impl>(std::move(options), std::move(plan), std::move(writer),
                                           control ? std::move(control).value() : nullptr);
        return std::unique_ptr<CaptureSession>(new CaptureSession(std::move(impl)));
    } catch (const std::exception& error) {
        return Status(Code::kResourceExhausted, base::format("recording could not begin: {}", error.what()));
    }
}

TensorId CaptureSession::register_tensor(model::TensorInfo info) noexcept {
    TensorId id = kNoTensor;
    guarded(*impl_, [&] { id = impl_->add_tensor(std::move(info)); });
    return id;
}

void CaptureSession::describe(model::WorkerMeta meta) noexcept {
    guarded(*impl_, [&] { impl_->describe(std::move(meta)); });
}

void CaptureSession::event(std::string_view kind, std::string_view json) noexcept {
    guarded(*impl_, [&] { impl_->event(kind, json); });
}

RoleMask CaptureSession::due(Mode mode) noexcept { return impl_->alive() ? impl_->due(mode) : 0; }
RoleMask CaptureSession::eager(Mode mode) const noexcept { return impl_->alive() ? impl_->eager(mode) : 0; }
void CaptureSession::forward_passed() noexcept { impl_->forward_passed(); }
StepIndex CaptureSession::step(Mode mode) const noexcept { return impl_->step(mode); }

void CaptureSession::observe(Mode mode, TensorId tensor, const TensorView& view) noexcept {
    guarded(*impl_, [&] { impl_->observe(mode, tensor, view); });
}

void CaptureSession::observe_batch(Mode mode, std::span<const TensorId> tensors,
                                   std::span<const TensorView> views) noexcept {
    guarded(*impl_, [&] {
        const std::size_t count = std::min(tensors.size(), views.size());
        for (std::size_t i = 0; i < count; ++i)
            if (views[i].data != nullptr) impl_->observe(mode, tensors[i], views[i]);
    });
}

void CaptureSession::observe_scalar(Mode mode, TensorId tensor, double value) noexcept {
    guarded(*impl_, [&] { impl_->observe_scalar(mode, tensor, value); });
}

void CaptureSession::observe_classes(Mode mode, TensorId tensor, const TensorView& logits,
                                     const TensorView& labels) noexcept {
    guarded(*impl_, [&] { impl_->observe_classes(mode, tensor, logits, labels); });
}

void CaptureSession::keep_always(TensorId tensor) noexcept {
    if (impl_->alive()) impl_->keep_always(tensor);
}

void CaptureSession::observe_update(Mode mode, TensorId update, TensorId ratio, const TensorView& before,
                                    const TensorView& after) noexcept {
    guarded(*impl_, [&] { impl_->observe_update(mode, update, ratio, before, after); });
}

void CaptureSession::observe_statistics(Mode mode, TensorId tensor,
                                        const model::Statistics& statistics) noexcept {
    guarded(*impl_, [&] { impl_->observe_statistics(mode, tensor, statistics); });
}

void CaptureSession::capture_everything_for(std::uint64_t steps) noexcept {
    if (impl_->alive()) impl_->capture_everything_for(steps);
}

void CaptureSession::add_cost(std::uint64_t nanos) noexcept {
    if (impl_->alive()) impl_->add_cost(nanos);
}

StepDirective CaptureSession::end_step() noexcept {
    StepDirective directive;
    guarded(*impl_, [&] {
        impl_->end(Mode::kTrain);
        directive = impl_->directive();
    });
    return directive;
}

void CaptureSession::end_eval_step() noexcept {
    guarded(*impl_, [&] { impl_->end(Mode::kEval); });
}

void CaptureSession::close(std::chrono::nanoseconds patience) noexcept {
    guarded(*impl_, [&] { impl_->close(patience); });
}

void CaptureSession::abandon() noexcept { impl_->abandon(); }
bool CaptureSession::is_open() const noexcept { return impl_->alive(); }
SessionCounts CaptureSession::counts() const { return impl_->counts(); }
const std::string& CaptureSession::run_directory() const noexcept { return impl_->options().run_directory; }
model::WorkerId CaptureSession::worker() const noexcept { return impl_->worker(); }
const CapturePlan& CaptureSession::plan() const noexcept { return impl_->plan(); }

}  // namespace traindbg::capture
