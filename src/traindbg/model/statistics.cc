#include "traindbg/model/statistics.h"

#include <algorithm>
#include <cmath>

namespace traindbg::model {

void merge(Statistics& into, const Statistics& from) noexcept {
    // The moments first: they need the counts from before.
    if (from.finite() != 0) {
        if (into.finite() == 0) {
            into.min = from.min;
            into.max = from.max;
            into.mean = from.mean;
            into.std = from.std;
        } else {
            const auto n = static_cast<double>(into.finite());
            const auto m = static_cast<double>(from.finite());
            const double share = m / (n + m);
            const double distance = from.mean - into.mean;
            // The squared deviations of two groups from their common mean: those from their own means, and
            // that of the means from each other (Chan, Golub, LeVeque 1979). `hypot` does not overflow.
            const double within = std::hypot(into.std * std::sqrt(1 - share), from.std * std::sqrt(share));
            into.std = std::hypot(within, distance * std::sqrt(share * (1 - share)));
            into.mean += distance * share;
            into.min = std::min(into.min, from.min);
            into.max = std::max(into.max, from.max);
        }
        into.l1 += from.l1;
        into.l2 = std::hypot(into.l2, from.l2);
    }
    into.count += from.count;
    into.nan += from.nan;
    into.positive_infinite += from.positive_infinite;
    into.negative_infinite += from.negative_infinite;
    into.zero += from.zero;
}

}  // namespace traindbg::model
