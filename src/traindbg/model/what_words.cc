#include "traindbg/model/what_words.h"

namespace traindbg::model {

std::string what_in_words(What what) {
    std::string out;
    for (const WhatWord& row : kWhatWords) {
        if (!has(what, row.bit)) continue;
        if (!out.empty()) out += ", ";
        out += row.in_words;
    }
    return out.empty() ? "nothing" : out;
}

}  // namespace traindbg::model
