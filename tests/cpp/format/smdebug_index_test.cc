#include "traindbg/format/smdebug_index.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "traindbg/format/smdebug_collections.h"

namespace traindbg::format {
namespace {

const std::filesystem::path kGolden = std::filesystem::path(TRAINDBG_SOURCE_DIR) / "tests/data/smdebug";

std::string content_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<std::filesystem::path> golden_files(std::string_view folder) {
    std::vector<std::filesystem::path> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kGolden))
        if (entry.path().extension() == ".json" &&
            entry.path().string().find("/" + std::string(folder) + "/") != std::string::npos)
            found.push_back(entry.path());
    return found;
}

TEST(SmdebugIndexTest, TheOriginalsFilesAreReadAndWrittenToTheByte) {
    const auto files = golden_files("index");
    ASSERT_GT(files.size(), 20U);
    for (const auto& file : files) {
        const std::string text = content_of(file);
        const auto index = decode_smdebug_index(text);
        ASSERT_TRUE(index.is_ok()) << file << ": " << index.status().message();
        EXPECT_EQ(encode_smdebug_index(*index), text) << file;
        const auto name = parse_smdebug_index_name(file.filename().string());
        ASSERT_TRUE(name.has_value()) << file;
        EXPECT_TRUE(file.string().ends_with(smdebug_index_file(name->global_step, name->worker))) << file;
        if (!index->event_file.empty()) {
            EXPECT_EQ(index->event_file, smdebug_event_file(name->global_step, name->worker));
        }
    }
}

TEST(SmdebugIndexTest, NamesOfFilesGiveStepAndWorker) {
    const auto plain = parse_smdebug_index_name("000000001000_worker_12.json");
    ASSERT_TRUE(plain.has_value());
    EXPECT_EQ(plain->global_step, 1000U);
    EXPECT_EQ(plain->worker, "worker_12");
    EXPECT_EQ(smdebug_index_file(1000, "worker_12"), "index/000000001/000000001000_worker_12.json");
    const std::string device = "/job:worker/replica:0/task:1/device:GPU:0";
    EXPECT_EQ(smdebug_event_file(7, device),
              "events/000000000007/000000000007__job-worker_replica-0_task-1_device-GPU-0.tfevents");
    EXPECT_EQ(parse_smdebug_index_name("000000000007__job-worker_replica-0_task-1_device-GPU-0.json")->worker,
              device);
    EXPECT_EQ(parse_smdebug_collections_name("_job-a_collections.json"), "/job:a");
    EXPECT_TRUE(parse_smdebug_index_name("000000000001_worker_0.csv").has_value());
    for (const char* name : {"", ".json", "_.json", "1_.json", "x_worker_0.json", "1_worker_0.json.tmp",
                             "99999999999999999999_worker_0.json", "-1_worker_0.json", "1.json"})
        EXPECT_FALSE(parse_smdebug_index_name(name).has_value()) << name;
    EXPECT_FALSE(parse_smdebug_collections_name("_collections.json").has_value());
    EXPECT_FALSE(parse_smdebug_collections_name("worker_0.json").has_value());
}

TEST(SmdebugIndexTest, ReductionsHaveNamesOfTheirOwn) {
    const auto reduction = parse_smdebug_reduction("smdebug/reductions/abs_mean/gradient/fc.weight");
    ASSERT_TRUE(reduction.has_value());
    EXPECT_EQ(reduction->reduction, "abs_mean");
    EXPECT_EQ(reduction->tensor, "gradient/fc.weight");
    EXPECT_EQ(smdebug_reduction_name("abs_mean", "gradient/fc.weight"),
              "smdebug/reductions/abs_mean/gradient/fc.weight");
    for (const char* name : {"", "fc.weight", "smdebug/reductions/", "smdebug/reductions/mean",
                             "smdebug/reductions/mean/", "smdebug/reductions//x"})
        EXPECT_FALSE(parse_smdebug_reduction(name).has_value()) << name;
}

TEST(SmdebugIndexTest, WhatIsWrongIsNamed) {
    const std::string meta = R"({"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": "events/a"})";
    const auto error = [](const std::string& text) {
        const auto index = decode_smdebug_index(text);
        return index.is_ok() ? std::string("ok") : index.status().message();
    };
    EXPECT_EQ(error(meta + "}"), "ok");
    EXPECT_EQ(error(""), "is not JSON");
    EXPECT_EQ(error("{"), "is not JSON");
    EXPECT_EQ(error("[]"), "has no 'meta'");
    EXPECT_EQ(error("{}"), "has no 'meta'");
    EXPECT_EQ(error(R"({"meta": {}})"), "has no mode");
    EXPECT_EQ(error(R"({"meta": {"mode": "train"}})"), "has an unknown mode");
    EXPECT_EQ(error(R"({"meta": {"mode": "TRAIN", "mode_step": -1}})"), "has no mode_step");
    EXPECT_EQ(error(R"({"meta": {"mode": "TRAIN", "mode_step": 1.5}})"), "has no mode_step");
    for (const char* path : {"/etc/passwd", "../x", "a/../../x", "..", "a\\u0000b"})
        EXPECT_EQ(error(R"({"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": ")" +
                        std::string(path) + "\"}}"),
                  "names an event file outside of the run")
            << path;
    const auto entry = [&](const std::string& text) {
        return error(meta + R"(, "tensor_payload": [)" + text + "]}");
    };
    EXPECT_EQ(entry(R"({"tensorname": "a", "start_idx": 0, "length": 16})"), "ok");
    for (const char* text : {"1", "{}", R"({"tensorname": 1, "start_idx": 0, "length": 16})",
                             R"({"tensorname": "a", "start_idx": -1, "length": 16})",
                             R"({"tensorname": "a", "start_idx": 0, "length": 99999999999})",
                             R"({"tensorname": "a", "start_idx": 18446744073709551615, "length": 16})"})
        EXPECT_EQ(entry(text), "has no place for tensor 0") << text;
    EXPECT_EQ(error(meta + R"(, "tensor_payload": 1})"), "has a 'tensor_payload' that is no list");
    EXPECT_EQ(error(R"({"meta": {"mode": "TRAIN", "mode_step": 1}, "tensor_payload":
                    [{"tensorname": "a", "start_idx": 0, "length": 16}]})"),
              "has tensors and names no event file");
    for (const char* text : {R"({"tensorname": "a", "shape": [-1]})", R"({"tensorname": "a", "shape": 1})",
                             R"({"tensorname": "a"})", R"({"shape": [1]})"})
        EXPECT_EQ(error(meta + R"(, "shape_payload": [)" + text + "]}"), "has no shape for entry 0") << text;
    EXPECT_EQ(entry(R"({"tensorname": "a", "start_idx": 0, "length": 16}, null, [[]], {"length": {}}, 7)"),
              "has no place for tensor 1");
    EXPECT_EQ(entry("[], [{}]"), "has no place for tensor 0");
    EXPECT_EQ(error(meta + R"(, "tensor_payload": {"tensorname": []}})"),
              "has a 'tensor_payload' that is no list");
    EXPECT_EQ(error(meta + R"(, "shape_payload": "x"})"), "has a 'shape_payload' that is no list");
    EXPECT_EQ(error(R"({"meta": 1})"), "has no mode");
    EXPECT_EQ(error(R"({"meta": null})"), "has no 'meta'");
    EXPECT_EQ(error(meta + "} x"), "is not JSON");
}

TEST(SmdebugIndexTest, MembersInAnyOrderUnknownOnesAndRepeatedOnes) {
    const auto index = decode_smdebug_index(R"({
        "later": {"meta": 1, "tensor_payload": [{"tensorname": "no"}], "deep": [[{"shape": [1]}], {}]},
        "shape_payload": [
            {"shape": [9], "originalname": null, "tensorname": "a", "more": [1, {"shape": [3]}], "shape": [2, 0]},
            {"originalname": "b'", "tensorname": "b", "shape": []}],
        "tensor_payload": 5,
        "tensor_payload": [{"length": 16, "tensorname": "x", "extra": {"length": 1}, "start_idx": 3, "tensorname": "a"}],
        "meta": {"mode": "TRAIN", "mode_step": 1},
        "meta": {"event_file_name": "events/a", "mode_step": 7, "mode": "EVAL", "mode_step": 8, "x": [null, true, -1, 1.5]}
    })");
    ASSERT_TRUE(index.is_ok()) << index.status().message();
    EXPECT_EQ(*index,
              (SmdebugIndex{
                  model::Mode::kEval, 8, "events/a", {{"a", 3, 16}}, {{"a", "a", {2, 0}}, {"b", "b'", {}}}}));
    const auto null = decode_smdebug_index(R"({"tensor_payload": null, "shape_payload": null,
        "meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": "a", "event_file_name": null}})");
    ASSERT_TRUE(null.is_ok());
    EXPECT_EQ(*null, (SmdebugIndex{model::Mode::kTrain, 1, "", {}, {}}));
}

TEST(SmdebugCollectionsTest, TheOriginalsFilesAreRead) {
    const auto files = golden_files("collections");
    ASSERT_GE(files.size(), 8U);
    for (const auto& file : files) {
        const auto collections = decode_smdebug_collections(content_of(file));
        ASSERT_TRUE(collections.is_ok()) << file << ": " << collections.status().message();
        const auto again = decode_smdebug_collections(encode_smdebug_collections(*collections));
        ASSERT_TRUE(again.is_ok());
        EXPECT_EQ(*again, *collections);
    }
    const auto torch = decode_smdebug_collections(
        content_of(kGolden / "torch_reductions/collections/000000000/worker_0_collections.json"));
    ASSERT_TRUE(torch.is_ok());
    EXPECT_EQ(torch->workers, 1U);
    bool found = false;
    for (const SmdebugCollection& collection : torch->collections) {
        if (collection.name != "gradients") continue;
        found = true;
        EXPECT_EQ(collection.include_regex, std::vector<std::string>{"^gradient"});
        EXPECT_EQ(collection.tensor_names.size(), 4U);
        ASSERT_TRUE(collection.reduction_config.has_value());
        EXPECT_FALSE(collection.reduction_config->save_raw_tensor);
        EXPECT_EQ(collection.reduction_config->reductions.size(), 12U);
        EXPECT_EQ(collection.reduction_config->reductions.back(), "abs_l1_norm");
    }
    EXPECT_TRUE(found);
}

TEST(SmdebugCollectionsTest, WhatIsWrongIsNamed) {
    const auto error = [](const std::string& text) {
        const auto collections = decode_smdebug_collections(text);
        return collections.is_ok() ? std::string("ok") : collections.status().message();
    };
    EXPECT_EQ(error(R"({"collections": {}})"), "ok");
    EXPECT_EQ(error("nothing"), "is not JSON");
    EXPECT_EQ(error("[]"), "is no object");
    EXPECT_EQ(error("{}"), "has no 'collections'");
    EXPECT_EQ(error(R"({"_meta": {"num_workers": -1}, "collections": {}})"), "has no number of workers");
    EXPECT_EQ(error(R"({"collections": {"a": 1}})"), "has no lists for collection 0");
    EXPECT_EQ(error(R"({"collections": {"a": {"include_regex": [1]}}})"), "has no lists for collection 0");
    EXPECT_EQ(error(R"({"collections": {"a": {"reduction_config": {"reductions": 1}}}})"),
              "has no reductions for collection 0");
    EXPECT_EQ(error(R"({"collections": {"a": {"reduction_config": null, "include_regex": null}}})"), "ok");
}

}  // namespace
}  // namespace traindbg::format
