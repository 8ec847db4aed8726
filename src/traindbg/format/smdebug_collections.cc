#include "traindbg/format/smdebug_collections.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "traindbg/base/format.h"

namespace traindbg::format {
namespace {

using base::Code;
using base::Result;
using base::Status;
using nlohmann::json;
using nlohmann::ordered_json;

Status damaged_collections(std::string what) { return {Code::kDataLoss, std::move(what)}; }

bool read_texts(const json& object, const char* key, std::vector<std::string>& out) {
    const auto it = object.find(key);
    if (it == object.end() || it->is_null()) return true;
    if (!it->is_array()) return false;
    for (const json& item : *it) {
        if (!item.is_string()) return false;
        out.push_back(item.get<std::string>());
    }
    return true;
}

bool read_flag(const json& object, const char* key, bool& out) {
    const auto it = object.find(key);
    if (it == object.end() || it->is_null()) return true;
    if (!it->is_boolean()) return false;
    out = it->get<bool>();
    return true;
}

bool read_reductions(const json& object, SmdebugReductionConfig& out) {
    if (!object.is_object() || !read_flag(object, "save_raw_tensor", out.save_raw_tensor) ||
        !read_flag(object, "save_shape", out.save_shape))
        return false;
    const auto it = object.find("reductions");
    if (it == object.end() || it->is_null()) return true;
    if (!it->is_string()) return false;
    std::string_view list = it->get_ref<const std::string&>();
    while (!list.empty()) {
        const std::size_t end = std::min(list.find(','), list.size());
        if (end != 0) out.reductions.emplace_back(list.substr(0, end));
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return true;
}

}  // namespace

Result<SmdebugCollections> decode_smdebug_collections(std::string_view text) {
    const json document = json::parse(text, nullptr, false);
    if (document.is_discarded()) return damaged_collections("is not JSON");
    if (!document.is_object()) return damaged_collections("is no object");
    SmdebugCollections out;
    if (const auto meta = document.find("_meta"); meta != document.end() && meta->is_object()) {
        const auto workers = meta->find("num_workers");
        if (workers == meta->end() || !workers->is_number_unsigned())
            return damaged_collections("has no number of workers");
        out.workers = workers->get<std::uint64_t>();
    }
    const auto collections = document.find("collections");
    if (collections == document.end() || !collections->is_object())
        return damaged_collections("has no 'collections'");
    for (const auto& [name, item] : collections->items()) {
        SmdebugCollection& collection = out.collections.emplace_back();
        collection.name = name;
        if (!item.is_object() || !read_texts(item, "include_regex", collection.include_regex) ||
            !read_texts(item, "tensor_names", collection.tensor_names))
            return damaged_collections(
                base::format("has no lists for collection {}", out.collections.size() - 1));
        const auto config = item.find("reduction_config");
        if (config != item.end() && !config->is_null() &&
            !read_reductions(*config, collection.reduction_config.emplace()))
            return damaged_collections(
                base::format("has no reductions for collection {}", out.collections.size() - 1));
    }
    return out;
}

std::string encode_smdebug_collections(const SmdebugCollections& collections) {
    ordered_json all = ordered_json::object();
    for (const SmdebugCollection& collection : collections.collections) {
        ordered_json config;
        if (collection.reduction_config) {
            config = {{"save_raw_tensor", collection.reduction_config->save_raw_tensor},
                      {"reductions", base::join(collection.reduction_config->reductions, ",")},
                      {"save_shape", collection.reduction_config->save_shape}};
        }
        all[collection.name] = {{"name", collection.name},
                                {"include_regex", collection.include_regex},
                                {"tensor_names", collection.tensor_names},
                                {"reduction_config", std::move(config)},
                                {"save_config", nullptr},
                                {"save_histogram", true}};
    }
    const ordered_json document = {{"collections", std::move(all)},
                                   {"_meta", {{"num_workers", collections.workers}}}};
    return document.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

}  // namespace traindbg::format
