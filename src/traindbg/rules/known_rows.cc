#include "traindbg/rules/known_rows.h"

#include <algorithm>
#include <cmath>

#include "traindbg/rules/loop_facts.h"

namespace traindbg::rules {

void KnownRows::observe(const model::StepView& step) {
    if (const auto again = loop_fact(step, "rows_unscored_again"))
        evaluated_again_ = std::max(evaluated_again_, again->value);
    if (const auto rows = loop_fact(step, "rows_unscored_of")) evaluated_ = std::max(evaluated_, rows->value);
    const auto known = loop_fact(step, "rows_known"), looked = loop_fact(step, "rows_looked_at");
    const auto pairs = loop_fact(step, "rows_pairs"), alike = loop_fact(step, "rows_alike");
    if (!known || !looked) return;
    // Rows that are alike within a batch, as where nothing of a row is left, are one row that comes often.
    const double wiped_out = pairs && alike && pairs->value > 0 ? std::sqrt(alike->value / pairs->value) : 0;
    are_others_ = looked->value >= kFewestLookedAt && known->value > (0.95 - wiped_out) * looked->value &&
                  known->value > 0.5 * looked->value;
}

}  // namespace traindbg::rules
