#include "traindbg/capture/flight_recorder.h"

#include <algorithm>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

#include "traindbg/base/bytes.h"
#include "traindbg/base/log.h"
#include "traindbg/capture/run_description.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/run_layout.h"
#include "traindbg/write/arena.h"

namespace traindbg::capture {
namespace {

using base::Result;
using base::Status;
using model::Requirement;
using model::What;

constexpr std::uint64_t kStepsAfter = 3;   // what went wrong is easier seen from both sides
constexpr std::uint32_t kMostCopies = 16;  // of a training in which something goes wrong all the time
constexpr std::uint64_t kMostSteps = 100'000;
// Two parts of a ring share the quota: with less than this, statistics alone would fill a part early, and the
// ring would hold fewer steps than asked for.
constexpr std::uint64_t kLeastQuota = 64ULL << 20;

// What a recorder that is asked for nothing in particular has.
const std::vector<std::string>& usual_collections() {
    static const std::vector<std::string> names = {"weights", "biases",  "gradients",
                                                   "inputs",  "outputs", "activations"};
    return names;
}

model::CaptureConfig plan_of(const model::CaptureConfig& config) {
    model::CaptureConfig out = config;
    out.requirements.clear();
    out.budget = 0;
    const auto need = [&](const std::vector<std::string>& collections, What what) {
        for (const std::string& name : collections)
            out.requirements.push_back({.collection = name,
                                        .mode = model::Mode::kTrain,
                                        .what = what,
                                        .schedule = {},
                                        .asked_by = "flight_recorder"});
    };
    const bool is_plain = config.flight.collect.empty() && config.flight.raw.empty();
    need({"losses"}, What::kStatistics);
    need(is_plain ? usual_collections() : config.flight.collect, What::kStatistics);
    need(config.flight.raw, What::kStatistics | What::kRaw);
    return out;
}

// The directory with its description, as far as another worker did not make it before.
Status prepare(storage::FileSystem& files, const storage::RunLayout& of_run, const storage::RunLayout& layout,
               const model::CaptureConfig& config) {
    TRAINDBG_RETURN_IF_ERROR(files.create_directories(layout.root));
    TRAINDBG_ASSIGN_OR_RETURN(const base::ByteBuffer bytes,
                              storage::read_whole(files, of_run.run_json(), 1 << 20));
    TRAINDBG_ASSIGN_OR_RETURN(
        model::RunMeta meta,
        model::run_meta_from_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    meta.run_id += "-flight";
    TRAINDBG_RETURN_IF_ERROR(put_if_missing(files, layout.run_json(), model::to_json(meta)));
    return put_if_missing(files, layout.plan_json(), model::to_json(config));
}

}  // namespace

FlightRecorder::FlightRecorder(storage::FileSystem& files, storage::RunLayout layout, CapturePlan plan,
                               std::unique_ptr<write::RunWriter> writer)
    : files_(files), layout_(std::move(layout)), plan_(std::move(plan)), writer_(std::move(writer)) {}

FlightRecorder::~FlightRecorder() = default;

Result<std::unique_ptr<FlightRecorder>> FlightRecorder::open(storage::FileSystem& files,
                                                             const storage::RunLayout& of_run,
                                                             const model::CaptureConfig& config,
                                                             model::WorkerId worker) {
    const model::CaptureConfig own = plan_of(config);
    TRAINDBG_ASSIGN_OR_RETURN(CapturePlan plan, CapturePlan::make(own));
    storage::RunLayout layout{of_run.flight()};
    TRAINDBG_RETURN_IF_ERROR(prepare(files, of_run, layout, own));
    const std::size_t arena = config.arena_bytes != 0 ? static_cast<std::size_t>(config.arena_bytes)
                                                      : write::Arena::default_bytes();
    TRAINDBG_ASSIGN_OR_RETURN(
        auto writer,
        write::RunWriter::open(
            files,
            {.run_directory = layout.root,
             .worker = worker,
             .queue_bytes = static_cast<std::size_t>(config.queue_bytes),
             .arena_bytes = arena,
             .overflow = model::OverflowPolicy::kKeepReductionsOnly,
             .block_for = std::chrono::milliseconds(0),
             .sync_interval = std::chrono::milliseconds(0),
             .reserve_bytes = 0,
             // So many bytes of whole tensors, which are in the page cache for a while.
             .retention = {.quota_bytes = std::max<std::uint64_t>(8ULL * arena, kLeastQuota)},
             // So many are there when something goes wrong, and still when those after it are in.
             .ring_steps = std::clamp<std::uint64_t>(config.flight.steps, 1, kMostSteps) + kStepsAfter + 1,
             // The run's own writer tells, or its supervisor.
             .is_loss_told = [&files, run = of_run.root] { return !files.exists(run); }}));
    return std::unique_ptr<FlightRecorder>(
        new FlightRecorder(files, std::move(layout), std::move(plan), std::move(writer)));
}

void FlightRecorder::add_tensor(const model::TensorInfo& info) {
    plan_.note_tensor(info);
    writer_->add_tensor(info);
}

void FlightRecorder::describe(const model::WorkerMeta& meta) noexcept { writer_->describe(meta); }

RoleMask FlightRecorder::due_roles() const noexcept { return plan_.due_roles(model::Mode::kTrain, 0); }

What FlightRecorder::due(model::TensorId tensor) const noexcept {
    return plan_.due(tensor, model::Mode::kTrain, 0);
}

void FlightRecorder::end_step(const model::StepRecord& head) noexcept {
    if (!current_.empty()) {
        model::StepRecord& record = current_.record;
        record.mode = model::Mode::kTrain;
        record.step = head.step;
        record.sequence = head.step;
        record.wall_nanos = head.wall_nanos;
        record.monotonic_nanos = head.monotonic_nanos;
        record.step_nanos = head.step_nanos;
        record.capture_nanos = head.capture_nanos;
        current_.hand_to(*writer_);
    }
    if (steps_to_come_ != 0 && --steps_to_come_ == 0) writer_->keep_ring();
}

bool FlightRecorder::keep(std::string_view reason, model::StepIndex step) noexcept {
    if (steps_to_come_ != 0 || kept_ >= kMostCopies) return false;
    ++kept_;
    steps_to_come_ = kStepsAfter + 1;  // the one under way, too
    try {
        const model::Json json = {{"step", step}, {"reason", reason}};
        writer_->event("flight_recorder", json.dump(-1, ' ', false, model::Json::error_handler_t::replace));
    } catch (const std::exception& error) {
        base::log_once(base::LogLevel::kDebug, "capture.flight", error.what());
    }
    return true;
}

void FlightRecorder::close(std::chrono::nanoseconds patience) noexcept {
    if (std::exchange(is_closed_, true)) return;
    if (steps_to_come_ != 0) writer_->keep_ring();
    writer_->close(patience).ignore();  // the writer itself says what went wrong, once
    if (kept_ != 0) return;
    try {
        // The last of the workers takes the rest away; removing a directory that is not empty does nothing.
        const auto entries = files_.list(layout_.root);
        if (!entries || std::any_of(entries->begin(), entries->end(),
                                    [](const storage::DirectoryEntry& entry) { return entry.is_directory; }))
            return;
        files_.remove(layout_.plan_json()).ignore();
        files_.remove(layout_.run_json()).ignore();
        files_.remove(layout_.root).ignore();
    } catch (const std::exception& error) {
        base::log_once(base::LogLevel::kDebug, "capture.flight", error.what());  // it stays
    }
}

void FlightRecorder::abandon() noexcept {
    is_closed_ = true;
    writer_->abandon();
}

}  // namespace traindbg::capture
