#include "traindbg/reduce/device/device_reducer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "reduce/strided_tensor.h"
#include "traindbg/reduce/device/backend.h"
#include "traindbg/reduce/reducer.h"

namespace traindbg::reduce {
namespace {

using model::ActivationKind;
using test::DType;
using test::StridedTensor;
using Ticket = DeviceReducer::Ticket;
using Wanted = DeviceReducer::Wanted;

using namespace std::chrono_literals;

constexpr DeviceReducer::Place kHere{};

double normal(std::mt19937& random, double mean, double deviation) {
    return std::normal_distribution<double>(mean, deviation)(random);
}

// What chunk.h promises.
void expect_close(const model::Statistics& got, const model::Statistics& want, const std::string& what) {
    test::expect_close(got, want, what, 1e-6);
}

Ticket begin(DeviceReducer& reducer, const Wanted& wanted) {
    Ticket ticket = DeviceReducer::kNone;
    reducer.begin(kHere, {&wanted, 1}, {&ticket, 1});
    return ticket;
}

model::Statistics statistics_of(const tensor::TensorView& view) {
    const auto reducer = DeviceReducer::on_host();
    const Ticket ticket = begin(*reducer, {view});
    EXPECT_NE(ticket, DeviceReducer::kNone) << reducer->failure().message();
    EXPECT_TRUE(reducer->wait(1s));
    return reducer->statistics(ticket);
}

std::vector<DType> taken_types() {
    std::vector<DType> out;
    for (const DType dtype : test::real_types())
        if (dtype <= DType::kBool) out.push_back(dtype);
    return out;
}

TEST(DeviceReducer, AgreesWithTheReferenceForEveryTypeSizeAndAddress) {
    std::mt19937 random(1);
    for (const DType dtype : taken_types())
        for (const std::int64_t size : {1, 2, 3, 7, 8, 9, 63, 64, 65, 1000, 40'001})
            for (const std::int64_t offset : {0, 1, 3}) {
                StridedTensor data(dtype, static_cast<std::size_t>(size + offset), offset, {size}, {1});
                data.fill([&] { return normal(random, 3, 40); });
                expect_close(statistics_of(data.view()), test::reference(data.values()),
                             std::string(tensor::to_string(dtype)) + " of " + std::to_string(size) +
                                 " from " + std::to_string(offset));
            }
}

TEST(DeviceReducer, AgreesWithTheReferenceForOddValues) {
    std::mt19937 random(2);
    const auto odd = [&] {
        switch (random() % 7) {
            case 0: return std::nan("");
            case 1: return HUGE_VAL;
            case 2: return -HUGE_VAL;
            case 3: return 0.0;
            default: return normal(random, -7, 3);
        }
    };
    const std::vector<std::function<double()>> all{
        odd,
        [&] { return std::nan(""); },
        [&] { return -HUGE_VAL; },
        [&] { return 0.1; },
        [&] { return normal(random, 1e6, 1); },
        [&] { return normal(random, 0, 1e-40); },
        [&] { return normal(random, 0, 1e37); },
        [&] { return std::pow(normal(random, 0, 1), 9); },
        [&] { return random() % 500 == 0 ? 1e6 : normal(random, 3, 1e-3); },
        [&] { return std::max(0.0, normal(random, 0, 1)); },
        [&] { return normal(random, 0, 1e-22); }};
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16})
        for (std::size_t kind = 0; kind < all.size(); ++kind)
            for (const std::int64_t size : {1, 5, 3000, 70'000}) {
                StridedTensor data(dtype, {size});
                data.fill(all[kind]);
                expect_close(statistics_of(data.view()), test::reference(data.values()),
                             std::string(tensor::to_string(dtype)) + ", " + std::to_string(kind) + ", " +
                                 std::to_string(size));
            }
}

TEST(DeviceReducer, AnOutlierInFrontCostsNoDigits) {
    std::mt19937 random(7);
    StridedTensor data(DType::kFloat32, {50'000});
    data.fill([&] { return normal(random, 0, 1e-3); });
    data.set(0, 1e6);
    expect_close(statistics_of(data.view()), test::reference(data.values()), "outlier");
}

// The samples that distances are taken from may lie where nothing is finite.
TEST(DeviceReducer, WhatIsNotFiniteIsNoSample) {
    std::mt19937 random(8);
    StridedTensor triangle(DType::kFloat32, {1024, 1024});
    std::size_t at = 0;
    triangle.fill([&] {
        const std::size_t row = at / 1024;
        const std::size_t column = at++ % 1024;
        return column > row ? std::nan("") : normal(random, 1e4, 0.05);
    });
    expect_close(statistics_of(triangle.view()), test::reference(triangle.values()), "triangle");
    StridedTensor rows(DType::kFloat32, {1024, 1024});
    at = 0;
    rows.fill([&] { return at++ % 1024 == 0 ? -HUGE_VAL : normal(random, 1000, 0.01); });
    expect_close(statistics_of(rows.view()), test::reference(rows.values()), "rows");
}

TEST(DeviceReducer, AConstantTensorHasNoDeviation) {
    StridedTensor data(DType::kFloat32, {100'000});
    data.fill([] { return 0.1; });
    EXPECT_EQ(statistics_of(data.view()).std, 0);
}

TEST(DeviceReducer, TakesWhatLiesInARowInAnyOrderAndRepeatedElements) {
    std::mt19937 random(3);
    const std::vector<StridedTensor> rows{
        {DType::kFloat32, 24, 0, {4, 6}, {1, 4}},                  // transposed
        {DType::kFloat32, 240, 0, {2, 5, 4, 6}, {120, 1, 30, 5}},  // channels last
        {DType::kFloat32, 6, 0, {4, 6}, {0, 1}},                   // expanded
        {DType::kFloat32, 1, 0, {3, 5}, {0, 0}},
        {DType::kFloat32, 10, 2, {1, 8}, {77, 1}}};
    for (StridedTensor data : rows) {
        data.fill([&] { return normal(random, 1, 2); });
        expect_close(statistics_of(data.view()), test::reference(data.values()), "row");
    }
    const auto reducer = DeviceReducer::on_host();
    StridedTensor gaps(DType::kFloat32, 48, 0, {4, 6}, {12, 2});
    EXPECT_EQ(begin(*reducer, {gaps.view()}), DeviceReducer::kNone);
    EXPECT_EQ(begin(*reducer, {StridedTensor(DType::kFloat32, {0, 3}).view()}), DeviceReducer::kNone);
    EXPECT_EQ(begin(*reducer, {StridedTensor(DType::kComplex64, {3}).view()}), DeviceReducer::kNone);
    EXPECT_TRUE(reducer->failure().is_ok());
}

TEST(DeviceReducer, UnitsAreThoseOfTheOtherPath) {
    std::mt19937 random(4);
    std::deque<StridedTensor> tensors;
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64}) {
        for (const std::vector<std::int64_t>& shape : std::vector<std::vector<std::int64_t>>{{},
                                                                                             {1},
                                                                                             {17},
                                                                                             {9, 33},
                                                                                             {64, 3},
                                                                                             {2, 5, 40},
                                                                                             {3, 7, 5, 4},
                                                                                             {3, 8, 4, 4},
                                                                                             {1, 4, 2, 3, 2},
                                                                                             {5, 1},
                                                                                             {300, 70}})
            tensors.emplace_back(dtype, shape);
        tensors.emplace_back(dtype, 240, 0, std::vector<std::int64_t>{2, 5, 4, 6},
                             std::vector<std::int64_t>{120, 1, 30, 5});
        tensors.emplace_back(dtype, 60, 1, std::vector<std::int64_t>{10, 5}, std::vector<std::int64_t>{5, 1});
    }
    for (const ActivationKind kind :
         {ActivationKind::kRelu, ActivationKind::kTanh, ActivationKind::kSigmoid, ActivationKind::kSmooth}) {
        const auto reducer = DeviceReducer::on_host();
        std::vector<Wanted> wanted;
        for (StridedTensor& each : tensors) {
            // Few above zero, so that units are left out.
            each.fill([&] {
                return kind == ActivationKind::kRelu ? normal(random, -2.4, 1) : normal(random, 0.3, 0.6);
            });
            wanted.push_back({each.view(), kind});
        }
        std::vector<Ticket> tickets(wanted.size());
        reducer->begin(kHere, wanted, tickets);
        ASSERT_TRUE(reducer->wait(1s));
        std::uint32_t inactive = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
            SCOPED_TRACE(i);
            const auto want = unit_statistics(wanted[i].view, kind);
            ASSERT_TRUE(want);
            ASSERT_NE(tickets[i], DeviceReducer::kNone);
            const model::UnitStatistics got = reducer->units(tickets[i]);
            EXPECT_EQ(got.units, want->units);
            EXPECT_EQ(got.inactive_units, want->inactive_units);
            EXPECT_EQ(got.low, want->low);
            EXPECT_EQ(got.high, want->high);
            inactive += got.inactive_units;
        }
        EXPECT_EQ(inactive > 20, kind == ActivationKind::kRelu);
    }
}

TEST(DeviceReducer, DifferencesAreThoseOfTheOtherPath) {
    std::mt19937 random(5);
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16, DType::kFloat64})
        for (const std::int64_t offset : {0, 1})
            for (const std::int64_t size : {1, 7, 500, 30'000}) {
                StridedTensor before(dtype, static_cast<std::size_t>(size + offset), offset, {size}, {1});
                StridedTensor after = before;
                before.fill([&] { return normal(random, 0, 1); });
                after.fill([&] { return random() % 50 == 0 ? HUGE_VAL : normal(random, 0, 1); });
                SCOPED_TRACE(std::string(tensor::to_string(dtype)) + " of " + std::to_string(size));
                const auto reducer = DeviceReducer::on_host();
                const Ticket ticket = reducer->begin_difference(kHere, before.view(), after.view());
                ASSERT_NE(ticket, DeviceReducer::kNone);
                ASSERT_TRUE(reducer->wait(1s));
                const auto want = difference_statistics(before.view(), after.view());
                ASSERT_TRUE(want);
                const model::Statistics got = reducer->statistics(ticket);
                EXPECT_EQ(got.not_finite(), want->difference.not_finite());
                EXPECT_EQ(got.zero, want->difference.zero);
                // The other path rounds to float32.
                EXPECT_NEAR(got.min, want->difference.min, 1e-7 * std::abs(got.min));
                EXPECT_NEAR(got.max, want->difference.max, 1e-7 * std::abs(got.max));
                EXPECT_NEAR(got.l2, want->difference.l2, 1e-5 * got.l2);
                EXPECT_NEAR(got.std, want->difference.std, 1e-5 * got.std + 1e-12);
                EXPECT_NEAR(reducer->before_l2(ticket), want->before_l2, 1e-5 * want->before_l2);
            }
    const auto reducer = DeviceReducer::on_host();
    StridedTensor rows(DType::kFloat32, {4, 6});
    StridedTensor columns(DType::kFloat32, 24, 0, {4, 6}, {1, 4});
    EXPECT_EQ(reducer->begin_difference(kHere, rows.view(), columns.view()), DeviceReducer::kNone);
    StridedTensor whole(DType::kInt32, {4});
    EXPECT_EQ(reducer->begin_difference(kHere, whole.view(), whole.view()), DeviceReducer::kNone);
}

// More than fit into one launch, or into the memory for units, with streams that take turns; and again.
TEST(DeviceReducer, ResultsStayApart) {
    const auto reducer = DeviceReducer::on_host();
    std::deque<StridedTensor> tensors;
    for (int i = 0; i < 1500; ++i) {
        tensors.emplace_back(DType::kFloat32,
                             std::vector<std::int64_t>{2, i % 300 == 7 ? 20'000 : 1 + i % 9});
        tensors.back().fill([&] { return i % 2 == 0 ? i : -i - 1; });
    }
    for (int round = 0; round < 3; ++round) {
        std::vector<Ticket> tickets(tensors.size());
        for (std::size_t at = 0; at < tensors.size(); at += 500) {
            std::vector<Wanted> wanted;
            for (std::size_t i = at; i < at + 500; ++i)
                wanted.push_back(
                    {tensors[i].view(), i % 3 == 0 ? ActivationKind::kNone : ActivationKind::kRelu});
            reducer->begin({.device = 0, .stream = at % 1000}, wanted, std::span(tickets).subspan(at, 500));
        }
        ASSERT_TRUE(reducer->wait(1s));
        for (std::size_t i = 0; i < tensors.size(); ++i) {
            SCOPED_TRACE(i);
            ASSERT_NE(tickets[i], DeviceReducer::kNone);
            const double value = i % 2 == 0 ? static_cast<double>(i) : -static_cast<double>(i) - 1;
            EXPECT_EQ(reducer->statistics(tickets[i]).max, value);
            EXPECT_EQ(reducer->statistics(tickets[i]).mean, value);
            const model::UnitStatistics units = reducer->units(tickets[i]);
            EXPECT_EQ(units.units, i % 3 == 0 ? 0 : static_cast<std::uint32_t>(tensors[i].shape()[1]));
            EXPECT_EQ(units.inactive_units, value > 0 ? 0 : units.units);
        }
        for (const Ticket ticket : tickets) reducer->release(ticket);
    }
}

TEST(DeviceReducer, MarksAreOverInTheirOrder) {
    const auto reducer = DeviceReducer::on_host(2);
    StridedTensor one(DType::kFloat32, {});
    std::vector<DeviceReducer::Mark> marks;
    std::vector<Ticket> tickets;
    for (int i = 0; i < 5; ++i) {
        one.set(0, i);
        tickets.push_back(begin(*reducer, {one.view()}));
        marks.push_back(reducer->mark());
    }
    for (int i = 0; i < 5; ++i) {
        const auto status = reducer->poll(marks[static_cast<std::size_t>(i)]);
        EXPECT_EQ(status.has_value(), i < 3) << i;
        const double value = reducer->value(tickets[static_cast<std::size_t>(i)]);
        if (i < 3) {
            EXPECT_TRUE(*status);
            EXPECT_EQ(value, i);
        } else {
            EXPECT_TRUE(std::isnan(value));
        }
    }
    EXPECT_FALSE(reducer->wait(1ms));  // it does not come further by itself
    std::ignore = begin(*reducer, {one.view()});
    EXPECT_FALSE(reducer->wait(1ms));
    EXPECT_EQ(reducer->value(tickets[3]), 3);  // but with what is begun after it
    EXPECT_TRUE(reducer->poll(marks[3]));
}

// A device on which calls fail, or a stream is captured.
class Faulty final : public device::Backend {
  public:
    struct Faults {
        int launches = 1000;  // that succeed
        int shares = 1000;
        bool marks = true;
        bool is_lost = false;
        bool is_captured = false;
    };
    explicit Faulty(Faults& faults) : faults_(faults) {}

    base::Status prepare(const device::Place& place) override { return inner_->prepare(place); }
    bool is_capturing(const device::Place& /*place*/) override { return faults_.is_captured; }
    base::Result<void*> allocate(const device::Place& place, std::size_t bytes) override {
        return inner_->allocate(place, bytes);
    }
    base::Result<device::SharedMemory> share(const device::Place& place, std::size_t bytes) override {
        if (faults_.shares-- <= 0) throw std::bad_alloc();
        return inner_->share(place, bytes);
    }
    base::Status launch(const device::Place& place, const device::Batch& batch,
                        device::Word32 blocks) override {
        if (faults_.launches-- <= 0) return {base::Code::kUnavailable, "launch"};
        return inner_->launch(place, batch, blocks);
    }
    base::Result<std::uint32_t> mark(const device::Place& place) override {
        EXPECT_FALSE(faults_.is_captured);
        if (!faults_.marks) return base::Status(base::Code::kUnavailable, "mark");
        return inner_->mark(place);
    }
    base::Result<bool> has_passed(const device::Place& place, std::uint32_t mark) override {
        if (faults_.is_lost) return base::Status(base::Code::kUnavailable, "lost");
        return inner_->has_passed(place, mark);
    }
    void forget(const device::Place& place, std::uint32_t mark) noexcept override {
        inner_->forget(place, mark);
    }

  private:
    Faults& faults_;
    std::unique_ptr<device::Backend> inner_ = device::host_backend(0);
};

TEST(DeviceReducer, WhileAStreamIsCapturedNothingIsBegunOrMarked) {
    Faulty::Faults faults;
    const auto reducer = DeviceReducer::on(std::make_unique<Faulty>(faults));
    StridedTensor one(DType::kFloat32, {});
    one.set(0, 7);
    const Ticket ticket = begin(*reducer, {one.view()});
    faults.is_captured = true;
    EXPECT_EQ(begin(*reducer, {one.view()}), DeviceReducer::kNone);
    const DeviceReducer::Mark mark = reducer->mark();
    EXPECT_FALSE(reducer->poll(mark));
    EXPECT_FALSE(reducer->wait(1ms));
    faults.is_captured = false;
    ASSERT_TRUE(reducer->poll(mark));
    EXPECT_EQ(reducer->value(ticket), 7);
}

TEST(DeviceReducer, AFailedLaunchTakesNothingAndNothingMoreOnItsStream) {
    Faulty::Faults faults;
    faults.launches = 1;
    const auto reducer = DeviceReducer::on(std::make_unique<Faulty>(faults));
    std::deque<StridedTensor> tensors;
    std::vector<Wanted> wanted;
    for (int i = 0; i < 200; ++i)
        wanted.push_back({tensors.emplace_back(DType::kFloat32, std::vector<std::int64_t>{3}).view()});
    std::vector<Ticket> tickets(wanted.size());
    reducer->begin(kHere, wanted, tickets);
    for (const Ticket ticket : tickets) EXPECT_EQ(ticket, DeviceReducer::kNone);
    EXPECT_FALSE(reducer->failure());
    faults.launches = 1000;
    EXPECT_EQ(begin(*reducer, wanted[0]), DeviceReducer::kNone);
    Ticket elsewhere = DeviceReducer::kNone;
    reducer->begin({.device = 0, .stream = 5}, {&wanted[0], 1}, {&elsewhere, 1});
    EXPECT_NE(elsewhere, DeviceReducer::kNone);
}

TEST(DeviceReducer, WithoutMemoryForResultsTheBatchIsDropped) {
    Faulty::Faults faults;
    faults.shares = 0;
    const auto reducer = DeviceReducer::on(std::make_unique<Faulty>(faults));
    {
        StridedTensor gone(DType::kFloat32, {1000});
        EXPECT_EQ(begin(*reducer, {gone.view()}), DeviceReducer::kNone);
    }
    faults.shares = 1000;
    StridedTensor one(DType::kFloat32, {});
    one.set(0, 3);
    const Ticket ticket = begin(*reducer, {one.view()});
    ASSERT_TRUE(reducer->wait(1s));
    EXPECT_EQ(reducer->value(ticket), 3);
}

TEST(DeviceReducer, ALostDeviceIsSaidByItsMark) {
    for (const bool by_mark : {false, true}) {
        Faulty::Faults faults;
        const auto reducer = DeviceReducer::on(std::make_unique<Faulty>(faults));
        StridedTensor one(DType::kFloat32, {});
        EXPECT_NE(begin(*reducer, {one.view()}), DeviceReducer::kNone);
        (by_mark ? faults.marks : faults.is_lost) = !by_mark;
        const auto status = reducer->poll(reducer->mark());
        ASSERT_TRUE(status);
        EXPECT_FALSE(*status);
    }
}

TEST(DeviceReducer, TheValueOfOneElement) {
    for (const double value : {0.0, -3.5, HUGE_VAL, -HUGE_VAL}) {
        const auto reducer = DeviceReducer::on_host();
        StridedTensor one(DType::kFloat32, {});
        one.set(0, value);
        const Ticket ticket = begin(*reducer, {one.view()});
        ASSERT_TRUE(reducer->wait(1s));
        EXPECT_EQ(reducer->value(ticket), value);
        one.set(0, std::nan(""));
        const Ticket other = begin(*reducer, {one.view()});
        ASSERT_TRUE(reducer->wait(1s));
        EXPECT_TRUE(std::isnan(reducer->value(other)));
    }
}

TEST(DeviceReducer, WithoutADriverItSaysWhatIsMissing) {
    const std::vector<std::string> compilers{"/nowhere/libnvrtc.so"};
    const auto reducer = DeviceReducer::on_cuda(compilers);
    ASSERT_FALSE(reducer);
    EXPECT_EQ(reducer.status().code(), base::Code::kUnsupported);
}

}  // namespace
}  // namespace traindbg::reduce
