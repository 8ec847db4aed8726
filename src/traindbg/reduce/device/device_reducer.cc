#include "traindbg/reduce/device/device_reducer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "traindbg/base/clock.h"
#include "traindbg/base/fork_generation.h"
#include "traindbg/reduce/device/backend.h"
#include "traindbg/reduce/layout.h"

namespace traindbg::reduce {

using base::Result;
using base::Status;
using device::Batch;
using device::Record;
using device::Task;
using device::Word32;
using model::ActivationKind;
using tensor::DType;
using tensor::TensorView;

namespace {

constexpr std::uint64_t kBlockBytes = 64U << 10;  // for each block, where a tensor is not too long
constexpr Word32 kMostBlocks = 1024;              // of a tensor: eight for each processor of a large GPU
constexpr Word32 kFewestScratch = 8192;           // of a stream; more than a batch of usual tensors needs
constexpr Word32 kFewestUnits = 16'384;
constexpr std::uint64_t kMostUnits = 1U << 24;
constexpr int kLooksBeforeSleep = 50;
constexpr std::chrono::microseconds kBetweenLooks{50};
constexpr std::size_t kPage = (64U << 10) / sizeof(Record);  // records

// A tensor whose elements lie in a row, in whatever order of its dimensions.
struct Row {
    const void* data = nullptr;
    std::uint64_t elements = 0;
    std::uint64_t repeats = 1;  // each counts so often: dimensions of stride 0
};

bool find_row(const TensorView& view, Row& row) noexcept {
    if (const std::size_t flat = flat_count(view)) {
        row = {view.data, flat, 1};
        return true;
    }
    const Result<CheckedView> checked = CheckedView::make(view);
    if (!checked || checked->count() == 0) return false;
    const Walk walk = Walk::any_order(*checked);
    if (walk.rank != 1 || (walk.dimensions[0].stride != 1 && walk.dimensions[0].extent != 1)) return false;
    row = {walk.begin, static_cast<std::uint64_t>(walk.dimensions[0].extent), walk.repeats};
    return true;
}

constexpr bool is_taken(DType dtype) noexcept { return dtype >= DType::kFloat64 && dtype <= DType::kBool; }
static_assert(static_cast<Word32>(DType::kFloat64) == device::kFloat64);
static_assert(static_cast<Word32>(DType::kFloat8E4M3) == device::kFloat8E4M3);
static_assert(static_cast<Word32>(DType::kFloat8E5M2) == device::kFloat8E5M2);
static_assert(static_cast<Word32>(DType::kInt64) == device::kInt64);
static_assert(static_cast<Word32>(DType::kBool) == device::kBool);
static_assert(static_cast<Word32>(ActivationKind::kRelu) == device::kRelu);
static_assert(static_cast<Word32>(ActivationKind::kTanh) == device::kTanh);
static_assert(static_cast<Word32>(ActivationKind::kSigmoid) == device::kSigmoid);

}  // namespace

class DeviceReducer::Impl {
  public:
    explicit Impl(std::unique_ptr<device::Backend> backend) : backend_(std::move(backend)) {}
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    // Memory that a device still writes to is not given back, nor what is the parent's.
    ~Impl() {
        const bool is_at_rest = generation_ == base::fork_generation() &&
                                std::ranges::all_of(marked_, [&](Marked& each) { return advance(each); }) &&
                                std::ranges::none_of(lanes_, &Lane::is_busy);
        if (!is_at_rest) backend_->abandon();
    }

    void begin(const Place& place, std::span<const Wanted> tensors, std::span<Ticket> tickets) {
        Lane* const lane = ready_lane(place);
        if (lane == nullptr) return;
        try {
            for (std::size_t i = 0; i < tensors.size(); ++i) tickets[i] = add(*lane, tensors[i]);
        } catch (...) {
            lane->drop_batch();  // nobody knows of it
            throw;
        }
        if (!launch(*lane)) std::ranges::fill(tickets, kNone);
    }

    Ticket begin_difference(const Place& place, const TensorView& before, const TensorView& after) {
        Row old;
        Row row;
        if (!is_taken(after.dtype) || !tensor::is_floating(after.dtype) || before.dtype != after.dtype ||
            !std::ranges::equal(before.shape, after.shape) ||
            !std::ranges::equal(before.strides, after.strides) || !find_row(before, old) ||
            !find_row(after, row) || old.elements != row.elements || row.repeats != 1)
            return kNone;
        Lane* const lane = ready_lane(place);
        if (lane == nullptr) return kNone;
        Task* const task = next_task(*lane, row, after.dtype);
        if (task == nullptr) return kNone;
        task->before = old.data;
        const Ticket ticket = last_;
        return launch(*lane) ? ticket : kNone;
    }

    Mark mark() {
        Marked marked{.mark = last_mark_ + 1, .places = {}, .status = {}};
        for (Lane& lane : lanes_)
            if (lane.is_busy) marked.places.emplace_back(&lane, std::nullopt);
        for (const auto& [lane, number] : marked.places) lane->is_busy = false;
        ++last_mark_;
        // One whose streams are captured is marked when that is over.
        if (!advance(marked) || !marked.status.is_ok()) marked_.push_back(std::move(marked));
        return last_mark_;
    }

    std::optional<Status> poll(Mark mark) {
        const auto marked = std::ranges::find(marked_, mark, &Marked::mark);
        if (marked == marked_.end()) return Status::ok();
        if (!advance(*marked)) return std::nullopt;
        Status status = std::move(marked->status);
        marked_.erase(marked);
        if (!status.is_ok()) note(status);
        return status;
    }

    Status wait(std::chrono::nanoseconds patience) {
        const std::int64_t deadline = base::monotonic_nanos() + patience.count();
        const Mark last = mark();
        for (int looks = 0;; ++looks) {
            const auto is_there = [&](Marked& each) { return advance(each); };
            if (std::ranges::all_of(marked_, is_there)) break;
            if (base::monotonic_nanos() >= deadline)
                return {base::Code::kUnavailable, "the device has not come so far in time"};
            if (looks > kLooksBeforeSleep) std::this_thread::sleep_for(kBetweenLooks);
        }
        return *poll(last);
    }

    [[nodiscard]] model::Statistics statistics(Ticket ticket) const noexcept {
        model::Statistics out;
        if (ticket >= results_.size()) return out;
        const One& one = results_[ticket];
        const device::Found& found = one.record->found;
        const std::uint64_t repeats = one.repeats;
        out.count = one.count * repeats;
        out.nan = found.nan * repeats;
        out.positive_infinite = found.above * repeats;
        out.negative_infinite = found.below * repeats;
        out.zero = found.zero * repeats;
        const std::uint64_t finite = one.count - found.nan - found.above - found.below;
        if (finite == 0) return out;
        const auto n = static_cast<double>(finite);
        const double start = one.record->start;
        const auto times = static_cast<double>(repeats);
        out.min = found.least;
        out.max = found.most;
        out.mean = start + found.sum / n;
        out.std = std::sqrt(std::max(0.0, (found.squares - found.sum * found.sum / n) / n));
        out.l1 = found.sizes * times;
        out.l2 = std::sqrt(std::max(0.0, found.squares + 2 * start * found.sum + n * start * start) * times);
        return out;
    }
    [[nodiscard]] model::UnitStatistics units(Ticket ticket) const noexcept {
        if (ticket >= results_.size() || results_[ticket].units == 0) return {};
        const One& one = results_[ticket];
        return {.units = one.units,
                .inactive_units = static_cast<std::uint32_t>(one.record->inactive_units),
                .low = one.record->found.low,
                .high = one.record->found.high};
    }
    [[nodiscard]] double before_l2(Ticket ticket) const noexcept {
        return ticket < results_.size() ? std::sqrt(results_[ticket].record->found.before_squares) : 0;
    }
    [[nodiscard]] double value(Ticket ticket) const noexcept {
        if (ticket >= results_.size()) return std::nan("");
        const device::Found& found = results_[ticket].record->found;
        if (found.nan > 0) return std::nan("");
        if (found.above > 0) return HUGE_VAL;
        return found.below > 0 ? -HUGE_VAL : found.least;
    }
    void release(Ticket ticket) noexcept {
        if (ticket < results_.size()) free_.push_back(ticket);  // has room for all
    }
    [[nodiscard]] const Status& failure() const noexcept { return failure_; }

    void note(const Status& status) noexcept {
        try {
            failure_ = status;
        } catch (...) {  // out of memory
        }
    }

  private:
    // What a stream's kernels use among themselves; they run one after the other.
    struct Lane {
        Place place;
        bool is_broken = false;
        bool is_busy = false;  // something was launched that was not waited for
        device::Found* scratch = nullptr;
        Word32 scratch_size = 0;
        Word32* arrived = nullptr;  // device::kMostTasks of them
        Word32* active = nullptr;
        Word32 active_size = 0;
        Word32 stamp = 0;
        // What is launched next.
        Batch batch{};
        Word32 blocks = 0;
        Word32 scratch_used = 0;
        Word32 active_used = 0;

        void drop_batch() noexcept { batch.size = blocks = scratch_used = active_used = 0; }
    };
    struct Marked {
        Mark mark;
        // Of each stream that is not there yet its mark, where it could be made.
        std::vector<std::pair<Lane*, std::optional<std::uint32_t>>> places;
        Status status;  // what failed
    };

    // Whether the device has passed it. An error counts as that, and is kept in the status.
    bool advance(Marked& marked) {
        std::erase_if(marked.places, [&](auto& each) {
            auto& [lane, number] = each;
            if (!number && backend_->is_capturing(lane->place)) return false;
            if (!number) {
                const Result<std::uint32_t> made = backend_->mark(lane->place);
                if (!made) {
                    marked.status = made.status();
                    return true;
                }
                number = *made;
            }
            const Result<bool> passed = backend_->has_passed(lane->place, *number);
            if (passed && !*passed) return false;
            if (!passed) marked.status = passed.status();
            backend_->forget(lane->place, *number);
            return true;
        });
        return marked.places.empty();
    }

    // What a ticket is for.
    struct One {
        const Record* record = nullptr;  // as the host sees it
        Record* on_device = nullptr;     // the same for the device
        std::uint64_t count = 0;
        std::uint64_t repeats = 1;
        std::uint32_t units = 0;
    };

    // Null: nothing is taken there.
    Lane* ready_lane(const Place& place) {
        auto lane = std::ranges::find_if(lanes_, [&](const Lane& each) { return each.place == place; });
        if (lane == lanes_.end()) {
            lane = lanes_.emplace(lanes_.end(), Lane{.place = place});
            if (backend_->is_capturing(place)) {  // nothing may be allocated now
                lanes_.erase(lane);
                return nullptr;
            }
            if (const Status status = prepare(*lane); !status.is_ok()) {
                lane->is_broken = true;
                note(status);
            }
        }
        return lane->is_broken || backend_->is_capturing(place) ? nullptr : &*lane;
    }

    Status prepare(Lane& lane) {
        TRAINDBG_RETURN_IF_ERROR(backend_->prepare(lane.place));
        TRAINDBG_ASSIGN_OR_RETURN(void* const arrived,
                                  backend_->allocate(lane.place, device::kMostTasks * sizeof(Word32)));
        lane.arrived = static_cast<Word32*>(arrived);
        TRAINDBG_RETURN_IF_ERROR(grow(lane.place, lane.scratch, lane.scratch_size, kFewestScratch));
        return grow(lane.place, lane.active, lane.active_size, kFewestUnits);
    }

    // Kernels on their way go on with what was there before.
    template <typename Item>
    Status grow(const Place& place, Item*& items, Word32& size, std::uint64_t least) {
        const std::uint64_t wanted = std::max<std::uint64_t>(least, std::uint64_t{size} * 2);
        TRAINDBG_ASSIGN_OR_RETURN(void* const memory, backend_->allocate(place, wanted * sizeof(Item)));
        items = static_cast<Item*>(memory);
        size = static_cast<Word32>(wanted);
        return Status::ok();
    }

    Ticket add(Lane& lane, const Wanted& wanted) {
        Row row;
        const TensorView& view = wanted.view;
        if (!is_taken(view.dtype) || !find_row(view, row)) return kNone;
        const bool has_units = wanted.units_of != ActivationKind::kNone && tensor::is_floating(view.dtype);
        if (has_units && row.repeats != 1) return kNone;
        std::uint64_t units = 0;
        std::uint64_t inner = 1;
        if (has_units) {
            const int dimension = unit_dimension(view.shape.size());
            const auto at = static_cast<std::size_t>(std::max(dimension, 0));
            units = dimension < 0 ? 1 : static_cast<std::uint64_t>(view.shape[at]);
            if (dimension >= 0 && units > 1) {
                if (!view.strides.empty()) inner = static_cast<std::uint64_t>(view.strides[at]);
                else
                    for (std::size_t i = at + 1; i < view.shape.size(); ++i)
                        inner *= static_cast<std::uint64_t>(view.shape[i]);
            }
            if (units > kMostUnits || inner == 0 || inner > UINT32_MAX) return kNone;
        }
        const bool is_marked = has_units && wanted.units_of == ActivationKind::kRelu;
        if (is_marked && units > lane.active_size - lane.active_used) {
            if (!launch(lane)) return kNone;
            if (units > lane.active_size && !is_ok(grow(lane.place, lane.active, lane.active_size, units)))
                return kNone;
        }
        Task* const task = next_task(lane, row, view.dtype);
        if (task == nullptr) return kNone;
        results_[last_].units = static_cast<std::uint32_t>(units);
        if (has_units) task->activation = static_cast<unsigned char>(wanted.units_of);
        if (is_marked) {
            task->active = lane.active + lane.active_used;
            lane.active_used += static_cast<Word32>(units);
            task->units = static_cast<Word32>(units);
            task->inner = static_cast<Word32>(inner);
        }
        return last_;
    }

    // Whether it is; notes it where it is not.
    bool is_ok(const Status& status) noexcept {
        if (!status.is_ok()) note(status);
        return status.is_ok();
    }

    // A further task of the lane's batch, with a result of its own, whose ticket is `last_`.
    Task* next_task(Lane& lane, const Row& row, DType dtype) {
        const std::uint64_t bytes = row.elements * tensor::byte_size(dtype);
        const auto blocks = static_cast<Word32>(
            std::clamp<std::uint64_t>((bytes + kBlockBytes - 1) / kBlockBytes, 1, kMostBlocks));
        if (lane.batch.size == device::kMostTasks || blocks > lane.scratch_size - lane.scratch_used)
            if (!launch(lane)) return nullptr;
        const Status status = take_ticket(lane.place);
        if (!status.is_ok()) {
            note(status);
            return nullptr;
        }
        One& one = results_[last_];
        one.count = row.elements;
        one.repeats = row.repeats;
        one.units = 0;
        const Word32 number = lane.batch.size++;
        Task& task = lane.batch.tasks[number];
        task = Task{.data = row.data,
                    .before = nullptr,
                    .elements = row.elements,
                    .record = one.on_device,
                    .scratch = lane.scratch + lane.scratch_used,
                    .arrived = lane.arrived + number,
                    .active = nullptr,
                    .first_block = lane.blocks,
                    .blocks = blocks,
                    .inner = 1,
                    .units = 1,
                    .stamp = lane.stamp + 1,
                    .element = static_cast<unsigned char>(dtype),
                    .activation = 0};
        lane.blocks += blocks;
        lane.scratch_used += blocks;
        return &task;
    }

    Status take_ticket(const Place& place) {
        if (free_.empty()) {
            TRAINDBG_ASSIGN_OR_RETURN(const device::SharedMemory page,
                                      backend_->share(place, kPage * sizeof(Record)));
            const std::size_t first = results_.size();
            free_.reserve(first + kPage);
            results_.resize(first + kPage);
            for (std::size_t i = 0; i < kPage; ++i) {
                results_[first + i].record = reinterpret_cast<const Record*>(page.host) + i;
                results_[first + i].on_device = reinterpret_cast<Record*>(page.device) + i;
            }
            for (std::size_t i = kPage; i-- > 0;) free_.push_back(static_cast<Ticket>(first + i));
        }
        last_ = free_.back();
        free_.pop_back();
        return Status::ok();
    }

    // False: it failed, and nothing more is taken on this stream.
    bool launch(Lane& lane) {
        if (lane.is_broken) lane.drop_batch();
        if (lane.batch.size == 0) return !lane.is_broken;
        if (++lane.stamp == UINT32_MAX) lane.is_broken = true;  // after four billion launches
        const Status status = backend_->launch(lane.place, lane.batch, lane.blocks);
        lane.drop_batch();
        lane.is_busy = true;
        if (is_ok(status)) return true;
        lane.is_broken = true;
        return false;
    }

    std::unique_ptr<device::Backend> backend_;
    const std::uint32_t generation_ = base::fork_generation();
    std::list<Lane> lanes_;
    std::vector<Marked> marked_;  // that were not waited for; a few
    Mark last_mark_ = 0;
    std::vector<One> results_;  // by ticket
    std::vector<Ticket> free_;
    Ticket last_ = kNone;
    Status failure_;
};

DeviceReducer::DeviceReducer(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
DeviceReducer::~DeviceReducer() = default;

Result<std::unique_ptr<DeviceReducer>> DeviceReducer::on_cuda(std::span<const std::string> compilers) {
    TRAINDBG_ASSIGN_OR_RETURN(std::unique_ptr<device::Backend> backend, device::cuda_backend(compilers));
    return std::unique_ptr<DeviceReducer>(new DeviceReducer(std::make_unique<Impl>(std::move(backend))));
}
std::unique_ptr<DeviceReducer> DeviceReducer::on(std::unique_ptr<device::Backend> backend) {
    return std::unique_ptr<DeviceReducer>(new DeviceReducer(std::make_unique<Impl>(std::move(backend))));
}
std::unique_ptr<DeviceReducer> DeviceReducer::on_host(unsigned behind) {
    return on(device::host_backend(behind));
}

void DeviceReducer::begin(const Place& place, std::span<const Wanted> tensors,
                          std::span<Ticket> tickets) noexcept {
    std::ranges::fill(tickets, kNone);
    try {
        impl_->begin(place, tensors, tickets);
    } catch (...) {  // out of memory
        std::ranges::fill(tickets, kNone);
    }
}
DeviceReducer::Ticket DeviceReducer::begin_difference(const Place& place, const TensorView& before,
                                                      const TensorView& after) noexcept {
    try {
        return impl_->begin_difference(place, before, after);
    } catch (...) {  // out of memory
        return kNone;
    }
}
DeviceReducer::Mark DeviceReducer::mark() noexcept {
    try {
        return impl_->mark();
    } catch (...) {  // out of memory
        return 0;
    }
}
std::optional<Status> DeviceReducer::poll(Mark mark) noexcept {
    try {
        if (mark == 0) return Status(base::Code::kResourceExhausted, "no memory");
        return impl_->poll(mark);
    } catch (...) {  // out of memory
        return std::nullopt;
    }
}
Status DeviceReducer::wait(std::chrono::nanoseconds patience) noexcept {
    try {
        return impl_->wait(patience);
    } catch (...) {  // out of memory
        return {base::Code::kResourceExhausted, {}};
    }
}
model::Statistics DeviceReducer::statistics(Ticket ticket) const noexcept {
    return impl_->statistics(ticket);
}
model::UnitStatistics DeviceReducer::units(Ticket ticket) const noexcept { return impl_->units(ticket); }
double DeviceReducer::before_l2(Ticket ticket) const noexcept { return impl_->before_l2(ticket); }
double DeviceReducer::value(Ticket ticket) const noexcept { return impl_->value(ticket); }
void DeviceReducer::release(Ticket ticket) noexcept { impl_->release(ticket); }
const Status& DeviceReducer::failure() const noexcept { return impl_->failure(); }

}  // namespace traindbg::reduce
