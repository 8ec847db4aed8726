// The parts of traindbg._core, one function per topic.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "traindbg/read/run.h"

namespace traindbg::bindings {

void bind_forking(nanobind::module_& module);
void bind_forward_path(nanobind::module_& module);  // after bind_hot_path
void bind_hot_path(nanobind::module_& module);      // after bind_session
void bind_listening(nanobind::module_& module);     // after bind_hot_path
void bind_live_objects(nanobind::module_& module);
void bind_reader(nanobind::module_& module);
void bind_row_spread(nanobind::module_& module);
void bind_rows(nanobind::module_& module);
void bind_rules(nanobind::module_& module);
void bind_session(nanobind::module_& module);
void bind_settings(nanobind::module_& module);
void bind_tables(nanobind::module_& module);
void bind_tensor_access(nanobind::module_& module);

// Dictionaries of `file`, `offset`, `bytes`, `what` and `tail`.
nanobind::list to_list(const std::vector<read::Damage>& places);

}  // namespace traindbg::bindings
