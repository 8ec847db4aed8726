#include "traindbg/report/series.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace traindbg::report {

std::vector<Point> mean_by_step(const std::vector<Point>& points) {
    std::vector<Point> out;
    std::size_t count = 0;
    for (const Point& point : points) {
        if (out.empty() || out.back().x != point.x) {
            out.push_back(point);
            count = 1;
            continue;
        }
        Point& last = out.back();
        ++count;
        if (!std::isfinite(last.y)) continue;
        if (!std::isfinite(point.y)) last.y = point.y;
        else last.y += (point.y - last.y) / static_cast<double>(count);
    }
    return out;
}

double running_median(const std::vector<Point>& points, std::size_t index, std::size_t reach) {
    constexpr std::size_t kMostPoints = 200;
    if (!std::isfinite(points[index].y)) return std::numeric_limits<double>::quiet_NaN();
    const std::size_t after = std::min({reach, index, points.size() - 1 - index});
    const std::size_t before = std::min(index, std::max(after, std::min(reach, index) / 2));
    const std::size_t stride = 1 + 2 * reach / kMostPoints;
    std::vector<double> values = {points[index].y};
    const auto take = [&](std::size_t place) {
        if (std::isfinite(points[place].y)) values.push_back(points[place].y);
    };
    for (std::size_t away = stride; away <= before; away += stride) take(index - away);
    for (std::size_t away = stride; away <= after; away += stride) take(index + away);
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

std::vector<std::size_t> thin(const std::vector<Point>& points, std::size_t most) {
    std::vector<std::size_t> kept;
    most = std::max<std::size_t>(most, 4);
    if (points.size() <= most) {
        kept.resize(points.size());
        for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = i;
        return kept;
    }
    // The first, the last, and two of each bucket.
    const std::size_t inner = points.size() - 2;
    const std::size_t buckets = std::max<std::size_t>(1, (most - 2) / 2);
    kept.push_back(0);
    for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
        const std::size_t begin = 1 + bucket * inner / buckets;
        const std::size_t end = 1 + (bucket + 1) * inner / buckets;
        constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
        std::size_t low = kNone;
        std::size_t high = kNone;
        std::size_t bad = kNone;
        for (std::size_t i = begin; i < end; ++i) {
            if (!std::isfinite(points[i].y)) {
                if (bad == kNone) bad = i;
                continue;
            }
            if (low == kNone || points[i].y < points[low].y) low = i;
            if (high == kNone || points[i].y > points[high].y) high = i;
        }
        std::vector<std::size_t> chosen;
        for (const std::size_t i : {low, high})
            if (i != kNone && std::find(chosen.begin(), chosen.end(), i) == chosen.end()) chosen.push_back(i);
        if (bad != kNone) {
            // A bad value never gives way to a good one: the smallest does.
            if (chosen.size() == 2) chosen.erase(chosen.begin());
            chosen.push_back(bad);
        }
        std::sort(chosen.begin(), chosen.end());
        kept.insert(kept.end(), chosen.begin(), chosen.end());
    }
    kept.push_back(points.size() - 1);
    return kept;
}

void finish(Series& series, std::size_t most) {
    constexpr std::size_t kLeastForSmoothing = 20;
    const std::vector<Point>& all = series.points;
    series.recorded = all.size();
    const bool smooths = series.mode == model::Mode::kTrain && all.size() >= kLeastForSmoothing;
    const std::size_t reach = std::max<std::size_t>(2, all.size() / 60);
    std::vector<Point> points;
    for (const std::size_t i : thin(all, most)) {
        points.push_back(all[i]);
        if (smooths) series.smooth.push_back(running_median(all, i, reach));
    }
    series.points = std::move(points);
}

}  // namespace traindbg::report
