#include "traindbg/capture/plan_changes.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "traindbg/base/bytes.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/base/format.h"
#include "traindbg/base/log.h"
#include "traindbg/model/checked_json.h"
#include "traindbg/model/json.h"
#include "traindbg/storage/plan_files.h"
#include "traindbg/write/thread.h"

namespace traindbg::capture {
namespace {

using base::Code;
using base::Result;
using base::Status;
using model::Requirement;

constexpr std::uint64_t kMostPlanBytes = std::uint64_t{16} << 20;
constexpr std::uint32_t kMostPlansLookedAt = 100;  // of those before the one in force
constexpr int kLockTries = 20;
constexpr std::chrono::milliseconds kLockPause{5};

std::string path_of(const storage::RunLayout& layout, std::uint32_t number) {
    return number == 0 ? layout.plan_json() : layout.plan_change_json(number);
}

Result<model::CaptureConfig> read_plan(storage::FileSystem& files, const std::string& path) {
    const Result<base::ByteBuffer> bytes = storage::read_whole(files, path, kMostPlanBytes);
    if (!bytes) return bytes.status();
    const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    if (model::check_text(text) == model::TextCheck::kDamaged)
        return Status(Code::kDataLoss, base::format("{}: {}", path, model::kWrongText));
    Result<model::CaptureConfig> config = model::capture_config_from_json(text);
    if (!config)
        return Status(config.status().code(), base::format("{}: {}", path, config.status().message()));
    return config;
}

// What an earlier plan of the run held and the one in force does not: somebody took it out.
std::vector<Requirement> requirements_taken_out(storage::FileSystem& files, const storage::RunLayout& layout,
                                                const PlanInForce& plan) {
    std::vector<Requirement> out;
    const std::uint32_t first = plan.number - std::min(plan.number, kMostPlansLookedAt);
    for (std::uint32_t number = first; number < plan.number; ++number) {
        const Result<model::CaptureConfig> earlier = read_plan(files, path_of(layout, number));
        if (!earlier) continue;
        for (const Requirement& requirement : earlier->requirements) {
            const auto& now = plan.config.requirements;
            if (std::find(now.begin(), now.end(), requirement) == now.end()) out.push_back(requirement);
        }
    }
    return out;
}

}  // namespace

Result<PlanInForce> read_plan_in_force(storage::FileSystem& files, const storage::RunLayout& layout) {
    PlanInForce out;
    TRAINDBG_ASSIGN_OR_RETURN(out.number, storage::newest_plan_change(files, layout));
    TRAINDBG_ASSIGN_OR_RETURN(out.config, read_plan(files, path_of(layout, out.number)));
    return out;
}

Result<PlanInForce> publish_wishes(storage::FileSystem& files, const storage::RunLayout& layout,
                                   const model::CaptureConfig& config) {
    // `traindbg set` holds the same lock; where it stays taken, or there are none, nobody is waited for long.
    std::unique_ptr<storage::FileLock> lock;
    for (int i = 0; i < kLockTries && !lock; ++i) {
        auto locked = files.try_lock(layout.plan_json(), storage::LockFile::kMustExist);
        if (locked) lock = std::move(locked).value();
        else if (locked.status().code() != Code::kUnavailable) break;
        else std::this_thread::sleep_for(kLockPause);
    }
    TRAINDBG_ASSIGN_OR_RETURN(PlanInForce plan, read_plan_in_force(files, layout));
    bool has_more = false;
    const std::vector<Requirement> taken_out = requirements_taken_out(files, layout, plan);
    for (const model::CollectionSpec& spec : config.collections) {
        auto& known = plan.config.collections;
        if (std::any_of(known.begin(), known.end(), [&](const auto& each) { return each.name == spec.name; }))
            continue;
        known.push_back(spec);
        has_more = true;
    }
    for (const Requirement& requirement : config.requirements) {
        auto& known = plan.config.requirements;
        const auto is_in = [&](const std::vector<Requirement>& all) {
            return std::find(all.begin(), all.end(), requirement) != all.end();
        };
        if (is_in(known)) continue;
        if (is_in(taken_out)) {
            base::log_once(
                base::LogLevel::kInfo, "capture.taken_out",
                "what this process asks for was taken out of the run's plan meanwhile, and stays so");
            continue;
        }
        known.push_back(requirement);
        has_more = true;
    }
    if (!has_more) return plan;
    ++plan.number;
    TRAINDBG_RETURN_IF_ERROR(
        files.put_atomic(layout.plan_change_json(plan.number),
                         base::as_bytes(model::to_checked_text(model::to_json(plan.config)))));
    return plan;
}

void TensorNames::add(std::string_view name, model::Role role, std::span<const std::string> collections) {
    text_ += name;
    tensors_.push_back({text_.size(), role});
    if (!collections.empty())
        collections_.emplace_back(tensors_.size() - 1,
                                  std::vector<std::string>(collections.begin(), collections.end()));
}

std::string_view TensorNames::name(std::size_t i) const noexcept {
    const std::size_t begin = i == 0 ? 0 : tensors_[i - 1].end;
    return std::string_view(text_).substr(begin, tensors_[i].end - begin);
}

std::span<const std::string> TensorNames::collections(std::size_t i) const noexcept {
    const auto found = std::lower_bound(collections_.begin(), collections_.end(), i,
                                        [](const auto& each, std::size_t id) { return each.first < id; });
    if (found == collections_.end() || found->first != i) return {};
    return found->second;
}

// Of one look; the thread may be left behind with it.
struct PlanChanges::State {
    State(storage::FileSystem& files_in, storage::RunLayout layout_in, std::uint32_t in_force_in,
          TensorNames tensors_in)
        : files(files_in),
          layout(std::move(layout_in)),
          in_force(in_force_in),
          tensors(std::move(tensors_in)) {}

    void run() noexcept {
        try {
            find();
        } catch (const std::exception& error) {
            change.plan.reset();
            change.problem = Status(Code::kResourceExhausted, error.what());
        }
        {
            const std::lock_guard lock(mutex);
            is_done.store(true, std::memory_order_release);
        }
        done.notify_all();
    }

    void find() {
        const Result<std::uint32_t> newest = storage::newest_plan_change(files, layout);
        if (!newest) {
            change.problem = newest.status();
            return;
        }
        if (*newest <= in_force) return;
        change.number = *newest;
        Result<model::CaptureConfig> config = read_plan(files, layout.plan_change_json(*newest));
        if (!config) {
            change.problem = config.status();
            return;
        }
        Result<CapturePlan> plan = CapturePlan::make(std::move(config).value());
        if (!plan) {
            change.problem = plan.status();
            return;
        }
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            if (is_called_off.load(std::memory_order_relaxed)) return;
            plan->note_tensor(tensors.name(i), tensors.role(i), tensors.collections(i));
        }
        change.plan = std::move(plan).value();
    }

    storage::FileSystem& files;
    const storage::RunLayout layout;
    const std::uint32_t in_force;
    const TensorNames tensors;
    PlanChange change;  // the thread's until it is done
    std::atomic<bool> is_done{false};
    std::atomic<bool> is_called_off{false};
    std::mutex mutex;
    std::condition_variable done;
    std::jthread thread;
};

PlanChanges::PlanChanges(storage::FileSystem& files, storage::RunLayout layout, std::uint32_t in_force)
    : files_(files), layout_(std::move(layout)), in_force_(in_force), generation_(base::fork_generation()) {}

PlanChanges::~PlanChanges() {
    if (base::fork_generation() == generation_) finish(std::chrono::nanoseconds::zero());
    else static_cast<void>(state_.release());  // the parent's thread is not here to let go of its lock
}

void PlanChanges::look(TensorNames tensors) {
    auto state = std::make_shared<State>(files_, layout_, in_force_, std::move(tensors));
    state_ = std::make_unique<std::shared_ptr<State>>(state);
    Result<std::jthread> thread =
        write::start_thread({.name = "traindbg-plan", .nice = 10}, [state] { state->run(); });
    if (thread) {
        state->thread = std::move(thread).value();
        return;
    }
    state->change.problem = thread.status();
    state->is_done.store(true, std::memory_order_release);
}

std::optional<PlanChange> PlanChanges::take() noexcept {
    if (!state_ || !(*state_)->is_done.load(std::memory_order_acquire)) return std::nullopt;
    State& state = **state_;
    if (state.thread.joinable()) state.thread.join();  // it has nothing left to do
    PlanChange change = std::move(state.change);
    state_.reset();
    // A newer one may have come into force while the thread was looking.
    if (change.number != 0 && change.number <= in_force_) return PlanChange();
    in_force_ = std::max(in_force_, change.number);
    return change;
}

bool PlanChanges::finish(std::chrono::nanoseconds patience) noexcept {
    if (!state_) return true;
    State& state = **state_;
    state.is_called_off.store(true, std::memory_order_relaxed);
    bool is_done = false;
    {
        std::unique_lock lock(state.mutex);
        is_done = state.done.wait_for(lock, patience, [&] { return state.is_done.load(); });
    }
    if (state.thread.joinable()) {
        if (is_done) state.thread.join();
        else state.thread.detach();
    }
    state_.reset();
    return is_done;
}

}  // namespace traindbg::capture
