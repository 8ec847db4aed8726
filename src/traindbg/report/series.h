// Series of numbers over steps, made small enough for a page without hiding what matters in them.
//
// Thinning cuts a series into equal buckets and keeps the smallest and the largest value of each, so
// that a spike of one step is still there; what is not finite is always kept up to the limit.
// Values only; no I/O. Thread-safety: plain values and pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "traindbg/model/step.h"

namespace traindbg::report {

struct Point {
    std::uint64_t x = 0;  // TRAIN step
    double y = 0;         // may be NaN or infinite

    friend bool operator==(const Point&, const Point&) = default;
};

// One curve of the page.
struct Series {
    model::WorkerId worker = 0;
    model::Mode mode = model::Mode::kTrain;
    std::string tensor;
    std::string statistic;
    std::vector<Point> points;
    std::vector<double> smooth;  // the running median at each point; may be empty
    std::size_t recorded = 0;    // points before thinning
};

// Points that share an x become one: their mean, or what is not finite where one of them is not.
// `points` must be in the order of x.
[[nodiscard]] std::vector<Point> mean_by_step(const std::vector<Point>& points);

// The median of the finite values around `index`, at most `reach` points to either side. Near the first
// point there are fewer, so that the window stays centred on a curve that falls steeply; near the last one
// at least half of them before it, so that the curve does not end in whatever the last value was. Unlike
// an average it lets no spike bend it. NaN where the value itself is not finite. Cost: about 200 points a
// call.
[[nodiscard]] double running_median(const std::vector<Point>& points, std::size_t index, std::size_t reach);

// The indexes that remain when `points` are cut to at most `most` (at least 4): first and last, and
// the extremes of each bucket, in order.
[[nodiscard]] std::vector<std::size_t> thin(const std::vector<Point>& points, std::size_t most);

// Smooths (TRAIN series of at least 20 points) and thins, in place.
void finish(Series& series, std::size_t most);

}  // namespace traindbg::report
