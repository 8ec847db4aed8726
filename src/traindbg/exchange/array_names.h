// Names of arrays and tags in exports: "train/100/weight/fc1.weight", "w1/eval/loss/value".
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "traindbg/model/step.h"

namespace traindbg::exchange {

// A tensor's name as a path that stays where it is put: components that are empty, "." or ".." become "_".
[[nodiscard]] std::string path_of(std::string_view name);

// "w1/" where a run has several workers, else nothing.
[[nodiscard]] std::string worker_prefix(model::WorkerId worker, bool several);

// Names that were given so far; one that is taken gets "~2", "~3", ...
class UniqueNames {
  public:
    [[nodiscard]] std::string take(std::string name);

  private:
    std::set<std::string> taken_;
};

}  // namespace traindbg::exchange
