// The faults that a rule, or a part of one, says are there now, by the keys of their findings.
//
// A rule fires at every step at which it sees a fault, and clears once. Thread-safety: one thread.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "traindbg/model/finding.h"
#include "traindbg/rules/rule.h"

namespace traindbg::rules {

class Firing {
  public:
    void fire(model::Finding finding, FindingSink& sink) {
        keys_.insert(finding.key);
        sink.fire(std::move(finding));
    }
    // Whether it was firing.
    bool clear(std::string_view key, FindingSink& sink) {
        const auto place = keys_.find(key);
        if (place == keys_.end()) return false;
        keys_.erase(place);
        sink.clear(key);
        return true;
    }
    [[nodiscard]] bool contains(std::string_view key) const { return keys_.contains(key); }
    [[nodiscard]] bool is_empty() const noexcept { return keys_.empty(); }

  private:
    std::set<std::string, std::less<>> keys_;
};

}  // namespace traindbg::rules
