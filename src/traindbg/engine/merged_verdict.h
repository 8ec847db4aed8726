// One verdict of what several engines found: of engines that were shown the same steps and have each some of
// the rules. It is the verdict that one engine with all of the rules gives: the same findings in the same
// order, the same outcomes, the causes drawn from all of them together.
//
// Thread-safety: one thread at a time. Errors: none. Cost: `verdict` sorts and copies all findings.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "traindbg/engine/moment.h"
#include "traindbg/model/finding.h"
#include "traindbg/model/run_meta.h"

namespace traindbg::engine {

class MergedVerdict {
  public:
    // `rules`: the names of all, in the order in which they were chosen.
    explicit MergedVerdict(const std::vector<std::string>& rules);

    // What engine `part` says of its finding `number` (0, 1, ... in the order in which they fired there);
    // what it said of it before counts no more. `moment.rule` is the place among all rules.
    void put(std::size_t part, std::size_t number, const Moment& moment, model::Finding finding);
    // What became of the rule at that place, so far.
    void put(std::size_t rule, model::RuleOutcome outcome);
    // The rule at that place judges no more: it was not checked. What it found stays.
    void give_up(std::size_t rule, const std::string& why);
    void set_meta(model::WorkerMeta meta) { meta_ = std::move(meta); }

    [[nodiscard]] model::Verdict verdict() const;

  private:
    struct Entry {
        Moment moment;
        model::Finding finding;
    };
    std::map<std::pair<std::size_t, std::size_t>, Entry> entries_;  // by part and number
    std::vector<model::RuleOutcome> outcomes_;
    std::vector<bool> given_up_;  // by rule
    model::WorkerMeta meta_;
};

}  // namespace traindbg::engine
